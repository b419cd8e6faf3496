//! The generator as a process of its own: orders in, answers out ([`crate::wire`]).

use std::io::{BufRead, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use plan::CpuSet;

use crate::course::{NO_CUT, Signals};
use crate::prepare::{Course, Prepared, prepare};
use crate::sys;
use crate::wire::{Answer, Clocks, Hello, Interval, Order, PROTOCOL};

/// Takes orders until the input ends, and returns the exit code: 0 when every job that was ordered finished, else 1.
///
/// The end of the input stops a job at once: a generator never outlives who ordered it.
pub fn control(input: impl BufRead, output: impl Write + Send) -> i32 {
    let output = Mutex::new(output);
    let stop = AtomicBool::new(false);
    let cut_at = AtomicU64::new(NO_CUT);
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
                Ok(Order::Hello { protocol: PROTOCOL }) => answer(&Answer::Hello(hello())),
                Ok(Order::Hello { protocol }) => refuse(format!(
                    "the controller speaks version {protocol} of the protocol, this generator (exp {}) version {PROTOCOL}; use the same exp for both",
                    env!("CARGO_PKG_VERSION")
                )),
                Ok(Order::Clocks) => {
                    answer(&Answer::Clocks(Clocks { monotonic_ns: sys::now_ns(), wall_ns: sys::wall_ns() }));
                }
                Ok(Order::Stop) => {
                    stop.store(true, Ordering::Relaxed);
                    if !busy.load(Ordering::Acquire) && prepared.take().is_some() {
                        refuse("stopped before the start, as ordered".into());
                    }
                }
                Ok(Order::Cut { at_ns }) => {
                    if busy.load(Ordering::Acquire) {
                        cut_at.fetch_min(at_ns, Ordering::Relaxed);
                    } else if prepared.take().is_some() {
                        refuse("cut short before the start, as ordered".into());
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
                Ok(Order::Start { at_ns, every_ns }) => match prepared.take() {
                    None => refuse("a start came without a job; send a job first".into()),
                    Some(ready) => {
                        stop.store(false, Ordering::Relaxed);
                        cut_at.store(NO_CUT, Ordering::Relaxed);
                        busy.store(true, Ordering::Release);
                        let (stop, cut_at, busy, answer) = (&stop, &cut_at, &busy, &answer);
                        scope.spawn(move || {
                            let hear = |interval: Interval| answer(&Answer::Interval(Box::new(interval)));
                            let result = ready.run_course(Course {
                                at_ns,
                                signals: Signals { stop, cut_at },
                                intervals: (every_ns > 0).then_some((every_ns, &hear as _)),
                            });
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

/// Who this process is.
pub fn hello() -> Hello {
    let read = |path: &str| std::fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default();
    Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").into(),
        host: read("/proc/sys/kernel/hostname"),
        cpus: sys::allowed_cpus().map(CpuSet::new).unwrap_or_default(),
        clock: read("/proc/sys/kernel/random/boot_id"),
    }
}

/// Writes an answer as one line; `false` when nobody can read it.
fn write<W: Write>(output: &Mutex<W>, answer: &Answer) -> bool {
    let Ok(mut line) = serde_json::to_vec(answer) else { return false };
    line.push(b'\n');
    let mut output = output.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    output.write_all(&line).and_then(|()| output.flush()).is_ok()
}
