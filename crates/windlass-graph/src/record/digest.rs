//! A hash of everything that a run did, but for what depends on the machine's clock.

use windlass_core::hash::Fnv;

/// FNV-1a, 64 bits: to tell whether two runs were the same, not whether somebody wants to deceive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Digest(Fnv);

impl Digest {
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        // Two texts are not one.
        self.0 = self.0.with(bytes).with(&[0xff]);
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    /// As recordings write it.
    pub(crate) fn text(self) -> String {
        format!("{:016x}", self.0.get())
    }

    /// The checksum that ends each line of a recording: half as long, because every line has one.
    pub(crate) fn sum(self) -> String {
        let hash = self.0.get();
        format!("{:08x}", (hash >> 32) as u32 ^ hash as u32)
    }
}
