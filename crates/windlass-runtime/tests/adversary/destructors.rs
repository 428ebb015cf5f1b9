//! Destructors of outputs and bodies that keep handles, shields and wakers of the dying task.

use std::future::{Future, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use windlass_core::task::JoinHandle;
use windlass_runtime::task::{LocalSet, shield, yield_now};
use windlass_runtime::time;
use windlass_sync::channel::{broadcast, mpsc, oneshot, watch};

use crate::support::{eventually, join, ms, quiet, runtime};

type Kept = Pin<Box<dyn Future<Output = ()> + Send>>;
type Keep = Arc<Mutex<Vec<Kept>>>;

/// Its destructor raises a shield on the task that it runs in, and keeps it.
struct Bomb(Keep);

impl Drop for Bomb {
    fn drop(&mut self) {
        let mut kept: Kept = Box::pin(shield(pending()));
        let _ = kept.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        self.0.lock().unwrap().push(kept);
    }
}

/// Lets go of what was kept while new tasks use the same blocks.
fn let_go_beside_new_tasks(kept: &Keep) {
    let handles: Vec<_> = (0..100)
        .map(|_| {
            windlass_runtime::spawn(async {
                time::sleep(ms(50)).await;
                7
            })
        })
        .collect();
    std::thread::sleep(ms(10));
    kept.lock().unwrap().clear();
    for handle in handles {
        assert_eq!(join("a task in a recycled block", handle), 7);
    }
}

#[test]
fn the_output_of_a_detached_task_may_keep_a_shield() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let kept = Keep::default();
    for _ in 0..100 {
        let bomb = Bomb(kept.clone());
        windlass_runtime::spawn(async move { bomb }).detach();
    }
    eventually("all outputs are dropped", || {
        kept.lock().unwrap().len() == 100
    });
    let_go_beside_new_tasks(&kept);
}

#[test]
fn the_output_of_a_local_task_may_keep_a_shield() {
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let kept = Keep::default();
    let set = LocalSet::new();
    for _ in 0..100 {
        let bomb = Bomb(kept.clone());
        drop(set.spawn_local(async move { bomb }));
    }
    windlass_core::block_on(set.run_until(async {
        for _ in 0..10 {
            yield_now().await;
        }
    }));
    assert_eq!(kept.lock().unwrap().len(), 100);
    let_go_beside_new_tasks(&kept);
}

#[test]
fn the_payload_of_a_panic_may_keep_a_shield() {
    quiet();
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let kept = Keep::default();
    for _ in 0..100 {
        let bomb = Bomb(kept.clone());
        windlass_runtime::spawn(async move { panic_any(bomb) }).detach();
    }
    eventually("all payloads are dropped", || {
        kept.lock().unwrap().len() == 100
    });
    let_go_beside_new_tasks(&kept);
}

#[test]
fn the_body_of_a_cancelled_task_may_keep_a_shield_and_a_waker() {
    let runtime = runtime(2);
    let _entered = runtime.enter();
    let kept = Keep::default();
    let wakers = Arc::new(Mutex::new(Vec::new()));
    let handles: Vec<_> = (0..100)
        .map(|_| {
            let (bomb, wakers) = (Bomb(kept.clone()), wakers.clone());
            windlass_runtime::spawn(async move {
                let _bomb = bomb;
                poll_fn(|cx| {
                    wakers.lock().unwrap().push(cx.waker().clone());
                    Poll::<()>::Pending
                })
                .await;
            })
        })
        .collect();
    eventually("all wait", || wakers.lock().unwrap().len() == 100);
    for handle in handles {
        handle.abort();
        assert!(windlass_core::block_on(handle).is_err());
    }
    for waker in wakers.lock().unwrap().drain(..) {
        waker.wake();
    }
    let_go_beside_new_tasks(&kept);
}

#[test]
fn an_output_whose_destructor_panics_takes_nobody_along() {
    quiet();
    struct Loud;
    impl Drop for Loud {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic!("in a destructor, on purpose");
            }
        }
    }
    let runtime = runtime(1);
    let _entered = runtime.enter();
    for _ in 0..100 {
        windlass_runtime::spawn(async { Loud }).detach();
        drop(windlass_runtime::spawn(async {
            let _loud = Loud;
            yield_now().await;
        }));
    }
    let after = windlass_runtime::spawn(async { 5 });
    assert_eq!(join("a task behind them", after), 5);
}

#[test]
fn a_joiner_whose_waker_panics_takes_nobody_along() {
    quiet();
    struct Panics;
    impl std::task::Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("in a waker, on purpose");
        }
    }
    let runtime = runtime(1);
    let _entered = runtime.enter();
    let (sender, receiver) = windlass_sync::channel::oneshot::channel::<()>();
    let mut handle = windlass_runtime::spawn(async move { receiver.await.is_ok() });
    let waker = Waker::from(Arc::new(Panics));
    let polled = Pin::new(&mut handle).poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    let _ = catch_unwind(AssertUnwindSafe(|| sender.send(())));
    assert!(join("the task whose joiner's waker panics", handle));
    let after = windlass_runtime::spawn(async { 5 });
    assert_eq!(join("a task behind it", after), 5);
}

