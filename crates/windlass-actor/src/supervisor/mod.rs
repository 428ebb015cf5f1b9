//! Supervisors: processes that start, restart and stop others.
//!
//! ```
//! use windlass_actor::supervisor::{ChildSpec, Strategy, Supervisor};
//! use windlass_actor::{Context, Host};
//!
//! async fn worker(mut ctx: Context<u32>) {
//!     while let Some(number) = ctx.recv().await {
//!         println!("{number}");
//!     }
//! }
//!
//! # let runtime = windlass_runtime::Runtime::new()?;
//! # runtime.block_on(async {
//! let supervisor = Supervisor::new(Strategy::OneForOne)
//!     .child(ChildSpec::new("worker", |spawn| Ok(spawn.spawn(worker)?.pid())))
//!     .start(&Host::current()?)?;
//! supervisor.started().await?;
//! println!("{}", supervisor.tree().await?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backoff;
mod child;
mod child_address;
mod run;
mod tree;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use windlass_value::Pid;

pub use self::backoff::Backoff;
pub use self::child::{ChildSpec, Restart};
pub use self::child_address::ChildAddress;
use self::run::Order;
pub use self::tree::{Tree, TreeChild};
use crate::address::Address;
use crate::error::{AskError, SpawnError};
use crate::exit::{Exit, ExitReason};
use crate::host::Host;
use crate::spawn::Spawn;

/// What a supervisor does when a child has to be started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// Only that one is.
    OneForOne,
    /// All are: the others are stopped first, the last first.
    OneForAll,
    /// It and those that were started after it are.
    RestForOne,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Strategy::OneForOne => "one_for_one",
            Strategy::OneForAll => "one_for_all",
            Strategy::RestForOne => "rest_for_one",
        })
    }
}

/// How a supervisor is to be: its strategy, its limits, its children. It is started with
/// [`start`](Supervisor::start), or as a child of another with [`ChildSpec::supervisor`].
#[derive(Debug, Clone)]
pub struct Supervisor {
    strategy: Strategy,
    most_restarts: usize,
    within: Duration,
    backoff: Backoff,
    name: Option<Arc<str>>,
    children: Vec<ChildSpec>,
}

impl Supervisor {
    /// A supervisor without children: 5 restarts in a minute, and the default [`Backoff`].
    pub fn new(strategy: Strategy) -> Supervisor {
        Supervisor {
            strategy,
            most_restarts: 5,
            within: Duration::from_secs(60),
            backoff: Backoff::default(),
            name: None,
            children: Vec::new(),
        }
    }

    /// One restart more than `most` within `time`, and it gives up: it stops its children and ends
    /// with an error, which is its own supervisor's to deal with.
    pub fn intensity(mut self, most: usize, time: Duration) -> Supervisor {
        self.most_restarts = most;
        self.within = time;
        self
    }

    /// The pauses before restarts.
    pub fn backoff(mut self, backoff: Backoff) -> Supervisor {
        self.backoff = backoff;
        self
    }

    /// A name for the supervisor itself.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Supervisor {
        self.name = Some(name.into());
        self
    }

    /// One more child, to be started after those before it and stopped before them.
    pub fn child(mut self, child: ChildSpec) -> Supervisor {
        self.children.push(child);
        self
    }

    /// Starts it on a host; its children come right after.
    pub fn start(self, host: &Host) -> Result<SupervisorHandle, SpawnError> {
        self.start_with(host.process())
    }

    pub(crate) fn start_with(mut self, mut spawn: Spawn) -> Result<SupervisorHandle, SpawnError> {
        if let Some(name) = self.name.take() {
            spawn = spawn.name(name);
        }
        let process = spawn.spawn(move |ctx| run::run(self, ctx))?.address();
        Ok(SupervisorHandle { process })
    }
}

/// A supervisor that was started. Cheap to clone; dropping it changes nothing. [`Host::supervisor`]
/// finds it by its PID.
#[derive(Debug, Clone)]
pub struct SupervisorHandle {
    process: Address<Order>,
}

