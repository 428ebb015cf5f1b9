//! Timers: messages of a process to itself.

use std::sync::Arc;
use std::time::Duration;

use windlass_actor::supervisor::{Backoff, ChildSpec, Strategy, Supervisor};
use windlass_actor::{
    ActorError, Context, ExitReason, Host, MOST_TIMERS, MailboxPolicy, Timer, TooManyTimers,
};
use windlass_runtime::time::{Instant, MissedTickBehavior, sleep};

use crate::support::{Count, Log, everywhere, expect_panics, real, simulated, simulated_once};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Starts a process that gives the test its context, and waits for its end.
async fn inside<M, F>(host: &Host, f: impl FnOnce(Context<M>) -> F)
where
    M: Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let exit = host.spawn(f).expect("a process").join().await;
    assert_eq!(exit.reason, ExitReason::Normal);
}

/// The messages of a process, each with the milliseconds since `began`.
async fn received<M: Send + 'static>(
    ctx: &mut Context<M>,
    began: Instant,
    number: usize,
) -> Vec<(u128, M)> {
    let mut all = Vec::new();
    while all.len() < number {
        let message = ctx.recv().await.expect("no cancel");
        all.push((began.elapsed().as_millis(), message));
    }
    all
}

#[test]
fn timers_send_at_their_times_and_in_the_order_of_setting() {
    simulated(|host| async move {
        inside(&host, |mut ctx| async move {
            let began = Instant::now();
            for (after, name) in [
                (20, "d"),
                (10, "b"),
                (20, "e"),
                (10, "c"),
                (0, "a"),
                (20, "f"),
            ] {
                ctx.send_after(ms(after), name).expect("room");
            }
            let all = received(&mut ctx, began, 6).await;
            assert_eq!(
                all,
                [
                    (0, "a"),
                    (10, "b"),
                    (10, "c"),
                    (20, "d"),
                    (20, "e"),
                    (20, "f")
                ]
            );
            // One for before those that wait.
            ctx.send_after(ms(100), "late").expect("room");
            sleep(ms(1)).await;
            ctx.send_after(ms(4), "soon").expect("room");
            let all = received(&mut ctx, began, 2).await;
            assert_eq!(all, [(25, "soon"), (120, "late")]);
        })
        .await;
    });
}

#[test]
fn timers_work_in_real_time() {
    real(2, |host| async move {
        inside(&host, |mut ctx| async move {
            let began = std::time::Instant::now();
            ctx.send_after(ms(30), 2).expect("room");
            ctx.send_after(ms(10), 1).expect("room");
            let ticks = ctx.send_every(ms(50), || 3).expect("room");
            assert_eq!(ctx.recv().await, Some(1));
            assert_eq!(ctx.recv().await, Some(2));
            assert!(began.elapsed() >= ms(30));
            assert_eq!(ctx.recv().await, Some(3));
            assert_eq!(ctx.recv().await, Some(3));
            assert!(began.elapsed() >= ms(100));
            assert!(ticks.cancel());
        })
        .await;
    });
}

#[test]
fn a_cancelled_timer_sends_nothing() {
    everywhere(|host| async move {
        inside(&host, |mut ctx| async move {
            let drops = Arc::new(());
            let first = ctx.send_after(ms(10), drops.clone()).expect("room");
            let second = ctx.send_after(ms(20), drops.clone()).expect("room");
            assert!(first.is_pending());
            assert!(first.cancel());
            assert!(!first.is_pending());
            assert!(!first.cancel(), "once");
            assert_eq!(Arc::strong_count(&drops), 2, "its message is dropped");
            drop(ctx.recv().await.expect("the second"));
            assert!(!second.is_pending());
            assert!(!second.cancel(), "it has fired");
            assert!(ctx.try_recv().is_none());
        })
        .await;
    });
}

#[test]
fn an_interval_ticks_exactly_until_it_is_cancelled() {
    simulated(|host| async move {
        inside(&host, |mut ctx| async move {
            let began = Instant::now();
            let mut number = 0;
            let ticks = ctx.send_every(ms(10), move || {
                number += 1;
                number
            });
            let ticks = ticks.expect("room");
            let all = received(&mut ctx, began, 3).await;
            assert_eq!(all, [(10, 1), (20, 2), (30, 3)]);
            // A cancel before the fourth fires, at a time of its own.
            sleep(ms(5)).await;
            assert!(ticks.is_pending());
            assert!(ticks.cancel());
            assert!(!ticks.is_pending());
            sleep(ms(100)).await;
            assert_eq!(ctx.try_recv(), None);
        })
        .await;
    });
}

/// When ticks of 10 ms come if the process takes none before 35 ms, and has room for one.
fn ticks_after_a_pause(missed: MissedTickBehavior, expected: [u128; 5]) {
    simulated(|host| async move {
        let process = host.process().mailbox(MailboxPolicy::Bounded(1));
        let process = process.spawn(move |mut ctx: Context<()>| async move {
            let began = Instant::now();
            ctx.send_every_with(ms(10), missed, || ()).expect("room");
            sleep(ms(35)).await;
            let all = received(&mut ctx, began, 5).await;
            let times: Vec<_> = all.into_iter().map(|(at, ())| at).collect();
            assert_eq!(times, expected, "{missed:?}");
        });
        let reason = process.expect("a process").join().await.reason;
        assert_eq!(reason, ExitReason::Normal);
    });
}

