//! A radio channel that the station shares with others: how busy it is, and the gate before it (TS 102 687 V1.2.1).
//!
//! How busy it is, is estimated from the frames that were heard and sent and the time that each takes on air. A radio measures
//! more: frames that it could not decode, and noise. An estimate is below that, and a station that goes by it sends rather more.

use std::time::Duration;

use viaduct_its::access::{EthernetHeader, HEADER_OCTETS, MacAddress};
use viaduct_its::dcc::limeric::T_CBR;
use viaduct_its::dcc::{DccCounters, DccMode, DccProfile, DccSettings, GateKeeper, air_time};
use viaduct_its::geonet::{BasicHeader, BasicNextHeader, CommonHeader};
use viaduct_units::Mono;

use super::settings::{AdaptiveSettings, Dcc};

/// A symbol lasts 8 us: 125 of them are a millisecond.
const SYMBOLS_PER_MS: u32 = 125;

/// The channel of one station.
pub(super) struct Channel {
    gate: GateKeeper,
    bits_per_symbol: u32,
    /// Address of the station: what it hears from there is what it has sent.
    own: MacAddress,
    /// Time on air in the present period.
    busy: Duration,
    /// When the period began; each is [`T_CBR`] long.
    since: Mono,
}

impl Channel {
    pub(super) fn new(dcc: Dcc, own: MacAddress, now: Mono) -> Self {
        let Dcc::Adaptive(AdaptiveSettings { data_rate_kbps }) = dcc;
        let bits_per_symbol = data_rate_kbps / SYMBOLS_PER_MS;
        let gate = GateKeeper::new(DccSettings { mode: DccMode::Adaptive, bits_per_symbol });
        Self { gate, bits_per_symbol, own, busy: Duration::ZERO, since: now }
    }

    /// A frame was on the channel.
    pub(super) fn heard(&mut self, frame: &[u8]) {
        if EthernetHeader::parse(frame).is_some_and(|(header, _)| header.source != self.own) {
            self.occupy(frame);
        }
    }

    /// Puts a frame of the station before the gate.
    pub(super) fn push(&mut self, now: Mono, frame: Vec<u8>) {
        if let Some((header, _)) = EthernetHeader::parse(&frame) {
            // Another station may have had the address before.
            self.own = header.source;
        }
        let (profile, lifetime) = profile_and_lifetime(&frame);
        self.gate.push(now, frame, profile, lifetime);
    }

    /// The frame to send now.
    pub(super) fn poll_transmit(&mut self, now: Mono) -> Option<Vec<u8>> {
        let frame = self.gate.poll_transmit(now)?;
        self.occupy(&frame);
        Some(frame)
    }

    /// Does what is due. At the end of a period, how far apart messages of the services are to be.
    pub(super) fn handle_timeout(&mut self, now: Mono) -> Option<Duration> {
        let measured = self.measure(now);
        self.gate.handle_timeout(now);
        measured.then(|| self.gate.t_gen_cam_dcc())
    }

    pub(super) fn poll_timeout(&self) -> Mono {
        self.gate.poll_timeout().into_iter().fold(self.since.plus(T_CBR), Mono::min)
    }

    /// When the gate opens for a frame that waits, if one does.
    pub(super) fn opening(&self) -> Option<Mono> {
        self.gate.opening()
    }

    pub(super) const fn counters(&self) -> DccCounters {
        self.gate.counters()
    }

    fn measure(&mut self, now: Mono) -> bool {
        let period = now.since(self.since);
        let ended = period >= T_CBR;
        if ended {
            self.gate.set_channel_busy_ratio(now, self.busy.as_secs_f64() / period.as_secs_f64());
            (self.busy, self.since) = (Duration::ZERO, now);
        }
        ended
    }

    fn occupy(&mut self, frame: &[u8]) {
        self.busy += air_time(frame.len().saturating_sub(HEADER_OCTETS), self.bits_per_symbol);
    }
}

/// DCC profile of a frame, and how long it is worth sending. One that does not say is of the lowest priority, and worth no
/// waiting beyond a period.
fn profile_and_lifetime(frame: &[u8]) -> (DccProfile, Duration) {
    read_headers(frame).map_or((DccProfile::Dp3, T_CBR), |(basic, common)| {
        (DccProfile::of_packet(&basic, &common), basic.lifetime.duration())
    })
}

