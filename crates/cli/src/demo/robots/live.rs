//! The state of the demo: once a second while it runs, and the totals at its end.

use std::collections::BTreeSet;

use comfy_table::Cell;
use viaduct_bus::{Bus, BusSnapshot};
use viaduct_messages::viaduct::robot::Action;
use viaduct_node::Node;

use super::ROBOTS;
use super::desk::{Desk, State};
use crate::demo::snapshot::{counter, gauge, reasons};
use crate::table::{number, table};

/// Requests of a CoAP robot that can be unanswered at its end: one of each route.
const UNANSWERED_MAX: u64 = 2;

/// Returns messages of a robot by reason.
type Reasons = fn(&RobotTotals) -> &[(String, u64)];

/// The state at one time.
pub(super) struct Status {
    robots: Vec<RobotStatus>,
}

struct RobotStatus {
    name: &'static str,
    state: State,
    totals: RobotTotals,
    round_trip_ms: Option<f64>,
}

/// The messages of both robots since the start.
pub(super) struct Totals {
    robots: Vec<RobotTotals>,
}

/// The messages of a robot since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct RobotTotals {
    /// Messages that the robot's client has accepted.
    accepted: u64,
    /// Messages that the edge has acknowledged to it.
    acknowledged: u64,
    /// Messages on the bus of the edge.
    arrived: u64,
    /// Messages that the client has dropped, by reason.
    dropped: Vec<(String, u64)>,
    /// Messages that the edge has acknowledged and then refused, by reason.
    refused: Vec<(String, u64)>,
    /// Messages that the client has sent again.
    retransmissions: u64,
    /// Packets that the link has lost, in both directions.
    lost_packets: u64,
    /// Positions and states of the battery that a newer one has replaced before the client accepted it.
    replaced: u64,
}

impl Status {
    /// Reads the state of the nodes: edge, link, MQTT-SN robot, CoAP robot.
    pub(super) fn read(nodes: &[Node], desk: &Desk) -> Self {
        let buses: Vec<Bus> = nodes.iter().map(|node| node.bus().clone()).collect();
        let totals = Totals::read(&buses).robots;
        let robots = ROBOTS.into_iter().zip(desk.states()).zip(totals).zip(buses.iter().skip(2));
        let of = |(((name, state), totals), bus): (((_, _), _), &Bus)| RobotStatus {
            name,
            state,
            totals,
            round_trip_ms: gauge(&bus.snapshot(), "uplink", "round_trip_ms", None).filter(|time| !time.is_nan()),
        };
        Self { robots: robots.map(of).collect() }
    }

    /// Returns the state in one line.
    pub(super) fn line(&self) -> String {
        self.robots.iter().map(RobotStatus::text).collect::<Vec<_>>().join(" | ")
    }

    /// Returns the state as a table of at most 80 columns.
    pub(super) fn table(&self) -> String {
        let columns = ["", "charge", "m/s", "sent", "arrived", "again", "lost", "rtt ms", "delay ms"];
        let mut rows = table(columns);
        for RobotStatus { name, state, totals, round_trip_ms } in &self.robots {
            let delay = state.delay_ms().map(|[mean, _]| mean);
            rows.add_row([
                Cell::new(name),
                number(decimal(state.charge_percent, 1)),
                number(decimal(state.speed_mps, 1)),
                number(totals.accepted),
                number(totals.arrived),
                number(totals.retransmissions),
                number(totals.lost_packets),
                number(decimal(*round_trip_ms, 1)),
                number(decimal(delay, 1)),
            ]);
        }
        let commands = self.robots.iter().map(|robot| format!("{}: {}", robot.name, robot.command()));
        format!("{}\n\n{}", rows.trim_fmt(), commands.collect::<Vec<_>>().join("\n"))
    }
}

impl RobotStatus {
    fn text(&self) -> String {
        let Self { name, state, totals, round_trip_ms } = self;
        let RobotTotals { accepted, arrived, retransmissions, lost_packets, .. } = totals;
        let delay = state.delay_ms().map_or_else(
            || "no position".to_owned(),
            |[mean, max]| format!("positions after {mean:.0} ms (longest {max:.0})"),
        );
        format!(
            "{name}: {charge} %, {speed} m/s, {arrived} of {accepted} arrived, {retransmissions} sent again, \
             {lost_packets} packets lost, round trip {round_trip} ms, {delay}, {command}",
            charge = decimal(state.charge_percent, 1),
            speed = decimal(state.speed_mps, 1),
            round_trip = decimal(*round_trip_ms, 0),
            command = self.command(),
        )
    }

    /// Returns the state of the last command.
    fn command(&self) -> String {
        match (self.state.ordered(), self.state.obeyed) {
            (Some(action), _) => format!("{} sent", label(action)),
            (None, Some((action, time))) => format!("{} obeyed after {time:.0} ms", label(action)),
            (None, None) => "no command yet".to_owned(),
        }
    }
}

const fn label(action: Action) -> &'static str {
    match action {
        Action::Go => "GO",
        Action::Stop => "STOP",
        Action::Charge => "CHARGE",
        Action::Unknown => "UNKNOWN",
    }
}

