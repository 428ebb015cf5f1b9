//! The names that an expression can use, and where their values come from.

use std::borrow::Cow;

use windlass_value::Payload;

/// A name that an expression can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Name {
    /// `value`: the message; of an event, the object of its attributes.
    Value,
    /// `values`: the messages of a window, a list.
    Values,
    /// `epoch`: the number of the epoch.
    Epoch,
    /// `now_ms`: the lane's time in milliseconds.
    NowMs,
    /// `port`: the input at which the message arrived.
    Port,
    /// `event_ms`: the event time of the message in milliseconds, or null.
    EventMs,
    /// `event`: the name of the event.
    Event,
    /// `component`: the component that the event is about, or an empty text.
    Component,
    /// `channel`: the edge that the event is about, or an empty text.
    Channel,
    /// `lane`: the lane that the event is about, or an empty text.
    Lane,
    /// `seq`: the number of the event.
    Seq,
    /// `at_ns`: the time of the event since the run began, in nanoseconds.
    AtNs,
}

/// Which names an expression can use: that depends on what it is evaluated for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Names {
    /// The names for one message.
    Message,
    /// The names for the messages of a window.
    Window,
    /// The names for an event of a run.
    Event,
}

/// The names for the messages of a window. Only the last of them is none of a single message.
const WINDOW: [(&str, Name); 6] = [
    ("value", Name::Value),
    ("epoch", Name::Epoch),
    ("now_ms", Name::NowMs),
    ("port", Name::Port),
    ("event_ms", Name::EventMs),
    ("values", Name::Values),
];

/// The names for an event. `value` and `epoch` are as for a message, so that a text about them
/// means the same in both.
const EVENT: [(&str, Name); 8] = [
    ("value", Name::Value),
    ("epoch", Name::Epoch),
    ("event", Name::Event),
    ("component", Name::Component),
    ("channel", Name::Channel),
    ("lane", Name::Lane),
    ("seq", Name::Seq),
    ("at_ns", Name::AtNs),
];

impl Names {
    /// Returns the names as they are written.
    pub fn iter(self) -> impl Iterator<Item = &'static str> {
        self.table().iter().map(|(written, _)| *written)
    }

    /// Returns the name that is written this way.
    pub(super) fn named(self, written: &str) -> Option<Name> {
        let mut table = self.table().iter();
        table
            .find(|(known, _)| *known == written)
            .map(|(_, name)| *name)
    }

    fn table(self) -> &'static [(&'static str, Name)] {
        match self {
            Names::Message => &WINDOW[..WINDOW.len() - 1],
            Names::Window => &WINDOW,
            Names::Event => &EVENT,
        }
    }
}

/// Gives names their values. An expression asks for a name each time that it uses it, so a value
/// that has to be made is made only where it is needed.
pub trait Scope {
    /// Returns the value of a name; `Nil` for one that this scope does not have.
    fn get(&self, name: Name) -> Cow<'_, Payload>;
}

/// A message or a window of messages, for an expression over them.
#[derive(Debug, Clone, Copy)]
pub struct MessageScope<'a> {
    /// `value`: the message.
    pub value: &'a Payload,
    /// `values`: the messages of a window, a list.
    pub values: &'a Payload,
    /// `epoch`: the number of the epoch.
    pub epoch: u64,
    /// `now_ms`: the lane's time in milliseconds.
    pub now_ms: f64,
    /// `port`: the input at which the message arrived.
    pub port: &'a str,
    /// `event_ms`: the event time of the message in milliseconds; none is null.
    pub event_ms: Option<f64>,
}

impl<'a> MessageScope<'a> {
    /// Makes the scope of a message of which nothing else is known.
    pub fn of(value: &'a Payload) -> MessageScope<'a> {
        MessageScope {
            value,
            values: &Payload::Nil,
            epoch: 0,
            now_ms: 0.0,
            port: "",
            event_ms: None,
        }
    }
}

impl Scope for MessageScope<'_> {
    fn get(&self, name: Name) -> Cow<'_, Payload> {
        match name {
            Name::Value => Cow::Borrowed(self.value),
            Name::Values => Cow::Borrowed(self.values),
            Name::Epoch => Cow::Owned(i64::try_from(self.epoch).unwrap_or(i64::MAX).into()),
            Name::NowMs => Cow::Owned(self.now_ms.into()),
            Name::Port => Cow::Owned(self.port.into()),
            Name::EventMs => Cow::Owned(self.event_ms.map(Payload::from).unwrap_or_default()),
            _ => Cow::Borrowed(&Payload::Nil),
        }
    }
}
