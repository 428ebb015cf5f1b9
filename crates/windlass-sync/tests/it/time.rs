//! Timers: never early, cancelled without a trace, not stranded by a busy worker.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use windlass_runtime::Runtime;
use windlass_runtime::time::{
    self, Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout,
};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn runtime(workers: usize) -> Runtime {
    Runtime::builder()
        .workers(workers)
        .build()
        .expect("it builds")
}

/// Sleeps of all kinds, on `count` tasks each, begun at different moments; the worst lateness.
async fn sleep_all(phases: u64) -> Duration {
    let mut tasks = Vec::new();
    for length in [1, 10, 63, 64, 65, 100, 1000, 5000] {
        for phase in 0..phases {
            tasks.push(windlass_runtime::spawn(async move {
                let pause = Duration::from_micros(phase * 977 % 5000);
                sleep(pause).await;
                let began = Instant::now();
                sleep(ms(length)).await;
                let took = began.elapsed();
                assert!(took >= ms(length), "{length} ms took only {took:?}");
                took - ms(length)
            }));
        }
    }
    let mut worst = Duration::ZERO;
    for task in tasks {
        worst = worst.max(task.await.expect("it is never early"));
    }
    worst
}

#[test]
fn e6_no_timer_is_early_while_a_worker_is_blocked() {
    let runtime = runtime(2);
    let blocker = runtime.spawn(async { std::thread::sleep(ms(300)) });
    let worst = runtime.block_on(sleep_all(20));
    runtime.block_on(blocker).expect("it ends");
    // Ten times what a loaded machine of two cores shows; a stranded timer would be 300 ms late.
    assert!(worst < ms(250), "a timer was {worst:?} late");
}

#[test]
fn e6_timers_are_exact_under_the_simulator() {
    for seed in 0..20 {
        let worst = Runtime::simulated(seed).block_on(sleep_all(20));
        assert_eq!(worst, Duration::ZERO, "seed {seed}");
    }
}

#[test]
fn e6_an_earlier_timer_preempts_a_worker_that_sleeps_in_the_driver() {
    for workers in [1, 2] {
        let runtime = runtime(workers);
        let long = runtime.spawn(sleep(Duration::from_secs(3600)));
        // Everybody sleeps now, until the hour has passed.
        while runtime.snapshot().pool.unparked > 0 {
            std::thread::yield_now();
        }
        for _ in 0..20 {
            let began = Instant::now();
            runtime.block_on(sleep(ms(2)));
            let took = began.elapsed();
            assert!(took >= ms(2) && took < ms(500), "{took:?}");
        }
        long.abort();
        assert!(runtime.block_on(long).is_err());
    }
}

#[test]
fn timers_fire_while_all_workers_are_busy_for_ever() {
    let runtime = runtime(2);
    let stop = Arc::new(AtomicUsize::new(0));
    let busy: Vec<_> = (0..4)
        .map(|_| {
            let stop = stop.clone();
            runtime.spawn(async move {
                while stop.load(Ordering::Relaxed) == 0 {
                    windlass_runtime::task::yield_now().await;
                }
            })
        })
        .collect();
    let began = Instant::now();
    runtime.block_on(async {
        windlass_runtime::spawn(sleep(ms(20)))
            .await
            .expect("it fires")
    });
    assert!(began.elapsed() >= ms(20) && began.elapsed() < Duration::from_secs(2));
    stop.store(1, Ordering::Relaxed);
    busy.into_iter()
        .for_each(|task| runtime.block_on(task).expect("it ends"));
}

#[test]
fn timers_fire_while_every_worker_is_stuck() {
    let runtime = runtime(2);
    let gate = crate::support::Gate::default();
    let stuck = [gate.clone(), gate.clone()].map(|gate| {
        let inside = Arc::new(AtomicUsize::new(0));
        let told = inside.clone();
        let task = runtime.spawn(async move {
            told.store(1, Ordering::SeqCst);
            gate.wait();
        });
        crate::support::eventually("it is inside", || inside.load(Ordering::SeqCst) == 1);
        task
    });
    let began = Instant::now();
    for _ in 0..3 {
        runtime.block_on(sleep(ms(20)));
    }
    assert!(began.elapsed() >= ms(60) && began.elapsed() < Duration::from_secs(3));
    gate.open();
    for task in stuck {
        runtime.block_on(task).expect("it ends");
    }
    // And nothing is left behind: the workers tend the driver again.
    let began = Instant::now();
    runtime.block_on(sleep(ms(20)));
    assert!(began.elapsed() < Duration::from_secs(2));
}

