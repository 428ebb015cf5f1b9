//! The end of a process.

use std::panic::{AssertUnwindSafe, catch_unwind};

use windlass_core::task::contain;
use windlass_value::Payload;

use super::Core;
use crate::bonds::announce;
use crate::exit::ExitReason;
use crate::mail::Reader;

/// The end of a process, in the order that `docs/processes.md` promises. `close` ends its code.
pub(crate) fn conclude<M: Send + 'static>(
    core: &Core<M>,
    mut reader: Option<Reader<M>>,
    result: Result<Payload, ExitReason>,
    close: impl FnOnce(),
) {
    let shell = &core.shell;
    let host = &shell.host;
    host.leave_routing(shell.pid);
    host.count_unread(core.mail.unread().unwrap_or(0));
    let unread = core.mail.close();
    let unheard = shell.signals.close();
    shell.leave();
    let closed = catch_unwind(AssertUnwindSafe(close));
    let (reason, value) = match (closed, result) {
        (Err(panic), _) => (ExitReason::of_panic(panic), Payload::Nil),
        (Ok(()), Ok(value)) => (ExitReason::Normal, value),
        (Ok(()), Err(reason)) => (reason, Payload::Nil),
    };
    // Unread messages: dropping them fails the questions in them.
    contain(|| drop(reader.take()));
    contain(|| drop(unread));
    contain(|| drop(unheard));
    let (names, groups) = shell.names_and_groups();
    host.names.release(shell.pid, &names);
    host.leave_groups(shell.pid, &groups);
    shell.end_subscriptions();
    let was_last = host.release();
    announce(shell, reason, value);
    if was_last {
        host.notify_shutdown();
    }
}
