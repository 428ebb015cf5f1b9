//! What others may ask of a run while it goes on.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use windlass_core::sync::Mutex;
use windlass_core::sync::atomic::{AtomicU64, Ordering};
use windlass_sync::CancellationToken;
use windlass_sync::lock::Notify;

use crate::observe::Observer;
use crate::run::exec::under_way::UnderWay;
use crate::run::outside::config::ConfigTransaction;
use crate::run::outside::taps::{Tap, TapError};
use windlass_plan::compile::Plan;
use windlass_plan::model::{Config, LaneKind, Readers};

/// Asks things of a run while it goes on. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Control {
    pub(crate) plan: Arc<Plan>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) stop: CancellationToken,
}

/// What a run was asked, and has not done yet.
#[derive(Debug)]
pub(crate) struct Inbox {
    asked: Mutex<Requests>,
    epochs: AtomicU64,
    ticks: AtomicU64,
    /// The components that have been called and have not returned.
    pub(crate) under_way: Arc<UnderWay>,
    /// Wakes the run when it waits for the world outside.
    pub(crate) bell: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Requests {
    transactions: Vec<ConfigTransaction>,
    taps: Vec<Tap>,
    /// Steps, by lane.
    steps: BTreeMap<usize, u64>,
    /// The run has ended, or will never begin: requests are not looked at any more.
    over: bool,
}

/// Closes the inbox of a run when that ends, in whatever way: taps and observers that wait get the
/// end.
#[derive(Debug)]
pub(crate) struct InboxCloser {
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) observer: Option<Observer>,
}

impl Drop for InboxCloser {
    fn drop(&mut self) {
        let taps = {
            let mut asked = self.inbox.asked.lock();
            asked.over = true;
            std::mem::take(&mut asked.taps)
        };
        taps.iter().for_each(Tap::end);
        if let Some(observer) = &self.observer {
            observer.close();
        }
    }
}

/// How many transactions may wait for the next epoch.
const TRANSACTIONS: usize = 1024;

/// Why a configuration cannot be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReconfigureError {
    /// The run has ended.
    Ended,
    /// As many transactions as may wait for the next epoch.
    TooMany {
        /// How many may.
        most: usize,
    },
}

impl fmt::Display for ReconfigureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReconfigureError::Ended => f.write_str("the run has ended"),
            ReconfigureError::TooMany { most } => write!(
                f,
                "{most} transactions wait for the next epoch: put changes together, or wait for it"
            ),
        }
    }
}

impl std::error::Error for ReconfigureError {}

/// Why a lane cannot be stepped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepError {
    /// There is no lane of this id.
    NoLane(String),
    /// The lane runs by itself.
    NotManual(String),
    /// The run has ended.
    Ended,
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StepError::NoLane(lane) => write!(f, "there is no lane {lane}"),
            StepError::NotManual(lane) => write!(
                f,
                "lane {lane} runs by itself: give it `type: manual_step` to step it"
            ),
            StepError::Ended => f.write_str("the run has ended"),
        }
    }
}

impl std::error::Error for StepError {}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Epochs that have ended.
    pub epochs: u64,
    /// Invocations that have ended.
    pub ticks: u64,
}

impl Control {
    /// Ends the run: no new epoch begins.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Changes configurations when the next epoch begins. If there is none,
    /// `runtime.config.unapplied_count` tells.
    pub fn reconfigure(&self, transaction: ConfigTransaction) -> Result<(), ReconfigureError> {
        let mut asked = self.inbox.asked.lock();
        if asked.over {
            return Err(ReconfigureError::Ended);
        }
        if asked.transactions.len() >= TRANSACTIONS {
            return Err(ReconfigureError::TooMany { most: TRANSACTIONS });
        }
        asked.transactions.push(transaction);
        drop(asked);
        self.inbox.bell.notify_one();
        Ok(())
    }

    /// Lets a lane of type `manual_step` run once: in the next epoch, or in the one after those
    /// that were asked for before.
    pub fn step(&self, lane: &str) -> Result<(), StepError> {
        let place = manual_lane(&self.plan, lane)?;
        let mut asked = self.inbox.asked.lock();
        if asked.over {
            return Err(StepError::Ended);
        }
        let steps = asked.steps.entry(place).or_default();
        *steps = steps.saturating_add(1);
        drop(asked);
        self.inbox.bell.notify_one();
        Ok(())
    }

    /// The ids of the components that have been called and have not returned. A run that does not
    /// stop is waiting for these.
    pub fn under_way(&self) -> Vec<String> {
        self.inbox.under_way.ids(&self.plan)
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        // Relaxed: two numbers for people.
        Progress {
            epochs: self.inbox.epochs.load(Ordering::Relaxed),
            ticks: self.inbox.ticks.load(Ordering::Relaxed),
        }
    }

    /// Reads this edge from the next epoch on; its policy has to say `readers: multi`. Of a run
    /// that has ended there is nothing to read.
    pub fn tap(&self, edge: &str) -> Result<Tap, TapError> {
        let edges = &self.plan.graph.edges;
        let Some(place) = edges.iter().position(|there| there.id == edge) else {
            return Err(TapError::NoEdge(edge.to_owned()));
        };
        let policy = &edges[place].policy;
        if policy.readers == Readers::Single {
            return Err(TapError::SingleReader(edge.to_owned()));
        }
        let tap = Tap::new(place, policy.capacity);
        let mut asked = self.inbox.asked.lock();
        match asked.over {
            false => asked.taps.push(tap.clone()),
            true => tap.end(),
        }
        Ok(tap)
    }
}

/// The place of a lane that waits for steps.
pub(crate) fn manual_lane(plan: &Plan, lane: &str) -> Result<usize, StepError> {
    match plan.graph.lane(lane) {
        None => Err(StepError::NoLane(lane.to_owned())),
        Some((_, there)) if there.kind != LaneKind::ManualStep => {
            Err(StepError::NotManual(lane.to_owned()))
        }
        Some((place, _)) => Ok(place),
    }
}

impl Inbox {
    pub(crate) fn of(plan: &Plan) -> Inbox {
        Inbox {
            asked: Mutex::default(),
            epochs: AtomicU64::new(0),
            ticks: AtomicU64::new(0),
            under_way: Arc::new(UnderWay::of(plan)),
            bell: Arc::default(),
        }
    }

    pub(crate) fn set_progress(&self, epochs: u64, ticks: u64) {
        self.epochs.store(epochs, Ordering::Relaxed);
        self.ticks.store(ticks, Ordering::Relaxed);
    }

    /// Whether there are requests that have not been done.
    pub(crate) fn is_asked(&self) -> bool {
        let asked = self.asked.lock();
        !asked.transactions.is_empty() || !asked.taps.is_empty() || !asked.steps.is_empty()
    }

    /// A transaction out of a recording.
    pub(crate) fn add_transaction(&self, changes: Vec<(String, Config)>) {
        self.asked
            .lock()
            .transactions
            .push(ConfigTransaction::of(changes));
    }

    pub(crate) fn take_steps(&self) -> BTreeMap<usize, u64> {
        std::mem::take(&mut self.asked.lock().steps)
    }

    /// Takes the transactions that were asked for.
    pub(crate) fn take_transactions(&self) -> Vec<ConfigTransaction> {
        std::mem::take(&mut self.asked.lock().transactions)
    }

    pub(crate) fn take_taps(&self) -> Vec<Tap> {
        std::mem::take(&mut self.asked.lock().taps)
    }

    /// Returns how many transactions have not been done.
    pub(crate) fn unapplied(&self) -> usize {
        self.asked.lock().transactions.len()
    }
}
