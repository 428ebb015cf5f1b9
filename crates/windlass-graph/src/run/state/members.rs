//! The components of a run: which are there, which may run, and what ends their calls.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use windlass_runtime::Handle;

use crate::component::{Component, Door, Failure, Interrupt, Reentrant};
use crate::record::{DoorRecord, Names};
use crate::run::exec::inline::outcome;
use crate::run::exec::timeout::{CallDeadline, Watch};
use crate::run::exec::under_way::UnderWay;
use crate::run::options::RunOptions;
use crate::run::state::triggers::DoorSignal;
use windlass_plan::compile::Plan;
use windlass_plan::model::Config;

/// The components of a run, by their place in the graph.
#[derive(Default)]
pub(crate) struct Members {
    by_component: Vec<Member>,
    /// The components that have a door to the world outside.
    doors: Vec<usize>,
    /// The components that were ended by force, because the run had to stop.
    forced: Vec<usize>,
    /// The thread that ends calls that take too long, if some may be ended.
    watch: Option<Arc<Watch>>,
}

/// A component in a run. The default stands where another part of the run has the real one.
#[derive(Default)]
pub(crate) struct Member {
    /// Not here while it is called elsewhere.
    component: Option<Box<dyn Component>>,
    /// What may be called several times at once.
    reentrant: Option<Arc<dyn Reentrant>>,
    /// Its configuration, as it is now.
    config: Config,
    /// Whether its type says that an invocation can be ended from outside.
    preemptible: bool,
    /// Whether its type says that it is a source that comes to an end.
    is_finite_source: bool,
    /// What ends an invocation that takes too long, if the run has a watch.
    deadline: Option<CallDeadline>,
    /// Whether it was activated and has not been deactivated.
    active: bool,
    /// Whether it has said that nothing more will come of it.
    finished: bool,
    /// How it hears of the world outside.
    door: Option<Arc<Door>>,
    /// Whether it has one, or had one when it was recorded.
    has_door: bool,
    /// The door was knocked at.
    woken: bool,
    /// It does not want to be invoked for now.
    held: bool,
}

impl Member {
    pub(crate) fn new(component: Option<Box<dyn Component>>, config: Config) -> Member {
        Member {
            component,
            config,
            ..Member::default()
        }
    }

    /// Says whether its type is a source that comes to an end.
    pub(crate) fn finite_source(mut self, is_finite_source: bool) -> Member {
        self.is_finite_source = is_finite_source;
        self
    }

    /// Says whether its type can be preempted.
    pub(crate) fn preemptible(mut self, preemptible: bool) -> Member {
        self.preemptible = preemptible;
        self
    }

    /// Whether invocations that were collected together still come.
    #[inline]
    fn may_finish(&self) -> bool {
        self.active && !self.finished
    }
}

impl Members {
    pub(crate) fn new(by_component: Vec<Member>) -> Members {
        Members {
            by_component,
            ..Members::default()
        }
    }

    /// Returns how many there are.
    pub(crate) fn len(&self) -> usize {
        self.by_component.len()
    }

    // What types say.

    pub(crate) fn is_preemptible(&self, component: usize) -> bool {
        self.by_component[component].preemptible
    }

    pub(crate) fn is_finite_source(&self, component: usize) -> bool {
        self.by_component[component].is_finite_source
    }

    // Whether they run.

    /// Whether a component can be invoked.
    #[inline]
    pub(crate) fn runs(&self, component: usize) -> bool {
        let member = &self.by_component[component];
        member.may_finish() && !member.held
    }

    /// Whether invocations that were collected together still come.
    #[inline]
    pub(crate) fn may_finish(&self, component: usize) -> bool {
        self.by_component[component].may_finish()
    }

    /// Whether a component was activated and has not been deactivated.
    pub(crate) fn is_active(&self, component: usize) -> bool {
        self.by_component[component].active
    }

    pub(crate) fn set_active(&mut self, component: usize, active: bool) {
        self.by_component[component].active = active;
    }

    /// Notes that nothing more will come of a component, if it has said so.
    #[inline]
    pub(crate) fn note_finished(&mut self, component: usize, finished: bool) {
        self.by_component[component].finished |= finished;
    }

    /// Whether a component does not want to be invoked for now.
    #[inline]
    pub(crate) fn is_held(&self, component: usize) -> bool {
        self.by_component[component].held
    }

