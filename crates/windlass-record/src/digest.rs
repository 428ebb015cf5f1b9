//! A hash of what a run did.

use windlass_core::hash::Fnv;

/// FNV-1a, 64 bits, over texts and numbers. It tells whether two runs were the same, and does not
/// resist forgery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Digest(Fnv);

impl Digest {
    /// Adds a text or other bytes. Two texts give another hash than one text of both.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0 = self.0.with(bytes).with(&[0xff]);
    }

    /// Adds a number.
    pub fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    /// Returns the hash as recordings write it.
    pub fn text(self) -> String {
        format!("{:016x}", self.0.get())
    }

    /// Returns the checksum that ends each line: half as long, because every line has one.
    pub(crate) fn sum(self) -> String {
        let hash = self.0.get();
        format!("{:08x}", (hash >> 32) as u32 ^ hash as u32)
    }
}
