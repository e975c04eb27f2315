//! Connection, keep-alive, and sleep (6.2, 6.11 to 6.14).

use std::{net::SocketAddr, time::Duration};

use viaduct_units::Mono;

use super::{Client, ClientEvent, ClientRefusal, ClientState, Failure, RequestError};
use crate::{
    codec::{Connect, PROTOCOL_ID, Packet, ReturnCode, WillTopic},
    retry::Retry,
};

/// State of the connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    Disconnected,
    /// No gateway is known.
    Searching,
    Connecting {
        step: Step,
        retry: Retry,
        /// `true` if the session and its topic ids continue after sleep.
        resumes: bool,
    },
    /// The next attempt follows.
    Waiting(Mono),
    Active,
    FallingAsleep {
        duration: Duration,
        retry: Retry,
    },
    Asleep {
        duration: Duration,
        wake_at: Mono,
    },
    Awake {
        duration: Duration,
        retry: Retry,
    },
    Disconnecting(Retry),
}

/// Last message of the client in the dialogue of CONNECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Connect,
    WillTopic,
    WillMessage,
}

impl State {
    pub(super) const fn public(&self) -> ClientState {
        match self {
            Self::Disconnected => ClientState::Disconnected,
            Self::Searching | Self::Connecting { .. } | Self::Waiting(_) => ClientState::Connecting,
            Self::Active => ClientState::Active,
            Self::Asleep { .. } => ClientState::Asleep,
            Self::Awake { .. } => ClientState::Awake,
            Self::FallingAsleep { .. } | Self::Disconnecting(_) => ClientState::Leaving,
        }
    }

    /// Returns `true` if requests are sent.
    pub(super) const fn sends_requests(&self) -> bool {
        matches!(self, Self::Active)
    }
}

impl Client {
    /// Connects to a gateway, or to the first one that is discovered ([`Client::search`]).
    ///
    /// # Errors
    /// The client is connected or being connected.
    pub fn connect(&mut self, now: Mono, gateway: Option<SocketAddr>) -> Result<(), RequestError> {
        if !matches!(self.state, State::Disconnected) {
            return Err(RequestError::State);
        }
        self.fresh = true;
        self.topics.clear();
        self.unreleased.clear();
        self.gateway = gateway.or_else(|| self.discovery.next_after(None));
        if self.gateway.is_some() {
            self.start_connection(now, false);
        } else {
            self.state = State::Searching;
            self.search(now, 0);
        }
        Ok(())
    }

    /// Ends the connection. Requests that are not finished fail.
    ///
    /// # Errors
    /// The client is not connected.
    pub fn disconnect(&mut self, now: Mono) -> Result<(), RequestError> {
        match self.state {
            State::Disconnected | State::Disconnecting(_) => return Err(RequestError::State),
            State::Searching | State::Waiting(_) => {
                self.end_connection();
                return Ok(());
            }
            _ => (),
        }
        let retry = self.start_retry(now);
        self.state = State::Disconnecting(retry);
        self.send(now, &Packet::Disconnect { duration: None });
        Ok(())
    }

    /// Goes to sleep once all requests are finished: the gateway buffers messages. The client wakes up by itself at the end
    /// of the duration, 1 to 65,535 s, receives them and sleeps again. Requests that are made after [`ClientEvent::Asleep`]
    /// wait for [`Self::resume`].
    ///
    /// # Errors
    /// The client is not connected, or the duration is out of range.
    pub fn sleep(&mut self, now: Mono, duration: Duration) -> Result<(), RequestError> {
        let valid = (1..=u64::from(u16::MAX)).contains(&duration.as_secs());
        match self.state {
            State::Active if valid => self.sleep_after = Some(duration),
            State::Asleep { .. } if valid => self.fall_asleep(now, duration),
            _ => return Err(RequestError::State),
        }
        self.process_queue(now);
        Ok(())
    }

    /// Wakes up from sleep to receive the buffered messages. [`ClientEvent::Asleep`] follows.
    ///
    /// # Errors
    /// The client is not asleep.
    pub fn wake(&mut self, now: Mono) -> Result<(), RequestError> {
        let State::Asleep { duration, .. } = self.state else { return Err(RequestError::State) };
        let retry = self.start_retry(now);
        self.state = State::Awake { duration, retry };
        self.send_wake(now);
        Ok(())
    }

    /// Ends the sleep: the client is active again, and its requests are sent.
    ///
    /// # Errors
    /// The client is not asleep.
    pub fn resume(&mut self, now: Mono) -> Result<(), RequestError> {
        if !matches!(self.state, State::Asleep { .. } | State::Awake { .. }) {
            return Err(RequestError::State);
        }
        self.start_connection(now, true);
        Ok(())
    }

    pub(super) fn start_connection(&mut self, now: Mono, resumes: bool) {
        let retry = self.start_retry(now);
        self.state = State::Connecting { step: Step::Connect, retry, resumes };
        self.send_step(now, Step::Connect, resumes);
    }

