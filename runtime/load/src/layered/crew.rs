//! The threads of a layered job: they live from the opening of the connections on, because a connection of hyper's stays on
//! the thread that opened it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use journal::facts::TransportFacts;
use plan::{CpuSet, Protocol};
use tokio::sync::oneshot;

use super::open::Way;
use super::thread;
use crate::course::{NO_CUT, Shelf, Signals};
use crate::error::LoadError;
use crate::program::Program;
use crate::wire::{Job, Transport};
use crate::worker::Account;

/// When a thread begins, and how it is steered.
pub struct Start {
    /// The instant, CLOCK_MONOTONIC ns.
    pub at_ns: u64,
    /// Length of an interval, ns, and where books are laid down at the end of each.
    pub intervals: Option<(u64, Arc<Vec<Shelf>>)>,
    /// Ends it at once.
    pub stop: Arc<AtomicBool>,
    /// Ends its window early.
    pub cut_at: Arc<AtomicU64>,
}

/// A thread whose connections are open.
pub struct Hand {
    start: oneshot::Sender<Start>,
    account: Receiver<Result<(Account, u64), LoadError>>,
}

/// All threads of a job, their connections open.
pub struct Crew {
    hands: Vec<Hand>,
    agreed: Option<String>,
    transport: Transport,
}

/// How often signals are passed on to a thread.
const RELAY: Duration = Duration::from_millis(5);

impl Crew {
    /// Starts the threads and has them open their connections.
    ///
    /// # Errors
    /// When a thread can't be started or a connection can't be opened.
    pub fn new(job: &Job, program: &Arc<Program>) -> Result<Self, LoadError> {
        let way = Arc::new(Way::new(job)?);
        let mut crew = Self { hands: Vec::new(), agreed: None, transport: job.transport.clone() };
        let mut opening = Vec::new();
        for (index, number) in program.own.clone().enumerate() {
            let (start, started) = oneshot::channel();
            let (opened, opens) = mpsc::channel();
            let (ended, account) = mpsc::channel();
            let (program, way, cpu) = (Arc::clone(program), Arc::clone(&way), cpu_of(&job.cpus, index));
            std::thread::Builder::new()
                .name(format!("load-{number}"))
                .spawn(move || {
                    // Who prepared the job may have gone: then nobody asks for what came of it.
                    let _ = ended.send(thread::run(program, way, number, index, cpu, &opened, started));
                })
                .map_err(LoadError::system("start a thread", "close other programs"))?;
            crew.hands.push(Hand { start, account });
            opening.push(opens);
        }
        for (hand, opens) in crew.hands.iter().zip(opening) {
            match opens.recv() {
                Ok(agreed) => crew.agreed = agreed,
                // The thread has ended before its connections were open.
                Err(_) => {
                    return Err(match hand.account.recv() {
                        Ok(Err(error)) => error,
                        Ok(Ok(_)) | Err(_) => LoadError::Panicked("while it opened its connections".into()),
                    });
                }
            }
        }
        Ok(crew)
    }

    /// The threads, to be run one by one.
    pub fn into_hands(self) -> Vec<Hand> {
        self.hands
    }

    /// How requests travelled.
    pub fn facts(&self) -> TransportFacts {
        TransportFacts {
            engine: "hyper".into(),
            protocol: match self.transport.protocol {
                Protocol::Http1 => "HTTP/1.1".into(),
                Protocol::Http2 => "HTTP/2".into(),
            },
            in_flight: self.transport.in_flight,
            tls: self.agreed.clone(),
            certificate_unchecked: self.transport.tls.as_ref().is_some_and(|tls| tls.unchecked),
            proxy: self.transport.proxy.map(|proxy| proxy.to_string()),
            sent_again: 0,
        }
    }
}

fn cpu_of(cpus: &CpuSet, index: usize) -> Option<u32> {
    cpus.cpus().get(index % cpus.len().max(1)).copied()
}

impl Hand {
    /// Runs the thread from its start to its account, passing signals on.
    ///
    /// # Errors
    /// When it is stopped, the system fails it, or its books don't balance.
    pub fn run(
        self,
        at_ns: u64,
        signals: Signals<'_>,
        intervals: Option<(u64, Arc<Vec<Shelf>>)>,
        sent_again: &AtomicU64,
    ) -> Result<Account, LoadError> {
        let (stop, cut_at) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(NO_CUT)));
        let start = Start { at_ns, intervals, stop: Arc::clone(&stop), cut_at: Arc::clone(&cut_at) };
        // A thread that has ended already says why in its account.
        let _ = self.start.send(start);
        loop {
            match self.account.recv_timeout(RELAY) {
                Ok(result) => {
                    let (account, again) = result?;
                    sent_again.fetch_add(again, Ordering::Relaxed);
                    return Ok(account);
                }
                Err(RecvTimeoutError::Timeout) => {
                    stop.store(signals.stopped(), Ordering::Relaxed);
                    cut_at.store(signals.cut_at(), Ordering::Relaxed);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(LoadError::Panicked("in the engine for TLS, HTTP/2 and proxies".into()));
                }
            }
        }
    }
}