    // Their calls.

    /// Returns a component that is called here, and what ends the call.
    #[inline]
    pub(crate) fn callee(
        &mut self,
        component: usize,
    ) -> Option<(&mut dyn Component, Option<&CallDeadline>)> {
        let member = &mut self.by_component[component];
        let body = member.component.as_deref_mut()?;
        Some((body, member.deadline.as_ref()))
    }

    /// Takes a component out, to be called elsewhere.
    pub(crate) fn take_component(&mut self, component: usize) -> Option<Box<dyn Component>> {
        self.by_component[component].component.take()
    }

    /// Takes a component back.
    pub(crate) fn return_component(&mut self, component: usize, body: Box<dyn Component>) {
        self.by_component[component].component = Some(body);
    }

    /// Returns what ends a call of a component that takes too long.
    pub(crate) fn deadline(&self, component: usize) -> Option<CallDeadline> {
        self.by_component[component].deadline.clone()
    }

    /// Returns what may be called several times at once.
    pub(crate) fn reentrant(&self, component: usize) -> Option<&Arc<dyn Reentrant>> {
        self.by_component[component].reentrant.as_ref()
    }

    pub(crate) fn set_reentrant(
        &mut self,
        component: usize,
        reentrant: Option<Arc<dyn Reentrant>>,
    ) {
        self.by_component[component].reentrant = reentrant;
    }

    /// Calls a component outside of invocations; a panic is a failure like any other.
    pub(crate) fn ask<T>(
        &mut self,
        component: usize,
        under_way: &UnderWay,
        question: impl FnOnce(&mut dyn Component) -> Result<T, Failure>,
    ) -> Result<T, String> {
        let member = &mut self.by_component[component];
        let Some(body) = member.component.as_deref_mut() else {
            return Err("it is not there".to_owned());
        };
        let call = || outcome(catch_unwind(AssertUnwindSafe(|| question(body))));
        under_way.begin_shared(component);
        let (answer, forced) = match &member.deadline {
            None => (call(), None),
            Some(deadline) => deadline.stopped(call),
        };
        under_way.end_shared(component);
        match forced {
            None => answer,
            Some(message) => {
                self.forced.push(component);
                Err(message)
            }
        }
    }

    /// Takes a member out for good, to be dropped.
    pub(crate) fn remove(&mut self, component: usize) -> Member {
        std::mem::take(&mut self.by_component[component])
    }

    // What ends them.

    /// Starts the watch if some component can be ended.
    ///
    /// # Errors
    /// If there is no thread for it.
    pub(crate) fn start_watch(
        &mut self,
        runtime: &Handle,
        graph: &str,
        options: &RunOptions,
    ) -> Result<(), String> {
        if self.by_component.iter().all(|member| !member.preemptible) {
            return Ok(());
        }
        let watch = Watch::start(runtime, graph, options).map_err(|error| {
            format!("components that can be ended need a watching thread: {error}")
        })?;
        self.watch = Some(Arc::new(watch));
        Ok(())
    }

    /// Lets the watch end the run's calls from this time on.
    pub(crate) fn end_calls_at(&self, at: u64) {
        if let Some(watch) = &self.watch {
            watch.ends_at(at);
        }
    }

    /// Gives a component a deadline, which the watch looks after.
    pub(crate) fn add_deadline(
        &mut self,
        component: usize,
        interrupt: Arc<dyn Interrupt>,
        limit: u64,
    ) {
        let watch = self.watch.as_ref();
        let deadline = watch.map(|watch| watch.add(interrupt, limit));
        self.by_component[component].deadline = deadline;
    }

    /// Notes that a component was ended by force.
    pub(crate) fn add_forced(&mut self, component: usize) {
        self.forced.push(component);
    }

    /// Returns the components that were ended by force.
    pub(crate) fn forced(&self) -> &[usize] {
        &self.forced
    }

    // Their configurations.

    /// Returns the configuration of a component, as it is now.
    pub(crate) fn config(&self, component: usize) -> &Config {
        &self.by_component[component].config
    }

    pub(crate) fn set_config(&mut self, component: usize, config: Config) {
        self.by_component[component].config = config;
    }

    // Their doors.

    /// Returns the components that have a door.
    pub(crate) fn doors(&self) -> &[usize] {
        &self.doors
    }

