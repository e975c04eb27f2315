//! What applications tell services, without a node.

use viaduct_its::facilities::Facilities;
use viaduct_messages::viaduct::its::EventRequest;
use viaduct_messages::viaduct::perception::PerceivedObjects;
use viaduct_messages::viaduct::vehicle::VehicleState;
use viaduct_units::Now;

use super::events::NamedEvents;
use super::inputs::{self, Clock};
use crate::mqtt::typed::{InboundType, Reader};

/// Reads texts of applications for the services of a station as an inbound route does.
pub struct ServiceTexts {
    states: Reader<VehicleState>,
    objects: Reader<PerceivedObjects>,
    events: Reader<EventRequest>,
}

/// Services and the names of events that they were told. They take what they are told as a station does that has no special role
/// and does not know where it is.
#[derive(Debug)]
pub struct ToldServices {
    /// The services.
    pub layer: Facilities,
    events: NamedEvents,
}

impl ToldServices {
    /// Services that were told of no event.
    #[must_use]
    pub fn new(layer: Facilities) -> Self {
        Self { layer, events: NamedEvents::default() }
    }
}

impl ServiceTexts {
    /// `None` where a type has no schema: a defect.
    #[must_use]
    pub fn new() -> Option<Self> {
        Some(Self { states: Reader::new()?, objects: Reader::new()?, events: Reader::new()? })
    }

    /// Tells the services what the text says. A V2X message is none of these texts, and nothing happens.
    ///
    /// # Errors
    /// What is wrong with it, as its application is answered.
    pub fn tell(&self, told: &mut ToldServices, kind: InboundType, text: &[u8], now: Now) -> Result<(), String> {
        let ToldServices { layer, events } = told;
        let clock = Clock::new(now.tai, now.tai);
        let taken = match kind {
            InboundType::V2xMessage => Ok(()),
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
        taken.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use viaduct_its::facilities::den_service::DenSettings;
    use viaduct_its::facilities::{FacilitiesSettings, Message};
    use viaduct_units::{Mono, Tai};

    use super::*;

    fn told(text: &str) -> Result<Option<Message>, String> {
        let den = DenSettings { station_id: 7, station_type: 15, keep_alive_forwarding: false };
        let layer = Facilities::new(FacilitiesSettings { den: Some(den), ..FacilitiesSettings::default() }, 1);
        let now = Now { mono: Mono::default(), tai: Tai::from_nanos(700_000_000_000_000_000) };
        let mut services = ToldServices::new(layer);
        ServiceTexts::new().unwrap().tell(&mut services, InboundType::EventRequest, text.as_bytes(), now)?;
        let sent = services.layer.poll_transmit();
        Ok(sent.map(|request| Message::decode(request.kind, &request.payload).unwrap()))
    }

    /// Road works, with what only they have.
    #[test]
    fn a_container_of_an_event_is_in_its_denm() {
        let works = |speed| {
            format!(
                "{{\"name\":\"works\",\"report\":{{\"cause\":3,\"position\":{{\"latitude_deg\":45.5,\"longitude_deg\":7.2}},\
                 \"alacarte\":{{\"roadWorks\":{{\"speedLimit\":{speed},\"closedLanes\":{{\"innerhardShoulderStatus\":\"closed\"}}}}}}}}}}"
            )
        };
        let Some(Message::Denm(denm)) = told(&works(60)).unwrap() else { panic!() };
        let works_said = denm.denm.alacarte.unwrap().road_works.unwrap();
        assert_eq!(works_said.speed_limit.as_ref().map(|limit| limit.0), Some(60));
        assert!(works_said.closed_lanes.is_some());
        assert_eq!(
            told(&works(0)).unwrap_err(),
            "report.alacarte.roadWorks.speedLimit: expected an integer from 1 to 255, got 0"
        );
    }
}
