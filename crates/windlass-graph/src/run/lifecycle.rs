//! The life of components in a run: started in the order of `depends_on`, stopped in the opposite one.

use windlass_core::sync::clock;

use super::machine::{Halt, Machine};
use super::options::{RunOptions, Snapshot};
use super::result::ErrorCode;
use super::trace::TraceName;
use crate::component::Setup;

impl Machine {
    /// Starts all components. Those that have been started when one fails are stopped by `finish`.
    pub(crate) fn start(&mut self, options: &RunOptions) -> Result<(), Halt> {
        let plan = self.plan.clone();
        for &component in &plan.start_order {
            let config = self.configs[component].clone();
            let mut setup = Setup {
                id: &plan.graph.components[component].id,
                config: &config,
                node: &plan.nodes[component],
                graph: &plan.graph,
            };
            let configured = self.ask(component, |member| member.configure(&mut setup));
            self.must(
                component,
                "configure",
                ErrorCode::ComponentConfigure,
                configured,
            )?;
            let activated = self.ask(component, |member| member.activate());
            self.must(
                component,
                "activate",
                ErrorCode::ComponentActivate,
                activated,
            )?;
            self.members[component].active = true;
            self.counts.run.activated += 1;
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
                self.counts.run.reset += 1;
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
            self.counts.run.restored += 1;
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
                    self.counts.run.snapshots += 1;
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

    /// Stops what was started, the last first.
    pub(crate) fn finish(&mut self) {
        let plan = self.plan.clone();
        for &component in plan.start_order.iter().rev() {
            if self.members[component].active {
                self.deactivate(component);
            }
            // Its destructor is user code.
            let member = std::mem::take(&mut self.members[component]);
            windlass_core::task::contain(|| drop(member));
        }
    }

    /// Stops one component; its trigger is not looked at any more.
    pub(crate) fn deactivate(&mut self, component: usize) {
        self.members[component].active = false;
        self.counts.run.deactivated += 1;
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
        if self.trace.on {
            let event = self.recorded(name, component, clock::now());
            self.trace.push(event);
        }
    }
}
