//! The park protocol of guests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::thread;
use windlass_sync::park::{EndedWaits, Generation, Park, ParkState};

/// A guest and how often it was woken.
struct Guest {
    park: Park<u32, ()>,
    wakes: AtomicUsize,
}

impl Guest {
    fn new() -> Arc<Guest> {
        Arc::new(Guest {
            park: Park::new(),
            wakes: AtomicUsize::new(0),
        })
    }

    /// As enders do: true if the wait was still there.
    fn end(&self, generation: Generation, value: u32) -> bool {
        match self.park.end(generation, value) {
            Ok(ended) => {
                if ended.wakes {
                    self.wakes.fetch_add(1, Ordering::Relaxed);
                }
                true
            }
            Err(_) => false,
        }
    }

    fn wakes(&self) -> usize {
        self.wakes.load(Ordering::Relaxed)
    }
}

fn count(arrived: EndedWaits<u32>) -> usize {
    match arrived {
        EndedWaits::Nothing => 0,
        EndedWaits::One(..) => 1,
        EndedWaits::Several(several) => several.len(),
    }
}

/// An end before, during or after the parking: it is seen by `park`, or it wakes. Never neither,
/// never both.
#[test]
fn an_end_is_seen_or_wakes() {
    loom::model(|| {
        let guest = Guest::new();
        let generation = guest.park.begin(1, ()).expect("it is open");
        let ender = {
            let guest = guest.clone();
            thread::spawn(move || assert!(guest.end(generation, 7)))
        };
        let parked = guest.park.park();
        ender.join().expect("it ends");
        assert_eq!(guest.wakes(), usize::from(parked));
        assert_eq!(guest.park.take(), EndedWaits::One(1, 7));
    });
}

/// Two enders of one wait: one of them ends it, the other has its value back.
#[test]
fn a_wait_ends_once() {
    loom::model(|| {
        let guest = Guest::new();
        let generation = guest.park.begin(1, ()).expect("it is open");
        let ender = {
            let guest = guest.clone();
            thread::spawn(move || guest.end(generation, 1))
        };
        let parked = guest.park.park();
        let mine = guest.end(generation, 2);
        let other = ender.join().expect("it ends");
        assert!(mine != other);
        assert_eq!(guest.wakes(), usize::from(parked));
        assert_eq!(count(guest.park.take()), 1);
    });
}

/// A wait is withdrawn while somebody ends it: either it has ended, or the ender has its value
/// back.
#[test]
fn a_withdrawn_wait_does_not_end() {
    loom::model(|| {
        let guest = Guest::new();
        let generation = guest.park.begin(1, ()).expect("it is open");
        let ender = {
            let guest = guest.clone();
            thread::spawn(move || guest.end(generation, 1))
        };
        let withdrawn = guest.park.withdraw(1).is_some();
        // A wait of the same tag is another wait.
        let next = guest.park.begin(1, ()).expect("it is open");
        assert!(next != generation);
        let ended = ender.join().expect("it ends");
        assert!(withdrawn != ended);
        assert_eq!(count(guest.park.take()), usize::from(ended));
    });
}

/// Several waits end at once: all arrive, one of them wakes.
#[test]
fn several_ends_wake_once() {
    loom::model(|| {
        let guest = Guest::new();
        let first = guest.park.begin(1, ()).expect("it is open");
        let second = guest.park.begin(2, ()).expect("it is open");
        let ender = {
            let guest = guest.clone();
            thread::spawn(move || assert!(guest.end(first, 1)))
        };
        let parked = guest.park.park();
        assert!(guest.end(second, 2));
        ender.join().expect("it ends");
        assert_eq!(guest.wakes(), usize::from(parked));
        assert_eq!(count(guest.park.take()), 2);
    });
}

/// A guest is closed while somebody ends its wait: the value arrives before the close, or comes
/// back.
#[test]
fn a_closed_guest_gets_nothing() {
    loom::model(|| {
        let guest = Guest::new();
        let generation = guest.park.begin(1, ()).expect("it is open");
        assert!(guest.park.park());
        let ender = {
            let guest = guest.clone();
            thread::spawn(move || guest.end(generation, 1))
        };
        let (waits, was) = guest.park.close();
        let ended = ender.join().expect("it ends");
        assert_eq!(waits.len(), usize::from(!ended));
        assert_eq!(was == ParkState::Awake, ended);
        assert!(guest.park.begin(2, ()).is_none());
        assert!(!guest.end(generation, 2));
        assert_eq!(guest.park.take(), EndedWaits::Nothing);
    });
}