    /// Sends the message of a step of the dialogue.
    fn send_step(&mut self, now: Mono, step: Step, resumes: bool) {
        let will = self.settings.will.clone();
        let keep_alive = u16::try_from(self.settings.keep_alive.as_secs()).unwrap_or(u16::MAX);
        let client_id = self.settings.client_id.clone();
        let packet = match step {
            Step::Connect => Packet::Connect(Connect {
                will: will.is_some() && !resumes,
                clean: self.fresh && self.settings.clean && !resumes,
                protocol: PROTOCOL_ID,
                duration: keep_alive,
                client: &client_id,
            }),
            Step::WillTopic => Packet::WillTopic(will.as_ref().map(|will| WillTopic {
                qos: will.qos,
                retain: will.retain,
                topic: &will.topic,
            })),
            Step::WillMessage => Packet::WillMsg { message: will.as_ref().map_or(&[], |will| &will.payload) },
        };
        self.send(now, &packet);
    }

    /// Goes on with the dialogue of CONNECT.
    fn continue_dialogue(&mut self, now: Mono, next: Step) {
        let State::Connecting { step, retry, resumes } = self.state else {
            return self.refuse(ClientRefusal::Unexpected);
        };
        if step != next {
            retry.answered(now, &mut self.round_trip);
        }
        let retry = self.start_retry(now);
        self.state = State::Connecting { step: next, retry, resumes };
        self.send_step(now, next, resumes);
    }

    pub(super) fn handle_will_topic_request(&mut self, now: Mono) {
        self.continue_dialogue(now, Step::WillTopic);
    }

    pub(super) fn handle_will_message_request(&mut self, now: Mono) {
        self.continue_dialogue(now, Step::WillMessage);
    }

    pub(super) fn handle_connack(&mut self, now: Mono, code: ReturnCode) {
        let (State::Connecting { retry, resumes, .. }, Some(gateway)) = (self.state, self.gateway) else {
            return self.refuse(ClientRefusal::Unexpected);
        };
        retry.answered(now, &mut self.round_trip);
        match code {
            ReturnCode::Accepted => {
                self.state = State::Active;
                self.connected_at = now;
                self.ping = None;
                if !resumes {
                    self.counters.connections += 1;
                    self.begin_session();
                }
                self.fresh = false;
                self.events.push_back(ClientEvent::Connected { gateway });
            }
            ReturnCode::Congestion => {
                self.state = State::Waiting(now.plus(self.settings.congestion_wait));
                self.events.push_back(ClientEvent::Refused { code });
            }
            _ => {
                self.events.push_back(ClientEvent::Refused { code });
                self.fail_all(Failure::Rejected(code));
                self.state = State::Disconnected;
            }
        }
    }

    /// Prepares a new connection: topic ids are not valid any more, and the gateway may have lost the subscriptions.
    fn begin_session(&mut self) {
        self.topics.clear();
        self.suspend_request();
        if self.fresh && self.settings.clean {
            self.subscriptions.clear();
        }
        self.subscribe_again();
    }

    /// Starts a new connection, after the gateway was silent or has forgotten the client.
    pub(super) fn lose_gateway(&mut self, now: Mono, at_once: bool) {
        let Some(gateway) = self.gateway else { return };
        let connected = !matches!(self.state, State::Connecting { resumes: false, .. } | State::Waiting(_));
        if connected {
            self.counters.lost += 1;
            self.events.push_back(ClientEvent::Lost { gateway });
        }
        self.suspend_request();
        self.ping = None;
        // 6.13: another gateway first.
        self.gateway = self.discovery.next_after(Some(gateway)).or(Some(gateway));
        if at_once || connected && self.gateway != Some(gateway) {
            self.start_connection(now, false);
        } else {
            self.state = State::Waiting(now.plus(self.settings.reconnect_wait));
        }
    }

    pub(super) fn handle_disconnect(&mut self, now: Mono) {
        match self.state {
            State::Disconnecting(retry) => {
                retry.answered(now, &mut self.round_trip);
                self.end_connection();
            }
            State::FallingAsleep { duration, retry } => {
                retry.answered(now, &mut self.round_trip);
                self.begin_sleep(now, duration);
            }
            State::Active | State::Asleep { .. } | State::Awake { .. } => {
                // A gateway that disconnects each new connection must not be asked without a pause.
                let at_once = now.since(self.connected_at) >= self.settings.reconnect_wait;
                self.lose_gateway(now, at_once);
            }
            _ => self.refuse(ClientRefusal::Unexpected),
        }
    }

    fn end_connection(&mut self) {
        self.state = State::Disconnected;
        self.ping = None;
        self.sleep_after = None;
        self.paused_until = None;
        self.fail_all(Failure::Disconnected);
        self.events.push_back(ClientEvent::Disconnected);
    }

