//! What the lines of a run's recording say. Edges, lanes and components are named, so that a line
//! can be read without the graph, and fits a graph in which they stand in another order.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use windlass_plan::model::{Config, Graph};
use windlass_record::Format;
use windlass_value::Payload;

use crate::run::Snapshot;
use crate::run::result::StopReason;

/// The format of recordings of graph runs.
#[derive(Debug, Clone)]
pub(crate) struct GraphFormat;

impl Format for GraphFormat {
    const NAME: &'static str = "graph";
    const VERSION: u32 = 4;
    type Header = Header;
    type Line = Line;
    type End = EndLine;

    fn origin(_: &Line) -> &'static str {
        "what a component published or stored"
    }
}

/// What the first line says.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) graph: String,
    /// The components that are not called in a replay, by id.
    pub(crate) played_back: Vec<String>,
    /// Those that have a door to the world outside.
    pub(crate) doors: Vec<String>,
    /// Those that ran several times at once.
    pub(crate) reentrant: Vec<String>,
    /// Whether time was real.
    pub(crate) on_clock: bool,
    /// What the components were restored from.
    pub(crate) restored: Option<Snapshot>,
    /// Whether they were reset.
    pub(crate) reset: bool,
}

/// What the last line says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct EndLine {
    pub(crate) reason: StopReason,
    pub(crate) epochs: u64,
    /// A hash of all that the run did.
    pub(crate) hash: String,
}

/// A line between the first and the last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    Epoch(EpochLine),
    Call(CallLine),
    Loop(LoopLine),
}

/// An epoch begins.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct EpochLine {
    pub(crate) epoch: u64,
    /// The lanes' clocks; empty if time is simulated and all lanes are due.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) lanes: Vec<LaneTurn>,
    /// What was seen at the doors of components.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) doors: Vec<DoorRecord>,
    /// New configurations, a list of components for each transaction.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) config: Vec<Vec<(String, Config)>>,
    /// Loops that came back, if time is real.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) joined: Vec<String>,
}

/// The clock of a lane at the beginning of an epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LaneTurn {
    pub(crate) lane: Arc<str>,
    pub(crate) now: u64,
    #[serde(rename = "due")]
    pub(crate) is_due: bool,
}

/// What was seen at a door.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DoorRecord {
    pub(crate) component: Arc<str>,
    pub(crate) woken: bool,
    pub(crate) held: bool,
}

/// An invocation has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CallLine {
    #[serde(rename = "number")]
    pub(crate) transaction: u64,
    pub(crate) component: Arc<str>,
    /// What it published.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) outputs: Vec<OutputLine>,
    /// What it wrote to the state store.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) state: Vec<StoreWrite>,
    /// What it reported to its loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) report: Option<ReportLine>,
    /// Edges that did not take what it published.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) refused: Vec<Arc<str>>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<String>,
    /// It said that nothing more will come of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) finished: bool,
    /// It did not want to be called for now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) held: bool,
    /// How often it asked whether it should come to an end before the answer was yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cancelled_after: Option<u32>,
    /// It was ended: its time was over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) timed_out: bool,
}

/// One item of a publish.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OutputLine {
    pub(crate) edge: Arc<str>,
    /// Which publish of the invocation it is of.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) publish: u32,
    #[serde(with = "windlass_value::recorded::or_type_name")]
    pub(crate) value: Payload,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) event_time: Option<i64>,
}

/// A value of the state store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoreWrite {
    pub(crate) key: String,
    #[serde(with = "windlass_value::recorded::or_type_name")]
    pub(crate) value: Payload,
}

/// What a component reported to its loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReportLine {
    pub(crate) converged: bool,
    /// A payload, because JSON has no infinite numbers.
    #[serde(with = "windlass_value::recorded")]
    pub(crate) residual: Payload,
    pub(crate) reason: String,
}

/// A loop was stopped by something that is not in the graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LoopLine {
    #[serde(rename = "loop")]
    pub(crate) composite: String,
    /// Which run of the loop, from 0.
    pub(crate) run: u64,
    /// After which pass, from 0.
    pub(crate) pass: u64,
    /// Whether its time was over; otherwise the run was asked to stop.
    pub(crate) budget: bool,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The names of a graph's parts, as its recording says them.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) components: Vec<Arc<str>>,
    pub(crate) edges: Vec<Arc<str>>,
    pub(crate) lanes: Vec<Arc<str>>,
    pub(crate) loops: Vec<Arc<str>>,
}

impl Names {
    pub(crate) fn of(graph: &Graph) -> Names {
        let name = |id: &String| Arc::from(id.as_str());
        Names {
            components: graph.components.iter().map(|c| name(&c.id)).collect(),
            edges: graph.edges.iter().map(|edge| name(&edge.id)).collect(),
            lanes: graph.lanes.iter().map(|lane| name(&lane.id)).collect(),
            loops: graph
                .loops
                .iter()
                .map(|composite| name(&composite.id))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_come_back_as_they_were() {
        let call = CallLine {
            transaction: 1 << 41,
            component: "c".into(),
            outputs: [
                Payload::Nil,
                Payload::Int(i64::MIN),
                Payload::Float(0.1 + 0.2),
                Payload::Float(f64::NEG_INFINITY),
                Payload::from("a\nb"),
                Payload::Bytes(vec![0, 255, 16].into()),
                Payload::from(json!({"k": [1, 2.5, null]})),
            ]
            .into_iter()
            .enumerate()
            .map(|(nth, value)| OutputLine {
                edge: "e".into(),
                publish: nth as u32,
                value,
                event_time: (nth > 3).then_some(-5),
            })
            .collect(),
            state: vec![StoreWrite {
                key: "k".to_owned(),
                value: Payload::Int(1),
            }],
            report: Some(ReportLine {
                converged: true,
                residual: Payload::Float(1e-9),
                reason: "small".to_owned(),
            }),
            refused: vec!["e".into()],
            failed: Some("why".to_owned()),
            finished: true,
            held: true,
            cancelled_after: Some(2),
            timed_out: true,
        };
        let epoch = EpochLine {
            epoch: 3,
            lanes: vec![LaneTurn {
                lane: "main".into(),
                now: u64::MAX,
                is_due: true,
            }],
            doors: vec![DoorRecord {
                component: "a".into(),
                woken: true,
                held: false,
            }],
            config: vec![vec![(
                "b".to_owned(),
                [("x".to_owned(), json!(1.5))].into_iter().collect(),
            )]],
            joined: vec!["l".to_owned()],
        };
        let stopped = LoopLine {
            composite: "l".to_owned(),
            run: 1,
            pass: 2,
            budget: true,
        };
        for line in [
            Line::Epoch(epoch),
            Line::Call(call),
            Line::Loop(stopped),
            Line::Epoch(EpochLine::default()),
        ] {
            let text = serde_json::to_string(&line).expect("JSON");
            let back: Line = serde_json::from_str(&text).expect("a line");
            assert_eq!(back, line, "{text}");
        }
    }

    #[test]
    fn what_is_no_line_is_refused() {
        for line in [
            json!(null),
            json!([]),
            json!({"epoch": {"epoch": "x"}}),
            json!({"call": {"number": 1}}),
            json!({"call": {"number": 1, "component": "a", "outputs": [{"edge": "e"}]}}),
            json!({"loop": {"loop": "a"}}),
            json!({"something": {}}),
        ] {
            assert!(
                serde_json::from_value::<Line>(line.clone()).is_err(),
                "{line}"
            );
        }
    }
}
