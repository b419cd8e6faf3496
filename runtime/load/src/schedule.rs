//! When each request of an open loop is due, and which stream each request belongs to. Pure: no clock.

use plan::Stream;

use crate::random::Sequence;
use crate::wire::Arrivals;

/// The slots of one thread: instants relative to the start, ascending.
///
/// Uniform arrivals are exact to the nanosecond whatever their number: slot `i` is due ⌊i ÷ rate⌋ after the start, in
/// integers, without drift. Thread `k` of `n` has the slots k, k + n, k + 2n …
#[derive(Debug, Clone)]
pub struct Slots(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Uniform {
        /// Slot index, and how far the next one of this thread is.
        next: u64,
        threads: u64,
        /// Slots of all threads together.
        total: u64,
        /// Rate in units of 10⁻⁶ per second.
        micro_rate: u128,
    },
    Poisson {
        /// This thread's own share of the process, per nanosecond.
        per_ns: f64,
        gaps: Sequence,
        drawn: u64,
        at_ns: f64,
        until_ns: f64,
        /// This thread's first turn.
        first: u64,
    },
}

/// Nanoseconds × 10⁶ in a second: the numerator that belongs to a rate in units of 10⁻⁶ per second.
const SCALE: u128 = 1_000_000_000_000_000;

/// One slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// When it is due, ns after the start.
    pub after_ns: u64,
    /// Which of the streams' turns it is: for uniform arrivals its number among all threads' slots.
    pub turn: u64,
}

impl Slots {
    /// The slots of thread `thread` of `threads` at `rate` per second over `span_ns`: ⌊rate × span⌋ in all for
    /// uniform arrivals.
    pub fn new(arrivals: Arrivals, rate: f64, span_ns: u64, thread: u32, threads: u32, seed: u64) -> Self {
        let (thread, threads) = (u64::from(thread), u64::from(threads.max(1)));
        Self(match arrivals {
            Arrivals::Uniform => {
                let micro_rate = (rate * 1e6).round() as u128;
                let total = (u128::from(span_ns) * micro_rate / SCALE) as u64;
                Kind::Uniform { next: thread, threads, total, micro_rate: micro_rate.max(1) }
            }
            Arrivals::Poisson => Kind::Poisson {
                per_ns: rate / threads as f64 / 1e9,
                gaps: Sequence::new(seed, 0x5107_0000 + thread),
                drawn: 0,
                at_ns: 0.0,
                until_ns: span_ns as f64,
                first: Turns::first(thread as u32),
            },
        })
    }
}

impl Iterator for Slots {
    type Item = Slot;

    #[inline]
    fn next(&mut self) -> Option<Slot> {
        match &mut self.0 {
            Kind::Uniform { next, threads, total, micro_rate } => {
                let number = *next;
                if number >= *total {
                    return None;
                }
                *next += *threads;
                Some(Slot { after_ns: (u128::from(number) * SCALE / *micro_rate) as u64, turn: number })
            }
            Kind::Poisson { per_ns, gaps, drawn, at_ns, until_ns, first } => {
                // A gap of an exponential distribution by inversion: −ln(U) ÷ rate.
                *at_ns += -gaps.fraction(*drawn).ln() / *per_ns;
                let turn = *first + *drawn;
                *drawn += 1;
                (*at_ns < *until_ns).then_some(Slot { after_ns: *at_ns as u64, turn })
            }
        }
    }
}

/// The order in which streams take turns: a cycle in which each stream has exactly its share.
///
/// The turns are spread evenly (smooth weighted round robin, as in nginx) and then shuffled within short blocks, so that
/// the mix of any stretch is off by a few requests at most, while no stream falls into step with a thread, a connection
/// or a server's own cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turns(Box<[u16]>);

/// Length of a cycle, at least.
const TURNS: u64 = 4_096;
/// Finest share that is exact: one in this many.
const FINEST: u64 = 10_000;
/// Longest block that is shuffled.
const BLOCK: usize = 8;

impl Turns {
    /// The cycle of these streams' shares.
    pub fn new(streams: &[Stream], seed: u64) -> Self {
        let weights = weights(&streams.iter().map(|stream| stream.share).collect::<Vec<_>>());
        let total: u64 = weights.iter().sum::<u64>().max(1);
        let length = total * TURNS.div_ceil(total);
        let mut credit = vec![0i64; weights.len()];
        let mut turns = Vec::with_capacity(length as usize);
        for _ in 0..length {
            for (credit, weight) in credit.iter_mut().zip(&weights) {
                *credit += *weight as i64;
            }
            // The first of the largest, so that ties go by the workload's order.
            let chosen = (0..credit.len()).rev().max_by_key(|index| credit[*index]).unwrap_or(0);
            if let Some(credit) = credit.get_mut(chosen) {
                *credit -= total as i64;
            }
            turns.push(chosen as u16);
        }
        let block = (total as usize).clamp(1, BLOCK);
        let shuffle = Sequence::new(seed, 0x7075);
        let mut drawn = 0;
        for block in turns.chunks_mut(block) {
            // Fisher–Yates.
            for last in (1..block.len()).rev() {
                block.swap(last, shuffle.below(drawn, last as u64 + 1) as usize);
                drawn += 1;
            }
        }
        Self(turns.into_boxed_slice())
    }

    /// Where a thread enters the cycle that walks through it on its own: each has the mix, and all have it together.
    pub const fn first(thread: u32) -> u64 {
        // A prime, so that threads don't enter at like places of the cycle.
        thread as u64 * 1_021
    }

    /// The stream whose turn the n-th request is.
    #[inline]
    pub fn at(&self, n: u64) -> u16 {
        self.0[(n % self.0.len() as u64) as usize]
    }
}

