//! Whether a window kept a latency objective: the binomial test of LoadGen's early stopping (MLPerf inference).

use crate::beta::regularised;

/// Whether `late` of `answers` beyond the limit are compatible with "a share `q` is in time", at this confidence:
/// I_q(n − t, t + 1) ≤ 1 − confidence.
///
/// Never true without answers.
pub fn keeps(answers: u64, late: u64, q: f64, confidence: f64) -> bool {
    if answers == 0 || late >= answers {
        return false;
    }
    regularised(q, (answers - late) as f64, late as f64 + 1.0).is_some_and(|p| p <= 1.0 - confidence)
}

/// The smallest number of answers with which `late` late ones can still pass: 459 for none at p99 and 99 % confidence.
pub fn least_answers(late: u64, q: f64, confidence: f64) -> Option<u64> {
    if !(q > 0.0 && q < 1.0 && confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let (mut low, mut high) = (late, late.saturating_add(1));
    while !keeps(high, late, q, confidence) {
        low = high;
        high = high.checked_mul(2).filter(|high| *high < 1 << 52)?;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if keeps(middle, late, q, confidence) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_answers_as_loadgen_has_them() {
        for (q, late, expected) in
            [(0.99, 0, 459), (0.99, 1, 662), (0.99, 10, 2_010), (0.99, 100, 12_571), (0.999, 0, 4_603)]
        {
            assert_eq!(least_answers(late, q, 0.99), Some(expected), "{late} late at {q}");
        }
    }

    #[test]
    fn one_late_answer_too_many_fails() {
        assert!(keeps(2_010, 10, 0.99, 0.99));
        assert!(!keeps(2_009, 10, 0.99, 0.99));
        assert!(!keeps(2_010, 11, 0.99, 0.99));
        assert!(!keeps(0, 0, 0.99, 0.99));
        assert!(!keeps(5, 5, 0.99, 0.99));
        assert_eq!([least_answers(0, 1.0, 0.99), least_answers(0, f64::NAN, 0.99)], [None, None]);
    }
}
