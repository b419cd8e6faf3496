//! How an open loop's rate goes over time, and when it has amounted to a given number of requests: in integers, exactly.
//!
//! Rates are whole numbers of 10⁻⁶ per second, times are nanoseconds. The integral of the rate is counted in *areas*: twice its
//! value in units of 10⁻⁶ per second × ns, so that the area under a ramp, (from + to) ÷ 2 × time, is a whole number too. One
//! request is [`REQUEST`] of them. Nothing is rounded until an instant is rounded down to its nanosecond, so nothing drifts.

use std::sync::Arc;

use plan::Leg;

use crate::error::LoadError;

/// The area of one request: 2 × 10⁶ × 10⁹.
pub const REQUEST: u128 = 2_000_000_000_000_000;

/// Highest rate, per second: one slot per 100 ns is beyond any machine.
const HIGHEST_RATE: f64 = 1e7;

/// A rate over time. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Course(Arc<[Stretch]>);

/// A leg, and where it begins.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    start_ns: u64,
    for_ns: u64,
    /// Rate at its start and at its end, 10⁻⁶ per second.
    from: i128,
    to: i128,
    /// The area before it, and its own.
    before: u128,
    area: u128,
}

impl Course {
    /// The course of these legs, one after the other.
    ///
    /// # Errors
    /// When a rate is none, or a leg is so long and steep that its integral can't be counted exactly.
    pub fn new(legs: &[Leg]) -> Result<Self, LoadError> {
        let (mut start_ns, mut before) = (0u64, 0u128);
        let mut stretches = Vec::with_capacity(legs.len());
        for leg in legs {
            for rate in [leg.from, leg.to] {
                if !(0.0..=HIGHEST_RATE).contains(&rate) {
                    return Err(LoadError::job(
                        format!("the rate is {rate} requests per second"),
                        format!("give one from 0 to {HIGHEST_RATE}"),
                    ));
                }
            }
            let (from, to) = ((leg.from * 1e6).round() as i128, (leg.to * 1e6).round() as i128);
            let time = i128::from(leg.for_ns);
            // Every product of `at` stays below this one.
            if from != to && from.max(to).checked_mul(2 * time).and_then(|area| area.checked_mul(time)).is_none() {
                return Err(LoadError::job(
                    format!("a ramp from {}/s to {}/s takes {:.0} s", leg.from, leg.to, leg.for_ns as f64 / 1e9),
                    "split it into shorter ramps: its requests could not be counted exactly",
                ));
            }
            let area = ((from + to) * time) as u128;
            stretches.push(Stretch { start_ns, for_ns: leg.for_ns, from, to, before, area });
            before += area;
            start_ns = start_ns
                .checked_add(leg.for_ns)
                .ok_or_else(|| LoadError::job("the ramps and steps take longer than can be counted", "shorten them"))?;
        }
        Ok(Self(stretches.into()))
    }

    /// The area under all of it.
    pub fn area(&self) -> u128 {
        self.0.last().map_or(0, |last| last.before + last.area)
    }

    /// Whole requests that the rate amounts to over all of it: the integral, rounded down.
    pub fn requests(&self) -> u64 {
        u64::try_from(self.area() / REQUEST).unwrap_or(u64::MAX)
    }

    /// The first instant, in ns from the start and rounded down, at which the area has reached `area`; `None` when it never does.
    /// `hint` is the leg to begin with: the one that an earlier call for a smaller area left there.
    #[inline]
    pub fn at(&self, area: u128, hint: &mut usize) -> Option<u64> {
        loop {
            let stretch = self.0.get(*hint)?;
            if area <= stretch.before + stretch.area {
                return Some(stretch.start_ns + stretch.within(area.saturating_sub(stretch.before)));
            }
            *hint += 1;
        }
    }
}

impl Stretch {
    /// The last nanosecond of the leg at which its area is at most `area`.
    #[inline]
    fn within(&self, area: u128) -> u64 {
        if self.from == self.to {
            return if self.from == 0 { 0 } else { (area / (2 * self.from as u128)) as u64 };
        }
        self.ramped(area as i128)
    }

