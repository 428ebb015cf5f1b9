//! A hash of everything that a run did, but for what depends on the machine's clock.

/// FNV-1a, 64 bits: to tell whether two runs were the same, not whether somebody wants to deceive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        // Two texts are not one.
        self.0 = (self.0 ^ 0xff).wrapping_mul(0x0000_0100_0000_01b3);
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    /// As recordings write it.
    pub(crate) fn text(self) -> String {
        format!("{:016x}", self.0)
    }

    /// The checksum that ends each line of a recording: half as long, because every line has one.
    pub(crate) fn sum(self) -> String {
        format!("{:08x}", (self.0 >> 32) as u32 ^ self.0 as u32)
    }
}
