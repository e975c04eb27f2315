//! The definitions of the common interfaces, with the sums and hashes that the nodes of ROS publish for them.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test reads installed files"
)]

use std::path::{Path, PathBuf};

use viaduct_ros::definitions::{find, names};
use viaduct_ros::msg::{Dialect, Schema, TypeName};

/// MD5 sums of ROS 1 Noetic.
const SUMS: &[(&str, &str)] = &[
    ("diagnostic_msgs/DiagnosticArray", "60810da900de1dd6ddd437c3503511da"),
    ("geometry_msgs/Accel", "9f195f881246fdfa2798d1d3eebca84a"),
    ("geometry_msgs/AccelStamped", "d8a98a5d81351b6eb0578c78557e7659"),
    ("geometry_msgs/AccelWithCovariance", "ad5a718d699c6be72a02b8d6a139f334"),
    ("geometry_msgs/AccelWithCovarianceStamped", "96adb295225031ec8d57fb4251b0a886"),
    ("geometry_msgs/Inertia", "1d26e4bb6c83ff141c5cf0d883c2b0fe"),
    ("geometry_msgs/InertiaStamped", "ddee48caeab5a966c5e8d166654a9ac7"),
    ("geometry_msgs/Point", "4a842b65f413084dc2b10fb484ea7f17"),
    ("geometry_msgs/Point32", "cc153912f1453b708d221682bc23d9ac"),
    ("geometry_msgs/PointStamped", "c63aecb41bfdfd6b7e1fac37c7cbe7bf"),
    ("geometry_msgs/Polygon", "cd60a26494a087f577976f0329fa120e"),
    ("geometry_msgs/PolygonStamped", "c6be8f7dc3bee7fe9e8d296070f53340"),
    ("geometry_msgs/Pose", "e45d45a5a1ce597b249e23fb30fc871f"),
    ("geometry_msgs/Pose2D", "938fa65709584ad8e77d238529be13b8"),
    ("geometry_msgs/PoseArray", "916c28c5764443f268b296bb671b9d97"),
    ("geometry_msgs/PoseStamped", "d3812c3cbc69362b77dc0b19b345f8f5"),
    ("geometry_msgs/PoseWithCovariance", "c23e848cf1b7533a8d7c259073a97e6f"),
    ("geometry_msgs/PoseWithCovarianceStamped", "953b798c0f514ff060a53a3498ce6246"),
    ("geometry_msgs/Quaternion", "a779879fadf0160734f906b8c19c7004"),
    ("geometry_msgs/QuaternionStamped", "e57f1e547e0e1fd13504588ffc8334e2"),
    ("geometry_msgs/Transform", "ac9eff44abf714214112b05d54a3cf9b"),
    ("geometry_msgs/TransformStamped", "b5764a33bfeb3588febc2682852579b0"),
    ("geometry_msgs/Twist", "9f195f881246fdfa2798d1d3eebca84a"),
    ("geometry_msgs/TwistStamped", "98d34b0043a2093cf9d9345ab6eef12e"),
    ("geometry_msgs/TwistWithCovariance", "1fe8a28e6890a4cc3ae4c3ca5c7d82e6"),
    ("geometry_msgs/TwistWithCovarianceStamped", "8927a1a12fb2607ceea095b2dc440a96"),
    ("geometry_msgs/Vector3", "4a842b65f413084dc2b10fb484ea7f17"),
    ("geometry_msgs/Vector3Stamped", "7b324c7325e683bf02a9b14b01090ec7"),
    ("geometry_msgs/Wrench", "4f539cf138b23283b520fd271b567936"),
    ("geometry_msgs/WrenchStamped", "d78d3cb249ce23087ade7e7d0c40cfa7"),
    ("nav_msgs/GridCells", "b9e4f5df6d28e272ebde00a3994830f5"),
    ("nav_msgs/MapMetaData", "10cfc8a2818024d3248802c00c95f11b"),
    ("nav_msgs/OccupancyGrid", "3381f2d731d4076ec5c71b0759edbe4e"),
    ("nav_msgs/Odometry", "cd5e73d190d741a2f92e81eda573aca7"),
    ("nav_msgs/Path", "6227e2b7e9cce15051f669a5e197bbf7"),
    ("rosgraph_msgs/Clock", "a9c97c1d230cfc112e270351a944ee47"),
    ("rosgraph_msgs/Log", "acffd30cd6b6de30f120938c17c593fb"),
    ("sensor_msgs/BatteryState", "4ddae7f048e32fda22cac764685e3974"),
    ("sensor_msgs/CameraInfo", "c9a58c1b0b154e0e6da7578cb991d214"),
    ("sensor_msgs/ChannelFloat32", "3d40139cdd33dfedcb71ffeeeb42ae7f"),
    ("sensor_msgs/CompressedImage", "8f7a12909da2c9d3332d540a0977563f"),
    ("sensor_msgs/FluidPressure", "804dc5cea1c5306d6a2eb80b9833befe"),
    ("sensor_msgs/Illuminance", "8cf5febb0952fca9d650c3d11a81a188"),
    ("sensor_msgs/Image", "060021388200f6f0f447d0fcd9c64743"),
    ("sensor_msgs/Imu", "6a62c6daae103f4ff57a132d6f95cec2"),
    ("sensor_msgs/JointState", "3066dcd76a6cfaef579bd0f34173e9fd"),
    ("sensor_msgs/Joy", "5a9ea5f83505693b71e785041e67a8bb"),
    ("sensor_msgs/JoyFeedback", "f4dcd73460360d98f36e55ee7f2e46f1"),
    ("sensor_msgs/JoyFeedbackArray", "cde5730a895b1fc4dee6f91b754b213d"),
    ("sensor_msgs/LaserEcho", "8bc5ae449b200fba4d552b4225586696"),
    ("sensor_msgs/LaserScan", "90c7ef2dc6895d81024acba2ac42f369"),
    ("sensor_msgs/MagneticField", "2f3b0b43eed0c9501de0fa3ff89a45aa"),
    ("sensor_msgs/MultiDOFJointState", "690f272f0640d2631c305eeb8301e59d"),
    ("sensor_msgs/MultiEchoLaserScan", "6fefb0c6da89d7c8abe4b339f5c2f8fb"),
    ("sensor_msgs/NavSatFix", "2d3a8cd499b9b4a0249fb98fd05cfa48"),
    ("sensor_msgs/NavSatStatus", "331cdbddfa4bc96ffc3b9ad98900a54c"),
    ("sensor_msgs/PointCloud", "d8e9c3f5afbdd8a130fd1d2763945fca"),
    ("sensor_msgs/PointCloud2", "1158d486dd51d683ce2f1be655c3c181"),
    ("sensor_msgs/PointField", "268eacb2962780ceac86cbd17e328150"),
    ("sensor_msgs/Range", "c005c34273dc426c67a020a87bc24148"),
    ("sensor_msgs/RegionOfInterest", "bdb633039d588fcccb441a4d43ccfe09"),
    ("sensor_msgs/RelativeHumidity", "8730015b05955b7e992ce29a2678d90f"),
    ("sensor_msgs/Temperature", "ff71b307acdbe7c871a5a6d7ed359100"),
    ("sensor_msgs/TimeReference", "fded64a0265108ba86c3d38fb11c0c16"),
    ("std_msgs/Bool", "8b94c1b53db61fb6aed406028ad6332a"),
    ("std_msgs/Byte", "ad736a2e8818154c487bb80fe42ce43b"),
    ("std_msgs/ByteMultiArray", "70ea476cbcfd65ac2f68f3cda1e891fe"),
    ("std_msgs/Char", "1bf77f25acecdedba0e224b162199717"),
    ("std_msgs/ColorRGBA", "a29a96539573343b1310c73607334b00"),
    ("std_msgs/Duration", "3e286caf4241d664e55f3ad380e2ae46"),
    ("std_msgs/Empty", "d41d8cd98f00b204e9800998ecf8427e"),
    ("std_msgs/Float32", "73fcbf46b49191e672908e50842a83d4"),
    ("std_msgs/Float32MultiArray", "6a40e0ffa6a17a503ac3f8616991b1f6"),
    ("std_msgs/Float64", "fdb28210bfa9d7c91146260178d9a584"),
    ("std_msgs/Float64MultiArray", "4b7d974086d4060e7db4613a7e6c3ba4"),
    ("std_msgs/Header", "2176decaecbce78abc3b96ef049fabed"),
    ("std_msgs/Int16", "8524586e34fbd7cb1c08c5f5f1ca0e57"),
    ("std_msgs/Int16MultiArray", "d9338d7f523fcb692fae9d0a0e9f067c"),
    ("std_msgs/Int32", "da5909fbe378aeaf85e547e830cc1bb7"),
    ("std_msgs/Int32MultiArray", "1d99f79f8b325b44fee908053e9c945b"),
    ("std_msgs/Int64", "34add168574510e6e17f5d23ecc077ef"),
    ("std_msgs/Int64MultiArray", "54865aa6c65be0448113a2afc6a49270"),
    ("std_msgs/Int8", "27ffa0c9c4b8fb8492252bcad9e5c57b"),
    ("std_msgs/Int8MultiArray", "d7c1af35a1b4781bbe79e03dd94b7c13"),
    ("std_msgs/MultiArrayDimension", "4cd0c83a8683deae40ecdac60e53bfa8"),
    ("std_msgs/MultiArrayLayout", "0fed2a11c13e11c5571b4e2a995a91a3"),
    ("std_msgs/String", "992ce8a1687cec8c8bd883ec73ca41d1"),
    ("std_msgs/Time", "cd7166c74c552c311fbcc2fe5a7bc289"),
    ("std_msgs/UInt16", "1df79edf208b629fe6b81923a544552d"),
    ("std_msgs/UInt16MultiArray", "52f264f1c973c4b73790d384c6cb4484"),
    ("std_msgs/UInt32", "304a39449588c7f8ce2df6e8001c5fce"),
    ("std_msgs/UInt32MultiArray", "4d6a180abc9be191b96a7eda6c8a233d"),
    ("std_msgs/UInt64", "1b2a79973e8bf53d7b53acb71299cb57"),
    ("std_msgs/UInt64MultiArray", "6088f127afb1d6c72927aa1247e945af"),
    ("std_msgs/UInt8", "7c8164229e7d2c17eb95e9231617fdee"),
    ("std_msgs/UInt8MultiArray", "82373f1612381bb6ee473b5cd6f5d89c"),
    ("tf2_msgs/TFMessage", "94810edda583a504dfda3829e70d7eec"),
    ("velodyne_msgs/VelodynePacket", "ae4f90a23256f44e82baa08dd45c3456"),
    ("velodyne_msgs/VelodyneScan", "50804fc9533a0e579e6322c04ae70566"),
];

