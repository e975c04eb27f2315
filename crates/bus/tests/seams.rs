//! The two properties on which relays depend: a type that the binary does not have passes through, and a large field is
//! never copied.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use bytes::Bytes;
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, Value};
use viaduct_bus::{Bus, Encoded, MessageFormat, Qos, TypeInfo};
use viaduct_messages::foxglove::PointCloud;

/// Returns a schema from which no Rust type of this binary was generated.
fn foreign_pool() -> DescriptorPool {
    let field = prost_types::FieldDescriptorProto {
        name: Some("text".into()),
        number: Some(1),
        label: Some(prost_types::field_descriptor_proto::Label::Optional.into()),
        r#type: Some(prost_types::field_descriptor_proto::Type::String.into()),
        ..Default::default()
    };
    let message =
        prost_types::DescriptorProto { name: Some("Greeting".into()), field: vec![field], ..Default::default() };
    let file = prost_types::FileDescriptorProto {
        name: Some("vendor/greeting.proto".into()),
        package: Some("vendor".into()),
        syntax: Some("proto3".into()),
        message_type: vec![message],
        ..Default::default()
    };
    DescriptorPool::from_file_descriptor_set(prost_types::FileDescriptorSet { file: vec![file] }).unwrap()
}

#[test]
fn a_relay_passes_on_a_type_that_the_binary_does_not_have() {
    let pool = foreign_pool();
    let descriptor = pool.get_message_by_name("vendor.Greeting").unwrap();
    let mut greeting = DynamicMessage::new(descriptor.clone());
    greeting.set_field_by_name("text", Value::String("from far away".into()));
    let info = TypeInfo::foreign(MessageFormat::Protobuf, "vendor.Greeting", pool.encode_to_vec().into());

    let bus = Bus::new("test");
    let source = bus.publisher_untyped("far/greeting", info, Qos::keep_last(4), "source").unwrap();
    let relay_in = bus.subscribe_untyped("far/*", Qos::keep_last(4), "relay").unwrap();
    let reader = bus.subscribe_untyped("near/greeting", Qos::keep_last(4), "reader").unwrap();

    let origin = viaduct_bus::clock::tai();
    let bytes = Bytes::from(greeting.encode_to_vec());
    source.publish_from(viaduct_bus::Meta::from_origin(origin), Encoded::from(bytes)).unwrap();

    // The relay: nothing in it names `Greeting`.
    let received = relay_in.try_recv().unwrap();
    let onwards =
        bus.publisher_untyped("near/greeting", (**received.type_info()).clone(), Qos::keep_last(4), "relay").unwrap();
    onwards.publish_from(received.meta(), received.encoded().clone()).unwrap();

    let arrived = reader.try_recv().unwrap();
    assert_eq!(arrived.type_info().full_name(), "vendor.Greeting");
    let stops: Vec<_> =
        arrived.meta().stamps().iter().map(|stamp| format!("{} {}", stamp.hop, stamp.kind().label())).collect();
    assert_eq!(stops, ["source published", "relay taken", "relay published", "reader taken"]);
    let hops: Vec<_> = bus.snapshot().hops.into_iter().map(|hop| (hop.from, hop.to)).collect();
    let expected = [("origin", "source"), ("relay", "relay"), ("source", "relay")];
    assert_eq!(hops, expected.map(|(from, to)| (from.to_owned(), to.to_owned())));
    assert_eq!(arrived.meta().origin, origin);
    let schema = DescriptorPool::decode(arrived.type_info().descriptor_set().unwrap().clone()).unwrap();
    let read =
        DynamicMessage::decode(schema.get_message_by_name("vendor.Greeting").unwrap(), arrived.encoded().to_bytes())
            .unwrap();
    assert_eq!(read.get_field_by_name("text").unwrap().as_str(), Some("from far away"));
}

#[test]
fn four_megabytes_are_encoded_and_decoded_without_a_copy() {
    let bus = Bus::new("test");
    let publisher = bus.publisher::<PointCloud>("lidar/points", Qos::sensor_data(), "lidar").unwrap();
    let untyped = bus.subscribe_untyped("lidar/points", Qos::keep_last(1), "relay").unwrap();
    let relayed =
        bus.publisher_untyped("relay/points", TypeInfo::of::<PointCloud>(), Qos::keep_last(1), "relay").unwrap();
    let typed = bus.subscribe::<PointCloud>("relay/points", Qos::keep_last(1), "reader").unwrap();

    let mut loan = publisher.loan(4 << 20).unwrap();
    loan[0] = 42;
    let data = loan.freeze();
    let memory = data.as_ptr();
    publisher.publish(PointCloud { data, frame_id: "base".into(), ..Default::default() }).unwrap();

    // Typed -> encoded on the relay's thread -> published encoded -> decoded on the reader's thread.
    let sample = untyped.try_recv().unwrap();
    let blob = sample.encoded().chunks().iter().find(|chunk| chunk.len() == 4 << 20).expect("a chunk is the blob");
    assert_eq!(blob.as_ptr(), memory, "encoding copied the blob");
    relayed.publish_from(sample.meta(), sample.encoded().clone()).unwrap();
    let cloud = typed.try_recv().unwrap();
    assert_eq!(cloud.data.as_ptr(), memory, "decoding copied the blob");
    assert_eq!((cloud.data[0], &*cloud.frame_id), (42, "base"));
}

#[test]
fn a_value_reaches_all_readers_as_the_same_value() {
    let bus = Bus::new("test");
    let first = bus.subscribe::<PointCloud>("points", Qos::keep_last(1), "first").unwrap();
    let second = bus.subscribe::<PointCloud>("points", Qos::keep_last(1), "second").unwrap();
    let publisher = bus.publisher::<PointCloud>("points", Qos::keep_last(1), "lidar").unwrap();
    publisher.publish(PointCloud::default()).unwrap();
    let (first, second) = (first.try_recv().unwrap(), second.try_recv().unwrap());
    assert!(std::ptr::eq(&*first, &*second));
}
