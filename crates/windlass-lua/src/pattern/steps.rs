//! How long a match may take, and what is said when something is wrong with one.

use std::borrow::Cow;

use crate::preempt::is_ending;

/// What every call may take, however short its texts are.
const BASE: u64 = 1_000_000;

/// What it may take more for each byte of its texts, up to so many bytes. Nothing interrupts a
/// match but its end, a kill or a limit of time: a long text is no reason to hold a worker for
/// long.
const PER_BYTE: u64 = 64;
const BYTES: u64 = 1 << 20;

/// What it may take more for each byte behind these.
const PER_FURTHER_BYTE: u64 = 16;

/// After so many steps, a few milliseconds, a match looks whether its process was ended.
const LOOK: u64 = 1 << 20;

/// What is wrong with a pattern, or with what it should be replaced by; in the words of Lua, if Lua
/// has some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PatternProblem(pub(super) Cow<'static, str>);

impl From<&'static str> for PatternProblem {
    fn from(text: &'static str) -> PatternProblem {
        PatternProblem(Cow::Borrowed(text))
    }
}

impl From<String> for PatternProblem {
    fn from(text: String) -> PatternProblem {
        PatternProblem(Cow::Owned(text))
    }
}

/// The steps that are left. Time would depend on the machine, and be another one in a replay.
#[derive(Debug, Clone, Copy)]
pub(super) struct Steps {
    left: u64,
    /// With fewer left, it looks whether the process was ended.
    next_look: u64,
}

impl Steps {
    /// Those of one call.
    pub(super) fn new(subject: &[u8], pattern: &[u8]) -> Steps {
        let bytes = subject.len() as u64 + pattern.len() as u64;
        let further = bytes.saturating_sub(BYTES);
        let left = BASE + PER_BYTE * bytes.min(BYTES) + PER_FURTHER_BYTE.saturating_mul(further);
        Steps {
            left,
            next_look: left.saturating_sub(LOOK),
        }
    }

    #[inline]
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), PatternProblem> {
        match self.left.checked_sub(steps as u64) {
            Some(left) => {
                self.left = left;
                match left < self.next_look {
                    true => self.look(),
                    false => Ok(()),
                }
            }
            None => Err(too_long()),
        }
    }

    /// Gives up if the process was killed or has used up its time. The hook ends the process at one
    /// of the next instructions, whether or not the script catches this error.
    #[cold]
    fn look(&mut self) -> Result<(), PatternProblem> {
        self.next_look = self.left.saturating_sub(LOOK);
        match is_ending() {
            true => Err("the process was ended in the middle of a match".into()),
            false => Ok(()),
        }
    }
}

#[cold]
fn too_long() -> PatternProblem {
    "the pattern takes too long on this text: make it simpler, or the text shorter".into()
}
