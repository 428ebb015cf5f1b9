//! Randomness for victim selection.

use crate::hash::SplitMix;

/// A xorshift64+ generator: cheap, seeded, one per worker, never shared.
#[derive(Debug, Clone)]
pub struct XorShift {
    a: u64,
    b: u64,
}

impl XorShift {
    /// Starts a sequence that depends on `seed` alone.
    pub fn new(seed: u64) -> Self {
        // Two rounds of splitmix64, so that neighbouring seeds give unrelated sequences and
        // neither half is zero at the same time.
        let mut seeds = SplitMix::new(seed);
        XorShift {
            a: seeds.next_u64(),
            b: seeds.next_u64() | 1,
        }
    }

    pub(super) fn from_parts(a: u64, b: u64) -> Self {
        XorShift { a, b }
    }

    pub(super) fn into_parts(self) -> (u64, u64) {
        (self.a, self.b)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        let mut x = self.a;
        let y = self.b;
        self.a = y;
        x ^= x << 23;
        self.b = x ^ y ^ (x >> 17) ^ (y >> 26);
        self.b.wrapping_add(y)
    }

    /// A number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (((self.next_u64() >> 32) * bound as u64) >> 32) as usize
    }
}

/// A seed from the operating system's randomness (fixed under the model checkers).
pub fn entropy() -> u64 {
    #[cfg(not(any(windlass_loom, windlass_shuttle)))]
    {
        use std::hash::{BuildHasher, Hasher};
        std::collections::hash_map::RandomState::new()
            .build_hasher()
            .finish()
    }
    #[cfg(any(windlass_loom, windlass_shuttle))]
    {
        0x5EED
    }
}