/// Type hashes of ROS 2 Jazzy, as its nodes publish them.
const HASHES: &[(&str, &str)] = &[
    ("geometry_msgs/PoseStamped", "10f3786d7d40fd2b54367835614bff85d4ad3b5dab62bf8bca0cc232d73b4cd8"),
    ("geometry_msgs/PoseWithCovarianceStamped", "26432f9803e43727d3c8f668d1fdb3c630f548af631e2f4e31382371bfea3b6e"),
    ("geometry_msgs/Twist", "9c45bf16fe0983d80e3cfe750d6835843d265a9a6c46bd2e609fcddde6fb8d2a"),
    ("nav_msgs/Odometry", "3cc97dc7fb7502f8714462c526d369e35b603cfc34d946e3f2eda2766dfec6e0"),
    ("rosgraph_msgs/Clock", "692f7a66e93a3c83e71765d033b60349ba68023a8c689a79e48078bcb5c58564"),
    ("sensor_msgs/Imu", "7d9a00ff131080897a5ec7e26e315954b8eae3353c3f995c55faf71574000b5b"),
    ("sensor_msgs/MagneticField", "e80f32f56a20486c9923008fc1a1db07bbb273cbbf6a5b3bfa00835ee00e4dff"),
    ("sensor_msgs/PointCloud2", "9198cabf7da3796ae6fe19c4cb3bdd3525492988c70522628af5daa124bae2b5"),
    ("sensor_msgs/Range", "b42b62562e93cbfe9d42b82fe5994dfa3d63d7d5c90a317981703f7388adff3a"),
    ("std_msgs/Empty", "20b625256f32d5dbc0d04fee44f43c41e51c70d3502f84b4a08e7a9c26a96312"),
    ("std_msgs/String", "df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"),
    ("vision_msgs/Detection3DArray", "793f5eab9595ac1c0da07873cc859db42eae51f0ee76056db8562515d830e018"),
];

