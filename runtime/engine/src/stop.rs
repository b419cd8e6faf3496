//! Being told to stop: Ctrl-C, SIGTERM, or a caller.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use crate::error::{Class, StepError};

/// How urgently a run was asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Nobody asked.
    GoOn,
    /// Asked once: end cleanly.
    Stop,
    /// Asked twice: end now.
    Now,
}

/// Asks a run to stop. Cheap to clone.
#[derive(Debug, Clone)]
pub struct StopHandle {
    urgency: Arc<watch::Sender<Urgency>>,
    flag: Arc<AtomicBool>,
}

/// Learns that a run was asked to stop. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Stop {
    urgency: watch::Receiver<Urgency>,
    flag: Arc<AtomicBool>,
}

/// A connected pair.
pub fn channel() -> (StopHandle, Stop) {
    let (sender, receiver) = watch::channel(Urgency::GoOn);
    let flag = Arc::new(AtomicBool::new(false));
    (StopHandle { urgency: Arc::new(sender), flag: Arc::clone(&flag) }, Stop { urgency: receiver, flag })
}

impl StopHandle {
    /// Asks: the first time to stop, every further time to stop now.
    pub fn ask(&self) -> Urgency {
        self.flag.store(true, Ordering::Relaxed);
        self.urgency.send_modify(|urgency| {
            *urgency = if *urgency == Urgency::GoOn { Urgency::Stop } else { Urgency::Now };
        });
        *self.urgency.borrow()
    }
}

impl Stop {
    /// A flag that is set once somebody asked, for work that blocks a thread.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }

    /// How urgently so far.
    pub fn urgency(&self) -> Urgency {
        *self.urgency.borrow()
    }

    /// An error as soon as somebody asked, so that `?` ends what is being done.
    ///
    /// # Errors
    /// Class [`Class::Interrupted`] once somebody asked.
    pub fn check(&self) -> Result<(), StepError> {
        if self.urgency() == Urgency::GoOn { Ok(()) } else { Err(interrupted()) }
    }

    /// Waits for `work`, unless somebody asks to stop first: then `work` is dropped.
    ///
    /// # Errors
    /// What `work` fails with, or class [`Class::Interrupted`].
    pub async fn guard<T>(&self, work: impl Future<Output = Result<T, StepError>>) -> Result<T, StepError> {
        let mut receiver = self.urgency.clone();
        tokio::select! {
            biased;
            // An error means that the handle is gone, with whoever wanted the run.
            _ = receiver.wait_for(|urgency| *urgency != Urgency::GoOn) => Err(interrupted()),
            done = work => done,
        }
    }

    /// Waits until somebody asks to stop now.
    pub async fn now(&self) {
        let mut receiver = self.urgency.clone();
        if receiver.wait_for(|urgency| *urgency == Urgency::Now).await.is_err() {
            // The handle is gone: nobody will ask.
            std::future::pending::<()>().await;
        }
    }
}

fn interrupted() -> StepError {
    StepError::new(Class::Interrupted, "the run was interrupted", "Ctrl-C or SIGTERM", "the same command continues it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_ends_what_is_guarded() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (handle, stop) = channel();
            assert_eq!(stop.guard(async { Ok(7) }).await, Ok(7));
            assert!(stop.check().is_ok());
            assert_eq!(handle.ask(), Urgency::Stop);
            let ended = stop.guard(std::future::pending::<Result<(), StepError>>()).await;
            assert_eq!(ended.map_err(|error| error.class), Err(Class::Interrupted));
            assert!(stop.check().is_err());
            assert_eq!(handle.ask(), Urgency::Now);
            stop.now().await;
        });
    }
}
