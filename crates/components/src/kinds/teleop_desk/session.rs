//! The connection of one page, as a pure machine: login, limits, and the order of messages.
//!
//! **After each input, take every output from [`Session::poll_output`].**

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use viaduct_teleop::commands::Command as DriverInput;
use viaduct_units::{Mono, Now};

use super::messages::{
    Control, DeskMessage, PAGE_OCTETS_MAX, PageCommand, PageMessage, Refusal, Report, VERSION, error,
};
use super::people::{People, Person};
use super::time::{mono_of_us, tai_us};
use viaduct_units::RateLimiter;

/// Time from the opening of the connection to the login.
const LOGIN_TIME_MAX: Duration = Duration::from_secs(30);
/// Number of failed logins after which the connection is closed.
const LOGINS_FAILED_MAX: u32 = 5;
/// Messages of a page in a second.
const MESSAGES_PER_SECOND: u32 = 250;
/// Errors sent to a page in a second.
const ERRORS_PER_SECOND: u32 = 10;
/// Time by which a command may be in the future, because of the error of the page's clock.
const FUTURE_MAX: Duration = Duration::from_millis(50);
/// Time for which the smallest difference between the clocks of page and desk counts.
const CLOCK_WINDOW: Duration = Duration::from_secs(30);

/// The reason why a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Close {
    /// The desk stops.
    Stops,
    /// A message was too long.
    TooLong,
    /// No login in time, or too many failed ones.
    NoLogin,
    /// Too many pages are connected.
    TooMany,
    /// Too many connections wait for a login. This one has waited longest.
    TooManyWaiting,
    /// The page sends too many messages.
    TooFast,
    /// The page does not take its messages.
    TooSlow,
}

impl Close {
    /// All reasons.
    pub(super) const ALL: [Self; 7] =
        [Self::Stops, Self::TooLong, Self::NoLogin, Self::TooMany, Self::TooManyWaiting, Self::TooFast, Self::TooSlow];

    /// Returns the close code.
    pub(super) const fn code(self) -> u16 {
        match self {
            Self::Stops | Self::TooSlow => 1001,
            Self::TooLong => 1009,
            Self::NoLogin => 4001,
            Self::TooMany | Self::TooManyWaiting => 4003,
            Self::TooFast => 4008,
        }
    }

    /// Returns the reason as a constant text for counters and the close frame.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Stops => "desk_stops",
            Self::TooLong => "message_too_long",
            Self::NoLogin => "no_login",
            Self::TooMany => "too_many_pages",
            Self::TooManyWaiting => "too_many_waiting",
            Self::TooFast => "too_many_messages",
            Self::TooSlow => "page_too_slow",
        }
    }
}

/// The reason why a command of the page is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandRefusal {
    /// A later command has arrived before.
    Outdated,
    /// The command is too old.
    Stale,
    /// The time of the command is in the future.
    Future,
    /// The page does not have control.
    NotHolder,
}

impl CommandRefusal {
    /// All reasons.
    pub(super) const ALL: [Self; 4] = [Self::Outdated, Self::Stale, Self::Future, Self::NotHolder];

    /// Returns the reason as a constant text for counters.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Outdated => "outdated",
            Self::Stale => "stale",
            Self::Future => "future",
            Self::NotHolder => "not_holder",
        }
    }
}

/// An output of a session.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Output {
    /// A text for the page.
    Send(String),
    /// An answer to a ping, which replaces an answer that was not sent yet.
    Pong(String),
    /// A failed login. The next message of the page is read after a pause.
    LoginFailed,
    /// The person has logged in. The owner answers with `welcome`.
    LoggedIn(Arc<Person>),
    /// An input of the driver, made at the given time of the desk's clock.
    Input { seq: u32, sampled: Mono, input: DriverInput },
    /// A command that is refused.
    Refused(CommandRefusal),
    /// A control message.
    Control(Control),
    /// Counts of the page.
    Report(Report),
    /// A message that is not valid.
    Malformed,
    /// The connection ends.
    Close(Close),
}

/// The connection of one page.
pub(super) struct Session {
    people: Arc<People>,
    /// Largest age of a command.
    command_age_max: Duration,
    opened: Mono,
    person: Option<Arc<Person>>,
    logins_failed: u32,
    messages: RateLimiter,
    errors: RateLimiter,
    /// Number of the latest command.
    newest: Option<u32>,
    clock: PageClock,
    outputs: VecDeque<Output>,
    closed: bool,
}

