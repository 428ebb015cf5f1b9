//! Loom models of locks, channels, timers and the park protocol. Each runs in a process of its own:
//! `cargo xtask loom`.
//!
//! `cargo xtask weaken` flips the orderings these models stand for, one by one, and demands that
//! the model named in `xtask/weaken.list` fails.
#![cfg(windlass_loom)]
#![allow(
    clippy::disallowed_types,
    reason = "models count with plain atomics of the test"
)]

mod barrier;
mod broadcast;
mod channel;
mod oneshot;
mod park;
mod readiness;
mod rwlock;
mod semaphore;
mod set_once;
mod timers;
mod wait_list;
mod watch;

mod support {
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Wake, Waker};

    use windlass_core::sync::UnsafeCell;

    /// A value whose content is written by its maker and read at its end: loom reports a race if
    /// what carried it between threads does not order the two.
    pub(crate) struct Parcel {
        content: UnsafeCell<u32>,
        drops: Arc<AtomicUsize>,
    }

    // SAFETY: a parcel has one owner at a time; loom checks that.
    unsafe impl Send for Parcel {}

    impl Parcel {
        pub(crate) fn new(drops: &Arc<AtomicUsize>, content: u32) -> Parcel {
            let parcel = Parcel {
                content: UnsafeCell::new(0),
                drops: drops.clone(),
            };
            // SAFETY: new and ours.
            parcel.content.with_mut(|place| unsafe { *place = content });
            parcel
        }

        pub(crate) fn content(&self) -> u32 {
            // SAFETY: ours.
            self.content.with(|place| unsafe { *place })
        }
    }

    impl Drop for Parcel {
        fn drop(&mut self) {
            self.content();
            self.drops.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl std::fmt::Debug for Parcel {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "Parcel({})", self.content())
        }
    }

    /// A number in a cell that loom watches: loom reports a race unless every access is ordered
    /// after the writes before it.
    pub(crate) struct Tracked(UnsafeCell<u32>);

    // SAFETY: what a model checks orders the accesses; loom reports those that it does not.
    unsafe impl Send for Tracked {}
    // SAFETY: as above.
    unsafe impl Sync for Tracked {}

    impl Tracked {
        pub(crate) fn new(value: u32) -> Tracked {
            Tracked(UnsafeCell::new(value))
        }

        pub(crate) fn read(&self) -> u32 {
            // SAFETY: loom panics before the access if a write is not ordered before it.
            self.0.with(|value| unsafe { *value })
        }

        pub(crate) fn write(&self, new: u32) {
            // SAFETY: loom panics before the access if another access is not ordered before it.
            self.0.with_mut(|value| unsafe { *value = new });
        }
    }

    /// A waker that counts.
    #[derive(Default)]
    pub(crate) struct Count(AtomicUsize);

    impl Count {
        pub(crate) fn new() -> (Arc<Count>, Waker) {
            let count = Arc::new(Count::default());
            (count.clone(), Waker::from(count))
        }

        pub(crate) fn wakes(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn poll<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(waker))
    }
}
