//! The alacarte container of an event in an application's JSON: ASN.1 members by their names.

use prost_types::value::Kind;
use prost_types::{Struct, Value as ProtoValue};
use serde_json::{Map, Number, Value};
use viaduct_etsi::{JsonError, JsonProblem};
use viaduct_its::facilities::denm::{ActionId, AlacarteContainer, DenmInput, build};
use viaduct_its::facilities::{Message, MessageKind};
use viaduct_units::{StationId, Tai};

/// Upper bound of the integers that are exact in a double.
const INTEGER_MAX: f64 = 9_007_199_254_740_992.0;

/// Parses the container as part of an otherwise empty DENM.
pub(super) fn read(container: &Struct) -> Result<Box<AlacarteContainer>, JsonError> {
    let text = denm_with(object(container)).to_string();
    match Message::from_json(MessageKind::Denm, text.as_bytes()).map_err(|error| error.below("denm"))? {
        Message::Denm(denm) => denm.denm.alacarte.ok_or_else(missing),
        _ => Err(missing()),
    }
}

fn denm_with(alacarte: Value) -> Value {
    let empty = DenmInput::new(
        StationId(0),
        ActionId { originating_station: StationId(0), sequence_number: 0 },
        Tai::from_nanos(0),
    );
    let mut text = Vec::new();
    Message::Denm(Box::new(build(&empty))).write_json(&mut text);
    let mut denm: Value = serde_json::from_slice(&text).unwrap_or_default();
    if let Some(body) = denm.get_mut("denm").and_then(Value::as_object_mut) {
        body.insert("alacarte".to_owned(), alacarte);
    }
    denm
}

fn missing() -> JsonError {
    JsonError { path: "alacarte".to_owned(), problem: JsonProblem::Missing }
}

fn object(container: &Struct) -> Value {
    let member = |(name, value): (&String, &ProtoValue)| (name.clone(), json(value));
    Value::Object(container.fields.iter().map(member).collect::<Map<_, _>>())
}

fn json(value: &ProtoValue) -> Value {
    match &value.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(is)) => Value::Bool(*is),
        Some(Kind::NumberValue(number)) => json_number(*number),
        Some(Kind::StringValue(text)) => Value::String(text.clone()),
        Some(Kind::ListValue(list)) => Value::Array(list.values.iter().map(json).collect()),
        Some(Kind::StructValue(below)) => object(below),
    }
}

/// Converts a double back to an integer if it is a whole number.
#[expect(clippy::cast_possible_truncation, reason = "whole and exact in a double")]
fn json_number(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < INTEGER_MAX {
        return Value::Number((number as i64).into());
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn given(kind: Kind) -> ProtoValue {
        ProtoValue { kind: Some(kind) }
    }

    fn container(members: &[(&str, Kind)]) -> Struct {
        let fields = members.iter().map(|(name, kind)| ((*name).to_owned(), given(kind.clone())));
        Struct { fields: fields.collect::<BTreeMap<_, _>>() }
    }

    #[test]
    fn a_container_is_parsed_by_member_names() {
        let closed = container(&[(
            "drivingLaneStatus",
            Kind::StructValue(container(&[
                ("value", Kind::StringValue("A0".to_owned())),
                ("length", Kind::NumberValue(3.0)),
            ])),
        )]);
        let works = container(&[("speedLimit", Kind::NumberValue(60.0)), ("closedLanes", Kind::StructValue(closed))]);
        let given =
            container(&[("roadWorks", Kind::StructValue(works)), ("externalTemperature", Kind::NumberValue(-7.0))]);
        let read = read(&given).unwrap();
        let works = read.road_works.as_ref().unwrap();
        assert_eq!(works.speed_limit.as_ref().map(|limit| limit.0), Some(60));
        assert_eq!(works.closed_lanes.as_ref().unwrap().driving_lane_status.as_ref().unwrap().0.len(), 3);
        assert_eq!(read.external_temperature.as_ref().map(|degrees| degrees.0), Some(-7));
    }

    #[test]
    fn errors_contain_the_path() {
        let wrong = |name: &str, kind| read(&container(&[(name, kind)])).unwrap_err().to_string();
        let works = container(&[("speedLimit", Kind::NumberValue(300.0))]);
        assert_eq!(
            wrong("roadWorks", Kind::StructValue(works)),
            "alacarte.roadWorks.speedLimit: expected an integer from 1 to 255, got 300"
        );
        assert!(
            wrong("lanePosition", Kind::NumberValue(0.5)).starts_with("alacarte.lanePosition: expected an integer")
        );
        assert!(wrong("lanePosition", Kind::NumberValue(f64::NAN)).starts_with("alacarte.lanePosition"));
        assert_eq!(wrong("speed", Kind::BoolValue(true)), "alacarte.speed: there is no member of this name");
    }
}
