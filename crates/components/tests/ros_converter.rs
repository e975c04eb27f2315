//! `ros_converter`: messages of ROS 1, ROS 2 and the bus, in all directions.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "in a test a panic is the failure")]

#[path = "mqtt/support.rs"]
mod support;

use bytes::Bytes;
use prost_types::Timestamp;
use support::{TestNode, count, eventually};
use viaduct_bus::{Encoded, MessageFormat, Qos, Recv, TypeInfo, UntypedPublisher, UntypedSample, UntypedSubscriber};
use viaduct_messages::foxglove::packed_element_field::NumericType;
use viaduct_messages::foxglove::{CompressedImage, LocationFix, PointCloud, Pose, RawImage, Vector3};
use viaduct_messages::viaduct::vehicle::drive_command::Movement;
use viaduct_messages::viaduct::vehicle::{DriveCommand, Gear, VehicleState};
use viaduct_ros::codec::Encoding;
use viaduct_ros::definitions;
use viaduct_ros::json;
use viaduct_ros::msg::{Dialect, Schema, TypeName};

const QOS: Qos = Qos::keep_last(8);

/// A node that converts the topics `ros1/in`, `ros2/in` and `bus/in` to all formats.
struct Converter {
    node: TestNode,
    outputs: Vec<(&'static str, UntypedSubscriber)>,
}

const OUTPUTS: [&str; 6] = ["ros1/ros2", "ros1/bus", "ros2/ros1", "ros2/bus", "bus/ros1", "bus/ros2"];

impl Converter {
    fn start() -> Self {
        let routes: Vec<String> = OUTPUTS
            .iter()
            .map(|output| {
                let (from, format) = output.split_once('/').unwrap();
                format!("{{ from: {from}/in, to: {output}, format: {format} }}")
            })
            .collect();
        // The node of ROS declares the inputs; no master is there.
        let node = TestNode::start(&format!(
            "node: car\ncomponents:\n  ros:\n    kind: ros1_node\n    settings:\n      master: http://127.0.0.1:1\n      subscriptions:\n        \
             [ {{ from: /a, to: ros1/in }}, {{ from: /b, to: ros2/in }}, {{ from: /c, to: bus/in }} ]\n  \
             converter: {{ kind: ros_converter, settings: {{ wheelbase_m: 2.5, routes: [ {} ] }} }}\n",
            routes.join(", ")
        ));
        let open = |output| (output, node.bus().subscribe_untyped(output, QOS, "test").unwrap());
        let outputs = OUTPUTS.map(open).into_iter().collect();
        Self { node, outputs }
    }

    fn input(&self, topic: &str, info: TypeInfo) -> UntypedPublisher {
        self.node.bus().publisher_untyped(topic, info, QOS, "test").unwrap()
    }

    fn next(&self, output: &str) -> UntypedSample {
        let (_, samples) = self.outputs.iter().find(|(name, _)| *name == output).unwrap();
        match samples.recv_timeout(support::PATIENCE) {
            Recv::Sample(sample) => sample,
            _ => panic!("no sample arrives on {output}"),
        }
    }

    fn count(&self, counter: &str) -> u64 {
        count(&self.node.bus(), "converter", counter)
    }

    /// Publishes the JSON of a message of ROS and returns its message on the bus.
    fn to_bus<M: viaduct_messages::Message + Clone>(&self, name: &str, text: &str) -> M {
        let converted = [Dialect::Ros1, Dialect::Ros2].map(|dialect| {
            let (input, output) =
                if dialect == Dialect::Ros1 { ("ros1/in", "ros1/bus") } else { ("ros2/in", "ros2/bus") };
            let publisher = self.input(input, info(name, dialect));
            publisher.publish(Encoded::from(message(name, dialect, text))).unwrap();
            (*self.next(output).typed::<M>().unwrap()).clone()
        });
        assert_eq!(converted[0].encode_to_vec(), converted[1].encode_to_vec());
        let [one, _] = converted;
        one
    }

    /// Publishes a message on the bus and returns the JSON of its message of ROS, without the sequence number of ROS 1.
    fn to_ros<M: viaduct_messages::Message>(&self, name: &str, message: &M) -> serde_json::Value {
        let publisher = self.input("bus/in", TypeInfo::of::<M>());
        publisher.publish(Encoded::from_message(message)).unwrap();
        let texts = [(Dialect::Ros1, "bus/ros1"), (Dialect::Ros2, "bus/ros2")].map(|(dialect, output)| {
            let sample = self.next(output);
            assert!(sample.type_info().is_same(&info(name, dialect)), "{}", sample.type_info());
            let text = text(name, dialect, &sample.encoded().to_bytes());
            text.replace("\"seq\":0,", "").replace("\"secs\"", "\"sec\"").replace("\"nsecs\"", "\"nanosec\"")
        });
        assert_eq!(texts[0], texts[1]);
        serde_json::from_str(&texts[0]).unwrap()
    }
}

fn schema(name: &str, dialect: Dialect) -> &'static Schema {
    definitions::find(&TypeName::parse(name).unwrap(), dialect).unwrap().schema()
}

