//! The conversion of a type: which one, and its publisher.

use bytes::Bytes;
use viaduct_bus::{Bus, Encoded, Loan, MessageFormat, Publisher, Qos, TypeInfo, UntypedPublisher, UntypedSample};
use viaduct_messages::Message;
use viaduct_messages::foxglove::{CompressedImage, LocationFix, PointCloud, RawImage};
use viaduct_messages::viaduct::vehicle::{DriveCommand, VehicleState};
use viaduct_ros::codec::{self, Encoding};
use viaduct_ros::definitions::{self, Definition};
use viaduct_ros::msg::{Dialect, Schema, TypeName};
use viaduct_ros::transcode::Transcoder;
use viaduct_ros::value::Value;

use super::fields::{Builder, Fields};
use super::{Format, cloud, image, motion, position};
use crate::ros1_type;

/// Quality of service of the outputs.
pub(super) const OFFERED: Qos = Qos::keep_last(8);
/// Smallest message that is written into a buffer of the topic's pool.
const LOAN_BYTES_MIN: usize = 4096;

/// Converts a sample and publishes the result.
pub(super) type Convert = Box<dyn FnMut(&UntypedSample) -> Result<(), Failure> + Send>;

/// The reason why a message is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::kinds) enum Failure {
    Type,
    Malformed,
    Value,
    OutputType,
    NoBuffer,
    QueueFull,
}

/// The topic of the converted messages.
pub(super) struct Output<'a> {
    pub(super) bus: &'a Bus,
    pub(super) topic: &'a str,
    pub(super) component: &'a str,
    pub(super) wheelbase_m: f64,
}

/// Returns memory of the output's pool.
pub(super) type Lend<'a> = &'a dyn Fn(usize) -> Result<Loan, Failure>;

impl Failure {
    pub(super) const ALL: [Self; 6] =
        [Self::Type, Self::Malformed, Self::Value, Self::OutputType, Self::NoBuffer, Self::QueueFull];

    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Malformed => "malformed",
            Self::Value => "value",
            Self::OutputType => "output_type",
            Self::NoBuffer => "no_buffer",
            Self::QueueFull => "queue_full",
        }
    }
}

impl Output<'_> {
    fn typed<M: Message>(&self) -> Result<Publisher<M>, Failure> {
        self.bus.publisher(self.topic, OFFERED, self.component).map_err(|_| Failure::OutputType)
    }

    fn untyped(&self, info: TypeInfo) -> Result<UntypedPublisher, Failure> {
        self.bus.publisher_untyped(self.topic, info, OFFERED, self.component).map_err(|_| Failure::OutputType)
    }
}

/// Opens the conversion of a type to a format.
pub(super) fn open(info: &TypeInfo, format: Format, output: &Output<'_>) -> Result<Convert, Failure> {
    match (info.format(), format) {
        (MessageFormat::Ros1 | MessageFormat::Ros2, Format::Bus) => ros_to_bus(info, output),
        (MessageFormat::Ros1 | MessageFormat::Ros2, _) => ros_to_ros(info, dialect(format), output),
        (MessageFormat::Protobuf, Format::Ros1 | Format::Ros2) => bus_to_ros(info, dialect(format), output),
        _ => Err(Failure::Type),
    }
}

/// Returns the version of ROS of a format.
pub(in crate::kinds) const fn dialect(format: Format) -> Dialect {
    match format {
        Format::Ros1 => Dialect::Ros1,
        Format::Ros2 | Format::Bus => Dialect::Ros2,
    }
}

/// Returns the serialisation of a version of ROS.
pub(in crate::kinds) const fn encoding(dialect: Dialect) -> Encoding {
    match dialect {
        Dialect::Ros1 => Encoding::Ros1,
        Dialect::Ros2 => Encoding::Cdr,
    }
}

