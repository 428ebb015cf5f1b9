//! Entries as lines of JSON, and back.

use serde_json::{Map, Value, json};

use super::entry::{CallEntry, Entry, EpochEntry, LoopEntry, Output, Seen};
use windlass_value::{Payload, recorded};

impl Entry {
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Entry::Epoch(epoch) => epoch.to_json(),
            Entry::Call(call) => call.to_json(),
            Entry::Loop(stopped) => json!({
                "loop": stopped.composite,
                "run": stopped.run,
                "pass": stopped.pass,
                "budget": stopped.budget,
            }),
        }
    }

    /// None if it is no entry.
    pub(crate) fn from_json(line: &Value) -> Option<Entry> {
        let fields = line.as_object()?;
        if fields.contains_key("epoch") {
            EpochEntry::from_json(line).map(Entry::Epoch)
        } else if fields.contains_key("call") {
            CallEntry::from_json(fields).map(Entry::Call)
        } else {
            Some(Entry::Loop(LoopEntry {
                composite: fields.get("loop")?.as_str()?.to_owned(),
                run: fields.get("run")?.as_u64()?,
                pass: fields.get("pass")?.as_u64()?,
                budget: fields.get("budget")?.as_bool()?,
            }))
        }
    }
}

impl EpochEntry {
    fn to_json(&self) -> Value {
        let mut line = json!({ "epoch": self.epoch });
        if !self.lanes.is_empty() {
            line["lanes"] = json!(self.lanes);
        }
        if !self.doors.is_empty() {
            let door = |(id, seen): &(String, Seen)| json!([id, seen.woken, seen.held]);
            line["doors"] = self.doors.iter().map(door).collect();
        }
        if !self.transactions.is_empty() {
            let transaction = |changes: &Vec<_>| json!(changes);
            line["config"] = self.transactions.iter().map(transaction).collect();
        }
        if !self.joined.is_empty() {
            line["joined"] = json!(self.joined);
        }
        line
    }

    fn from_json(line: &Value) -> Option<EpochEntry> {
        let list = |name: &str| match line.get(name) {
            Some(list) => list.as_array().cloned(),
            None => Some(Vec::new()),
        };
        let lane = |pair: &Value| Some((pair.get(0)?.as_u64()?, pair.get(1)?.as_bool()?));
        let door = |seen: &Value| {
            let (woken, held) = (seen.get(1)?.as_bool()?, seen.get(2)?.as_bool()?);
            Some((seen.get(0)?.as_str()?.to_owned(), Seen { woken, held }))
        };
        let change = |change: &Value| {
            let config = change.get(1)?.as_object()?.clone();
            Some((change.get(0)?.as_str()?.to_owned(), config))
        };
        let transaction = |changes: &Value| changes.as_array()?.iter().map(change).collect();
        Some(EpochEntry {
            epoch: line.get("epoch")?.as_u64()?,
            lanes: list("lanes")?.iter().map(lane).collect::<Option<_>>()?,
            doors: list("doors")?.iter().map(door).collect::<Option<_>>()?,
            transactions: list("config")?
                .iter()
                .map(transaction)
                .collect::<Option<_>>()?,
            joined: list("joined")?
                .iter()
                .map(|id| id.as_str().map(str::to_owned))
                .collect::<Option<_>>()?,
        })
    }
}

impl CallEntry {
    fn to_json(&self) -> Value {
        let mut line = Map::new();
        line.insert("call".to_owned(), self.transaction.into());
        line.insert("component".to_owned(), self.component.as_str().into());
        let mut some = |name: &str, value: Option<Value>| {
            line.extend(value.map(|value| (name.to_owned(), value)));
        };
        let output = |output: &Output| {
            json!([
                output.edge,
                output.publish,
                payload_json(&output.payload),
                output.event_time
            ])
        };
        let outputs = (!self.outputs.is_empty()).then(|| self.outputs.iter().map(output).collect());
        some("outputs", outputs);
        let written = |(key, value): &(String, Payload)| json!([key, payload_json(value)]);
        let state = (!self.state.is_empty()).then(|| self.state.iter().map(written).collect());
        some("state", state);
        let report = self.report.as_ref();
        some(
            "report",
            report.map(|(converged, residual, why)| {
                json!([converged, residual.map(float_json), why])
            }),
        );
        some(
            "refused",
            (!self.refused.is_empty()).then(|| json!(self.refused)),
        );
        some("failed", self.failed.as_deref().map(Value::from));
        some("finished", self.finished.then_some(true.into()));
        some("held", self.held.then_some(true.into()));
        some("cancelled_after", self.cancelled_after.map(Value::from));
        some("timed_out", self.timed_out.then_some(true.into()));
        Value::Object(line)
    }

