//! The supervisor at work.
//!
//! It is an async process that traps links. What it decides is in three places:
//! [`RunningSupervisor::ended`] (a child has ended: again, or not), [`RunningSupervisor::again`]
//! (who is affected, and after what pause), and [`RunningSupervisor::start_due`] (what is due is
//! started, in order).

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use windlass_runtime::time::{Instant, timeout, timeout_at};
use windlass_value::Pid;

use super::child::{ChildSpec, Claim, Restart};
use super::tree::{Tree, TreeChild};
use super::{PATIENCE, Strategy, Supervisor, SupervisorError};
use crate::actor::{Context, Event};
use crate::address::Reply;
use crate::error::{AskError, SpawnError};
use crate::exit::{ActorError, ExitReason, Exited};

/// What a supervisor is asked.
pub(crate) enum Order {
    Ready(Reply<()>),
    Start(ChildSpec, Reply<Result<Pid, SupervisorError>>),
    Stop(Arc<str>, Reply<Result<(), SupervisorError>>),
    Tree(Reply<Tree>),
}

struct Child {
    spec: ChildSpec,
    pid: Option<Pid>,
    /// Attempts since it last ran for long enough.
    attempts: u32,
    restarts: u64,
    started_at: Instant,
    last_end: Option<ExitReason>,
    /// When it is to be started again.
    due: Option<Instant>,
    /// None: no address asks what process it is.
    claim: Option<Claim>,
}

struct RunningSupervisor {
    settings: Supervisor,
    ctx: Context<Order>,
    children: Vec<Child>,
    /// The latest restarts.
    recent: VecDeque<Instant>,
}

/// How long a killed child may take to be gone; it is inside a step that does not return then.
const AFTER_KILL: Duration = Duration::from_secs(1);

pub(super) async fn run(mut settings: Supervisor, ctx: Context<Order>) -> Result<(), ActorError> {
    ctx.trap_links(true);
    let specs = std::mem::take(&mut settings.children);
    let mut running = RunningSupervisor {
        settings,
        ctx,
        children: Vec::new(),
        recent: VecDeque::new(),
    };
    let result = running.work(specs).await;
    // Senders that wait for a child learn at once that it does not come back.
    for child in &running.children {
        child.claim.as_ref().inspect(|claim| claim.end());
    }
    running.stop_from(0).await;
    result
}

impl RunningSupervisor {
    async fn work(&mut self, specs: Vec<ChildSpec>) -> Result<(), ActorError> {
        for spec in specs {
            if self.place_of(&spec.id).is_some() {
                let text = format!("two children are called {:?}", spec.id);
                return Err(ActorError::new(text));
            }
            let id = spec.id.clone();
            self.add(spec).await.map_err(|error| {
                ActorError::new(format!("the child {id:?} did not start: {error}"))
            })?;
        }
        loop {
            let due = self.children.iter().filter_map(|child| child.due).min();
            let event = match due {
                None => self.ctx.event().await,
                Some(due) => match timeout_at(due, self.ctx.event()).await {
                    Ok(event) => event,
                    Err(_) => {
                        self.start_due().await?;
                        continue;
                    }
                },
            };
            match event {
                Event::Cancel(reason) => return Err(ActorError::cancelled(reason)),
                Event::Exit(exited) => self.ended(exited).await?,
                Event::Message(order) => self.obey(order).await,
            }
        }
    }

    async fn obey(&mut self, order: Order) {
        match order {
            Order::Ready(reply) => reply.send(()),
            Order::Tree(reply) => reply.send(self.tree()),
            Order::Start(spec, reply) => {
                let started = match self.place_of(&spec.id) {
                    Some(_) => Err(SupervisorError::Exists(spec.id)),
                    None => self.add(spec).await.map_err(SupervisorError::Spawn),
                };
                reply.send(started);
            }
            Order::Stop(id, reply) => {
                let stopped = match self.place_of(&id) {
                    None => Err(SupervisorError::NoChild(id)),
                    Some(place) => {
                        self.stop(place).await;
                        self.children.remove(place);
                        Ok(())
                    }
                };
                reply.send(stopped);
            }
        }
    }

    fn place_of(&self, id: &str) -> Option<usize> {
        self.children.iter().position(|child| *child.spec.id == *id)
    }

    // ---- starting ----

    /// Starts a child for the first time.
    async fn add(&mut self, spec: ChildSpec) -> Result<Pid, SpawnError> {
        let claim = spec.claim(self.ctx.pid());
        let pid = self.launch(&spec).await?;
        self.children.push(Child {
            spec,
            pid: Some(pid),
            attempts: 0,
            restarts: 0,
            started_at: Instant::now(),
            last_end: None,
            due: None,
            claim,
        });
        Ok(pid)
    }

