//! Collective perception message, ETSI TS 103 324 V2.1.1 (release 2), on the data dictionary TS 102 894-2 V2.4.1.
//!
//! BTP port 2009, message id 14, protocol version 2.
//!
//! On the wire a container is an open type: its identifier, a length and octets. [`Cpm`] contains the decoded
//! containers, and so does its JSON form. A container that this edition does not define is kept as octets.

use rasn::{
    AsnType, Decode, Encode,
    error::{DecodeError, EncodeError},
};

pub mod types;

use self::types::{
    CollectivePerceptionMessage, CpmContainerId, CpmPayload, ItsPduHeader, ManagementContainer,
    OriginatingRsuContainer, OriginatingVehicleContainer, PerceivedObjectContainer, PerceptionRegionContainer,
    SensorInformationContainer, WrappedCpmContainer, WrappedCpmContainers,
};
use crate::{
    JsonError, JsonForm, JsonStyle, UperError,
    json::{JsonReader, JsonWriter},
    uper,
};

/// Name and version of the standard.
pub const EDITION: &str = "TS 103 324 V2.1.1";
/// `messageId` of a CPM.
pub const MESSAGE_ID: u8 = 14;
/// `protocolVersion` of this edition.
pub const PROTOCOL_VERSION: u8 = 2;

/// Name of the member that is the body of the message.
pub const BODY: &str = "payload";

const MESSAGE: &str = "CPM (TS 103 324 V2.1.1)";

// `CpmContainerId` (TS 103 324, annex A).
const ORIGINATING_VEHICLE: u8 = 1;
const ORIGINATING_RSU: u8 = 2;
const SENSOR_INFORMATION: u8 = 3;
const PERCEPTION_REGION: u8 = 4;
const PERCEIVED_OBJECT: u8 = 5;

/// A collective perception message with its containers decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpm {
    /// Protocol version, message ID and station ID.
    pub header: ItsPduHeader,
    /// Reference time and position, segmentation, message rate.
    pub management_container: ManagementContainer,
    /// The containers in the order of the message, 1 to 8.
    pub containers: Vec<CpmContainer>,
}

/// Content of a container of a CPM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CpmContainer {
    /// Container 1: orientation and trailers of the sending vehicle.
    OriginatingVehicle(OriginatingVehicleContainer),
    /// Container 2: the map that a roadside unit refers to.
    OriginatingRsu(OriginatingRsuContainer),
    /// Container 3: the sensors and their fields of view.
    SensorInformation(SensorInformationContainer),
    /// Container 4: regions in which the station can currently perceive objects.
    PerceptionRegion(PerceptionRegionContainer),
    /// Container 5: the objects.
    PerceivedObject(PerceivedObjectContainer),
    /// A container of a later edition.
    Unknown {
        /// `CpmContainerId`, 6 to 16.
        id: u8,
        /// Octets of the open type.
        octets: Vec<u8>,
    },
}

impl CpmContainer {
    /// Returns the `CpmContainerId`, 1 to 16.
    #[must_use]
    pub const fn id(&self) -> u8 {
        match self {
            Self::OriginatingVehicle(_) => ORIGINATING_VEHICLE,
            Self::OriginatingRsu(_) => ORIGINATING_RSU,
            Self::SensorInformation(_) => SENSOR_INFORMATION,
            Self::PerceptionRegion(_) => PERCEPTION_REGION,
            Self::PerceivedObject(_) => PERCEIVED_OBJECT,
            Self::Unknown { id, .. } => *id,
        }
    }
}

/// Decodes a CPM and its containers from UPER.
///
/// Extension additions of later editions are skipped: forward the received octets, not a re-encoding.
///
/// # Errors
/// Returns an error if the octets are not one CPM, if a container is invalid, or if whole octets follow the message
/// or a container.
pub fn decode(octets: &[u8]) -> Result<Cpm, UperError> {
    let message: CollectivePerceptionMessage = uper::decode(MESSAGE, octets)?;
    let CpmPayload { management_container, cpm_containers, .. } = message.payload;
    let wrapped = cpm_containers.0;
    let containers = wrapped.into_iter().map(unwrap).collect::<Result<_, _>>()?;
    Ok(Cpm { header: message.header, management_container, containers })
}

/// Returns the element and the bit at which the octets stop being a CPM, or `None` if they are one. For an invalid
/// container, the error has the element without the bit. It takes about 14 times as long as [`decode`].
#[must_use]
pub fn explain(octets: &[u8]) -> Option<UperError> {
    uper::explain::<CollectivePerceptionMessage>(MESSAGE, octets).or_else(|| decode(octets).err())
}

/// Encodes a CPM in UPER.
///
/// # Errors
/// Returns an error if a value is outside its range, or if there is no container.
pub fn encode(cpm: &Cpm) -> Result<Vec<u8>, UperError> {
    let wrapped = cpm.containers.iter().map(wrap).collect::<Result<_, _>>()?;
    let payload = CpmPayload::new(cpm.management_container, WrappedCpmContainers(wrapped));
    uper::encode(MESSAGE, &CollectivePerceptionMessage { header: cpm.header, payload })
}

/// Appends the CPM's JSON form to `out`.
pub fn write_json(cpm: &Cpm, out: &mut Vec<u8>) {
    write_json_in(JsonStyle::Raw, cpm, out);
}

