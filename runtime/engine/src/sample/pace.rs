//! The pace witness: how fast a fixed piece of work runs on a CPU inside the window.
//!
//! One thread per measured CPU sleeps 5 ms, then does four schoolbook multiplications of 64 × 64 limbs (13 to 17 µs
//! on a quiet core) and takes the time by its own CPU clock. That is 0.3 % of the CPU. Sleeping and waking come on top,
//! and cost most on a virtual machine, where to set a timer leaves the guest: 0.8 % in all on one with two CPUs, while
//! its neighbours were busy (benches/sampler.rs). The work stays in the first-level cache and keeps the multiplier busy,
//! so it is slowed by whatever shares the physical core: that is what CPU time of a service is slowed by too, and what
//! neither steal nor a latency-bound loop shows.
//!
//! A wake-up that comes more than 1 ms late although no other thread of the CPU ran in the meantime is a stall: the platform
//! stood still. The kernel says how long the thread waited for other threads (`schedstat`), and that part is taken off.

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use journal::{Histogram, PaceFacts, Stall};
use plan::CpuSet;

use super::{clock, pin};

/// Time between two samples, ns.
pub const PERIOD_NS: u64 = 5_000_000;
/// A wake-up that is later than this is a stall, ns.
pub const LATE_NS: u64 = 1_000_000;

const LIMBS: usize = 64;
const MULTIPLICATIONS: usize = 4;

/// The window, shared with the witnesses: they keep only what lies in it.
#[derive(Debug)]
pub struct Window {
    start_ns: AtomicU64,
    end_ns: AtomicU64,
    over: AtomicBool,
}

impl Window {
    /// No window yet.
    pub fn new() -> Self {
        Self { start_ns: AtomicU64::new(u64::MAX), end_ns: AtomicU64::new(u64::MAX), over: AtomicBool::new(false) }
    }

    /// Sets the window, instants of CLOCK_MONOTONIC.
    pub fn set(&self, start_ns: u64, end_ns: u64) {
        self.end_ns.store(end_ns, Ordering::Release);
        self.start_ns.store(start_ns, Ordering::Release);
    }

    /// Tells whoever watches it to stop.
    pub fn finish(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Whether to stop.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// The part of `from..to` that lies within.
    fn within(&self, from: u64, to: u64) -> Option<(u64, u64)> {
        let (start, end) = (self.start_ns.load(Ordering::Acquire), self.end_ns.load(Ordering::Acquire));
        let (from, to) = (from.max(start), to.min(end));
        (from < to).then_some((from, to))
    }
}

impl Default for Window {
    fn default() -> Self {
        Self::new()
    }
}

/// A witness at work.
#[derive(Debug)]
pub struct Witness {
    cpu: u32,
    thread: JoinHandle<Result<PaceFacts, String>>,
}

impl Witness {
    /// Starts the witness of a CPU. It ends soon after [`Window::finish`].
    pub fn start(cpu: u32, window: Arc<Window>) -> Result<Self, String> {
        let thread = std::thread::Builder::new()
            .name(format!("pace-{cpu}"))
            .spawn(move || witness(cpu, &window))
            .map_err(|error| format!("the witness' thread can't be started: {error}"))?;
        Ok(Self { cpu, thread })
    }

    /// Its CPU and what it saw, or why it saw nothing.
    pub fn join(self) -> (u32, Result<PaceFacts, String>) {
        let facts = self.thread.join().unwrap_or_else(|_| Err("the witness' thread panicked".to_owned()));
        (self.cpu, facts)
    }
}

fn witness(cpu: u32, window: &Window) -> Result<PaceFacts, String> {
    pin::pin_self(&CpuSet::new([cpu])).map_err(|error| format!("the witness can't be bound to CPU {cpu}: {error}"))?;
    let first = pin::take_precedence();
    pin::wake_exactly();
    let waits = Waits::open();
    let mut work = Work::new();
    // Pages, code and branch predictors are warm before the first sample that counts.
    for _ in 0..8 {
        work.sample_ns();
    }
    let mut samples: Vec<u64> = Vec::with_capacity(1 << 14);
    let mut stalls = Vec::new();
    let mut due = clock::monotonic_ns() + PERIOD_NS;
    let mut waited_before = waits.ns();
    // A thread that runs before all others waits some microseconds a time, which may add up a little; any other may wait
    // for milliseconds each time.
    let read_waits_every = if first { 16 } else { 1 };
    for turn in 0u64.. {
        if window.is_over() {
            break;
        }
        clock::sleep_until(due);
        let woken = clock::monotonic_ns();
        let sample_ns = work.sample_ns();
        if window.within(woken, woken + 1).is_some() {
            samples.push(sample_ns);
        }
        let mut late = woken.saturating_sub(due);
        if late > LATE_NS || turn.is_multiple_of(read_waits_every) {
            let waited = waits.ns();
            late = late.saturating_sub(waited.saturating_sub(waited_before));
            waited_before = waited;
        }
        if late > LATE_NS
            && let Some((from, to)) = window.within(due, due + late)
        {
            stalls.push(Stall { at_ns: from, for_ns: to - from });
        }
        // The grid is kept; instants that were slept over are left out.
        due += PERIOD_NS * (1 + clock::monotonic_ns().saturating_sub(due) / PERIOD_NS);
    }
    Ok(PaceFacts { samples: Histogram::of(samples), stalls })
}

/// How long the calling thread has waited for a CPU that other threads held.
struct Waits(Option<File>);

impl Waits {
    fn open() -> Self {
        // SAFETY: no arguments.
        let thread = unsafe { libc::syscall(libc::SYS_gettid) };
        Self(File::open(format!("/proc/self/task/{thread}/schedstat")).ok())
    }

