//! Points in a packed cloud: any length of a point, any order of its fields.

/// Most points of a cloud: ten seconds of a VLP-32C.
pub const POINTS_MAX: usize = 1 << 22;

/// The type of a number in a point. Numbers are little endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// 32 bits.
    Float32,
    /// 64 bits.
    Float64,
    /// Any other type.
    Other,
}

/// A field of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Name: `x`.
    pub name: &'a str,
    /// Position from the start of the point in octets.
    pub offset: u32,
    /// Type.
    pub number: Number,
}

/// The shape of a cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Length of a point in octets.
    pub point_step: u32,
    /// Length of a row in octets, with its padding.
    pub row_step: u32,
    /// Points of a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

/// The reason why a cloud has no points that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloudError {
    /// A coordinate is missing, or it is not a floating-point number.
    #[error("a point has no floating-point fields `x`, `y` and `z`")]
    Fields,
    /// The lengths contradict each other.
    #[error("the lengths of point, row and data do not fit together")]
    Shape,
    /// The cloud has too many points.
    #[error("the cloud has more than {POINTS_MAX} points")]
    TooManyPoints,
}

/// The points of a cloud.
#[derive(Clone, Copy, Debug)]
pub struct Cloud<'a> {
    data: &'a [u8],
    row_step: usize,
    used: usize,
    point_step: usize,
    coordinates: [Coordinate; 3],
}

/// The place of a coordinate in a point.
#[derive(Clone, Copy, Debug)]
struct Coordinate {
    offset: usize,
    is_double: bool,
}

impl<'a> Cloud<'a> {
    /// Finds the coordinates `x`, `y` and `z` among the fields.
    ///
    /// # Errors
    /// A coordinate is missing, the lengths contradict each other, or there are too many points.
    pub fn new<'f>(
        fields: impl Iterator<Item = Field<'f>> + Clone,
        shape: Shape,
        data: &'a [u8],
    ) -> Result<Self, CloudError> {
        let [point_step, row_step, width, height] =
            [shape.point_step, shape.row_step, shape.width, shape.height].map(|length| length as usize);
        let x = Coordinate::find("x", fields.clone(), point_step)?;
        let y = Coordinate::find("y", fields.clone(), point_step)?;
        let z = Coordinate::find("z", fields, point_step)?;
        let points = width.checked_mul(height).ok_or(CloudError::TooManyPoints)?;
        if points > POINTS_MAX {
            return Err(CloudError::TooManyPoints);
        }
        let used = width.checked_mul(point_step).ok_or(CloudError::Shape)?;
        // The row of an unordered cloud can have any length.
        let row_step = if height <= 1 { used } else { row_step };
        let length = row_step.checked_mul(height).filter(|_| used <= row_step).ok_or(CloudError::Shape)?;
        let data = data.get(..length).ok_or(CloudError::Shape)?;
        Ok(Self { data, row_step, used, point_step, coordinates: [x, y, z] })
    }

    /// Returns the positions of the points. They can be NaN.
    pub fn points(&self) -> impl Iterator<Item = [f32; 3]> + use<'a> {
        let Self { data, row_step, used, point_step, coordinates } = *self;
        // Without points, both lengths can be zero.
        let rows = data.chunks_exact(row_step.max(1)).filter_map(move |row| row.get(..used));
        let points = rows.flat_map(move |row| row.chunks_exact(point_step.max(1)));
        points.map(move |point| coordinates.map(|coordinate| coordinate.read(point)))
    }
}

