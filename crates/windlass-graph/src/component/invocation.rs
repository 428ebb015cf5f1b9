//! One call of a component: what it received, and what it asks for.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;

use windlass_core::sync::clock;
use windlass_sync::CancellationToken;

use super::setup::UNCONNECTED;
use super::{Failure, Input, Output};
use crate::record::RecordedDecisions;
use crate::run::Store;
use crate::run::UnderWay;
use windlass_plan::compile::Plan;
use windlass_plan::model::{EdgeKind, Overflow};
use windlass_value::{Data, Payload};

/// What a component is called with.
///
/// `publish` only stages: nothing becomes visible to a reader before the invocation has ended well.
pub struct Invocation<'a> {
    pub(crate) env: &'a Env,
    pub(crate) component: u32,
    pub(crate) inputs: &'a mut Vec<Received>,
    pub(crate) out: &'a mut Outbox,
    pub(crate) call: &'a Call,
}

/// What is particular to one call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    /// The number of the invocation in its run.
    pub(crate) transaction: u64,
    /// The pass of a loop, from 0.
    pub(crate) iteration: u64,
    /// When it is asked to cancel, on the real clock; 0: never.
    pub(crate) cancel_at: u64,
    /// When it was asked to cancel in a recording: after how many times of asking.
    pub(crate) cancel_after: Option<u32>,
    /// The lane's time.
    pub(crate) now: u64,
    /// The first message it was called for.
    pub(crate) origin: Option<Origin>,
}

/// What is kept of a message for those that follow from it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) id: PackedId,
    pub(crate) root: PackedId,
    event_time: EventTime,
}

impl Origin {
    pub(crate) fn of(inputs: &[Received]) -> Option<Origin> {
        inputs.first().map(|message| Origin {
            id: PackedId::new(message.route.edge, message.seq),
            root: message.root,
            event_time: message.event_time,
        })
    }
}

/// What all invocations of an epoch see.
#[derive(Clone)]
pub(crate) struct Env {
    pub(crate) plan: Arc<Plan>,
    pub(crate) store: Arc<Store>,
    pub(crate) stop: CancellationToken,
    pub(crate) under_way: Arc<UnderWay>,
    pub(crate) epoch: u64,
    /// Whether times of publishing are needed.
    pub(crate) tracing: bool,
    /// The recording that decides what the clock would.
    pub(crate) decisions: Option<Arc<RecordedDecisions>>,
}

/// How a message reaches its reader: its edge, the port there, and whether it comes late.
///
/// One aligned word, which a channel has ready: a message is moved in words, and the processor
/// waits when a word that it loads was just written in parts. For the same reason lateness is no
/// `bool`: its spare values would become the tag of an `Option<Received>`, in the middle of a word.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(8))]
pub(crate) struct Route {
    pub(crate) edge: u32,
    pub(crate) port: u16,
    late: u16,
}

impl Route {
    pub(crate) fn new(edge: u32, port: u16) -> Route {
        Route {
            edge,
            port,
            late: 0,
        }
    }

    pub(crate) fn set_late(&mut self) {
        self.late = 1;
    }
}

/// A message as its reader gets it.
#[derive(Debug, Clone)]
pub struct Received {
    pub(crate) payload: Payload,
    pub(crate) route: Route,
    pub(crate) seq: u64,
    pub(crate) root: PackedId,
    pub(crate) cause: Option<PackedId>,
    pub(crate) epoch: u64,
    pub(crate) transaction: u64,
    pub(crate) event_time: EventTime,
    /// When it was published, on the clock of the reader's lane.
    pub(crate) published: u64,
    /// When it became visible, on the same clock.
    pub(crate) arrived: u64,
}

/// A message of a run: the edge it went over, and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MessageId {
    /// A place in the graph's edges.
    pub edge: u32,
    /// Its number on the edge, from 1.
    pub seq: u64,
}

/// A message's id in one word: the edge above, the number below. Messages are moved a lot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackedId(NonZeroU64);

const SEQ_BITS: u32 = 40;

impl PackedId {
    /// Numbers beyond 2^40 of one edge begin again: a run of a million messages a second gets there
    /// in twelve days, and its trace is full long before.
    #[inline]
    pub(crate) fn new(edge: u32, seq: u64) -> PackedId {
        let word = (u64::from(edge) << SEQ_BITS) | (seq & ((1 << SEQ_BITS) - 1));
        PackedId(NonZeroU64::new(word).unwrap_or(NonZeroU64::MIN))
    }

