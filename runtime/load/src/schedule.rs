//! When each request of an open loop is due, and which stream each request belongs to. Pure: no clock.

use std::sync::Arc;

use plan::{Arrivals, Leg, Stream};

use crate::error::LoadError;
use crate::random::Sequence;
use crate::rate::{Course, REQUEST};

/// The schedule of an open loop, all threads together: one clock for all streams.
///
/// Constant arrivals are exact to the nanosecond whatever their number: the window has as many slots as its rate amounts to,
/// rounded down, and slot `i` is due when the rate has amounted to `i` requests. The first is due at the window's first instant,
/// so the count depends on nothing but the window. The warm-up has a schedule of its own before it, at the rate with which the
/// window begins.
///
/// Streams that share a rate take turns in one series of slots. Streams with rates of their own have a series each; the first
/// slots of these are set apart by equal parts of their own gaps, so that equal rates don't make bursts.
#[derive(Debug, Clone)]
pub struct Schedule {
    series: Vec<Series>,
    arrivals: Arrivals,
    warm_up_ns: u64,
    threads: u32,
    seed: u64,
}

/// One series of slots.
#[derive(Debug, Clone)]
struct Series {
    warm_up: Course,
    window: Course,
    /// Warm-up and window in one, for random arrivals.
    whole: Course,
    owner: Owner,
}

/// Whose the slots of a series are.
#[derive(Debug, Clone)]
enum Owner {
    /// One stream's.
    One(u16),
    /// Those of all streams, in turn.
    All(Turns),
}

/// How fast an open loop goes.
#[derive(Debug, Clone, Copy)]
pub enum Pace<'a> {
    /// All streams together, leg by leg.
    Together(&'a [Leg]),
    /// Each stream at its own rate, per second.
    Each(&'a [f64]),
}

impl Schedule {
    /// The schedule of a load: its pace over a window of `window_ns` after a warm-up of `warm_up_ns`.
    ///
    /// # Errors
    /// When a rate is none, or can't be counted exactly.
    pub fn new(
        pace: Pace<'_>,
        turns: &Turns,
        arrivals: Arrivals,
        (warm_up_ns, window_ns): (u64, u64),
        threads: u32,
        seed: u64,
    ) -> Result<Self, LoadError> {
        let series = |legs: &[Leg], owner: Owner| {
            let start = legs.first().map_or(0.0, |leg| leg.from);
            let warm_up = [Leg { from: start, to: start, for_ns: warm_up_ns }];
            let whole: Vec<Leg> = warm_up.iter().chain(legs).copied().collect();
            Ok(Series {
                warm_up: Course::new(&warm_up)?,
                window: Course::new(legs)?,
                whole: Course::new(&whole)?,
                owner,
            })
        };
        let series = match pace {
            Pace::Together(legs) => vec![series(legs, Owner::All(turns.clone()))?],
            Pace::Each(rates) => (0u16..)
                .zip(rates)
                .map(|(lane, rate)| series(&[Leg { from: *rate, to: *rate, for_ns: window_ns }], Owner::One(lane)))
                .collect::<Result<_, LoadError>>()?,
        };
        Ok(Self { series, arrivals, warm_up_ns, threads: threads.max(1), seed })
    }

    /// The slots of one thread.
    pub fn slots(&self, thread: u32) -> Slots {
        let count = self.series.len();
        let tracks: Vec<Track> =
            self.series.iter().enumerate().map(|(index, series)| self.track(series, index, count, thread)).collect();
        let mut slots = Slots { heads: vec![None; count].into_boxed_slice(), tracks: tracks.into_boxed_slice() };
        for (head, track) in slots.heads.iter_mut().zip(&mut slots.tracks) {
            *head = track.next();
        }
        slots
    }

    fn track(&self, series: &Series, index: usize, count: usize, thread: u32) -> Track {
        let threads = u64::from(self.threads);
        let kind = match self.arrivals {
            Arrivals::Constant => Kind::Constant {
                warm_up: series.warm_up.clone(),
                window: series.window.clone(),
                warm_up_slots: series.warm_up.requests(),
                slots: series.window.requests(),
                warm_up_ns: self.warm_up_ns,
                apart: REQUEST * index as u128 / count.max(1) as u128,
                // Threads begin with different series, so that none has the first slots of all.
                next: (u64::from(thread) + threads - index as u64 % threads) % threads,
                threads,
                hints: (0, 0),
            },
            Arrivals::Poisson => Kind::Poisson {
                course: series.whole.clone(),
                gaps: Sequence::new(self.seed, 0x5107_0000 + u64::from(thread) + ((index as u64) << 32)),
                drawn: 0,
                area: 0,
                threads,
                first: Turns::first(thread),
                hint: 0,
            },
        };
        Track { kind, owner: series.owner.clone() }
    }
}

/// The slots of one thread: instants relative to the start, ascending.
#[derive(Debug, Clone)]
pub struct Slots {
    tracks: Box<[Track]>,
    /// The next slot of each track.
    heads: Box<[Option<Slot>]>,
}

/// A thread's part of a series.
#[derive(Debug, Clone)]
struct Track {
    kind: Kind,
    owner: Owner,
}

#[derive(Debug, Clone)]
enum Kind {
    Constant {
        warm_up: Course,
        window: Course,
        /// Slots of all threads together, in the warm-up and in the window.
        warm_up_slots: u64,
        slots: u64,
        warm_up_ns: u64,
        /// By how much of a request every slot of the series comes later.
        apart: u128,
        /// This thread's next slot, counted over all threads, warm-up first; and how far the one after it is.
        next: u64,
        threads: u64,
        hints: (usize, usize),
    },
    /// A Poisson process of changing rate: one of rate 1 whose time is the area (Çinlar, Introduction to Stochastic Processes,
    /// 1975, §4.7). This thread has its own, of an equal share of the rate.
    Poisson {
        course: Course,
        gaps: Sequence,
        drawn: u64,
        area: u128,
        threads: u64,
        /// This thread's first turn.
        first: u64,
        hint: usize,
    },
}

/// One slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// When it is due, ns after the start.
    pub after_ns: u64,
    /// The stream whose request it is.
    pub lane: u16,
}