    /// Whether a component has a door, or had one when it was recorded.
    #[inline]
    pub(crate) fn has_door(&self, component: usize) -> bool {
        self.by_component[component].has_door
    }

    /// Gives a component its door.
    pub(crate) fn add_door(&mut self, component: usize, door: Arc<Door>) {
        self.doors.push(component);
        self.by_component[component].door = Some(door);
        self.by_component[component].has_door = true;
    }

    /// Says which components had a door when the run was recorded.
    pub(crate) fn set_recorded_doors(&mut self, doors: Vec<usize>) {
        for &component in &doors {
            self.by_component[component].has_door = true;
        }
        self.doors = doors;
    }

    /// An epoch begins: what is seen at the doors now counts for all of it.
    pub(crate) fn look_outside(&mut self) {
        for &component in &self.doors {
            let member = &mut self.by_component[component];
            if let Some(door) = &member.door {
                let seen = door.look();
                member.woken |= seen.woken;
                member.held = seen.held;
            }
        }
    }

    /// Looks whether a component wants to be invoked after a call of it. A knock at its door counts
    /// from the next epoch on.
    #[inline]
    pub(crate) fn look_held(&mut self, component: usize, played_back: bool) {
        let member = &mut self.by_component[component];
        if member.has_door {
            member.held = match &member.door {
                Some(door) => door.peek().held,
                None => played_back,
            };
        }
    }

    /// Returns what makes a component run from outside; a knock counts once. On a lane that follows
    /// the real clock only a knock does: otherwise the lane's ticks are what counts.
    pub(crate) fn door_signal(&mut self, component: usize, follows_clock: bool) -> DoorSignal {
        let member = &mut self.by_component[component];
        if !member.has_door {
            return DoorSignal::NoDoor;
        }
        let woken = std::mem::take(&mut member.woken);
        match follows_clock && !woken {
            true => DoorSignal::NoDoor,
            false => DoorSignal::Door { woken },
        }
    }

    /// Whether a door was knocked at that no epoch has looked at.
    pub(crate) fn has_news(&self) -> bool {
        let mut members = self.doors.iter().map(|&c| &self.by_component[c]);
        members.any(|member| {
            let seen = member.door.as_ref().map(|door| door.peek());
            let resumed = seen.is_some_and(|seen| member.held && !seen.held);
            member.may_finish() && (member.woken || seen.is_some_and(|seen| seen.woken) || resumed)
        })
    }

    /// Whether more may come from outside.
    pub(crate) fn expect_news(&self) -> bool {
        let members = self.doors.iter().map(|&c| &self.by_component[c]);
        // Of one that is finished or was deactivated nothing more can come.
        let mut members = members.filter(|member| member.may_finish());
        members.any(|member| member.held || member.door.as_ref().is_some_and(|d| d.is_open()))
    }

    /// Returns what this epoch has seen at the doors.
    pub(crate) fn doors_seen(&self, names: &Names) -> Vec<DoorRecord> {
        let seen = |&component: &usize| DoorRecord {
            component: names.components[component].clone(),
            woken: self.by_component[component].woken,
            held: self.by_component[component].held,
        };
        self.doors.iter().map(seen).collect()
    }

    /// In a replay: lets this epoch see what was recorded.
    pub(crate) fn set_doors_seen(&mut self, doors: &[DoorRecord], plan: &Plan) {
        for seen in doors {
            if let Some((component, _)) = plan.graph.component(&seen.component) {
                let member = &mut self.by_component[component];
                (member.woken, member.held) = (seen.woken, seen.held);
            }
        }
    }

    // Parts of a run.

    /// Takes these components out, for a part of the run that runs beside it. They keep their
    /// deadlines; the watch stays here.
    pub(crate) fn split_off(&mut self, components: &[usize]) -> Members {
        let none = self.by_component.iter().map(|_| Member::default());
        let mut part = Members::new(none.collect());
        part.take_members(self, components);
        part
    }

    /// Takes these components back from a part of the run that has ended.
    pub(crate) fn merge(&mut self, mut part: Members, components: &[usize]) {
        self.take_members(&mut part, components);
        self.forced.append(&mut part.forced);
    }

    fn take_members(&mut self, other: &mut Members, components: &[usize]) {
        for &component in components {
            self.by_component[component] = std::mem::take(&mut other.by_component[component]);
        }
    }
}
