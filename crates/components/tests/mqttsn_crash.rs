//! `mqttsn_gateway` with a folder, whose process is killed again and again while messages of QoS 1 and 2 flow in both directions.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "in a test a panic is the failure")]

#[path = "mqttsn/robot.rs"]
#[allow(dead_code, reason = "each test uses a part of this module")]
mod robot;
#[path = "mqtt/support.rs"]
mod support;

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use robot::Robot;
use support::*;
use viaduct_mqttsn::codec::Qos;
use viaduct_units::Rng;

/// Number of times that the process of a gateway is killed.
const KILLS: usize = 20;
/// Messages of a robot that wait for their acknowledgement.
const PENDING_MAX: usize = 3;
/// Time between two messages to the robots.
const DOWN_INTERVAL: Duration = Duration::from_millis(8);
/// Environment variable with the settings of the process that [`run_gateway`] runs: folder, ports, mode, acknowledgement.
const GATEWAY: &str = "VIADUCT_TEST_MQTTSN_GATEWAY";

/// Runs a gateway until it is killed, or until its standard input ends.
#[test]
fn run_gateway() {
    let Ok(settings) = std::env::var(GATEWAY) else { return };
    let [folder, port, broker, mode, acknowledge] = settings.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{settings}")
    };
    let node = TestNode::start(&format!(
        "node: edge\ncomponents:\n  feed: {{ kind: feed }}\n  gateway:\n    kind: mqttsn_gateway\n    settings:\n      \
         listen: 127.0.0.1:{port}\n      broker: mqtt://127.0.0.1:{broker}\n      mode: {mode}\n      \
         acknowledge: {acknowledge}\n      folder: {folder}\n      reconnect: {{ min_ms: 1, max_ms: 20 }}\n      \
         limits: {{ queued_messages_max: 10000 }}\n"
    ));
    eprintln!("ready");
    let _ = std::io::stdin().read_line(&mut String::new());
    assert!(node.stop());
}

/// A gateway in a process of its own, which is this test program.
struct Gateway {
    process: Child,
    settings: String,
}

impl Gateway {
    fn start(folder: &Path, port: u16, broker: u16, mode: &str, acknowledge: &str) -> Self {
        let settings = format!("{} {port} {broker} {mode} {acknowledge}", folder.display());
        let process = Self::spawn(&settings);
        Self { process, settings }
    }

    fn spawn(settings: &str) -> Child {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["run_gateway", "--exact", "--nocapture"]).env(GATEWAY, settings);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let is_ready = lines.by_ref().map_while(Result::ok).any(|line| line == "ready");
        assert!(is_ready, "the gateway does not start with {settings}");
        process
    }

    /// Ends the process with SIGKILL, and starts it again.
    fn kill_and_restart(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.process = Self::spawn(&self.settings);
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A publisher of Mosquitto, which publishes lines.
struct Publisher {
    process: Child,
    lines: ChildStdin,
}

impl Publisher {
    fn start(port: u16, topic: &str, qos: &str) -> Self {
        let mut command = Command::new("mosquitto_pub");
        command.args(["-p", &port.to_string(), "-t", topic, "-q", qos, "-l"]).stdin(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let lines = process.stdin.take().unwrap();
        Self { process, lines }
    }

    fn publish(&mut self, text: &str) {
        self.lines.write_all(format!("{text}\n").as_bytes()).unwrap();
    }

    /// Waits until the broker has acknowledged everything.
    fn finish(mut self) {
        drop(self.lines);
        assert!(self.process.wait().unwrap().success());
    }
}

fn counts<'a>(texts: impl IntoIterator<Item = &'a str>) -> HashMap<&'a str, usize> {
    let mut counts = HashMap::new();
    texts.into_iter().for_each(|text| *counts.entry(text).or_default() += 1);
    counts
}

/// Lets two robots exchange messages with a broker while the gateway is killed.
fn exchange_during_kills(mode: &str, acknowledge: &str) {
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let file = folder.path().join("mosquitto.conf");
    std::fs::write(&file, format!("allow_anonymous true\nlistener {port} 127.0.0.1\nmax_queued_messages 0\n")).unwrap();
    let _mosquitto = Mosquitto::configured(&file, port);
    let sn = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut gateway = Gateway::start(&folder.path().join("gateway"), sn, port, mode, acknowledge);
    let observer = Subscriber::start(port, "up/#");
    let mut robots = ["robot-1", "robot-2"].map(|name| {
        let mut robot = Robot::connected(name, false, sn);
        robot.subscribe(&format!("down/{name}/1"), Qos::AtLeastOnce);
        robot.subscribe("down/2", Qos::ExactlyOnce);
        robot
    });
    let mut down = [("down/robot-1/1", "1"), ("down/robot-2/1", "1"), ("down/2", "2")]
        .map(|(topic, qos)| Publisher::start(port, topic, qos));
    let mut random = Rng::new(11);
    let (mut up, mut sent, mut last) = (0_usize, 0_usize, Instant::now());
    let mut exchange = |robots: &mut [Robot; 2], time: Duration| {
        let start = Instant::now();
        while start.elapsed() < time {
            for (number, robot) in robots.iter_mut().enumerate() {
                while robot.pending() < PENDING_MAX {
                    up += 1;
                    let (level, qos) = if up % 2 == 0 { (1, Qos::AtLeastOnce) } else { (2, Qos::ExactlyOnce) };
                    robot.publish(&format!("up/{level}"), qos, format!("{level} of {number}: {up}"));
                }
                robot.work(Duration::from_millis(1));
            }
            if last.elapsed() >= DOWN_INTERVAL {
                (sent, last) = (sent + 1, Instant::now());
                down.iter_mut().for_each(|publisher| publisher.publish(&sent.to_string()));
            }
        }
        sent
    };
    for _ in 0..KILLS {
        exchange(&mut robots, Duration::from_millis(20) + random.duration_up_to(Duration::from_millis(300)));
        gateway.kill_and_restart();
    }
    let sent = exchange(&mut robots, Duration::from_millis(100));
    down.into_iter().for_each(Publisher::finish);
    let name = format!("{mode}, acknowledged by {acknowledge}");
    check_downward(&mut robots, sent, &name);
    check_upward(&robots, &observer, &name);
    drop(gateway);
}

