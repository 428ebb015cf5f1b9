//! Which components have been called and have not returned.
//!
//! A run that does not come to its end names them. A thread that waits for the run reads this,
//! because the run's own task is inside the component.

use windlass_core::sync::atomic::{AtomicU32, Ordering};

use windlass_plan::compile::Plan;

/// The calls that are under way, counted by component.
#[derive(Debug)]
pub(crate) struct UnderWay(Box<[AtomicU32]>);

impl UnderWay {
    pub(crate) fn of(plan: &Plan) -> UnderWay {
        let counts = plan.graph.components.iter().map(|_| AtomicU32::new(0));
        UnderWay(counts.collect())
    }

    /// Notes a call of a component that is called by one thread at a time.
    #[inline]
    pub(crate) fn begin(&self, component: usize) {
        // Relaxed, all of these: a number for people. Only the caller of the component writes it.
        let count = &self.0[component];
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// The call has returned.
    #[inline]
    pub(crate) fn end(&self, component: usize) {
        let count = &self.0[component];
        count.store(count.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
    }

    /// The same for a component that several threads call at once.
    pub(crate) fn begin_shared(&self, component: usize) {
        self.0[component].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end_shared(&self, component: usize) {
        self.0[component].fetch_sub(1, Ordering::Relaxed);
    }

    /// The ids of the components that have not returned.
    pub(crate) fn ids(&self, plan: &Plan) -> Vec<String> {
        let components = plan.graph.components.iter().zip(&self.0);
        components
            .filter(|(_, count)| count.load(Ordering::Relaxed) > 0)
            .map(|(component, _)| component.id.clone())
            .collect()
    }
}
