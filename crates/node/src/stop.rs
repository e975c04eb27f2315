//! Telling I/O that it is time to end.

use tokio::sync::watch;

/// Says when a component is asked to end; clones say the same. By then everything that feeds the component has ended,
/// so what is in its queues is all that will come.
#[derive(Clone, Debug)]
pub struct Stop {
    asked: watch::Receiver<bool>,
}

/// The other end of a [`Stop`].
#[derive(Debug)]
pub(crate) struct StopSender {
    asked: watch::Sender<bool>,
}

impl Stop {
    pub(crate) fn pair() -> (StopSender, Self) {
        let (sender, asked) = watch::channel(false);
        (StopSender { asked: sender }, Self { asked })
    }

    /// Whether the component is asked to end; what threads look at between two bounded waits.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        *self.asked.borrow()
    }

    /// Waits until the component is asked to end.
    pub async fn asked(&mut self) {
        // An error means that the sender is gone, which ends the component too.
        let _ = self.asked.wait_for(|asked| *asked).await;
    }
}

impl StopSender {
    pub(crate) fn ask(&self) {
        self.asked.send_replace(true);
    }
}