/// Returns name and definition of a type of ROS: the definition that the topic has, or that of a common interface. A definition with another
/// sum than that of the topic is one of another release, and would read wrong values.
pub(in crate::kinds) fn source(info: &TypeInfo) -> Result<(TypeName, Schema), Failure> {
    let name = TypeName::parse(info.full_name()).ok_or(Failure::Type)?;
    let dialect = if info.format() == MessageFormat::Ros1 { Dialect::Ros1 } else { Dialect::Ros2 };
    let has_sum = |schema: &Schema| {
        let sum = if dialect == Dialect::Ros1 { schema.md5() } else { schema.type_hash().unwrap_or_default() };
        info.schema_id().is_empty() || info.schema_id() == sum
    };
    let text = std::str::from_utf8(info.schema()).ok().filter(|text| !text.is_empty());
    let sent = text.and_then(|text| Schema::parse(dialect, &name.to_string(), text).ok()).filter(has_sum);
    let known = || definitions::find(&name, dialect).map(|known| known.schema().clone()).filter(has_sum);
    let schema = sent.or_else(known).ok_or(Failure::Type)?;
    Ok((name, schema))
}

/// Returns the type of a topic with messages of ROS.
pub(in crate::kinds) fn ros_info(name: &TypeName, definition: &Definition) -> TypeInfo {
    let (schema, text) = (definition.schema(), definition.text());
    match schema.dialect() {
        Dialect::Ros1 => ros1_type::type_info(&name.to_string(), &schema.md5(), text),
        Dialect::Ros2 => {
            let name = format!("{}/msg/{}", name.package(), name.name());
            let info = TypeInfo::foreign(MessageFormat::Ros2, &name, Bytes::copy_from_slice(text.as_bytes()));
            info.with_schema_id(&schema.type_hash().unwrap_or_default())
        }
    }
}

fn ros_to_ros(info: &TypeInfo, to: Dialect, output: &Output<'_>) -> Result<Convert, Failure> {
    let (name, from) = source(info)?;
    // From one version to the same one: only if the type is a common one, of another release.
    let target =
        if from.dialect() == to { definitions::find(&name, to).cloned() } else { definitions::counterpart(&from) };
    let target = target.ok_or(Failure::Type)?;
    let transcoder = Transcoder::new(&from, target.schema()).map_err(|_| Failure::Type)?;
    let is_header = |field: &&String| !field.ends_with("header.seq");
    let dropped: Vec<&String> = transcoder.dropped().iter().filter(is_header).collect();
    let zeroed: Vec<&String> = transcoder.zeroed().iter().filter(is_header).collect();
    if !dropped.is_empty() || !zeroed.is_empty() {
        let (component, topic) = (output.component, output.topic);
        tracing::warn!(%component, %topic, %name, ?dropped, ?zeroed, "fields of this type have no counterpart");
    }
    let publisher = output.untyped(ros_info(&name, &target))?;
    Ok(Box::new(move |sample| {
        let message = sample.encoded().to_bytes();
        let length = transcoder.length(&message).map_err(failure)?;
        let written = if length < LOAN_BYTES_MIN {
            transcoder.transcode(&message).map_err(failure)?.into()
        } else {
            let mut loan = publisher.loan(length).map_err(|_| Failure::NoBuffer)?;
            transcoder.write(&message, &mut loan).map_err(failure)?;
            loan.freeze()
        };
        publish(&publisher, sample, written)
    }))
}

/// A message that fits its type may have a value that the other type does not have.
const fn failure(problem: codec::CodecProblem) -> Failure {
    match problem {
        codec::CodecProblem::Range | codec::CodecProblem::TooMany(_) | codec::CodecProblem::Length(_) => Failure::Value,
        _ => Failure::Malformed,
    }
}

fn publish(publisher: &UntypedPublisher, cause: &UntypedSample, message: Bytes) -> Result<(), Failure> {
    publisher.try_publish_from(cause.meta(), Encoded::from(message)).map_err(|_| Failure::QueueFull)
}

fn ros_to_bus(info: &TypeInfo, output: &Output<'_>) -> Result<Convert, Failure> {
    let (name, schema) = source(info)?;
    let wheelbase_m = output.wheelbase_m;
    match name.to_string().as_str() {
        "sensor_msgs/PointCloud2" => to_bus(schema, output, cloud::to_bus),
        "sensor_msgs/Image" => to_bus(schema, output, image::raw_to_bus),
        "sensor_msgs/CompressedImage" => to_bus(schema, output, image::compressed_to_bus),
        "sensor_msgs/NavSatFix" => to_bus(schema, output, position::to_bus),
        "nav_msgs/Odometry" => to_bus(schema, output, motion::state_to_bus),
        "geometry_msgs/Twist" | "geometry_msgs/TwistStamped" => {
            let mut sequence = 0_u32;
            to_bus(schema, output, move |fields, _| {
                sequence = sequence.wrapping_add(1);
                motion::command_to_bus(fields, wheelbase_m, sequence)
            })
        }
        _ => Err(Failure::Type),
    }
}

