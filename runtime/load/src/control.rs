//! The generator as a process of its own: orders in, answers out ([`crate::wire`]).

use std::io::{BufRead, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::prepare::{Prepared, prepare};
use crate::wire::{Answer, Order};

/// Takes orders until the input ends, and returns the exit code: 0 when every job that was ordered finished, else 1.
///
/// The end of the input stops a job at once: a generator never outlives who ordered it.
pub fn control(input: impl BufRead, output: impl Write + Send) -> i32 {
    let output = Mutex::new(output);
    let stop = AtomicBool::new(false);
    let failed = AtomicBool::new(false);
    // Cleared before a job's answer is written: who has read that answer may send the next job.
    let busy = AtomicBool::new(false);
    let answer = |answer: &Answer| {
        if matches!(answer, Answer::Failed { .. }) {
            failed.store(true, Ordering::Relaxed);
        }
        if !write(&output, answer) {
            // Nobody listens any more.
            failed.store(true, Ordering::Relaxed);
            stop.store(true, Ordering::Relaxed);
        }
    };
    let refuse = |why: String| answer(&Answer::Failed { why });
    std::thread::scope(|scope| {
        let mut prepared: Option<Prepared> = None;
        for line in input.lines() {
            let line = match line {
                Ok(line) => line,
                Err(error) => {
                    refuse(format!("the orders can't be read: {error}"));
                    break;
                }
            };
            if line.trim().is_empty() {
                continue;
            }
            match serde_json::from_str::<Order>(&line) {
                Err(error) => refuse(format!("an order can't be read: {error}; send one JSON object per line")),
                Ok(Order::Stop) => {
                    stop.store(true, Ordering::Relaxed);
                    if !busy.load(Ordering::Acquire) && prepared.take().is_some() {
                        refuse("stopped before the start, as ordered".into());
                    }
                }
                Ok(Order::Job(_)) if busy.load(Ordering::Acquire) => {
                    refuse("a job came while another runs; wait for its answer or stop it first".into());
                }
                Ok(Order::Job(job)) => match prepare(&job) {
                    Ok(ready) => {
                        answer(&Answer::Ready { connected: ready.connected() });
                        prepared = Some(ready);
                    }
                    Err(error) => refuse(error.to_string()),
                },
                Ok(Order::Start { at_ns }) => match prepared.take() {
                    None => refuse("a start came without a job; send a job first".into()),
                    Some(ready) => {
                        stop.store(false, Ordering::Relaxed);
                        busy.store(true, Ordering::Release);
                        let (stop, busy, answer) = (&stop, &busy, &answer);
                        scope.spawn(move || {
                            let result = ready.run(at_ns, stop);
                            busy.store(false, Ordering::Release);
                            match result {
                                Ok(facts) => answer(&Answer::Finished { facts: Box::new(facts) }),
                                Err(error) => answer(&Answer::Failed { why: error.to_string() }),
                            }
                        });
                    }
                },
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    i32::from(failed.load(Ordering::Relaxed))
}

/// Writes an answer as one line; `false` when nobody can read it.
fn write<W: Write>(output: &Mutex<W>, answer: &Answer) -> bool {
    let Ok(mut line) = serde_json::to_vec(answer) else { return false };
    line.push(b'\n');
    let mut output = output.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    output.write_all(&line).and_then(|()| output.flush()).is_ok()
}
