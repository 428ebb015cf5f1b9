//! Subscriptions: messages with some topics are read on their own.

use std::future::poll_fn;
use std::task::{Context as TaskContext, Poll, ready};

use windlass_core::task::spend;
use windlass_value::Pid;

use super::Context;
use crate::error::SendError;
use crate::message::{Message, Pattern};

pub(super) type Subscriptions = Vec<Option<Pattern>>;

/// A subscription of one process to some topics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubscriptionId(usize);

impl Context<Message> {
    /// Sends a message to any process; it says that it is from this one.
    pub fn send(&self, to: Pid, message: Message) -> Result<(), SendError<Message>> {
        let message = message.from(self.pid());
        self.core.shell.host.route(to, message)
    }

    /// From now on messages with these topics come through [`recv_from`](Context::recv_from) only.
    /// Of several that match a topic the first counts. Everything waits in the one mailbox, in its
    /// order, and counts against its bound.
    pub fn subscribe(&mut self, pattern: Pattern) -> SubscriptionId {
        let there = self.subscriptions.get_or_insert_default();
        let free = there.iter().position(Option::is_none);
        let place = free.unwrap_or(there.len());
        if place == there.len() {
            there.push(None);
        }
        there[place] = Some(pattern);
        SubscriptionId(place)
    }

    /// Undoes a subscription; its messages come through the other functions again.
    pub fn unsubscribe(&mut self, subscription: SubscriptionId) {
        let mut there = self.subscriptions.iter_mut().flat_map(|all| all.iter_mut());
        if let Some(place) = there.nth(subscription.0) {
            *place = None;
        }
    }

    /// Waits for the next message of a subscription. Returns `None` once the process is cancelled.
    pub async fn recv_from(&mut self, subscription: SubscriptionId) -> Option<Message> {
        poll_fn(|cx| self.poll_of(cx, Some(subscription.0))).await
    }

    /// Waits for the next message that is in no subscription. Returns `None` once the process is
    /// cancelled.
    pub async fn recv_other(&mut self) -> Option<Message> {
        poll_fn(|cx| self.poll_of(cx, None)).await
    }

    fn poll_of(
        &mut self,
        cx: &mut TaskContext<'_>,
        wanted: Option<usize>,
    ) -> Poll<Option<Message>> {
        let spent = ready!(spend(cx));
        if self.is_cancelled() {
            return Poll::Ready(None);
        }
        let subscriptions = self.subscriptions.take();
        let of = |message: &Message| {
            let matches = |pattern: &Option<Pattern>| {
                pattern
                    .as_ref()
                    .is_some_and(|pattern| pattern.matches(message.topic.as_str()))
            };
            let mut all = subscriptions.iter().flat_map(|all| all.iter());
            all.position(matches) == wanted
        };
        let next = self.poll_taken(cx, |reader, mail, by| reader.take_where(mail, by, of));
        self.subscriptions = subscriptions;
        let next = ready!(next);
        spent.made_progress();
        Poll::Ready(next)
    }
}
