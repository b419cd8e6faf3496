//! What the benchmarks of this crate share: an allocator that counts, studies of any size, a clock.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use analysis::{Host, Options, stdlib};
use syntax::MemorySources;

/// The system's allocator, which counts calls, live bytes and their peak while it is asked to: counting costs time.
pub struct Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicUsize = AtomicUsize::new(0);
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn grown(by: usize) {
    if !COUNTS.load(Relaxed) {
        return;
    }
    CALLS.fetch_add(1, Relaxed);
    let live = LIVE.fetch_add(by, Relaxed) + by;
    PEAK.fetch_max(live, Relaxed);
}

fn shrunk(by: usize) {
    if COUNTS.load(Relaxed) {
        // What was made before counting began may be freed now.
        let _ = LIVE.fetch_update(Relaxed, Relaxed, |live| Some(live.saturating_sub(by)));
    }
}

// SAFETY: every call goes to the system's allocator unchanged; the counters don't touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: the caller's layout is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        shrunk(layout.size());
        // SAFETY: the pointer came from `alloc` above with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        shrunk(layout.size());
        grown(size);
        // SAFETY: the pointer came from `alloc` above with this layout.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What `f` gives, its allocations, and the peak of bytes held while it ran.
pub fn memory<T>(f: impl FnOnce() -> T) -> (T, usize, usize) {
    for counter in [&CALLS, &LIVE, &PEAK] {
        counter.store(0, Relaxed);
    }
    COUNTS.store(true, Relaxed);
    let kept = black_box(f());
    COUNTS.store(false, Relaxed);
    (kept, CALLS.load(Relaxed), PEAK.load(Relaxed))
}

/// Milliseconds of each of `runs` runs, sorted. What a run gives is dropped outside of its time.
pub fn times<T>(runs: usize, mut f: impl FnMut() -> T) -> Vec<f64> {
    let mut all: Vec<f64> = (0..runs.max(1))
        .map(|_| {
            let start = Instant::now();
            let kept = black_box(f());
            let took = start.elapsed().as_secs_f64() * 1e3;
            drop(kept);
            took
        })
        .collect();
    all.sort_by(f64::total_cmp);
    all
}

/// A host of four CPUs.
pub fn options() -> Options {
    Options { host: Some(Host { cpus: "0-3".parse().unwrap_or_default(), ..Host::default() }), ..Options::default() }
}

/// A study whose sweep has `side`³ × 10 cells.
pub fn wide(side: usize) -> String {
    let levels = |count: usize| (1..=count).map(|level| level.to_string()).collect::<Vec<_>>().join(" ");
    let mut text = String::from(
        "study big { title \"t\"; question \"q\" }\nuse \"std/http\"\n\
         machine bench { cpus candidate=\"0\" database=\"1\" load=\"2\" }\n\
         probe nginx { process builtin; listen 8090; ready GET=\"/\" }\n\
         workload mixed { stream read { GET \"/\"; expect 200 { body \"ok\" } } }\n",
    );
    for index in 0..10 {
        let _ = writeln!(
            text,
            "candidate c{index} {{ image \"app:{index}\"; listen 8080; env A=\"${{a}}\"; ready GET=\"/\" }}"
        );
    }
    for name in ["a", "b", "c"] {
        let _ = writeln!(text, "factor {name} {}", levels(side));
    }
    text.push_str(
        "phase sweep like=saturation { over candidate a b c; gate generator-probe of=before.throughput; repeat 5 }\n\
         phase before like=saturation { over candidate a b c }\n\
         agreement x { between sweep.throughput before.throughput within=\"5%\" }\n",
    );
    text
}

/// The study and the standard library in memory.
pub fn sources(text: &str) -> MemorySources {
    let mut sources = MemorySources::new().with("study.kdl", text);
    for (name, text) in stdlib::FILES {
        sources.set(name, *text);
    }
    sources
}
