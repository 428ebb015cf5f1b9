//! What one task's turn must not do to the next one's.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use windlass_core::context::note_long_turn;
use windlass_runtime::task::yield_now;

use crate::support::{join, runtime};

/// Turns of a task that keeps its worker's ring from being empty.
const BUSY_TURNS: usize = 30;

/// After a turn of a full time slice a task that yields stands in line with those of all workers. A
/// task that waits instead leaves nothing behind for the task that runs after it.
#[test]
fn a_long_turn_that_ends_in_a_wait_does_not_move_the_next_task() {
    let runtime = runtime(1);
    let turns = Arc::new(AtomicUsize::new(0));
    let seen = turns.clone();
    let started = runtime.spawn(async move {
        let long = windlass_runtime::spawn(async {
            note_long_turn();
            pending::<()>().await;
        });
        let next = windlass_runtime::spawn(async move {
            yield_now().await;
            seen.load(SeqCst)
        });
        let busy = windlass_runtime::spawn(async move {
            for _ in 0..BUSY_TURNS {
                turns.fetch_add(1, SeqCst);
                yield_now().await;
            }
        });
        busy.await.expect("no panic");
        long.abort();
        next.await.expect("no panic")
    });
    let turns_before = join("the task after the long turn", started);
    assert!(
        turns_before <= 2,
        "it stood in line behind {turns_before} turns of another"
    );
}