impl Host {
    /// The supervisor with this PID: for children that want to start others beside them.
    pub fn supervisor(&self, pid: Pid) -> Option<SupervisorHandle> {
        let process = self.address(pid)?;
        Some(SupervisorHandle { process })
    }
}

/// Why a supervisor did not do what it was asked.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SupervisorError {
    /// It has no answer: it has ended, or is busy stopping a child.
    Ask(AskError),
    /// The child did not start.
    Spawn(SpawnError),
    /// A child with this id is there already.
    Exists(Arc<str>),
    /// There is no child with this id.
    NoChild(Arc<str>),
    /// It has ended.
    Ended(ExitReason),
}

impl fmt::Display for SupervisorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SupervisorError::Ask(error) => fmt::Display::fmt(error, f),
            SupervisorError::Spawn(error) => fmt::Display::fmt(error, f),
            SupervisorError::Exists(id) => write!(f, "there is a child called {id:?} already"),
            SupervisorError::NoChild(id) => write!(f, "there is no child called {id:?}"),
            SupervisorError::Ended(reason) => write!(f, "the supervisor has ended: {reason}"),
        }
    }
}

impl std::error::Error for SupervisorError {}

/// How long a supervisor may be busy with others before it is not waited for any longer.
const PATIENCE: Duration = Duration::from_secs(60);

impl SupervisorHandle {
    /// The supervisor as a process.
    pub fn pid(&self) -> Pid {
        self.process.pid()
    }

    /// Waits until all its first children were started; an error if one was not.
    pub async fn started(&self) -> Result<(), SupervisorError> {
        match self.process.ask_within(PATIENCE, Order::Ready).await {
            Ok(()) => Ok(()),
            Err(AskError::NoAnswer) => {
                let exit = self.process.ended().await;
                Err(SupervisorError::Ended(exit.reason))
            }
            Err(error) => Err(SupervisorError::Ask(error)),
        }
    }

    /// Starts one more child; its PID.
    pub async fn start_child(&self, child: ChildSpec) -> Result<Pid, SupervisorError> {
        let order = |reply| Order::Start(child, reply);
        self.order(order).await?
    }

    /// Stops a child and forgets it.
    pub async fn stop_child(&self, id: &str) -> Result<(), SupervisorError> {
        let id: Arc<str> = id.into();
        self.order(|reply| Order::Stop(id, reply)).await?
    }

    async fn order<R>(
        &self,
        order: impl FnOnce(crate::address::Reply<R>) -> Order,
    ) -> Result<R, SupervisorError> {
        let answer = self.process.ask_within(PATIENCE, order).await;
        answer.map_err(SupervisorError::Ask)
    }

    /// Everything below it, as plain data; `to_string` draws it.
    pub async fn tree(&self) -> Result<Tree, SupervisorError> {
        tree_of(&self.process.host(), &self.process)
            .await
            .map_err(SupervisorError::Ask)
    }

    /// Cancels it: its children end first, the last one first.
    pub fn cancel(&self, reason: impl Into<Arc<str>>) {
        self.process.cancel(reason);
    }

    /// Ends it at once; its children go with it.
    pub fn kill(&self) {
        self.process.kill();
    }

    /// Waits for its end.
    pub async fn join(&self) -> Exit {
        self.process.ended().await
    }
}

/// Asks from outside, level by level: no supervisor waits for another.
async fn tree_of(host: &Host, supervisor: &Address<Order>) -> Result<Tree, AskError> {
    let mut tree = supervisor.ask_within(PATIENCE, Order::Tree).await?;
    for child in &mut tree.children {
        let below = child.pid.and_then(|pid| host.address::<Order>(pid));
        if let Some(below) = below {
            // One that has ended meanwhile is shown without what was below it.
            child.below = Box::pin(tree_of(host, &below)).await.ok().map(Box::new);
        }
    }
    Ok(tree)
}
