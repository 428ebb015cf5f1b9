//! Doors to the world outside: how something that is not a message makes a component run.
//!
//! A component that reads a socket or talks to a command has a task that does so. That task hands
//! over data (by a channel of the component's own), and knocks at the component's door. The run
//! looks at the doors when an epoch begins; if it has nothing else to do, a knock wakes it up.
//!
//! One lock holds the state of a door. So a component that holds off and then looks for room again
//! cannot miss a knock that came for that room: either the knock comes later and ends the hold, or
//! the room was made before.

use std::fmt;
use std::sync::Arc;

use windlass_core::sync::Mutex;
use windlass_sync::lock::Notify;

/// A component's door to the world outside, from [`Setup::outside`](super::Setup::outside).
///
/// While it, or a clone of it, is there, more may come, and the run is not idle. So it belongs to
/// the task that brings things, and is dropped with that.
pub struct Outside(Arc<Door>);

/// A door at which nothing is expected for now, from [`Outside::downgrade`]: it does not keep a run
/// from ending.
#[derive(Clone)]
pub struct WeakOutside(Arc<Door>);

/// What the run and those outside share.
pub(crate) struct Door {
    state: Mutex<State>,
    bell: Arc<Notify>,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// How many `Outside` there are.
    open: usize,
    woken: bool,
    held: bool,
}

/// What the run finds at a door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DoorStatus {
    /// Something has come.
    pub(crate) woken: bool,
    /// It is not to be invoked.
    pub(crate) held: bool,
}

impl Door {
    pub(crate) fn new(bell: &Arc<Notify>) -> Arc<Door> {
        Arc::new(Door {
            state: Mutex::default(),
            bell: bell.clone(),
        })
    }

    pub(crate) fn open(self: &Arc<Self>) -> Outside {
        self.state.lock().open += 1;
        Outside(self.clone())
    }

    /// What is there, without taking it.
    pub(crate) fn peek(&self) -> DoorStatus {
        let State { woken, held, .. } = *self.state.lock();
        DoorStatus { woken, held }
    }

    /// What is there; a knock counts once.
    pub(crate) fn look(&self) -> DoorStatus {
        let mut state = self.state.lock();
        DoorStatus {
            woken: std::mem::take(&mut state.woken),
            held: state.held,
        }
    }

    /// Whether more may come.
    pub(crate) fn is_open(&self) -> bool {
        self.state.lock().open > 0
    }

    fn wake(&self) {
        let mut state = self.state.lock();
        state.woken = true;
        state.held = false;
        drop(state);
        self.bell.notify_one();
    }

    fn resume(&self) {
        if std::mem::take(&mut self.state.lock().held) {
            self.bell.notify_one();
        }
    }

    fn hold_off(&self) {
        self.state.lock().held = true;
    }
}

macro_rules! knocks {
    ($( $Outside:ident )+) => { $(
        impl $Outside {
            /// Says that something has come: the component is invoked in the next epoch, without
            /// messages if there are none. Ends [`hold_off`](Self::hold_off).
            pub fn wake(&self) {
                self.0.wake();
            }

            /// Ends [`hold_off`](Self::hold_off), if it was held off; does nothing else.
            pub fn resume(&self) {
                self.0.resume();
            }

            /// Keeps the component from being invoked until [`wake`](Self::wake) or
            /// [`resume`](Self::resume): its messages wait on their edges, whose overflow policies
            /// decide what becomes of them. To be called by the component, which then looks again
            /// whether there is room, and if so resumes.
            ///
            /// Invocations for which messages were taken from their edges together still come.
            pub fn hold_off(&self) {
                self.0.hold_off();
            }
        }

        impl fmt::Debug for $Outside {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($Outside), "({:?})"), *self.0.state.lock())
            }
        }
    )+ };
}

knocks!(Outside WeakOutside);

impl Outside {
    /// The same door, without saying that more may come.
    pub fn downgrade(&self) -> WeakOutside {
        WeakOutside(self.0.clone())
    }
}

impl WeakOutside {
    /// Says that more may come from now on.
    pub fn upgrade(&self) -> Outside {
        self.0.open()
    }
}

impl Clone for Outside {
    fn clone(&self) -> Outside {
        self.0.open()
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let closed = {
            let mut state = self.0.state.lock();
            state.open -= 1;
            state.open == 0
        };
        if closed {
            // The run may have waited for nothing else.
            self.0.bell.notify_one();
        }
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.lock().fmt(f)
    }
}
