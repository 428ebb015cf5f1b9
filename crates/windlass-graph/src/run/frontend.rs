//! The front end of graphs: the runs of a runtime, and their turn in its shutdown.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use windlass_core::sync::Mutex;
use windlass_runtime::Handle;
use windlass_runtime::frontend::{FrontEnd, Stopping};
use windlass_runtime::observe::{Cursor, Entity, Observe, Page, Sample};
use windlass_runtime::time::timeout;
use windlass_sync::CancellationToken;
use windlass_sync::lock::Notify;

use crate::run::exec::under_way::UnderWay;
use windlass_plan::compile::Plan;

/// The runs of a runtime.
#[derive(Default)]
pub(crate) struct GraphFrontEnd {
    state: Mutex<State>,
    ended: Notify,
}

#[derive(Default)]
struct State {
    stopping: bool,
    next: u64,
    runs: Vec<(u64, RunEntry)>,
}

/// What the front end keeps of a run.
struct RunEntry {
    plan: Arc<Plan>,
    under_way: Arc<UnderWay>,
    stop: CancellationToken,
}

impl RunEntry {
    fn name(&self) -> &str {
        &self.plan.graph.name
    }

    fn entity(&self, id: u64) -> Entity {
        let is_stopping = self.stop.is_cancelled();
        let state = if is_stopping { "stopping" } else { "running" };
        let inside = self.under_way.ids(&self.plan);
        let waits_for = (!inside.is_empty()).then(|| format!("component {}", inside.join(", ")));
        Entity::new("graph", id.to_string(), state)
            .named(Some(self.name()))
            .waiting_for(waits_for)
            .count("components", self.plan.graph.components.len() as u64)
    }

    /// What to say of a run that does not come to its end.
    fn waits_for(&self) -> String {
        let (name, inside) = (self.name(), self.under_way.ids(&self.plan));
        match &inside[..] {
            [] => format!("graph {name} did not come to the end of its epoch"),
            [one] => format!("graph {name} did not stop: component {one} has not returned"),
            more => {
                let more = more.join(", ");
                format!("graph {name} did not stop: components {more} have not returned")
            }
        }
    }
}

/// Keeps a run registered at its runtime until it is dropped.
pub(crate) struct Registration {
    frontend: Arc<GraphFrontEnd>,
    id: u64,
}

impl GraphFrontEnd {
    /// Registers a run; returns none if the runtime is shutting down.
    pub(crate) fn register(
        runtime: &Handle,
        plan: &Arc<Plan>,
        under_way: &Arc<UnderWay>,
        stop: CancellationToken,
    ) -> Option<Registration> {
        let frontend = runtime.attached_or::<GraphFrontEnd>(|_| true, Arc::default());
        let frontend = frontend.ok()?;
        let id = {
            let mut state = frontend.state.lock();
            if state.stopping {
                return None;
            }
            state.next += 1;
            let id = state.next;
            let entry = RunEntry {
                plan: plan.clone(),
                under_way: under_way.clone(),
                stop,
            };
            state.runs.push((id, entry));
            id
        };
        Some(Registration { frontend, id })
    }

    async fn all_ended(&self) {
        loop {
            let ended = self.ended.notified();
            if self.state.lock().runs.is_empty() {
                return;
            }
            ended.await;
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.frontend
            .state
            .lock()
            .runs
            .retain(|run| run.0 != self.id);
        self.frontend.ended.notify_waiters();
    }
}

impl FrontEnd for GraphFrontEnd {
    fn stop(self: Arc<Self>, limit: Duration) -> Stopping {
        let tokens: Vec<CancellationToken> = {
            let mut state = self.state.lock();
            state.stopping = true;
            state.runs.iter().map(|run| run.1.stop.clone()).collect()
        };
        tokens.iter().for_each(CancellationToken::cancel);
        Box::pin(async move {
            let _ = timeout(limit, self.all_ended()).await;
            let state = self.state.lock();
            let left = state.runs.iter();
            left.map(|run| run.1.waits_for()).collect()
        })
    }

    fn stops_early(&self) -> bool {
        true
    }
}

impl Observe for GraphFrontEnd {
    fn source(&self) -> &'static str {
        "graphs"
    }

    fn samples(&self, take: &mut dyn FnMut(Sample)) {
        let (running, begun) = {
            let state = self.state.lock();
            (state.runs.len(), state.next)
        };
        take(Sample::gauge("running", running));
        take(Sample::counter("begun", begun));
    }

    fn entities(&self, page: &mut Page<'_>) -> Option<Cursor> {
        let first = page.after().position;
        let runs: Vec<(u64, Entity)> = {
            let state = self.state.lock();
            let runs = state.runs.iter().filter(|(id, _)| *id >= first);
            runs.map(|(id, run)| (*id, run.entity(*id))).collect()
        };
        for (position, run) in runs {
            if page.is_full() {
                return Some(Cursor { part: 0, position });
            }
            page.take(run);
        }
        None
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registration({})", self.id)
    }
}
