//! Structured concurrency: select, join, race, groups with deadlines, graceful ends.

use std::future::{pending, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use windlass::runtime::Graceful;
use windlass::task::{SupervisorGroup, join_all, race, yield_now};
use windlass::time::{self, Instant, sleep};
use windlass::{CancellationToken, Runtime, TaskGroup, join, select, spawn, try_join};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Counts its drops.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[windlass::test(simulated, seeds = 20)]
async fn select_runs_one_handler_and_drops_the_losers_before_it() {
    let drops = Arc::new(AtomicUsize::new(0));
    let slow = |drops: &Arc<AtomicUsize>| {
        let held = Counted(drops.clone());
        async move {
            sleep(ms(50)).await;
            drop(held);
        }
    };
    let mut runs = 0;
    select! {
        () = slow(&drops) => unreachable!(),
        () = sleep(ms(10)) => {
            runs += 1;
            assert_eq!(drops.load(Ordering::SeqCst), 2, "losers are gone before the handler");
        }
        () = slow(&drops) => unreachable!(),
    }
    assert_eq!(runs, 1);
}

#[windlass::test(simulated, seeds = 5)]
async fn select_is_fair_unless_biased() {
    let mut wins = [0; 3];
    for _ in 0..300 {
        let winner = select! {
            _ = ready(()) => 0,
            _ = ready(()) => 1,
            _ = ready(()) => 2,
        };
        wins[winner] += 1;
        let first = select! {
            biased;
            _ = ready(()) => 0,
            _ = ready(()) => 1,
        };
        assert_eq!(first, 0);
    }
    assert!(wins.iter().all(|count| *count > 40), "{wins:?}");
}

/// Writes down its number at each of four polls.
async fn noted(number: u32, order: &std::cell::RefCell<Vec<u32>>) {
    for _ in 0..4 {
        order.borrow_mut().push(number);
        yield_now().await;
    }
}

#[windlass::test]
async fn join_begins_with_another_future_at_each_poll_unless_biased() {
    let order = std::cell::RefCell::new(Vec::new());
    join!(noted(1, &order), noted(2, &order), noted(3, &order));
    assert_eq!(order.take(), [1, 2, 3, 2, 3, 1, 3, 1, 2, 1, 2, 3]);
    join!(biased; noted(1, &order), noted(2, &order));
    assert_eq!(order.take(), [1, 2, 1, 2, 1, 2, 1, 2]);
}

#[windlass::test]
async fn a_future_that_uses_up_the_budget_starves_none_beside_it() {
    let task = spawn(async {
        let done = std::sync::atomic::AtomicBool::new(false);
        let greedy = async {
            let mut rounds = 0;
            while !done.load(Ordering::SeqCst) && rounds < 1_000 {
                for _ in 0..200 {
                    windlass::task::consume_budget().await;
                }
                rounds += 1;
            }
            rounds
        };
        let modest = async {
            windlass::task::consume_budget().await;
            done.store(true, Ordering::SeqCst);
        };
        join!(greedy, modest).0
    });
    assert!(task.await.unwrap() < 5);
}

#[windlass::test]
async fn select_gives_way_when_the_budget_is_gone() {
    let task = spawn(async {
        let mut turns = 0;
        std::future::poll_fn(|cx| {
            turns += 1;
            let both = std::pin::pin!(async {
                loop {
                    select! {
                        biased;
                        () = windlass::task::consume_budget() => {}
                        () = ready(()) => break,
                    }
                }
            });
            assert!(
                std::future::Future::poll(both, cx).is_pending(),
                "passed over"
            );
            std::task::Poll::Ready(())
        })
        .await;
        turns
    });
    assert_eq!(task.await.unwrap(), 1);
}

#[windlass::test(simulated, seeds = 5)]
async fn select_leaves_out_what_is_disabled_or_does_not_fit() {
    let off = false;
    let value = select! {
        value = ready(1), if off => value,
        Some(value) = ready(None::<i32>) => value,
        mut value = async { yield_now().await; 7 } => { value += 1; value }
    };
    assert_eq!(value, 8);
    let otherwise = select! {
        Ok(value) = ready(Err::<i32, ()>(())) => value,
        else => -1,
    };
    assert_eq!(otherwise, -1);
}

#[windlass::test(simulated, seeds = 3)]
async fn join_waits_for_all_and_try_join_for_the_first_error() {
    let began = Instant::now();
    let (a, (), c) = join!(async { 1 }, sleep(ms(20)), async {
        sleep(ms(10)).await;
        "c"
    });
    assert_eq!((a, c, began.elapsed()), (1, "c", ms(20)));
    let both = try_join!(async { Ok::<_, ()>(1) }, async { Ok(2) });
    assert_eq!(both, Ok((1, 2)));
    let failed: Result<((), ()), &str> = try_join!(pending(), async {
        sleep(ms(5)).await;
        Err("late")
    });
    assert_eq!(failed, Err("late"));
}

#[windlass::test(simulated, seeds = 5)]
async fn race_takes_the_first_and_join_all_keeps_the_order() {
    let racers = (1..=5u64).rev().map(|n| async move {
        sleep(ms(n)).await;
        n
    });
    assert_eq!(race(racers).await, Some(1));
    assert_eq!(race(Vec::<std::future::Ready<()>>::new()).await, None);
    let all = join_all((0..1000u64).map(|n| async move {
        sleep(ms(n * 7 % 13)).await;
        n
    }));
    assert_eq!(all.await, (0..1000).collect::<Vec<_>>());
    assert_eq!(join_all(Vec::<std::future::Ready<()>>::new()).await, []);
}

#[windlass::test(simulated, seeds = 10)]
async fn siblings_survive_in_a_supervisor_group() {
    let mut group = SupervisorGroup::new();
    for part in 0..10u32 {
        group.spawn(async move {
            sleep(ms(u64::from(part))).await;
            match part {
                2 => Err("broken"),
                3 => panic!("it panics"),
                _ => Ok(part),
            }
        });
    }
    let results = group.join().await;
    let ok: Vec<u32> = results.into_iter().flatten().flatten().collect();
    assert_eq!(ok, [0, 1, 4, 5, 6, 7, 8, 9]);
}

#[windlass::test(simulated, seeds = 10)]
async fn a_deadline_reaches_the_children_of_a_group() {
    let began = Instant::now();
    let drops = Arc::new(AtomicUsize::new(0));
    let counted = drops.clone();
    let at = began + ms(30);
    let late = time::deadline(at, async move {
        let mut group = TaskGroup::<()>::new();
        for _ in 0..5 {
            let held = Counted(counted.clone());
            group.spawn(async move {
                assert_eq!(time::current_deadline(), Some(at), "inherited");
                let _held = held;
                pending().await
            });
        }
        group.join().await
    });
    assert!(late.await.is_err());
    assert_eq!(began.elapsed(), ms(30));
    sleep(ms(1)).await;
    assert_eq!(drops.load(Ordering::SeqCst), 5, "the children are gone");
}

/// A tree of tasks, each with four waits below a token of its own.
fn tree(token: &CancellationToken, depth: usize, ended: &Arc<AtomicUsize>) -> usize {
    let mut count = 0;
    for _ in 0..3 {
        let child = token.child();
        if depth > 1 {
            count += tree(&child, depth - 1, ended);
        }
        let ended = ended.clone();
        count += 1;
        drop(spawn(async move {
            select! {
                () = child.cancelled() => {}
                () = sleep(Duration::from_secs(3600)) => panic!("not cancelled"),
                () = pending() => {}
            }
            ended.fetch_add(1, Ordering::SeqCst);
        }));
    }
    count
}

#[windlass::test(simulated, seeds = 20)]
async fn d7_a_cancel_at_the_root_ends_all_waits_at_once() {
    let (root, ended) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
    let count = tree(&root, 4, &ended);
    sleep(ms(1)).await;
    let began = Instant::now();
    root.cancel();
    while ended.load(Ordering::SeqCst) < count {
        yield_now().await;
    }
    assert_eq!(began.elapsed(), Duration::ZERO, "no virtual time passes");
}

#[test]
fn d7_a_cancel_at_the_root_ends_all_waits_in_real_time() {
    let runtime = Runtime::builder().workers(2).build().expect("it builds");
    runtime.block_on(async {
        let (root, ended) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
        let count = tree(&root, 4, &ended);
        sleep(ms(20)).await;
        let began = Instant::now();
        root.cancel();
        while ended.load(Ordering::SeqCst) < count {
            yield_now().await;
        }
        // The contract says 5 ms.
        assert!(began.elapsed() < ms(50), "{:?}", began.elapsed());
    });
}

#[windlass::test(simulated, seeds = 10)]
async fn a_graceful_end_waits_drains_and_names() {
    let began = Instant::now();
    let mut service = Graceful::new(ms(100));
    let stop = service.token().clone();
    service.spawn("drains", async move {
        stop.cancelled().await;
        sleep(ms(60)).await;
    });
    service.spawn("over already", async {});
    service.spawn("deaf", pending());
    service.spawn("breaks", async { panic!("on purpose") });
    let report = service.run_until(sleep(ms(10))).await;
    assert_eq!(report.stopped, ["drains", "over already"]);
    assert_eq!(report.aborted, ["deaf"]);
    assert_eq!(report.panicked, ["breaks"]);
    assert_eq!(began.elapsed(), ms(110));
    assert!(!report.is_clean());
}

#[windlass::test(simulated, seeds = 3)]
async fn a_service_dropped_midway_ends_its_parts() {
    let drops = Arc::new(AtomicUsize::new(0));
    let held = Counted(drops.clone());
    let mut service = Graceful::new(ms(100));
    service.spawn("part", async move {
        let _held = held;
        pending::<()>().await;
    });
    let cut = time::timeout(ms(5), service.run_until(pending::<()>())).await;
    assert!(cut.is_err());
    sleep(ms(1)).await;
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

#[test]
fn a_signal_ends_a_service() {
    let runtime = Runtime::builder().workers(1).build().expect("it builds");
    let report = runtime.block_on(async {
        let mut service = Graceful::new(ms(1000));
        let stop = service.token().clone();
        service.spawn("polite", async move { stop.cancelled().await });
        let ended = service.run_until(windlass::signal::terminate());
        let ended = spawn(ended);
        // Once the handler stands; the first poll installs it.
        sleep(ms(50)).await;
        crate::support::send_signal("TERM");
        ended.await.expect("it ends")
    });
    assert_eq!(report.stopped, ["polite"]);
}

windlass::task_local! {
    static NUMBER: u32;
}

#[windlass::test(simulated, seeds = 10)]
async fn task_locals_belong_to_their_task() {
    let tasks: Vec<_> = (0..10)
        .map(|number| {
            spawn(NUMBER.scope(number, async move {
                for _ in 0..5 {
                    assert_eq!(NUMBER.get(), number);
                    let inner = NUMBER.scope(number + 100, async {
                        yield_now().await;
                        NUMBER.get()
                    });
                    assert_eq!(inner.await, number + 100);
                    yield_now().await;
                }
            }))
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert!(NUMBER.try_with(|_| ()).is_err());
}

#[windlass::test]
async fn a_task_local_value_can_be_taken_out_of_its_scope() {
    let mut scope = std::pin::pin!(NUMBER.scope(7, async {
        let first = NUMBER.try_get();
        yield_now().await;
        (first, NUMBER.try_get().is_err())
    }));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(std::future::Future::poll(scope.as_mut(), &mut cx).is_pending());
    assert_eq!(scope.as_mut().take_value(), Some(7));
    assert_eq!(scope.as_mut().take_value(), None);
    assert_eq!(scope.await, (Ok(7), true));
}

/// What one select over three channels came to.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Outcome {
    Value(u32),
    Closed,
    Cancelled,
    TimedOut,
}

#[windlass::test(simulated, seeds = 300)]
async fn d6_a_select_racing_a_close_has_one_outcome_and_losers_consume_nothing() {
    use windlass::sync::mpmc;
    let channels: Vec<_> = (0..3).map(|_| mpmc::buffered::<u32>(4)).collect();
    let token = CancellationToken::new();
    let receivers: Vec<_> = channels
        .iter()
        .map(|(_, receiver)| receiver.clone())
        .collect();
    let stop = token.clone();
    let selecting = spawn(async move {
        let [a, b, c] = [&receivers[0], &receivers[1], &receivers[2]];
        select! {
            received = a.recv() => received.map_or(Outcome::Closed, Outcome::Value),
            received = b.recv() => received.map_or(Outcome::Closed, Outcome::Value),
            received = c.recv() => received.map_or(Outcome::Closed, Outcome::Value),
            () = stop.cancelled() => Outcome::Cancelled,
            () = sleep(ms(5)) => Outcome::TimedOut,
        }
    });
    // All of it at the same virtual moment, in an order that the seed chooses.
    let mut sent = 0;
    let racers: Vec<_> = channels
        .iter()
        .enumerate()
        .map(|(index, (sender, _))| {
            let (sender, token) = (sender.clone(), token.clone());
            sent += usize::from(index != 1);
            spawn(async move {
                sleep(ms(5)).await;
                match index {
                    1 => {
                        sender.close();
                    }
                    _ => sender.send(index as u32).await.expect("it is open"),
                }
                if index == 2 {
                    token.cancel();
                }
            })
        })
        .collect();
    for racer in racers {
        racer.await.unwrap();
    }
    let outcome = selecting.await.unwrap();
    let left: usize = channels.iter().map(|(_, receiver)| receiver.len()).sum();
    let consumed = usize::from(matches!(outcome, Outcome::Value(_)));
    assert_eq!(left + consumed, sent, "{outcome:?} and {left} left");
}

#[test]
fn d6_every_outcome_comes_up_under_some_seed() {
    let outcome = |seed| {
        Runtime::simulated(seed).block_on(async {
            let (sender, receiver) = windlass::sync::mpmc::rendezvous::<u32>();
            let token = CancellationToken::new();
            let (stop, closing) = (token.clone(), sender.clone());
            let tasks = [
                spawn(async move {
                    sleep(ms(5)).await;
                    let _ = sender.send(1).await;
                }),
                spawn(async move {
                    sleep(ms(5)).await;
                    closing.close();
                }),
                spawn(async move {
                    sleep(ms(5)).await;
                    stop.cancel();
                }),
            ];
            let outcome = select! {
                received = receiver.recv() => received.map_or(Outcome::Closed, Outcome::Value),
                () = token.cancelled() => Outcome::Cancelled,
                () = sleep(ms(5)) => Outcome::TimedOut,
            };
            receiver.close();
            for task in tasks {
                task.await.unwrap();
            }
            outcome
        })
    };
    let seen: Vec<_> = (0..500).map(outcome).collect();
    for wanted in [
        Outcome::Value(1),
        Outcome::Closed,
        Outcome::Cancelled,
        Outcome::TimedOut,
    ] {
        assert!(seen.contains(&wanted), "{wanted:?} never came up");
    }
}

#[test]
fn d6_a_select_on_real_workers_loses_nothing() {
    let runtime = Runtime::builder().workers(2).build().expect("it builds");
    runtime.block_on(async {
        for round in 0..500u32 {
            let (sender, receiver) = windlass::sync::mpmc::buffered::<u32>(1);
            let token = CancellationToken::new();
            let (stop, receiving) = (token.clone(), receiver.clone());
            let selecting = spawn(async move {
                select! {
                    received = receiving.recv() => received,
                    () = stop.cancelled() => None,
                }
            });
            let sending = spawn(async move { sender.send(round).await });
            let cancelling = spawn(async move { token.cancel() });
            sending.await.unwrap().expect("the receiver is there");
            cancelling.await.unwrap();
            match selecting.await.unwrap() {
                Some(value) => assert_eq!((value, receiver.len()), (round, 0)),
                None => assert_eq!(receiver.try_recv(), Ok(round), "the loser consumed it"),
            }
        }
    });
}

#[windlass::test(simulated, seeds = 50)]
async fn d4_selectors_are_told_of_a_close_exactly_once() {
    use windlass::sync::mpmc;
    for waiters in [1, 4, 5, 100] {
        let (sender, receiver) = mpmc::buffered::<usize>(2);
        let (other, quiet) = mpmc::buffered::<usize>(2);
        let told = Arc::new(AtomicUsize::new(0));
        let tasks: Vec<_> = (0..waiters)
            .map(|_| {
                let (receiver, quiet, told) = (receiver.clone(), quiet.clone(), told.clone());
                spawn(async move {
                    select! {
                        closed = receiver.recv() => assert!(closed.is_none()),
                        _ = quiet.recv() => unreachable!("nothing is sent there"),
                    }
                    told.fetch_add(1, Ordering::SeqCst);
                })
            })
            .collect();
        sleep(ms(1)).await;
        sender.close();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(told.load(Ordering::SeqCst), waiters);
        assert!(
            format!("{quiet:?}").contains("waiting_receivers: 0"),
            "{quiet:?}"
        );
        drop(other);
    }
}

#[windlass::test(simulated, seeds = 30)]
async fn d5_limited_waits_meet_and_keep_the_value_when_they_do_not() {
    use windlass::sync::mpmc::error::SendWithinError;
    use windlass::sync::{Cut, mpmc};
    let (sender, receiver) = mpmc::rendezvous::<u32>();
    // Nobody there: both give up in time, and the value comes back.
    let began = Instant::now();
    assert_eq!(
        sender.send_within(1, ms(5)).await,
        Err(SendWithinError::TimedOut(1))
    );
    assert_eq!(receiver.recv_within(ms(5)).await, Err(Cut::TimedOut));
    assert_eq!(began.elapsed(), ms(10));
    // Both limited: they meet.
    let receiving = {
        let receiver = receiver.clone();
        spawn(async move { receiver.recv_within(ms(50)).await })
    };
    assert_eq!(sender.send_within(2, ms(50)).await, Ok(()));
    assert_eq!(receiving.await.unwrap(), Ok(Some(2)));
    // A limited receive against an unlimited send, and the other way round.
    let sending = {
        let sender = sender.clone();
        spawn(async move { sender.send(3).await })
    };
    assert_eq!(receiver.recv_within(ms(50)).await, Ok(Some(3)));
    sending.await.unwrap().unwrap();
    let receiving = {
        let receiver = receiver.clone();
        spawn(async move { receiver.recv().await })
    };
    assert_eq!(sender.send_within(4, ms(50)).await, Ok(()));
    assert_eq!(receiving.await.unwrap(), Some(4));
    // Cancellation beats the deadline when both are due.
    let token = CancellationToken::new();
    let cancelling = {
        let token = token.clone();
        spawn(async move {
            sleep(ms(5)).await;
            token.cancel();
        })
    };
    let limit = windlass::sync::Limit::after(ms(5)).or_cancelled(&token);
    let cut = receiver.recv_within(limit).await;
    assert!(matches!(cut, Err(Cut::Cancelled | Cut::TimedOut)));
    cancelling.await.unwrap();
    let limit = windlass::sync::Limit::after(Duration::ZERO).or_cancelled(&token);
    assert_eq!(receiver.recv_within(limit).await, Err(Cut::Cancelled));
    sender.close();
    assert_eq!(
        sender.send_within(5, ms(1)).await,
        Err(SendWithinError::Closed(5))
    );
    assert_eq!(receiver.recv_within(ms(1)).await, Ok(None));
}

/// Everything that can be waited for and never comes, in one select that loses to a yield; what it
/// leaves behind must not be in anybody's way.
#[windlass::test(simulated, seeds = 50)]
async fn a_dropped_wait_in_every_branch_of_a_select_leaves_nothing_behind() {
    use windlass::sync::{Barrier, Mutex, Notify, OnceCell, RwLock, Semaphore};
    use windlass::sync::{broadcast, mpmc, mpsc, oneshot, watch};

    let (mutex, rwlock, semaphore) = (Mutex::new(1), RwLock::new(2), Semaphore::new(1));
    let (notify, barrier, once) = (Notify::new(), Barrier::new(2), OnceCell::<u32>::new());
    let (full, full_receiver) = mpmc::buffered(1);
    let (empty_sender, empty) = mpmc::rendezvous::<u32>();
    let (single_sender, mut single) = mpsc::buffered::<u32>(1);
    let (once_sender, mut once_receiver) = oneshot::channel::<u32>();
    let (watch_sender, mut watched) = watch::channel(0);
    let (all_sender, mut all) = broadcast::channel::<u32>(4);
    let token = CancellationToken::new();
    full.send(1).await.unwrap();

    for round in 0..20 {
        let held = (
            mutex.lock().await,
            rwlock.write().await,
            semaphore.acquire().await,
        );
        let winner = select! {
            () = async { for _ in 0..round { yield_now().await; } } => 1,
            _ = mutex.lock() => unreachable!("held"),
            _ = rwlock.read() => unreachable!("held"),
            _ = rwlock.write() => unreachable!("held"),
            _ = semaphore.acquire() => unreachable!("held"),
            _ = notify.notified() => unreachable!("nobody notifies"),
            _ = barrier.wait() => unreachable!("alone"),
            _ = once.get_or_init(pending) => unreachable!("never initialised"),
            _ = full.send(9) => unreachable!("full"),
            _ = empty.recv() => unreachable!("nothing is sent"),
            _ = single.recv() => unreachable!("nothing is sent"),
            _ = &mut once_receiver => unreachable!("nothing is sent"),
            _ = watched.changed() => unreachable!("nothing changes"),
            _ = all.recv() => unreachable!("nothing is sent"),
            _ = token.cancelled() => unreachable!("nobody cancels"),
            () = sleep(Duration::from_secs(60)) => unreachable!("time stands still"),
        };
        assert_eq!(winner, 1);
        drop(held);
    }

    // Each of them still works, for the first who comes.
    assert_eq!((*mutex.lock().await, *rwlock.write().await), (1, 2));
    semaphore.acquire().await.unwrap().forget();
    notify.notify_one();
    notify.notified().await;
    let (first, second) = join!(barrier.wait(), barrier.wait());
    assert!(first.is_leader() != second.is_leader());
    assert_eq!(*once.get_or_init(|| async { 3 }).await, 3);
    assert_eq!(full_receiver.recv().await, Some(1));
    assert!(full_receiver.try_recv().is_err(), "no dropped send got in");
    let (sent, received) = join!(empty_sender.send(4), empty.recv());
    assert_eq!((sent.is_ok(), received), (true, Some(4)));
    single_sender.send(5).await.unwrap();
    assert_eq!(single.recv().await, Some(5));
    once_sender.send(6).unwrap();
    assert_eq!(once_receiver.await, Ok(6));
    watch_sender.send(7).unwrap();
    watched.changed().await.unwrap();
    all_sender.send(8).unwrap();
    assert_eq!(all.recv().await.unwrap(), 8);
    token.cancel();
    token.cancelled().await;
}
