//! What is wrong with a graph, or could be: a code, where it is, and what to do.

use std::fmt;

/// The version of the diagnostics' fields.
pub const DIAGNOSTICS_SCHEMA_VERSION: &str = "1";

/// One finding about a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// What it is.
    pub code: Code,
    /// What happened, as a sentence without a full stop.
    pub message: String,
    /// Where in the graph, such as `edges[3].policy.capacity`, with the indices of the expanded lists.
    pub graph_path: String,
    /// Ids.
    pub involved_components: Vec<String>,
    /// Ids.
    pub involved_edges: Vec<String>,
    /// What to do about it; may be empty.
    pub suggested_fix: String,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// A remark.
    Info,
    /// Something has no effect.
    Advisory,
    /// It will run, and may surprise.
    Warning,
    /// It cannot be run.
    Error,
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Category {
    /// Components, edges, loops.
    GraphStructure,
    /// Lanes and execution.
    Scheduler,
    /// Edge policies.
    Channel,
    /// What messages carry.
    Payload,
    /// What makes components run.
    Trigger,
}

macro_rules! codes {
    ($( $Code:ident $name:literal $severity:ident $category:ident, )+) => {
        /// What a finding is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "the names say it; docs/graph.md explains each")]
        pub enum Code { $( $Code, )+ }

        impl Code {
            /// Every code there is.
            pub const ALL: &'static [Code] = &[$( Code::$Code, )+];

            /// Its name in reports.
            pub fn name(self) -> &'static str {
                match self { $( Code::$Code => $name, )+ }
            }

            /// How bad it is.
            pub fn severity(self) -> Severity {
                match self { $( Code::$Code => Severity::$severity, )+ }
            }

            /// What it is about.
            pub fn category(self) -> Category {
                match self { $( Code::$Code => Category::$category, )+ }
            }
        }
    };
}

codes! {
    UnknownComponent "unknown_component" Error GraphStructure,
    UnknownPort "unknown_port" Error GraphStructure,
    PayloadTypeMismatch "payload_type_mismatch" Error Payload,
    MissingRequiredInput "missing_required_input" Error GraphStructure,
    BoundaryRoleMismatch "boundary_role_mismatch" Error GraphStructure,
    PortMultiplicityMismatch "port_multiplicity_mismatch" Error GraphStructure,
    DuplicateId "duplicate_id" Error GraphStructure,
    ImmediateCycleWithoutLoop "immediate_cycle_without_loop" Error GraphStructure,
    PartialCompositeLoop "partial_composite_loop" Error GraphStructure,
    DecorativeCompositeLoop "decorative_composite_loop" Error GraphStructure,
    MultiStateWriter "multi_state_writer" Error Channel,
    InvalidMoveOnlyMultireader "invalid_move_only_multireader" Error Payload,
    InvalidChannelPolicy "invalid_channel_policy" Error Channel,
    UnsupportedLaneType "unsupported_lane_type" Error Scheduler,
    TriggerMissingInput "trigger_missing_input" Error Trigger,
    IncompatibleTriggerEdgeMode "incompatible_trigger_edge_mode" Error Trigger,
    GraphValidationError "graph_validation_error" Error GraphStructure,
    BackpressureRisk "backpressure_risk" Warning Channel,
    LargePayloadCopy "large_payload_copy" Warning Payload,
    HighQueueDepthLatencyRisk "high_queue_depth_latency_risk" Warning Channel,
    TriggerNeverReady "trigger_never_ready" Warning Trigger,
    SubgraphHiddenCycle "subgraph_hidden_cycle" Warning GraphStructure,
    CannotPreempt "cannot_preempt" Warning Scheduler,
    OptionalInputUnconnected "optional_input_unconnected" Advisory GraphStructure,
    AdvisoryLaneFieldIgnored "advisory_lane_field_ignored" Advisory Scheduler,
    DiagnosticNote "diagnostic_note" Info GraphStructure,
}

impl Diagnostic {
    /// A finding without a fix.
    pub fn new(code: Code, graph_path: impl Into<String>, message: impl Into<String>) -> Self {
        Diagnostic {
            code,
            message: message.into(),
            graph_path: graph_path.into(),
            involved_components: Vec::new(),
            involved_edges: Vec::new(),
            suggested_fix: String::new(),
        }
    }

    /// Names a component that takes part.
    pub fn component(mut self, id: impl Into<String>) -> Self {
        self.involved_components.push(id.into());
        self
    }

    /// Names an edge that takes part.
    pub fn edge(mut self, id: impl Into<String>) -> Self {
        self.involved_edges.push(id.into());
        self
    }

    /// Says what to do.
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.suggested_fix = fix.into();
        self
    }

    /// How bad it is.
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }
}

impl Severity {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Advisory => "advisory",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

impl Category {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Category::GraphStructure => "graph_structure",
            Category::Scheduler => "scheduler",
            Category::Channel => "channel",
            Category::Payload => "payload",
            Category::Trigger => "trigger",
        }
    }
}

impl fmt::Display for Diagnostic {
    /// What happened, where, what to do: `error [code] lane "mian" does not exist (components[0].execution.lane); did
    /// you mean "main"?`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}] ", self.severity().name(), self.code.name())?;
        f.write_str(&self.message)?;
        if !self.graph_path.is_empty() {
            write!(f, " ({})", self.graph_path)?;
        }
        if !self.suggested_fix.is_empty() {
            write!(f, "; {}", self.suggested_fix)?;
        }
        Ok(())
    }
}