fn decimal(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

impl Totals {
    /// Reads the totals of the buses: edge, link, MQTT-SN robot, CoAP robot.
    pub(super) fn read(buses: &[Bus]) -> Self {
        // The robots before the edge: what they count as acknowledged has then arrived.
        let robots: Vec<BusSnapshot> = buses.iter().skip(2).map(Bus::snapshot).collect();
        let nodes: Vec<BusSnapshot> = buses.iter().take(2).map(Bus::snapshot).collect();
        let ([edge, link], [sn, coap]) = (nodes.as_slice(), robots.as_slice()) else {
            return Self { robots: Vec::new() };
        };
        let sn = RobotTotals {
            acknowledged: counter(sn, "uplink", "published", None),
            refused: reasons(edge, "broker", "refused"),
            ..RobotTotals::of(ROBOTS[0], sn, link, edge)
        };
        let coap = RobotTotals {
            acknowledged: counter(coap, "uplink", "delivered", None),
            ..RobotTotals::of(ROBOTS[1], coap, link, edge)
        };
        Self { robots: vec![sn, coap] }
    }

    /// Returns `true` if each message is settled.
    pub(super) fn is_settled(&self) -> bool {
        !self.robots.is_empty() && self.robots.iter().all(RobotTotals::is_settled)
    }

    pub(super) fn table(&self) -> String {
        let mut rows = table(["messages of the robots", "sn", "coap"]);
        let mut add = |name: &str, value: &dyn Fn(&RobotTotals) -> u64| {
            rows.add_row([Cell::new(name)].into_iter().chain(self.robots.iter().map(|robot| number(value(robot)))));
        };
        add("accepted by the client", &|robot| robot.accepted);
        add("acknowledged by the edge", &|robot| robot.acknowledged);
        add("arrived on the bus of the edge", &|robot| robot.arrived);
        for (place, reasons) in
            [("dropped by the client", RobotTotals::drops as Reasons), ("refused by the edge", RobotTotals::refusals)]
        {
            let names: BTreeSet<&String> = self.robots.iter().flat_map(reasons).map(|(reason, _)| reason).collect();
            for name in names {
                let count = |robot: &RobotTotals| sum(reasons(robot).iter().filter(|(reason, _)| reason == name));
                add(&format!("{place}: {name}"), &count);
            }
        }
        add("unanswered at the end", &RobotTotals::unanswered);
        add("replaced by a newer one", &|robot| robot.replaced);
        add("sent again", &|robot| robot.retransmissions);
        add("packets that the link has lost", &|robot| robot.lost_packets);
        rows.trim_fmt()
    }
}

impl RobotTotals {
    /// Returns the totals of a robot without those that depend on the protocol.
    fn of(name: &str, robot: &BusSnapshot, link: &BusSnapshot, edge: &BusSnapshot) -> Self {
        let reports = [format!("robots/{name}/pose"), format!("robots/{name}/battery")];
        let arrived = edge.topics.iter().filter(|topic| reports.contains(&topic.topic));
        let lost = ["a_to_b_dropped", "b_to_a_dropped"].map(|direction| reasons(link, name, direction));
        let replaced = robot.topics.iter().filter(|topic| ["robot/pose", "robot/battery"].contains(&&*topic.topic));
        Self {
            accepted: counter(robot, "uplink", "taken", None),
            arrived: arrived.map(|topic| topic.published).sum(),
            dropped: reasons(robot, "uplink", "dropped"),
            retransmissions: counter(robot, "uplink", "retransmissions", None),
            lost_packets: sum(lost.iter().flatten()),
            replaced: replaced.map(|topic| topic.dropped).sum(),
            ..Self::default()
        }
    }

    fn drops(&self) -> &[(String, u64)] {
        &self.dropped
    }

    fn refusals(&self) -> &[(String, u64)] {
        &self.refused
    }

    /// Returns the number of accepted messages that were neither acknowledged nor dropped.
    fn unanswered(&self) -> u64 {
        self.accepted.saturating_sub(self.acknowledged + sum(&self.dropped))
    }

    /// Returns `true` if each acknowledged message has arrived, none has arrived twice, and each other one has a reason.
    fn is_settled(&self) -> bool {
        self.acknowledged + sum(&self.dropped) <= self.accepted
            && self.unanswered() <= UNANSWERED_MAX
            && (self.acknowledged..=self.accepted).contains(&(self.arrived + sum(&self.refused)))
    }
}

fn sum<'a>(reasons: impl IntoIterator<Item = &'a (String, u64)>) -> u64 {
    reasons.into_iter().map(|(_, count)| count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(accepted: u64, acknowledged: u64, arrived: u64) -> RobotTotals {
        RobotTotals { accepted, acknowledged, arrived, ..RobotTotals::default() }
    }

    #[test]
    fn a_message_that_is_missing_or_arrives_twice_is_noticed() {
        assert!(totals(10, 10, 10).is_settled());
        assert!(totals(10, 9, 10).is_settled(), "the acknowledgement was lost");
        assert!(!totals(10, 10, 9).is_settled(), "acknowledged, but missing");
        assert!(!totals(10, 10, 11).is_settled(), "twice");
        assert!(!totals(10, 5, 5).is_settled(), "no reason");
        let dropped = vec![("stopped".to_owned(), 5)];
        assert!(RobotTotals { dropped, ..totals(10, 5, 5) }.is_settled());
    }
}
