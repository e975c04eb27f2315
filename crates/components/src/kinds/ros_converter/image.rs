//! Pictures: `sensor_msgs/Image` and `foxglove.RawImage`, `sensor_msgs/CompressedImage` and `foxglove.CompressedImage`.

use bytes::Bytes;
use viaduct_messages::foxglove::{CompressedImage, RawImage};
use viaduct_ros::value::Value;

use super::conversion::{Failure, Lend};
use super::fields::{Builder, Fields};

pub(super) fn raw_to_bus(image: &Fields<'_>, lend: Lend<'_>) -> Result<RawImage, Failure> {
    let (timestamp, frame_id) = image.header()?;
    let encoding = image.text("encoding")?;
    if image.flag("is_bigendian")? && has_large_numbers(&encoding) {
        return Err(Failure::Value);
    }
    let (height, step) = (image.uint("height")?, image.uint("step")?);
    let data = image.octets("data")?;
    if u64::from(height) * u64::from(step) > data.len() as u64 {
        return Err(Failure::Malformed);
    }
    let (width, data) = (image.uint("width")?, copied(data, lend)?);
    Ok(RawImage { timestamp, frame_id, width, height, encoding, step, data })
}

/// Returns `true` if a number of a pixel has several octets, as in `mono16` and `32FC1`.
fn has_large_numbers(encoding: &str) -> bool {
    encoding.contains("16") || encoding.contains("32") || encoding.contains("64")
}

fn copied(data: &Bytes, lend: Lend<'_>) -> Result<Bytes, Failure> {
    if data.is_empty() {
        return Ok(Bytes::new());
    }
    let mut loan = lend(data.len())?;
    loan.copy_from_slice(data);
    Ok(loan.freeze())
}

pub(super) fn raw_to_ros(image: &RawImage, out: &mut Builder<'_>) -> Result<(), Failure> {
    out.set_header(image.timestamp, &image.frame_id)?;
    out.set_uint("height", image.height)?;
    out.set_uint("width", image.width)?;
    out.set("encoding", Value::text(&image.encoding))?;
    out.set_uint("step", image.step)?;
    out.set("data", Value::Octets(image.data.clone()))
}

pub(super) fn compressed_to_bus(image: &Fields<'_>, lend: Lend<'_>) -> Result<CompressedImage, Failure> {
    let (timestamp, frame_id) = image.header()?;
    // `image_transport` writes `rgb8; jpeg compressed bgr8`.
    let text = image.text("format")?;
    let format = match text.to_ascii_lowercase() {
        lower if lower.contains("jpeg") || lower.contains("jpg") => "jpeg".to_owned(),
        lower if lower.contains("png") => "png".to_owned(),
        _ => text,
    };
    Ok(CompressedImage { timestamp, data: copied(image.octets("data")?, lend)?, format, frame_id })
}

pub(super) fn compressed_to_ros(image: &CompressedImage, out: &mut Builder<'_>) -> Result<(), Failure> {
    out.set_header(image.timestamp, &image.frame_id)?;
    out.set("format", Value::text(&image.format))?;
    out.set("data", Value::Octets(image.data.clone()))
}