fn name(text: &str) -> TypeName {
    TypeName::parse(text).unwrap()
}

#[test]
fn the_sums_are_those_of_ros_1() {
    for (type_name, sum) in SUMS {
        assert_eq!(find(&name(type_name), Dialect::Ros1).unwrap().schema().md5(), *sum, "{type_name}");
    }
}

#[test]
fn the_hashes_are_those_of_ros_2() {
    for (type_name, hash) in HASHES {
        let schema = find(&name(type_name), Dialect::Ros2).unwrap().schema();
        assert_eq!(schema.type_hash().unwrap(), format!("RIHS01_{hash}"), "{type_name}");
    }
    assert_eq!(find(&name("std_msgs/String"), Dialect::Ros1).unwrap().schema().type_hash(), None);
}

#[test]
fn each_definition_is_complete() {
    for dialect in [Dialect::Ros1, Dialect::Ros2] {
        for type_name in names(dialect) {
            let definition = find(type_name, dialect).unwrap_or_else(|| panic!("{type_name}"));
            let again = Schema::parse(dialect, &type_name.to_string(), definition.text()).unwrap();
            assert_eq!(&again, definition.schema());
            assert_eq!(again.root().unwrap().name(), type_name);
        }
    }
    assert_eq!(find(&name("std_msgs/Time"), Dialect::Ros2), None);
    assert_eq!(find(&name("builtin_interfaces/Time"), Dialect::Ros1), None);
    assert_eq!(find(&name("my_msgs/String"), Dialect::Ros1), None);
}

