//! The signal that asks the I/O of a component to end.

use tokio::sync::watch;

/// The signal that asks a component to end. Clones are the same signal. When it is given, all publishers that feed the
/// component have ended, so that its queues get no more samples.
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

    /// Returns `true` if the component is asked to end. Threads check it between two bounded waits.
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
