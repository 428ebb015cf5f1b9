//! A runtime at one moment, as plain data.

use std::sync::Arc;

use windlass_core::observe::PoolSnapshot;

use super::entity::{Entity, Page, Query};
use super::sample::Sample;
use super::sources::{Observe, for_each_source};
use crate::blocking::BlockingSnapshot;
use crate::dispatch::DispatcherSnapshot;
use crate::runtime::Shared;

/// How many entities of each source a snapshot has.
const FIRST_ENTITIES: usize = 64;

/// A runtime at one moment.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct RuntimeSnapshot {
    /// The worker pool.
    pub pool: PoolSnapshot,
    /// The blocking pool.
    pub blocking: BlockingSnapshot,
    /// Polls that the watchdog found to be slow.
    pub slow_polls: u64,
    /// Timers that are waited for.
    pub timers: usize,
    /// Sockets and the like that are registered with the driver.
    pub io_sources: usize,
    /// Dispatchers with a pool of their own.
    pub dispatchers: Vec<DispatcherSnapshot>,
    /// Unconfined tasks that have not ended.
    pub unconfined_tasks: usize,
    /// The samples and the first entities of every part of the runtime and of every front end.
    pub sources: Vec<SourceSnapshot>,
}

/// A part of a runtime, or a front end, at one moment.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SourceSnapshot {
    /// The name of the source, for example `processes`.
    pub source: &'static str,
    /// What tells this source from others of its name.
    pub label: Option<String>,
    /// All samples of the source.
    pub samples: Vec<Sample>,
    /// The first entities of the source, 64 at most.
    pub entities: Vec<Entity>,
    /// True if the source has more entities; see [`Handle::entities`](crate::Handle::entities).
    pub has_more: bool,
}

impl SourceSnapshot {
    fn of(observed: &dyn Observe) -> SourceSnapshot {
        let mut samples = Vec::new();
        observed.samples(&mut |sample| samples.push(sample));
        let mut entities = Vec::new();
        // One more than is kept, so that `has_more` is true only if there are more.
        let query = Query::first(FIRST_ENTITIES + 1);
        let mut take = |entity| entities.push(entity);
        observed.entities(&mut Page::new(&query, &mut take));
        let has_more = entities.len() > FIRST_ENTITIES;
        entities.truncate(FIRST_ENTITIES);
        SourceSnapshot {
            source: observed.source(),
            label: observed.label(),
            samples,
            entities,
            has_more,
        }
    }

    /// Returns the sum of the samples of this name.
    pub fn sample(&self, name: &str) -> Option<f64> {
        let found = self.samples.iter().filter(|sample| sample.name == name);
        found.map(|sample| sample.value).reduce(|a, b| a + b)
    }
}

impl RuntimeSnapshot {
    /// Returns the sources of this name.
    pub fn sources(&self, name: &str) -> impl Iterator<Item = &SourceSnapshot> {
        self.sources
            .iter()
            .filter(move |source| source.source == name)
    }
}

pub(crate) fn snapshot(shared: &Arc<Shared>) -> RuntimeSnapshot {
    let mut sources = Vec::new();
    for_each_source(shared, &mut |observed| {
        sources.push(SourceSnapshot::of(observed))
    });
    RuntimeSnapshot {
        pool: shared.pool.snapshot(),
        blocking: shared.blocking.snapshot(),
        slow_polls: shared.pool.slow_polls(),
        timers: shared.timers().waiting(),
        io_sources: shared.io_sources(),
        dispatchers: shared
            .private_pools()
            .iter()
            .map(|pool| pool.snapshot())
            .collect(),
        unconfined_tasks: shared.unconfined.len(),
        sources,
    }
}
