//! Locks, semaphores and meeting points.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::task::{Poll, Wake, Waker};
use std::thread;

use windlass_core::block_on;
use windlass_runtime::task::yield_now;
use windlass_sync::{
    lock::Barrier, lock::Mutex, lock::Notify, lock::OnceCell, lock::RwLock, lock::Semaphore,
    lock::SetError, lock::TryAcquireError,
};

use crate::support::{
    counting, expect_panics, in_time, join, panic_message, poll_once, poll_with, runtime, wait,
};

// ---- semaphore ----

#[test]
fn a_big_request_is_served_before_small_ones_behind_it() {
    let semaphore = Semaphore::new(1);
    let mut big = Box::pin(semaphore.acquire_many(3));
    let mut small = Box::pin(semaphore.acquire());
    assert!(poll_once(&mut big).is_pending());
    assert!(
        poll_once(&mut small).is_pending(),
        "one is free, but not for it"
    );
    assert_eq!(
        semaphore.try_acquire().unwrap_err(),
        TryAcquireError::NoPermits,
        "an attempt does not overtake either"
    );
    semaphore.add_permits(1);
    assert!(poll_once(&mut big).is_pending());
    semaphore.add_permits(1);
    let Poll::Ready(Ok(permits)) = poll_once(&mut big) else {
        panic!("three are free")
    };
    assert_eq!(permits.num_permits(), 3);
    assert!(poll_once(&mut small).is_pending());
    drop(permits);
    assert!(poll_once(&mut small).is_ready());
}

