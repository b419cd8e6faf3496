//! The plan's own small random numbers: the same seed gives the same order on every machine and for ever.

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A stream that depends on the seed and on `salt`, so that phases are shuffled independently.
    pub fn new(seed: u64, salt: &str) -> Self {
        // FNV-1a over the salt: any fixed mixing of the name will do.
        let salt = salt
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        Self(seed ^ salt)
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, each as likely (Lemire's multiplication; its bias at 64 bits is below 2⁻⁴⁰ here).
    pub fn below(&mut self, bound: u32) -> u32 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u32
    }

    /// Fisher–Yates.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let Ok(bound) = u32::try_from(last + 1) else { return };
            items.swap(last, self.below(bound) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_published_generator() {
        // The reference implementation's first outputs for seed 1234567.
        let mut random = SplitMix64(1_234_567);
        assert_eq!([random.next(), random.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn shuffles_evenly() {
        let mut first = [0_u32; 4];
        for seed in 0..4_000 {
            let mut items = [0, 1, 2, 3];
            SplitMix64::new(seed, "phase").shuffle(&mut items);
            first[items[0]] += 1;
            items.sort_unstable();
            assert_eq!(items, [0, 1, 2, 3]);
        }
        // 1,000 expected each; six standard deviations are 164.
        assert!(first.iter().all(|count| (836..=1_164).contains(count)), "{first:?}");
    }
}