    async fn launch(&self, spec: &ChildSpec) -> Result<Pid, SpawnError> {
        let spawn = self.ctx.linked().supervised();
        let started = catch_unwind(AssertUnwindSafe(|| (spec.start)(spawn)));
        let pid = started.unwrap_or_else(|panic| {
            let reason = ExitReason::of_panic(panic);
            Err(SpawnError::Init(reason))
        })?;
        // It may have been started in another way; linking twice changes nothing.
        self.ctx.link(pid);
        // A supervisor counts as started when its own children are. It never waits for those above
        // it.
        if let Some(below) = self.ctx.host().address::<Order>(pid)
            && let Err(AskError::NoAnswer) = below.ask_within(PATIENCE, Order::Ready).await
        {
            return Err(SpawnError::Init(below.ended().await.reason));
        }
        Ok(pid)
    }

    /// Starts what is due, in order. A child that does not start counts as one that ended at once.
    async fn start_due(&mut self) -> Result<(), ActorError> {
        let now = Instant::now();
        for place in 0..self.children.len() {
            let child = &self.children[place];
            if child.due.is_none_or(|due| due > now) {
                continue;
            }
            let spec = child.spec.clone();
            let started = self.launch(&spec).await;
            let child = &mut self.children[place];
            child.due = None;
            match started {
                Ok(pid) => {
                    child.pid = Some(pid);
                    child.started_at = now;
                    child.restarts += 1;
                }
                Err(error) => {
                    let text = format!("it did not start: {error}");
                    child.last_end = Some(ExitReason::Error(text.into()));
                    return self.again(place).await;
                }
            }
        }
        Ok(())
    }

    // ---- ends ----

    async fn ended(&mut self, exited: Exited) -> Result<(), ActorError> {
        let is_it = |child: &Child| child.pid == Some(exited.pid);
        let Some(place) = self.children.iter().position(is_it) else {
            // It was stopped on purpose, or its parent has linked itself to another process.
            return Ok(());
        };
        let child = &mut self.children[place];
        child.pid = None;
        child.last_end = Some(exited.reason.clone());
        if child.spec.restart.applies_to(&exited.reason) {
            child.claim.as_ref().inspect(|claim| claim.pause());
            return self.again(place).await;
        }
        child.claim.as_ref().inspect(|claim| claim.end());
        if child.spec.restart == Restart::Temporary {
            self.children.remove(place);
        }
        Ok(())
    }

    /// A child has to be started again, and with it those that the strategy says; or it was once
    /// too often.
    async fn again(&mut self, place: usize) -> Result<(), ActorError> {
        let now = Instant::now();
        self.recent.push_back(now);
        let within = self.settings.within;
        while self
            .recent
            .front()
            .is_some_and(|first| *first + within < now)
        {
            self.recent.pop_front();
        }
        if self.recent.len() > self.settings.most_restarts {
            let id = &self.children[place].spec.id;
            let (most, id) = (self.settings.most_restarts, id.clone());
            let text = format!("more than {most} restarts in {within:?}, the last of {id:?}");
            return Err(ActorError::new(text));
        }
        let backoff = self.settings.backoff;
        let child = &mut self.children[place];
        if child.started_at + backoff.reset_after <= now {
            child.attempts = 0;
        }
        let chance = self.ctx.host().runtime().random();
        let pause = backoff.pause(child.attempts, chance);
        child.attempts = child.attempts.saturating_add(1);
        let affected = match self.settings.strategy {
            Strategy::OneForOne => place..place + 1,
            Strategy::OneForAll => 0..self.children.len(),
            Strategy::RestForOne => place..self.children.len(),
        };
        for other in affected.clone().rev() {
            self.stop(other).await;
        }
        let due = Instant::now() + pause;
        // Those that never come back do not come back for another's sake.
        let mut place = 0;
        self.children.retain_mut(|child| {
            let is_affected = affected.contains(&place);
            place += 1;
            let stays = !is_affected || child.spec.restart != Restart::Temporary;
            if is_affected && stays {
                child.due = Some(due);
                child.claim.as_ref().inspect(|claim| claim.wait());
            }
            stays
        });
        Ok(())
    }

    // ---- stopping ----

    /// Stops the children from this one on, the last first.
    async fn stop_from(&mut self, first: usize) {
        for place in (first..self.children.len()).rev() {
            self.stop(place).await;
        }
    }

    /// Stops a child if it runs: cancels it, and kills it after its time.
    async fn stop(&mut self, place: usize) {
        let child = &mut self.children[place];
        child.due = None;
        let Some(pid) = child.pid.take() else {
            return;
        };
        child.claim.as_ref().inspect(|claim| claim.pause());
        let host = self.ctx.host();
        host.cancel(pid, "its supervisor stops it");
        if timeout(child.spec.stop_within, host.ended(pid))
            .await
            .is_ok()
        {
            return;
        }
        host.kill(pid);
        // One that does not return from a step is left behind; a shutdown names it.
        let _ = timeout(AFTER_KILL, host.ended(pid)).await;
    }

    fn tree(&self) -> Tree {
        let now = Instant::now();
        let child = |child: &Child| TreeChild {
            id: child.spec.id.clone(),
            pid: child.pid,
            restart: child.spec.restart,
            restarts: child.restarts,
            last_end: child.last_end.clone(),
            waits: child.due.map(|due| due.saturating_duration_since(now)),
            below: None,
        };
        Tree {
            pid: self.ctx.pid(),
            strategy: self.settings.strategy,
            children: self.children.iter().map(child).collect(),
        }
    }
}