impl Session {
    /// Returns a session that greets the page.
    pub(super) fn new(now: Now, desk: &str, people: Arc<People>, command_age_max: Duration) -> Self {
        let login = if people.need_token() { "token" } else { "none" };
        let hello = DeskMessage::Hello { version: VERSION, desk, login, time_us: tai_us(now.tai) };
        Self {
            people,
            command_age_max,
            opened: now.mono,
            person: None,
            logins_failed: 0,
            messages: RateLimiter::new(MESSAGES_PER_SECOND),
            errors: RateLimiter::new(ERRORS_PER_SECOND),
            newest: None,
            clock: PageClock::default(),
            outputs: VecDeque::from([Output::Send(hello.to_text())]),
            closed: false,
        }
    }

    /// Processes a text message of the page.
    pub(super) fn handle_text(&mut self, now: Now, text: &str) {
        if !self.admit(now) {
            return;
        }
        if text.len() > PAGE_OCTETS_MAX {
            return self.close(Close::TooLong);
        }
        match PageMessage::parse(text) {
            Ok(message) => self.handle_message(now, message),
            Err(refusal) => self.refuse(now, &refusal),
        }
    }

    /// Processes a message that is not a text. The page sends none.
    pub(super) fn handle_other(&mut self, now: Now) {
        if self.admit(now) {
            self.refuse(now, &Refusal::Malformed { reply_to: None, problem: "only texts are expected".to_owned() });
        }
    }

    /// Processes a keep-alive of the WebSocket.
    pub(super) fn handle_keep_alive(&mut self, now: Now) {
        self.admit(now);
    }

    /// Processes a message that is too long to be received.
    pub(super) fn handle_too_long(&mut self) {
        self.close(Close::TooLong);
    }

    /// Ends the session.
    pub(super) fn end(&mut self, close: Close) {
        self.close(close);
    }

    /// Counts a message. Returns `false` if the session has ended.
    fn admit(&mut self, now: Now) -> bool {
        if !self.closed && self.messages.admit(now.mono).is_none() {
            self.close(Close::TooFast);
        }
        !self.closed
    }

    fn handle_message(&mut self, now: Now, message: PageMessage) {
        match (message, self.person.is_some()) {
            (PageMessage::Login { token }, false) => self.login(&token),
            (_, false) => self.error(now, "login_required", "Log in first.", None),
            (PageMessage::Login { .. }, true) => {
                self.error(now, "malformed", "You are logged in already.", Some("login"));
            }
            (PageMessage::Ping { seq, page_us }, true) => {
                let pong = DeskMessage::Pong { seq, page_us, time_us: tai_us(now.tai) };
                self.outputs.push_back(Output::Pong(pong.to_text()));
            }
            (PageMessage::Command(command), true) => self.handle_command(now, &command),
            (PageMessage::Control(control), true) => self.outputs.push_back(Output::Control(control)),
            (PageMessage::Report(report), true) => self.outputs.push_back(Output::Report(report)),
        }
    }

    fn login(&mut self, token: &str) {
        if let Some(person) = self.people.find(token) {
            self.person = Some(person.clone());
            return self.outputs.push_back(Output::LoggedIn(person));
        }
        self.logins_failed += 1;
        let text = "This token is not known to the desk.";
        self.outputs.push_back(Output::Send(error("login_failed", text, false, Some("login"))));
        self.outputs.push_back(Output::LoginFailed);
        if self.logins_failed >= LOGINS_FAILED_MAX {
            self.close(Close::NoLogin);
        }
    }

    fn handle_command(&mut self, now: Now, command: &PageCommand) {
        let output = match self.check_command(now, command) {
            Ok(sampled) => Output::Input { seq: command.seq, sampled, input: command.input },
            Err(refusal) => Output::Refused(refusal),
        };
        self.outputs.push_back(output);
    }

    /// Returns the time of the input of a command.
    fn check_command(&mut self, now: Now, command: &PageCommand) -> Result<Mono, CommandRefusal> {
        let ahead = self.newest.map_or(1, |newest| command.seq.wrapping_sub(newest).cast_signed());
        if ahead <= 0 {
            return Err(CommandRefusal::Outdated);
        }
        self.newest = Some(command.seq);
        let delay = self.clock.delay(now.mono, command.page_us);
        let sampled = match command.time_us {
            Some(time_us) => mono_of_us(now, time_us),
            None => Mono(now.mono.0.saturating_sub(delay)),
        };
        if sampled.since(now.mono) > FUTURE_MAX {
            return Err(CommandRefusal::Future);
        }
        // The page's own clock shows a delay that a wrong time of the desk would hide.
        if now.mono.since(sampled).max(delay) > self.command_age_max {
            return Err(CommandRefusal::Stale);
        }
        Ok(sampled.min(now.mono))
    }

