//! The connections that wait for a login. Their number is limited.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::mailbox::Mailbox;
use super::session::Close;

/// Largest number of connections that wait for a login.
const WAITING_MAX: usize = 16;

/// The mailboxes of the connections that wait for a login, oldest first.
#[derive(Debug, Default)]
pub(super) struct WaitingPages(Mutex<VecDeque<Arc<Mailbox>>>);

/// The place of a connection that waits for a login. Dropping it frees the place.
pub(super) struct WaitingPlace {
    mailbox: Arc<Mailbox>,
    pages: Arc<WaitingPages>,
}

impl WaitingPages {
    /// Adds a connection. If all places are taken, closes the oldest one: connections that never log in must not prevent a login.
    pub(super) fn add(pages: &Arc<Self>, mailbox: Arc<Mailbox>) -> WaitingPlace {
        let mut waiting = pages.lock();
        let oldest = if waiting.len() >= WAITING_MAX { waiting.pop_front() } else { None };
        waiting.push_back(mailbox.clone());
        drop(waiting);
        if let Some(oldest) = oldest {
            oldest.close(Close::TooManyWaiting);
        }
        WaitingPlace { mailbox, pages: pages.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Mailbox>>> {
        // A panic of another thread cannot leave the list in an invalid state.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        self.pages.lock().retain(|mailbox| !Arc::ptr_eq(mailbox, &self.mailbox));
    }
}

#[cfg(test)]
mod tests {
    use viaduct_bus::Bus;

    use super::super::mailbox::tests::mailbox;
    use super::*;

    #[test]
    fn a_connection_without_a_place_closes_the_oldest_one_that_waits() {
        let bus = Bus::new("t");
        let closed = || bus.counter("desk", "pages_closed", Some(Close::TooManyWaiting.name())).value();
        let pages = Arc::default();
        let add = || WaitingPages::add(&pages, Arc::new(mailbox(&bus)));
        let mut places: Vec<WaitingPlace> = (0..WAITING_MAX).map(|_| add()).collect();
        // A login, and the end of a connection, free a place.
        drop(places.remove(0));
        places.push(add());
        assert_eq!(closed(), 0);
        for further in 1..=3 {
            places.push(add());
            assert_eq!((closed(), pages.lock().len()), (further, WAITING_MAX));
        }
        assert!(Arc::ptr_eq(&pages.lock()[0], &places[3].mailbox));
        drop(places);
        assert_eq!(pages.lock().len(), 0);
    }
}