#[test]
fn a_dropped_wait_gives_back_what_it_was_given() {
    let semaphore = Semaphore::new(0);
    drop(semaphore.acquire());
    let mut waiting = Box::pin(semaphore.acquire());
    assert!(poll_once(&mut waiting).is_pending());
    drop(waiting);
    semaphore.add_permits(1);
    assert_eq!(
        semaphore.available_permits(),
        1,
        "nobody was waiting any more"
    );
    semaphore.try_acquire().unwrap().forget();

    let (mut first, mut second) = (Box::pin(semaphore.acquire()), Box::pin(semaphore.acquire()));
    let ((_, first_waker), (woken, second_waker)) = (counting(), counting());
    assert!(poll_with(first.as_mut(), &first_waker).is_pending());
    assert!(poll_with(second.as_mut(), &second_waker).is_pending());
    semaphore.add_permits(1);
    assert_eq!(woken.count(), 0);
    drop(first);
    assert_eq!(
        woken.count(),
        1,
        "the permit of the dropped wait goes to the next"
    );
    let permit = poll_once(&mut second);
    assert!(matches!(permit, Poll::Ready(Ok(_))));
    drop((permit, second));
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn a_dropped_big_request_lets_those_behind_it_pass() {
    let semaphore = Semaphore::new(1);
    let mut big = Box::pin(semaphore.acquire_many(2));
    let mut small = Box::pin(semaphore.acquire());
    assert!(poll_once(&mut big).is_pending() && poll_once(&mut small).is_pending());
    drop(big);
    assert!(poll_once(&mut small).is_ready());
}

#[test]
fn a_closed_semaphore_tells_each_waiter_once() {
    for count in [1, 4, 32, 33, 1000] {
        let semaphore = Semaphore::new(0);
        let mut waits: Vec<_> = (0..count)
            .map(|_| (Box::pin(semaphore.acquire()), counting()))
            .collect();
        for (wait, (_, waker)) in &mut waits {
            assert!(poll_with(wait.as_mut(), waker).is_pending());
        }
        semaphore.close();
        semaphore.close();
        for (wait, (woken, waker)) in &mut waits {
            assert_eq!(woken.count(), 1);
            assert!(matches!(
                poll_with(wait.as_mut(), waker),
                Poll::Ready(Err(_))
            ));
        }
        assert_eq!(
            semaphore.try_acquire().unwrap_err(),
            TryAcquireError::Closed
        );
    }
}

#[test]
fn permits_can_be_forgotten_and_are_limited() {
    let semaphore = Arc::new(Semaphore::new(3));
    semaphore.try_acquire_many(2).unwrap().forget();
    assert_eq!(semaphore.forget_permits(5), 1);
    assert_eq!(semaphore.available_permits(), 0);
    semaphore.add_permits(1);
    let owned = semaphore.clone().try_acquire_owned().unwrap();
    assert!(semaphore.try_acquire().is_err());
    drop(owned);
    let message = panic_message(|| semaphore.add_permits(Semaphore::MAX_PERMITS));
    assert!(message.contains("MAX_PERMITS"), "{message}");
    assert_eq!(semaphore.available_permits(), 1, "the panic broke nothing");
}

#[test]
fn permits_are_never_more_than_there_are() {
    let runtime = runtime(4);
    let semaphore = Arc::new(Semaphore::new(3));
    let (inside, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let tasks: Vec<_> = (0..16)
        .map(|number| {
            let (semaphore, inside, most) = (semaphore.clone(), inside.clone(), most.clone());
            runtime.spawn(async move {
                for round in 0..500 {
                    let wanted = 1 + (number + round) % 3;
                    if round % 7 == 0 {
                        // Begins to wait and gives up, in whatever state that is.
                        let mut wait = pin!(semaphore.acquire_many(wanted));
                        let _ = poll_with(wait.as_mut(), Waker::noop());
                        continue;
                    }
                    let permit = semaphore.acquire_many(wanted).await.unwrap();
                    let now = inside.fetch_add(wanted, Ordering::SeqCst) + wanted;
                    most.fetch_max(now, Ordering::SeqCst);
                    yield_now().await;
                    inside.fetch_sub(wanted, Ordering::SeqCst);
                    drop(permit);
                }
            })
        })
        .collect();
    for task in tasks {
        join("a task that takes permits", task);
    }
    assert!(most.load(Ordering::SeqCst) <= 3);
    assert_eq!(semaphore.available_permits(), 3);
}

/// Panics when woken.
struct Trap;

impl Wake for Trap {
    fn wake(self: Arc<Self>) {
        panic!("woken, on purpose");
    }
}

#[test]
fn a_waker_that_panics_does_not_keep_the_others_from_being_told() {
    let semaphore = Semaphore::new(0);
    let mut trapped = Box::pin(semaphore.acquire());
    assert!(poll_with(trapped.as_mut(), &Waker::from(Arc::new(Trap))).is_pending());
    let mut waits: Vec<_> = (0..100)
        .map(|_| (Box::pin(semaphore.acquire()), counting()))
        .collect();
    for (wait, (_, waker)) in &mut waits {
        assert!(poll_with(wait.as_mut(), waker).is_pending());
    }
    let message = panic_message(|| semaphore.close());
    assert!(message.contains("on purpose"));
    for (wait, (woken, waker)) in &mut waits {
        assert_eq!(woken.count(), 1);
        assert!(poll_with(wait.as_mut(), waker).is_ready());
    }
}

// ---- mutex ----

#[test]
fn an_unlock_hands_the_lock_to_the_first_who_waits() {
    let mutex = Mutex::new(());
    let held = mutex.try_lock().unwrap();
    let (mut first, mut second) = (Box::pin(mutex.lock()), Box::pin(mutex.lock()));
    assert!(poll_once(&mut first).is_pending() && poll_once(&mut second).is_pending());
    drop(held);
    assert!(mutex.try_lock().is_err(), "it was handed over already");
    assert!(poll_once(&mut second).is_pending(), "not its turn");
    let Poll::Ready(guard) = poll_once(&mut first) else {
        panic!("its turn")
    };
    drop(guard);
    assert!(poll_once(&mut second).is_ready());
}

#[test]
fn a_dropped_wait_passes_the_lock_on() {
    let mutex = Mutex::new(());
    let held = mutex.try_lock().unwrap();
    let (mut first, mut second) = (Box::pin(mutex.lock()), Box::pin(mutex.lock()));
    assert!(poll_once(&mut first).is_pending() && poll_once(&mut second).is_pending());
    drop(held);
    drop(first);
    assert!(poll_once(&mut second).is_ready());
    drop(second);
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn a_panic_releases_the_lock_and_keeps_the_value() {
    expect_panics();
    let runtime = runtime(2);
    let mutex = Arc::new(Mutex::new(1));
    let rwlock = Arc::new(RwLock::new(1));
    let (in_mutex, in_rwlock) = (mutex.clone(), rwlock.clone());
    let task = runtime.spawn(async move {
        *in_mutex.lock().await = 2;
        let mut guard = in_mutex.lock().await;
        let mut writer = in_rwlock.write().await;
        *guard = 3;
        *writer = 3;
        panic!("holding two locks, on purpose");
    });
    let ended: Result<(), _> = wait("the task that panics", task);
    assert!(ended.is_err());
    assert_eq!(*mutex.try_lock().expect("released"), 3);
    assert_eq!(*rwlock.try_write().expect("released"), 3);
}

#[test]
fn threads_and_tasks_share_a_lock() {
    let runtime = runtime(2);
    let count = Arc::new(Mutex::new(0));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let count = count.clone();
            thread::spawn(move || {
                for _ in 0..5_000 {
                    *count.blocking_lock() += 1;
                }
            })
        })
        .collect();
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let count = count.clone();
            runtime.spawn(async move {
                for _ in 0..5_000 {
                    let mut guard = count.clone().lock_owned().await;
                    *guard += 1;
                }
            })
        })
        .collect();
    for task in tasks {
        join("a counting task", task);
    }
    in_time("the counting threads", move || {
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
    assert_eq!(Arc::into_inner(count).unwrap().into_inner(), 30_000);
}

#[test]
fn a_lock_can_guard_an_unsized_value() {
    let boxed: Box<Mutex<[u8]>> = Box::new(Mutex::new([1, 2, 3]));
    assert_eq!(boxed.try_lock().unwrap().len(), 3);
}

#[test]
fn debug_does_not_block() {
    let mutex = Mutex::new(5);
    assert!(format!("{mutex:?}").contains('5'));
    let held = mutex.try_lock().unwrap();
    assert!(format!("{mutex:?}").contains("locked"));
    drop(held);
    let rwlock = RwLock::new(5);
    let held = rwlock.try_write().unwrap();
    assert!(format!("{rwlock:?}").contains("locked"));
    drop(held);
}

// ---- rwlock ----

#[test]
fn readers_share_and_a_waiting_writer_holds_up_later_readers() {
    let lock = RwLock::new(0);
    let (first, second) = (lock.try_read().unwrap(), lock.try_read().unwrap());
    let mut writer = Box::pin(lock.write());
    assert!(poll_once(&mut writer).is_pending());
    let mut late = Box::pin(lock.read());
    assert!(poll_once(&mut late).is_pending(), "the writer came first");
    assert!(lock.try_read().is_err());
    drop(first);
    assert!(poll_once(&mut writer).is_pending());
    drop(second);
    let Poll::Ready(mut guard) = poll_once(&mut writer) else {
        panic!("no reader is left")
    };
    *guard = 1;
    assert!(poll_once(&mut late).is_pending());
    let mut other_writer = Box::pin(lock.write());
    assert!(poll_once(&mut other_writer).is_pending());
    let reader = guard.downgrade();
    let Poll::Ready(late) = poll_once(&mut late) else {
        panic!("a downgraded writer lets readers in")
    };
    assert_eq!((*reader, *late), (1, 1));
    assert!(poll_once(&mut other_writer).is_pending());
    drop((reader, late));
    assert!(poll_once(&mut other_writer).is_ready());
}

// ---- notify ----

#[test]
fn one_wake_up_is_kept_and_no_more() {
    let notify = Notify::new();
    notify.notify_one();
    notify.notify_one();
    assert!(poll_once(&mut Box::pin(notify.notified())).is_ready());
    assert!(poll_once(&mut Box::pin(notify.notified())).is_pending());
    notify.notify_waiters();
    assert!(poll_once(&mut Box::pin(notify.notified())).is_pending());
}

#[test]
fn wake_ups_go_to_waiters_in_order_and_past_dropped_ones() {
    let notify = Notify::new();
    let mut waits: Vec<_> = (0..3).map(|_| Box::pin(notify.notified())).collect();
    for wait in &mut waits {
        assert!(poll_once(wait).is_pending());
    }
    notify.notify_one();
    assert!(poll_once(&mut waits[1]).is_pending());
    drop(waits.remove(0));
    assert!(poll_once(&mut waits[0]).is_ready(), "passed on");
    assert!(poll_once(&mut waits[1]).is_pending());
    notify.notify_one();
    drop(waits.remove(1));
    assert!(
        poll_once(&mut Box::pin(notify.notified())).is_ready(),
        "kept"
    );
}

#[test]
fn a_broadcast_reaches_futures_that_were_only_made() {
    let notify = Notify::new();
    let mut made = Box::pin(notify.notified());
    let mut waits: Vec<_> = (0..100).map(|_| Box::pin(notify.notified())).collect();
    for wait in &mut waits {
        assert!(poll_once(wait).is_pending());
    }
    notify.notify_waiters();
    let mut late = Box::pin(notify.notified());
    assert!(poll_once(&mut made).is_ready());
    assert!(waits.iter_mut().all(|wait| poll_once(wait).is_ready()));
    assert!(poll_once(&mut late).is_pending());
    drop(late);

    let unpolled = Box::pin(notify.notified());
    let mut dropped = Box::pin(notify.notified());
    assert!(poll_once(&mut dropped).is_pending());
    notify.notify_waiters();
    drop((unpolled, dropped));
    let mut next = Box::pin(notify.notified());
    assert!(
        poll_once(&mut next).is_pending(),
        "a broadcast is not passed on"
    );
}

#[test]
fn an_enabled_future_is_in_the_queue() {
    let notify = Notify::new();
    let mut enabled = Box::pin(notify.notified());
    assert!(!enabled.as_mut().enable());
    let mut second = Box::pin(notify.notified());
    assert!(poll_once(&mut second).is_pending());
    notify.notify_one();
    assert!(poll_once(&mut second).is_pending(), "it came second");
    assert!(enabled.as_mut().enable());
    assert!(poll_once(&mut enabled).is_ready());

    drop(second);
    notify.notify_one();
    let mut takes = Box::pin(notify.notified());
    assert!(takes.as_mut().enable());
    assert!(
        poll_once(&mut Box::pin(notify.notified())).is_pending(),
        "taken"
    );
    drop(takes);
    assert!(
        poll_once(&mut Box::pin(notify.notified())).is_ready(),
        "given back"
    );
}

// ---- barrier ----

#[test]
fn a_barrier_has_one_leader_each_time() {
    let runtime = runtime(4);
    let barrier = Arc::new(Barrier::new(8));
    let arrived = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (barrier, arrived) = (barrier.clone(), arrived.clone());
            runtime.spawn(async move {
                let mut led = 0;
                for round in 1..=100 {
                    arrived.fetch_add(1, Ordering::SeqCst);
                    led += usize::from(barrier.wait().await.is_leader());
                    assert!(arrived.load(Ordering::SeqCst) >= 8 * round, "all are here");
                }
                led
            })
        })
        .collect();
    let leaders: usize = tasks.into_iter().map(|task| join("a waiter", task)).sum();
    assert_eq!(leaders, 100);
}

