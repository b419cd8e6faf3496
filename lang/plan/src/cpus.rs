//! CPU sets: which logical CPUs a role owns.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A set of logical CPUs, sorted, without duplicates. Written as the kernel writes lists: `0-3,8`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CpuSet(Vec<u32>);

/// The largest CPU number that a set may name; Linux itself stops at 8,191.
pub const MAX_CPU: u32 = 8_191;

/// Why a text is not a CPU set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotACpuSet(pub String);

impl fmt::Display for NotACpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotACpuSet {}

impl CpuSet {
    /// The set of these CPUs.
    pub fn new(cpus: impl IntoIterator<Item = u32>) -> Self {
        let mut cpus: Vec<u32> = cpus.into_iter().collect();
        cpus.sort_unstable();
        cpus.dedup();
        Self(cpus)
    }

    /// The CPUs in ascending order.
    pub fn cpus(&self) -> &[u32] {
        &self.0
    }

    /// How many CPUs the set has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first `count` CPUs of the set, or `None` when it has fewer.
    pub fn first(&self, count: usize) -> Option<Self> {
        (count <= self.0.len()).then(|| Self(self.0[..count].to_vec()))
    }

    /// CPUs that are in both sets.
    pub fn shared_with(&self, other: &Self) -> Self {
        Self(self.0.iter().copied().filter(|cpu| other.0.binary_search(cpu).is_ok()).collect())
    }

    /// CPUs that are in either set.
    pub fn union(&self, other: &Self) -> Self {
        Self::new(self.0.iter().chain(&other.0).copied())
    }

    /// CPUs of this set that `other` lacks.
    pub fn missing_from(&self, other: &Self) -> Self {
        Self(self.0.iter().copied().filter(|cpu| other.0.binary_search(cpu).is_err()).collect())
    }
}

impl FromStr for CpuSet {
    type Err = NotACpuSet;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut cpus = Vec::new();
        for part in text.split(',') {
            let part = part.trim();
            let number = |digits: &str| -> Result<u32, NotACpuSet> {
                match digits.trim().parse::<u32>() {
                    Ok(cpu) if cpu <= MAX_CPU => Ok(cpu),
                    Ok(cpu) => Err(NotACpuSet(format!("CPU {cpu} is beyond the largest number, {MAX_CPU}"))),
                    Err(_) => Err(NotACpuSet(format!("`{part}` is neither a CPU number nor a range such as `0-3`"))),
                }
            };
            match part.split_once('-') {
                None => cpus.push(number(part)?),
                Some((from, to)) => {
                    let (from, to) = (number(from)?, number(to)?);
                    if from > to {
                        return Err(NotACpuSet(format!("the range `{part}` runs backwards")));
                    }
                    cpus.extend(from..=to);
                }
            }
        }
        Ok(Self::new(cpus))
    }
}

impl TryFrom<String> for CpuSet {
    type Error = NotACpuSet;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text.is_empty() { Ok(Self::default()) } else { text.parse() }
    }
}

impl From<CpuSet> for String {
    fn from(set: CpuSet) -> Self {
        set.to_string()
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut index = 0;
        while index < self.0.len() {
            let start = index;
            while index + 1 < self.0.len() && self.0[index + 1] == self.0[index] + 1 {
                index += 1;
            }
            if start > 0 {
                f.write_str(",")?;
            }
            if start == index {
                write!(f, "{}", self.0[start])?;
            } else {
                write!(f, "{}-{}", self.0[start], self.0[index])?;
            }
            index += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints_kernel_lists() {
        for (text, printed) in [("0", "0"), ("0-3", "0-3"), ("3,1,2", "1-3"), ("0-1,4,6-7", "0-1,4,6-7"), ("2,2", "2")]
        {
            assert_eq!(text.parse::<CpuSet>().map(|set| set.to_string()), Ok(printed.to_owned()), "{text}");
        }
        for text in ["", "a", "3-1", "0-", "-1", "9000", "0,,1", "0-4294967295"] {
            assert!(text.parse::<CpuSet>().is_err(), "{text}");
        }
    }

    #[test]
    fn takes_the_first_cpus_and_compares_sets() {
        let set: CpuSet = "4-7".parse().expect("a set");
        assert_eq!(set.first(2).map(|set| set.to_string()).as_deref(), Some("4-5"));
        assert_eq!(set.first(5), None);
        assert_eq!(set.shared_with(&"6-9".parse().expect("a set")).to_string(), "6-7");
        assert_eq!(set.missing_from(&"0-5".parse().expect("a set")).to_string(), "6-7");
    }
}