fn read_headers(frame: &[u8]) -> Option<(BasicHeader, CommonHeader)> {
    let (_, packet) = EthernetHeader::parse(frame)?;
    let (basic, rest) = BasicHeader::parse(packet)?;
    // The common header of a secured packet is within its envelope.
    let (common, _) = CommonHeader::parse(rest).filter(|_| basic.next_header == BasicNextHeader::CommonHeader)?;
    Some((basic, common))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use viaduct_its::facilities::cam::{CamInput, build};
    use viaduct_its::facilities::{Message, MessageKind};
    use viaduct_its::geonet::TrafficClass;
    use viaduct_its::{Ego, SendRequest, Station, StationSettings};
    use viaduct_units::{MetresPerSecond, Now, Position, Tai};

    use super::*;

    const OWN: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const OTHER: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

    fn at(millis: u64) -> Mono {
        Mono(Duration::from_millis(millis))
    }

    fn channel() -> Channel {
        Channel::new(Dcc::Adaptive(AdaptiveSettings::default()), OWN, at(0))
    }

    /// A frame with a CAM of a station, in a traffic class.
    fn frame(link_address: MacAddress, class: TrafficClass) -> Vec<u8> {
        let settings = StationSettings { link_address, station_type: 5, mobile: true, beacons: false };
        let mut station = Station::new(settings, 1);
        let (tai, position) = (Tai::from_nanos(1_800_000_000_000_000_000), Position::new(45.5, 7.25));
        let now = Now { mono: at(0), tai };
        station.set_ego(
            now,
            Ego { time: tai, position, position_accurate: true, speed: MetresPerSecond(0.0), heading: None },
        );
        let cam = build(&CamInput { position: Some(position), ..CamInput::new(1, tai) });
        let payload = Bytes::from(Message::Cam(Box::new(cam)).encode().unwrap());
        let request = SendRequest { traffic_class: class, ..SendRequest::single_hop(MessageKind::Cam, payload) };
        station.send(now, &request).unwrap();
        station.poll_transmit().unwrap()
    }

    /// Others send so much of the time, for so long; how far apart the own messages are then to be.
    fn others_send(channel: &mut Channel, frames_per_period: usize, periods: u64) -> Duration {
        let (own, other) = (frame(OWN, TrafficClass::DP2), frame(OTHER, TrafficClass::DP2));
        let mut apart = Duration::ZERO;
        for period in 1..=periods {
            (0..frames_per_period).for_each(|_| channel.heard(&other));
            let now = at(100 * period);
            apart = channel.handle_timeout(now).unwrap();
            channel.push(now, own.clone());
            while channel.poll_transmit(now).is_some() {}
        }
        apart
    }

    #[test]
    fn the_traffic_class_is_the_profile() {
        for (class, profile) in [
            (TrafficClass::DP0, DccProfile::Dp0),
            (TrafficClass::DP1, DccProfile::Dp1),
            (TrafficClass::DP2, DccProfile::Dp2),
            (TrafficClass::DP3, DccProfile::Dp3),
        ] {
            let (found, lifetime) = profile_and_lifetime(&frame(OWN, class));
            assert_eq!((found, lifetime), (profile, MessageKind::Cam.lifetime().duration()));
        }
        assert_eq!(profile_and_lifetime(&[0; 20]), (DccProfile::Dp3, T_CBR));
    }

    #[test]
    fn the_gate_keeps_frames_apart_and_lets_the_urgent_one_first() {
        let mut channel = channel();
        let (cam, warning) = (frame(OWN, TrafficClass::DP2), frame(OWN, TrafficClass::DP0));
        channel.push(at(0), cam.clone());
        assert_eq!(channel.poll_transmit(at(0)), Some(cam.clone()));
        channel.push(at(1), cam.clone());
        channel.push(at(2), warning.clone());
        assert_eq!(channel.poll_transmit(at(2)), None);
        let opens = channel.poll_timeout();
        assert!(opens >= at(25) && opens <= at(100), "{opens:?}");
        assert_eq!(channel.poll_transmit(opens), Some(warning));
        assert_eq!(channel.poll_transmit(opens), None);
    }

    /// TS 102 687, 5.4: the more of the channel others use, the farther apart are the own messages.
    #[test]
    fn a_busy_channel_slows_the_services() {
        let free = others_send(&mut channel(), 0, 100);
        assert_eq!(free, Duration::from_millis(25));
        let busy = others_send(&mut channel(), 500, 600);
        assert!(busy > 4 * free && busy <= Duration::from_secs(1), "{busy:?}");
    }

    /// Also where the station took another address after its start.
    #[test]
    fn an_own_frame_that_comes_back_does_not_count_twice() {
        for (own, other) in [(OWN, OTHER), (OTHER, OWN)] {
            let (mut channel, own) = (channel(), frame(own, TrafficClass::DP2));
            channel.push(at(0), own.clone());
            channel.poll_transmit(at(0)).unwrap();
            let once = channel.busy;
            channel.heard(&own);
            assert_eq!(channel.busy, once);
            channel.heard(&frame(other, TrafficClass::DP2));
            assert_eq!(channel.busy, once * 2);
        }
    }

    #[test]
    fn a_frame_that_waits_too_long_is_dropped_and_counted() {
        let (mut channel, cam) = (channel(), frame(OWN, TrafficClass::DP2));
        channel.push(at(0), cam.clone());
        channel.poll_transmit(at(0)).unwrap();
        channel.push(at(0), cam);
        channel.handle_timeout(at(60_000));
        assert_eq!((channel.poll_transmit(at(60_000)), channel.counters().expired), (None, 1));
    }

    /// EN 302 663: 48 bits per symbol at 6 Mbit/s.
    #[test]
    fn the_data_rate_decides_the_bits_per_symbol() {
        assert_eq!(channel().bits_per_symbol, 48);
    }
}
