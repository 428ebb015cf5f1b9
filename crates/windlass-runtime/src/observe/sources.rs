//! Where samples and entities come from.

use std::fmt;
use std::sync::{Arc, Weak};

use windlass_core::sync::Mutex;

use super::entity::{Cursor, Entity, Page, Query};
use super::runtime_sources;
use super::sample::Sample;
use crate::handle::Handle;
use crate::runtime::Shared;

/// A part of a runtime that can be observed.
pub trait Observe: Send + Sync {
    /// Returns the name of the source, for example `processes`.
    fn source(&self) -> &'static str;

    /// Returns what tells this source from others of its name, for example the name of a host.
    fn label(&self) -> Option<String> {
        None
    }

    /// Calls `take` with each sample.
    fn samples(&self, take: &mut dyn FnMut(Sample));

    /// Hands the page every entity from its cursor on, until the page is full. Returns where the
    /// next page begins; none after the last entity. Holds no lock while the page takes an entity.
    fn entities(&self, page: &mut Page<'_>) -> Option<Cursor>;
}

/// Sources that are neither a part of the runtime nor a front end with a turn in its shutdown.
#[derive(Default)]
pub(crate) struct Observers(Mutex<Vec<Weak<dyn Observe>>>);

impl Handle {
    /// Adds a source of samples and entities; it is observed as long as it is there.
    pub fn add_observed(&self, source: Weak<dyn Observe>) {
        let mut there = self.shared().observers.0.lock();
        there.retain(|source| source.strong_count() > 0);
        there.push(source);
    }

    /// Calls `visit` with the entities that the query asks for, of all sources of this name.
    /// Returns where the next page begins; none after the last entity.
    ///
    /// ```
    /// use windlass_runtime::Runtime;
    /// use windlass_runtime::observe::Query;
    ///
    /// let runtime = Runtime::new()?;
    /// let _waits = runtime.spawn(std::future::pending::<()>());
    /// let (mut query, mut tasks) = (Query::first(100), 0);
    /// while let Some(next) = runtime.handle().entities("tasks", &query, |_task| tasks += 1) {
    ///     query = query.after(next);
    /// }
    /// assert!(tasks <= 1);
    /// # Ok::<(), windlass_runtime::BuildError>(())
    /// ```
    pub fn entities(
        &self,
        source: &str,
        query: &Query,
        mut visit: impl FnMut(Entity),
    ) -> Option<Cursor> {
        // The upper half of the part says which of the sources of this name.
        const SOURCE_SHIFT: u32 = 32;
        if query.limit == 0 {
            return None;
        }
        let first = query.after.part >> SOURCE_SHIFT;
        let mut query = query.clone();
        query.after.part &= (1 << SOURCE_SHIFT) - 1;
        let (mut nth, mut next) = (0, None);
        for_each_source(self.shared(), &mut |observed| {
            if observed.source() != source || next.is_some() {
                return;
            }
            if nth >= first {
                next = visit_one(observed, &mut query, &mut visit);
            }
            if let Some(next) = &mut next {
                next.part |= nth << SOURCE_SHIFT;
            }
            nth += 1;
        });
        next
    }
}

/// Visits one source; the query is then one for the next source.
fn visit_one(
    observed: &dyn Observe,
    query: &mut Query,
    visit: &mut impl FnMut(Entity),
) -> Option<Cursor> {
    if query.limit == 0 {
        // The page was filled by the sources before: the next one begins here.
        return Some(Cursor::default());
    }
    let mut visited = 0;
    let mut counted = |entity| {
        visited += 1;
        visit(entity);
    };
    let next = observed.entities(&mut Page::new(query, &mut counted));
    query.limit -= visited;
    query.after = Cursor::default();
    next
}

/// Calls `observe` with each source of a runtime: its own parts first, in a fixed order, then front
/// ends and others in the order of their coming.
pub(super) fn for_each_source(shared: &Arc<Shared>, observe: &mut dyn FnMut(&dyn Observe)) {
    runtime_sources::for_each(shared, observe);
    for front_end in shared.front_ends.all() {
        observe(&*front_end);
    }
    let others: Vec<_> = shared.observers.0.lock().clone();
    for other in others.iter().filter_map(Weak::upgrade) {
        observe(&*other);
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Observers({})", self.0.lock().len())
    }
}