#[test]
fn a_timer_is_not_stranded_behind_the_worker_that_left_the_driver() {
    let runtime = runtime(2);
    runtime.block_on(async {
        // The first wakes a worker out of the driver and keeps it; the second must still fire.
        let blocked = windlass_runtime::spawn(async {
            sleep(ms(10)).await;
            std::thread::sleep(ms(600));
        });
        let began = Instant::now();
        windlass_runtime::spawn(sleep(ms(30)))
            .await
            .expect("it fires");
        assert!(
            began.elapsed() < ms(500),
            "stranded for {:?}",
            began.elapsed()
        );
        blocked.await.expect("it ends");
    });
}

#[test]
fn zero_and_past_deadlines_are_over_at_once_and_centuries_are_not() {
    Runtime::simulated(0).block_on(async {
        let began = Instant::now();
        sleep(Duration::ZERO).await;
        sleep_until(Instant::now() - ms(5)).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        for long in [Duration::MAX, Duration::from_secs(600 * 365 * 86_400)] {
            let ended = timeout(Duration::from_secs(86_400 * 365), sleep(long)).await;
            assert!(ended.is_err());
        }
        // Beyond the wheel's horizon of 51 days, exactly.
        let began = Instant::now();
        let far = Duration::from_secs(86_400 * 200) + Duration::from_nanos(1);
        let near = windlass_runtime::spawn(sleep(Duration::from_secs(86_400 * 52)));
        sleep(far).await;
        assert_eq!(began.elapsed(), far);
        assert!(near.is_finished());
    });
}

#[test]
fn deadlines_on_every_level_come_in_order() {
    Runtime::simulated(3).block_on(async {
        let began = Instant::now();
        let mut tasks = Vec::new();
        let mut length = 1u64;
        while length < 1 << 50 {
            for off in [0, 1, 2, 63_999, 64_000, 64_001] {
                let wait = Duration::from_nanos(length + off);
                tasks.push(windlass_runtime::spawn(async move {
                    sleep(wait).await;
                    (wait, began.elapsed())
                }));
            }
            length = length * 3 / 2 + 1;
        }
        for task in tasks {
            let (wait, took) = task.await.expect("it fires");
            assert_eq!(wait, took);
        }
    });
}

#[test]
fn a_million_timers_cancelled_at_once_leave_nothing_behind() {
    let count = if cfg!(debug_assertions) {
        200_000
    } else {
        1_000_000
    };
    let runtime = runtime(2);
    runtime.block_on(async move {
        let mut cx = Context::from_waker(Waker::noop());
        let mut sleeps: Vec<_> = (0..count)
            .map(|index| Box::pin(sleep(ms(60_000 + index % 50_000))))
            .collect();
        for sleep in &mut sleeps {
            assert!(sleep.as_mut().poll(&mut cx).is_pending());
        }
    });
    assert_eq!(runtime.snapshot().timers, 0);
    runtime.block_on(sleep(ms(1)));
}

#[test]
fn a_timer_outlives_the_runtime_that_kept_it() {
    let first = runtime(1);
    let mut sleeping = Box::pin(sleep(ms(30)));
    let began = Instant::now();
    first.block_on(async {
        let mut cx = Context::from_waker(Waker::noop());
        assert!(sleeping.as_mut().poll(&mut cx).is_pending());
    });
    drop(first);
    runtime(1).block_on(sleeping);
    assert!(began.elapsed() >= ms(30));
}

#[test]
fn a_sleep_works_without_any_runtime() {
    let began = Instant::now();
    windlass_core::block_on(sleep(ms(5)));
    assert!(began.elapsed() >= ms(5));
}

#[test]
fn timeout_gives_the_output_or_drops_the_future() {
    Runtime::simulated(1).block_on(async {
        assert_eq!(timeout(ms(10), async { 7 }).await, Ok(7));
        let slow = timeout(ms(10), sleep(ms(11)));
        assert!(slow.await.is_err());
        let tie = timeout(ms(10), sleep(ms(10)));
        assert!(tie.await.is_ok(), "the future wins a tie");
    });
}

#[test]
fn a_reset_sleep_waits_for_the_new_moment() {
    Runtime::simulated(1).block_on(async {
        let began = Instant::now();
        let mut sleep = pin!(sleep(ms(10)));
        sleep.as_mut().await;
        let then = began + ms(50);
        sleep.as_mut().reset(then);
        sleep.as_mut().await;
        assert_eq!(began.elapsed(), ms(50));
    });
}

