//! One instant on several machines: how far a generator's clock is from ours.

/// Questions that are asked; the quickest answer counts.
pub(super) const ROUNDS: u32 = 16;

/// A generator's CLOCK_MONOTONIC against ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Offset {
    /// Theirs less ours, ns.
    pub(super) ns: i64,
    /// By how much that may be wrong either way, ns.
    pub(super) uncertainty_ns: u64,
}

impl Offset {
    /// From one question: asked and answered by our clock, and what theirs said in between. Whenever between the two it was read, the
    /// middle is wrong by at most half the time between them (Cristian, "Probabilistic clock synchronization", 1989).
    pub(super) fn of(asked_ns: u64, theirs_ns: u64, answered_ns: u64) -> Self {
        let took = answered_ns.saturating_sub(asked_ns);
        let middle = asked_ns + took / 2;
        let ns = i128::from(theirs_ns) - i128::from(middle);
        Self { ns: ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64, uncertainty_ns: took.div_ceil(2) }
    }

    /// An instant of our clock in theirs.
    pub(super) fn theirs(self, ours_ns: u64) -> u64 {
        ours_ns.saturating_add_signed(self.ns)
    }
}

/// Whether a clock, by the boot id that names it, is this machine's.
pub(super) fn is_ours(clock: &str) -> bool {
    let ours = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    !clock.is_empty() && clock == ours.trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_true_offset_lies_within_the_uncertainty() {
        for (there, back) in [(100u64, 100u64), (10, 900), (900, 10), (0, 1), (0, 0)] {
            for offset in [-5_000_000_000i64, -1, 0, 7, 5_000_000_000] {
                let asked = 60_000_000_000u64;
                let theirs = (asked + there).saturating_add_signed(offset);
                let measured = Offset::of(asked, theirs, asked + there + back);
                assert!(
                    measured.ns.abs_diff(offset) <= measured.uncertainty_ns,
                    "{measured:?} {offset} {there} {back}"
                );
                assert_eq!(measured.theirs(asked), asked.saturating_add_signed(measured.ns));
            }
        }
    }

    #[test]
    fn a_clock_without_a_name_is_not_ours() {
        assert!(!is_ours(""));
        assert!(!is_ours("another"));
        assert!(is_ours(&load::hello().clock));
    }
}
