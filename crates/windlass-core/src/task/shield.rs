//! Sections that a cancellation waits for.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::context;
use crate::task::header::TaskRef;
use crate::task::state::{Lower, ShieldOverflow};
use crate::task::waker;

/// Runs `future` to its end even if the task is cancelled meanwhile; the cancellation applies at
/// the next suspension after it.
///
/// Shields nest, 255 deep at most. Outside a task there is nothing to shield from, and the future
/// just runs.
///
/// # Panics
/// When polled inside 255 nested shields of the same task.
pub fn shield<F: Future>(future: F) -> Shield<F> {
    Shield {
        raised: ShieldState::NotYet,
        future,
    }
}

/// The future of [`shield`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Shield<F> {
    raised: ShieldState,
    future: F,
}

#[derive(Debug)]
enum ShieldState {
    NotYet,
    /// Up, on this task.
    On(#[allow(dead_code, reason = "held for its drop")] Guard),
    /// Down again, or there was no task.
    Over,
}

/// A shield that is up on a task, until this is dropped.
#[derive(Debug)]
#[must_use = "the shield is lowered when this is dropped"]
struct Guard(TaskRef);

/// Raises a shield on the running task; none outside of a task.
///
/// # Panics
/// Inside 255 nested shields of the same task.
fn raise_shield() -> Option<Guard> {
    let task = context::current_task()?;
    if let Err(ShieldOverflow) = task.header().state.raise_shield() {
        panic!("255 shields are nested already; flatten the shielded sections");
    }
    Some(Guard(task))
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.0.header().state.lower_shield() == Lower::Submit {
            waker::submit(self.0.as_ptr());
        }
    }
}

impl<F: Future> Future for Shield<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: `future` is structurally pinned and never moved; `raised` is not.
        let (raised, future) = unsafe {
            let this = self.get_unchecked_mut();
            (&mut this.raised, Pin::new_unchecked(&mut this.future))
        };
        if matches!(raised, ShieldState::NotYet) {
            *raised = raise_shield().map_or(ShieldState::Over, ShieldState::On);
        }
        let polled = future.poll(cx);
        if polled.is_ready() {
            *raised = ShieldState::Over;
        }
        polled
    }
}