    pub(super) fn fall_asleep(&mut self, now: Mono, duration: Duration) {
        let retry = self.start_retry(now);
        self.ping = None;
        self.state = State::FallingAsleep { duration, retry };
        self.send_sleep(now, duration);
    }

    /// Enters the sleep that the gateway has confirmed. Requests that were made since DISCONNECT are sent first.
    fn begin_sleep(&mut self, now: Mono, duration: Duration) {
        if self.queue.is_empty() {
            return self.enter_sleep(now, duration);
        }
        self.sleep_after = Some(duration);
        self.start_connection(now, true);
    }

    fn enter_sleep(&mut self, now: Mono, duration: Duration) {
        self.state = State::Asleep { duration, wake_at: now.plus(duration) };
        self.events.push_back(ClientEvent::Asleep);
    }

    fn send_sleep(&mut self, now: Mono, duration: Duration) {
        let duration = u16::try_from(duration.as_secs()).unwrap_or(u16::MAX);
        self.send(now, &Packet::Disconnect { duration: Some(duration) });
    }

    fn send_wake(&mut self, now: Mono) {
        let client_id = self.settings.client_id.clone();
        self.send(now, &Packet::PingReq { client: &client_id });
    }

    pub(super) fn handle_pingresp(&mut self, now: Mono) {
        match self.state {
            State::Awake { duration, retry } => {
                retry.answered(now, &mut self.round_trip);
                self.enter_sleep(now, duration);
            }
            _ => {
                if let Some(retry) = self.ping.take() {
                    retry.answered(now, &mut self.round_trip);
                }
            }
        }
    }

    /// Postpones the repetition of PINGREQ while the gateway sends the buffered messages.
    pub(super) fn postpone_wake(&mut self, now: Mono) {
        if let State::Awake { duration, .. } = self.state {
            let retry = self.start_retry(now);
            self.state = State::Awake { duration, retry };
        }
    }

    /// Returns the time of the next work of the connection.
    pub(super) fn connection_due(&self) -> Option<Mono> {
        match self.state {
            State::Disconnected | State::Searching => None,
            State::Connecting { retry, .. }
            | State::FallingAsleep { retry, .. }
            | State::Awake { retry, .. }
            | State::Disconnecting(retry) => Some(retry.due),
            State::Waiting(until) => Some(until),
            State::Asleep { wake_at, .. } => Some(wake_at),
            State::Active => self.ping.map(|retry| retry.due).or_else(|| self.ping_due()),
        }
    }

    /// Returns the time of the next PINGREQ: the gateway must hear of the client, and the client of the gateway.
    fn ping_due(&self) -> Option<Mono> {
        let keep_alive = self.settings.keep_alive;
        (!keep_alive.is_zero()).then(|| self.last_sent.min(self.last_received).plus(keep_alive))
    }

    /// Does the work of the connection that is due.
    pub(super) fn supervise_connection(&mut self, now: Mono) {
        if self.connection_due().is_none_or(|due| due > now) {
            return;
        }
        match self.state {
            State::Disconnected | State::Searching => (),
            State::Waiting(_) => self.start_connection(now, false),
            State::Asleep { .. } => drop(self.wake(now)),
            State::Active => self.supervise_ping(now),
            State::Connecting { step, mut retry, resumes } => {
                if self.repeats(now, &mut retry) {
                    self.state = State::Connecting { step, retry, resumes };
                    self.send_step(now, step, resumes);
                } else {
                    self.lose_gateway(now, false);
                }
            }
            State::FallingAsleep { duration, mut retry } => {
                if self.repeats(now, &mut retry) {
                    self.state = State::FallingAsleep { duration, retry };
                    self.send_sleep(now, duration);
                } else {
                    self.sleep_after = Some(duration);
                    self.lose_gateway(now, true);
                }
            }
            State::Awake { duration, mut retry } => {
                if self.repeats(now, &mut retry) {
                    self.state = State::Awake { duration, retry };
                    self.send_wake(now);
                } else {
                    self.sleep_after = Some(duration);
                    self.lose_gateway(now, true);
                }
            }
            State::Disconnecting(mut retry) => {
                if self.repeats(now, &mut retry) {
                    self.state = State::Disconnecting(retry);
                    self.send(now, &Packet::Disconnect { duration: None });
                } else {
                    self.end_connection();
                }
            }
        }
    }

    fn supervise_ping(&mut self, now: Mono) {
        let again = match self.ping {
            Some(mut retry) => self.repeats(now, &mut retry).then_some(retry),
            None => Some(self.start_retry(now)),
        };
        self.ping = again;
        match again {
            Some(_) => self.send(now, &Packet::PingReq { client: "" }),
            None => self.lose_gateway(now, true),
        }
    }

    /// Counts a retransmission. Returns `false` if the message has been sent often enough.
    pub(super) fn repeats(&mut self, now: Mono, retry: &mut Retry) -> bool {
        let again = retry.again(now, &self.settings.retransmission);
        self.counters.retransmissions += u64::from(again);
        again
    }
}
