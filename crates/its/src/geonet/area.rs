//! Geographical areas, EN 302 931 V1.1.1.

use viaduct_units::{Degrees, Metres, Position};

/// The area that a packet is for (EN 302 636-4-1, clause 9.8.5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    /// Its middle, to a tenth of a microdegree.
    pub centre: Position,
    /// Its form and size.
    pub shape: Shape,
}

/// Form and size of an area. Distances are whole metres on the wire, 0 to 65 535.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// All points within the radius.
    Circle {
        /// Distance a.
        radius: Metres,
    },
    /// A rectangle around the centre.
    Rectangle {
        /// Distance a: half of the long side.
        a: Metres,
        /// Distance b: half of the short side.
        b: Metres,
        /// Direction of the long side, clockwise from north.
        azimuth: Degrees,
    },
    /// An ellipse around the centre.
    Ellipse {
        /// Distance a: half of the long axis.
        a: Metres,
        /// Distance b: half of the short axis.
        b: Metres,
        /// Direction of the long axis, clockwise from north.
        azimuth: Degrees,
    },
}
