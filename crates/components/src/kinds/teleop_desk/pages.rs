//! The pages that are logged in, and which of them has control.

use std::collections::BTreeMap;
use std::sync::Arc;

use viaduct_teleop::commands::Command as DriverInput;
use viaduct_teleop::driving::OperatorId;
use viaduct_units::Mono;

use super::mailbox::Mailbox;
use super::messages::{Control, Report};
use super::people::Person;

/// Identifies a page, in the order of logins.
pub(super) type PageId = u64;

/// A message from a page's connection to the owner of the machine.
pub(super) enum FromPage {
    /// The person at the page has logged in.
    Opened { page: PageId, person: Arc<Person>, mailbox: Arc<Mailbox> },
    /// An input of the driver, made at the given time.
    Input { page: PageId, seq: u32, sampled: Mono, input: DriverInput },
    /// A control message.
    Control { page: PageId, control: Control },
    /// Counts of the page.
    Report { page: PageId, report: Report },
    /// The connection has ended.
    Left { page: PageId },
}

/// A page that is logged in.
pub(super) struct Page {
    pub(super) person: Arc<Person>,
    pub(super) mailbox: Arc<Mailbox>,
    /// Number of the latest state.
    pub(super) seq: u32,
}

/// All pages that are logged in.
#[derive(Default)]
pub(super) struct Pages {
    pages: BTreeMap<PageId, Page>,
    /// Page that has control, as far as its operator has it. Another page of the same person does not drive.
    driver: Option<PageId>,
}

impl Pages {
    /// Adds a page. If its person has control and no page for it, because the connection was lost, the page gets it.
    pub(super) fn add(&mut self, id: PageId, page: Page, holder: Option<OperatorId>) {
        if self.driver.is_none() && holder == Some(page.person.operator) {
            self.driver = Some(id);
        }
        self.pages.insert(id, page);
    }

    /// Removes a page, and returns its person.
    pub(super) fn remove(&mut self, id: PageId) -> Option<Arc<Person>> {
        self.driver = self.driver.filter(|driver| *driver != id);
        self.pages.remove(&id).map(|page| page.person)
    }

    pub(super) fn get(&self, id: PageId) -> Option<&Page> {
        self.pages.get(&id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (PageId, &Page)> {
        self.pages.iter().map(|(id, page)| (*id, page))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (PageId, &mut Page)> {
        self.pages.iter_mut().map(|(id, page)| (*id, page))
    }

    pub(super) fn len(&self) -> usize {
        self.pages.len()
    }

    /// Gives control to a page.
    pub(super) fn set_driver(&mut self, id: PageId) {
        if self.pages.contains_key(&id) {
            self.driver = Some(id);
        }
    }

    /// Returns `true` if the page drives, if its operator is the one who has control.
    pub(super) fn is_driver(&self, id: PageId, holder: Option<OperatorId>) -> bool {
        self.driver == Some(id) && self.get(id).is_some_and(|page| holder == Some(page.person.operator))
    }

    /// Returns `true` if a page of the operator other than the given one drives.
    pub(super) fn drives_elsewhere(&self, id: PageId, operator: OperatorId) -> bool {
        self.driver
            .is_some_and(|driver| driver != id && self.get(driver).is_some_and(|page| page.person.operator == operator))
    }

    /// Returns `true` if the operator has a page.
    pub(super) fn has(&self, operator: OperatorId) -> bool {
        self.pages.values().any(|page| page.person.operator == operator)
    }
}
