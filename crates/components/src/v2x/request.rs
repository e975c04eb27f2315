//! Conversion of send requests: from the request of an application to the bus, and from the bus to the station.

use std::time::Duration;

use bytes::Bytes;
use viaduct_its::geonet::{Area, GnAddress, Shape, TrafficClass};
use viaduct_its::{Destination, Repetition, SendRequest};
use viaduct_messages::viaduct::its as bus;
use viaduct_messages::viaduct::its::v2x_send_request::Destination as BusDestination;
use viaduct_messages::viaduct::its::{V2xSendRequest, area};
use viaduct_units::{Degrees, Metres, Position, StationId};

use super::message::{message_kind, message_type};

/// Reason why a request on the bus is invalid. Its publisher is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("no station sends messages of the type `{0}`")]
    Type(&'static str),
    #[error("hops: expected 1 to 255")]
    Hops,
    #[error("area: expected a centre on earth, and one of circle, rectangle, ellipse with finite sizes")]
    Area,
    #[error("station: expected a GeoNetworking address of eight octets")]
    Station,
    #[error("traffic_class: expected 0 to 255")]
    TrafficClass,
    #[error("{0}: expected finite seconds above 0")]
    Seconds(&'static str),
}

/// Converts a request to a message of the bus. The caller adds `reply_to`.
pub(crate) fn to_bus(request: &SendRequest) -> V2xSendRequest {
    let defaults = SendRequest::single_hop(request.kind, Bytes::new());
    let default_lifetime = SendRequest::default_lifetime(request.kind, request.destination, request.repetition);
    V2xSendRequest {
        r#type: message_type(request.kind).into(),
        payload: request.payload.clone(),
        destination: destination_to_bus(request.destination),
        traffic_class: (request.traffic_class != defaults.traffic_class).then_some(request.traffic_class.0.into()),
        lifetime_s: (request.lifetime != default_lifetime).then(|| request.lifetime.duration().as_secs_f64()),
        repetition: request.repetition.map(|repetition| bus::Repetition {
            interval_s: repetition.interval.as_secs_f64(),
            duration_s: repetition.duration.as_secs_f64(),
        }),
        reply_to: None,
    }
}

fn destination_to_bus(destination: Destination) -> Option<BusDestination> {
    match destination {
        Destination::SingleHop => None,
        Destination::Hops(hops) => Some(BusDestination::Hops(hops.into())),
        Destination::Area(area) => Some(BusDestination::Area(area_to_bus(&area))),
        Destination::AnyIn(area) => Some(BusDestination::AnyIn(area_to_bus(&area))),
        Destination::Station(address) => Some(BusDestination::Station(Bytes::copy_from_slice(&address.0))),
    }
}

fn area_to_bus(area: &Area) -> bus::Area {
    let oblong = |a: Metres, b: Metres, azimuth: Degrees| bus::Oblong {
        a_m: a.value(),
        b_m: b.value(),
        azimuth_deg: azimuth.value(),
    };
    let shape = match area.shape {
        Shape::Circle { radius } => area::Shape::Circle(bus::Circle { radius_m: radius.value() }),
        Shape::Rectangle { a, b, azimuth } => area::Shape::Rectangle(oblong(a, b, azimuth)),
        Shape::Ellipse { a, b, azimuth } => area::Shape::Ellipse(oblong(a, b, azimuth)),
    };
    let centre = bus::Position {
        latitude_deg: area.centre.latitude.value(),
        longitude_deg: area.centre.longitude.value(),
        altitude_m: None,
    };
    bus::Area { centre: Some(centre), shape: Some(shape) }
}

/// Converts a message of the bus to a request. Absent members have the defaults of the message type, and a station ID of 0 in the
/// payload is replaced by the station's own.
pub(crate) fn from_bus(request: &V2xSendRequest, station_id: StationId) -> Result<SendRequest, RequestError> {
    let kind = message_kind(request.r#type()).ok_or(RequestError::Type(request.r#type().topic_level()))?;
    let defaults = SendRequest::single_hop(kind, request.payload.clone()).from_station(station_id);
    let traffic_class = request.traffic_class.map(u8::try_from).transpose().map_err(|_| RequestError::TrafficClass)?;
    let lifetime = request.lifetime_s.map(|seconds| duration("lifetime_s", seconds)).transpose()?;
    let destination = request.destination.as_ref().map(destination_from_bus).transpose()?;
    let destination = destination.unwrap_or(defaults.destination);
    let repetition = request.repetition.as_ref().map(repetition_from_bus).transpose()?;
    let default_lifetime = || SendRequest::default_lifetime(kind, destination, repetition);
    Ok(SendRequest {
        destination,
        traffic_class: traffic_class.map_or(defaults.traffic_class, TrafficClass),
        lifetime: lifetime
            .map_or_else(default_lifetime, |given| SendRequest::requested_lifetime(given, destination, repetition)),
        repetition,
        ..defaults
    })
}

fn destination_from_bus(destination: &BusDestination) -> Result<Destination, RequestError> {
    Ok(match destination {
        BusDestination::Hops(hops) => match u8::try_from(*hops) {
            Ok(hops @ 1..) => Destination::Hops(hops),
            _ => return Err(RequestError::Hops),
        },
        BusDestination::Area(area) => Destination::Area(area_from_bus(area)?),
        BusDestination::AnyIn(area) => Destination::AnyIn(area_from_bus(area)?),
        BusDestination::Station(octets) => {
            Destination::Station(GnAddress(octets[..].try_into().map_err(|_| RequestError::Station)?))
        }
    })
}

fn area_from_bus(area: &bus::Area) -> Result<Area, RequestError> {
    let (Some(centre), Some(shape)) = (&area.centre, &area.shape) else {
        return Err(RequestError::Area);
    };
    let on_earth = centre.latitude_deg.abs() <= 90.0 && centre.longitude_deg.abs() <= 180.0;
    let (shape, sizes) = match shape {
        area::Shape::Circle(circle) => (Shape::Circle { radius: Metres(circle.radius_m) }, [circle.radius_m; 2]),
        area::Shape::Rectangle(oblong) => {
            let (a, b, azimuth) = oblong_from_bus(oblong)?;
            (Shape::Rectangle { a, b, azimuth }, [oblong.a_m, oblong.b_m])
        }
        area::Shape::Ellipse(oblong) => {
            let (a, b, azimuth) = oblong_from_bus(oblong)?;
            (Shape::Ellipse { a, b, azimuth }, [oblong.a_m, oblong.b_m])
        }
    };
    if !on_earth || sizes.iter().any(|size| !size.is_finite() || *size < 0.0) {
        return Err(RequestError::Area);
    }
    Ok(Area { centre: Position::new(centre.latitude_deg, centre.longitude_deg), shape })
}

fn oblong_from_bus(oblong: &bus::Oblong) -> Result<(Metres, Metres, Degrees), RequestError> {
    if !oblong.azimuth_deg.is_finite() {
        return Err(RequestError::Area);
    }
    Ok((Metres(oblong.a_m), Metres(oblong.b_m), Degrees(oblong.azimuth_deg)))
}

fn repetition_from_bus(repetition: &bus::Repetition) -> Result<Repetition, RequestError> {
    Ok(Repetition {
        interval: duration("repetition.interval_s", repetition.interval_s)?,
        duration: duration("repetition.duration_s", repetition.duration_s)?,
    })
}

fn duration(what: &'static str, seconds: f64) -> Result<Duration, RequestError> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(RequestError::Seconds(what)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use viaduct_its::facilities::MessageKind;
    use viaduct_its::geonet::Lifetime;

    fn request(destination: Destination) -> SendRequest {
        let payload = Bytes::from_static(&[2, 2, 0, 0, 0, 9, 7]);
        SendRequest {
            destination,
            traffic_class: TrafficClass(9),
            lifetime: Lifetime::from_duration(Duration::from_secs(20)),
            repetition: Some(Repetition { interval: Duration::from_millis(250), duration: Duration::from_secs(4) }),
            ..SendRequest::single_hop(MessageKind::Cam, payload)
        }
    }

    #[test]
    fn a_request_crosses_the_bus_unchanged() {
        let centre = Position::new(48.0, 11.0);
        let (a, b, azimuth) = (Metres(300.0), Metres(20.0), Degrees(45.0));
        for destination in [
            Destination::SingleHop,
            Destination::Hops(3),
            Destination::Area(Area { centre, shape: Shape::Circle { radius: Metres(500.0) } }),
            Destination::Area(Area { centre, shape: Shape::Ellipse { a, b, azimuth } }),
            Destination::AnyIn(Area { centre, shape: Shape::Rectangle { a, b, azimuth } }),
            Destination::Station(GnAddress([1, 2, 3, 4, 5, 6, 7, 8])),
        ] {
            let request = request(destination);
            assert_eq!(from_bus(&to_bus(&request), StationId(5)), Ok(request));
        }
        let seconds = |interval, duration| {
            let of = Duration::from_secs;
            Some(Repetition { interval: of(interval), duration: of(duration) })
        };
        let three_hops = Destination::Hops(3);
        let lifetime = SendRequest::default_lifetime(MessageKind::Cam, three_hops, seconds(1, 30));
        let repeated = SendRequest { lifetime, repetition: seconds(1, 30), ..request(three_hops) };
        assert_eq!(to_bus(&repeated).lifetime_s, None);
        assert_eq!(from_bus(&to_bus(&repeated), StationId(5)), Ok(repeated));
        let plain = SendRequest::single_hop(MessageKind::Cam, Bytes::from_static(b"......"));
        assert_eq!(from_bus(&to_bus(&plain), StationId(5)), Ok(plain));
    }

    #[test]
    fn invalid_requests_are_rejected() {
        let good = to_bus(&request(Destination::SingleHop));
        let circle = |radius_m| bus::Area {
            centre: Some(bus::Position::default()),
            shape: Some(area::Shape::Circle(bus::Circle { radius_m })),
        };
        for (request, expected) in [
            (V2xSendRequest { r#type: 0, ..good.clone() }, RequestError::Type("unknown")),
            (V2xSendRequest { destination: Some(BusDestination::Hops(256)), ..good.clone() }, RequestError::Hops),
            (
                V2xSendRequest { destination: Some(BusDestination::Area(circle(f64::NAN))), ..good.clone() },
                RequestError::Area,
            ),
            (
                V2xSendRequest { destination: Some(BusDestination::AnyIn(bus::Area::default())), ..good.clone() },
                RequestError::Area,
            ),
            (
                V2xSendRequest { destination: Some(BusDestination::Station(Bytes::new())), ..good.clone() },
                RequestError::Station,
            ),
            (V2xSendRequest { traffic_class: Some(256), ..good.clone() }, RequestError::TrafficClass),
            (V2xSendRequest { lifetime_s: Some(-1.0), ..good.clone() }, RequestError::Seconds("lifetime_s")),
        ] {
            assert_eq!(from_bus(&request, StationId(1)), Err(expected));
        }
    }
}
