//! What the tests share: bounded waits, gates, counted drops, and quiet panics.
#![allow(
    dead_code,
    reason = "the tests of several crates share it, and each uses a part"
)]

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, Once, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use windlass_core::task::JoinHandle;
use windlass_runtime::Runtime;

/// How long a test waits for what must happen. Only a broken promise takes as long as this.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A runtime with this many workers, and defaults otherwise.
pub(crate) fn runtime(workers: usize) -> Runtime {
    Runtime::builder()
        .workers(workers)
        .build()
        .expect("a runtime")
}

/// Looks until `condition` holds; fails with `what` if it does not in time.
#[track_caller]
pub(crate) fn eventually(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(
            began.elapsed() < PATIENCE,
            "not within {PATIENCE:?}: {what}"
        );
        thread::sleep(Duration::from_millis(1));
    }
}

/// Runs `f` on a thread of its own, so that a hang is a failure with a name.
#[track_caller]
pub(crate) fn in_time<T: Send + 'static>(what: &str, f: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let _ = sender.send(catch_unwind(AssertUnwindSafe(f)));
    });
    match receiver.recv_timeout(PATIENCE) {
        Ok(Ok(value)) => value,
        Ok(Err(payload)) => panic!("{what}: panicked: {}", text(&*payload)),
        Err(_) => panic!("not within {PATIENCE:?}: {what}"),
    }
}

/// Waits for a future on a plain thread, but not for ever.
#[track_caller]
pub(crate) fn wait<F>(what: &str, future: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    in_time(what, move || windlass_core::block_on(future))
}

/// Waits for a task that must end well.
#[track_caller]
pub(crate) fn join<T: Send + 'static>(what: &str, handle: JoinHandle<T>) -> T {
    match wait(what, handle) {
        Ok(value) => value,
        Err(error) => panic!("{what}: {error}"),
    }
}

/// Keeps the core busy for this long, by the clock.
pub(crate) fn spin_for(duration: Duration) {
    let began = Instant::now();
    while began.elapsed() < duration {
        std::hint::spin_loop();
    }
}

/// Keeps the core busy until `condition` holds; gives the time it took. Ends after `PATIENCE`.
pub(crate) fn spin_until(condition: impl Fn() -> bool) -> Duration {
    let began = Instant::now();
    while !condition() && began.elapsed() < PATIENCE {
        std::hint::spin_loop();
    }
    began.elapsed()
}

/// A door for threads: closed until opened, then open for good.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub(crate) fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    pub(crate) fn is_open(&self) -> bool {
        *self.0.0.lock().unwrap()
    }

    /// Blocks the thread. Ends after a while in any case, so that a failed test can end.
    pub(crate) fn wait(&self) {
        let open = self.0.0.lock().unwrap();
        let limit = 2 * PATIENCE;
        let _open = self
            .0
            .1
            .wait_timeout_while(open, limit, |open| !*open)
            .unwrap();
    }
}

/// A task that holds its worker until the gate opens. It is running when this returns.
pub(crate) fn hold_worker(runtime: &Runtime) -> (Gate, JoinHandle<()>) {
    let (gate, running) = (Gate::default(), Gate::default());
    let (held, started) = (gate.clone(), running.clone());
    let handle = runtime.spawn(async move {
        started.open();
        held.wait();
    });
    running.wait();
    (gate, handle)
}

/// A permit that one task waits for and anybody gives.
#[derive(Clone, Default)]
pub(crate) struct Notify(Arc<Mutex<(usize, Option<Waker>)>>);