    pub(crate) fn open(self) -> MessageId {
        MessageId {
            edge: (self.0.get() >> SEQ_BITS) as u32,
            seq: self.0.get() & ((1 << SEQ_BITS) - 1),
        }
    }
}

/// When something happened, or that the time is not known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventTime(i64);

impl EventTime {
    pub(crate) const NONE: EventTime = EventTime(i64::MIN);

    pub(crate) fn at(time: i64) -> EventTime {
        EventTime(time.max(i64::MIN + 1))
    }

    pub(crate) fn get(self) -> Option<i64> {
        (self != EventTime::NONE).then_some(self.0)
    }
}

impl Default for EventTime {
    fn default() -> Self {
        EventTime::NONE
    }
}

impl fmt::Debug for EventTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// What an invocation asks for; used again for the next.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub(crate) staged: Vec<Staged>,
    pub(crate) state: Vec<(Arc<str>, Payload)>,
    pub(crate) report: Option<LoopReport>,
    pub(crate) observed_cancel: bool,
    /// Nothing more will come of the component.
    pub(crate) finished: bool,
    /// Played back: it does not want to be called for now.
    pub(crate) held: bool,
    /// It was ended: its time was over.
    pub(crate) timed_out: bool,
    /// It was ended because the run had to stop.
    pub(crate) forced: bool,
    /// How often it has asked whether it should come to an end.
    cancel_checks: u32,
    /// How often before the answer was yes.
    pub(crate) cancelled_after: Option<u32>,
    /// The room that is left on edges that refuse at once: async edges with a limit, and those that
    /// hold off a source that comes to an end.
    pub(crate) room: Vec<(u32, usize)>,
    pub(crate) publishes: u32,
    /// Values that were published at outputs without an edge.
    pub(crate) unconnected: u32,
    /// Items that found no room, by edge.
    pub(crate) refused: Vec<u32>,
}

/// One item of a publish: for one edge.
#[derive(Debug, Clone, Default)]
pub(crate) struct Staged {
    pub(crate) payload: Payload,
    pub(crate) edge: u32,
    /// Which publish of the invocation it is of.
    pub(crate) publish: u32,
    pub(crate) root: Option<PackedId>,
    pub(crate) cause: Option<PackedId>,
    pub(crate) transaction: u64,
    pub(crate) event_time: EventTime,
    /// When it was deferred, on the clock of the reader's lane.
    pub(crate) published: u64,
    /// On the real clock; 0 if the run is not traced.
    pub(crate) at: u64,
}

/// What a component of a loop found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LoopReport {
    pub(crate) converged: bool,
    pub(crate) residual: Option<f64>,
    pub(crate) reason: String,
}

impl Received {
    /// What it carries.
    pub fn payload(&self) -> &Payload {
        &self.payload
    }

    /// What it carries, out of the message.
    pub fn into_payload(self) -> Payload {
        self.payload
    }

    /// When it happened, on the clock of its edge's domain, in nanoseconds.
    pub fn event_time(&self) -> Option<i64> {
        self.event_time.get()
    }

    /// Whether it was delivered after the edge's deadline.
    pub fn is_late(&self) -> bool {
        self.route.late != 0
    }

    /// Which message it is.
    pub fn id(&self) -> MessageId {
        MessageId {
            edge: self.route.edge,
            seq: self.seq,
        }
    }

    /// The first message of the chain that led to it.
    pub fn correlation(&self) -> MessageId {
        self.root.open()
    }

    /// The message whose reader published it; none if that had no input.
    pub fn causation(&self) -> Option<MessageId> {
        self.cause.map(PackedId::open)
    }

    /// The epoch in which it was committed.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The number of the invocation that published it.
    pub fn transaction(&self) -> u64 {
        self.transaction
    }
}

