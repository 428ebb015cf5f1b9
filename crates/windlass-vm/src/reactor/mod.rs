//! The reactor: one control loop that makes every decision about guests.
//!
//! ```text
//!                     ┌──────────────┐
//!           ┌────────►│   Reactor    │◄────────┐
//!           │         │  (one task)  │         │
//!        results      └──────┬───────┘    completions
//!        and ops          dispatch             │
//!           │                ▼                 │
//!   ┌───────┴───────┐   ready queue   ┌────────┴────────┐
//!   │  VM workers   │                 │  blocking work  │
//!   └───────────────┘                 └─────────────────┘
//! ```
//!
//! # Where it runs
//! It is a task like any other, on a pool of its own together with the VM workers: as many threads
//! as guests may run at once, and one more. So a guest that ends its step finds the reactor on its
//! own thread, without a switch; and when all workers are inside long steps, the one more is there
//! for it. It sleeps until something is posted or due. The processes of the guests are there, too:
//! a message goes from one guest to another without leaving these threads.
//!
//! # Designs that were rejected
//! - A thread of its own: each decision costs two thread switches.
//! - Two guests per worker on the way (`2 x workers`): the second would wait in the queue of a
//!   worker that is inside a long step, and the one more would be taken by it.
//!
//! # The order of things
//! What a guest does and how its step ends come through one queue, so that they are looked at in
//! the order in which they happened. [`control::Control::turn`] has the nine steps.

mod control;
mod deadlines;
mod event;
mod job;
mod log;

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::time::Duration;

use windlass_actor::ExitReason;
use windlass_core::queue::{Letter, Mailbox, PushOutcome};
use windlass_core::sync::Mutex;
use windlass_core::sync::atomic::{Ordering, fence};
use windlass_record::RecordingError;
use windlass_runtime::dispatch::Dispatcher;
use windlass_sync::park::Generation;

use self::control::Control;
use self::deadlines::Deadlines;
use self::event::Event;
use self::log::Log;
use crate::effects::Op;
use crate::error::BuildError;
use crate::guest::Ending;
use crate::guest_process::close;
use crate::guest_shared::GuestShared;
use crate::object::Waiter;
use crate::reason::Work;
use crate::record::{RecordingReader, Writer};
use crate::vm::{ReplayPosition, VmShared};

/// The half of the reactor that others see.
pub(crate) struct Reactor {
    inbox: Mailbox<Event>,
    waker: OnceLock<Waker>,
    /// The VM workers; set when it starts.
    pool: OnceLock<Dispatcher>,
    slice: Duration,
    /// Only the control loop touches what follows; the locks are there for those who look.
    ready: Mutex<VecDeque<Arc<GuestShared>>>,
    deadlines: Mutex<Deadlines>,
    submissions: Mutex<VecDeque<(Waiter, Work)>>,
    log: Log,
}

impl Reactor {
    pub(crate) fn new(
        slice: Duration,
        writer: Option<Writer>,
        reading: Option<RecordingReader>,
    ) -> Reactor {
        Reactor {
            inbox: Mailbox::new(),
            waker: OnceLock::new(),
            pool: OnceLock::new(),
            slice,
            ready: Mutex::default(),
            deadlines: Mutex::default(),
            submissions: Mutex::default(),
            log: Log::new(writer, reading),
        }
    }

    pub(crate) fn start(&self, shared: &Arc<VmShared>, workers: usize) -> Result<(), BuildError> {
        let pool = Dispatcher::builder(workers + 1)
            .name("windlass-vm")
            .build_in(&shared.runtime)
            .map_err(BuildError::Workers)?;
        let pool = self.pool.get_or_init(|| pool);
        let control = Control::new(shared.clone(), workers);
        drop(pool.spawn_named("vm-reactor", control));
        Ok(())
    }

    /// Where guests, their processes and the control loop run.
    pub(crate) fn pool(&self) -> &Dispatcher {
        self.pool.get().expect("it is started before it is used")
    }

    // ---- posting ----

    pub(crate) fn post(&self, event: Event) {
        match self.inbox.push(Letter::new(event)) {
            Ok(PushOutcome::First) => self.wake(),
            Ok(PushOutcome::Behind) => {}
            Err(letter) => refuse(letter.open()),
        }
    }

    fn wake(&self) {
        // Pairs with the fence in the first poll: either that finds what was posted, or the waker
        // is there.
        fence(Ordering::SeqCst);
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
    }

    pub(crate) fn post_op(&self, guest: &Arc<GuestShared>, op: Op) {
        let guest = guest.clone();
        self.post(Event::Op { guest, op });
    }

    pub(crate) fn post_cancel(&self, guest: &Arc<GuestShared>, reason: Arc<str>) {
        let guest = guest.clone();
        self.post(Event::Cancel { guest, reason });
    }

    pub(crate) fn post_input(
        &self,
        guest: &Arc<GuestShared>,
        generation: Generation,
        ending: Ending,
    ) {
        let guest = guest.clone();
        self.post(Event::Input {
            guest,
            generation,
            ending,
        });
    }

    pub(crate) fn post_inject(&self, guest: &Arc<GuestShared>) {
        let guest = guest.clone();
        self.post(Event::Inject { guest });
    }

    pub(crate) fn post_kill(&self, guest: &Arc<GuestShared>) {
        let guest = guest.clone();
        self.post(Event::Kill { guest });
    }

    pub(crate) fn post_stop(&self) {
        self.post(Event::Stop);
    }

    pub(crate) fn wake_loop(&self) {
        self.post(Event::WakeLoop);
    }

    // ---- what the control loop does by way of others ----

    pub(crate) fn make_ready(&self, guest: &Arc<GuestShared>) {
        self.ready.lock().push_back(guest.clone());
    }

    pub(crate) fn add_deadline(
        &self,
        time: Duration,
        waiter: Waiter,
        ending: Ending,
    ) -> (u64, u64) {
        let mut deadlines = self.deadlines.lock();
        match self.is_replaying() {
            true => {
                let task = waiter.guest.number.load(Ordering::Relaxed);
                deadlines.add_for(task, waiter, ending)
            }
            false => deadlines.add(time, waiter, ending),
        }
    }

    pub(crate) fn remove_deadline(&self, key: (u64, u64)) {
        let removed = self.deadlines.lock().remove(key);
        drop(removed);
    }

    pub(crate) fn submit(&self, waiter: Waiter, work: Work) {
        self.submissions.lock().push_back((waiter, work));
    }

    // ---- recordings ----

    pub(crate) fn is_replaying(&self) -> bool {
        self.log.is_replaying()
    }

    pub(crate) fn recording_error(&self) -> Option<RecordingError> {
        self.log.error()
    }

    pub(crate) fn replay_position(&self) -> Option<ReplayPosition> {
        self.log.position()
    }

    pub(crate) async fn replayed(&self) -> Result<(), RecordingError> {
        self.log.replayed().await
    }

    pub(crate) async fn end_recording(&self) -> Result<(), RecordingError> {
        self.post(Event::EndRecording);
        self.log.ended().await
    }
}

/// The reactor is gone, so the caller ends this guest.
fn refuse(event: Event) {
    let guest = match event {
        Event::Inject { guest } | Event::Kill { guest } | Event::Op { guest, .. } => guest,
        Event::Result(result) => result.guest,
        _ => return,
    };
    end(&guest);
}

/// Ends a guest from outside.
fn end(guest: &Arc<GuestShared>) {
    let stored = guest.stored.lock().take();
    if let Some(stored) = stored {
        close(stored);
    }
    guest.finish(Err(ExitReason::Killed));
    guest.request_step();
}
