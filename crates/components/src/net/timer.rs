//! A timer with the resolution of the kernel. The timers of the runtime have one of 1 ms, which is too coarse for the pacing of
//! datagrams.

use std::io;
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::unix::AsyncFd;
use viaduct_bus::clock;
use viaduct_units::Mono;

use super::sys;

/// A timer that expires at one time.
pub(crate) struct PreciseTimer {
    timer: AsyncFd<sys::Timer>,
    /// Time for which the timer is set; `None` if it is not set.
    set_for: Option<Mono>,
}

impl PreciseTimer {
    /// Creates a timer that is not set. Must be called inside the runtime.
    ///
    /// # Errors
    /// A system call fails.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        Ok(Self { timer: sys::watch_timer(timer)?, set_for: None })
    }

    /// Sets the timer, or stops it.
    ///
    /// # Errors
    /// A system call fails.
    pub(crate) fn set(&mut self, time: Option<Mono>) -> io::Result<()> {
        if self.set_for == time {
            return Ok(());
        }
        self.set_for = time;
        match time {
            // A time of 0 stops a timer; one in the past expires at once.
            Some(time) => {
                let time = TimeSpec::from_duration(time.0.max(Duration::from_nanos(1)));
                self.timer.get_ref().0.set(Expiration::OneShot(time), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
            }
            None => self.timer.get_ref().0.unset()?,
        }
        Ok(())
    }

    /// Waits until the timer expires. Returns at once if its time has passed. Cancelling the wait loses nothing.
    ///
    /// # Errors
    /// A system call fails.
    pub(crate) async fn expired(&mut self) -> io::Result<()> {
        while self.set_for.is_none_or(|time| clock::mono() < time) {
            self.timer.readable().await?.clear_ready();
        }
        self.set_for = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_timer_expires_at_its_time_and_not_before() {
        let mut timer = PreciseTimer::new().unwrap();
        for micros in [0, 200, 1500] {
            let due = clock::mono().plus(Duration::from_micros(micros));
            timer.set(Some(due)).unwrap();
            timer.expired().await.unwrap();
            assert!(clock::mono() >= due);
        }
        timer.set(Some(clock::mono().plus(Duration::from_secs(3600)))).unwrap();
        timer.set(None).unwrap();
        let waited = tokio::time::timeout(Duration::from_millis(5), timer.expired()).await;
        assert!(waited.is_err());
        timer.set(Some(clock::mono())).unwrap();
        timer.expired().await.unwrap();
    }
}
