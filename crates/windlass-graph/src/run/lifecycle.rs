//! The life of components in a run: started in the order of `depends_on`, stopped in the opposite one.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;
use std::time::Duration;

use windlass_core::sync::clock;
use windlass_runtime::time::timeout;

use crate::component::{Drain, Setup};
use crate::run::exec::invoke::outcome;
use crate::run::machine::{Halt, Machine};
use crate::run::options::{RunOptions, Snapshot};
use crate::run::result::ErrorCode;
use crate::run::sinks::trace::TraceName;
use crate::run::state::tables::nanos;

impl Machine {
    /// Starts all components. Those that have been started when one fails are stopped by `finish`.
    pub(crate) fn start(&mut self, options: &RunOptions) -> Result<(), Halt> {
        let plan = self.plan.clone();
        let bell = self.inbox.bell.clone();
        for &component in &plan.start_order {
            let config = self.configs[component].clone();
            let mut door = None;
            let mut setup = Setup {
                id: &plan.graph.components[component].id,
                config: &config,
                node: &plan.nodes[component],
                graph: &plan.graph,
                bell: &bell,
                door: &mut door,
            };
            let configured = self.ask(component, |member| member.configure(&mut setup));
            if door.is_some() {
                self.doors.push(component);
                self.members[component].door = door;
                self.members[component].has_door = true;
            }
            self.must(
                component,
                "configure",
                ErrorCode::ComponentConfigure,
                configured,
            )?;
            if self.members[component].preemptible && self.recording.script.is_none() {
                self.add_deadline(component)?;
            }
            let activated = self.ask(component, |member| member.activate());
            self.must(
                component,
                "activate",
                ErrorCode::ComponentActivate,
                activated,
            )?;
            self.members[component].active = true;
            self.sinks.counts.run.activated += 1;
            let reentrant = self.ask(component, |member| Ok(member.reentrant()));
            let reentrant = reentrant.map_err(|message| {
                let code = ErrorCode::ComponentActivate;
                self.halt("activate", code, Some(component), message)
            })?;
            self.members[component].reentrant = reentrant;
        }
        if let Some(snapshot) = &options.restore {
            self.restore(snapshot)?;
        }
        if options.reset {
            for &component in &plan.start_order {
                let reset = self.ask(component, |member| member.reset());
                self.must(component, "reset", ErrorCode::ComponentReset, reset)?;
                self.sinks.counts.run.reset += 1;
                self.note_life(TraceName::ComponentReset, component);
            }
        }
        Ok(())
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), Halt> {
        let plan = self.plan.clone();
        for &component in &plan.start_order {
            let Some(kept) = snapshot
                .components
                .get(&plan.graph.components[component].id)
            else {
                continue;
            };
            let restored = self.ask(component, |member| member.restore(kept));
            self.must(component, "restore", ErrorCode::ComponentRestore, restored)?;
            self.sinks.counts.run.restored += 1;
            self.note_life(TraceName::ComponentRestore, component);
        }
        Ok(())
    }

    /// Takes what the components and the store hold.
    pub(crate) fn take_snapshot(&mut self) -> Snapshot {
        self.commit_store();
        let plan = self.plan.clone();
        let mut snapshot = Snapshot {
            store: (*self.env.store).clone(),
            ..Snapshot::default()
        };
        for &component in &plan.start_order {
            if !self.members[component].active {
                continue;
            }
            match self.ask(component, |member| member.snapshot()) {
                Ok(kept) => {
                    self.sinks.counts.run.snapshots += 1;
                    self.note_life(TraceName::ComponentSnapshot, component);
                    let id = plan.graph.components[component].id.clone();
                    snapshot.components.extend(kept.map(|kept| (id, kept)));
                }
                Err(message) => {
                    let code = ErrorCode::ComponentSnapshot;
                    self.add_error("snapshot", code, Some(component), message, true);
                }
            }
        }
        snapshot
    }

    /// Stops what was started, the last first, each when it is drained.
    pub(crate) async fn finish(&mut self, options: &RunOptions) {
        let plan = self.plan.clone();
        let began = clock::now();
        for &component in plan.start_order.iter().rev() {
            if self.members[component].active {
                let left = nanos(options.drain_limit()).saturating_sub(clock::now() - began);
                self.drain(component, Duration::from_nanos(left)).await;
                self.deactivate(component);
            }
            // Its destructor is user code.
            let member = std::mem::take(&mut self.members[component]);
            windlass_core::task::contain(|| drop(member));
        }
    }

    /// Waits for what a component has to end first.
    async fn drain(&mut self, component: usize, left: Duration) {
        let drained = match self.ask(component, |member| Ok(member.drain())) {
            Ok(None) => return,
            Ok(Some(drain)) => {
                let under_way = self.env.under_way.clone();
                under_way.begin_shared(component);
                let drained = timeout(left, contained(drain)).await;
                under_way.end_shared(component);
                drained.unwrap_or_else(|_| {
                    self.forced.push(component);
                    Err(format!(
                        "did not come to its end within {} ms, and was ended by force: give it more \
                         time (--stop-ms, or RunOptions::drain)",
                        left.as_millis()
                    ))
                })
            }
            Err(message) => Err(message),
        };
        if let Err(message) = drained {
            let code = ErrorCode::ComponentDeactivate;
            self.add_error("drain", code, Some(component), message, false);
        }
    }

    /// Stops one component; its trigger is not looked at any more.
    pub(crate) fn deactivate(&mut self, component: usize) {
        self.members[component].active = false;
        self.sinks.counts.run.deactivated += 1;
        if let Err(message) = self.ask(component, |member| member.deactivate()) {
            let code = ErrorCode::ComponentDeactivate;
            self.add_error("deactivate", code, Some(component), message, false);
        }
    }

    fn must(
        &mut self,
        component: usize,
        phase: &str,
        code: ErrorCode,
        result: Result<(), String>,
    ) -> Result<(), Halt> {
        result.map_err(|message| self.halt(phase, code, Some(component), message))
    }

    fn note_life(&mut self, name: TraceName, component: usize) {
        if self.sinks.trace.on {
            let event = self.recorded(name, component, clock::now());
            self.sinks.trace.push(event);
        }
    }
}

/// What comes of a component's future, which may panic.
async fn contained(mut drain: Drain) -> Result<(), String> {
    let drained = poll_fn(|cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| drain.as_mut().poll(cx)));
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(drained)) => Poll::Ready(outcome(Ok(drained))),
            Err(panic) => Poll::Ready(outcome(Err(panic))),
        }
    });
    let result = drained.await;
    // Its destructor is user code.
    windlass_core::task::contain(|| drop(drain));
    result
}