impl Iterator for Slots {
    type Item = Slot;

    #[inline]
    fn next(&mut self) -> Option<Slot> {
        let first = match self.heads.len() {
            1 => 0,
            _ => {
                let due =
                    self.heads.iter().enumerate().filter_map(|(index, head)| Some((head.as_ref()?.after_ns, index)));
                due.min()?.1
            }
        };
        let slot = self.heads.get(first).copied().flatten()?;
        self.heads[first] = self.tracks[first].next();
        Some(slot)
    }
}

impl Track {
    #[inline]
    fn next(&mut self) -> Option<Slot> {
        let (after_ns, turn) = match &mut self.kind {
            Kind::Constant { warm_up, window, warm_up_slots, slots, warm_up_ns, apart, next, threads, hints } => {
                let number = *next;
                *next += *threads;
                let after_ns = if number < *warm_up_slots {
                    warm_up.at(u128::from(number) * REQUEST + *apart, &mut hints.0)?
                } else {
                    let number = number - *warm_up_slots;
                    if number >= *slots {
                        return None;
                    }
                    *warm_up_ns + window.at(u128::from(number) * REQUEST + *apart, &mut hints.1)?
                };
                (after_ns, number)
            }
            Kind::Poisson { course, gaps, drawn, area, threads, first, hint } => {
                // A gap of an exponential distribution by inversion: −ln(U), in requests of all threads together. The sum is of
                // whole numbers: however many gaps there are, nothing drifts.
                *area += (-gaps.fraction(*drawn).ln() * *threads as f64 * REQUEST as f64) as u128;
                let turn = *first + *drawn;
                *drawn += 1;
                if *area >= course.area() {
                    return None;
                }
                (course.at(*area, hint)?, turn)
            }
        };
        let lane = match &self.owner {
            Owner::One(lane) => *lane,
            Owner::All(turns) => turns.at(turn),
        };
        Some(Slot { after_ns, lane })
    }
}

