//! The bodies of a scene and where a ray enters them.

use crate::geometry::Rectangle;

/// A body that reflects rays.
#[derive(Clone, Debug)]
pub(crate) struct Solid {
    pub(crate) shape: Shape,
    /// The vehicle of which it is a part.
    pub(crate) vehicle: Option<u16>,
    /// Share of the light that it reflects, 0 to 1.
    pub(crate) reflectivity: f32,
    /// Share of the rays that pass through it, 0 to 1.
    pub(crate) leak: f32,
    /// Velocity along the road in metres per second.
    pub(crate) velocity: f32,
}

/// The shape of a body. Positions and lengths are in metres, `bottom` and `top` are heights.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    Block {
        base: Rectangle,
        bottom: f32,
        top: f32,
    },
    /// Leaves: a ray goes in as far as an exponential distribution with this mean.
    Hedge {
        base: Rectangle,
        bottom: f32,
        top: f32,
        depth: f32,
    },
    Cylinder {
        x: f32,
        y: f32,
        radius: f32,
        bottom: f32,
        top: f32,
    },
    /// An ellipsoid of leaves.
    Crown {
        x: f32,
        y: f32,
        z: f32,
        radius: f32,
        half_height: f32,
        depth: f32,
    },
}

impl Solid {
    pub(crate) const fn new(shape: Shape, reflectivity: f32) -> Self {
        Self { shape, vehicle: None, reflectivity, leak: 0.0, velocity: 0.0 }
    }

    pub(crate) const fn leaking(mut self, leak: f32) -> Self {
        self.leak = leak;
        self
    }
}

impl Shape {
    /// Returns the position of its centre.
    pub(crate) const fn centre(&self) -> [f32; 2] {
        match self {
            Self::Block { base, .. } | Self::Hedge { base, .. } => [base.x, base.y],
            Self::Cylinder { x, y, .. } | Self::Crown { x, y, .. } => [*x, *y],
        }
    }

    /// Returns the shape after a shift along the road, seen from a sensor at a height above the origin whose frame is turned by an angle.
    pub(crate) fn seen_from(mut self, shift: f32, height: f32, turn: f32) -> Self {
        let (sine, cosine) = turn.sin_cos();
        let turned = |x: f32, y: f32| ((x + shift) * cosine - y * sine, (x + shift) * sine + y * cosine);
        match &mut self {
            Self::Block { base, bottom, top } | Self::Hedge { base, bottom, top, .. } => {
                (base.x, base.y) = turned(base.x, base.y);
                base.yaw += turn;
                *bottom -= height;
                *top -= height;
            }
            Self::Cylinder { x, y, bottom, top, .. } => {
                (*x, *y) = turned(*x, *y);
                *bottom -= height;
                *top -= height;
            }
            Self::Crown { x, y, z, .. } => {
                (*x, *y) = turned(*x, *y);
                *z -= height;
            }
        }
        self
    }
}

/// The interval of a ray inside a body, in metres from the sensor along the ground.
pub(crate) struct Passage {
    pub(crate) enters: f32,
    pub(crate) leaves: f32,
}

/// Returns the passage through a block. `ray` is the horizontal direction in the frame of the block, `rise` the height per metre, and
/// `sensor` the position of the sensor in that frame.
pub(crate) fn through_block(size: [f32; 2], heights: [f32; 2], ray: [f32; 2], rise: f32, sensor: [f32; 2]) -> Passage {
    let slab = |low: f32, high: f32, direction: f32| {
        let (a, b) = (low / direction, high / direction);
        (a.min(b), a.max(b))
    };
    let (x_in, x_out) = slab(-size[0] / 2.0 - sensor[0], size[0] / 2.0 - sensor[0], ray[0]);
    let (y_in, y_out) = slab(-size[1] / 2.0 - sensor[1], size[1] / 2.0 - sensor[1], ray[1]);
    let (z_in, z_out) = slab(heights[0], heights[1], rise);
    Passage { enters: x_in.max(y_in).max(z_in), leaves: x_out.min(y_out).min(z_out) }
}
