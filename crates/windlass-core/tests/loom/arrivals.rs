//! The last to arrive.

use loom::sync::Arc;
use windlass_core::sched::Arrivals;
use windlass_core::sync::UnsafeCell;
use windlass_core::sync::atomic::{AtomicUsize, Ordering};

/// Two that arrive, each after it has written; the last one reads both. Then it all happens again,
/// after a countdown as in a flow.
struct Round {
    arrivals: Arrivals,
    written: [UnsafeCell<usize>; 2],
    left: AtomicUsize,
}

// SAFETY: what the model is to show: loom reports a race if it is wrong.
unsafe impl Sync for Round {}
// SAFETY: as above.
unsafe impl Send for Round {}

impl Round {
    fn arrive(&self, who: usize, round: usize) {
        // SAFETY: ours until we have arrived.
        self.written[who].with_mut(|place| unsafe { *place = round });
        if self.arrivals.arrive() {
            for place in &self.written {
                // SAFETY: the other has arrived.
                assert_eq!(place.with(|place| unsafe { *place }), round);
            }
        }
    }
}

#[test]
fn arrivals_the_last_sees_what_all_others_did_in_every_round() {
    loom::model(|| {
        let round = Arc::new(Round {
            arrivals: Arrivals::new(2),
            written: [UnsafeCell::new(0), UnsafeCell::new(0)],
            left: AtomicUsize::new(2),
        });
        let other = round.clone();
        let other = loom::thread::spawn(move || {
            other.arrive(1, 1);
            other.left.fetch_sub(1, Ordering::AcqRel);
        });
        round.arrive(0, 1);
        if round.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            // The round is over: the next one, here.
            round.arrive(0, 2);
            round.arrive(1, 2);
        }
        other.join().unwrap();
    });
}