fn info(name: &str, dialect: Dialect) -> TypeInfo {
    let text = definitions::find(&TypeName::parse(name).unwrap(), dialect).unwrap().text();
    let schema = schema(name, dialect);
    match dialect {
        Dialect::Ros1 => TypeInfo::foreign(MessageFormat::Ros1, name, Bytes::from(text)).with_schema_id(&schema.md5()),
        // ROS 2 sends no definition.
        Dialect::Ros2 => TypeInfo::foreign(MessageFormat::Ros2, &name.replace('/', "/msg/"), Bytes::new()),
    }
}

const fn encoding(dialect: Dialect) -> Encoding {
    match dialect {
        Dialect::Ros1 => Encoding::Ros1,
        Dialect::Ros2 => Encoding::Cdr,
    }
}

fn message(name: &str, dialect: Dialect, text: &str) -> Bytes {
    json::to_message(schema(name, dialect), encoding(dialect), text.as_bytes()).unwrap()
}

fn text(name: &str, dialect: Dialect, message: &Bytes) -> String {
    String::from_utf8(json::from_message(schema(name, dialect), encoding(dialect), message).unwrap()).unwrap()
}

#[test]
fn messages_pass_between_ros_versions() {
    let converter = Converter::start();
    let header = r#""header":{"stamp":{"sec":5,"nanosec":7},"frame_id":"lidar"}"#;
    let data = "AQID".repeat(400_000);
    for (name, text) in [
        ("std_msgs/String", r#"{"data":"hello"}"#.to_owned()),
        ("sensor_msgs/PointCloud2", format!(r#"{{{header},"width":3,"fields":[{{"name":"x"}}],"data":"{data}"}}"#)),
        ("tf2_msgs/TFMessage", format!(r#"{{"transforms":[{{{header},"child_frame_id":"a"}}]}}"#)),
    ] {
        let (one, two) = (message(name, Dialect::Ros1, &text), message(name, Dialect::Ros2, &text));
        converter.input("ros1/in", info(name, Dialect::Ros1)).publish(Encoded::from(one.clone())).unwrap();
        let sample = converter.next("ros1/ros2");
        assert_eq!(sample.encoded().to_bytes(), two, "{name}");
        assert_eq!(sample.type_info().full_name(), name.replace('/', "/msg/"));
        assert!(sample.type_info().schema_id().starts_with("RIHS01_"));
        converter.input("ros2/in", info(name, Dialect::Ros2)).publish(Encoded::from(two)).unwrap();
        let sample = converter.next("ros2/ros1");
        assert_eq!(sample.encoded().to_bytes(), one, "{name}");
        assert!(sample.type_info().is_same(&info(name, Dialect::Ros1)));
    }
    // A type that is not a common one, whose definition its publisher has sent.
    let own = Schema::parse(Dialect::Ros1, "my_msgs/Own", "time at\nuint8[] data\n").unwrap();
    let text = Bytes::from_static(b"time at\nuint8[] data\n");
    let own = TypeInfo::foreign(MessageFormat::Ros1, "my_msgs/Own", text).with_schema_id(&own.md5());
    let octets = Bytes::from_static(b"\x05\0\0\0\x07\0\0\0\x01\0\0\0\x09");
    converter.input("ros1/in", own).publish(Encoded::from(octets)).unwrap();
    let sample = converter.next("ros1/ros2");
    assert_eq!(sample.encoded().to_bytes()[..], b"\0\x01\0\0\x05\0\0\0\x07\0\0\0\x01\0\0\0\x09"[..]);
    assert!(sample.type_info().schema().starts_with(b"builtin_interfaces/Time at\n"));
    // The origin of a message stays that of its source.
    let publisher = converter.input("ros1/in", info("std_msgs/String", Dialect::Ros1));
    let before = viaduct_bus::clock::tai();
    let meta = viaduct_bus::Meta::from_origin(before);
    publisher.publish_from(meta, Encoded::from(Bytes::from_static(b"\0\0\0\0"))).unwrap();
    assert_eq!(converter.next("ros1/ros2").meta().origin, before);
    assert!(converter.node.stop());
}

#[test]
fn a_message_that_cannot_be_converted_is_counted_with_its_reason() {
    let converter = Converter::start();
    let string = converter.input("ros1/in", info("std_msgs/String", Dialect::Ros1));
    string.publish(Encoded::from(Bytes::from_static(b"\xFF\0\0\0hi"))).unwrap();
    eventually("the message is malformed", || converter.count("dropped") == 2);
    drop(string);
    // A type without a definition, and a time that ROS 2 does not have.
    let unknown = TypeInfo::foreign(MessageFormat::Ros1, "my_msgs/Own", Bytes::new());
    converter.input("ros1/in", unknown).publish(Encoded::from(Bytes::new())).unwrap();
    let late = [u32::MAX.to_le_bytes(), [0; 4]].concat();
    converter.input("ros1/in", info("std_msgs/Time", Dialect::Ros1)).publish(Encoded::from(Bytes::from(late))).unwrap();
    // `ros1/ros2` and `ros1/bus` take three messages each.
    eventually("all are taken", || converter.count("taken") == 6);
    eventually("all are dropped", || converter.count("dropped") == 6);
    // A common type of another release, whose definition is not known.
    let other = info("sensor_msgs/NavSatFix", Dialect::Ros2).with_schema_id(&format!("RIHS01_{}", "0".repeat(64)));
    let fix = message("sensor_msgs/NavSatFix", Dialect::Ros2, "{}");
    converter.input("ros2/in", other).publish(Encoded::from(fix)).unwrap();
    eventually("the other release is dropped", || converter.count("dropped") == 8);
    assert_eq!(converter.count("converted"), 0);
    assert!(converter.node.stop());
}

#[test]
fn clouds() {
    let converter = Converter::start();
    // Two rows of two points with 16 octets each and 4 octets of padding.
    let point = |number: u8| vec![number; 16];
    let rows: Vec<Vec<u8>> = vec![point(1), point(2), vec![0; 4], point(3), point(4), vec![0; 4]];
    let octets: Vec<u8> = rows.concat();
    let list = serde_json::to_string(&octets).unwrap();
    let text = format!(
        r#"{{"header":{{"stamp":{{"sec":5,"nanosec":7}},"frame_id":"lidar"}},"height":2,"width":2,"point_step":16,"row_step":36,
        "fields":[{{"name":"x","offset":0,"datatype":7,"count":1}},{{"name":"ring","offset":4,"datatype":4,"count":2}}],"data":{list}}}"#
    );
    let cloud: PointCloud = converter.to_bus("sensor_msgs/PointCloud2", &text);
    assert_eq!(cloud.data, [point(1), point(2), point(3), point(4)].concat());
    assert_eq!(cloud.timestamp, Some(Timestamp { seconds: 5, nanos: 7 }));
    let fields: Vec<_> = cloud.fields.iter().map(|field| (field.name.as_str(), field.offset, field.r#type())).collect();
    assert_eq!(
        fields,
        [("x", 0, NumericType::Float32), ("ring_0", 4, NumericType::Uint16), ("ring_1", 6, NumericType::Uint16)]
    );

    let json = converter.to_ros("sensor_msgs/PointCloud2", &cloud);
    assert_eq!((&json["height"], &json["width"], &json["row_step"]), (&1.into(), &4.into(), &64.into()));
    assert_eq!(json["fields"][1], serde_json::json!({ "name": "ring_0", "offset": 4, "datatype": 4, "count": 1 }));
    assert_eq!(json["header"], serde_json::json!({ "stamp": { "sec": 5, "nanosec": 7 }, "frame_id": "lidar" }));

    let before = converter.count("dropped");
    let position = Some(Vector3 { x: 1.0, ..Vector3::default() });
    let moved = PointCloud { pose: Some(Pose { position, orientation: None }), ..cloud };
    converter.input("bus/in", TypeInfo::of::<PointCloud>()).publish(Encoded::from_message(&moved)).unwrap();
    eventually("a pose is refused", || converter.count("dropped") == before + 2);
    assert!(converter.node.stop());
}

#[test]
fn images() {
    let converter = Converter::start();
    let text = r#"{"header":{"frame_id":"cam"},"height":1,"width":2,"encoding":"rgb8","step":6,"data":[1,2,3,4,5,6]}"#;
    let image: RawImage = converter.to_bus("sensor_msgs/Image", text);
    assert_eq!(
        (image.width, image.step, image.encoding.as_str(), &image.data[..]),
        (2, 6, "rgb8", &[1, 2, 3, 4, 5, 6][..])
    );
    assert_eq!((image.timestamp, image.frame_id.as_str()), (None, "cam"));
    let json = converter.to_ros("sensor_msgs/Image", &image);
    assert_eq!((&json["data"], &json["is_bigendian"]), (&"AQIDBAUG".into(), &0.into()));

    let text = r#"{"format":"rgb8; jpeg compressed bgr8","data":[255,216]}"#;
    let image: CompressedImage = converter.to_bus("sensor_msgs/CompressedImage", text);
    assert_eq!((image.format.as_str(), &image.data[..]), ("jpeg", &[255, 216][..]));
    assert_eq!(converter.to_ros("sensor_msgs/CompressedImage", &image)["format"], "jpeg");
    assert!(converter.node.stop());
}

#[test]
fn positions() {
    let converter = Converter::start();
    let text = r#"{"status":{"status":0},"latitude":50.5,"longitude":-6.25,"altitude":200.0,"position_covariance_type":2,
        "position_covariance":[1,0,0,0,1,0,0,0,4]}"#;
    let fix: LocationFix = converter.to_bus("sensor_msgs/NavSatFix", text);
    assert_eq!((fix.latitude, fix.longitude, fix.altitude), (50.5, -6.25, 200.0));
    assert_eq!((fix.position_covariance_type, fix.position_covariance[8]), (2, 4.0));
    let json = converter.to_ros("sensor_msgs/NavSatFix", &fix);
    assert_eq!((&json["status"]["status"], &json["latitude"]), (&0.into(), &50.5.into()));

    let lost: LocationFix = converter.to_bus("sensor_msgs/NavSatFix", r#"{"status":{"status":-1},"latitude":50.5}"#);
    assert!(lost.latitude.is_nan() && lost.altitude.is_nan());
    let json = converter.to_ros("sensor_msgs/NavSatFix", &lost);
    assert_eq!((&json["status"]["status"], &json["latitude"]), (&(-1).into(), &"NaN".into()));
    assert!(converter.node.stop());
}

#[test]
fn movement() {
    let converter = Converter::start();
    // To the north, turning to the left.
    let text = r#"{"pose":{"pose":{"orientation":{"z":0.7071067811865476,"w":0.7071067811865476}}},
        "twist":{"twist":{"linear":{"x":13.5},"angular":{"z":0.5}}}}"#;
    let state: VehicleState = converter.to_bus("nav_msgs/Odometry", text);
    assert_eq!((state.speed_mps, state.position.as_ref()), (Some(13.5), None));
    let heading = state.heading_deg.unwrap();
    assert!(heading.min(360.0 - heading) < 1e-9, "{heading}");
    assert!((state.yaw_rate_dps.unwrap() - 28.647_889_756_541_16).abs() < 1e-9);
    let json = converter.to_ros("nav_msgs/Odometry", &state);
    assert_eq!(json["pose"]["pose"]["position"]["x"], "NaN");
    assert!((json["pose"]["pose"]["orientation"]["z"].as_f64().unwrap().abs() - 0.5_f64.sqrt()).abs() < 1e-9);
    let json = converter.to_ros("nav_msgs/Odometry", &VehicleState::default());
    assert_eq!(json["twist"]["twist"]["linear"]["x"], "NaN");
    let still: VehicleState = converter.to_bus("nav_msgs/Odometry", r#"{"pose":{"pose":{"orientation":{"w":0}}}}"#);
    assert_eq!(still.heading_deg, None);

    let command: DriveCommand = converter.to_bus("geometry_msgs/Twist", r#"{"linear":{"x":-2.0},"angular":{"z":0.8}}"#);
    assert_eq!((command.gear(), command.movement), (Gear::Reverse, Some(Movement::SpeedMps(2.0))));
    assert!((command.steering_angle_rad - (-1.0_f64).atan()).abs() < 1e-12);
    let json = converter.to_ros("geometry_msgs/Twist", &command);
    assert!((json["linear"]["x"].as_f64().unwrap() + 2.0).abs() < 1e-12);
    assert!((json["angular"]["z"].as_f64().unwrap() - 0.8).abs() < 1e-12);

    let before = converter.count("dropped");
    let spot = r#"{"angular":{"z":0.8}}"#;
    let name = "geometry_msgs/Twist";
    let publisher = converter.input("ros1/in", info(name, Dialect::Ros1));
    publisher.publish(Encoded::from(message(name, Dialect::Ros1, spot))).unwrap();
    eventually("a turn on the spot is refused", || converter.count("dropped") == before + 1);
    let parked = DriveCommand { gear: Gear::Park.into(), movement: Some(Movement::SpeedMps(0.0)), ..command };
    converter.input("bus/in", TypeInfo::of::<DriveCommand>()).publish(Encoded::from_message(&parked)).unwrap();
    eventually("a parked vehicle has no twist", || converter.count("dropped") == before + 3);
    assert!(converter.node.stop());
}
