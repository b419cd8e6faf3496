//! How long a plan of 100,000 cells takes, what memory it needs, and how long a check takes. Prints figures; run it with
//! `cargo bench -p analysis`.
#![expect(clippy::disallowed_types, reason = "a benchmark has a clock")]
#![expect(clippy::disallowed_macros, reason = "a benchmark prints")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use analysis::{Host, Options, analyse, stdlib};
use syntax::{MemorySources, SourceId};

/// Counts live bytes and their peak.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; the counters don't touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller's layout is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the pointer came from `alloc` above with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A study whose sweep has `side`³ × 10 cells.
fn study(side: usize) -> String {
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

/// A study of about `lines` lines.
fn long(lines: usize) -> String {
    let mut text = study(1);
    text.push_str("contract {\n");
    for index in 0..lines / 6 {
        let _ = writeln!(
            text,
            "    case \"case {index}\" {{\n        GET \"/items/{index}\"\n        expect 200 {{\n            json \"$.id\" equals={index}\n        }}\n    }}"
        );
    }
    text.push_str("}\n");
    text
}

fn sources(text: &str) -> MemorySources {
    let mut sources = MemorySources::new().with("study.kdl", text);
    for (name, text) in stdlib::FILES {
        sources.set(name, *text);
    }
    sources
}

fn main() {
    let host = Host { cpus: "0-3".parse().unwrap_or_default(), ..Host::default() };
    let options = Options { host: Some(host), ..Options::default() };
    let id = SourceId::new("study.kdl");

    let text = sources(&study(22));
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let start = Instant::now();
    let analysed = analyse(&text, &id, &options);
    let took = start.elapsed();
    let Some(plan) = analysed.plan else {
        println!("the study has errors: {:#?}", analysed.diagnostics);
        return;
    };
    let cells: usize = plan.phases.iter().map(|phase| phase.cells.len()).sum();
    let peak = PEAK.load(Ordering::Relaxed) - before;
    println!("plan of {cells} cells, {} steps: {took:.1?}, {:.0} MB at the peak", plan.steps.len(), peak as f64 / 1e6);
    let start = Instant::now();
    let bytes = serde_json::to_vec(&plan).map(|bytes| bytes.len()).unwrap_or(0);
    println!("as JSON: {:.0} MB in {:.1?}", bytes as f64 / 1e6, start.elapsed());
    drop(plan);

    for lines in [1_000, 10_000] {
        let text = sources(&long(lines));
        let mut times: Vec<_> = (0..50)
            .map(|_| {
                let start = Instant::now();
                let analysed = analyse(&text, &id, &options);
                let took = start.elapsed();
                assert!(analysed.plan.is_some(), "{:?}", analysed.diagnostics);
                took
            })
            .collect();
        times.sort();
        println!("check of {lines} lines: min {:.2?}, median {:.2?}", times[0], times[times.len() / 2]);
    }
}
