//! Fields of messages of ROS by their names, in both versions.

use bytes::Bytes;
use prost_types::Timestamp;
use viaduct_ros::json;
use viaduct_ros::msg::{FieldType, MessageType, Schema};
use viaduct_ros::value::Value;

use super::conversion::Failure;

/// The fields of a received message.
#[derive(Clone, Copy)]
pub(in crate::kinds) struct Fields<'a> {
    schema: &'a Schema,
    message_type: &'a MessageType,
    values: &'a [Value],
}

impl<'a> Fields<'a> {
    /// Returns the fields of a message.
    pub(in crate::kinds) fn of(schema: &'a Schema, value: &'a Value) -> Result<Self, Failure> {
        match (schema.root(), value) {
            (Some(message_type), Value::Message(values)) => Ok(Self { schema, message_type, values }),
            _ => Err(Failure::Malformed),
        }
    }

    fn find(&self, name: &str) -> Option<(FieldType, &'a Value)> {
        let index = self.message_type.fields().iter().position(|field| field.name == name)?;
        Some((self.message_type.fields().get(index)?.base, self.values.get(index)?))
    }

    fn value(&self, name: &str) -> Result<&'a Value, Failure> {
        self.find(name).map(|(_, value)| value).ok_or(Failure::Malformed)
    }

    /// Returns `true` if the type has that field.
    pub(in crate::kinds) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Returns the fields of a message within this one.
    pub(in crate::kinds) fn inner(&self, name: &str) -> Result<Self, Failure> {
        self.within(self.find(name).ok_or(Failure::Malformed)?)
    }

    /// Returns the fields of each message of an array.
    pub(in crate::kinds) fn list(&self, name: &str) -> Result<Vec<Self>, Failure> {
        match self.find(name).ok_or(Failure::Malformed)? {
            (base, Value::Array(values)) => values.iter().map(|value| self.within((base, value))).collect(),
            _ => Err(Failure::Malformed),
        }
    }

    fn within(&self, (base, value): (FieldType, &'a Value)) -> Result<Self, Failure> {
        let FieldType::Message(index) = base else { return Err(Failure::Malformed) };
        match (self.schema.message_type(index), value) {
            (Some(message_type), Value::Message(values)) => Ok(Self { message_type, values, ..*self }),
            _ => Err(Failure::Malformed),
        }
    }

    pub(in crate::kinds) fn float(&self, name: &str) -> Result<f64, Failure> {
        float(self.value(name)?).ok_or(Failure::Malformed)
    }

    pub(in crate::kinds) fn floats(&self, name: &str) -> Result<Vec<f64>, Failure> {
        let Value::Array(values) = self.value(name)? else { return Err(Failure::Malformed) };
        values.iter().map(|value| float(value).ok_or(Failure::Malformed)).collect()
    }

    pub(in crate::kinds) fn int(&self, name: &str) -> Result<i64, Failure> {
        match self.value(name)? {
            Value::Int(value) => Ok(*value),
            Value::Uint(value) => i64::try_from(*value).map_err(|_| Failure::Malformed),
            _ => Err(Failure::Malformed),
        }
    }

    pub(in crate::kinds) fn uint(&self, name: &str) -> Result<u32, Failure> {
        u32::try_from(self.int(name)?).map_err(|_| Failure::Malformed)
    }

    /// Returns a `bool`, or the `uint8` that `sensor_msgs/Image` has in place of one.
    pub(in crate::kinds) fn flag(&self, name: &str) -> Result<bool, Failure> {
        match self.value(name)? {
            Value::Bool(value) => Ok(*value),
            Value::Uint(value) => Ok(*value != 0),
            _ => Err(Failure::Malformed),
        }
    }

    /// Returns a text. Octets that are not UTF-8 become U+FFFD.
    pub(in crate::kinds) fn text(&self, name: &str) -> Result<String, Failure> {
        match self.value(name)? {
            Value::Text(text) => Ok(String::from_utf8_lossy(text).into_owned()),
            _ => Err(Failure::Malformed),
        }
    }

    pub(in crate::kinds) fn octets(&self, name: &str) -> Result<&'a Bytes, Failure> {
        match self.value(name)? {
            Value::Octets(octets) => Ok(octets),
            _ => Err(Failure::Malformed),
        }
    }

    /// Returns time and coordinate frame of the header. A time of 0 is none.
    pub(in crate::kinds) fn header(&self) -> Result<(Option<Timestamp>, String), Failure> {
        let header = self.inner("header")?;
        let stamp = header.stamp()?;
        let time = (stamp.seconds != 0 || stamp.nanos != 0).then_some(stamp);
        Ok((time, header.text("frame_id")?))
    }

    /// Returns the time `stamp`.
    pub(in crate::kinds) fn stamp(&self) -> Result<Timestamp, Failure> {
        let (seconds, nanos) = match self.value("stamp")? {
            Value::Time(seconds, nanos) => (i64::from(*seconds), i64::from(*nanos)),
            _ => {
                let stamp = self.inner("stamp")?;
                (stamp.int("sec")?, stamp.int("nanosec")?)
            }
        };
        Ok(Timestamp { seconds, nanos: i32::try_from(nanos).map_err(|_| Failure::Value)? })
    }
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Float32(value) => Some(f64::from(*value)),
        Value::Float64(value) => Some(*value),
        _ => None,
    }
}

