//! How waits ended, as recordings say it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use windlass_actor::command::YieldError;
use windlass_actor::{Bond, ExitReason, Exited, Message, MonitorRef, Pid};
use windlass_value::Payload;
use windlass_value::recorded;

use crate::exception::Exception;
use crate::guest::{Answer, Ending};

/// For fields of type [`Pid`].
pub(super) mod recorded_pid {
    use serde::{Deserialize, Deserializer, Serializer};
    use windlass_actor::Pid;

    pub(in crate::record) fn serialize<S: Serializer>(pid: &Pid, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(pid)
    }

    pub(in crate::record) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Pid, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// For fields of type [`Ending`].
pub(super) mod recorded_ending {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::RecordedEnding;
    use crate::guest::Ending;

    pub(in crate::record) fn serialize<S: Serializer>(
        ending: &Ending,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        RecordedEnding::of(ending).serialize(to)
    }

    pub(in crate::record) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Ending, D::Error> {
        RecordedEnding::deserialize(from).map(RecordedEnding::into_ending)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RecordedEnding {
    Value(#[serde(with = "recorded")] Payload),
    Message {
        from: Option<RecordedPid>,
        topic: String,
        #[serde(with = "recorded")]
        payload: Payload,
    },
    Exited {
        #[serde(with = "recorded_pid")]
        pid: Pid,
        reason: RecordedReason,
        /// The number of the monitor; none for a link.
        monitor: Option<u64>,
    },
    Error(RecordedException),
}

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct RecordedPid(#[serde(with = "recorded_pid")] Pid);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RecordedReason {
    Normal,
    Error(#[serde(with = "recorded")] Payload),
    Panic(Arc<str>),
    Cancelled(Arc<str>),
    Killed,
    NoConnection,
    NoProcess,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RecordedException {
    Cancelled(Arc<str>),
    TimedOut,
    Panicked(Arc<str>),
    NoThread,
    Command(#[serde(with = "recorded")] Payload),
    CommandPanicked(Arc<str>),
    Failed(#[serde(with = "recorded")] Payload),
}

impl RecordedEnding {
    fn of(ending: &Ending) -> RecordedEnding {
        match ending {
            Ok(Answer::Value(value)) => RecordedEnding::Value(value.clone()),
            Ok(Answer::Message(message)) => RecordedEnding::Message {
                from: message.from.map(RecordedPid),
                topic: message.topic.as_str().to_owned(),
                payload: message.payload.clone(),
            },
            Ok(Answer::Exited(exited)) => RecordedEnding::Exited {
                pid: exited.pid,
                reason: RecordedReason::of(&exited.reason),
                monitor: match exited.by {
                    Bond::Monitor(monitor) => Some(monitor.number()),
                    Bond::Link => None,
                },
            },
            Err(exception) => RecordedEnding::Error(RecordedException::of(exception)),
        }
    }

    fn into_ending(self) -> Ending {
        match self {
            RecordedEnding::Value(value) => Ok(Answer::Value(value)),
            RecordedEnding::Message {
                from,
                topic,
                payload,
            } => {
                let message = Message::new(topic, payload);
                Ok(Answer::Message(match from {
                    Some(RecordedPid(from)) => message.from(from),
                    None => message,
                }))
            }
            RecordedEnding::Exited {
                pid,
                reason,
                monitor,
            } => {
                let by = monitor.map_or(Bond::Link, |number| {
                    Bond::Monitor(MonitorRef::from_number(number))
                });
                Ok(Answer::Exited(Exited::new(pid, reason.into_reason(), by)))
            }
            RecordedEnding::Error(exception) => Err(exception.into_exception()),
        }
    }
}

impl RecordedReason {
    fn of(reason: &ExitReason) -> RecordedReason {
        match reason {
            ExitReason::Normal => RecordedReason::Normal,
            ExitReason::Error(value) => RecordedReason::Error(value.clone()),
            ExitReason::Panic(text) => RecordedReason::Panic((**text).into()),
            ExitReason::Cancelled(text) => RecordedReason::Cancelled((**text).into()),
            ExitReason::Killed => RecordedReason::Killed,
            ExitReason::NoConnection => RecordedReason::NoConnection,
            _ => RecordedReason::NoProcess,
        }
    }

    fn into_reason(self) -> ExitReason {
        match self {
            RecordedReason::Normal => ExitReason::Normal,
            RecordedReason::Error(value) => ExitReason::Error(value),
            RecordedReason::Panic(text) => ExitReason::Panic((*text).into()),
            RecordedReason::Cancelled(text) => ExitReason::Cancelled((*text).into()),
            RecordedReason::Killed => ExitReason::Killed,
            RecordedReason::NoConnection => ExitReason::NoConnection,
            RecordedReason::NoProcess => ExitReason::NoProcess,
        }
    }
}

impl RecordedException {
    fn of(exception: &Exception) -> RecordedException {
        match exception {
            Exception::Cancelled(reason) => RecordedException::Cancelled((**reason).into()),
            Exception::TimedOut => RecordedException::TimedOut,
            Exception::Panicked(message) => RecordedException::Panicked((**message).into()),
            Exception::NoThread => RecordedException::NoThread,
            Exception::Command(YieldError::Failed(value)) => {
                RecordedException::Command(value.clone())
            }
            Exception::Command(YieldError::Panicked(message)) => {
                RecordedException::CommandPanicked((**message).into())
            }
            Exception::Command(error) => RecordedException::Command(error.to_string().into()),
            Exception::Failed(value) => RecordedException::Failed(value.clone()),
            other => RecordedException::Failed(other.to_string().into()),
        }
    }

    fn into_exception(self) -> Exception {
        match self {
            RecordedException::Cancelled(reason) => Exception::Cancelled((*reason).into()),
            RecordedException::TimedOut => Exception::TimedOut,
            RecordedException::Panicked(message) => Exception::Panicked((*message).into()),
            RecordedException::NoThread => Exception::NoThread,
            RecordedException::Command(value) => Exception::Command(YieldError::Failed(value)),
            RecordedException::CommandPanicked(message) => {
                Exception::Command(YieldError::Panicked((*message).into()))
            }
            RecordedException::Failed(value) => Exception::Failed(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_come_back_as_they_were() {
        let pid: Pid = "{orders|1.2}".parse().expect("a PID");
        let exited = |reason| Exited::new(pid, reason, Bond::Link);
        let endings: Vec<Ending> = vec![
            Ok(Answer::Value(Payload::Int(1))),
            Ok(Answer::Message(Message::new("topic", "text"))),
            Ok(Answer::Message(Message::new("topic", "text").from(pid))),
            Ok(Answer::Exited(exited(ExitReason::Normal))),
            Ok(Answer::Exited(exited(ExitReason::Error("why".into())))),
            Err(Exception::TimedOut),
            Err(Exception::Failed("why".into())),
            Err(Exception::Panicked("on purpose".into())),
        ];
        for ending in endings {
            let json = serde_json::to_string(&RecordedEnding::of(&ending)).expect("JSON");
            let read: RecordedEnding = serde_json::from_str(&json).expect("an ending");
            assert_eq!(read.into_ending(), ending, "{json}");
        }
        for wrong in [r#"{"what": 1}"#, r#"{"value": {"$bytes": "0"}}"#] {
            assert!(
                serde_json::from_str::<RecordedEnding>(wrong).is_err(),
                "{wrong}"
            );
        }
    }
}