fn to_bus<M: Message>(
    schema: Schema,
    output: &Output<'_>,
    mut convert: impl FnMut(&Fields<'_>, Lend<'_>) -> Result<M, Failure> + Send + 'static,
) -> Result<Convert, Failure> {
    let publisher = output.typed::<M>()?;
    let encoding = encoding(schema.dialect());
    Ok(Box::new(move |sample| {
        let value = codec::decode(&schema, encoding, &sample.encoded().to_bytes()).map_err(|_| Failure::Malformed)?;
        let fields = Fields::of(&schema, &value)?;
        let lend = |length: usize| publisher.loan(length).map_err(|_| Failure::NoBuffer);
        let message = convert(&fields, &lend)?;
        publisher.try_publish_from(sample.meta(), message).map_err(|_| Failure::QueueFull)
    }))
}

fn bus_to_ros(info: &TypeInfo, to: Dialect, output: &Output<'_>) -> Result<Convert, Failure> {
    let wheelbase_m = output.wheelbase_m;
    match info.full_name() {
        "foxglove.PointCloud" => to_ros::<PointCloud>("sensor_msgs/PointCloud2", to, output, cloud::to_ros),
        "foxglove.RawImage" => to_ros::<RawImage>("sensor_msgs/Image", to, output, image::raw_to_ros),
        "foxglove.CompressedImage" => {
            to_ros::<CompressedImage>("sensor_msgs/CompressedImage", to, output, image::compressed_to_ros)
        }
        "foxglove.LocationFix" => to_ros::<LocationFix>("sensor_msgs/NavSatFix", to, output, position::to_ros),
        "viaduct.vehicle.VehicleState" => to_ros::<VehicleState>("nav_msgs/Odometry", to, output, motion::state_to_ros),
        "viaduct.vehicle.DriveCommand" => {
            to_ros::<DriveCommand>("geometry_msgs/Twist", to, output, move |command, twist| {
                motion::command_to_ros(command, wheelbase_m, twist)
            })
        }
        _ => Err(Failure::Type),
    }
}

fn to_ros<M: Message>(
    name: &str,
    to: Dialect,
    output: &Output<'_>,
    convert: impl Fn(&M, &mut Builder<'_>) -> Result<(), Failure> + Send + 'static,
) -> Result<Convert, Failure> {
    let name = TypeName::parse(name).ok_or(Failure::Type)?;
    let definition = definitions::find(&name, to).ok_or(Failure::Type)?;
    let (schema, encoding) = (definition.schema(), encoding(to));
    let publisher = output.untyped(ros_info(&name, definition))?;
    Ok(Box::new(move |sample| {
        let message = sample.typed::<M>().map_err(|_| Failure::Malformed)?;
        let mut builder = Builder::new(schema)?;
        convert(&message, &mut builder)?;
        let written = write(schema, encoding, &builder.finish(), &publisher)?;
        publish(&publisher, sample, written)
    }))
}

/// Encodes a message, a large one into a buffer of the topic's pool.
fn write(schema: &Schema, encoding: Encoding, value: &Value, publisher: &UntypedPublisher) -> Result<Bytes, Failure> {
    let chunks = codec::encode_chunks(schema, encoding, value).map_err(|_| Failure::Value)?;
    let length = chunks.iter().map(Bytes::len).sum();
    if length < LOAN_BYTES_MIN {
        return Ok(chunks.concat().into());
    }
    let mut loan = publisher.loan(length).map_err(|_| Failure::NoBuffer)?;
    let mut rest = &mut loan[..];
    for chunk in &chunks {
        let (part, after) = rest.split_at_mut_checked(chunk.len()).ok_or(Failure::NoBuffer)?;
        part.copy_from_slice(chunk);
        rest = after;
    }
    Ok(loan.freeze())
}
