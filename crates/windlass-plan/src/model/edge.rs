//! Edges: how messages get from port to port.

use std::time::Duration;

use super::ClockDomain;
use crate::named;

/// One of `edges`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The id of the edge.
    pub id: String,
    /// The output port it begins at.
    pub from: Endpoint,
    /// The input port it ends at.
    pub to: Endpoint,
    /// When a message becomes visible.
    pub kind: EdgeKind,
    /// How messages are kept.
    pub policy: EdgePolicy,
}

/// A port of a component, `component.port`; the separator is the last dot.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// The component's id.
    pub component: String,
    /// The port's name.
    pub port: String,
}

named! {
    /// When a message becomes visible.
    pub enum EdgeKind {
        /// In this epoch, when the publishing component is done.
        Immediate = "immediate",
        /// At the beginning of the next epoch.
        Delay = "delay",
        /// Likewise, and it is kept in the state store.
        State = "state",
        /// Likewise, and only so many may be on their way.
        Async = "async",
    }
}

/// `policy` of an edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgePolicy {
    /// How messages are kept.
    pub mode: Mode,
    /// How many are kept.
    pub capacity: usize,
    /// What happens beyond.
    pub overflow: Overflow,
    /// Messages older than this are not delivered.
    pub lifespan: Duration,
    /// Messages older than this are delivered with a flag, and counted.
    pub deadline: Duration,
    /// How many may be on their way; async only, 0 = no limit of its own.
    pub max_inflight: usize,
    /// Whether a reentrant batch commits in the order of its invocations.
    pub preserve_order: bool,
    /// Whether the policy may drop anything.
    pub allow_drop: bool,
    /// Whether it raises health events.
    pub emit_health_events: bool,
    /// The domain of its timestamps, if not the graph's.
    pub timestamp_domain: Option<ClockDomain>,
    /// What a delivered payload is.
    pub copy_policy: CopyPolicy,
    /// The owner of the payloads.
    pub owner: Owner,
    /// Whether several may read.
    pub readers: Readers,
    /// Whether a source that comes to an end, such as a file, waits while the edge is full, instead
    /// of losing what does not fit. In a file it is true unless `overflow` says that messages are
    /// replaced or dropped, or `mode` that only the newest counts.
    pub backpressure: bool,
}

named! {
    /// How an edge keeps messages.
    #[derive(Default)]
    pub enum Mode {
        /// The newest message only.
        #[default]
        Latest = "latest",
        /// First in, first out.
        Queue = "queue",
        /// The same as a queue.
        RingBuffer = "ring_buffer",
        /// The newest, which also a late reader sees.
        Latched = "latched",
        /// `capacity` at a time.
        Barrier = "barrier",
        /// The newest of the epoch before.
        PreviousTick = "previous_tick",
    }
}

named! {
    /// What happens to a message beyond an edge's capacity.
    #[derive(Default)]
    pub enum Overflow {
        /// It takes the place of the oldest.
        #[default]
        Overwrite = "overwrite",
        /// It takes the place of the oldest.
        DropOldest = "drop_oldest",
        /// It is refused.
        DropNewest = "drop_newest",
        /// Would block the producer: it is refused.
        Block = "block",
        /// It is refused, and the run ends.
        FailFast = "fail_fast",
        /// It is refused.
        Reject = "reject",
    }
}

named! {
    /// What a delivered payload is.
    #[derive(Default)]
    pub enum CopyPolicy {
        /// The reader's own.
        #[default]
        Copy = "copy",
        /// Shared by all readers.
        SharedView = "shared_view",
        /// Shared, and the owner's.
        LoanedView = "loaned_view",
        /// The only one there is.
        MoveOnly = "move_only",
    }
}

named! {
    /// The owner of an edge's payloads.
    #[derive(Default)]
    pub enum Owner {
        /// The component that publishes.
        Producer = "producer",
        /// The run of the graph.
        #[default]
        Runtime = "runtime",
        /// The component that reads.
        Consumer = "consumer",
    }
}

named! {
    /// How many read an edge.
    #[derive(Default)]
    pub enum Readers {
        /// Its target only.
        #[default]
        Single = "single",
        /// Others, too: each has a cursor of its own.
        Multi = "multi" | "multiple",
    }
}

impl Default for EdgePolicy {
    fn default() -> Self {
        EdgePolicy {
            mode: Mode::default(),
            capacity: 1,
            overflow: Overflow::default(),
            lifespan: Duration::ZERO,
            deadline: Duration::ZERO,
            max_inflight: 0,
            preserve_order: true,
            allow_drop: true,
            emit_health_events: true,
            timestamp_domain: None,
            copy_policy: CopyPolicy::default(),
            owner: Owner::default(),
            readers: Readers::default(),
            backpressure: true,
        }
    }
}

impl EdgePolicy {
    /// A slow reader can miss what overflow evicted.
    pub fn slow_reader_drop_risk(&self) -> bool {
        self.readers == Readers::Multi
            && matches!(self.overflow, Overflow::Overwrite | Overflow::DropOldest)
    }
}

impl Mode {
    /// Keeps one value only, the newest.
    pub fn is_latest_style(self) -> bool {
        matches!(self, Mode::Latest | Mode::Latched | Mode::PreviousTick)
    }
}

impl Endpoint {
    /// Splits `component.port` at the last dot; none if a part is empty.
    pub fn parse(text: &str) -> Option<Endpoint> {
        let (component, port) = text.rsplit_once('.')?;
        (!component.is_empty() && !port.is_empty()).then(|| Endpoint {
            component: component.to_owned(),
            port: port.to_owned(),
        })
    }
}

impl Edge {
    /// An edge with every default.
    ///
    /// # Panics
    /// If an end is not `component.port`.
    pub fn new(id: impl Into<String>, from: &str, to: &str, kind: EdgeKind) -> Edge {
        let end = |text: &str| {
            Endpoint::parse(text)
                .unwrap_or_else(|| panic!("{text:?} is no endpoint: write component.port"))
        };
        Edge {
            id: id.into(),
            from: end(from),
            to: end(to),
            kind,
            policy: EdgePolicy::default(),
        }
    }
}
