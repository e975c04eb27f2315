//! The bodies of cars, vans and trucks.

use viaduct_units::Rng;

use super::draw::Draw;
use super::solid::{Shape, Solid};
use crate::boxes::{Box3, VehicleClass};
use crate::geometry::Rectangle;

/// A part of a vehicle: position of its centre along the vehicle, size, and heights above the ground.
struct Part {
    along: f32,
    length: f32,
    width: f32,
    bottom: f32,
    top: f32,
    leak: f32,
}

/// Returns the bodies of a vehicle.
pub(crate) fn solids(extent: &Box3, class: VehicleClass, number: u16, velocity: f32, rng: &mut Rng) -> Vec<Solid> {
    let leak = [0.0, 0.1, 0.4].get(rng.weighted(&[0.5, 0.35, 0.15])).copied().unwrap_or(0.0);
    let reflectivity = rng.uniform(0.1, 0.9);
    let parts = match class {
        VehicleClass::Car => car(extent, leak, rng),
        VehicleClass::Van => van(extent, leak, rng),
        VehicleClass::Truck => truck(extent, leak, rng),
    };
    let ground = extent.z - extent.height / 2.0;
    let (sine, cosine) = extent.base.yaw.sin_cos();
    let solid = |part: Part| {
        let base = Rectangle {
            x: extent.base.x + part.along * cosine,
            y: extent.base.y + part.along * sine,
            length: part.length,
            width: part.width,
            yaw: extent.base.yaw,
        };
        let shape = Shape::Block { base, bottom: ground + part.bottom, top: ground + part.top };
        Solid { vehicle: Some(number), velocity, ..Solid::new(shape, reflectivity).leaking(part.leak) }
    };
    parts.into_iter().map(solid).collect()
}

/// Returns bumpers, body, a cabin in two steps, and wheels.
fn car(extent: &Box3, leak: f32, rng: &mut Rng) -> Vec<Part> {
    let (length, width, height) = (extent.base.length, extent.base.width, extent.height);
    let clearance = rng.uniform(0.15, 0.3);
    let waist = height * rng.uniform(0.52, 0.62);
    let cabin = length * rng.uniform(0.5, 0.62);
    let is_hatchback = rng.chance(0.5);
    let cabin_at = if is_hatchback { -length * 0.44 + cabin / 2.0 } else { -length * rng.uniform(0.02, 0.1) };
    let glass = rng.uniform(0.2, 0.7);
    let part = |along, length, width, bottom, top, leak| Part { along, length, width, bottom, top, leak };
    let mut parts = vec![
        part(0.0, length, width * 0.84, clearance + 0.1, waist * 0.8, leak),
        part(0.0, length * 0.93, width, clearance, waist * 0.93, leak),
        part(0.0, length * 0.86, width * 0.92, clearance, waist, leak),
        part(cabin_at, cabin, width * 0.88, waist, waist + (height - waist) * 0.55, glass),
        part(cabin_at - 0.02 * length, cabin * 0.78, width * 0.78, waist, height, (leak + 0.1).min(0.5)),
    ];
    parts.extend([-0.3, 0.3].map(|share| part(share * length, 0.6, width * 0.98, 0.0, 0.4, 0.2)));
    parts
}

/// Returns the body, the load space with its windows, and wheels.
fn van(extent: &Box3, leak: f32, rng: &mut Rng) -> Vec<Part> {
    let (length, width, height) = (extent.base.length, extent.base.width, extent.height);
    let clearance = rng.uniform(0.15, 0.3);
    let nose = length * rng.uniform(0.1, 0.22);
    let part = |along, length, width, bottom, top, leak| Part { along, length, width, bottom, top, leak };
    let upper = length - nose - 0.15;
    let upper_at = -length / 2.0 + 0.05 + upper / 2.0;
    let mut parts = vec![
        part(0.0, length, width * 0.88, clearance, height * 0.48, leak),
        part(-nose / 2.0, length - nose - 0.1, width, clearance, height * 0.62, leak),
        part(upper_at, upper, width * 0.93, height * 0.5, height, (leak + 0.15).min(0.5)),
    ];
    parts.extend([-0.3, 0.3].map(|share| part(share * length, 0.65, width * 0.98, 0.0, 0.4, 0.2)));
    parts
}

/// Returns cabin, load and frame, or one long body as that of a bus, and wheels.
fn truck(extent: &Box3, leak: f32, rng: &mut Rng) -> Vec<Part> {
    let (length, width, height) = (extent.base.length, extent.base.width, extent.height);
    let clearance = rng.uniform(0.15, 0.3);
    let part = |along, length, width, bottom, top, leak| Part { along, length, width, bottom, top, leak };
    let mut parts = if rng.chance(0.5) {
        let cabin = rng.uniform(1.8, 2.4);
        let cabin_top = height * rng.uniform(0.75, 1.0);
        vec![
            part(length / 2.0 - cabin / 2.0, cabin, width * 0.95, clearance + 0.1, cabin_top, leak),
            part(-cabin / 2.0 - 0.2, length - cabin - 0.4, width, rng.uniform(0.5, 1.1), height, leak),
            part(-cabin / 2.0, length - cabin, width * 0.5, 0.4, 1.1, leak),
        ]
    } else {
        vec![part(0.0, length, width, clearance + 0.1, height, leak)]
    };
    parts.extend([-0.38, -0.3, 0.36].map(|share| part(share * length, 0.9, width * 0.95, 0.0, 0.9, 0.2)));
    parts
}