#[test]
fn a_dropped_wait_does_not_count_at_the_barrier() {
    let barrier = Barrier::new(2);
    let mut dropped = Box::pin(barrier.wait());
    assert!(poll_once(&mut dropped).is_pending());
    drop(dropped);
    let mut first = Box::pin(barrier.wait());
    assert!(poll_once(&mut first).is_pending());
    let Poll::Ready(second) = poll_once(&mut Box::pin(barrier.wait())) else {
        panic!("two are here")
    };
    assert!(second.is_leader());
    let Poll::Ready(first) = poll_once(&mut first) else {
        panic!("it has opened")
    };
    assert!(!first.is_leader());
}

// ---- once cell ----

#[test]
fn a_failed_cancelled_or_panicking_initialiser_passes_the_turn_on() {
    let cell = OnceCell::new();
    let mut cancelled = Box::pin(cell.get_or_init(std::future::pending::<u32>));
    assert!(poll_once(&mut cancelled).is_pending());
    assert_eq!(cell.set(1), Err(SetError::InitializingError(1)));
    let mut fails = Box::pin(cell.get_or_try_init(async || Err("no")));
    let mut panics = Box::pin(cell.get_or_init(async || panic!("initialising, on purpose")));
    let mut makes = Box::pin(cell.get_or_init(async || 7));
    let mut late = Box::pin(cell.get_or_init(async || 8));
    assert!(poll_once(&mut fails).is_pending());
    assert!(poll_once(&mut panics).is_pending());
    assert!(poll_once(&mut makes).is_pending());
    assert!(poll_once(&mut late).is_pending());
    drop(cancelled);
    assert_eq!(poll_once(&mut fails), Poll::Ready(Err("no")));
    assert!(panic_message(|| poll_once(&mut panics)).contains("on purpose"));
    drop(panics);
    assert!(poll_once(&mut late).is_pending(), "not its turn");
    assert_eq!(poll_once(&mut makes), Poll::Ready(&7));
    assert_eq!(poll_once(&mut late), Poll::Ready(&7));
    assert_eq!(cell.get(), Some(&7));
    assert_eq!(cell.set(9), Err(SetError::AlreadyInitializedError(9)));
    drop((fails, makes, late));
    assert_eq!(cell.into_inner(), Some(7));
}