impl Notify {
    pub(crate) fn notify(&self) {
        let mut state = self.0.lock().unwrap();
        state.0 += 1;
        let waker = state.1.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) async fn notified(&self) {
        poll_fn(|cx| {
            let mut state = self.0.lock().unwrap();
            if let Some(left) = state.0.checked_sub(1) {
                state.0 = left;
                return Poll::Ready(());
            }
            state.1 = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// True while a task waits.
    pub(crate) fn has_waiter(&self) -> bool {
        self.0.lock().unwrap().1.is_some()
    }
}

/// Counts the drops of the guards it gives out.
#[derive(Clone, Default)]
pub(crate) struct Drops(Arc<AtomicUsize>);

pub(crate) struct Guard(Drops);

impl Drops {
    pub(crate) fn guard(&self) -> Guard {
        Guard(self.clone())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A waker that counts how often it was woken.
#[derive(Default)]
pub(crate) struct CountingWaker(AtomicUsize);

impl CountingWaker {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A waker and its count.
pub(crate) fn counting() -> (Arc<CountingWaker>, Waker) {
    let count = Arc::new(CountingWaker::default());
    (count.clone(), Waker::from(count))
}

/// Polls once with this waker.
pub(crate) fn poll_with<F: Future>(
    future: std::pin::Pin<&mut F>,
    waker: &Waker,
) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

/// Polls once with a waker that does nothing.
pub(crate) fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// A panic payload that panics when it is dropped.
pub(crate) struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("the payload's drop panics on purpose");
    }
}

/// A value whose drop panics with a [`Bomb`].
pub(crate) struct BombInDrop;

impl Drop for BombInDrop {
    fn drop(&mut self) {
        std::panic::panic_any(Bomb);
    }
}

/// Panics that tests cause; their reports would drown the real ones.
const EXPECTED: [&str; 14] = [
    "on purpose",
    "shields are nested",
    "Cannot start a runtime from within a runtime",
    "has given its output out",
    "must not be shut down or dropped",
    "`spawn_local` called from outside",
    "this thread is in no runtime",
    "no blocking thread could be started",
    "rendezvous()",
    "MAX_PERMITS",
    "outside of a coroutine",
    "cannot be resumed",
    "would block its worker",
    "the thread it began on",
];

/// Silences the reports of panics that tests cause, and no others.
pub(crate) fn expect_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let message = text(info.payload());
            let expected = info.payload().is::<Bomb>()
                || EXPECTED.iter().any(|expected| message.contains(expected));
            if !expected {
                report(info);
            }
        }));
    });
}

/// The message of a panic.
pub(crate) fn text(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&'static str>()
        .map(|text| text.to_string())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_default()
}

/// The message with which `f` panics.
#[track_caller]
pub(crate) fn panic_message<T>(f: impl FnOnce() -> T) -> String {
    expect_panics();
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(_) => panic!("it was expected to panic"),
        Err(payload) => text(&*payload),
    }
}

/// Small, seeded, good enough for gaps.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed | 1)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Runs the named test of this binary once more, alone in a process with 3 GB of address space;
/// `here` runs there.
#[cfg(target_os = "linux")]
#[track_caller]
pub(crate) fn with_little_memory(test: &str, here: impl FnOnce()) {
    with_limit("ulimit -v 3000000", test, here);
}

/// Runs the named test of this binary once more, alone in a process that a shell has limited so;
/// `here` runs there.
#[cfg(target_os = "linux")]
#[track_caller]
pub(crate) fn with_limit(limit: &str, test: &str, here: impl FnOnce()) {
    const CHILD: &str = "WINDLASS_TEST_LIMITED";
    if cfg!(windlass_asan) {
        println!("not under AddressSanitizer, which reserves terabytes of address space");
        return;
    }
    if std::env::var_os(CHILD).is_some() {
        return here();
    }
    let output = std::process::Command::new("sh")
        .arg("-c")
        .arg(format!(
            "{limit} && exec \"$0\" --exact \"$1\" --nocapture --test-threads 1"
        ))
        .arg(std::env::current_exe().unwrap())
        .arg(test)
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(text.contains("1 passed"), "the child ran no test: {text}");
}

/// Sends this process a signal, by its name.
pub(crate) fn send_signal(name: &str) {
    let sent = std::process::Command::new("kill")
        .args([&format!("-{name}"), &std::process::id().to_string()])
        .status();
    assert!(sent.expect("kill runs").success());
}
