//! Frames of a station onto a network, until its message has gone out.

use std::time::Duration;

use anyhow::{Context as _, bail};
use viaduct_bus::clock;
use viaduct_components::net::{
    EthernetSettings, FrameSocket, SocketFrame, UdpMulticastSettings, open_ethernet, open_udp_multicast,
};
use viaduct_its::access::MacAddress;
use viaduct_its::{Destination, Repetition, SendRequest, Station};
use viaduct_units::{Mono, Now};

/// A socket, and how a person is told about it.
pub(super) struct Network {
    socket: FrameSocket,
    name: String,
}

impl Network {
    pub(super) fn ethernet(settings: &EthernetSettings) -> anyhow::Result<Self> {
        Ok(Self { socket: open_ethernet(settings)?, name: format!("Ethernet {}", settings.interface) })
    }

    pub(super) fn udp(settings: &UdpMulticastSettings) -> anyhow::Result<Self> {
        let name = format!("UDP {} by {}", settings.group, settings.interface);
        Ok(Self { socket: open_udp_multicast(settings)?, name })
    }

    pub(super) fn hardware_address(&self) -> Option<MacAddress> {
        self.socket.hardware_address()
    }
}

/// How often a message is sent.
#[derive(Clone, Copy)]
pub(super) struct Repeat {
    /// Time from one to the next; absent: once.
    pub(super) period: Option<Duration>,
    /// How many; absent: without end.
    pub(super) count: Option<u64>,
}

impl Repeat {
    /// At once, and after each interval that begins and ends within the duration.
    pub(super) fn within(repetition: Repetition) -> Self {
        let intervals = repetition.duration.as_millis().checked_div(repetition.interval.as_millis()).unwrap_or(0);
        let count = u64::try_from(intervals).unwrap_or(u64::MAX).saturating_add(1);
        Self { period: Some(repetition.interval), count: Some(count) }
    }
}

/// Sends a message as often as it is asked for. `wait` is how long one may stay in the station.
pub(super) async fn run(
    station: &mut Station,
    network: &mut Network,
    request: &SendRequest,
    repeat: Repeat,
    wait: Duration,
) -> anyhow::Result<()> {
    let count = repeat.period.map_or(Some(1), |_| repeat.count);
    let (mut number, mut due) = (0, tokio::time::Instant::now());
    while count.is_none_or(|count| number < count) {
        tokio::time::sleep_until(due).await;
        due += repeat.period.unwrap_or_default();
        number += 1;
        send_one(station, network, request, wait).await?;
    }
    Ok(())
}

/// Hands the message to the station and carries its frames, until the one with the message has gone out.
async fn send_one(
    station: &mut Station,
    network: &mut Network,
    request: &SendRequest,
    wait: Duration,
) -> anyhow::Result<()> {
    let start = clock::now();
    station.send(start, request).context("cannot send the message")?;
    let deadline = start.mono.plus(wait);
    while !transmit(station, network, request).await? {
        if clock::mono() >= deadline {
            bail!("the station keeps the message after {} s: {}", wait.as_secs_f64(), why_kept(request));
        }
        take_turn(station, network, deadline).await?;
    }
    Ok(())
}

/// Sends what the station has ready; whether the message was among it.
async fn transmit(station: &mut Station, network: &Network, request: &SendRequest) -> anyhow::Result<bool> {
    let mut gone = false;
    while let Some(frame) = station.poll_transmit() {
        network.socket.send(&frame).await.with_context(|| format!("cannot send by {}", network.name))?;
        let carries_it = carries(&frame, request);
        tell(&frame, carries_it, request, &network.name)?;
        gone |= carries_it;
    }
    Ok(gone)
}

/// Waits for the station's own deadline or for a frame of another station, whichever is first.
async fn take_turn(station: &mut Station, network: &mut Network, deadline: Mono) -> anyhow::Result<()> {
    let wake = station.poll_timeout().map_or(deadline, |timeout| timeout.min(deadline));
    tokio::select! {
        frame = network.socket.receive() => hear(station, &frame?),
        () = tokio::time::sleep(wake.since(clock::mono())) => station.handle_timeout(clock::now()),
    }
    // What others send is of no interest here but to the station itself.
    while station.poll_event().is_some() {}
    Ok(())
}

fn hear(station: &mut Station, frame: &SocketFrame) {
    let now = clock::now();
    station.handle_frame(Now { tai: frame.received.unwrap_or(now.tai), ..now }, &frame.octets);
}

fn tell(frame: &[u8], carries_it: bool, request: &SendRequest, network: &str) -> anyhow::Result<()> {
    let what = if carries_it { request.kind.label() } else { "packet of the station itself" };
    let whom = if carries_it { request.destination.to_string() } else { "its neighbours".to_owned() };
    crate::output::print_line(format_args!("sent {what} to {whom}: {} octets, {network}", frame.len()))
}

/// Whether a frame is the message itself, and not one of the station's own.
pub(super) fn carries(frame: &[u8], request: &SendRequest) -> bool {
    frame.ends_with(&request.payload)
}

/// Why a station that has just begun, and so knows no other, keeps a message (EN 302 636-4-1, 10.3.7 to 10.3.10). Without
/// the bit of the traffic class for it (store-carry-forward) only one for a single station is kept.
pub(super) const fn why_kept(request: &SendRequest) -> &'static str {
    match request.destination {
        Destination::Station(_) => "nobody has said where its destination is",
        Destination::SingleHop | Destination::Hops(_) => {
            "its traffic class has it wait for a neighbour, and none is known"
        }
        Destination::Area(_) | Destination::AnyIn(_) => {
            "its traffic class has it wait for a neighbour that is nearer to the destination, and none is known"
        }
    }
}

/// `10hz`: the time from one to the next.
pub(super) fn parse_rate(text: &str) -> Result<Duration, String> {
    let number = text.to_ascii_lowercase();
    let rate: Option<f64> = number.strip_suffix("hz").unwrap_or(&number).trim().parse().ok();
    let rate = rate.filter(|rate| (0.001..=10_000.0).contains(rate));
    rate.map(|rate| Duration::from_secs_f64(1.0 / rate))
        .ok_or_else(|| "it is a rate from 0.001hz to 10000hz".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repetition_has_a_number() {
        let of = |interval, duration| {
            let [interval, duration] = [interval, duration].map(Duration::from_millis);
            let repeat = Repeat::within(Repetition { interval, duration });
            (repeat.period, repeat.count)
        };
        assert_eq!(of(500, 2000), (Some(Duration::from_millis(500)), Some(5)));
        assert_eq!(of(300, 1000), (Some(Duration::from_millis(300)), Some(4)));
        assert_eq!(of(300, 100), (Some(Duration::from_millis(300)), Some(1)));
    }

    #[test]
    fn a_rate_is_a_number_a_second() {
        assert_eq!(parse_rate("10hz"), Ok(Duration::from_millis(100)));
        assert_eq!(parse_rate("0.5 Hz"), Ok(Duration::from_secs(2)));
        assert_eq!(parse_rate("4"), Ok(Duration::from_millis(250)));
        for bad in ["", "hz", "0", "-1hz", "nan", "1e9hz"] {
            assert!(parse_rate(bad).is_err(), "{bad}");
        }
    }
}
