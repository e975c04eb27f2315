//! A shared radio channel: an estimate of its busy ratio, and the DCC gate in front of it (TS 102 687 V1.2.1).
//!
//! The busy ratio is estimated from the air time of received and sent frames. A radio measures more: frames that it cannot
//! decode, and noise. The estimate is therefore too low, and a station that relies on it sends somewhat more than allowed.

use std::time::Duration;

use viaduct_its::access::{EthernetHeader, HEADER_OCTETS, MacAddress};
use viaduct_its::dcc::limeric::T_CBR;
use viaduct_its::dcc::{DccCounters, DccMode, DccProfile, DccSettings, GateKeeper, air_time};
use viaduct_its::geonet::{BasicHeader, BasicNextHeader, CommonHeader};
use viaduct_units::Mono;

use super::settings::{AdaptiveSettings, Dcc};

/// Symbols per millisecond; a symbol lasts 8 us.
const SYMBOLS_PER_MS: u32 = 125;

/// The radio channel as seen by one station.
pub(super) struct Channel {
    gate: GateKeeper,
    bits_per_symbol: u32,
    /// Address of the station. Received frames with this source are its own.
    own: MacAddress,
    /// Air time in the current period.
    busy: Duration,
    /// Start of the current period; a period lasts [`T_CBR`].
    since: Mono,
}

impl Channel {
    pub(super) fn new(dcc: Dcc, own: MacAddress, now: Mono) -> Self {
        let Dcc::Adaptive(AdaptiveSettings { data_rate_kbps }) = dcc;
        let bits_per_symbol = data_rate_kbps / SYMBOLS_PER_MS;
        let gate = GateKeeper::new(DccSettings { mode: DccMode::Adaptive, bits_per_symbol });
        Self { gate, bits_per_symbol, own, busy: Duration::ZERO, since: now }
    }

    /// Adds a received frame to the estimate, unless it is an own one.
    pub(super) fn observe(&mut self, frame: &[u8]) {
        if EthernetHeader::parse(frame).is_some_and(|(header, _)| header.source != self.own) {
            self.occupy(frame);
        }
    }

    /// Queues an own frame at the gate.
    pub(super) fn push(&mut self, now: Mono, frame: Vec<u8>) {
        if let Some((header, _)) = EthernetHeader::parse(&frame) {
            // The station may have changed its address.
            self.own = header.source;
        }
        let (profile, lifetime) = profile_and_lifetime(&frame);
        self.gate.push(now, frame, profile, lifetime);
    }

    /// Returns the frame to send now, or `None` if the gate is closed or no frame waits.
    pub(super) fn poll_transmit(&mut self, now: Mono) -> Option<Vec<u8>> {
        let frame = self.gate.poll_transmit(now)?;
        self.occupy(&frame);
        Some(frame)
    }

    /// Handles a timeout. At the end of a period, returns the minimum interval between CAMs (`T_GenCam_DCC`).
    pub(super) fn handle_timeout(&mut self, now: Mono) -> Option<Duration> {
        let measured = self.measure(now);
        self.gate.handle_timeout(now);
        measured.then(|| self.gate.t_gen_cam_dcc())
    }

    pub(super) fn poll_timeout(&self) -> Mono {
        self.gate.poll_timeout().into_iter().fold(self.since.plus(T_CBR), Mono::min)
    }

    /// Returns the time at which the gate opens for a waiting frame, or `None` if no frame waits.
    pub(super) fn gate_opens_at(&self) -> Option<Mono> {
        self.gate.gate_opens_at()
    }

    pub(super) const fn counters(&self) -> DccCounters {
        self.gate.counters()
    }

    /// Updates the busy ratio if the period has ended. Returns `true` if it has.
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

/// Returns the DCC profile of a frame and its lifetime. A frame whose headers cannot be read has the lowest priority and a
/// lifetime of one period.
fn profile_and_lifetime(frame: &[u8]) -> (DccProfile, Duration) {
    read_headers(frame).map_or((DccProfile::Dp3, T_CBR), |(basic, common)| {
        (DccProfile::of_packet(&basic, &common), basic.lifetime.duration())
    })
}

fn read_headers(frame: &[u8]) -> Option<(BasicHeader, CommonHeader)> {
    let (_, packet) = EthernetHeader::parse(frame)?;
    let (basic, rest) = BasicHeader::parse(packet)?;
    // The common header of a secured packet is inside its envelope.
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
    use viaduct_units::{MetresPerSecond, Now, Position, StationId, StationType, Tai};

    use super::*;

    const OWN: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const OTHER: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

    fn at(millis: u64) -> Mono {
        Mono(Duration::from_millis(millis))
    }

    fn channel() -> Channel {
        Channel::new(Dcc::Adaptive(AdaptiveSettings::default()), OWN, at(0))
    }

    /// Returns a frame with a CAM of a station, in a traffic class.
    fn frame(link_address: MacAddress, class: TrafficClass) -> Vec<u8> {
        let settings =
            StationSettings { link_address, station_type: StationType::PASSENGER_CAR, mobile: true, beacons: false };
        let mut station = Station::new(settings, 1);
        let (tai, position) = (Tai::from_nanos(1_800_000_000_000_000_000), Position::new(45.5, 7.25));
        let now = Now { mono: at(0), tai };
        station.set_ego(
            now,
            Ego { time: tai, position, position_accurate: true, speed: MetresPerSecond(0.0), heading: None },
        );
        let cam = build(&CamInput { position: Some(position), ..CamInput::new(StationId(1), tai) });
        let payload = Bytes::from(Message::Cam(Box::new(cam)).encode().unwrap());
        let request = SendRequest { traffic_class: class, ..SendRequest::single_hop(MessageKind::Cam, payload) };
        station.send(now, &request).unwrap();
        station.poll_transmit().unwrap()
    }

    /// Adds `frames_per_period` frames of another station in each of `periods` periods. Returns the resulting CAM
    /// interval.
    fn load_channel(channel: &mut Channel, frames_per_period: usize, periods: u64) -> Duration {
        let (own, other) = (frame(OWN, TrafficClass::DP2), frame(OTHER, TrafficClass::DP2));
        let mut t_gen = Duration::ZERO;
        for period in 1..=periods {
            for _ in 0..frames_per_period {
                channel.observe(&other);
            }
            let now = at(100 * period);
            t_gen = channel.handle_timeout(now).unwrap();
            channel.push(now, own.clone());
            while channel.poll_transmit(now).is_some() {}
        }
        t_gen
    }

    #[test]
    fn the_traffic_class_decides_the_profile() {
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
    fn the_gate_spaces_frames_and_passes_the_urgent_one_first() {
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

    /// TS 102 687, 5.4: the CAM interval grows with the busy ratio.
    #[test]
    fn a_busy_channel_slows_the_services() {
        let free = load_channel(&mut channel(), 0, 100);
        assert_eq!(free, Duration::from_millis(25));
        let busy = load_channel(&mut channel(), 500, 600);
        assert!(busy > 4 * free && busy <= Duration::from_secs(1), "{busy:?}");
    }

    /// A frame of this station that the link returns counts once, even if the station changed its address after its
    /// start.
    #[test]
    fn an_own_frame_that_comes_back_does_not_count_twice() {
        for (own, other) in [(OWN, OTHER), (OTHER, OWN)] {
            let (mut channel, own) = (channel(), frame(own, TrafficClass::DP2));
            channel.push(at(0), own.clone());
            channel.poll_transmit(at(0)).unwrap();
            let once = channel.busy;
            channel.observe(&own);
            assert_eq!(channel.busy, once);
            channel.observe(&frame(other, TrafficClass::DP2));
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