/// A message that is filled.
pub(in crate::kinds) struct Builder<'a> {
    schema: &'a Schema,
    value: Value,
}

impl<'a> Builder<'a> {
    /// Returns a message whose fields are 0, `false` or empty.
    pub(in crate::kinds) fn new(schema: &'a Schema) -> Result<Self, Failure> {
        let value = json::read(schema, &serde_json::json!({})).map_err(|_| Failure::Type)?;
        Ok(Self { schema, value })
    }

    /// Returns the message.
    pub(in crate::kinds) fn finish(self) -> Value {
        self.value
    }

    /// Sets a field by its path: `header.frame_id`.
    pub(in crate::kinds) fn set(&mut self, path: &str, value: Value) -> Result<(), Failure> {
        let mut message_type = self.schema.root().ok_or(Failure::Type)?;
        let mut target = &mut self.value;
        for name in path.split('.') {
            let index = message_type.fields().iter().position(|field| field.name == name).ok_or(Failure::Type)?;
            let Value::Message(values) = target else { return Err(Failure::Type) };
            target = values.get_mut(index).ok_or(Failure::Type)?;
            if let Some(FieldType::Message(index)) = message_type.fields().get(index).map(|field| field.base) {
                message_type = self.schema.message_type(index).ok_or(Failure::Type)?;
            }
        }
        *target = value;
        Ok(())
    }

    pub(in crate::kinds) fn set_float(&mut self, path: &str, value: f64) -> Result<(), Failure> {
        self.set(path, Value::Float64(value))
    }

    pub(in crate::kinds) fn set_uint(&mut self, path: &str, value: impl Into<u64>) -> Result<(), Failure> {
        self.set(path, Value::Uint(value.into()))
    }

    /// Sets time and coordinate frame of the header. No time is a time of 0.
    pub(in crate::kinds) fn set_header(&mut self, time: Option<Timestamp>, frame: &str) -> Result<(), Failure> {
        let Timestamp { seconds, nanos } = time.unwrap_or_default();
        let nanos = u32::try_from(nanos).map_err(|_| Failure::Value)?;
        let stamp = match self.schema.dialect() {
            viaduct_ros::msg::Dialect::Ros1 => Value::Time(u32::try_from(seconds).map_err(|_| Failure::Value)?, nanos),
            viaduct_ros::msg::Dialect::Ros2 => Value::Message(vec![Value::Int(seconds), Value::Uint(nanos.into())]),
        };
        self.set("header.stamp", stamp)?;
        self.set("header.frame_id", Value::text(frame))
    }
}
