//! Sets the generation time of a decoded message.

use viaduct_units::Tai;

use crate::facilities::Message;

impl Message {
    /// Sets the generation time of a CAM, VAM, CPM or DENM. The detection time of a DENM moves by the same interval. Returns
    /// `false` if the message is of another kind; it is not changed then.
    pub fn set_generation(&mut self, time: Tai) -> bool {
        let timestamp = time.timestamp_its();
        match self {
            Self::Cam(message) => message.cam.generation_delta_time.0 = timestamp.generation_delta_time(),
            Self::Vam(message) => message.vam.generation_delta_time.0 = timestamp.generation_delta_time(),
            Self::Cpm(message) => message.management_container.reference_time.0 = timestamp.0,
            Self::Denm(message) => {
                let management = &mut message.denm.management;
                let age = management.reference_time.0.saturating_sub(management.detection_time.0);
                management.reference_time.0 = timestamp.0;
                management.detection_time.0 = timestamp.0.saturating_sub(age);
            }
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use viaduct_units::{Position, StationId, StationType, TimestampIts};

    use super::*;
    use crate::facilities::{MessageKind, cam};

    #[test]
    fn the_generation_time_is_set() {
        let then = TimestampIts(700_000_000_000).tai();
        let now = TimestampIts(710_000_054_321).tai();
        let mut input = cam::CamInput::new(StationId(7), then);
        input.station_type = StationType::PASSENGER_CAR;
        input.position = Some(Position::new(45.0, 7.5));
        let mut message = Message::Cam(Box::new(cam::build(&input)));
        assert!(message.set_generation(now));
        assert_eq!(message.summary(now).generation, Some(now));
        assert_eq!(message.kind(), MessageKind::Cam);
    }

    #[test]
    fn the_age_of_an_event_is_kept() {
        let text = r#"{"header":{"protocolVersion":2,"messageId":1,"stationId":7},"denm":{"management":{
            "actionId":{"originatingStationId":7,"sequenceNumber":1},"detectionTime":1000,"referenceTime":4000,
            "eventPosition":{"latitude":450000000,"longitude":75000000,
              "positionConfidenceEllipse":{"semiMajorConfidence":4095,"semiMinorConfidence":4095,
                "semiMajorOrientation":3601},
              "altitude":{"altitudeValue":800001,"altitudeConfidence":"unavailable"}},"stationType":5}}}"#;
        let mut message = Message::from_json(MessageKind::Denm, text.as_bytes()).unwrap();
        assert!(message.set_generation(TimestampIts(710_000_000_000).tai()));
        let Message::Denm(denm) = message else { panic!("not a DENM") };
        let management = &denm.denm.management;
        assert_eq!((management.detection_time.0, management.reference_time.0), (709_999_997_000, 710_000_000_000));
    }
}