    fn from_json(line: &Map<String, Value>) -> Option<CallEntry> {
        let list = |name: &str| match line.get(name) {
            Some(list) => list.as_array().cloned(),
            None => Some(Vec::new()),
        };
        let whole = |value: &Value| u32::try_from(value.as_u64()?).ok();
        let output = |output: &Value| {
            Some(Output {
                edge: whole(output.get(0)?)?,
                publish: whole(output.get(1)?)?,
                payload: payload(output.get(2)?)?,
                event_time: output.get(3)?.as_i64(),
            })
        };
        let written =
            |pair: &Value| Some((pair.get(0)?.as_str()?.to_owned(), payload(pair.get(1)?)?));
        let report = |report: &Value| {
            let residual = match report.get(1)? {
                Value::Null => None,
                residual => Some(float(residual)?),
            };
            let why = report.get(2)?.as_str()?.to_owned();
            Some((report.get(0)?.as_bool()?, residual, why))
        };
        let flag = |name: &str| line.get(name).and_then(Value::as_bool).unwrap_or_default();
        Some(CallEntry {
            component: line.get("component")?.as_str()?.to_owned(),
            transaction: line.get("call")?.as_u64()?,
            outputs: list("outputs")?.iter().map(output).collect::<Option<_>>()?,
            state: list("state")?.iter().map(written).collect::<Option<_>>()?,
            report: match line.get("report") {
                Some(written) => Some(report(written)?),
                None => None,
            },
            refused: list("refused")?.iter().map(whole).collect::<Option<_>>()?,
            failed: line
                .get("failed")
                .and_then(Value::as_str)
                .map(str::to_owned),
            finished: flag("finished"),
            held: flag("held"),
            cancelled_after: line.get("cancelled_after").and_then(whole),
            timed_out: flag("timed_out"),
        })
    }
}

/// Returns a payload in its recorded form. A Rust value, and what is too large to be recorded, is
/// the name of its type.
pub(crate) fn payload_json(payload: &Payload) -> Value {
    let written = recorded::or_type_name::serialize(payload, serde_json::value::Serializer);
    written.unwrap_or_else(|_| json!({ "$opaque": payload.type_name() }))
}

pub(crate) fn payload(written: &Value) -> Option<Payload> {
    Payload::from_recorded(written.clone()).ok()
}

/// JSON has no word for some numbers.
fn float_json(value: f64) -> Value {
    match value.is_finite() {
        true => json!(value),
        false => json!(value.to_string()),
    }
}

fn float(written: &Value) -> Option<f64> {
    match written {
        Value::String(text) => text.parse().ok(),
        other => other.as_f64(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_come_back_as_they_were() {
        let entries = [
            Entry::Epoch(EpochEntry {
                epoch: 3,
                lanes: vec![(u64::MAX, true), (0, false)],
                doors: vec![(
                    "a".to_owned(),
                    Seen {
                        woken: true,
                        held: false,
                    },
                )],
                transactions: vec![vec![(
                    "b".to_owned(),
                    [("x".to_owned(), json!(1.5))].into_iter().collect(),
                )]],
                joined: vec!["l".to_owned()],
            }),
            Entry::Call(CallEntry {
                component: "c".to_owned(),
                transaction: 1 << 41,
                outputs: [
                    Payload::Nil,
                    Payload::Bool(true),
                    Payload::Int(i64::MIN),
                    Payload::Float(0.1 + 0.2),
                    Payload::Float(f64::NEG_INFINITY),
                    Payload::from("a\nb"),
                    Payload::Bytes(vec![0, 255, 16].into()),
                    Payload::from(json!({"k": [1, 2.5, null]})),
                ]
                .into_iter()
                .enumerate()
                .map(|(nth, payload)| Output {
                    edge: nth as u32,
                    publish: 7,
                    payload,
                    event_time: (nth > 3).then_some(-5),
                })
                .collect(),
                state: vec![("k".to_owned(), Payload::Int(1))],
                report: Some((true, Some(1e-9), "small".to_owned())),
                refused: vec![4],
                failed: Some("why".to_owned()),
                finished: true,
                held: true,
                cancelled_after: Some(2),
                timed_out: true,
            }),
            Entry::Loop(LoopEntry {
                composite: "l".to_owned(),
                run: 1,
                pass: 2,
                budget: true,
            }),
            Entry::Epoch(EpochEntry::default()),
            Entry::Call(CallEntry::default()),
        ];
        for entry in entries {
            let line = entry.to_json().to_string();
            let back: Value = serde_json::from_str(&line).expect("JSON");
            assert_eq!(Entry::from_json(&back), Some(entry), "{line}");
        }
    }

    #[test]
    fn what_is_no_entry_is_refused() {
        for line in [
            json!(null),
            json!([]),
            json!({"epoch": "x"}),
            json!({"call": 1}),
            json!({"call": 1, "component": "a", "outputs": [[1]]}),
            json!({"call": 1, "component": "a", "outputs": [[0, 0, {"$bytes": "0g"}, null]]}),
            json!({"loop": "a"}),
            json!({"something": "else"}),
        ] {
            assert_eq!(Entry::from_json(&line), None, "{line}");
        }
    }
}