impl<'a> Invocation<'a> {
    /// The component's id.
    pub fn component(&self) -> &'a str {
        &self.env.plan.graph.components[self.component as usize].id
    }

    /// The number of the epoch, from 1.
    pub fn epoch(&self) -> u64 {
        self.env.epoch
    }

    /// The time on the clock of the component's lane, in nanoseconds since the run began.
    pub fn now(&self) -> u64 {
        self.call.now
    }

    /// The number of this invocation in its run, from 1.
    pub fn transaction(&self) -> u64 {
        self.call.transaction
    }

    /// Which pass of a composite loop this is, from 0; 0 outside of loops.
    pub fn iteration(&self) -> u64 {
        self.call.iteration
    }

    /// What it was called for: by port name, and by age.
    pub fn inputs(&self) -> &[Received] {
        self.inputs
    }

    /// Takes the messages out, to have their payloads without a copy.
    pub fn take_inputs(&mut self) -> impl Iterator<Item = Received> + use<'_, 'a> {
        self.inputs.drain(..)
    }

    /// The name of the port that a message came in at.
    pub fn port_of(&self, message: &Received) -> &'a str {
        let node = &self.env.plan.nodes[self.component as usize];
        &node.inputs[usize::from(message.route.port)].name
    }

    /// The newest value at this port, if there is one.
    ///
    /// # Errors
    /// If it is of another type.
    pub fn get<T: Data>(&self, port: Input<T>) -> Result<Option<T>, Failure> {
        match self
            .inputs
            .iter()
            .rev()
            .find(|m| m.route.port == port.place)
        {
            Some(message) => match T::from_payload(&message.payload) {
                Some(value) => Ok(Some(value)),
                None => Err(Failure::new(format!(
                    "port {} takes {}, and got {}",
                    self.port_of(message),
                    T::TYPE,
                    message.payload.type_name()
                ))),
            },
            None => Ok(None),
        }
    }

    /// The messages at this port, the oldest first.
    pub fn messages<T: Data>(&self, port: Input<T>) -> impl Iterator<Item = &Received> {
        self.inputs
            .iter()
            .filter(move |m| m.route.port == port.place)
    }

    /// The newest message at the port of this name.
    pub fn input(&self, port: &str) -> Option<&Received> {
        self.inputs.iter().rev().find(|m| self.port_of(m) == port)
    }

    /// Stages a value for all edges of this port. False if it was not accepted: an `async` edge has
    /// as many on their way as it may, and does not replace them, or an edge of a source that comes
    /// to an end ([`Descriptor::finite_source`](super::Descriptor::finite_source)) is full; then no
    /// edge gets it. At a port without an edge the value is dropped, and counted in
    /// `runtime.component.unconnected_publish_count`.
    pub fn publish<T: Data>(&mut self, port: Output<T>, value: T) -> bool {
        let event_time = self.inherited_time();
        self.stage(port.place, value.into_payload(), event_time)
    }

    /// As `publish`, with the time at which it happened.
    pub fn publish_at<T: Data>(&mut self, port: Output<T>, value: T, event_time: i64) -> bool {
        self.stage(port.place, value.into_payload(), EventTime::at(event_time))
    }

    /// As `publish`, to the port of this name.
    pub fn publish_to(&mut self, port: &str, payload: impl Into<Payload>) -> bool {
        let node = &self.env.plan.nodes[self.component as usize];
        let place = node.outputs.iter().position(|output| output.name == port);
        let event_time = self.inherited_time();
        let place = place.map_or(UNCONNECTED, |place| place as u16);
        self.stage(place, payload.into(), event_time)
    }

    /// Returns the event time of the message that led to this invocation: what is published has the
    /// same, unless `publish_at` says otherwise.
    fn inherited_time(&self) -> EventTime {
        self.call
            .origin
            .map_or(EventTime::NONE, |origin| origin.event_time)
    }

    fn stage(&mut self, port: u16, payload: Payload, event_time: EventTime) -> bool {
        if port == UNCONNECTED {
            self.out.unconnected += 1;
            return true;
        }
        let env = self.env;
        let edges = &env.plan.nodes[self.component as usize].outputs[usize::from(port)].edges;
        if !self.out.room.is_empty() && !self.out.reserve(edges) {
            return false;
        }
        let origin = self.call.origin;
        let publish = self.out.publishes;
        self.out.publishes += 1;
        let at = if env.tracing { clock::now() } else { 0 };
        let item = |edge: usize, payload| Staged {
            payload,
            edge: edge as u32,
            publish,
            root: origin.map(|origin| origin.root),
            cause: origin.map(|origin| origin.id),
            transaction: self.call.transaction,
            event_time,
            published: 0,
            at,
        };
        if let Some((&last, others)) = edges.split_last() {
            for &edge in others {
                self.out.staged.push(item(edge, payload.clone()));
            }
            self.out.staged.push(item(last, payload));
        }
        true
    }

    /// An item of a publish of this invocation, without its content.
    pub(crate) fn staged(&self, event_time: Option<i64>) -> Staged {
        let origin = self.call.origin;
        Staged {
            root: origin.map(|origin| origin.root),
            cause: origin.map(|origin| origin.id),
            event_time: event_time.map_or(EventTime::NONE, EventTime::at),
            at: if self.env.tracing { clock::now() } else { 0 },
            ..Staged::default()
        }
    }

    /// The value of this key in the state store, as it was when the epoch began.
    pub fn state(&self, key: &str) -> Option<&'a Payload> {
        self.env.store.get(key)
    }

    /// Writes to the state store; visible from the next epoch on.
    pub fn set_state(&mut self, key: impl Into<Arc<str>>, value: impl Into<Payload>) {
        self.out.state.push((key.into(), value.into()));
    }

    /// Whether it should come to an end: the run was asked to stop, or the lane's `max_callback_ms`
    /// is over; or the component's `timeout_ms`, if its type cannot be preempted.
    pub fn cancel_requested(&mut self) -> bool {
        let requested = match self.env.decisions.is_some() {
            true => self
                .call
                .cancel_after
                .is_some_and(|after| self.out.cancel_checks >= after),
            false => {
                let over = self.call.cancel_at != 0 && clock::now() >= self.call.cancel_at;
                over || self.env.stop.is_cancelled()
            }
        };
        if requested && !self.out.observed_cancel {
            self.out.observed_cancel = true;
            self.out.cancelled_after = Some(self.out.cancel_checks);
        }
        self.out.cancel_checks = self.out.cancel_checks.saturating_add(1);
        requested
    }

    /// Says that nothing more will come of this component: it is not invoked again. For sources
    /// that come to an end, such as a file: a run until it is idle ends with them.
    pub fn finish(&mut self) {
        self.out.finished = true;
    }

    /// Tells the composite loop how far it is. The last report of a pass counts.
    pub fn report_loop_convergence(
        &mut self,
        converged: bool,
        residual: Option<f64>,
        reason: impl Into<String>,
    ) {
        self.out.report = Some(LoopReport {
            converged,
            residual,
            reason: reason.into(),
        });
    }
}

