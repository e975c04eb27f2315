//! `/v1/live` as server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::http::HeaderMap;
use axum::response::sse::Event;
use futures_util::Stream;

use super::problem::Problem;
use crate::cache::{Entry, Resumed};
use crate::live::{Delivery, Subscription};

/// Name of the header with the last event that a client has.
const LAST_EVENT_ID: &str = "last-event-id";

/// The sequence number that the client says it has, in the header that browsers send when they connect again.
pub(super) fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty()) else { return Ok(None) };
    let seq = value.to_str().ok().and_then(|text| text.parse().ok());
    seq.map(Some).ok_or_else(|| Problem::parameter("Last-Event-ID", "`Last-Event-ID` is not a sequence number"))
}

/// What a client gets: first what it missed, then what arrives.
struct State {
    subscription: Subscription,
    missed: VecDeque<Delivery>,
    /// The last sequence number that `missed` covers: the queue may hold it too.
    upto: u64,
}

/// The events for one client; `resumed` was read after it had subscribed.
pub(super) fn events(
    subscription: Subscription,
    resumed: Resumed,
) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    let lost = (resumed.lost > 0).then_some(Delivery::Lost(resumed.lost));
    let missed = lost.into_iter().chain(resumed.entries.into_iter().map(Delivery::Message)).collect();
    let state = State { subscription, missed, upto: resumed.upto };
    futures_util::stream::unfold(state, |mut state| async move {
        let delivery = state.next().await?;
        Some((Ok(event(&delivery)), state))
    })
}

impl State {
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

fn event(delivery: &Delivery) -> Event {
    match delivery {
        Delivery::Message(entry) => Event::default().id(entry.seq().to_string()).event("message").data(feature(entry)),
        Delivery::Lost(count) => Event::default().event("lost").data(format!("{{\"count\":{count}}}")),
    }
}

fn feature(entry: &Entry) -> String {
    let mut text = Vec::with_capacity(640);
    entry.write_feature(b"", &mut text);
    // The text is JSON made of strings.
    String::from_utf8(text).unwrap_or_default()
}
