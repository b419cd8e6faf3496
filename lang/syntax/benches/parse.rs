//! Reading speed and memory: ours beside the `kdl` crate in the same run, because machines are noisy. `cargo bench -p syntax`
//! prints a table; it judges only what does not depend on the machine: allocations and bytes.
#![expect(clippy::disallowed_types, reason = "a benchmark has a clock")]
#![expect(clippy::disallowed_methods, reason = "a benchmark has a clock")]
#![expect(clippy::disallowed_macros, reason = "a benchmark prints")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// The system's allocator, which counts.
struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);
static LIVE: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);

fn grown(by: usize) {
    CALLS.fetch_add(1, Relaxed);
    let live = LIVE.fetch_add(by as u64, Relaxed) + by as u64;
    PEAK.fetch_max(live, Relaxed);
}

// SAFETY: every call is passed on as it came; counting touches no memory of the caller.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: the caller's promises are those of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as u64, Relaxed);
        // SAFETY: the caller's promises are those of `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LIVE.fetch_sub(layout.size() as u64, Relaxed);
        grown(size);
        // SAFETY: the caller's promises are those of `System`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A text of at least that many lines, with a bit of everything that studies have.
fn study(lines: usize) -> String {
    let part = include_str!("../corpus/study.kdl");
    part.repeat(lines.div_ceil(part.lines().count()))
}

/// Allocations and the peak of bytes held while `f` runs and its result lives.
fn memory<T>(f: impl FnOnce() -> T) -> (u64, u64) {
    let (calls, live) = (CALLS.load(Relaxed), LIVE.load(Relaxed));
    PEAK.store(live, Relaxed);
    let kept = black_box(f());
    let counted = (CALLS.load(Relaxed) - calls, PEAK.load(Relaxed) - live);
    drop(kept);
    counted
}

/// Milliseconds, least and median, of `runs` runs.
fn time<T>(runs: usize, mut f: impl FnMut() -> T) -> (f64, f64) {
    let mut all: Vec<f64> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            let kept = black_box(f());
            let took = start.elapsed().as_secs_f64() * 1e3;
            drop(kept);
            took
        })
        .collect();
    all.sort_by(f64::total_cmp);
    (all.first().copied().unwrap_or(f64::NAN), all.get(runs / 2).copied().unwrap_or(f64::NAN))
}

fn main() {
    println!("lines    bytes     who         min ms   median ms  µs/line  allocations  peak bytes / text bytes");
    let mut broken = Vec::new();
    for (lines, our_runs, their_runs) in [(1_000, 400, 10), (10_000, 60, 3), (100_000, 10, 1)] {
        let text: Arc<str> = study(lines).into();
        let written = text.lines().count();
        let row = |who: &str, (min, median): (f64, f64), (calls, peak): (u64, u64)| {
            let ratio = peak as f64 / text.len() as f64;
            let per_line = min * 1e3 / written as f64;
            println!(
                "{written:<8} {:<9} {who:<10} {min:>8.3} {median:>10.3} {per_line:>9.3} {calls:>12} {ratio:>10.2}",
                text.len()
            );
            ratio
        };
        let ours = memory(|| syntax::parse(text.clone()));
        let least = time(our_runs, || syntax::parse(text.clone()));
        let ratio = row("syntax", least, ours);
        row("format", time(our_runs / 2, || syntax::format(&text)), memory(|| syntax::format(&text)));
        row("lines", time(our_runs / 2, || syntax::LineIndex::new(&text)), memory(|| syntax::LineIndex::new(&text)));
        let theirs = || text.parse::<kdl::KdlDocument>();
        row("kdl", time(their_runs, theirs), memory(theirs));
        if ours.0 > if lines > 1_000 { 40 } else { 10 } {
            broken.push(format!("{lines} lines: {} allocations", ours.0));
        }
        if ratio > 6.0 {
            broken.push(format!("{lines} lines: {ratio:.2} times the text's memory"));
        }
    }
    // What nobody writes, and what a slip of a generator may: a diagnostic, in bounded time and memory.
    for (what, text) in [("1,000,000 nested blocks", "a {".repeat(1_000_000)), ("100 MB", "a 10s\n".repeat(17 << 20))] {
        let text: Arc<str> = text.into();
        let (_, peak) = memory(|| syntax::parse(text.clone()));
        let problems = syntax::parse(text.clone()).problems;
        let (min, _) = time(3, || syntax::parse(text.clone()));
        let told = problems.first().map_or("nothing", |problem| problem.message.as_str());
        let beyond = peak as f64 / text.len() as f64;
        println!("{what}: {min:.1} ms, {beyond:.2} times its bytes in memory; told: {told}");
        if problems.is_empty() || beyond > 6.0 {
            broken.push(format!("{what}: {} problems, {beyond:.2} times the text's memory", problems.len()));
        }
    }
    if !broken.is_empty() {
        eprintln!(
            "beyond the bars (10 allocations at 1,000 lines, 40 beyond; 6 times the text):\n  {}",
            broken.join("\n  ")
        );
        std::process::exit(1);
    }
}
