//! How exactly an open loop keeps its schedule, at the sender and at the server, beside the jitter of the host just before.

use load::sys;

use crate::servers::Witness;
use crate::tools::{exp, job};
use crate::{LOAD_CPU, SERVER_CPU, median};

/// What one run of an open loop showed.
pub struct Kept {
    pub due: u64,
    pub wanted: u64,
    pub ok: u64,
    /// Rate at the server ÷ rate asked for − 1.
    pub rate_error: f64,
    pub own_p50_us: f64,
    pub own_p99_us: f64,
    pub server_p50_us: f64,
    pub server_p99_us: f64,
    /// How long 1 % of moments wait on the host's CPUs just before, at the worse of the two.
    pub jitter_p99_us: f64,
    pub busy: f64,
    pub stalls: usize,
}

/// Runs an open loop this many times.
pub fn runs(rate: f64, seconds: u64, times: usize) -> Result<Vec<Kept>, String> {
    (0..times).map(|_| one(rate, seconds)).collect()
}

fn one(rate: f64, seconds: u64) -> Result<Kept, String> {
    const WARM_UP_NS: u64 = 1_000_000_000;
    let jitter_p99_us = jitter(500_000_000)?;
    let witness = Witness::start().map_err(|error| error.to_string())?;
    let mut job = job(witness.address, seconds, 64)?;
    job.rate = Some(rate);
    job.warm_up_ns = WARM_UP_NS;
    let ran = exp(&job, &[])?;
    let arrivals = witness.arrivals().map_err(|error| error.to_string())?;
    let all = (rate * (WARM_UP_NS + job.window_ns) as f64 / 1e9) as usize;
    if arrivals.len() != all {
        return Err(format!("{} requests arrived where {all} were due", arrivals.len()));
    }
    // The first second is left out, as is usual: caches and frequency settle in it.
    let first = (rate * WARM_UP_NS as f64 / 1e9) as usize;
    let ideal = |slot: usize| ran.at_ns as f64 + slot as f64 * 1e9 / rate;
    let mut late: Vec<f64> =
        arrivals.iter().enumerate().skip(first).map(|(slot, at)| (*at as f64 - ideal(slot)) / 1e3).collect();
    late.sort_by(f64::total_cmp);
    let at = |q: f64| late[((q * late.len() as f64).ceil() as usize).clamp(1, late.len()) - 1];
    let spanned = (arrivals[all - 1] - arrivals[first]) as f64 / 1e9;
    let stream = &ran.facts.streams[0];
    let own = stream.own_lag.as_ref().ok_or("no send lateness was recorded")?;
    let own_us = |q| own.quantile_ns(q).map(|ns| ns as f64 / 1e3).ok_or("no send lateness was recorded");
    Ok(Kept {
        due: stream.census.due,
        wanted: (rate * seconds as f64) as u64,
        ok: stream.census.ok,
        rate_error: (all - 1 - first) as f64 / spanned / rate - 1.0,
        own_p50_us: own_us(0.5)?,
        own_p99_us: own_us(0.99)?,
        server_p50_us: at(0.5),
        server_p99_us: at(0.99),
        jitter_p99_us,
        busy: ran.facts.generator.busiest(job.window_ns).ok_or("the generator's CPU time was not read")?,
        stalls: ran.facts.generator.stalls.len(),
    })
}

/// How long one moment in a hundred waits, µs: a thread on each of the two CPUs does nothing but read the clock, and a moment that falls
/// into a gap between two readings waits for the gap's rest. The worse CPU counts.
fn jitter(for_ns: u64) -> Result<f64, String> {
    let threads = [SERVER_CPU, LOAD_CPU].map(|cpu| {
        std::thread::spawn(move || {
            sys::pin_to_cpu(cpu)?;
            let mut gaps = Vec::with_capacity(100_000);
            let start = sys::now_ns();
            let mut last = start;
            while last < start + for_ns {
                let now = sys::now_ns();
                if now - last > 1_000 {
                    gaps.push((now - last) as f64);
                }
                last = now;
            }
            Ok::<_, std::io::Error>(gaps)
        })
    });
    let mut worst: f64 = 0.0;
    for thread in threads {
        let gaps =
            thread.join().map_err(|_| "the jitter's thread ended in a panic")?.map_err(|error| error.to_string())?;
        // The wait that a hundredth of all moments exceed: Σ max(0, gap − wait) = 1 % of the time.
        let beyond = |wait: f64| gaps.iter().map(|gap| (gap - wait).max(0.0)).sum::<f64>() / for_ns as f64;
        let (mut low, mut high) = (0.0, gaps.iter().copied().fold(1_000.0, f64::max));
        while high - low > 100.0 {
            let middle = f64::midpoint(low, high);
            if beyond(middle) > 0.01 { low = middle } else { high = middle }
        }
        worst = worst.max(high);
    }
    Ok(worst / 1e3)
}

/// The median over runs.
pub fn middle(runs: &[Kept], of: fn(&Kept) -> f64) -> f64 {
    median(&runs.iter().map(of).collect::<Vec<_>>())
}
