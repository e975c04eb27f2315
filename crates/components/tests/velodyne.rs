//! `velodyne` and `velodyne_points`: the octets of their messages, shares, recorded frames, and damaged packets.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "in a test a panic is the failure")]

#[path = "mqtt/support.rs"]
mod support;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value as Json;
use support::{TestNode, eventually};
use viaduct_bus::{CounterSnapshot, Encoded, MessageFormat, Qos, Recv, UntypedSample, UntypedSubscriber};
use viaduct_lidar::packet::Packet;
use viaduct_messages::foxglove::PointCloud;
use viaduct_ros::codec::{self, Encoding};
use viaduct_ros::definitions;
use viaduct_ros::json::{self, JsonOf};
use viaduct_ros::msg::{Dialect, Schema, TypeName};

const QOS: Qos = Qos::keep_last(8);
const DIALECTS: [(&str, Dialect, Encoding); 2] =
    [("ros1", Dialect::Ros1, Encoding::Ros1), ("ros2", Dialect::Ros2, Encoding::Cdr)];

fn start(settings: &str, converter: &str) -> TestNode {
    TestNode::start(&format!(
        "node: car\ncomponents:\n  velodyne: {{ kind: velodyne, settings: {{ topic: lidar/packets, rate_hz: 2, {settings} }} }}\n{converter}"
    ))
}

fn points(format: &str) -> String {
    format!(
        "  points: {{ kind: velodyne_points, settings: {{ from: lidar/packets, to: lidar/points, format: {format} }} }}\n"
    )
}

fn subscribe(node: &TestNode, topic: &str) -> UntypedSubscriber {
    node.bus().subscribe_untyped(topic, QOS, "test").unwrap()
}

fn next(samples: &UntypedSubscriber) -> UntypedSample {
    match samples.recv_timeout(support::PATIENCE) {
        Recv::Sample(sample) => sample,
        _ => panic!("no sample arrives"),
    }
}

fn schema(name: &str, dialect: Dialect) -> &'static Schema {
    definitions::find(&TypeName::parse(name).unwrap(), dialect).unwrap().schema()
}

/// Returns a message as JSON. Its octets are exactly those that the codec writes for its values.
fn exact(sample: &UntypedSample, name: &str, dialect: Dialect, encoding: Encoding) -> Json {
    let (schema, message) = (schema(name, dialect), sample.encoded().to_bytes());
    let value = codec::decode(schema, encoding, &message).unwrap();
    assert_eq!(codec::encode(schema, encoding, &value).unwrap(), message);
    let format = if dialect == Dialect::Ros1 { MessageFormat::Ros1 } else { MessageFormat::Ros2 };
    assert_eq!(sample.type_info().format(), format);
    serde_json::to_value(JsonOf::new(schema, &value)).unwrap()
}

fn octets(value: &Json) -> Vec<u8> {
    STANDARD.decode(value.as_str().unwrap()).unwrap()
}

#[test]
fn a_scan_has_the_octets_of_its_definition_and_the_packets_of_the_sensor() {
    for (format, dialect, encoding) in DIALECTS {
        let node = start(&format!("format: {format}"), "");
        let sample = next(&subscribe(&node, "lidar/packets"));
        let scan = exact(&sample, "velodyne_msgs/VelodyneScan", dialect, encoding);
        assert_eq!(scan["header"]["frame_id"], "velodyne");
        let packets = scan["packets"].as_array().unwrap();
        assert_eq!(packets.len(), 151);
        let mut returns = 0;
        for packet in packets {
            let data = octets(&packet["data"]);
            let packet = Packet::parse(&data).unwrap();
            returns += packet.blocks().flat_map(|block| block.returns()).filter(|hit| hit.distance > 0).count();
        }
        assert_eq!(returns, 49_016);
    }
}

#[test]
fn a_share_of_packets_is_published_and_at_0_percent_only_a_header() {
    for (share, expected) in [(75, 113), (0, 0)] {
        for (format, dialect, encoding) in DIALECTS {
            let node = start(&format!("format: {format}, share: {share}"), &points(format));
            let (scans, clouds) = (subscribe(&node, "lidar/packets"), subscribe(&node, "lidar/points"));
            let scan = exact(&next(&scans), "velodyne_msgs/VelodyneScan", dialect, encoding);
            assert_eq!(scan["packets"].as_array().unwrap().len(), expected);
            let cloud = exact(&next(&clouds), "sensor_msgs/PointCloud2", dialect, encoding);
            assert_eq!(cloud["width"].as_u64().unwrap() == 0, expected == 0);
        }
    }
}