    fn refuse(&mut self, now: Now, refusal: &Refusal) {
        self.outputs.push_back(Output::Malformed);
        let text = refusal.to_string();
        match refusal {
            Refusal::Malformed { reply_to, .. } => self.error(now, "malformed", &text, *reply_to),
            Refusal::UnknownType => self.error(now, "unknown_type", &text, None),
            Refusal::Version => {
                self.outputs.push_back(Output::Send(error("version", &text, true, None)));
                self.close(Close::NoLogin);
            }
        }
    }

    /// Sends an error, if not too many were sent.
    pub(super) fn error(&mut self, now: Now, code: &str, text: &str, reply_to: Option<&str>) {
        if self.errors.admit(now.mono).is_some() {
            self.outputs.push_back(Output::Send(error(code, text, false, reply_to)));
        }
    }

    fn close(&mut self, close: Close) {
        if !self.closed {
            self.closed = true;
            self.outputs.push_back(Output::Close(close));
        }
    }

    /// Processes the time.
    pub(super) fn handle_timeout(&mut self, now: Mono) {
        if self.poll_timeout().is_some_and(|due| due <= now) {
            self.close(Close::NoLogin);
        }
    }

    /// Returns the time at which [`Self::handle_timeout`] must be called, or `None`.
    pub(super) fn poll_timeout(&self) -> Option<Mono> {
        (self.person.is_none() && !self.closed).then(|| self.opened.plus(LOGIN_TIME_MAX))
    }

    /// Returns the next output, or `None`.
    pub(super) fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }
}

/// The clock of a page, compared with that of the desk.
#[derive(Debug, Default)]
struct PageClock {
    /// Smallest time of arrival minus time of the page, in microseconds, of this window and the one before.
    current: Option<i64>,
    previous: Option<i64>,
    since: Mono,
}

