//! No heap allocation per request: counted over the whole process, the server's side included.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use common::{MS, job, json_equals, request, run, stream, text};
use load::noop::{Options, Server};
use plan::{Body, Parameter, ParameterKind, Stream};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is handed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Requests with varying path and body, answers checked at two JSON paths, one compared with a parameter; both loops.
#[test]
fn a_longer_run_allocates_no_more_than_a_short_one() {
    let server = Server::start(&Options::default()).expect("a server");
    let write = Stream {
        parameters: vec![
            Parameter { name: "n".into(), kind: ParameterKind::Uniform { from: 1, to: 1_000_000 } },
            Parameter { name: "one".into(), kind: ParameterKind::Sequence { from: 1, to: 1 } },
        ],
        request: plan::Request {
            body: Some(Body::Text(text(&["{\"n\":", "$n", "}"]))),
            ..request("POST", text(&["/events/", "$n"]))
        },
        ..stream("write", 0.5, request("POST", text(&["/"])), json_equals(200, "$.id", text(&["$one"])))
    };
    let read = stream("read", 0.5, request("GET", text(&["/1"])), json_equals(200, "$.kind", text(&["page_view"])));
    for rate in [None, Some(8_000.0)] {
        let measure = |window_ns: u64| {
            let job = load::Job {
                rate,
                window_ns,
                connections: 8,
                ..job(server.address(), vec![read.clone(), write.clone()])
            };
            let before = ALLOCATIONS.load(Ordering::Relaxed);
            let facts = run(&job).expect("a run");
            let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
            let failed: u64 = facts.streams.iter().map(|stream| stream.census.failed).sum();
            assert_eq!(failed, 0, "{:?}", facts.streams[1].failures);
            let answers: u64 = facts.streams.iter().map(|stream| stream.census.ok).sum();
            (allocations, answers)
        };
        measure(50 * MS);
        let (short_allocations, short) = measure(100 * MS);
        let (long_allocations, long) = measure(1_100 * MS);
        let more = long - short;
        assert!(more > 5_000, "{short} {long}");
        // Histograms with more buckets filled in are longer; that and stalls is all that may differ.
        let extra = long_allocations.saturating_sub(short_allocations);
        eprintln!("{rate:?}: {extra} more allocations for {more} more requests");
        assert!(extra < 100, "{extra} allocations more for {more} requests more");
    }
}
