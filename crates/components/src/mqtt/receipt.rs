//! The outcome of a message, for the one who has sent it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Reports, once, whether a message was published: when the last copy of the message is gone. The default reports nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receipt(Option<Arc<Report>>);

struct Report {
    is_published: AtomicBool,
    is_cancelled: AtomicBool,
    report: Option<Box<dyn FnOnce(bool) + Send + Sync>>,
}

impl Receipt {
    /// Returns a receipt. `report` gets `true` if the message was published, and `false` if it was dropped.
    pub(crate) fn new(report: impl FnOnce(bool) + Send + Sync + 'static) -> Self {
        let report: Option<Box<dyn FnOnce(bool) + Send + Sync>> = Some(Box::new(report));
        let (is_published, is_cancelled) = (AtomicBool::new(false), AtomicBool::new(false));
        Self(Some(Arc::new(Report { is_published, is_cancelled, report })))
    }

    /// Returns `true` if nothing is reported.
    pub(crate) const fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Reports nothing: another receipt reports the outcome.
    pub(crate) fn cancel(&self) {
        if let Some(report) = &self.0 {
            report.is_cancelled.store(true, Ordering::Relaxed);
        }
    }

    /// Notes that the message was published.
    pub(crate) fn published(&self) {
        if let Some(report) = &self.0 {
            report.is_published.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if let Some(report) = self.report.take().filter(|_| !*self.is_cancelled.get_mut()) {
            report(*self.is_published.get_mut());
        }
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report").field("is_published", &self.is_published).finish_non_exhaustive()
    }
}
