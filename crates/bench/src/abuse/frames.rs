//! Time of a frame at a station, from known stations and from new addresses.

use bytes::{Bytes, BytesMut};
use serde_json::json;
use viaduct_bus::clock;
use viaduct_its::access::MacAddress;
use viaduct_its::{Station, StationSettings};
use viaduct_units::StationType;

use crate::error::BenchError;
use crate::floor::timed;
use crate::its::first_frame;
use crate::report::Row;

/// Returns the rows.
pub(super) fn rows(frames: usize) -> Result<Vec<Row>, BenchError> {
    let frame = first_frame()?;
    let row = |name: &str, distinct: usize| {
        let mut station = station();
        let samples = (0..frames).map(|number| {
            let frame = with_address(&frame, number % distinct);
            timed(|| {
                station.handle_frame(clock::now(), &frame);
                while station.poll_event().is_some() {}
            })
        });
        Row::latencies("viaduct.its", &json!({ "addresses": name }), samples.collect(), 0)
    };
    Ok(vec![row("100", 100), row("new", frames)])
}

fn station() -> Station {
    let settings = StationSettings {
        link_address: MacAddress([2, 0, 0, 0, 0, 1]),
        station_type: StationType::ROADSIDE_UNIT,
        mobile: false,
        beacons: false,
    };
    Station::new(settings, 1)
}

/// Returns the frame of another station: with another link address wherever that of its sender occurs.
fn with_address(frame: &[u8], number: usize) -> Bytes {
    let mut changed = BytesMut::from(frame);
    let Some(sender) = frame.get(6..12).map(<[u8]>::to_vec) else { return changed.freeze() };
    let [.., a, b, c, d] = number.to_be_bytes();
    for at in 0..frame.len().saturating_sub(5) {
        if frame.get(at..at + 6) == Some(&sender)
            && let Some(place) = changed.get_mut(at..at + 6)
        {
            place.copy_from_slice(&[2, 1, a, b, c, d]);
        }
    }
    changed.freeze()
}