impl Outbox {
    /// Takes room on every limited edge among these, or on none.
    fn reserve(&mut self, edges: &[usize]) -> bool {
        let full = |&(edge, room): &(u32, usize)| room == 0 && edges.contains(&(edge as usize));
        if let Some(&(edge, _)) = self.room.iter().find(|limited| full(limited)) {
            self.refused.push(edge);
            return false;
        }
        for (edge, room) in &mut self.room {
            if edges.contains(&(*edge as usize)) {
                *room -= 1;
            }
        }
        true
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        // Most of it is empty most of the time.
        if !self.staged.is_empty() {
            self.staged.clear();
        }
        if !self.state.is_empty() {
            self.state.clear();
        }
        if self.report.is_some() {
            self.report = None;
        }
        self.observed_cancel = false;
        self.finished = false;
        self.held = false;
        self.timed_out = false;
        self.forced = false;
        self.cancel_checks = 0;
        self.cancelled_after = None;
        self.room.clear();
        self.publishes = 0;
        self.unconnected = 0;
        self.refused.clear();
    }
}

/// Whether an edge says at once that it takes no more.
pub(crate) fn refuses_early(edge: &windlass_plan::model::Edge) -> bool {
    edge.kind == EdgeKind::Async
        && edge.policy.max_inflight > 0
        && !matches!(
            edge.policy.overflow,
            Overflow::Overwrite | Overflow::DropOldest
        )
}

impl fmt::Debug for Invocation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invocation")
            .field("component", &self.component())
            .field("epoch", &self.env.epoch)
            .field("inputs", &self.inputs)
            .finish_non_exhaustive()
    }
}
