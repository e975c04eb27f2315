//! The fields of a point, and the constants before the streams.

use super::super::cloud::Cloud;
use super::model::{BEAMS_MAX, Beam, TURN};

/// First number of the form. No message in planes begins with it.
pub(super) const MARK: [u8; 4] = [0xFF; 4];
/// Most octets of a point.
const STEP_MAX: usize = 512;
/// Offset of a field that is absent.
const ABSENT: u16 = u16::MAX;
/// Octets of a float32.
const FLOAT_OCTETS: usize = 4;
/// Largest growth of the offset of a beam per step that its column turns further than usual.
const RATE_MAX: f32 = 4.0;

/// The fields of a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Octets of a point.
    pub(super) step: usize,
    /// Offsets of x, y and z: float32.
    pub(super) coordinates: [usize; 3],
    /// Offset of the number of the beam.
    pub(super) ring: usize,
    /// Octets of the number of the beam, 1 or 2.
    pub(super) ring_octets: usize,
    /// Offset of the intensity: float32 with whole numbers of 0 to 255.
    pub(super) intensity: Option<usize>,
    /// Offset of the time: float32.
    pub(super) time: Option<usize>,
}

impl Layout {
    /// Returns the fields of a cloud, or `None` if it has no coordinates and beams.
    pub(super) fn of(cloud: &Cloud, rows: &[u8]) -> Option<Self> {
        if cloud.is_big_endian {
            return None;
        }
        let fields = &cloud.fields;
        let (ring, ring_octets) = fields.ring?;
        let [Some(x), Some(y), Some(z)] = fields.coordinates else { return None };
        let step = cloud.point_step;
        let intensity = fields.intensity.filter(|offset| has_octets(rows, step, *offset));
        let layout = Self { step, coordinates: [x, y, z], ring, ring_octets, intensity, time: fields.time };
        layout.plain().map(|_| layout)
    }

    /// Returns the offsets of the octets that belong to no field. Returns `None` if a field is outside the point, or two overlap.
    pub(super) fn plain(&self) -> Option<Vec<usize>> {
        if !(1..=STEP_MAX).contains(&self.step) || !(1..=2).contains(&self.ring_octets) {
            return None;
        }
        let mut is_used = vec![false; self.step];
        let floats = self.coordinates.into_iter().chain(self.intensity).chain(self.time);
        let fields = floats.map(|offset| (offset, FLOAT_OCTETS)).chain([(self.ring, self.ring_octets)]);
        for (offset, octets) in fields {
            for place in is_used.get_mut(offset..offset.checked_add(octets)?)? {
                if std::mem::replace(place, true) {
                    return None;
                }
            }
        }
        Some(is_used.iter().enumerate().filter(|(_, is_used)| !**is_used).map(|(offset, _)| offset).collect())
    }

    /// Returns the number of the beam of a point.
    #[inline]
    pub(super) fn ring_of(&self, row: &[u8]) -> u16 {
        let octet = |at: usize| row.get(self.ring + at).copied().unwrap_or_default();
        u16::from_le_bytes([octet(0), if self.ring_octets == 2 { octet(1) } else { 0 }])
    }
}

/// Returns `true` if all numbers of a field of float32 are whole numbers of 0 to 255.
fn has_octets(rows: &[u8], step: usize, offset: usize) -> bool {
    rows.chunks_exact(step).all(|row| {
        let bits = word(row, offset);
        f32::from(f32::from_bits(bits) as u8).to_bits() == bits
    })
}

/// Returns the bits of the float32 at an offset; octets that are missing are zero.
#[inline]
pub(super) fn word(row: &[u8], offset: usize) -> u32 {
    row.get(offset..).and_then(|rest| rest.first_chunk()).map_or(0, |octets| u32::from_le_bytes(*octets))
}

/// Writes the bits of a float32 at an offset.
#[inline]
pub(super) fn set_word(row: &mut [u8], offset: usize, bits: u32) {
    if let Some(place) = row.get_mut(offset..).and_then(|rest| rest.first_chunk_mut()) {
        *place = bits.to_le_bytes();
    }
}

