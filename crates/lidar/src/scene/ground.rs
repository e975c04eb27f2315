//! The surface on which everything stands.

use std::f32::consts::TAU;

/// The ground: a road with kerbs and banks on a tilted, undulating plane. Heights are relative to the origin of the scene.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ground {
    /// Rise per metre along and across the road.
    pub(crate) slope: [f32; 2],
    /// Undulations along and across the road.
    pub(crate) waves: [Wave; 2],
    /// Edges of the road across it, in metres: right, left.
    pub(crate) road: [f32; 2],
    /// Height of the kerb in metres.
    pub(crate) kerb: f32,
    /// Rise per metre beside the road, up to 10 m from it.
    pub(crate) bank: f32,
    /// Position of a crossing road, along this one.
    pub(crate) crossing: Option<f32>,
}

/// An undulation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wave {
    pub(crate) amplitude: f32,
    /// Waves per metre, times tau.
    pub(crate) rate: f32,
    pub(crate) phase: f32,
}

impl Wave {
    pub(crate) fn new(amplitude: f32, length: f32, phase: f32) -> Self {
        Self { amplitude, rate: TAU / length, phase }
    }

    fn at(&self, position: f32) -> f32 {
        if self.amplitude == 0.0 {
            return 0.0;
        }
        self.amplitude * ((position * self.rate + self.phase).sin() - self.phase.sin())
    }
}

/// Half the width of a crossing road in metres.
const CROSSING_HALF_WIDTH_M: f32 = 4.5;

impl Ground {
    /// Returns the height at a position.
    pub(crate) fn height(&self, x: f32, y: f32) -> f32 {
        let [right, left] = self.road;
        let beside = y < right || y > left;
        let crossed = self.crossing.is_some_and(|at| (x - at).abs() <= CROSSING_HALF_WIDTH_M);
        let kerb = if beside && !crossed { self.kerb } else { 0.0 };
        let off_road = (right - y - 2.0).max(y - left - 2.0).clamp(0.0, 10.0);
        let plane = self.slope[0] * x + self.slope[1] * y;
        plane + self.waves[0].at(x) + self.waves[1].at(y) + kerb + self.bank * off_road
    }
}
