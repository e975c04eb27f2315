//! The signal that requests the end of a component's I/O.

use tokio::sync::watch;

/// The signal that requests the end of a component. Clones are the same signal. When it is sent, all publishers that
/// feed the component have ended, so that its queues get no more samples.
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

    /// Returns `true` if the end of the component is requested. Threads check it between two bounded waits.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        *self.asked.borrow()
    }

    /// Waits until the end of the component is requested.
    pub async fn asked(&mut self) {
        // An error means that the sender was dropped, which ends the component too.
        let _ = self.asked.wait_for(|asked| *asked).await;
    }
}

impl StopSender {
    pub(crate) fn ask(&self) {
        self.asked.send_replace(true);
    }
}
