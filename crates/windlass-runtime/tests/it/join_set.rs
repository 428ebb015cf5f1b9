//! Sets of tasks, and the budget of a poll.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use windlass_runtime::task::{self, JoinSet, coop, yield_now};
use windlass_runtime::{Runtime, time};
use windlass_sync::lock::Semaphore;

use crate::support::{eventually, panic_message, runtime};

/// Adds to a count when it is dropped.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn results_come_in_the_order_in_which_the_tasks_end() {
    Runtime::simulated(7).block_on(async {
        let mut set = JoinSet::new();
        for number in [30, 10, 20] {
            set.spawn(async move {
                time::sleep(Duration::from_millis(number)).await;
                number
            });
        }
        assert_eq!(set.try_join_next().map(Result::unwrap), None);
        let mut order = Vec::new();
        while let Some(ended) = set.join_next().await {
            order.push(ended.unwrap());
        }
        assert_eq!((order, set.len()), (vec![10, 20, 30], 0));
    });
}

#[test]
fn each_result_has_the_id_of_its_task() {
    let runtime = runtime(2);
    runtime.block_on(async {
        let mut set = JoinSet::new();
        let one = set.spawn(async { task::id() }).id();
        let (id, seen) = set.join_next_with_id().await.unwrap().unwrap();
        assert_eq!((id, seen), (one, one));
        let panics = set.spawn(async { panic!("on purpose") }).id();
        let error = set.join_next_with_id().await.unwrap().unwrap_err();
        assert_eq!(error.id(), panics);
        let payload = error.into_panic();
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"on purpose"));
        assert!(set.join_next().await.is_none());
    });
}

#[test]
fn a_dropped_set_aborts_its_tasks_and_a_detached_one_does_not() {
    let runtime = runtime(2);
    let count = Arc::new(AtomicUsize::new(0));
    let mut set = JoinSet::new();
    for _ in 0..3 {
        let guard = Dropped(count.clone());
        set.spawn_on(
            async move {
                pending::<()>().await;
                drop(guard);
            },
            runtime.handle(),
        );
    }
    drop(set);
    eventually("the tasks are dropped", || {
        count.load(Ordering::SeqCst) == 3
    });
    let gate = Arc::new(Semaphore::new(0));
    let mut set = JoinSet::new();
    let (waits, guard) = (gate.clone(), Dropped(count.clone()));
    set.spawn_on(
        async move {
            waits.acquire().await.unwrap().forget();
            drop(guard);
        },
        runtime.handle(),
    );
    set.detach_all();
    assert!(set.is_empty());
    drop(set);
    assert_eq!(count.load(Ordering::SeqCst), 3, "it runs on");
    gate.add_permits(1);
    eventually("it ends", || count.load(Ordering::SeqCst) == 4);
}

#[test]
fn a_shutdown_waits_until_every_task_was_dropped() {
    let runtime = runtime(2);
    let count = Arc::new(AtomicUsize::new(0));
    runtime.block_on(async {
        let mut set: JoinSet<()> = (0..4)
            .map(|_| {
                let guard = Dropped(count.clone());
                async move {
                    let _guard = guard;
                    pending().await
                }
            })
            .collect();
        set.shutdown().await;
        assert_eq!(count.load(Ordering::SeqCst), 4);
    });
}

#[test]
fn join_all_goes_on_with_the_panic_of_a_task() {
    let runtime = runtime(2);
    let message = panic_message(|| {
        runtime.block_on(async {
            let mut set = JoinSet::new();
            set.spawn(pending());
            set.spawn(async { panic!("the second one") });
            set.join_all().await
        });
    });
    assert!(message.contains("the second one"), "{message}");
    let blocking = runtime.block_on(async {
        let mut set = JoinSet::new();
        set.spawn_blocking(|| 1);
        set.spawn_blocking(|| 2);
        set.join_all().await
    });
    assert_eq!(blocking.iter().sum::<i32>(), 3);
}

/// How many of 1,000 loops over something that is always ready another task saw before they ended.
async fn turns_beside(work: impl Future<Output = ()> + Send + 'static) -> usize {
    let turns = Arc::new(AtomicUsize::new(0));
    let counting = turns.clone();
    let counter = windlass_runtime::spawn(async move {
        loop {
            counting.fetch_add(1, Ordering::SeqCst);
            yield_now().await;
        }
    });
    yield_now().await;
    let before = turns.load(Ordering::SeqCst);
    windlass_runtime::spawn(work).await.unwrap();
    let during = turns.load(Ordering::SeqCst) - before;
    counter.abort();
    during
}

async fn always_ready() {
    let semaphore = Semaphore::new(1);
    for _ in 0..10_000 {
        drop(semaphore.acquire().await);
    }
}

#[test]
fn an_unconstrained_future_is_not_held_back() {
    let runtime = runtime(1);
    let task = runtime.spawn(async {
        let held_back = turns_beside(always_ready()).await;
        let unconstrained = turns_beside(task::unconstrained(always_ready())).await;
        (held_back, unconstrained)
    });
    let (held_back, unconstrained) = runtime.block_on(task).unwrap();
    // 10,000 operations at 128 per poll.
    assert!(held_back >= 50, "{held_back}");
    assert!(unconstrained < 20, "{unconstrained}");
}

#[test]
fn a_loop_that_consumes_budget_gives_way() {
    let runtime = runtime(1);
    let task = runtime.spawn(async {
        let consumes = turns_beside(async {
            for _ in 0..10_000 {
                task::consume_budget().await;
            }
        });
        let wrapped = turns_beside(async {
            for _ in 0..10_000 {
                coop::cooperative(std::future::ready(())).await;
            }
        });
        (consumes.await, wrapped.await)
    });
    let (consumes, wrapped) = runtime.block_on(task).unwrap();
    assert!(consumes >= 50 && wrapped >= 50, "{consumes} {wrapped}");
}

#[test]
fn the_budget_is_spent_inside_of_tasks_only() {
    let runtime = runtime(1);
    assert!(coop::has_budget_remaining());
    let left = runtime.spawn(async {
        let semaphore = Semaphore::new(1000);
        let mut spent = 0;
        while coop::has_budget_remaining() {
            semaphore.acquire().await.unwrap().forget();
            spent += 1;
        }
        spent
    });
    assert_eq!(runtime.block_on(left).unwrap(), 128);
}
