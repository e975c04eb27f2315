//! What applications tell services, without a node.

use viaduct_its::facilities::Facilities;
use viaduct_messages::viaduct::its::EventRequest;
use viaduct_messages::viaduct::perception::PerceivedObjects;
use viaduct_messages::viaduct::vehicle::VehicleState;
use viaduct_units::Now;

use super::events::NamedEvents;
use super::inputs::{self, Clock};
use crate::mqtt::typed::{InboundType, Reader};

/// Texts of applications for the services of a station: read as an inbound route reads them, and taken nearly as a station
/// takes what comes from the bus: special roles, the place of an event that does not say its own, and names that events keep
/// are a node's.
pub struct ServiceTexts {
    states: Reader<VehicleState>,
    objects: Reader<PerceivedObjects>,
    events: Reader<EventRequest>,
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
    pub fn tell(&self, layer: &mut Facilities, kind: InboundType, text: &[u8], now: Now) -> Result<(), String> {
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
                NamedEvents::default().take(layer, now, &request, None)
            }
        };
        taken.map_err(|error| error.to_string())
    }
}
