//! The wait list, under its thinnest users: telling a node against dropping it.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use windlass_core::sync::UnsafeCell;
use windlass_sync::channel::mpmc;
use windlass_sync::lock::Notify;

use crate::support::{Count, Parcel, poll};

#[test]
fn wait_list_a_told_node_is_left_alone_and_its_wake_up_passed_on() {
    loom::model(|| {
        let notify = Arc::new(Notify::new());
        let teller = notify.clone();
        let (_, waker) = Count::new();
        let mut dropped = Box::pin(notify.notified());
        let first = poll(dropped.as_mut(), &waker);
        assert!(first.is_pending());
        let thread = loom::thread::spawn(move || teller.notify_one());
        // The teller may be anywhere: before, within, or after telling this node.
        drop(dropped);
        thread.join().unwrap();
        let kept = poll(pin!(notify.notified()), &waker);
        assert!(
            kept.is_ready(),
            "the wake-up was lost with the dropped wait"
        );
    });
}

#[test]
fn wait_list_a_payload_is_seen_without_the_lock() {
    loom::model(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (sender, receiver) = mpmc::rendezvous();
        let (_, waker) = Count::new();
        let mut recv = Box::pin(receiver.recv());
        assert!(poll(recv.as_mut(), &waker).is_pending());
        let sent = Parcel::new(&drops, 7);
        let thread = loom::thread::spawn(move || sender.try_send(sent).unwrap());
        let got = windlass_core::block_on(recv).unwrap();
        assert_eq!(got.content(), 7);
        thread.join().unwrap();
    });
}

#[test]
fn wait_list_what_was_done_before_telling_is_seen_after() {
    loom::model(|| {
        let notify = Arc::new(Notify::new());
        let data = Arc::new(Cell(UnsafeCell::new(0)));
        let (teller, written) = (notify.clone(), data.clone());
        let thread = loom::thread::spawn(move || {
            // SAFETY: the reader waits for the wake-up.
            written.0.with_mut(|data| unsafe { *data = 7 });
            teller.notify_one();
        });
        windlass_core::block_on(notify.notified());
        // SAFETY: the writer is done.
        assert_eq!(data.0.with(|data| unsafe { *data }), 7);
        thread.join().unwrap();
    });
}

struct Cell(UnsafeCell<u32>);
// SAFETY: the notification orders the accesses; loom checks that.
unsafe impl Send for Cell {}
// SAFETY: as above.
unsafe impl Sync for Cell {}

#[test]
fn notify_a_wake_up_that_comes_and_goes_is_not_missed() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(5);
    model.check(|| {
        let notify = Arc::new(Notify::new());
        let waits = notify.clone();
        let thread = loom::thread::spawn(move || windlass_core::block_on(waits.notified()));
        notify.notify_one();
        // Takes it, if it is still there, and gives it back when dropped.
        Box::pin(notify.notified()).as_mut().enable();
        thread.join().unwrap();
    });
}