impl Coordinate {
    fn find<'a>(
        name: &str,
        mut fields: impl Iterator<Item = Field<'a>>,
        point_step: usize,
    ) -> Result<Self, CloudError> {
        let field = fields.find(|field| field.name == name).ok_or(CloudError::Fields)?;
        let (is_double, octets) = match field.number {
            Number::Float32 => (false, 4),
            Number::Float64 => (true, 8),
            Number::Other => return Err(CloudError::Fields),
        };
        let offset = field.offset as usize;
        let is_inside = offset.checked_add(octets).is_some_and(|end| end <= point_step);
        if is_inside { Ok(Self { offset, is_double }) } else { Err(CloudError::Shape) }
    }

    #[inline]
    fn read(self, point: &[u8]) -> f32 {
        let rest = point.get(self.offset..).unwrap_or_default();
        if self.is_double {
            rest.first_chunk().map_or(f32::NAN, |octets| f64::from_le_bytes(*octets) as f32)
        } else {
            rest.first_chunk().map_or(f32::NAN, |octets| f32::from_le_bytes(*octets))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 3] = ["x", "y", "z"];

    fn fields(offsets: [u32; 3], number: Number) -> impl Iterator<Item = Field<'static>> + Clone {
        NAMES.into_iter().zip(offsets).map(move |(name, offset)| Field { name, offset, number })
    }

    fn shape(point_step: u32, row_step: u32, width: u32, height: u32) -> Shape {
        Shape { point_step, row_step, width, height }
    }

    fn floats(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn fields_may_have_any_order_and_rows_padding() {
        // Two rows of a point: intensity, z, y, x, and one number of padding after each row.
        let data = floats(&[9.0, 3.0, 2.0, 1.0, 0.0, 9.0, 6.0, 5.0, 4.0, 0.0]);
        let cloud = Cloud::new(fields([12, 8, 4], Number::Float32), shape(16, 20, 1, 2), &data).unwrap();
        assert_eq!(cloud.points().collect::<Vec<_>>(), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    }

    #[test]
    fn numbers_may_have_64_bits_and_the_length_of_one_row_is_not_used() {
        let data: Vec<u8> = [1.5_f64, -2.5, 3.5].iter().flat_map(|value| value.to_le_bytes()).collect();
        let cloud = Cloud::new(fields([0, 8, 16], Number::Float64), shape(24, 0, 1, 1), &data).unwrap();
        assert_eq!(cloud.points().collect::<Vec<_>>(), [[1.5, -2.5, 3.5]]);
    }

    #[test]
    fn an_empty_cloud_has_no_points() {
        for shape in [shape(16, 0, 0, 1), shape(16, 0, 0, 0), shape(16, 0, 0, 5), shape(16, 0, 7, 0)] {
            let cloud = Cloud::new(fields([0, 4, 8], Number::Float32), shape, &[]).unwrap();
            assert_eq!(cloud.points().count(), 0);
        }
    }

    fn refused(offsets: [u32; 3], number: Number, shape: Shape, data: &[u8]) -> Option<CloudError> {
        Cloud::new(fields(offsets, number), shape, data).err()
    }

    #[test]
    fn contradictions_are_refused() {
        let usual = |shape| refused([0, 4, 8], Number::Float32, shape, &[0; 64]);
        assert_eq!(usual(shape(16, 64, 4, 1)), None);
        assert_eq!(usual(shape(16, 80, 5, 1)), Some(CloudError::Shape));
        assert_eq!(usual(shape(16, 16, 2, 2)), Some(CloudError::Shape));
        assert_eq!(usual(shape(0, 0, 4, 1)), Some(CloudError::Shape));
        assert_eq!(usual(shape(8, 8, 1, 1)), Some(CloudError::Shape));
        assert_eq!(usual(shape(16, u32::MAX, u32::MAX, u32::MAX)), Some(CloudError::TooManyPoints));
        assert_eq!(refused([0, 4, u32::MAX], Number::Float32, shape(16, 16, 1, 1), &[0; 16]), Some(CloudError::Shape));
        assert_eq!(refused([0, 4, 8], Number::Other, shape(16, 16, 1, 1), &[0; 16]), Some(CloudError::Fields));
        let two = fields([0, 4, 8], Number::Float32).take(2);
        assert_eq!(Cloud::new(two, shape(16, 16, 1, 1), &[0; 16]).err(), Some(CloudError::Fields));
    }
}
