//! What is wrong with a graph, or could be: a code, where it is, and what to do.

use std::fmt;

use serde::Serialize;

use crate::model::named;

/// The version of the diagnostics' fields.
pub const DIAGNOSTICS_SCHEMA_VERSION: &str = "1";

/// One finding about a graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// What it is.
    pub code: Code,
    /// What happened, as a sentence without a full stop.
    pub message: String,
    /// Where in the graph, such as `edges[3].policy.capacity`, with the indices of the expanded
    /// lists.
    pub graph_path: String,
    /// The ids of the components that take part.
    pub involved_components: Vec<String>,
    /// The ids of the edges that take part.
    pub involved_edges: Vec<String>,
    /// What to do about it; may be empty.
    pub suggested_fix: String,
}

named! {
    /// How bad a finding is.
    pub enum Severity {
        /// A remark without consequence.
        Info = "info",
        /// Something has no effect.
        Advisory = "advisory",
        /// It will run, and may surprise.
        Warning = "warning",
        /// It cannot be run.
        Error = "error",
    }
}

named! {
    /// What a finding is about.
    pub enum Category {
        /// Components, edges, loops.
        GraphStructure = "graph_structure",
        /// Lanes and execution.
        Scheduler = "scheduler",
        /// Policies of edges.
        Channel = "channel",
        /// What messages carry.
        Payload = "payload",
        /// What makes components run.
        Trigger = "trigger",
    }
}

macro_rules! codes {
    ($( $Code:ident $name:literal $severity:ident $category:ident, )+) => {
        named! {
            /// What a finding is.
            #[allow(missing_docs, reason = "the names say it; docs/graph.md explains each")]
            pub enum Code { $( $Code = $name, )+ }
        }

        impl Code {
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

impl fmt::Display for Diagnostic {
    /// What happened, where, what to do: `error [code] lane "mian" does not exist
    /// (components[0].execution.lane); did you mean "main"?`
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