/// The order in which streams take turns: a cycle in which each stream has exactly its share.
///
/// The turns are spread evenly (smooth weighted round robin, as in nginx) and then shuffled within short blocks, so that
/// the mix of any stretch is off by a few requests at most, while no stream falls into step with a thread, a connection
/// or a server's own cycle.
///
/// Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turns(Arc<[u16]>);

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
        Self(turns.into())
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
    use proptest::prelude::*;

    use super::*;

    const S: u64 = 1_000_000_000;

    fn streams(shares: &[f64]) -> Vec<Stream> {
        shares
            .iter()
            .map(|share| Stream {
                name: "s".into(),
                share: *share,
                rate: None,
                request: Request {
                    method: "GET".into(),
                    path: Text::literal("/"),
                    headers: Vec::new(),
                    bearer: None,
                    body: None,
                    content_type: None,
                    accept_gzip: false,
                },
                parameters: Vec::new(),
                expect: Expect::default(),
                creates_row_in: None,
            })
            .collect()
    }

    /// The slots of all threads, by time.
    fn all(pace: Pace<'_>, arrivals: Arrivals, span: (u64, u64), threads: u32, seed: u64) -> Vec<Slot> {
        let turns = Turns::new(&streams(&[0.5, 0.5]), seed);
        let schedule = Schedule::new(pace, &turns, arrivals, span, threads, seed).expect("a schedule");
        let mut all = Vec::new();
        for thread in 0..threads {
            let own: Vec<Slot> = schedule.slots(thread).collect();
            assert!(own.windows(2).all(|pair| pair[0].after_ns <= pair[1].after_ns), "a thread's slots ascend");
            all.extend(own);
        }
        all.sort_by_key(|slot| slot.after_ns);
        all
    }

    fn constant(rate: f64, window_ns: u64) -> [Leg; 1] {
        [Leg { from: rate, to: rate, for_ns: window_ns }]
    }

    #[test]
    fn constant_slots_are_exact_in_number_and_place() {
        for (rate, window_ns, count) in [
            (5_000.0, 10 * S, 50_000),
            (20_000.0, 3 * S / 2, 30_000),
            (3.0, 11 * S / 10, 3),
            (0.5, S, 0),
            (0.5, 2 * S, 1),
            (333.333_333, 3 * S, 999),
            (1e7, S / 100, 100_000),
        ] {
            for (threads, warm_up_ns) in [(1, 0), (2, 700_000_001), (3, 12_345)] {
                let slots = all(
                    Pace::Together(&constant(rate, window_ns)),
                    Arrivals::Constant,
                    (warm_up_ns, window_ns),
                    threads,
                    1,
                );
                let (warm_up, window): (Vec<Slot>, Vec<Slot>) =
                    slots.into_iter().partition(|slot| slot.after_ns < warm_up_ns);
                assert_eq!(window.len(), count, "{rate}/s for {window_ns} ns on {threads} threads");
                assert_eq!(warm_up.len(), (rate * warm_up_ns as f64 / 1e9) as usize, "{rate}/s");
                for (number, slot) in (0u64..).zip(&window) {
                    let ideal = warm_up_ns as f64 + number as f64 / rate * 1e9;
                    assert!((slot.after_ns as f64 - ideal).abs() <= 1.5, "{rate} {slot:?}");
                }
            }
        }
    }

    #[test]
    fn streams_with_rates_of_their_own_have_exactly_these() {
        for threads in [1, 2, 3] {
            let slots = all(Pace::Each(&[1_000.0, 1_000.0, 30.0]), Arrivals::Constant, (S / 2, 2 * S), threads, 7);
            for (lane, rate) in [(0u16, 1_000.0), (1, 1_000.0), (2, 30.0)] {
                let own: Vec<u64> = slots
                    .iter()
                    .filter(|slot| slot.lane == lane && slot.after_ns >= S / 2)
                    .map(|s| s.after_ns)
                    .collect();
                assert_eq!(own.len(), (rate * 2.0) as usize, "stream {lane} on {threads} threads");
                assert!(own.windows(2).all(|pair| ((pair[1] - pair[0]) as f64 - 1e9 / rate).abs() <= 1.5));
            }
            assert!(
                slots.windows(2).filter(|pair| pair[0].after_ns == pair[1].after_ns).count() < 10,
                "equal rates don't go in pairs"
            );
        }
    }

    #[test]
    fn poisson_slots_have_the_rate_and_the_spread_of_a_poisson_process() {
        let slots = all(Pace::Together(&constant(1_000.0, 100 * S)), Arrivals::Poisson, (0, 100 * S), 2, 11);
        // 100,000 expected, standard deviation 316.
        assert!((98_700..101_300).contains(&slots.len()), "{}", slots.len());
        let mut per_second = [0f64; 100];
        for slot in &slots {
            per_second[(slot.after_ns / S) as usize] += 1.0;
        }
        let mean = slots.len() as f64 / 100.0;
        let variance = per_second.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 99.0;
        assert!((0.6..1.5).contains(&(variance / mean)), "variance ÷ mean is {}", variance / mean);
        let again = all(Pace::Together(&constant(1_000.0, 100 * S)), Arrivals::Poisson, (0, 100 * S), 2, 11);
        assert_eq!(slots, again, "the same seed gives the same slots");
        let first = slots.iter().filter(|slot| slot.lane == 0).count() as f64 / slots.len() as f64;
        assert!((0.49..0.51).contains(&first), "the mix holds: {first}");
    }

    #[test]
    fn poisson_slots_follow_a_ramp() {
        let ramp = [Leg { from: 100.0, to: 1_900.0, for_ns: 100 * S }];
        let slots = all(Pace::Together(&ramp), Arrivals::Poisson, (10 * S, 100 * S), 3, 5);
        let between =
            |from: u64, to: u64| slots.iter().filter(|slot| (from..to).contains(&slot.after_ns)).count() as f64;
        // Expected: 1,000 in the warm-up; over the window 27,500 in its first half and 72,500 in the second.
        for (from, to, expected) in [(0, 10, 1_000.0), (10, 60, 27_500.0), (60, 110, 72_500.0)] {
            let came = between(from * S, to * S);
            assert!((came - expected).abs() < 4.0 * expected.sqrt(), "{from}–{to} s: {came}, expected {expected}");
        }
    }

    proptest! {
        /// Counts are the integral rounded down, instants ascend and stay within, and the mean rate of any part is the integral's.
        #[test]
        fn schedules_follow_their_course(
            legs in prop::collection::vec((0u32..300_000, 0u32..300_000, 1_000_000u64..3 * S), 1..4),
            threads in 1u32..4,
            warm_up_ns in 0u64..S,
        ) {
            let legs: Vec<Leg> = legs
                .into_iter()
                .map(|(from, to, for_ns)| Leg { from: f64::from(from) / 100.0, to: f64::from(to) / 100.0, for_ns })
                .collect();
            let window_ns: u64 = legs.iter().map(|leg| leg.for_ns).sum();
            let slots = all(Pace::Together(&legs), Arrivals::Constant, (warm_up_ns, window_ns), threads, 3);
            let window: Vec<u64> =
                slots.iter().filter(|slot| slot.after_ns >= warm_up_ns).map(|slot| slot.after_ns - warm_up_ns).collect();
            // Twice the integral in units of 10⁻² requests × ns: exact.
            let twice: u128 = legs
                .iter()
                .map(|leg| ((leg.from * 100.0).round() + (leg.to * 100.0).round()) as u128 * u128::from(leg.for_ns))
                .sum();
            prop_assert_eq!(window.len() as u128, twice / 200_000_000_000);
            prop_assert!(window.iter().all(|at| *at < window_ns));
            let mut passed = 0u64;
            let mut integral = 0.0;
            for leg in &legs {
                passed += leg.for_ns;
                integral += (leg.from + leg.to) / 2.0 * leg.for_ns as f64 / 1e9;
                let came = window.iter().filter(|at| **at < passed).count() as f64;
                prop_assert!((came - integral).abs() <= 1.001, "{} of {} after {} ns", came, integral, passed);
            }
        }
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
