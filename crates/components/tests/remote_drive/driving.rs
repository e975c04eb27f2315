//! Driving, and its ends.

use std::time::Duration;

use serde_json::json;
use viaduct_bus::Recv;
use viaduct_messages::viaduct::vehicle::VehicleState;

use super::drive::{ADA, BOB, Drive, ROOM, Security, eventually};
use super::page::Input;

#[test]
fn a_driver_sees_the_cameras_and_drives() {
    let drive = Drive::start(&Security::none());
    let page = drive.page(ADA);
    for camera in [0, 1] {
        let frames = page.frames(camera, 4);
        for (earlier, later) in frames.iter().zip(frames.iter().skip(1)) {
            assert!(later.number > earlier.number && later.capture_us > earlier.capture_us);
        }
        for frame in frames {
            assert!(frame.picture.starts_with(&[0xff, 0xd8]), "a JPEG file");
            assert!(frame.capture_us < frame.arrival_us);
        }
    }
    // Without a grant, commands have no effect.
    page.drive(Input::AHEAD);
    eventually("refused commands", || drive.at_desk("commands_refused", Some("not_holder")), |refused| refused > 10);
    // The counters of the vehicle are published every 0.5 s.
    page.pass(15);
    assert_eq!((drive.speed(), drive.at_vehicle("commands_received", None)), (0.0, 0));

    page.take_control();
    drive.wait_for_speed("driving", |speed| speed > 1.0);
    page.wait("a speed", |state| state["vehicle"]["speed_mps"].as_f64().is_some_and(|speed| speed > 1.0));
    assert_eq!(page.state()["driving"]["state"], "driving");
    page.drive(Input::LEFT);
    page.wait("a turn", |state| state["vehicle"]["steering_rad"].as_f64().is_some_and(|angle| angle > 0.05));
    page.drive(Input::BRAKE);
    drive.wait_for_speed("braking", |speed| speed == 0.0);
    page.let_go();
    page.send(json!({ "type": "release_control" }));
    page.wait("the end of the grant", |state| state["driving"]["holder"].is_null());
    let events = drive.events();
    assert!(events.contains(&"granted".to_owned()) && events.contains(&"driving ".to_owned()), "{events:?}");
    drive.stop();
}

#[test]
fn a_cut_link_stops_the_vehicle_until_a_new_grant() {
    let drive = Drive::start(&Security::none());
    let page = drive.page(ADA);
    page.take_control();
    page.drive(Input::AHEAD);
    drive.wait_for_speed("driving", |speed| speed > 2.0);
    drive.events();

    drive.relay.cut();
    drive.wait_for_speed("a stop", |speed| speed == 0.0);
    let events = drive.events();
    let of = |state: &str| events.iter().rposition(|event| event.starts_with(state));
    let (hold, ramp, stopped) = (of("hold "), of("ramp "), of("stopped "));
    assert!(hold.is_some() && hold < ramp && ramp < stopped, "{events:?}");
    assert!(
        events.iter().any(|event| ["stopped link_lost", "stopped driver_lost"].contains(&event.as_str())),
        "{events:?}"
    );
    page.wait("the lost link", |state| state["link"]["connected"] == false);

    // The driver still presses the accelerator when the link returns.
    drive.relay.restore();
    page.wait("the link", |state| state["link"]["connected"] == true && state["driving"]["holder"].is_null());
    page.pass(40);
    assert_eq!(drive.speed(), 0.0);
    let events = drive.events();
    assert!(!events.iter().any(|event| event == "granted" || event.starts_with("driving")), "{events:?}");

    page.take_control();
    drive.wait_for_speed("driving again", |speed| speed > 1.0);
    drive.stop();
}

#[test]
fn a_vehicle_without_a_measured_speed_stops_and_the_record_names_the_driver() {
    let drive = Drive::start(&Security::none());
    let page = drive.page(ADA);
    page.take_control();
    page.drive(Input::AHEAD);
    drive.wait_for_speed("driving", |speed| speed > 1.0);
    drive.publish_state(VehicleState::default());
    page.wait("the end of the grant", |state| state["driving"]["holder"].is_null());
    drive.wait_for_speed("a stop", |speed| speed == 0.0);
    let stop = std::iter::from_fn(|| match drive.events.recv_timeout(Duration::ZERO) {
        Recv::Sample(event) => Some(event),
        _ => None,
    });
    let stop = stop.into_iter().find(|event| event.to == "stopped").unwrap();
    assert_eq!((stop.reason.as_str(), stop.speed_mps), ("vehicle_fault", None));
    assert_eq!(stop.operator.len(), 16, "the operator who had control");
    drive.stop();
}

#[test]
fn a_second_driver_takes_over_and_an_observer_can_only_stop() {
    let drive = Drive::start(&Security::none());
    let (ada, bob, room) = (drive.page(ADA), drive.page(BOB), drive.page(ROOM));
    ada.take_control();
    ada.drive(Input::AHEAD);
    drive.wait_for_speed("driving", |speed| speed > 1.0);

    // The observer.
    room.send(json!({ "type": "request_control" }));
    room.send(json!({ "type": "take_over", "reason": "test" }));
    room.wait_for("refusals", |messages| {
        messages.iter().filter(|message| message["code"] == "not_permitted").count() == 2
    });
    let refused = || drive.at_desk("commands_refused", Some("not_holder"));
    let before = refused();
    room.drive(Input::BRAKE);
    eventually("refused commands", refused, |refused| refused > before + 10);
    room.let_go();
    assert_eq!(room.state()["driving"]["holder"]["name"], "Ada");
    assert!(drive.speed() > 0.0);

    // The second driver asks, is refused, and takes over.
    bob.send(json!({ "type": "request_control" }));
    let waiting = ada.wait("a request", |state| !state["driving"]["request"].is_null());
    assert_eq!(waiting["driving"]["request"]["name"], "Bob");
    ada.send(json!({ "type": "answer_request", "id": waiting["driving"]["request"]["id"], "grant": false }));
    bob.wait("a refusal", |state| state["driving"]["request"].is_null());
    assert_eq!(bob.state()["driving"]["holder"]["name"], "Ada");
    bob.send(json!({ "type": "take_over", "reason": "Ada is tired" }));
    bob.wait("control", |state| state["driving"]["holder"]["you"] == true);
    ada.wait("the takeover", |state| state["driving"]["holder"]["name"] == "Bob");
    bob.drive(Input::BRAKE);
    drive.wait_for_speed("the brake of the second driver", |speed| speed == 0.0);
    bob.drive(Input::AHEAD);
    drive.wait_for_speed("driving", |speed| speed > 1.0);

    // The observer stops the vehicle.
    room.send(json!({ "type": "emergency_stop" }));
    drive.wait_for_speed("an emergency stop", |speed| speed == 0.0);
    let stopped = bob.wait("the end of the grant", |state| state["driving"]["holder"].is_null());
    assert_eq!(stopped["driving"]["reason"], "emergency_stop");
    bob.pass(20);
    assert_eq!(drive.speed(), 0.0, "both drivers still press the accelerator");
    let events = drive.events();
    for event in ["taken_over", "emergency_stop", "stopped emergency_stop"] {
        assert!(events.iter().any(|found| found == event), "{event}: {events:?}");
    }
    drive.stop();
}
