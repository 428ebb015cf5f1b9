//! The readiness of a resource: events against tasks that look, wait, try and give up.

use std::future::poll_fn;
use std::sync::Arc;

use loom::sync::atomic::{AtomicU32, Ordering};
use windlass_core::block_on;
use windlass_sync::readiness::{Direction::Read, Readiness};

use crate::support::{Count, Tracked, poll};

/// A resource with its readiness, as the kernel and the driver have them.
#[derive(Default)]
struct Socket {
    bytes: AtomicU32,
    readiness: Readiness,
}

impl Socket {
    /// A byte comes in, and then the driver tells of it.
    fn receive(&self) {
        self.bytes.fetch_add(1, Ordering::AcqRel);
        self.readiness.set_ready(Read);
    }

    /// Takes one byte: the loop of `Source::io` around a call that does not block.
    async fn read(&self) {
        loop {
            let found = self.readiness.ready(Read).await;
            let take = |bytes: u32| bytes.checked_sub(1);
            let taken = self
                .bytes
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, take);
            if taken.is_ok() {
                return;
            }
            self.readiness.clear(Read, found);
        }
    }
}

#[test]
fn readiness_an_event_between_a_look_and_a_wait_is_not_lost() {
    loom::model(|| {
        let readiness = Arc::new(Readiness::default());
        let note = Arc::new(Tracked::new(0));
        let (driver, by_driver) = (readiness.clone(), note.clone());
        let thread = loom::thread::spawn(move || {
            by_driver.write(7);
            driver.set_ready(Read);
        });
        // An event that the wait misses is a deadlock.
        block_on(readiness.ready(Read));
        assert_eq!(note.read(), 7);
        thread.join().unwrap();
    });
}

#[test]
fn readiness_an_event_between_a_look_and_a_poll_function_is_not_lost() {
    loom::model(|| {
        let readiness = Arc::new(Readiness::default());
        let driver = readiness.clone();
        let thread = loom::thread::spawn(move || driver.shut());
        let found = block_on(poll_fn(|cx| readiness.poll_ready(Read, cx)));
        assert!(found.is_shut());
        thread.join().unwrap();
    });
}

#[test]
fn readiness_an_event_within_an_attempt_is_not_cleared() {
    loom::model(|| {
        let socket = Arc::new(Socket::default());
        // A false alarm: the first attempt finds nothing, or what comes meanwhile.
        socket.readiness.set_ready(Read);
        let driver = socket.clone();
        let thread = loom::thread::spawn(move || driver.receive());
        // A byte whose event is cleared away is a deadlock.
        block_on(socket.read());
        thread.join().unwrap();
    });
}

#[test]
fn readiness_two_readers_share_events_and_each_gets_its_byte() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let socket = Arc::new(Socket::default());
        let readers = [socket.clone(), socket.clone()]
            .map(|socket| loom::thread::spawn(move || block_on(socket.read())));
        socket.receive();
        // One reader has the first byte; the other was woken with it and waits again.
        socket.receive();
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

#[test]
fn readiness_an_event_wakes_all_who_wait_whoever_gives_up() {
    loom::model(|| {
        let readiness = Arc::new(Readiness::default());
        let (poller_wakes, poller) = Count::new();
        let mut polled = Box::pin(poll_fn(|cx| readiness.poll_ready(Read, cx)));
        assert!(poll(polled.as_mut(), &poller).is_pending());
        let (_, waker) = Count::new();
        let mut cancelled = Box::pin(readiness.ready(Read));
        assert!(poll(cancelled.as_mut(), &waker).is_pending());
        let (future_wakes, waker) = Count::new();
        let mut stays = Box::pin(readiness.ready(Read));
        assert!(poll(stays.as_mut(), &waker).is_pending());
        let driver = readiness.clone();
        let thread = loom::thread::spawn(move || driver.set_ready(Read));
        // The driver may be anywhere: before, within, or after telling this future.
        drop(cancelled);
        thread.join().unwrap();
        assert_eq!((poller_wakes.wakes(), future_wakes.wakes()), (1, 1));
        assert!(poll(polled.as_mut(), &poller).is_ready());
        assert!(poll(stays.as_mut(), &waker).is_ready());
    });
}
