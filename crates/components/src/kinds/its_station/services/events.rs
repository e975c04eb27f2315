//! Events that applications of this station have reported, by their names.

use std::collections::BTreeMap;

use viaduct_its::facilities::den_service::{DenError, EventReport};
use viaduct_its::facilities::denm::ActionId;
use viaduct_its::facilities::{EventError, Facilities};
use viaduct_its::limits::DEN_ORIGINATED_MAX;
use viaduct_messages::viaduct::its::{EventRequest, event_request::Action};
use viaduct_units::{Mono, Now, Position};

use super::inputs::{self, InputError};

/// Maximum length of a name, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// The active events, at most [`DEN_ORIGINATED_MAX`] as in the DEN service.
#[derive(Debug, Default)]
pub(super) struct NamedEvents(BTreeMap<String, NamedEvent>);

#[derive(Debug)]
struct NamedEvent {
    action_id: ActionId,
    /// The last report.
    report: EventReport,
}

impl NamedEvents {
    /// Handles the request of an application. `here` is the position of the station.
    pub(super) fn take(
        &mut self,
        layer: &mut Facilities,
        now: Now,
        request: &EventRequest,
        here: Option<Position>,
    ) -> Result<(), InputError> {
        match request.action.as_ref().ok_or(InputError::NoAction)? {
            Action::Report(event) => self.report(layer, now, &request.name, inputs::event(event, now.tai, here)?),
            Action::End(_) => self.end(layer, now, &request.name),
        }
    }

    /// Triggers a new event, or updates the active event of that name.
    fn report(&mut self, layer: &mut Facilities, now: Now, name: &str, report: EventReport) -> Result<(), InputError> {
        check(name)?;
        self.forget_ended(layer, now.mono);
        let action_id = match self.0.get(name) {
            Some(known) => {
                let updated = layer.update_event(now, known.action_id, report.clone());
                updated.map(|()| known.action_id)
            }
            None if self.0.len() >= DEN_ORIGINATED_MAX => return Err(full()),
            None => layer.trigger_event(now, report.clone()),
        };
        self.0.insert(name.to_owned(), NamedEvent { action_id: action_id?, report });
        Ok(())
    }

    /// Terminates the named event, with the destination area and repetition of its last report.
    fn end(&mut self, layer: &mut Facilities, now: Now, name: &str) -> Result<(), InputError> {
        check(name)?;
        self.forget_ended(layer, now.mono);
        let known = self.0.get(name).ok_or(InputError::UnknownEvent)?;
        let end = EventReport { detection: now.tai, ..known.report.clone() };
        layer.terminate_event(now, known.action_id, end)?;
        self.0.remove(name);
        Ok(())
    }

    /// Deletes the names of events that the service no longer sends, by the monotonic clock. A later report with such a
    /// name is a new event.
    fn forget_ended(&mut self, layer: &Facilities, now: Mono) {
        self.0.retain(|_, event| layer.den().is_some_and(|den| den.originates(now, event.action_id)));
    }
}

fn check(name: &str) -> Result<(), InputError> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX { Err(InputError::EventName) } else { Ok(()) }
}

