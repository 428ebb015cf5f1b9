//! The life of components in a run: started in the order of `depends_on`, stopped in the opposite
//! one.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use windlass_core::sync::clock;
use windlass_runtime::time::timeout;

use crate::component::{Component, Drain, Failure, Setup};
use crate::run::exec::inline::outcome;
use crate::run::exec::under_way::UnderWay;
use crate::run::options::{RunOptions, Snapshot};
use crate::run::result::ErrorCode;
use crate::run::run_state::Halt;
use crate::run::sinks::Sinks;
use crate::run::sinks::sink::{LifecycleCall, LifecycleKind, Sink};
use crate::run::state::members::Members;
use crate::run::state::store::Store;
use crate::run::state::tables::{Tables, nanos};
use windlass_sync::lock::Notify;

/// Calls components outside of invocations: with what such calls need of a run.
pub(crate) struct Lifecycle<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) epoch: u64,
    pub(crate) under_way: &'a UnderWay,
    pub(crate) members: &'a mut Members,
    pub(crate) sinks: &'a mut Sinks,
}

impl Lifecycle<'_> {
    /// Starts all components. Those that have been started when one fails are stopped by `finish`.
    /// `bell` wakes the run when a door is knocked at.
    pub(crate) fn start(
        &mut self,
        options: &RunOptions,
        bell: &Arc<Notify>,
        is_replay: bool,
    ) -> Result<(), Halt> {
        let plan = self.tables.plan.clone();
        for &component in &plan.start_order {
            let config = self.members.config(component).clone();
            let mut door = None;
            let mut setup = Setup {
                id: &plan.graph.components[component].id,
                config: &config,
                node: &plan.nodes[component],
                graph: &plan.graph,
                bell,
                door: &mut door,
            };
            let configured = self.ask(component, |member| member.configure(&mut setup));
            if let Some(door) = door {
                self.members.add_door(component, door);
            }
            self.must(
                component,
                "configure",
                ErrorCode::ComponentConfigure,
                configured,
            )?;
            if self.members.is_preemptible(component) && !is_replay {
                self.add_deadline(component)?;
            }
            let activated = self.ask(component, |member| member.activate());
            self.must(
                component,
                "activate",
                ErrorCode::ComponentActivate,
                activated,
            )?;
            self.members.set_active(component, true);
            self.report(LifecycleKind::Activate, component);
            let reentrant = self.ask(component, |member| Ok(member.reentrant()));
            let reentrant = reentrant.map_err(|message| {
                let code = ErrorCode::ComponentActivate;
                self.sinks.halt("activate", code, Some(component), message)
            })?;
            self.members.set_reentrant(component, reentrant);
        }
        if let Some(snapshot) = &options.restore {
            self.restore(snapshot)?;
        }
        if options.reset {
            for &component in &plan.start_order {
                let reset = self.ask(component, |member| member.reset());
                self.must(component, "reset", ErrorCode::ComponentReset, reset)?;
                self.report(LifecycleKind::Reset, component);
            }
        }
        Ok(())
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), Halt> {
        let plan = self.tables.plan.clone();
        for &component in &plan.start_order {
            let Some(kept) = snapshot
                .components
                .get(&plan.graph.components[component].id)
            else {
                continue;
            };
            let restored = self.ask(component, |member| member.restore(kept));
            self.must(component, "restore", ErrorCode::ComponentRestore, restored)?;
            self.report(LifecycleKind::Restore, component);
        }
        Ok(())
    }

    /// Takes what the components and the store hold.
    pub(crate) fn take_snapshot(&mut self, store: Store) -> Snapshot {
        let plan = self.tables.plan.clone();
        let mut snapshot = Snapshot {
            store,
            ..Snapshot::default()
        };
        for &component in &plan.start_order {
            if !self.members.is_active(component) {
                continue;
            }
            match self.ask(component, |member| member.snapshot()) {
                Ok(kept) => {
                    self.report(LifecycleKind::Snapshot, component);
                    let id = plan.graph.components[component].id.clone();
                    snapshot.components.extend(kept.map(|kept| (id, kept)));
                }
                Err(message) => {
                    let code = ErrorCode::ComponentSnapshot;
                    self.sinks
                        .add_error("snapshot", code, Some(component), message, true);
                }
            }
        }
        snapshot
    }

    /// Stops what was started, the last first, each when it is drained.
    pub(crate) async fn finish(&mut self, options: &RunOptions) {
        let plan = self.tables.plan.clone();
        let began = clock::now();
        for &component in plan.start_order.iter().rev() {
            if self.members.is_active(component) {
                let left = nanos(options.drain_limit()).saturating_sub(clock::now() - began);
                self.drain(component, Duration::from_nanos(left)).await;
                self.deactivate(component);
            }
            // Its destructor is user code.
            let member = self.members.remove(component);
            windlass_core::task::contain(|| drop(member));
        }
    }

    /// Waits for what a component has to end first.
    async fn drain(&mut self, component: usize, left: Duration) {
        let drained = match self.ask(component, |member| Ok(member.drain())) {
            Ok(None) => return,
            Ok(Some(drain)) => {
                self.under_way.begin_shared(component);
                let drained = timeout(left, contained(drain)).await;
                self.under_way.end_shared(component);
                drained.unwrap_or_else(|_| {
                    self.members.add_forced(component);
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
            self.sinks
                .add_error("drain", code, Some(component), message, false);
        }
    }

    /// Stops one component; its trigger is not looked at any more.
    pub(crate) fn deactivate(&mut self, component: usize) {
        self.members.set_active(component, false);
        self.report(LifecycleKind::Deactivate, component);
        if let Err(message) = self.ask(component, |member| member.deactivate()) {
            let code = ErrorCode::ComponentDeactivate;
            self.sinks
                .add_error("deactivate", code, Some(component), message, false);
        }
    }

    fn must(
        &mut self,
        component: usize,
        phase: &str,
        code: ErrorCode,
        result: Result<(), String>,
    ) -> Result<(), Halt> {
        result.map_err(|message| self.sinks.halt(phase, code, Some(component), message))
    }

    /// Asks a component for what ends it, which its type has promised.
    fn add_deadline(&mut self, component: usize) -> Result<(), Halt> {
        let asked = self.ask(component, |member| Ok(member.interrupt()));
        let promised = asked.and_then(|interrupt| {
            interrupt.ok_or_else(|| {
                let name = &self.tables.plan.graph.components[component].type_name;
                format!(
                    "the type {name} says that it can be preempted, and gives nothing that does so: implement `Component::interrupt`, or leave out `Descriptor::preemptible`"
                )
            })
        });
        let interrupt = promised.map_err(|message| {
            let code = ErrorCode::ComponentActivate;
            self.sinks.halt("activate", code, Some(component), message)
        })?;
        let limit = self.tables.components[component].timeout;
        self.members.add_deadline(component, interrupt, limit);
        Ok(())
    }

    /// Calls a component outside of invocations; a panic is a failure like any other.
    pub(crate) fn ask<T>(
        &mut self,
        component: usize,
        question: impl FnOnce(&mut dyn Component) -> Result<T, Failure>,
    ) -> Result<T, String> {
        self.members.ask(component, self.under_way, question)
    }

    /// Reports a call, or what it is about.
    pub(crate) fn report(&mut self, kind: LifecycleKind, component: usize) {
        self.sinks.lifecycle_call(&LifecycleCall {
            epoch: self.epoch,
            component,
            kind,
        });
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
