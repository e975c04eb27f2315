//! Entry points for the fuzz targets: JSON inputs of applications, applied to services without a node.

use viaduct_its::facilities::Facilities;
use viaduct_messages::viaduct::its::EventRequest;
use viaduct_messages::viaduct::perception::PerceivedObjects;
use viaduct_messages::viaduct::vehicle::VehicleState;
use viaduct_units::Now;
use viaduct_v2x_json::protobuf::Reader;

use super::events::NamedEvents;
use super::inputs::{self, Clock};
use crate::mqtt::typed::InboundType;

/// The readers that an inbound route uses for the JSON inputs of a station's services.
pub struct JsonInputs {
    states: Reader<VehicleState>,
    objects: Reader<PerceivedObjects>,
    events: Reader<EventRequest>,
}

/// Services with the names of their events, as in a station without a special vehicle role and without a position.
#[derive(Debug)]
pub struct FuzzedServices {
    /// The services.
    pub layer: Facilities,
    events: NamedEvents,
}

impl FuzzedServices {
    /// Creates services without events.
    #[must_use]
    pub fn new(layer: Facilities) -> Self {
        Self { layer, events: NamedEvents::default() }
    }
}

impl JsonInputs {
    /// Creates the readers, or returns `None` if a type has no schema, which is a defect.
    #[must_use]
    pub fn new() -> Option<Self> {
        Some(Self { states: Reader::new()?, objects: Reader::new()?, events: Reader::new()? })
    }

    /// Applies a JSON text to the services. A text of another type is ignored.
    ///
    /// # Errors
    /// Returns the text of the answer that the application receives if the input is invalid.
    pub fn apply(
        &self,
        services: &mut FuzzedServices,
        kind: &InboundType,
        text: &[u8],
        now: Now,
    ) -> Result<(), String> {
        let FuzzedServices { layer, events } = services;
        let clock = Clock::new(now.tai, now.tai);
        let applied = match kind {
            InboundType::V2xMessage
            | InboundType::Protobuf(_)
            | InboundType::Ros1(_)
            | InboundType::Ros2(_)
            | InboundType::Opaque(_) => Ok(()),
            InboundType::VehicleState => {
                let state = self.states.read(text).map_err(|error| error.to_string())?;
                inputs::vehicle_state(&state, clock).map(|state| layer.set_vehicle(now, &state))
            }
            InboundType::PerceivedObjects => {
                let objects = self.objects.read(text).map_err(|error| error.to_string())?;
                inputs::objects(&objects, clock).map(|objects| layer.set_objects(objects))
            }
            InboundType::EventRequest => {
                let request = self.events.read(text).map_err(|error| error.to_string())?;
                events.take(layer, now, &request, None)
            }
        };
        applied.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use viaduct_its::facilities::den_service::DenSettings;
    use viaduct_its::facilities::{FacilitiesSettings, Message};
    use viaduct_units::{Mono, StationId, StationType, Tai};

    use super::*;

    fn sent(text: &str) -> Result<Option<Message>, String> {
        let den = DenSettings {
            station_id: StationId(7),
            station_type: StationType::ROADSIDE_UNIT,
            keep_alive_forwarding: false,
        };
        let layer = Facilities::new(FacilitiesSettings { den: Some(den), ..FacilitiesSettings::default() }, 1);
        let now = Now { mono: Mono::default(), tai: Tai::from_nanos(700_000_000_000_000_000) };
        let mut services = FuzzedServices::new(layer);
        JsonInputs::new().unwrap().apply(&mut services, &InboundType::EventRequest, text.as_bytes(), now)?;
        let request = services.layer.poll_transmit();
        Ok(request.map(|request| Message::decode(request.kind, &request.payload).unwrap()))
    }

    /// Road works have a separate container.
    #[test]
    fn a_container_of_an_event_is_in_its_denm() {
        let works = |speed| {
            format!(
                "{{\"name\":\"works\",\"report\":{{\"cause\":3,\"position\":{{\"latitude_deg\":45.5,\"longitude_deg\":7.2}},\
                 \"alacarte\":{{\"roadWorks\":{{\"speedLimit\":{speed},\"closedLanes\":{{\"innerhardShoulderStatus\":\"closed\"}}}}}}}}}}"
            )
        };
        let Some(Message::Denm(denm)) = sent(&works(60)).unwrap() else { panic!() };
        let works_sent = denm.denm.alacarte.unwrap().road_works.unwrap();
        assert_eq!(works_sent.speed_limit.as_ref().map(|limit| limit.0), Some(60));
        assert!(works_sent.closed_lanes.is_some());
        assert_eq!(
            sent(&works(0)).unwrap_err(),
            "report.alacarte.roadWorks.speedLimit: expected an integer from 1 to 255, got 0"
        );
    }
}