/// Long enough to overflow any stack that it is dropped on by plain recursion.
const CHAIN: usize = 200_000;

#[test]
fn a_long_chain_of_outputs_is_dropped() {
    struct Link(#[allow(dead_code, reason = "is there to be dropped")] Option<JoinHandle<Link>>);
    let runtime = runtime(2);
    let mut chain = runtime.spawn(async { Link(None) });
    for _ in 0..CHAIN {
        let rest = chain;
        chain = runtime.spawn(async move { Link(Some(rest)) });
    }
    eventually("the last has ended", || chain.is_finished());
    drop(chain);
    // And on a worker, with the output of a task that nobody waits for.
    let mut chain = runtime.spawn(async { Link(None) });
    for _ in 0..CHAIN {
        let rest = chain;
        chain = runtime.spawn(async move { Link(Some(rest)) });
    }
    chain.detach();
    assert_eq!(join("a task behind it", runtime.spawn(async { 5 })), 5);
}

#[test]
fn a_long_chain_of_receivers_is_dropped() {
    struct Once(
        #[allow(dead_code, reason = "is there to be dropped")] Option<oneshot::Receiver<Once>>,
    );
    struct Many(
        #[allow(dead_code, reason = "is there to be dropped")] Option<mpsc::Receiver<Many>>,
    );
    let mut once = Once(None);
    let mut many = Many(None);
    for _ in 0..CHAIN {
        let (sender, receiver) = oneshot::channel();
        assert!(sender.send(once).is_ok());
        once = Once(Some(receiver));
        let (sender, receiver) = mpsc::buffered(1);
        assert!(sender.try_send(many).is_ok());
        many = Many(Some(receiver));
    }
    drop(once);
    struct Cast(
        #[allow(dead_code, reason = "is there to be dropped")] Option<broadcast::Receiver<Shared>>,
    );
    type Shared = Arc<Cast>;
    let mut cast = Arc::new(Cast(None));
    for _ in 0..CHAIN {
        let (sender, receiver) = broadcast::channel(1);
        assert!(sender.send(cast).is_ok());
        cast = Arc::new(Cast(Some(receiver)));
    }
    drop(cast);
    // On a small stack.
    let runtime = runtime(1);
    let dropped =
        windlass_runtime::coroutine::Builder::new().spawn_on(runtime.handle(), move || drop(many));
    join("a chain that a coroutine drops", dropped);
}

#[test]
fn a_join_waker_whose_drop_panics_takes_nobody_along() {
    quiet();
    struct PanicsInDrop;
    impl std::task::Wake for PanicsInDrop {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for PanicsInDrop {
        fn drop(&mut self) {
            panic!("in the drop of a waker, on purpose");
        }
    }
    let runtime = runtime(1);
    {
        let mut handle = std::pin::pin!(runtime.spawn(time::sleep(ms(20))));
        for _ in 0..2 {
            let _ = catch_unwind(AssertUnwindSafe(|| {
                let waker = Waker::from(Arc::new(PanicsInDrop));
                let _ = handle.as_mut().poll(&mut Context::from_waker(&waker));
            }));
        }
    }
    std::thread::sleep(ms(60));
    assert_eq!(join("a task behind it", runtime.spawn(async { 5 })), 5);
}

#[test]
fn a_long_chain_of_watched_values_is_dropped() {
    struct Watched(
        #[allow(dead_code, reason = "is there to be dropped")] Option<watch::Receiver<Watched>>,
    );
    let mut watched = Watched(None);
    for _ in 0..CHAIN {
        watched = Watched(Some(watch::channel(watched).1));
    }
    drop(watched);
}

#[test]
fn a_long_chain_of_join_wakers_is_dropped() {
    /// Holds the handle of a task that wakes another of its kind.
    struct Wakes(
        #[allow(dead_code, reason = "is there to be dropped")] Mutex<Option<JoinHandle<()>>>,
    );
    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {}
    }
    let runtime = runtime(1);
    let mut chain = None;
    for _ in 0..CHAIN {
        let waker = Waker::from(Arc::new(Wakes(Mutex::new(chain.take()))));
        let mut waits = runtime.spawn(std::future::pending());
        let polled = Pin::new(&mut waits).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        chain = Some(waits);
    }
    drop(chain);
}

#[test]
fn a_long_chain_of_local_sets_is_dropped() {
    // Not as long: each has memory of its own, and their destructors look at each of its tasks.
    let _runtime = runtime(1);
    let mut set = LocalSet::new();
    for _ in 0..CHAIN / 20 {
        let inner = std::mem::take(&mut set);
        drop(set.spawn_local(async move {
            let _inner = inner;
            std::future::pending::<()>().await;
        }));
    }
    drop(set);
}
