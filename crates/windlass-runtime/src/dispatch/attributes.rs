//! What the operating system knows of a thread: which cores, how nice, which scheduling.

use std::fmt;
use std::io;
use std::time::Duration;

use crate::os;

/// Attributes of a pool's threads; none: as the system has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attributes {
    /// The cores that the thread may run on.
    pub affinity: Option<Vec<usize>>,
    /// From -20 (takes most) to 19 (gives way most).
    pub nice: Option<i32>,
    /// The kernel's scheduling policy.
    pub scheduling: Option<Scheduling>,
}

/// A scheduling policy of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scheduling {
    /// The usual one.
    Other,
    /// First come, first served, before everything usual; priority 1 to 99.
    Fifo {
        /// Higher goes first.
        priority: u32,
    },
    /// As `Fifo`, with time slices among equals.
    RoundRobin {
        /// Higher goes first.
        priority: u32,
    },
    /// So much time in each period, by its deadline.
    Deadline {
        /// CPU time per period.
        runtime: Duration,
        /// When it has to be done, from the period's begin.
        deadline: Duration,
        /// The time between two activations.
        period: Duration,
    },
}

/// What to do when the system refuses an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnRefusal {
    /// Say so (`tracing`, target `windlass::dispatch`) and go on without it.
    #[default]
    Warn,
    /// Do not start the pool.
    Strict,
}

/// The system refused an attribute.
#[derive(Debug)]
#[non_exhaustive]
pub struct AttributeError {
    /// The name of the attribute.
    pub attribute: &'static str,
    /// What the system said, or that it has something else than was asked for.
    pub error: io::Error,
}

impl fmt::Display for AttributeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a thread could not have its {} ({}); give the process the right to it (CAP_SYS_NICE, \
             RLIMIT_RTPRIO), ask for cores that exist, or use OnRefusal::Warn",
            self.attribute, self.error
        )
    }
}

impl std::error::Error for AttributeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl Attributes {
    /// Gives this thread the attributes, and looks at what it then has.
    pub(super) fn apply(&self) -> (Attributes, Vec<AttributeError>) {
        let mut refused = Vec::new();
        let mut check = |attribute, result: io::Result<()>| {
            refused.extend(
                result
                    .err()
                    .map(|error| AttributeError { attribute, error }),
            );
        };
        if let Some(cores) = &self.affinity {
            check("affinity", os::set_affinity(cores));
        }
        if let Some(nice) = self.nice {
            check("niceness", os::set_nice(nice));
        }
        if let Some(scheduling) = self.scheduling {
            check("scheduling policy", os::set_scheduling(scheduling));
        }
        let found = self.read_back();
        let other = || io::Error::other("the system has something else than was asked for");
        if refused.is_empty() && found != *self {
            refused.push(AttributeError {
                attribute: "attributes",
                error: other(),
            });
        }
        (found, refused)
    }

    /// What this thread has, of what was asked for.
    fn read_back(&self) -> Attributes {
        Attributes {
            affinity: self.affinity.as_ref().and_then(|_| os::affinity().ok()),
            nice: self.nice.and_then(|_| os::nice().ok()),
            scheduling: self.scheduling.and_then(|_| os::scheduling().ok()),
        }
    }
}
