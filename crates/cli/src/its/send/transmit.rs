//! Sends the frames of a station on a network until its message is sent.

use std::time::Duration;

use anyhow::{Context as _, bail};
use viaduct_bus::clock;
use viaduct_components::net::{
    EthernetSettings, FrameSocket, SocketFrame, UdpMulticastSettings, open_ethernet, open_udp_multicast,
};
use viaduct_its::access::MacAddress;
use viaduct_its::{Destination, Repetition, SendRequest, Station};
use viaduct_units::{Mono, Now};

use crate::output::print_line;

/// A socket with its description for output.
pub(super) struct Network {
    socket: FrameSocket,
    name: String,
}

impl Network {
    pub(super) fn ethernet(settings: &EthernetSettings) -> anyhow::Result<Self> {
        Ok(Self { socket: open_ethernet(settings)?, name: format!("Ethernet {}", settings.interface) })
    }

    pub(super) fn udp(settings: &UdpMulticastSettings) -> anyhow::Result<Self> {
        let name = format!("UDP {} on {}", settings.group, settings.interface);
        Ok(Self { socket: open_udp_multicast(settings)?, name })
    }

    pub(super) fn hardware_address(&self) -> Option<MacAddress> {
        self.socket.hardware_address()
    }
}

/// Repetition of a message.
#[derive(Clone, Copy)]
pub(super) struct Repeat {
    /// Interval between two messages, or `None` to send one message.
    pub(super) period: Option<Duration>,
    /// Number of messages, or `None` for no limit. Has no effect without a period.
    pub(super) count: Option<u64>,
}

impl Repeat {
    /// Returns the equivalent of a repetition: one message immediately and one after each whole interval within the duration.
    pub(super) fn within(repetition: Repetition) -> Self {
        let intervals = repetition.duration.as_millis().checked_div(repetition.interval.as_millis()).unwrap_or(0);
        let count = u64::try_from(intervals).unwrap_or(u64::MAX).saturating_add(1);
        Self { period: Some(repetition.interval), count: Some(count) }
    }
}

/// Sends a message, repeatedly if `repeat` has a period. `next` returns the request for each packet. `wait` is the longest time that a message may wait in the station.
pub(super) async fn run(
    station: &mut Station,
    network: &mut Network,
    next: impl Fn() -> anyhow::Result<SendRequest>,
    repeat: Repeat,
    wait: Duration,
) -> anyhow::Result<()> {
    let count = repeat.period.map_or(Some(1), |_| repeat.count);
    let mut number = 0;
    let mut due = tokio::time::Instant::now();
    while count.is_none_or(|count| number < count) {
        tokio::time::sleep_until(due).await;
        due += repeat.period.unwrap_or_default();
        number += 1;
        send_one(station, network, &next()?, wait).await?;
    }
    Ok(())
}

/// Passes the message to the station and sends the station's frames until one of them contains the message.
///
/// # Errors
/// The station rejects the message, the socket fails, or the message still waits in the station after `wait`.
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
            bail!("the station has not sent the message within {} s: {}", wait.as_secs_f64(), wait_reason(request));
        }
        handle_next(station, network, deadline).await?;
    }
    Ok(())
}

/// Sends the frames that are ready. Returns `true` if one of them contains the message.
async fn transmit(station: &mut Station, network: &Network, request: &SendRequest) -> anyhow::Result<bool> {
    let mut is_sent = false;
    while let Some(frame) = station.poll_transmit() {
        network.socket.send(&frame).await.with_context(|| format!("cannot send on {}", network.name))?;
        is_sent |= contains_message(&frame, request);
        print_sent(&frame, request, &network.name)?;
    }
    Ok(is_sent)
}

/// Waits for a received frame, the station's next timer or the deadline. Passes the frame or the time to the station.
async fn handle_next(station: &mut Station, network: &mut Network, deadline: Mono) -> anyhow::Result<()> {
    let wake = station.poll_timeout().map_or(deadline, |timeout| timeout.min(deadline));
    tokio::select! {
        frame = network.socket.receive() => handle_frame(station, &frame?),
        () = tokio::time::sleep(wake.since(clock::mono())) => station.handle_timeout(clock::now()),
    }
    // Received frames matter only for the state of the station, such as its location table.
    while station.poll_event().is_some() {}
    Ok(())
}

fn handle_frame(station: &mut Station, frame: &SocketFrame) {
    let now = clock::now();
    station.handle_frame(Now { tai: frame.received.unwrap_or(now.tai), ..now }, &frame.octets);
}

/// Prints a line for a sent frame.
fn print_sent(frame: &[u8], request: &SendRequest, network: &str) -> anyhow::Result<()> {
    let octets = frame.len();
    if contains_message(frame, request) {
        let kind = request.kind.label();
        print_line(format_args!("sent {kind} to {}: {octets} octets, {network}", request.destination))
    } else {
        print_line(format_args!("sent another packet (location service or forwarding): {octets} octets, {network}"))
    }
}

/// Returns `true` if a frame contains the message. The station also sends packets of the location service and forwards
/// packets of other stations.
pub(super) fn contains_message(frame: &[u8], request: &SendRequest) -> bool {
    frame.ends_with(&request.payload)
}

/// Returns the reason for which a station with an empty location table stores a message instead of sending it
/// (EN 302 636-4-1, 10.3.7 to 10.3.10). Unless the traffic class requests store-carry-forward, only a message for a single
/// station is stored.
pub(super) const fn wait_reason(request: &SendRequest) -> &'static str {
    match request.destination {
        Destination::Station(_) => "the position of the destination is unknown",
        Destination::SingleHop | Destination::Hops(_) => {
            "its traffic class requests store-carry-forward, and no neighbour is known"
        }
        Destination::Area(_) | Destination::AnyIn(_) => {
            "its traffic class requests store-carry-forward, and no neighbour nearer to the destination is known"
        }
    }
}

/// Parses a rate (`10hz`) and returns its period.
pub(super) fn parse_rate(text: &str) -> Result<Duration, String> {
    let number = text.to_ascii_lowercase();
    let rate: Option<f64> = number.strip_suffix("hz").unwrap_or(&number).trim().parse().ok();
    let rate = rate.filter(|rate| (0.001..=10_000.0).contains(rate));
    rate.map(|rate| Duration::from_secs_f64(1.0 / rate))
        .ok_or_else(|| "expected a rate from 0.001hz to 10000hz".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repetition_has_a_count() {
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
    fn a_rate_is_parsed_as_its_period() {
        assert_eq!(parse_rate("10hz"), Ok(Duration::from_millis(100)));
        assert_eq!(parse_rate("0.5 Hz"), Ok(Duration::from_secs(2)));
        assert_eq!(parse_rate("4"), Ok(Duration::from_millis(250)));
        for bad in ["", "hz", "0", "-1hz", "nan", "1e9hz"] {
            assert!(parse_rate(bad).is_err(), "{bad}");
        }
    }
}