// ---- budget ----

#[test]
fn a_loop_over_a_free_lock_gives_way() {
    let runtime = runtime(1);
    let ran = Arc::new(AtomicBool::new(false));
    let seen = ran.clone();
    let task = runtime.spawn(async move {
        let other = windlass_runtime::spawn(async move { ran.store(true, Ordering::SeqCst) });
        let mutex = Mutex::new(0_u64);
        while !seen.load(Ordering::SeqCst) {
            *mutex.lock().await += 1;
        }
        other.await.unwrap();
    });
    join("the loop that must give way", task);
}

#[test]
fn a_plain_thread_waits_for_a_task() {
    let runtime = runtime(1);
    let (barrier, notify) = (Arc::new(Barrier::new(2)), Arc::new(Notify::new()));
    let (at_barrier, notifies) = (barrier.clone(), notify.clone());
    let task = runtime.spawn(async move {
        at_barrier.wait().await;
        notifies.notify_one();
    });
    in_time("the thread", move || {
        barrier.blocking_wait();
        notify.blocking_notified();
        let semaphore = Semaphore::new(2);
        assert_eq!(semaphore.blocking_acquire_many(2).unwrap().num_permits(), 2);
        let lock = RwLock::new(1);
        *lock.blocking_write() += 1;
        assert_eq!(*lock.blocking_read(), 2);
        assert_eq!(block_on(async { *lock.read().await }), 2);
    });
    join("the task", task);
}
