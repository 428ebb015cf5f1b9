//! How long a match may take, and what is said when something is wrong with one.

use std::borrow::Cow;

/// What every call may take, however short its texts are.
const BASE: u64 = 1_000_000;

/// What it may take more for each byte of its texts.
const PER_BYTE: u64 = 64;

/// What is wrong with a pattern, or with what it should be replaced by; in the words of Lua, if Lua has some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Complaint(pub(super) Cow<'static, str>);

impl From<&'static str> for Complaint {
    fn from(text: &'static str) -> Complaint {
        Complaint(Cow::Borrowed(text))
    }
}

impl From<String> for Complaint {
    fn from(text: String) -> Complaint {
        Complaint(Cow::Owned(text))
    }
}

/// The steps that are left. Time would depend on the machine, and be another one in a replay.
#[derive(Debug, Clone, Copy)]
pub(super) struct Steps(u64);

impl Steps {
    /// Those of one call.
    pub(super) fn new(subject: &[u8], pattern: &[u8]) -> Steps {
        let bytes = subject.len() as u64 + pattern.len() as u64;
        Steps(BASE + PER_BYTE.saturating_mul(bytes))
    }

    #[inline]
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), Complaint> {
        match self.0.checked_sub(steps as u64) {
            Some(left) => {
                self.0 = left;
                Ok(())
            }
            None => Err(too_long()),
        }
    }
}

#[cold]
fn too_long() -> Complaint {
    "the pattern takes too long on this text: make it simpler, or the text shorter".into()
}
