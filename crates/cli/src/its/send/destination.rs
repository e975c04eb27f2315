//! Parses positions and destinations of the command line.

use viaduct_its::Destination;
use viaduct_its::access::AddressError;
use viaduct_its::geonet::{Area, Shape};
use viaduct_units::{Degrees, Metres, Position};

/// Longest distance of an area in metres: the field has 16 bits on the wire.
const DISTANCE_MAX_M: f64 = 65_535.0;

/// Parses a position: `LAT,LON` in degrees.
pub(super) fn parse_position(text: &str) -> Result<Position, String> {
    let (latitude, longitude) = text.split_once(',').ok_or("expected LAT,LON in degrees")?;
    position(latitude, longitude)
}

fn position(latitude: &str, longitude: &str) -> Result<Position, String> {
    let latitude = within("the latitude", latitude, -90.0, 90.0)?;
    Ok(Position::new(latitude, within("the longitude", longitude, -180.0, 180.0)?))
}

/// Parses an area: `gbc:` or `gac:`, then `LAT,LON` and a shape (`r=METRES`, `rectangle=AxB` or `ellipse=AxB`).
pub(super) fn parse_area(text: &str) -> Result<Destination, String> {
    let form = "expected gbc:LAT,LON,r=METRES or gac:..., with r=, rectangle=AxB or ellipse=AxB, and azimuth=DEGREES";
    let (transport, rest) = text.split_once(':').ok_or(form)?;
    let mut parts = rest.split(',');
    let (latitude, longitude) = parts.next().zip(parts.next()).ok_or(form)?;
    let area = Area { centre: position(latitude, longitude)?, shape: shape(parts)?.ok_or(form)? };
    match transport {
        "gbc" => Ok(Destination::Area(area)),
        "gac" => Ok(Destination::AnyIn(area)),
        _ => Err(form.to_owned()),
    }
}

/// Parses the named parts of an area. Returns `None` if none of them is a shape.
fn shape<'a>(parts: impl Iterator<Item = &'a str>) -> Result<Option<Shape>, String> {
    let mut found = None;
    let mut azimuth = Degrees(0.0);
    for part in parts {
        match part.split_once('=') {
            Some(("azimuth", value)) => azimuth = Degrees(within("the azimuth", value, 0.0, 359.0)?),
            Some((name @ ("r" | "rectangle" | "ellipse"), value)) => found = Some((name, value)),
            _ => return Err(format!("`{part}` is not one of r=, rectangle=, ellipse=, azimuth=")),
        }
    }
    let Some((name, value)) = found else { return Ok(None) };
    if name == "r" {
        return Ok(Some(Shape::Circle { radius: distance(value)? }));
    }
    let (a, b) = value
        .split_once('x')
        .ok_or_else(|| format!("`{value}` is not AxB (half of the length of each side in metres)"))?;
    let (a, b) = (distance(a)?, distance(b)?);
    Ok(Some(if name == "rectangle" { Shape::Rectangle { a, b, azimuth } } else { Shape::Ellipse { a, b, azimuth } }))
}

fn distance(text: &str) -> Result<Metres, String> {
    within("a distance", text, 0.0, DISTANCE_MAX_M).map(Metres)
}

fn within(what: &str, text: &str, low: f64, high: f64) -> Result<f64, String> {
    let number = text.trim().parse().ok().filter(|number| (low..=high).contains(number));
    number.ok_or_else(|| format!("{what} `{text}` is not a number from {low} to {high}"))
}

/// Parses a GeoNetworking address: eight octets.
pub(super) fn parse_address(text: &str) -> Result<Destination, AddressError> {
    text.parse().map(Destination::Station)
}

#[cfg(test)]
mod tests {
    use super::*;
    use viaduct_its::geonet::GnAddress;

    #[test]
    fn an_area_has_a_centre_and_a_shape() {
        let centre = Position::new(49.0, -8.4);
        let circle = Shape::Circle { radius: Metres(500.0) };
        assert_eq!(parse_area("gbc:49.0,-8.4,r=500"), Ok(Destination::Area(Area { centre, shape: circle })));
        let (a, b, azimuth) = (Metres(200.0), Metres(50.0), Degrees(45.0));
        let rectangle = Shape::Rectangle { a, b, azimuth };
        let parsed = parse_area("gac:49,-8.4,azimuth=45,rectangle=200x50");
        assert_eq!(parsed, Ok(Destination::AnyIn(Area { centre, shape: rectangle })));
        let ellipse = Shape::Ellipse { a, b, azimuth: Degrees(0.0) };
        assert_eq!(parse_area("gbc:49,-8.4,ellipse=200x50"), Ok(Destination::Area(Area { centre, shape: ellipse })));
    }

    #[test]
    fn the_error_names_the_invalid_part_of_an_area() {
        for (text, expected) in [
            ("gbc", "gbc:LAT,LON"),
            ("tsb:49,8,r=1", "gbc:LAT,LON"),
            ("gbc:49,8", "r=METRES"),
            ("gbc:91,8,r=1", "the latitude `91` is not a number from -90 to 90"),
            ("gbc:49,8,r=70000", "a distance `70000`"),
            ("gbc:49,8,r=NaN", "a distance `NaN`"),
            ("gbc:49,8,rectangle=200", "`200` is not AxB"),
            ("gbc:49,8,radius=5", "`radius=5` is not one of"),
            ("gbc:49,8,r=5,azimuth=400", "the azimuth `400`"),
        ] {
            let error = parse_area(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn an_address_has_eight_octets() {
        let address = GnAddress([0x94, 0, 2, 0, 0, 0, 3, 0xF8]);
        assert_eq!(parse_address("94:00:02:00:00:00:03:f8"), Ok(Destination::Station(address)));
        assert_eq!(parse_address("94-00-02-00-00-00-03-f8"), Ok(Destination::Station(address)));
        for bad in ["", "94:00", "94:00:02:00:00:00:03:f8:00", "94:00:02:00:00:00:03:+8"] {
            assert!(parse_address(bad).is_err(), "{bad}");
        }
    }
}