/// The path of a definition of an installed ROS 1.
fn installed(type_name: &TypeName) -> Option<PathBuf> {
    let path = Path::new("/usr/share").join(type_name.package()).join("msg").join(format!("{}.msg", type_name.name()));
    path.is_file().then_some(path)
}

#[test]
fn the_definitions_equal_those_of_an_installed_ros_1() {
    let mut compared = 0;
    for type_name in names(Dialect::Ros1) {
        let ours = find(type_name, Dialect::Ros1).unwrap().schema();
        let paths: Option<Vec<PathBuf>> = ours.types().iter().map(|used| installed(used.name())).collect();
        let Some(paths) = paths else { continue };
        let mut text = String::new();
        for (used, path) in ours.types().iter().zip(paths) {
            if used.name() != type_name {
                text += &format!("{}\nMSG: {}\n", "=".repeat(80), used.name());
            }
            text += &std::fs::read_to_string(path).unwrap();
            text += "\n";
        }
        let theirs = Schema::parse(Dialect::Ros1, &type_name.to_string(), &text).unwrap();
        assert_eq!(ours.md5(), theirs.md5(), "{type_name}");
        compared += 1;
    }
    if compared == 0 {
        eprintln!("skipped: no definitions of ROS 1 in /usr/share (Debian: ros-std-msgs, ros-sensor-msgs and others)");
    }
}

#[test]
fn a_type_has_a_counterpart_in_the_other_version() {
    let line = "=".repeat(80);
    let one = format!(
        "uint8 KIND=3\nstring NAME=a # b\nHeader header\ntime[] atTimes\nbyte level\nPart[2] K\n{line}\nMSG: std_msgs/Header\nuint32 seq\n\
         time stamp\nstring frame_id\n{line}\nMSG: my_msgs/Part\nduration frameDuration\ngeometry_msgs/Point at\n{line}\n\
         MSG: geometry_msgs/Point\nfloat64 x\nfloat64 y\nfloat64 z\n"
    );
    let one = Schema::parse(Dialect::Ros1, "my_msgs/Own", &one).unwrap();
    let two = viaduct_ros::definitions::counterpart(&one).unwrap();
    assert!(two.text().starts_with(
        "uint8 KIND=3\nstring NAME=\"a # b\"\nstd_msgs/Header header\nbuiltin_interfaces/Time[] at_times\nbyte level\nmy_msgs/Part[2] k\n"
    ));
    assert!(
        two.text().contains("MSG: my_msgs/Part\nbuiltin_interfaces/Duration frame_duration\ngeometry_msgs/Point at\n")
    );
    let there = viaduct_ros::transcode::Transcoder::new(&one, two.schema()).unwrap();
    assert_eq!((there.dropped(), there.zeroed()), (&["header.seq".to_owned()][..], &[][..]));

    let two = "string<=5[<=3] names\nint8[<=2] list\nbuiltin_interfaces/Time at\n";
    let time = format!("{line}\nMSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n");
    let two = Schema::parse(Dialect::Ros2, "my_msgs/Own", &format!("{two}{time}")).unwrap();
    let one = viaduct_ros::definitions::counterpart(&two).unwrap();
    assert_eq!(one.text(), "string[] names\nint8[] list\ntime at\n");
    let wide = Schema::parse(Dialect::Ros2, "my_msgs/Own", "wstring text").unwrap();
    assert_eq!(viaduct_ros::definitions::counterpart(&wide), None);
    let common = find(&name("sensor_msgs/Range"), Dialect::Ros1).unwrap();
    assert!(viaduct_ros::definitions::counterpart(common.schema()).unwrap().text().contains("float32 variance"));
}
