//! The parker's token.

use std::sync::Arc;

use windlass_core::sync::{Parker, UnsafeCell};

struct Shared {
    parker: Parker,
    data: UnsafeCell<u32>,
}

// SAFETY: the token orders the one write before the one read.
unsafe impl Sync for Shared {}

#[test]
fn park_returns_after_unpark_and_sees_its_past() {
    loom::model(|| {
        let shared = Arc::new(Shared {
            parker: Parker::new(),
            data: UnsafeCell::new(0),
        });
        let other = shared.clone();
        let waker = loom::thread::spawn(move || {
            // SAFETY: before the token is posted nobody else looks.
            other.data.with_mut(|data| unsafe { *data = 42 });
            let _ = other.parker.unpark();
        });
        // A lost token is a deadlock, which loom reports.
        shared.parker.park();
        // SAFETY: the token ordered the write before us.
        assert_eq!(shared.data.with(|data| unsafe { *data }), 42);
        waker.join().unwrap();
    });
}

#[test]
fn park_a_token_posted_while_elsewhere_stays() {
    loom::model(|| {
        let shared = Arc::new(Shared {
            parker: Parker::new(),
            data: UnsafeCell::new(0),
        });
        let other = shared.clone();
        let waker = loom::thread::spawn(move || {
            let _ = other.parker.unpark();
        });
        if shared.parker.sleep_elsewhere() {
            shared.parker.back_from_elsewhere();
        }
        shared.parker.park();
        waker.join().unwrap();
    });
}
