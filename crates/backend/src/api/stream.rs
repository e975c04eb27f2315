//! The resource `/v1/live` as server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::http::HeaderMap;
use axum::response::sse::Event;
use futures_util::Stream;

use super::problem::Problem;
use crate::cache::{Entry, Resumed};
use crate::live::{Delivery, Subscription};
use crate::run::{EventId, Run};

/// Name of the header with the id of the last event that a client received.
const LAST_EVENT_ID: &str = "last-event-id";

/// Returns the id of the last event that the client received, from the header that browsers send when they reconnect.
pub(super) fn last_event_id(headers: &HeaderMap) -> Result<Option<EventId>, Problem> {
    let Some(value) = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty()) else { return Ok(None) };
    let id = value.to_str().ok().and_then(|text| text.parse().ok());
    id.map(Some).ok_or_else(|| Problem::parameter("Last-Event-ID", "`Last-Event-ID` is not an event id of this API"))
}

/// State of a client's stream: first the missed messages, then new ones.
struct State {
    run: Run,
    /// `true` until the event `restarted` is sent, if the client's last event is of another run.
    restarted: bool,
    subscription: Subscription,
    missed: VecDeque<Delivery>,
    /// The last sequence number that `missed` covers; the queue may contain the same messages.
    upto: u64,
}

/// Returns the events for one client. The caller must read `resumed` after it has subscribed. If the client's last
/// event is of another run, `resumed` begins at the start of the cache.
pub(super) fn events(
    run: Run,
    restarted: bool,
    subscription: Subscription,
    resumed: Resumed,
) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    let lost = (resumed.lost > 0).then_some(Delivery::Lost(resumed.lost));
    let missed = lost.into_iter().chain(resumed.entries.into_iter().map(Delivery::Message)).collect();
    let state = State { run, restarted, subscription, missed, upto: resumed.upto };
    futures_util::stream::unfold(state, |mut state| async move {
        let event = state.event().await?;
        Some((Ok(event), state))
    })
}

impl State {
    async fn event(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.restarted) {
            return Some(restarted(self.run));
        }
        Some(event(self.run, &self.next().await?))
    }

    async fn next(&mut self) -> Option<Delivery> {
        if let Some(delivery) = self.missed.pop_front() {
            return Some(delivery);
        }
        loop {
            match self.subscription.next().await? {
                Delivery::Message(entry) if entry.seq() <= self.upto => {}
                delivery => return Some(delivery),
            }
        }
    }
}

/// Returns the event `restarted`. It has an id, so that a client that reconnects before the next message does not receive it
/// again.
fn restarted(run: Run) -> Event {
    let id = EventId { run, seq: 0 };
    Event::default().id(id.to_string()).event("restarted").data(format!("{{\"run\":\"{run}\"}}"))
}

fn event(run: Run, delivery: &Delivery) -> Event {
    match delivery {
        Delivery::Message(entry) => {
            let id = EventId { run, seq: entry.seq() };
            Event::default().id(id.to_string()).event("message").data(feature(entry))
        }
        Delivery::Lost(count) => Event::default().event("lost").data(format!("{{\"count\":{count}}}")),
    }
}

fn feature(entry: &Entry) -> String {
    let mut text = Vec::with_capacity(640);
    entry.write_feature(b"", &mut text);
    // The feature consists of valid UTF-8 only.
    String::from_utf8(text).unwrap_or_default()
}
