//! The points of a rotating lidar as the whole numbers that the sensor measured.
//!
//! Such a sensor measures distances in steps of some millimetres and azimuths in steps of 0.01 degrees, with beams of fixed elevation. A
//! driver computes x, y and z as float32 from them. This form finds the steps and the constants of the beams in the points, predicts the
//! coordinates with the arithmetic of `model`, and stores the steps with the differences between coordinates and predictions, counted
//! in neighbouring float32. Most differences are zero, and any others are stored as well, so each message is restored bit by bit. A point
//! without such steps is stored as it is. Times are predicted from the beams in the same way. Intensities and all other octets are stored
//! as differences to the previous point of the same beam.
//!
//! The form is for clouds with float32 `x`, `y`, `z` and `ring` or `channel` as one or two octets, of which at least 80 % have the steps.
//! Other clouds remain in [`super::planes`].
//!
//! ```text
//! u32  0xFFFFFFFF                             little-endian, as all numbers
//! u32  offset of the first point in the message
//! u32  number of points
//! u16  octets of a point
//! u16  offsets of x, y, z and the number of the beam in a point
//! u16  octets of the number of the beam, 1 or 2
//! u16  offset of the intensity (whole numbers of 0 to 255 as float32), or 0xFFFF
//! u16  offset of the time (float32), or 0xFFFF
//! u16  number of beams, 1 to 255
//! i32  usual steps of the azimuth between two columns
//! f64  usual time between two columns
//!      for each beam, in the order of firing:
//!        u16  number of the beam
//!        f32  metres along the ground, and upwards, per step of the distance
//!        f32  steps from the azimuth of the column, and their growth per step that the column turns further than usual
//!        f32  time from that of the column
//! u32  lengths of the streams
//!      octets of the message before the first point, and after the last one
//!      streams, in the order of the table in `streams`
//! ```

mod codes;
mod decode;
mod encode;
mod estimate;
mod layout;
mod model;
mod streams;
#[cfg(test)]
mod tests;

pub use decode::restore;
pub(super) use encode::arrange;

/// Returns `true` if a message is in this form.
pub(super) fn is_polar(octets: &[u8]) -> bool {
    octets.starts_with(&layout::MARK)
}