/// The constants of the points of a message.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Header {
    /// Octets of the message before the first point.
    pub(super) start: usize,
    pub(super) points: usize,
    pub(super) layout: Layout,
    /// Usual steps of the azimuth from a column to the next one.
    pub(super) advance: i32,
    /// Usual time from a column to the next one.
    pub(super) cycle: f64,
    /// The beams in the order of their firing.
    pub(super) beams: Vec<Beam>,
}

impl Header {
    /// Writes the header. Returns `None` if a number is out of range.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> Option<()> {
        let Layout { step, coordinates: [x, y, z], ring, ring_octets, intensity, time } = self.layout;
        out.extend_from_slice(&MARK);
        for number in [self.start, self.points] {
            out.extend_from_slice(&u32::try_from(number).ok()?.to_le_bytes());
        }
        let absent = usize::from(ABSENT);
        let offsets = [intensity.unwrap_or(absent), time.unwrap_or(absent)];
        for number in [step, x, y, z, ring, ring_octets].into_iter().chain(offsets).chain([self.beams.len()]) {
            out.extend_from_slice(&u16::try_from(number).ok()?.to_le_bytes());
        }
        out.extend_from_slice(&self.advance.to_le_bytes());
        out.extend_from_slice(&self.cycle.to_le_bytes());
        for beam in &self.beams {
            out.extend_from_slice(&beam.ring.to_le_bytes());
            for number in [beam.along, beam.up, beam.offset, beam.rate, beam.time] {
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
        Some(())
    }

    /// Reads a header. Returns `None` if the octets are not a header that [`write`](Self::write) writes.
    pub(super) fn read(octets: &mut Octets<'_>) -> Option<Self> {
        if octets.take()? != MARK {
            return None;
        }
        let (start, points) = (octets.length()?, octets.length()?);
        let (step, x, y, z) = (octets.short()?, octets.short()?, octets.short()?, octets.short()?);
        let (ring, ring_octets) = (octets.short()?, octets.short()?);
        let mut optional = || octets.short().map(|offset| (offset != usize::from(ABSENT)).then_some(offset));
        let (intensity, time) = (optional()?, optional()?);
        let layout = Layout { step, coordinates: [x, y, z], ring, ring_octets, intensity, time };
        layout.plain()?;
        let count = octets.short().filter(|count| (1..=BEAMS_MAX).contains(count))?;
        let advance = i32::from_le_bytes(octets.take()?);
        let cycle = f64::from_le_bytes(octets.take()?);
        let beams = (0..count).map(|_| octets.beam()).collect::<Option<Vec<_>>>()?;
        (advance.abs_diff(0) <= TURN as u32).then_some(Self { start, points, layout, advance, cycle, beams })
    }
}

/// Octets that are read.
#[derive(Clone, Copy)]
pub(super) struct Octets<'a>(pub(super) &'a [u8]);

impl<'a> Octets<'a> {
    pub(super) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    /// Returns that number of octets.
    pub(super) fn split(&mut self, octets: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(octets)?;
        self.0 = rest;
        Some(taken)
    }

    /// Returns a number of 32 bits.
    pub(super) fn length(&mut self) -> Option<usize> {
        usize::try_from(u32::from_le_bytes(self.take()?)).ok()
    }

    fn short(&mut self) -> Option<usize> {
        self.take().map(|octets| usize::from(u16::from_le_bytes(octets)))
    }

    fn float(&mut self) -> Option<f32> {
        self.take().map(f32::from_le_bytes)
    }

    fn beam(&mut self) -> Option<Beam> {
        let ring = u16::from_le_bytes(self.take()?);
        let (along, up, offset) = (self.float()?, self.float()?, self.float()?);
        let (rate, time) = (self.float()?, self.float()?);
        // An azimuth remains an angle.
        let is_valid = offset.abs() <= TURN as f32 && rate.abs() <= RATE_MAX;
        is_valid.then_some(Beam { ring, along, up, offset, rate, time })
    }
}
