//! Two ITS stations in virtual time: one sends a CAM every 100 ms, the other receives over a link that loses every tenth frame.
//!
//! A protocol of Viaduct is a pure machine: it reads no clock and opens no socket. Time and frames are arguments, so the
//! program below runs a minute of traffic in a few milliseconds, with the same result each time.
//!
//! ```sh
//! cargo run --bin example-machine
//! ```

use std::time::Duration;

use bytes::Bytes;
use viaduct_its::access::MacAddress;
use viaduct_its::facilities::{Message, MessageKind, cam};
use viaduct_its::{Ego, Event, SendRequest, Station, StationSettings};
use viaduct_netem::link::{Delay, Loss};
use viaduct_netem::{Link, LinkSettings, Probability};
use viaduct_units::{Degrees, MetresPerSecond, Mono, Now, Position, StationId, StationType, TimestampIts};

const SECONDS: u64 = 60;
const CAM_INTERVAL: Duration = Duration::from_millis(100);
const SEED: u64 = 7;

fn station(number: u8) -> Station {
    let settings = StationSettings {
        link_address: MacAddress([2, 0, 0, 0, 0, number]),
        station_type: StationType::PASSENGER_CAR,
        mobile: true,
        beacons: false,
    };
    Station::new(settings, SEED)
}

/// Returns the vehicle's state: it drives east at 13.9 m/s.
fn ego(now: Now) -> Ego {
    Ego {
        time: now.tai,
        position: Position::new(48.262_5, 11.667_5),
        position_accurate: true,
        speed: MetresPerSecond(13.9),
        heading: Some(Degrees(90.0)),
    }
}

/// Returns a request that sends one CAM to every station in direct reach.
fn cam(now: Now) -> anyhow::Result<SendRequest> {
    let input = cam::CamInput { position: Some(ego(now).position), ..cam::CamInput::new(StationId(1001), now.tai) };
    let message = Message::Cam(Box::new(cam::build(&input)));
    Ok(SendRequest::single_hop(MessageKind::Cam, Bytes::from(message.encode()?)))
}

#[expect(clippy::print_stdout, reason = "the output of the example")]
fn main() -> anyhow::Result<()> {
    let (mut sender, mut receiver) = (station(1), station(2));
    let settings = LinkSettings {
        loss: Loss::Independent(Probability::new(0.1)?),
        delay: Delay { base: Duration::from_millis(5), ..Delay::default() },
        ..LinkSettings::default()
    };
    let mut link = Link::new(settings, SEED)?;

    let mut now = Now { mono: Mono::default(), tai: TimestampIts(650_000_000_000).tai() };
    let (mut sent, mut received) = (0, 0);
    while now.mono < Mono(Duration::from_secs(SECONDS)) {
        sender.set_ego(now, ego(now));
        sender.send(now, &cam(now)?)?;
        // After each input, take every frame and every event before the next input.
        while let Some(frame) = sender.poll_transmit() {
            link.handle_packet(now.mono, Bytes::from(frame));
            sent += 1;
        }
        // Move the time to the next arrival, not by a fixed step: nothing happens in between.
        let next_cam = now.plus(CAM_INTERVAL);
        while let Some(arrival) = link.poll_timeout().filter(|arrival| *arrival < next_cam.mono) {
            now = now.plus(arrival.since(now.mono));
            while let Some(frame) = link.poll_deliver(now.mono) {
                receiver.handle_frame(now, &frame);
            }
            while let Some(event) = receiver.poll_event() {
                if let Event::Received(message) = event {
                    received += u64::from(message.kind == MessageKind::Cam);
                }
            }
        }
        now = next_cam;
    }
    println!("{sent} CAMs sent, {received} received, {} lost on the link", sent - received);
    Ok(())
}
