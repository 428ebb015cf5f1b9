//! The runner of an async process.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use pin_project_lite::pin_project;
use windlass_core::queue::Inbox;
use windlass_core::task::Body;
use windlass_value::Payload;

use crate::exit::{ExitReason, Outcome};
use crate::shell::{Core, Signal, Turn, conclude};

pin_project! {
    /// The runner of an async process: one poll is one step.
    pub(crate) struct ActorBody<M, F>
    where
        M: Send,
        M: 'static,
    {
        core: Arc<Core<M>>,
        // None once the process has ended.
        #[pin]
        future: Option<F>,
    }

    impl<M, F> PinnedDrop for ActorBody<M, F>
    where
        M: Send,
        M: 'static,
    {
        fn drop(this: Pin<&mut Self>) {
            // The task was ended from below: the runtime is gone, or going.
            this.end(Err(ExitReason::Killed));
        }
    }
}

impl<M: Send + 'static, F> ActorBody<M, F> {
    pub(crate) fn new(core: Arc<Core<M>>, future: F) -> ActorBody<M, F> {
        ActorBody {
            core,
            future: Some(future),
        }
    }

    fn end(self: Pin<&mut Self>, result: Result<Payload, ExitReason>) {
        let mut this = self.project();
        if this.future.is_some() {
            conclude(&**this.core, None, result, || this.future.set(None));
        }
    }

    /// Handles the signals that have arrived. The error ends the process.
    fn take_signals(&self) -> Result<(), ExitReason> {
        let shell = &self.core.shell;
        // It is emptied here, every time.
        let mut signals = Inbox::new();
        while let Some(signal) = shell.next_signal(&mut signals)? {
            if let Signal::Exit(exited) = signal {
                shell.keep_notice(exited);
            }
        }
        Ok(())
    }
}

impl<M, F> Body for ActorBody<M, F>
where
    M: Send + 'static,
    F: Future,
    F::Output: Outcome,
{
    type Output = ();

    fn resume(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        if let Err(reason) = self.take_signals() {
            self.end(Err(reason));
            return Poll::Ready(());
        }
        if let Turn::End(reason) = self.core.shell.begin_step() {
            self.end(Err(reason));
            return Poll::Ready(());
        }
        let this = self.as_mut().project();
        let future = this.future.as_pin_mut().expect("it has not ended");
        this.core.shell.set_waits_for_mail(false);
        let polled = catch_unwind(AssertUnwindSafe(|| future.poll(cx)));
        let result = match polled {
            Ok(Poll::Pending) => {
                this.core.mail.give_room();
                this.core.shell.end_step(!this.core.shell.waits_for_mail());
                return Poll::Pending;
            }
            Ok(Poll::Ready(output)) => output.into_result().map_err(ExitReason::from),
            Err(panic) => Err(ExitReason::of_panic(panic)),
        };
        this.core.shell.end_step(false);
        self.end(result);
        Poll::Ready(())
    }
}