    /// Nanoseconds so far; 0 where the kernel does not count them, so that a wait then passes for a stall.
    fn ns(&self) -> u64 {
        let mut text = [0u8; 64];
        let length = self.0.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
        let text = std::str::from_utf8(&text[..length]).unwrap_or("");
        text.split_ascii_whitespace().nth(1).and_then(|ns| ns.parse().ok()).unwrap_or(0)
    }
}

/// The fixed piece of work.
pub struct Work {
    left: [u64; LIMBS],
    right: [u64; LIMBS],
    product: [u64; 2 * LIMBS],
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Work")
    }
}

impl Work {
    /// Operands without structure: every multiplication costs the same on the CPUs that matter, but a compiler or a
    /// CPU must not find zeros.
    pub fn new() -> Self {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = || {
            state = state.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
            state | 1
        };
        Self { left: std::array::from_fn(|_| next()), right: std::array::from_fn(|_| next()), product: [0; 2 * LIMBS] }
    }

    /// Does the work once and says how long it took, by the thread's CPU clock, ns.
    ///
    /// A fifth multiplication goes before it, unmeasured: it fetches what the measured program has driven out of the
    /// caches meanwhile. Beside a program that writes all over 32 MB, on a core that was quiet otherwise, samples
    /// without it were 4 to 6 % slower than on an idle one, and with it less than 1 %.
    pub fn sample_ns(&mut self) -> u64 {
        multiply(black_box(&self.left), black_box(&self.right), &mut self.product);
        black_box(&mut self.product);
        let before = clock::thread_cpu_ns();
        for _ in 0..MULTIPLICATIONS {
            multiply(black_box(&self.left), black_box(&self.right), &mut self.product);
            black_box(&mut self.product);
        }
        clock::thread_cpu_ns() - before
    }
}

impl Default for Work {
    fn default() -> Self {
        Self::new()
    }
}

/// Schoolbook multiplication.
#[inline(never)]
fn multiply(left: &[u64; LIMBS], right: &[u64; LIMBS], product: &mut [u64; 2 * LIMBS]) {
    product.fill(0);
    for (shift, &a) in left.iter().enumerate() {
        let mut carry = 0u64;
        for (&b, limb) in right.iter().zip(&mut product[shift..shift + LIMBS]) {
            let sum = u128::from(a) * u128::from(b) + u128::from(*limb) + u128::from(carry);
            *limb = sum as u64;
            carry = (sum >> 64) as u64;
        }
        product[shift + LIMBS] = carry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_is_a_multiplication() {
        let (mut left, mut right, mut product) = ([0; LIMBS], [0; LIMBS], [7; 2 * LIMBS]);
        (left[0], left[1], right[0], right[63]) = (u64::MAX, 3, 5, 2);
        multiply(&left, &right, &mut product);
        let mut expected = [0; 2 * LIMBS];
        // (2^64 − 1 + 3·2^64) · 5 = 4·2^64·5 − 5 = 19·2^64 + 2^64 − 5; and twice the left number from limb 63 on.
        (expected[0], expected[1]) = (u64::MAX - 4, 19);
        (expected[63], expected[64]) = (u64::MAX - 1, 7);
        assert_eq!(product, expected);
    }

    #[test]
    fn the_window_clips() {
        let window = Window::new();
        assert_eq!(window.within(5, 6), None);
        window.set(10, 20);
        for (from, to, expected) in [
            (5, 9, None),
            (5, 10, None),
            (5, 11, Some((10, 11))),
            (12, 13, Some((12, 13))),
            (19, 30, Some((19, 20))),
            (20, 21, None),
            (0, 100, Some((10, 20))),
        ] {
            assert_eq!(window.within(from, to), expected, "{from}..{to}");
        }
    }
}
