//! The numbered behaviours of channels and cancellation, for whoever waits: tasks, coroutines and
//! plain threads alike.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use windlass::coroutine::{self, wait};
use windlass::sync::mpmc::{self, Receiver, Sender};
use windlass::{CancellationToken, Runtime, time};

use crate::support::{eventually, in_time, runtime};

/// The kind of a waiter.
#[derive(Debug, Clone, Copy, PartialEq)]
enum WaiterKind {
    Task,
    Coroutine,
    Thread,
}

const ALL: [WaiterKind; 3] = [WaiterKind::Task, WaiterKind::Coroutine, WaiterKind::Thread];

/// Runs `f` as a task, a coroutine or a thread. `wait` does the right thing in the last two; a task
/// awaits what `future` makes of the same.
fn start<T, F>(who: WaiterKind, runtime: &Runtime, f: F) -> Started<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    match who {
        WaiterKind::Task => Started::Handle(runtime.spawn(f)),
        WaiterKind::Coroutine => {
            Started::Handle(coroutine::Builder::new().spawn_on(runtime.handle(), move || wait(f)))
        }
        WaiterKind::Thread => Started::Thread(thread::spawn(move || windlass::block_on(f))),
    }
}

enum Started<T> {
    Handle(windlass::task::JoinHandle<T>),
    Thread(thread::JoinHandle<T>),
}

impl<T: Send + 'static> Started<T> {
    fn join(self, what: &str) -> T {
        match self {
            Started::Handle(handle) => crate::support::join(what, handle),
            Started::Thread(thread) => in_time(what, move || thread.join().expect("no panic")),
        }
    }
}

#[test]
fn d4_a_close_tells_whoever_waits_exactly_once() {
    let runtime = runtime(2);
    for who in ALL {
        for count in [1, 4, 5, if who == WaiterKind::Thread { 50 } else { 1_000 }] {
            let (sender, receiver) = mpmc::buffered::<u32>(2);
            sender.try_send(1).expect("room");
            sender.try_send(2).expect("room");
            let waiting = Arc::new(AtomicUsize::new(0));
            let told: Vec<_> = (0..count)
                .map(|_| {
                    let (receiver, waiting) = (receiver.clone(), waiting.clone());
                    start(who, &runtime, async move {
                        waiting.fetch_add(1, Ordering::SeqCst);
                        let first = receiver.recv().await;
                        let again = receiver.recv().await;
                        (first, again)
                    })
                })
                .collect();
            eventually("all wait", || waiting.load(Ordering::SeqCst) == count);
            drop(sender);
            let mut got: Vec<u32> = told
                .into_iter()
                .flat_map(|told| {
                    let (first, again) = told.join("told");
                    [first, again]
                })
                .flatten()
                .collect();
            got.sort_unstable();
            assert_eq!(
                got,
                [1, 2],
                "what was buffered comes first: {who:?}, {count}"
            );
        }
    }
}

fn four_by_four(
    runtime: &Runtime,
    whose: [WaiterKind; 2],
    (sender, receiver): (Sender<u64>, Receiver<u64>),
) {
    const EACH: u64 = 2_000;
    let receivers: Vec<_> = (0..4)
        .map(|_| {
            let receiver = receiver.clone();
            start(whose[0], runtime, async move {
                let mut sum = 0;
                while let Some(number) = receiver.recv().await {
                    sum += number;
                }
                sum
            })
        })
        .collect();
    let senders: Vec<_> = (0..4)
        .map(|first| {
            let sender = sender.clone();
            start(whose[1], runtime, async move {
                for number in 0..EACH {
                    sender.send(number * 4 + first).await.expect("received");
                }
            })
        })
        .collect();
    drop((sender, receiver));
    for sender in senders {
        sender.join("a sender");
    }
    let sum: u64 = receivers
        .into_iter()
        .map(|receiver| receiver.join("a receiver"))
        .sum();
    assert_eq!(sum, (0..4 * EACH).sum::<u64>(), "{whose:?}: each once");
}

#[test]
fn d5_everybody_meets_everybody_at_a_rendezvous() {
    let runtime = runtime(2);
    for receives in ALL {
        for sends in ALL {
            four_by_four(&runtime, [receives, sends], mpmc::rendezvous());
        }
    }
}

#[test]
fn d6_a_select_has_one_outcome_whoever_makes_it() {
    let runtime = runtime(2);
    for who in ALL {
        for round in 0..50 {
            let channels: Vec<_> = (0..3).map(|_| mpmc::buffered::<u32>(1)).collect();
            let (senders, receivers): (Vec<_>, Vec<_>) = channels.into_iter().unzip();
            let token = CancellationToken::new();
            let (mine, cancelled) = (receivers.clone(), token.clone());
            let selecting = start(who, &runtime, async move {
                windlass::select! {
                    value = mine[0].recv() => value.map_or("closed", |_| "first"),
                    value = mine[1].recv() => value.map_or("closed", |_| "second"),
                    value = mine[2].recv() => value.map_or("closed", |_| "third"),
                    _ = cancelled.cancelled() => "cancelled",
                    _ = time::sleep(Duration::from_secs(60)) => "late",
                }
            });
            senders[0].try_send(1).expect("room");
            senders[1].try_send(2).expect("room");
            if round % 2 == 0 {
                token.cancel();
            }
            senders[2].close();
            let outcome = selecting.join("one of them");
            assert_ne!(outcome, "late");
            let left: Vec<u32> = receivers.iter().flat_map(|r| r.try_recv()).collect();
            let taken = usize::from(outcome == "first" || outcome == "second");
            assert_eq!(left.len(), 2 - taken, "{who:?}: {outcome} left {left:?}");
        }
    }
}

#[test]
fn d7_a_cancel_at_the_root_reaches_whoever_waits() {
    fn tree(token: &CancellationToken, depth: u32, leaves: &mut Vec<CancellationToken>) {
        leaves.push(token.clone());
        if depth > 0 {
            for _ in 0..3 {
                tree(&token.child(), depth - 1, leaves);
            }
        }
    }
    let runtime = runtime(2);
    for who in ALL {
        let root = CancellationToken::new();
        let mut tokens = Vec::new();
        tree(&root, 3, &mut tokens);
        let waiting = Arc::new(AtomicUsize::new(0));
        let count = tokens.len();
        let waits: Vec<_> = tokens
            .into_iter()
            .map(|token| {
                let waiting = waiting.clone();
                start(who, &runtime, async move {
                    waiting.fetch_add(1, Ordering::SeqCst);
                    token.cancelled().await;
                    Instant::now()
                })
            })
            .collect();
        eventually("all wait", || waiting.load(Ordering::SeqCst) == count);
        thread::sleep(Duration::from_millis(20));
        let began = Instant::now();
        root.cancel();
        let last = waits.into_iter().map(|wait| wait.join("told")).max();
        let took = last.map_or(Duration::ZERO, |last| last - began);
        // The contract says 5 ms; forty threads have to be woken, too.
        assert!(took < Duration::from_millis(50), "{who:?}: {took:?}");
    }
}