    /// The same on a ramp. With the rate r(t) = from + (to − from)·t ÷ T the area at t is 2·from·t + (to − from)·t² ÷ T. The
    /// solution in floating point is a guess; integers decide.
    fn ramped(&self, area: i128) -> u64 {
        let time = i128::from(self.for_ns);
        let climb = self.to - self.from;
        let wanted = area * time;
        let reached = |t: i128| (2 * self.from * time + climb * t) * t <= wanted;
        // a ÷ (from + √(from² + climb·a ÷ T)): the form of the root without cancellation.
        let (from, area) = (self.from as f64, area as f64);
        let root = (from * from + climb as f64 * area / time as f64).max(0.0).sqrt();
        let guess = if from + root > 0.0 { area / (from + root) } else { 0.0 };
        let guess = (guess as i128).clamp(0, time);
        // The answer lies in low..high, found by steps that double.
        let (mut low, mut high, mut step) = (guess, guess, 1);
        while low > 0 && !reached(low) {
            high = low;
            low = (low - step).max(0);
            step *= 2;
        }
        step = 1;
        while high <= low || reached(high) {
            if reached(high) {
                low = low.max(high);
            }
            if high >= time {
                return if reached(time) { self.for_ns } else { low as u64 };
            }
            high = (low + step).min(time);
            step *= 2;
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if reached(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        low as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const S: u64 = 1_000_000_000;

    fn course(legs: &[(f64, f64, u64)]) -> Course {
        let legs: Vec<Leg> = legs.iter().map(|&(from, to, for_ns)| Leg { from, to, for_ns }).collect();
        Course::new(&legs).expect("a course")
    }

    fn at(course: &Course, requests: u64) -> Option<u64> {
        course.at(u128::from(requests) * REQUEST, &mut 0)
    }

    #[test]
    fn ramps_and_steps_amount_to_their_integrals() {
        for (legs, requests) in [
            (vec![(5_000.0, 5_000.0, 10 * S)], 50_000),
            (vec![(100.0, 5_000.0, 10 * S)], 25_500),
            (vec![(5_000.0, 100.0, 10 * S)], 25_500),
            (vec![(0.0, 1_000.0, 3 * S)], 1_500),
            (vec![(100.0, 500.0, S), (500.0, 500.0, 2 * S), (500.0, 0.0, S)], 1_550),
            (vec![(333.333_333, 333.333_333, 3 * S)], 999),
            (vec![(0.5, 0.5, S)], 0),
        ] {
            assert_eq!(course(&legs).requests(), requests, "{legs:?}");
        }
        // Half of a ramp from 0 has passed when a quarter of its requests has; a ramp down mirrors it.
        let up = course(&[(0.0, 1_000.0, 2 * S)]);
        assert_eq!((at(&up, 0), at(&up, 250), at(&up, 1_000)), (Some(0), Some(S), Some(2 * S)));
        assert_eq!(at(&up, 1_001), None);
        let down = course(&[(1_000.0, 0.0, 2 * S)]);
        assert_eq!((at(&down, 750), at(&down, 1_000)), (Some(S), Some(2 * S)));
        // A rest of rate 0: what is due when it begins is due then, and the next one after it.
        let rest = course(&[(10.0, 10.0, S), (0.0, 0.0, S), (10.0, 10.0, S)]);
        assert_eq!((at(&rest, 9), at(&rest, 10), at(&rest, 11)), (Some(9 * S / 10), Some(S), Some(2 * S + S / 10)));
        // Far out nothing has drifted.
        let far = course(&[(3.0, 3.0, u64::MAX)]);
        assert_eq!(at(&far, 10_000_000_000), Some(3_333_333_333_333_333_333));
    }

    #[test]
    fn what_cannot_be_counted_is_refused() {
        for legs in [[(-1.0, 1.0, S)], [(f64::NAN, 1.0, S)], [(1.0, 2e7, S)]] {
            let legs: Vec<Leg> = legs.iter().map(|&(from, to, for_ns)| Leg { from, to, for_ns }).collect();
            assert!(Course::new(&legs).is_err(), "{legs:?}");
        }
        let long = [Leg { from: 0.0, to: 1e7, for_ns: 86_400 * S }];
        assert!(Course::new(&long).is_err_and(|error| error.to_string().contains("86400 s")));
        assert!(Course::new(&[Leg { from: 0.0, to: 10_000.0, for_ns: 86_400 * S }]).is_ok());
    }

    proptest! {
        /// Every request is due at the nanosecond that brackets its area exactly, in ascending order.
        #[test]
        fn instants_bracket_their_area(
            legs in prop::collection::vec((0u32..5_000_000, 0u32..5_000_000, 1u64..20 * S), 1..5),
            picks in prop::collection::vec(0.0f64..1.0, 20),
        ) {
            let legs: Vec<(f64, f64, u64)> =
                legs.into_iter().map(|(from, to, ns)| (f64::from(from) / 100.0, f64::from(to) / 100.0, ns)).collect();
            let course = course(&legs);
            let area_at = |t: u64| -> f64 {
                let mut area = 0.0;
                for stretch in course.0.iter().filter(|stretch| stretch.start_ns <= t) {
                    let t = (t - stretch.start_ns).min(stretch.for_ns) as f64;
                    let climb = (stretch.to - stretch.from) as f64;
                    area += 2.0 * stretch.from as f64 * t + climb * t * t / stretch.for_ns as f64;
                }
                area / REQUEST as f64
            };
            let mut numbers: Vec<u64> = picks.iter().map(|pick| (pick * course.requests() as f64) as u64).collect();
            numbers.sort_unstable();
            let (mut hint, mut last) = (0, 0);
            for number in numbers {
                let due = course.at(u128::from(number) * REQUEST, &mut hint).expect("within the course");
                prop_assert!(due >= last);
                last = due;
                // Exact integers decided; doubles are near enough to tell a wrong nanosecond from a right one.
                let near = 1e-9 * number as f64 + 1e-4;
                prop_assert!(area_at(due) <= number as f64 + near, "{legs:?} {number} {due}");
                prop_assert!(area_at(due + 1) >= number as f64 - near, "{legs:?} {number} {due}");
            }
        }
    }
}
