//! The user of the edge: sends commands to the robots and measures what arrives from them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use viaduct_bus::{Bus, Publisher, Qos, Subscriber, clock};
use viaduct_messages::its::tai_of;
use viaduct_messages::viaduct::robot::{Action, BatteryState, RobotCommand};
use viaduct_messages::viaduct::vehicle::VehicleState;
use viaduct_units::Tai;

use super::ROBOTS;

/// Name of the desk on the bus.
const NAME: &str = "desk";
/// Time of the first command to stop.
const FIRST_STOP: Duration = Duration::from_secs(5);
/// Interval of the commands after it.
const PERIOD: Duration = Duration::from_secs(10);
/// Number of newest positions whose delays are shown.
const DELAYS_MAX: usize = 20;
/// Quality of service of commands.
const COMMANDS: Qos = Qos::reliable(16, Duration::ZERO);
/// Quality of service of what the robots report.
const REPORTS: Qos = Qos::keep_last(64);

/// The user of the edge.
pub(super) struct Desk {
    robots: Vec<Robot>,
    started: Instant,
    /// Number of commands that were sent.
    commands: u32,
}

struct Robot {
    commands: Publisher<RobotCommand>,
    state: Arc<Mutex<State>>,
}

/// Last known state of a robot.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// Charge in percent.
    pub(super) charge_percent: Option<f64>,
    /// Speed in m/s.
    pub(super) speed_mps: Option<f64>,
    /// Delays of the newest positions in milliseconds: from the time in the message to its arrival on the bus of the edge.
    delays_ms: VecDeque<f64>,
    /// Command that the robot does not obey yet, and its time.
    ordered: Option<(Action, Tai)>,
    /// Last command that it has obeyed, and the time in milliseconds from the command to the arrival of a position that shows it.
    pub(super) obeyed: Option<(Action, f64)>,
}

impl Desk {
    /// Opens the topics of the edge and lets the robots go.
    pub(super) fn open(edge: &Bus, runtime: &Runtime) -> anyhow::Result<Self> {
        let robots = ROBOTS.into_iter().map(|name| Robot::open(name, edge, runtime)).collect::<Result<Vec<_>, _>>()?;
        let desk = Self { robots, started: Instant::now(), commands: 0 };
        desk.send(Action::Go);
        Ok(desk)
    }

    /// Sends the commands whose time has come: alternately to stop and to go.
    pub(super) fn command(&mut self) {
        if self.started.elapsed() < FIRST_STOP + PERIOD * self.commands {
            return;
        }
        self.send(if self.commands.is_multiple_of(2) { Action::Stop } else { Action::Go });
        self.commands += 1;
    }

    fn send(&self, action: Action) {
        for robot in &self.robots {
            lock(&robot.state).order(action, clock::tai());
            // A queue that is full is counted by its subscription.
            let _ = robot.commands.publish(RobotCommand { action: action.into() });
        }
    }

    /// Returns the state of each robot, in the order of [`ROBOTS`].
    pub(super) fn states(&self) -> Vec<State> {
        self.robots.iter().map(|robot| lock(&robot.state).clone()).collect()
    }
}

impl Robot {
    fn open(name: &str, edge: &Bus, runtime: &Runtime) -> anyhow::Result<Self> {
        let topic = |leaf: &str| format!("robots/{name}/{leaf}");
        let state = Arc::default();
        let poses = edge.subscribe::<VehicleState>(&topic("pose"), REPORTS, NAME)?;
        let batteries = edge.subscribe::<BatteryState>(&topic("battery"), REPORTS, NAME)?;
        runtime.spawn(follow_poses(poses, Arc::clone(&state)));
        runtime.spawn(follow_batteries(batteries, Arc::clone(&state)));
        Ok(Self { commands: edge.publisher(&topic("command"), COMMANDS, NAME)?, state })
    }
}

/// Records the positions of a robot until the bus is closed.
async fn follow_poses(poses: Subscriber<VehicleState>, state: Arc<Mutex<State>>) {
    while let Some(pose) = poses.recv().await {
        lock(&state).moved(&pose, clock::tai());
    }
}

/// Records the charge of a robot until the bus is closed.
async fn follow_batteries(batteries: Subscriber<BatteryState>, state: Arc<Mutex<State>>) {
    while let Some(battery) = batteries.recv().await {
        lock(&state).charge_percent = Some(battery.charge_percent);
    }
}

impl State {
    fn order(&mut self, action: Action, now: Tai) {
        // A robot that already does so has nothing to change.
        let is_obeyed = self.speed_mps.is_none_or(|speed| obeys(action, speed));
        self.ordered = (!is_obeyed).then_some((action, now));
    }

    fn moved(&mut self, pose: &VehicleState, now: Tai) {
        self.speed_mps = pose.speed_mps;
        if let Some(time) = &pose.time {
            if self.delays_ms.len() == DELAYS_MAX {
                self.delays_ms.pop_front();
            }
            self.delays_ms.push_back(milliseconds(now.since(tai_of(time))));
        }
        if let (Some((action, since)), Some(speed)) = (self.ordered, pose.speed_mps)
            && obeys(action, speed)
        {
            self.obeyed = Some((action, milliseconds(now.since(since))));
            self.ordered = None;
        }
    }

    /// Returns the command that the robot does not obey yet.
    pub(super) fn ordered(&self) -> Option<Action> {
        self.ordered.map(|(action, _)| action)
    }

    /// Returns mean and maximum of the delays of the newest positions in milliseconds, or `None` before the first one.
    pub(super) fn delay_ms(&self) -> Option<[f64; 2]> {
        let count = u32::try_from(self.delays_ms.len()).ok().filter(|count| *count > 0)?;
        let mean = self.delays_ms.iter().sum::<f64>() / f64::from(count);
        Some([mean, self.delays_ms.iter().copied().fold(0.0, f64::max)])
    }
}

/// Returns `true` if a robot with this speed in m/s obeys a command.
fn obeys(action: Action, speed_mps: f64) -> bool {
    (action == Action::Go) == (speed_mps > 0.0)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
