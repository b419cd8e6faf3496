//! How exactly an open loop keeps its schedule: counts to the request, the rate to 0.05 %, the sends to the microsecond where the host
//! lets it, and at the server no later than the host's own jitter explains.

mod common;

use std::sync::atomic::AtomicBool;

use common::{MS, job, only, plain, within_attempts};
use load::peer::{Peer, Reply};
use load::sys;

/// How long one moment in a hundred waits on this host, ns: gaps between readings of the clock by a thread that does nothing else, and a
/// moment that falls into a gap waits for the gap's rest.
fn jitter() -> f64 {
    const FOR_NS: u64 = 150 * MS;
    let (start, mut last, mut gaps) = (sys::now_ns(), sys::now_ns(), Vec::with_capacity(10_000));
    while last < start + FOR_NS {
        let now = sys::now_ns();
        if now - last > 1_000 {
            gaps.push((now - last) as f64);
        }
        last = now;
    }
    let beyond = |wait: f64| gaps.iter().map(|gap| (gap - wait).max(0.0)).sum::<f64>() / FOR_NS as f64;
    let (mut low, mut high) = (0.0, gaps.iter().copied().fold(1_000.0, f64::max));
    while high - low > 500.0 {
        let middle = f64::midpoint(low, high);
        if beyond(middle) > 0.01 { low = middle } else { high = middle }
    }
    high
}

#[test]
fn the_schedule_is_kept_as_exactly_as_the_host_allows() {
    for rate in [5_000.0, 20_000.0] {
        within_attempts(12, || {
            let before = jitter();
            let peer = Peer::start(0, |_| Reply::json(200, load::noop::BODY)).expect("a peer");
            let job = load::Job {
                connections: 64,
                rate: Some(rate),
                warm_up_ns: 100 * MS,
                window_ns: 500 * MS,
                ..job(peer.address(), plain())
            };
            let prepared = load::prepare(&job).expect("connected");
            let start = sys::now_ns() + 50 * MS;
            let facts = prepared.run(start, &AtomicBool::new(false)).map_err(|error| error.to_string())?;
            common::balanced(&job, &facts);
            let host = before.max(jitter());
            // Whatever the host did, the count is exact.
            let (first, all) = ((rate * 0.1) as usize, (rate * 0.6) as usize);
            let (stream, arrivals) = (only(&facts), peer.arrivals());
            assert_eq!((stream.census.due, stream.census.ok), ((all - first) as u64, (all - first) as u64));
            assert_eq!(arrivals.len(), all);
            let ideal = |slot: usize| start + (slot as f64 * 1e9 / rate) as u64;
            let mut late: Vec<u64> = (first..all).map(|slot| arrivals[slot].saturating_sub(ideal(slot))).collect();
            // The rate between the first and the last arrival, as far as neither is late itself.
            let ends = late[0].max(late[late.len() - 1]) as f64;
            let spanned = (arrivals[all - 1] - arrivals[first]) as f64;
            let error = ((all - 1 - first) as f64 * 1e9 / spanned / rate - 1.0).abs();
            late.sort_unstable();
            let (p50, p99) = (late[late.len() / 2] as f64, late[late.len() * 99 / 100] as f64);
            let own = stream.own_lag.as_ref().and_then(|lag| lag.quantile_ns(0.5)).unwrap_or(u64::MAX);
            let seen = format!(
                "{rate}/s: rate off by {:.4} %, own lateness p50 {own} ns, at the server p50 {p50} p99 {p99} ns, the host's jitter {host} ns",
                error * 100.0
            );
            let kept = error <= 0.000_5 + ends / spanned
                && own <= 5_000
                // The peer sleeps between requests: a wake-up of some 100 µs is its own.
                && p50 <= 200_000.0 + 3.0 * host
                && p99 <= 1_000_000.0 + 10.0 * host;
            if kept { Ok(()) } else { Err(seen) }
        });
    }
}