/// Ticks of a 10 ms interval after a stall of 35 ms.
async fn ticks_after_stall(missed: MissedTickBehavior) -> Vec<u128> {
    let began = Instant::now();
    let mut interval = interval(ms(10));
    interval.set_missed_tick_behavior(missed);
    interval.tick().await;
    sleep(ms(35)).await;
    let mut ticks = Vec::new();
    for _ in 0..5 {
        interval.tick().await;
        ticks.push(began.elapsed().as_millis());
    }
    ticks
}

#[test]
fn a_tick_counts_as_missed_if_it_is_more_than_five_milliseconds_late() {
    Runtime::simulated(1).block_on(async {
        for (late, next) in [(5, 20), (6, 26)] {
            let began = Instant::now();
            let mut interval = interval(ms(10));
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            interval.tick().await;
            sleep(ms(10 + late)).await;
            interval.tick().await;
            interval.tick().await;
            assert_eq!(began.elapsed(), ms(next), "{late} ms late");
        }
    });
}

#[test]
fn an_interval_can_be_told_when_its_next_tick_comes() {
    Runtime::simulated(1).block_on(async {
        let began = Instant::now();
        let mut interval = interval(ms(10));
        interval.tick().await;
        interval.reset_after(ms(3));
        interval.tick().await;
        assert_eq!(began.elapsed(), ms(3));
        interval.tick().await;
        assert_eq!(began.elapsed(), ms(13));
        interval.reset_immediately();
        interval.tick().await;
        assert_eq!(began.elapsed(), ms(13));
        interval.reset_at(began + ms(50));
        interval.tick().await;
        assert_eq!(began.elapsed(), ms(50));
    });
}

#[test]
fn missed_ticks_burst_delay_or_are_skipped() {
    Runtime::simulated(1).block_on(async {
        let burst = ticks_after_stall(MissedTickBehavior::Burst).await;
        assert_eq!(burst, [35, 35, 35, 40, 50]);
        let delay = ticks_after_stall(MissedTickBehavior::Delay).await;
        assert_eq!(delay, [35, 45, 55, 65, 75]);
        let skip = ticks_after_stall(MissedTickBehavior::Skip).await;
        assert_eq!(skip, [35, 40, 50, 60, 70]);
    });
}

#[test]
#[should_panic(expected = "an interval of zero")]
fn an_interval_of_zero_is_refused() {
    let _ = interval(Duration::ZERO);
}

#[test]
fn the_outer_deadline_holds_inside() {
    Runtime::simulated(1).block_on(async {
        let began = Instant::now();
        let outer = began + ms(10);
        let inner = time::deadline(outer, async {
            time::deadline(began + ms(100), sleep(ms(50))).await
        });
        assert!(matches!(inner.await, Err(_) | Ok(Err(_))));
        assert_eq!(began.elapsed(), ms(10));
        assert_eq!(time::current_deadline(), None);
    });
}

#[test]
fn precise_sleeps_are_not_early() {
    let runtime = runtime(1);
    runtime.block_on(async {
        for _ in 0..5 {
            let at = Instant::now() + Duration::from_micros(1500);
            time::precise::sleep_until_precise(at).await;
            assert!(Instant::now() >= at);
        }
    });
    let at = Instant::now() + Duration::from_micros(1500);
    time::precise::block_until(at);
    assert!(Instant::now() >= at);
}

#[test]
fn a_dropped_waker_of_a_sleep_is_replaced() {
    // Polled with one waker, then with another: the second is woken.
    let runtime = runtime(1);
    runtime.block_on(async {
        let mut sleeping = pin!(sleep(ms(5)));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(sleeping.as_mut().poll(&mut cx).is_pending());
        std::future::poll_fn(|cx| match sleeping.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => Poll::Pending,
        })
        .await;
    });
}

#[test]
fn moments_go_to_the_standard_clock_and_back() {
    let now = Instant::now();
    let later = now + Duration::from_secs(3);
    assert_eq!(Instant::from_std(later.into_std()), later);
    let distance = later.into_std() - now.into_std();
    assert_eq!(distance, Duration::from_secs(3));
    let looked = std::time::Instant::now();
    let own = Instant::from(looked);
    assert!(own.saturating_duration_since(now) < Duration::from_secs(60));
    assert!(own + Duration::from_millis(1) >= now, "one clock");
    let never = std::time::Instant::from(Instant::never());
    assert!(never > looked + Duration::from_secs(86_400 * 365));
}