#[test]
fn a_cloud_has_the_octets_of_its_definition_and_the_origin_of_its_scan() {
    for (format, dialect, encoding) in DIALECTS {
        let node = start(&format!("format: {format}"), &points(format));
        let (scans, clouds) = (subscribe(&node, "lidar/packets"), subscribe(&node, "lidar/points"));
        let cloud = next(&clouds);
        let origin = cloud.meta().origin;
        let mut scan = next(&scans);
        while scan.meta().origin != origin {
            scan = next(&scans);
        }
        let text = exact(&cloud, "sensor_msgs/PointCloud2", dialect, encoding);
        let scan = exact(&scan, "velodyne_msgs/VelodyneScan", dialect, encoding);
        assert_eq!(text["header"]["stamp"], scan["header"]["stamp"]);
        assert_eq!((text["width"].as_u64(), text["point_step"].as_u64()), (Some(49_016), Some(22)));
        let names: Vec<&str> =
            text["fields"].as_array().unwrap().iter().map(|field| field["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["x", "y", "z", "intensity", "ring", "time"]);
        assert_eq!(octets(&text["data"]).len(), 1_078_352);
    }
}

#[test]
fn damaged_packets_are_counted_and_the_others_become_a_cloud() {
    let (dialect, encoding) = (Dialect::Ros1, Encoding::Ros1);
    let node = start("format: ros1, share: 2", &points("bus"));
    let (scans, clouds) = (subscribe(&node, "lidar/packets"), subscribe(&node, "lidar/points"));
    let sample = next(&scans);
    let mut scan = exact(&sample, "velodyne_msgs/VelodyneScan", dialect, encoding);
    assert_eq!(scan["packets"].as_array().unwrap().len(), 3);
    scan["header"]["frame_id"] = "damaged".into();
    for (index, at) in [(0, 1205), (2, 0)] {
        let data = &mut scan["packets"][index]["data"];
        let mut damaged = octets(data);
        damaged[at] = 0;
        *data = STANDARD.encode(damaged).into();
    }
    let publish = |octets: Bytes| {
        let info = sample.type_info().as_ref().clone();
        let publisher = node.bus().publisher_untyped("lidar/packets", info, QOS, "test").unwrap();
        publisher.publish(Encoded::from(octets)).unwrap();
    };
    let text = scan.to_string();
    let damaged = json::to_message(schema("velodyne_msgs/VelodyneScan", dialect), encoding, text.as_bytes()).unwrap();
    let dropped = |counter: &str, reason: &str| -> u64 {
        let counters = node.bus().snapshot().counters;
        let is_wanted = |one: &&CounterSnapshot| {
            one.component == "points" && one.name == counter && one.reason.as_deref() == Some(reason)
        };
        counters.iter().filter(is_wanted).map(|one| one.value).sum()
    };
    eventually("the damaged scan is converted", || {
        publish(damaged.clone());
        let PointCloud { frame_id, data, .. } = (*next(&clouds).typed::<PointCloud>().unwrap()).clone();
        frame_id == "damaged" && data.len() < 384 * 22 + 1
    });
    assert!(dropped("packets_dropped", "product") >= 1 && dropped("packets_dropped", "flag") >= 1);
    eventually("a cut scan is counted", || {
        publish(damaged.slice(..1000));
        dropped("dropped", "malformed") >= 1
    });
}

#[test]
fn recorded_frames_are_published_in_the_order_of_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let frame = |numbers: &[f32]| -> Vec<u8> { numbers.iter().flat_map(|number| number.to_le_bytes()).collect() };
    let (kitti, nuscenes) = (frame(&[1.0, 2.0, 3.0, 0.5]), frame(&[1.0, 2.0, 3.0, 9.0, 31.0].repeat(2)));
    std::fs::write(folder.path().join("000001.bin"), &kitti).unwrap();
    std::fs::write(folder.path().join("000002.pcd.bin"), &nuscenes).unwrap();
    let node = start(&format!("format: bus, output: cloud, replay: {}", folder.path().display()), "");
    let clouds = subscribe(&node, "lidar/packets");
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let cloud = next(&clouds).typed::<PointCloud>().unwrap();
        seen.push((cloud.point_stride, cloud.fields.len(), cloud.data.to_vec()));
    }
    // The y axis of nuScenes points forward.
    let turned = frame(&[2.0, -1.0, 3.0, 9.0, 31.0].repeat(2));
    let (first, second) = ((16, 4, kitti), (20, 5, turned));
    let expected = if seen[0].0 == 16 { [&first, &second, &first] } else { [&second, &first, &second] };
    assert_eq!(seen.iter().collect::<Vec<_>>(), expected);
}

#[test]
fn a_folder_without_frames_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let problem = TestNode::refused(&format!(
        "node: car\ncomponents: {{ velodyne: {{ kind: velodyne, settings: {{ topic: a, format: bus, output: cloud, replay: {} }} }} }}\n",
        folder.path().display()
    ));
    assert!(problem.contains("there is no file `*.bin`"), "{problem}");
}