impl PageClock {
    /// Returns by how much longer than the fastest message of the last minute a message was in transit.
    fn delay(&mut self, now: Mono, page_us: u64) -> Duration {
        let arrival_us = i64::try_from(now.0.as_micros()).unwrap_or(i64::MAX);
        let difference = arrival_us.saturating_sub(page_us.cast_signed());
        if now.since(self.since) >= CLOCK_WINDOW {
            (self.previous, self.current, self.since) = (self.current, None, now);
        }
        self.current = Some(self.current.map_or(difference, |smallest| smallest.min(difference)));
        let smallest = self.current.into_iter().chain(self.previous).min().unwrap_or(difference);
        Duration::from_micros(difference.saturating_sub(smallest).max(0).unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use viaduct_units::Tai;

    use super::super::settings::tests::settings;
    use super::*;

    const START_US: u64 = 1_795_422_645_000_000;
    const AGE_MAX: Duration = Duration::from_millis(150);

    fn at(ms: u64) -> Now {
        let tai = Tai::from_nanos((START_US + ms * 1000) as i64 * 1000);
        Now { mono: Mono(Duration::from_millis(1_000_000 + ms)), tai }
    }

    fn drain(session: &mut Session) -> Vec<Output> {
        std::iter::from_fn(|| session.poll_output()).collect()
    }

    /// Returns a session without login.
    fn open() -> Session {
        let people = Arc::new(People::without_login(&settings(&serde_json::json!({}))));
        let mut session = Session::new(at(0), "desk", people, AGE_MAX);
        drain(&mut session);
        session
    }

    fn logged_in() -> Session {
        let mut session = open();
        session.handle_text(at(0), r#"{"type":"login","version":1,"token":""}"#);
        assert!(matches!(drain(&mut session)[..], [Output::LoggedIn(_)]));
        session
    }

    fn locked() -> Session {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        std::fs::write(&path, "driver 0123456789abcdef Ada\n").unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let people = Arc::new(People::read(&path, &settings(&serde_json::json!({}))).unwrap());
        let mut session = Session::new(at(0), "desk", people, AGE_MAX);
        drain(&mut session);
        session
    }

    fn command(seq: u32, page_ms: u64, time_ms: Option<u64>) -> String {
        let time_us = time_ms.map_or("null".to_owned(), |ms| (START_US + ms * 1000).to_string());
        let page_us = page_ms * 1000;
        format!(
            r#"{{"type":"command","seq":{seq},"page_us":{page_us},"time_us":{time_us},"steering":0,"accelerator":0,"brake":0,"gear":"P","dead_man":false,"emergency":false,"input":"none"}}"#
        )
    }

    fn code(output: &Output) -> String {
        let Output::Send(text) = output else { panic!("{output:?}") };
        serde_json::from_str::<serde_json::Value>(text).unwrap()["code"].as_str().unwrap().to_owned()
    }

    #[test]
    fn nothing_but_a_login_is_accepted_before_it() {
        let mut session = locked();
        for text in [r#"{"type":"ping","seq":1,"page_us":1}"#, r#"{"type":"emergency_stop"}"#, &command(1, 1, None)] {
            session.handle_text(at(1), text);
            let outputs = drain(&mut session);
            assert_eq!(outputs.iter().map(code).collect::<Vec<_>>(), ["login_required"], "{text}");
        }
        session.handle_text(at(2), r#"{"type":"login","version":1,"token":"0123456789abcdef"}"#);
        assert!(matches!(&drain(&mut session)[..], [Output::LoggedIn(person)] if person.name == "Ada"));
        session.handle_text(at(3), r#"{"type":"emergency_stop"}"#);
        assert_eq!(drain(&mut session), [Output::Control(Control::EmergencyStop)]);
    }

    #[test]
    fn five_wrong_tokens_or_30_s_without_login_end_the_connection() {
        let mut session = locked();
        for _ in 0..5 {
            session.handle_text(at(1), r#"{"type":"login","version":1,"token":"wrong"}"#);
        }
        let outputs = drain(&mut session);
        assert_eq!(outputs.iter().filter(|output| **output == Output::LoginFailed).count(), 5);
        assert_eq!(outputs.last(), Some(&Output::Close(Close::NoLogin)));
        session.handle_text(at(2), r#"{"type":"login","version":1,"token":"0123456789abcdef"}"#);
        assert_eq!(drain(&mut session), []);

        let mut session = locked();
        session.handle_timeout(at(29_999).mono);
        assert_eq!(drain(&mut session), []);
        session.handle_timeout(session.poll_timeout().unwrap());
        assert_eq!(drain(&mut session), [Output::Close(Close::NoLogin)]);
        assert_eq!(logged_in().poll_timeout(), None);
    }

    #[test]
    fn a_page_that_sends_too_much_is_closed() {
        let mut session = logged_in();
        for _ in 0..249 {
            session.handle_text(at(5), r#"{"type":"ping","seq":1,"page_us":1}"#);
        }
        assert!(drain(&mut session).iter().all(|output| matches!(output, Output::Pong(_))));
        session.handle_keep_alive(at(6));
        assert_eq!(drain(&mut session), [Output::Close(Close::TooFast)]);
        let mut session = logged_in();
        session.handle_text(at(5), &" ".repeat(PAGE_OCTETS_MAX + 1));
        assert_eq!(drain(&mut session), [Output::Close(Close::TooLong)]);
    }

    #[test]
    fn at_most_ten_errors_are_sent_in_a_second() {
        let mut session = logged_in();
        for _ in 0..100 {
            session.handle_text(at(5), "{");
            session.handle_other(at(5));
        }
        let outputs = drain(&mut session);
        assert_eq!(outputs.iter().filter(|output| **output == Output::Malformed).count(), 200);
        assert_eq!(outputs.iter().filter(|output| matches!(output, Output::Send(_))).count(), 10);
    }

    #[test]
    fn a_command_has_the_time_of_its_input() {
        let mut session = logged_in();
        for (seq, page_ms, time_ms, now_ms, expected) in [
            (u32::MAX - 1, 100, Some(1000), 1010, Ok(1000)),
            (u32::MAX, 110, Some(1060), 1020, Ok(1020)),
            (0, 120, Some(1071), 1020, Err(CommandRefusal::Future)),
            (0, 130, Some(1030), 1040, Err(CommandRefusal::Outdated)),
            (1, 130, Some(800), 1041, Err(CommandRefusal::Stale)),
            (2, 140, None, 1060, Ok(1040)),
            // The desk's time is wrong, but the page's clock shows that the command is old.
            (3, 150, Some(1300), 1300, Err(CommandRefusal::Stale)),
        ] {
            session.handle_text(at(now_ms), &command(seq, page_ms, time_ms));
            match (&drain(&mut session)[..], expected) {
                ([Output::Input { seq: found, sampled, .. }], Ok(ms)) => {
                    assert_eq!((*found, *sampled), (seq, at(ms).mono), "{seq}");
                }
                ([Output::Refused(refusal)], Err(expected)) => assert_eq!(*refusal, expected, "{seq}"),
                other => panic!("{seq}: {other:?}"),
            }
        }
    }

    #[test]
    fn another_version_of_the_protocol_is_final() {
        let mut session = open();
        session.handle_text(at(0), r#"{"type":"login","version":9,"token":""}"#);
        let outputs = drain(&mut session);
        let [Output::Malformed, Output::Send(text), Output::Close(Close::NoLogin)] = &outputs[..] else {
            panic!("{outputs:?}");
        };
        assert!(text.contains("\"fatal\":true"), "{text}");
    }
}
