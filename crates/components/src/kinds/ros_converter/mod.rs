//! Kind `ros_converter`: messages of ROS 1, ROS 2 and the bus become messages of another of these.
//!
//! Between ROS 1 and ROS 2, all types are converted whose definitions are known: those that the sender sends, and the common interfaces
//! ([`viaduct_ros::definitions`]). The other definition is that of the common type, or made from the known one: `frameID` of ROS 1 is
//! `frame_id` in ROS 2. A field that the other definition does not have is dropped, or zero; the log names it once.
//!
//! Between ROS and the bus:
//!
//! | ROS | bus | remarks |
//! |---|---|---|
//! | `sensor_msgs/PointCloud2` | `foxglove.PointCloud` | rows without padding; a field of several numbers becomes several fields, `name_0` and so on. To ROS: one row, only without `pose` |
//! | `sensor_msgs/Image` | `foxglove.RawImage` | numbers of several octets only in little-endian order |
//! | `sensor_msgs/CompressedImage` | `foxglove.CompressedImage` | `format` is `jpeg`, `png`, or the text of ROS |
//! | `sensor_msgs/NavSatFix` | `foxglove.LocationFix` | degrees, metres. Without a fix, the position is NaN; a position of NaN becomes a message without a fix |
//! | `nav_msgs/Odometry` | `viaduct.vehicle.VehicleState` | speed, rate of turn and heading, without position. Axes as in REP 103: X forwards in the child frame, X to the east in the frame of the header |
//! | `geometry_msgs/Twist`, from ROS also `TwistStamped` | `viaduct.vehicle.DriveCommand` | m/s and rad/s become speed, gear and steering angle of a bicycle model (`wheelbase_m`). Only commands with a speed and the gear `DRIVE` or `REVERSE` become a twist |
//!
//! A time of 0 in ROS is an absent time on the bus, and the reverse. A value that the source does not have is absent on the bus, and NaN in ROS.
//!
//! Counters: `taken` = `converted` + `dropped`, by reason:
//!
//! | reason | meaning |
//! |---|---|
//! | `type` | there is no conversion for the type, or its definition is not known |
//! | `malformed` | the message is not one of its type |
//! | `value` | a value has no counterpart in the other type |
//! | `output_type` | the output topic has another type |
//! | `no_buffer` | all buffers of the output's pool are in use, or they are too small |
//! | `queue_full` | a reliable subscriber had no room |

mod cloud;
pub(in crate::kinds) mod conversion;
pub(in crate::kinds) mod fields;
mod image;
mod motion;
mod position;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{Bus, Counter, Qos, TypeInfo, UntypedSample};
use viaduct_messages::topic;
use viaduct_node::{Component, Context, Edges, SettingError, StartError};

use conversion::{Convert, Failure};

const ROUTES_MAX: usize = 64;
const QUEUE_LIMIT: usize = 1000;
/// Range of the wheelbase in metres.
const WHEELBASE_M: std::ops::RangeInclusive<f64> = 0.1..=20.0;

/// Settings of `ros_converter`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RosConverterSettings {
    /// Topics to convert, at most 64.
    pub routes: Vec<RouteSettings>,
    /// Distance between the axles in metres, 0.1 to 20, for `geometry_msgs/Twist`.
    #[serde(default = "default_wheelbase_m")]
    #[schemars(range(min = 0.1, max = 20.0))]
    pub wheelbase_m: f64,
}

/// A topic whose messages are converted.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteSettings {
    /// Topic of the bus with the messages: `ros1/points`. Its type can change while the node runs.
    pub from: String,
    /// Topic of the bus for the converted messages: `lidar/points`.
    pub to: String,
    /// Format of the converted messages.
    pub format: Format,
    /// Messages that wait for their conversion, 1 to 1000. A new message replaces the oldest one if the queue is full.
    #[serde(default = "default_queue")]
    #[schemars(range(min = 1, max = 1000))]
    pub queue: usize,
}

/// Format of the messages of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Messages of ROS 1, for `ros1_node`.
    Ros1,
    /// Messages of ROS 2 (CDR), for `ros2_node`.
    Ros2,
    /// Messages of the bus (protobuf), for other components.
    Bus,
}

const fn default_wheelbase_m() -> f64 {
    2.8
}

const fn default_queue() -> usize {
    8
}

/// The converter.
pub struct RosConverter {
    routes: Vec<Route>,
    counters: Counters,
}

struct Counters {
    taken: Counter,
    converted: Counter,
    dropped: [Counter; Failure::ALL.len()],
}

/// A route with the conversion of its current type.
struct Route {
    settings: RouteSettings,
    wheelbase_m: f64,
    bus: Bus,
    component: String,
    current: Option<(Arc<TypeInfo>, Result<Convert, Failure>)>,
}

impl Component for RosConverter {
    type Settings = RosConverterSettings;