#[test]
fn missed_ticks_are_as_those_of_an_interval() {
    // The first waits in the mailbox, the second, of 20 ms, waits for room until 35 ms.
    ticks_after_a_pause(MissedTickBehavior::Burst, [35, 35, 35, 40, 50]);
    ticks_after_a_pause(MissedTickBehavior::Delay, [35, 35, 45, 55, 65]);
    ticks_after_a_pause(MissedTickBehavior::Skip, [35, 35, 40, 50, 60]);
}

#[test]
fn a_full_mailbox_makes_timers_wait_and_loses_none() {
    simulated(|host| async move {
        let process = host.process().mailbox(MailboxPolicy::Bounded(1));
        let process = process.spawn(|mut ctx: Context<u32>| async move {
            for number in 0..10 {
                ctx.send_after(ms(10), number).expect("room");
            }
            sleep(ms(50)).await;
            for number in 0..10 {
                assert_eq!(ctx.recv().await, Some(number));
            }
        });
        let reason = process.expect("a process").join().await.reason;
        assert_eq!(reason, ExitReason::Normal);
    });
}

#[test]
fn what_a_mailbox_can_never_hold_is_counted() {
    simulated(|host| async move {
        let process = host.process().mailbox_bytes(1_500);
        let process = process.spawn(|mut ctx: Context<[u8; 2_000]>| async move {
            ctx.send_after(ms(10), [0; 2_000]).expect("room");
            sleep(ms(20)).await;
            assert_eq!(ctx.address().dropped(), 1);
        });
        let reason = process.expect("a process").join().await.reason;
        assert_eq!(reason, ExitReason::Normal);
    });
}

#[test]
fn timers_end_with_the_process() {
    everywhere(|host| async move {
        let held = Arc::new(());
        let timers: Log<Timer> = Log::default();
        let (holds, log) = (held.clone(), timers.clone());
        let process = host.spawn(move |mut ctx: Context<Arc<()>>| async move {
            let again = holds.clone();
            log.add(ctx.send_after(ms(10_000), holds).expect("room"));
            log.add(
                ctx.send_every(ms(10_000), move || again.clone())
                    .expect("room"),
            );
        });
        process.expect("a process").join().await;
        // The task that had them is dropped at its next turn.
        while Arc::strong_count(&held) > 1 {
            sleep(ms(1)).await;
        }
        for timer in timers.all() {
            assert!(!timer.is_pending());
            assert!(!timer.cancel());
        }
    });
}

#[test]
fn a_restart_leaves_no_old_timer_behind() {
    simulated(|host| async move {
        let (log, starts) = (Log::default(), Count::default());
        let (seen, counted) = (log.clone(), starts.clone());
        let at_once = Backoff {
            first: Duration::ZERO,
            ..Backoff::default()
        };
        let child = ChildSpec::new("ticker", move |spawn| {
            let (log, start) = (seen.clone(), counted.up());
            let process = spawn.spawn(move |mut ctx: Context<usize>| async move {
                ctx.send_every(ms(10), move || start)?;
                ctx.send_after(ms(25), 1_000)?;
                while let Some(number) = ctx.recv().await {
                    log.add((start, number));
                    if number == 1_000 {
                        return Err(ActorError::new("again"));
                    }
                }
                Ok(())
            })?;
            Ok(process.pid())
        });
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .backoff(at_once)
            .child(child);
        let supervisor = supervisor.start(&host).expect("a supervisor");
        sleep(ms(65)).await;
        assert_eq!(
            log.all(),
            [
                (1, 1),
                (1, 1),
                (1, 1_000),
                (2, 2),
                (2, 2),
                (2, 1_000),
                (3, 3)
            ]
        );
        supervisor.cancel("enough");
        supervisor.join().await;
    });
}

#[test]
fn timers_are_bounded_and_hand_the_message_back() {
    // One seed: there are many of them.
    simulated_once(7, |host| async move {
        inside(&host, |mut ctx| async move {
            let first = ctx.send_after(ms(10), 0).expect("room");
            for number in 1..MOST_TIMERS {
                ctx.send_after(ms(10_000), number).expect("room");
            }
            let TooManyTimers(back) = ctx.send_after(ms(1), 7).expect_err("no room");
            assert_eq!(back, 7);
            let TooManyTimers(mut back) = ctx.send_every(ms(1), || 8).expect_err("no room");
            assert_eq!(back(), 8);
            assert!(first.cancel());
            ctx.send_after(ms(1), 9).expect("room again");
            assert_eq!(ctx.recv().await, Some(9));
        })
        .await;
    });
}

#[test]
fn a_panic_in_what_makes_the_message_kills_the_process() {
    expect_panics();
    everywhere(|host| async move {
        let process = host.spawn(|mut ctx: Context<()>| async move {
            let broken = || panic!("no message, on purpose");
            ctx.send_every(ms(1), broken).expect("room");
            while ctx.recv().await.is_some() {}
        });
        let reason = process.expect("a process").join().await.reason;
        assert_eq!(reason, ExitReason::Killed);
    });
}
