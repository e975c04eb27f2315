//! The found vehicles as messages of the bus, of ROS 1 and of ROS 2.

use serde_json::{Value as Json, json};
use viaduct_bus::{Bus, Encoded, Meta, Publisher, UntypedPublisher};
use viaduct_lidar::boxes::{Detection, VehicleClass};
use viaduct_messages::viaduct::perception::PerceivedObjects;
use viaduct_ros::codec;
use viaduct_ros::definitions::{self, Definition};
use viaduct_ros::json;
use viaduct_ros::msg::{Dialect, TypeName};

use super::cloud::Received;
use super::place::{Place, Tracks};
use super::{Failure, OFFERED};
use crate::kinds::ros_converter::Format;
use crate::kinds::ros_converter::conversion::{dialect, encoding, ros_info};

/// The publisher of a format.
pub(super) enum Output {
    /// `viaduct.perception.PerceivedObjects`.
    Bus(Publisher<PerceivedObjects>, Tracks),
    /// `vision_msgs/Detection3DArray`.
    Ros(UntypedPublisher, &'static Definition),
}

impl Output {
    pub(super) fn open(
        bus: &Bus,
        topic: &str,
        format: Format,
        component: &str,
    ) -> Result<Self, viaduct_node::StartError> {
        match format {
            Format::Bus => Ok(Self::Bus(bus.publisher(topic, OFFERED, component)?, Tracks::default())),
            Format::Ros1 | Format::Ros2 => {
                let unknown = || viaduct_node::StartError::Other("vision_msgs is not a known package".to_owned());
                let name = TypeName::parse("vision_msgs/Detection3DArray").ok_or_else(unknown)?;
                let definition = definitions::find(&name, dialect(format)).ok_or_else(unknown)?;
                let info = ros_info(&name, definition);
                Ok(Self::Ros(bus.publisher_untyped(topic, info, OFFERED, component)?, definition))
            }
        }
    }

    /// Publishes the vehicles of a cloud. Messages of the bus need the place of the sensor.
    pub(super) fn publish(
        &mut self,
        cause: Meta,
        cloud: &Received,
        vehicles: &[Detection],
        place: Option<Place>,
    ) -> Result<(), Failure> {
        match self {
            Self::Bus(publisher, tracks) => {
                let objects = tracks.objects(&place.ok_or(Failure::NoPosition)?, vehicles);
                let message = PerceivedObjects { time: cloud.time, objects, reply_to: None };
                publisher.try_publish_from(cause, message).map_err(|_| Failure::QueueFull)
            }
            Self::Ros(publisher, definition) => {
                let schema = definition.schema();
                let message = json::read(schema, &detections(cloud, vehicles, schema.dialect()));
                let message = message.and_then(|value| codec::encode(schema, encoding(schema.dialect()), &value));
                let message = Encoded::from(message.map_err(|_| Failure::Malformed)?);
                publisher.try_publish_from(cause, message).map_err(|_| Failure::QueueFull)
            }
        }
    }
}

/// Returns `vision_msgs/Detection3DArray`. Header and coordinate frame are those of the cloud.
fn detections(cloud: &Received, vehicles: &[Detection], dialect: Dialect) -> Json {
    let time = cloud.time.unwrap_or_default();
    let header = json!({ "stamp": { "secs": time.seconds, "nsecs": time.nanos }, "frame_id": cloud.frame_id });
    let detection = |vehicle: &Detection| {
        let (extent, base) = (&vehicle.extent, &vehicle.extent.base);
        let (sine, cosine) = (f64::from(base.yaw) / 2.0).sin_cos();
        let pose = json!({
            "position": { "x": base.x, "y": base.y, "z": extent.z },
            "orientation": { "x": 0.0, "y": 0.0, "z": sine, "w": cosine },
        });
        let size = json!({ "x": base.length, "y": base.width, "z": extent.height });
        let (class, score) = (vehicle.class(), f64::from(vehicle.score));
        let result = match dialect {
            Dialect::Ros1 => json!({ "id": number(class), "score": score, "pose": { "pose": pose } }),
            Dialect::Ros2 => {
                json!({ "hypothesis": { "class_id": class.name(), "score": score }, "pose": { "pose": pose } })
            }
        };
        json!({ "header": header, "results": [result], "bbox": { "center": pose, "size": size } })
    };
    let detections: Vec<Json> = vehicles.iter().map(detection).collect();
    json!({ "header": header, "detections": detections })
}

/// Returns the number of a class, which ROS 1 has in place of a name.
const fn number(class: VehicleClass) -> u8 {
    match class {
        VehicleClass::Car => 0,
        VehicleClass::Van => 1,
        VehicleClass::Truck => 2,
    }
}
