//! Hashes and mixing that give the same numbers on every machine and in every build.
//!
//! None of them resists an attacker who looks for collisions.

/// FNV-1a, 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fnv(u64);

impl Fnv {
    /// Returns the hash of nothing.
    pub const fn new() -> Fnv {
        Fnv(0xCBF2_9CE4_8422_2325)
    }

    /// Goes on where another hash ended.
    pub const fn from_hash(hash: u64) -> Fnv {
        Fnv(hash)
    }

    /// Returns the hash of some bytes.
    pub const fn of(bytes: &[u8]) -> u64 {
        Fnv::new().with(bytes).get()
    }

    /// Returns the hash of what was hashed so far and these bytes.
    #[must_use]
    pub const fn with(mut self, bytes: &[u8]) -> Fnv {
        let mut index = 0;
        while index < bytes.len() {
            self.0 = (self.0 ^ bytes[index] as u64).wrapping_mul(0x0000_0100_0000_01B3);
            index += 1;
        }
        self
    }

    /// Adds bytes to what was hashed so far.
    pub const fn add(&mut self, bytes: &[u8]) {
        *self = self.with(bytes);
    }

    /// Returns the hash as a number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv::new()
    }
}

/// splitmix64: turns one seed into any number of seeds that look unrelated.
#[derive(Debug, Clone)]
pub struct SplitMix(u64);

impl SplitMix {
    /// Begins with a seed; any number will do.
    pub const fn new(seed: u64) -> SplitMix {
        SplitMix(seed)
    }

    /// Returns the next number.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ (word >> 31)
    }
}

#[cfg(all(test, not(any(windlass_loom, windlass_shuttle))))]
mod tests {
    use super::*;

    /// The numbers that the authors of both publish.
    #[test]
    fn the_hashes_are_the_published_ones() {
        assert_eq!(Fnv::of(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(Fnv::of(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(Fnv::of(b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(
            Fnv::new().with(b"foo").with(b"bar").get(),
            Fnv::of(b"foobar")
        );
        let mut numbers = SplitMix::new(1_234_567);
        assert_eq!(numbers.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(numbers.next_u64(), 3_203_168_211_198_807_973);
    }
}