/// Whole weights for shares: the smallest denominator that fits them all, else parts of [`FINEST`], the remainder going
/// to the largest fractions.
fn weights(shares: &[f64]) -> Vec<u64> {
    let sum: f64 = shares.iter().sum();
    let shares: Vec<f64> = shares.iter().map(|share| if sum > 0.0 { share / sum } else { 1.0 }).collect();
    for denominator in 1..=FINEST {
        let parts: Vec<f64> = shares.iter().map(|share| share * denominator as f64).collect();
        if parts.iter().all(|part| (part - part.round()).abs() < 1e-7) {
            return parts.iter().map(|part| part.round() as u64).collect();
        }
    }
    let parts: Vec<f64> = shares.iter().map(|share| share * FINEST as f64).collect();
    let mut weights: Vec<u64> = parts.iter().map(|part| part.floor() as u64).collect();
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by(|a, b| parts[*b].fract().total_cmp(&parts[*a].fract()).then(a.cmp(b)));
    let missing = FINEST.saturating_sub(weights.iter().sum());
    for index in order.into_iter().take(missing as usize) {
        weights[index] += 1;
    }
    weights
}

#[cfg(test)]
mod tests {
    use plan::{Expect, Request, Text};

    use super::*;

    fn streams(shares: &[f64]) -> Vec<Stream> {
        shares
            .iter()
            .map(|share| Stream {
                name: "s".into(),
                share: *share,
                request: Request {
                    method: "GET".into(),
                    path: Text::literal("/"),
                    headers: Vec::new(),
                    bearer: None,
                    body: None,
                    content_type: None,
                },
                parameters: Vec::new(),
                expect: Expect::default(),
                creates_row_in: None,
            })
            .collect()
    }

    #[test]
    fn uniform_slots_are_exact_in_number_and_place() {
        for (rate, span_ns, count) in [
            (5_000.0, 10_000_000_000, 50_000),
            (20_000.0, 1_500_000_000, 30_000),
            (3.0, 1_100_000_000, 3),
            (0.5, 1_000_000_000, 0),
            (0.5, 2_000_000_000, 1),
            (333.333_333, 3_000_000_000, 999),
            (1e7, 10_000_000, 100_000),
        ] {
            for threads in [1, 2, 3] {
                let mut all: Vec<Slot> = (0..threads)
                    .flat_map(|thread| Slots::new(Arrivals::Uniform, rate, span_ns, thread, threads, 1))
                    .collect();
                all.sort_by_key(|slot| slot.turn);
                assert_eq!(all.len(), count, "{rate}/s for {span_ns} ns on {threads} threads");
                for (number, slot) in (0u64..).zip(&all) {
                    assert_eq!(slot.turn, number);
                    assert!((slot.after_ns as f64 - number as f64 / rate * 1e9).abs() <= 1.5, "{rate} {slot:?}");
                }
            }
        }
        // Far out nothing has drifted: slot 10¹⁰ of 3 per second.
        let mut far = Slots::new(Arrivals::Uniform, 3.0, u64::MAX, 0, 1, 1);
        if let Kind::Uniform { next, .. } = &mut far.0 {
            *next = 10_000_000_000;
        }
        assert_eq!(far.next().map(|slot| slot.after_ns), Some(3_333_333_333_333_333_333));
    }

    #[test]
    fn poisson_slots_have_the_rate_and_the_spread_of_a_poisson_process() {
        let all: Vec<u64> = (0..2)
            .flat_map(|thread| Slots::new(Arrivals::Poisson, 1_000.0, 100_000_000_000, thread, 2, 11))
            .map(|slot| slot.after_ns)
            .collect();
        // 100,000 expected, standard deviation 316.
        assert!((98_700..101_300).contains(&all.len()), "{}", all.len());
        let mut per_second = [0f64; 100];
        for at in &all {
            per_second[(at / 1_000_000_000) as usize] += 1.0;
        }
        let mean = all.len() as f64 / 100.0;
        let variance = per_second.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 99.0;
        assert!((0.6..1.5).contains(&(variance / mean)), "variance ÷ mean is {}", variance / mean);
        assert!(
            Slots::new(Arrivals::Poisson, 10.0, 1_000_000_000, 0, 1, 5)
                .zip(Slots::new(Arrivals::Poisson, 10.0, 1_000_000_000, 0, 1, 5))
                .all(|(a, b)| a == b),
            "the same seed gives the same slots"
        );
    }

    #[test]
    fn every_stretch_has_the_mix() {
        for shares in [
            vec![1.0],
            vec![0.5, 0.5],
            vec![0.6, 0.3, 0.1],
            vec![0.999, 0.001],
            vec![1.0 / 3.0; 3],
            vec![0.123_45, 0.876_55],
        ] {
            let turns = Turns::new(&streams(&shares), 5);
            let mut counts = vec![0f64; shares.len()];
            for n in 0..20_000u64 {
                counts[usize::from(turns.at(n))] += 1.0;
                for (count, share) in counts.iter().zip(&shares) {
                    assert!(
                        (count - share * (n + 1) as f64).abs() <= 9.0 + 0.0001 * n as f64,
                        "{shares:?} {n} {counts:?}"
                    );
                }
            }
        }
        let turns = Turns::new(&streams(&[0.5, 0.5]), 5);
        for n in (0..20_000).step_by(2) {
            assert_ne!(turns.at(n), turns.at(n + 1), "each pair has one of both");
        }
        // Not in step with two threads: thread 0's requests aren't all of one stream.
        let evens = (0..10_000).filter(|n| turns.at(n * 2) == 0).count();
        assert!((4_000..6_000).contains(&evens), "{evens}");
    }
}
