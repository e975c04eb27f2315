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