/// Returns the number of receptions of each text on a topic.
fn received<'a>(robot: &'a Robot, topic: &str) -> HashMap<&'a str, usize> {
    counts(robot.received.iter().filter(|(of, _)| of == topic).map(|(_, text)| &**text))
}

/// Checks that each message of the broker has reached the robots.
fn check_downward(robots: &mut [Robot; 2], sent: usize, name: &str) {
    let topics = |number: usize| [format!("down/robot-{}/1", number + 1), "down/2".to_owned()];
    let is_complete = |number: usize, robot: &Robot| {
        robot.pending() == 0 && topics(number).iter().all(|topic| received(robot, topic).len() == sent)
    };
    let start = Instant::now();
    while !robots.iter().enumerate().all(|(number, robot)| is_complete(number, robot)) && start.elapsed() < PATIENCE {
        robots.iter_mut().for_each(|robot| robot.work(Duration::from_millis(1)));
    }
    for (number, robot) in robots.iter().enumerate() {
        for topic in topics(number) {
            let seen = received(robot, &topic);
            let missing: Vec<usize> = (1..=sent).filter(|one| !seen.contains_key(&*one.to_string())).collect();
            let twice: Vec<_> = seen.iter().filter(|(_, count)| **count > 1).collect();
            assert!(missing.is_empty(), "{name}: {topic}: {missing:?} of {sent} are lost; {:?}", robot.state());
            assert!(
                topic != "down/2" || twice.is_empty(),
                "{name}: robot {number} has received {twice:?} several times"
            );
        }
        assert_eq!(robot.pending(), 0, "{name}: robot {number} waits for acknowledgements: {:?}", robot.state());
    }
}

/// Checks that each message that a robot saw acknowledged has reached the broker, and those of QoS 2 once.
fn check_upward(robots: &[Robot], observer: &Subscriber, name: &str) {
    let acknowledged: Vec<&String> = robots.iter().flat_map(|robot| &robot.acknowledged).collect();
    let is_seen = |seen: &[viaduct_mqtt::packet::publish::PublishPacket]| {
        let texts: Vec<String> = seen.iter().map(|one| String::from_utf8_lossy(&one.payload).into_owned()).collect();
        let counts = counts(texts.iter().map(|text| &**text));
        acknowledged.iter().all(|text| counts.contains_key(&***text))
    };
    observer.eventually("each acknowledged message has reached the broker", is_seen);
    // A repetition would follow within that time.
    std::thread::sleep(Duration::from_millis(500));
    let seen: Vec<String> =
        observer.seen().iter().map(|one| String::from_utf8_lossy(&one.payload).into_owned()).collect();
    let counts = counts(seen.iter().map(|text| &**text));
    let twice: Vec<_> = counts.iter().filter(|(text, count)| text.starts_with('2') && **count > 1).collect();
    let failed: Vec<_> = robots.iter().flat_map(|robot| &robot.failed).collect();
    assert!(failed.is_empty(), "{name}: {failed:?}");
    assert!(acknowledged.len() > 200, "{name}: only {} acknowledged", acknowledged.len());
    assert!(twice.is_empty(), "{name}: QoS 2 must arrive once: {twice:?}");
}

fn has_mosquitto() -> bool {
    has("mosquitto") && has("mosquitto_pub")
}

#[test]
fn an_aggregating_gateway_loses_nothing_that_the_broker_has_acknowledged() {
    if has_mosquitto() {
        exchange_during_kills("aggregating", "broker");
    }
}

#[test]
fn an_aggregating_gateway_loses_nothing_that_it_has_stored() {
    if has_mosquitto() {
        exchange_during_kills("aggregating", "storage");
    }
}

#[test]
fn a_transparent_gateway_loses_nothing_that_the_broker_has_acknowledged() {
    if has_mosquitto() {
        exchange_during_kills("transparent", "broker");
    }
}

#[test]
fn a_transparent_gateway_loses_nothing_that_it_has_stored() {
    if has_mosquitto() {
        exchange_during_kills("transparent", "storage");
    }
}
