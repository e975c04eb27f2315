//! JSON inputs of applications for the services of a station.

use std::{sync::LazyLock, time::Duration};

use viaduct_components::{
    kinds::its_station::fuzzing::{FuzzedServices, JsonInputs},
    mqtt::typed::InboundType,
};
use viaduct_its::facilities::{
    Facilities, FacilitiesSettings, Message, ca_service::CaSettings, cp_service::CpSettings, den_service::DenSettings,
};
use viaduct_units::{StationId, StationType};

use crate::station::start;

/// Station ID of the station under test.
const STATION_ID: StationId = StationId(7);
/// Longest answer, in octets. Answers contain names of members of the input.
const ANSWER_OCTETS_MAX: usize = 2048;

static INPUTS: LazyLock<JsonInputs> = LazyLock::new(|| JsonInputs::new().expect("the types have schemas"));

/// Checks a message with the movement of the station; see [`event_request`].
pub fn vehicle_state(octets: &[u8]) {
    apply(&InboundType::VehicleState, octets);
}

/// Checks a list of the objects that the station perceives; see [`event_request`].
pub fn perceived_objects(octets: &[u8]) {
    apply(&InboundType::PerceivedObjects, octets);
}

/// Checks a request for a new, changed or terminated event. An accepted input results in messages that decode; an
/// invalid one is answered by a short text.
pub fn event_request(octets: &[u8]) {
    apply(&InboundType::EventRequest, octets);
}

fn apply(kind: &InboundType, text: &[u8]) {
    let (mut services, mut now) = (services(), start());
    match INPUTS.apply(&mut services, kind, text, now) {
        Ok(()) => {
            for _ in 0..2 {
                services.layer.handle_timeout(now);
                take_messages(&mut services.layer);
                now = now.plus(Duration::from_millis(100));
            }
            assert_eq!(services.layer.counters().unencodable, 0);
        }
        Err(answer) => assert!(!answer.is_empty() && answer.len() < ANSWER_OCTETS_MAX, "{answer}"),
    }
}

/// Creates services that have the station's movement and one active event.
fn services() -> FuzzedServices {
    let settings = FacilitiesSettings {
        ca: Some(CaSettings::new(STATION_ID)),
        cp: Some(CpSettings::new(STATION_ID)),
        den: Some(DenSettings {
            station_id: STATION_ID,
            station_type: StationType::PASSENGER_CAR,
            keep_alive_forwarding: false,
        }),
        ..FacilitiesSettings::default()
    };
    let mut services = FuzzedServices::new(Facilities::new(settings, 1));
    for (kind, text) in [(InboundType::VehicleState, STATE), (InboundType::EventRequest, JAM)] {
        INPUTS.apply(&mut services, &kind, text.as_bytes(), start()).expect("the input is valid");
    }
    take_messages(&mut services.layer);
    services
}

fn take_messages(layer: &mut Facilities) {
    while let Some(request) = layer.poll_transmit() {
        let message = Message::decode(request.kind, &request.payload).expect("a generated message decodes");
        assert_eq!(message.kind(), request.kind);
    }
}

const STATE: &str = r#"{"position":{"latitude_deg":45.5,"longitude_deg":7.25,"altitude_m":300},"position_confidence_m":1.5,
"speed_mps":13.9,"heading_deg":90,"longitudinal_acceleration_mps2":-1,"lateral_acceleration_mps2":0.2,"yaw_rate_dps":3,
"lights":{"lowBeam":true,"left_turn_signal":true},"light_bar":true,"siren":false}"#;

const JAM: &str = r#"{"name":"jam","report":{"cause":1,"sub_cause":2,"position":{"latitude_deg":45.5,"longitude_deg":7.25},
"validity_s":60,"information_quality":3,"speed_mps":2,"heading_deg":80,"relevance_distance_m":500,
"repetition_interval_ms":500,"repetition_duration_ms":10000}}"#;

pub(crate) fn vehicle_states() -> Vec<Vec<u8>> {
    vec![STATE.into()]
}

pub(crate) fn lists_of_objects() -> Vec<Vec<u8>> {
    let objects = r#"{"objects":[{"id":7,"class":"PEDESTRIAN","position":{"latitude_deg":45.5001,"longitude_deg":7.25},
"position_confidence_m":0.5,"speed_mps":1.4,"heading_deg":270,"length_m":0.5,"width_m":0.6,"height_m":1.8,"age_s":2.5,
"existence_confidence":0.9,"class_confidence":0.8},{"id":8,"class":5,"position":{"latitudeDeg":45.5,"longitudeDeg":7.2501}}]}"#;
    vec![objects.into(), br#"{"objects":[]}"#.to_vec()]
}

const WORKS: &str = r#"{"name":"works","report":{"cause":3,"position":{"latitude_deg":45.5,"longitude_deg":7.25},"alacarte":{
"lanePosition":1,"externalTemperature":-7,"positioningSolution":"dGNSS","roadWorks":{"lightBarSirenInUse":"80","closedLanes":
{"innerhardShoulderStatus":"closed","drivingLaneStatus":{"value":"A0","length":3}},"speedLimit":60,"restriction":[5,7],
"incidentIndication":{"ccAndScc":{"roadworks3":4}}},"stationaryVehicle":{"stationarySince":"lessThan15Minutes","numberOfOccupants":2,
"carryingDangerousGoods":{"dangerousGoodsType":"explosives3","unNumber":3854,"elevatedTemperature":false,"tunnelsRestricted":true,
"limitedQuantity":false},"energyStorageType":"FE"}}}}"#;

/// Returns the seeds: an event, a second event, a termination, and an event with containers of its own.
pub(crate) fn event_requests() -> Vec<Vec<u8>> {
    vec![JAM.into(), JAM.replace("jam", "fog").into(), br#"{"name":"jam","end":{}}"#.to_vec(), WORKS.into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_every_seed() {
        for (kind, texts) in [
            (InboundType::VehicleState, vehicle_states()),
            (InboundType::PerceivedObjects, lists_of_objects()),
            (InboundType::EventRequest, event_requests()),
        ] {
            for text in texts {
                assert_eq!(INPUTS.apply(&mut services(), &kind, &text, start()), Ok(()));
            }
        }
    }
}