    fn check(settings: &RosConverterSettings) -> Result<(), SettingError> {
        let count = settings.routes.len();
        if !(1..=ROUTES_MAX).contains(&count) {
            return Err(SettingError::new("routes", format!("{count} routes; 1 to {ROUTES_MAX} are allowed")));
        }
        if !WHEELBASE_M.contains(&settings.wheelbase_m) {
            return Err(SettingError::new("wheelbase_m", format!("{} is not within 0.1 to 20", settings.wheelbase_m)));
        }
        for (index, route) in settings.routes.iter().enumerate() {
            let wrong = |key: &str, problem: String| SettingError::new(format!("routes.{index}.{key}"), problem);
            topic::check_name(&route.from).map_err(|error| wrong("from", error.to_string()))?;
            topic::check_name(&route.to).map_err(|error| wrong("to", error.to_string()))?;
            if settings.routes.iter().any(|other| other.from == route.to) {
                return Err(wrong("to", format!("`{}` is converted too, so messages could go in a circle", route.to)));
            }
            if settings.routes.iter().take(index).any(|other| other.to == route.to) {
                return Err(wrong("to", format!("`{}` is the output of another route", route.to)));
            }
            if !(1..=QUEUE_LIMIT).contains(&route.queue) {
                return Err(wrong("queue", format!("{} is not within 1 to {QUEUE_LIMIT}", route.queue)));
            }
        }
        Ok(())
    }

    fn edges(settings: &RosConverterSettings) -> Edges {
        settings.routes.iter().enumerate().fold(Edges::default(), |edges, (index, route)| {
            edges
                .reads_untyped(&format!("routes.{index}.from"), &route.from, Qos::keep_last(route.queue))
                .publishes_untyped(&format!("routes.{index}.to"), &route.to, conversion::OFFERED)
        })
    }

    fn start(settings: RosConverterSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let mut routes = Vec::new();
        for (index, route) in settings.routes.into_iter().enumerate() {
            let samples = context.subscribe_untyped(&route.from, Qos::keep_last(route.queue))?;
            context.on_untyped(samples, move |converter, sample, _| converter.take(index, sample));
            routes.push(Route {
                settings: route,
                wheelbase_m: settings.wheelbase_m,
                bus: context.bus().clone(),
                component: context.name().to_owned(),
                current: None,
            });
        }
        let counters = Counters {
            taken: context.counter("taken"),
            converted: context.counter("converted"),
            dropped: Failure::ALL.map(|failure| context.counter_for("dropped", failure.reason())),
        };
        Ok(Self { routes, counters })
    }
}

impl RosConverter {
    #[expect(clippy::needless_pass_by_value, reason = "a callback owns its sample")]
    fn take(&mut self, index: usize, sample: UntypedSample) {
        let Some(route) = self.routes.get_mut(index) else { return };
        self.counters.taken.increment();
        match route.convert(&sample) {
            Ok(()) => self.counters.converted.increment(),
            Err(failure) => self.counters.dropped[failure as usize].increment(),
        }
    }
}

impl Route {
    fn convert(&mut self, sample: &UntypedSample) -> Result<(), Failure> {
        let info = sample.type_info();
        let is_current = |(known, _): &(Arc<TypeInfo>, _)| {
            Arc::ptr_eq(known, info) || (known.is_same(info) && known.schema() == info.schema())
        };
        if !self.current.as_ref().is_some_and(is_current) {
            // The publisher of the earlier type closes first: a topic has one type.
            self.current = None;
            self.current = Some((Arc::clone(info), self.open(info)));
        }
        match &mut self.current {
            Some((_, Ok(convert))) => convert(sample),
            Some((_, Err(failure))) if *failure != Failure::OutputType => Err(*failure),
            // The other publisher of the output may have gone.
            _ => {
                self.current = None;
                Err(Failure::OutputType)
            }
        }
    }

    fn open(&self, info: &TypeInfo) -> Result<Convert, Failure> {
        let Self { settings, wheelbase_m, bus, component, .. } = self;
        let output = conversion::Output { bus, topic: &settings.to, component, wheelbase_m: *wheelbase_m };
        let opened = conversion::open(info, settings.format, &output);
        if let Err(failure) = &opened {
            let (from, to, reason) = (&settings.from, &settings.to, failure.reason());
            tracing::warn!(%component, %from, %to, r#type = %info, reason, "messages of this type are not converted");
        }
        opened
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(from: &str, to: &str) -> RouteSettings {
        RouteSettings { from: from.to_owned(), to: to.to_owned(), format: Format::Bus, queue: 8 }
    }

    #[test]
    fn invalid_settings_are_rejected_with_the_key() {
        let refused = |routes: Vec<RouteSettings>| {
            let settings = RosConverterSettings { routes, wheelbase_m: 2.8 };
            RosConverter::check(&settings).err().map(|error| error.key)
        };
        assert_eq!(refused(vec![route("a", "b"), route("a", "c")]), None);
        assert_eq!(refused(vec![]).as_deref(), Some("routes"));
        assert_eq!(refused(vec![route("a/*", "b")]).as_deref(), Some("routes.0.from"));
        assert_eq!(refused(vec![route("a", "")]).as_deref(), Some("routes.0.to"));
        assert_eq!(refused(vec![route("a", "a")]).as_deref(), Some("routes.0.to"));
        assert_eq!(refused(vec![route("a", "b"), route("b", "c")]).as_deref(), Some("routes.0.to"));
        assert_eq!(refused(vec![route("a", "c"), route("b", "c")]).as_deref(), Some("routes.1.to"));
        assert_eq!(refused(vec![RouteSettings { queue: 0, ..route("a", "b") }]).as_deref(), Some("routes.0.queue"));
        let settings = RosConverterSettings { routes: vec![route("a", "b")], wheelbase_m: f64::NAN };
        assert_eq!(RosConverter::check(&settings).unwrap_err().key, "wheelbase_m");
    }
}
