//! An event as an expression sees it.

use std::borrow::Cow;
use std::cell::OnceCell;

use windlass_plan::expression::{Name, Scope};
use windlass_value::Payload;

use super::event::Observed;

/// The names that a condition can use of an event. All assertions look at the same scope: a value
/// is made when the first of them asks for it, and kept for the others.
#[derive(Debug)]
pub(crate) struct EventScope<'a> {
    event: &'a Observed,
    value: OnceCell<Payload>,
    name: OnceCell<Payload>,
    component: OnceCell<Payload>,
    channel: OnceCell<Payload>,
    lane: OnceCell<Payload>,
}

impl<'a> EventScope<'a> {
    pub(crate) fn new(event: &'a Observed) -> EventScope<'a> {
        EventScope {
            event,
            value: OnceCell::new(),
            name: OnceCell::new(),
            component: OnceCell::new(),
            channel: OnceCell::new(),
            lane: OnceCell::new(),
        }
    }

    pub(crate) fn event(&self) -> &'a Observed {
        self.event
    }

    fn attributes(&self) -> Payload {
        let attributes = self.event.attributes.iter();
        Payload::map(attributes.map(|(name, value)| (name.as_str(), value.clone().into())))
    }
}

impl Scope for EventScope<'_> {
    fn get(&self, name: Name) -> Cow<'_, Payload> {
        let event = self.event;
        let number = |number: u64| Payload::Int(i64::try_from(number).unwrap_or(i64::MAX));
        match name {
            Name::Value => Cow::Borrowed(self.value.get_or_init(|| self.attributes())),
            Name::Event => kept(&self.name, &event.name),
            Name::Component => kept(&self.component, &event.component_id),
            Name::Channel => kept(&self.channel, &event.channel_id),
            Name::Lane => kept(&self.lane, &event.lane),
            Name::Epoch => Cow::Owned(number(event.epoch)),
            Name::Seq => Cow::Owned(number(event.seq)),
            Name::AtNs => Cow::Owned(number(event.at_ns)),
            _ => Cow::Borrowed(&Payload::Nil),
        }
    }
}

fn kept<'a>(cell: &'a OnceCell<Payload>, text: &str) -> Cow<'a, Payload> {
    Cow::Borrowed(cell.get_or_init(|| text.into()))
}