const fn full() -> InputError {
    InputError::Refused(EventError::Den(DenError::TableFull))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use viaduct_its::facilities::den_service::DenSettings;
    use viaduct_its::facilities::denm::Cause;
    use viaduct_its::facilities::{FacilitiesSettings, Message};
    use viaduct_its::{Destination, SendRequest};
    use viaduct_units::{StationId, StationType, Tai};

    use super::*;

    fn layer() -> Facilities {
        let den = DenSettings {
            station_id: StationId(7),
            station_type: StationType::PASSENGER_CAR,
            keep_alive_forwarding: false,
        };
        Facilities::new(FacilitiesSettings { den: Some(den), ..FacilitiesSettings::default() }, 1)
    }

    fn at(seconds: u64) -> Now {
        let start = Tai::from_nanos(700_000_000_000_000_000);
        let passed = Duration::from_secs(seconds);
        Now { mono: Mono(Duration::from_secs(1)).plus(passed), tai: start.plus(passed) }
    }

    fn report(seconds: u64) -> EventReport {
        let cause = Cause { code: 94, sub_code: 0 };
        let report = EventReport::new(cause, at(seconds).tai, Position::new(45.5, 7.25));
        EventReport { validity: Duration::from_secs(60), ..report }
    }

    /// Returns sequence number, termination and destination of the next DENM.
    fn next(layer: &mut Facilities) -> (u16, bool, Destination) {
        let SendRequest { kind, payload, destination, .. } = layer.poll_transmit().unwrap();
        let Message::Denm(denm) = Message::decode(kind, &payload).unwrap() else { panic!("{kind:?}") };
        let management = &denm.denm.management;
        (management.action_id.sequence_number.0, management.termination.is_some(), destination)
    }

    #[test]
    fn a_name_identifies_one_event_until_it_ends() {
        let (mut layer, mut events) = (layer(), NamedEvents::default());
        events.report(&mut layer, at(0), "jam", report(0)).unwrap();
        let (number, ends, area) = next(&mut layer);
        assert!(!ends);
        events.report(&mut layer, at(5), "jam", report(5)).unwrap();
        assert_eq!(next(&mut layer), (number, false, area));
        events.end(&mut layer, at(9), "jam").unwrap();
        assert_eq!(next(&mut layer), (number, true, area));
        assert_eq!(events.end(&mut layer, at(9), "jam"), Err(InputError::UnknownEvent));
        events.report(&mut layer, at(10), "jam", report(10)).unwrap();
        assert_ne!(next(&mut layer).0, number);
    }

    #[test]
    fn an_event_without_termination_ends_with_its_validity() {
        let (mut layer, mut events) = (layer(), NamedEvents::default());
        events.report(&mut layer, at(0), "jam", report(0)).unwrap();
        let number = next(&mut layer).0;
        for number in 1..DEN_ORIGINATED_MAX {
            events.report(&mut layer, at(0), &number.to_string(), report(0)).unwrap();
            next(&mut layer);
        }
        assert_eq!(events.end(&mut layer, at(60), "jam"), Err(InputError::UnknownEvent));
        events.report(&mut layer, at(61), "jam", report(61)).unwrap();
        assert_ne!(next(&mut layer).0, number);
    }

    #[test]
    fn an_event_that_ended_in_the_service_is_deleted_even_if_the_clock_was_set_back() {
        let (mut layer, mut events) = (layer(), NamedEvents::default());
        for name in ["jam", "fog"] {
            events.report(&mut layer, at(0), name, report(0)).unwrap();
        }
        let number = next(&mut layer).0.max(next(&mut layer).0);
        let set_back = Now { tai: at(50).tai, ..at(60) };
        layer.handle_timeout(set_back);
        events.report(&mut layer, set_back, "jam", report(50)).unwrap();
        assert_eq!(next(&mut layer).0, number.wrapping_add(1));
        assert_eq!(events.end(&mut layer, set_back, "fog"), Err(InputError::UnknownEvent));
        for number in 1..DEN_ORIGINATED_MAX {
            events.report(&mut layer, set_back, &number.to_string(), report(50)).unwrap();
        }
    }

    /// The event is still being sent when the clock has been corrected.
    #[test]
    fn an_event_keeps_its_name_although_the_clock_was_ahead_for_a_while() {
        let (mut layer, mut events) = (layer(), NamedEvents::default());
        events.report(&mut layer, at(0), "jam", report(0)).unwrap();
        let (number, _, area) = next(&mut layer);
        let ahead = Now { tai: at(900).tai, ..at(10) };
        layer.handle_timeout(ahead);
        let expired = InputError::Refused(EventError::Den(DenError::Expired));
        assert_eq!(
            events.end(&mut layer, ahead, "jam"),
            Err(expired),
            "receivers ignore a termination after the validity"
        );
        events.end(&mut layer, at(20), "jam").unwrap();
        assert_eq!(next(&mut layer), (number, true, area));
    }

    #[test]
    fn the_number_of_names_is_limited_as_in_the_service() {
        let (mut layer, mut events) = (layer(), NamedEvents::default());
        for number in 0..DEN_ORIGINATED_MAX {
            events.report(&mut layer, at(0), &number.to_string(), report(0)).unwrap();
        }
        assert_eq!(events.report(&mut layer, at(0), "one more", report(0)), Err(full()));
        // The existing events keep their names.
        events.end(&mut layer, at(1), "0").unwrap();
        assert_eq!(events.report(&mut layer, at(0), "", report(0)), Err(InputError::EventName));
        assert_eq!(events.end(&mut layer, at(0), &"x".repeat(65)), Err(InputError::EventName));
    }
}