/// Reads a CPM from its JSON form.
///
/// # Errors
/// Returns the first error in the text, with its path.
pub fn from_json(text: &[u8]) -> Result<Cpm, JsonError> {
    from_json_in(JsonForm::default(), text)
}

/// Appends the CPM's JSON form in a style to `out`.
pub fn write_json_in(style: JsonStyle, cpm: &Cpm, out: &mut Vec<u8>) {
    JsonWriter::write(style, out, |writer| write_message(cpm, writer));
}

/// Reads a CPM from its JSON form in a style, or from a part of it.
///
/// # Errors
/// Returns the first error in the text, with its path.
pub fn from_json_in(form: JsonForm, text: &[u8]) -> Result<Cpm, JsonError> {
    JsonReader::read(form, text, read_message)
}

fn unwrap(wrapped: WrappedCpmContainer) -> Result<CpmContainer, UperError> {
    let id = wrapped.container_id.0;
    let octets = wrapped.container_data.into_bytes();
    Ok(match id {
        ORIGINATING_VEHICLE => CpmContainer::OriginatingVehicle(container(id, &octets)?),
        ORIGINATING_RSU => CpmContainer::OriginatingRsu(container(id, &octets)?),
        SENSOR_INFORMATION => CpmContainer::SensorInformation(container(id, &octets)?),
        PERCEPTION_REGION => CpmContainer::PerceptionRegion(container(id, &octets)?),
        PERCEIVED_OBJECT => CpmContainer::PerceivedObject(container(id, &octets)?),
        _ => CpmContainer::Unknown { id, octets },
    })
}

fn container<T: Decode>(id: u8, octets: &[u8]) -> Result<T, UperError> {
    uper::decode(MESSAGE, octets).map_err(|error| error.of_container(id))
}

fn wrap(container: &CpmContainer) -> Result<WrappedCpmContainer, UperError> {
    let octets = match container {
        CpmContainer::OriginatingVehicle(content) => uper::encode(MESSAGE, content)?,
        CpmContainer::OriginatingRsu(content) => uper::encode(MESSAGE, content)?,
        CpmContainer::SensorInformation(content) => uper::encode(MESSAGE, content)?,
        CpmContainer::PerceptionRegion(content) => uper::encode(MESSAGE, content)?,
        CpmContainer::PerceivedObject(content) => uper::encode(MESSAGE, content)?,
        CpmContainer::Unknown { octets, .. } => octets.clone(),
    };
    Ok(WrappedCpmContainer {
        container_id: CpmContainerId(container.id()),
        container_data: rasn::types::Any::new(octets),
    })
}

fn write_message(cpm: &Cpm, writer: &mut JsonWriter<'_>) -> Result<(), EncodeError> {
    writer.open_object();
    writer.name("header");
    cpm.header.encode(writer)?;
    writer.name("payload");
    writer.open_object();
    writer.name("managementContainer");
    cpm.management_container.encode(writer)?;
    writer.name("cpmContainers");
    writer.open_array();
    for container in &cpm.containers {
        writer.element();
        write_container(container, writer)?;
    }
    writer.close(b']');
    writer.close(b'}');
    writer.close(b'}');
    Ok(())
}

fn write_container(container: &CpmContainer, writer: &mut JsonWriter<'_>) -> Result<(), EncodeError> {
    writer.open_object();
    writer.name("containerId");
    writer.integer(container.id().into());
    writer.name("containerData");
    match container {
        CpmContainer::OriginatingVehicle(content) => content.encode(writer)?,
        CpmContainer::OriginatingRsu(content) => content.encode(writer)?,
        CpmContainer::SensorInformation(content) => content.encode(writer)?,
        CpmContainer::PerceptionRegion(content) => content.encode(writer)?,
        CpmContainer::PerceivedObject(content) => content.encode(writer)?,
        CpmContainer::Unknown { octets, .. } => writer.octets(octets),
    }
    writer.close(b'}');
    Ok(())
}

fn read_message(reader: &mut JsonReader<'_>) -> Result<Cpm, DecodeError> {
    reader.object(["header", "payload"].into_iter(), |reader| {
        let header = ItsPduHeader::decode(reader)?;
        let (management_container, containers) =
            reader.object(["managementContainer", "cpmContainers"].into_iter(), |reader| {
                let management_container = ManagementContainer::decode(reader)?;
                Ok((management_container, reader.list(&WrappedCpmContainers::CONSTRAINTS, read_container)?))
            })?;
        Ok(Cpm { header, management_container, containers })
    })
}

fn read_container(reader: &mut JsonReader<'_>) -> Result<CpmContainer, DecodeError> {
    reader.object(["containerId", "containerData"].into_iter(), |reader| {
        let id = CpmContainerId::decode(reader)?.0;
        Ok(match id {
            ORIGINATING_VEHICLE => CpmContainer::OriginatingVehicle(Decode::decode(reader)?),
            ORIGINATING_RSU => CpmContainer::OriginatingRsu(Decode::decode(reader)?),
            SENSOR_INFORMATION => CpmContainer::SensorInformation(Decode::decode(reader)?),
            PERCEPTION_REGION => CpmContainer::PerceptionRegion(Decode::decode(reader)?),
            PERCEIVED_OBJECT => CpmContainer::PerceivedObject(Decode::decode(reader)?),
            _ => CpmContainer::Unknown { id, octets: reader.octets()? },
        })
    })
}
