//! What the tests have in common.

use std::future::Future;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use windlass_actor::{
    ActorError, Context, Event, Events, Host, Message, Output, Pid, Process, ProcessContext,
    ProcessState, Status,
};
use windlass_runtime::Runtime;
use windlass_value::Payloads;

/// Whatever takes this long has not been woken.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// Runs a test in the simulator, with several seeds.
pub(crate) fn simulated<F>(test: impl Fn(Host) -> F)
where
    F: Future<Output = ()>,
{
    for seed in 0..20 {
        simulated_once(seed, &test);
    }
}

pub(crate) fn simulated_once<F>(seed: u64, test: impl Fn(Host) -> F) -> u64
where
    F: Future<Output = ()>,
{
    let runtime = Runtime::simulated(seed);
    let host = Host::of(runtime.handle()).expect("a host");
    runtime.block_on(test(host));
    runtime.trace().expect("it is simulated").hash
}

/// Runs a test on real workers; what hangs fails.
pub(crate) fn real<F>(workers: usize, test: impl FnOnce(Host) -> F)
where
    F: Future<Output = ()>,
{
    let runtime = Runtime::builder()
        .workers(workers)
        .build()
        .expect("a runtime");
    let host = Host::of(runtime.handle()).expect("a host");
    runtime.block_on(async {
        windlass_runtime::time::timeout(LONG, test(host))
            .await
            .expect("it hangs");
    });
    // Some processes ignore a cancel.
    runtime.shutdown(Duration::from_millis(100));
}

/// Runs a test on a real and on a simulated host.
pub(crate) fn everywhere<F>(test: impl Fn(Host) -> F)
where
    F: Future<Output = ()>,
{
    simulated(&test);
    real(2, test);
}

/// Waits for something that comes by itself soon.
pub(crate) async fn eventually(what: &str, is_there: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_there() {
        assert!(began.elapsed() < LONG, "{what}: it does not come");
        windlass_runtime::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Waits until a process has begun and has nothing to do.
pub(crate) async fn waits(host: &Host, pid: Pid) {
    eventually("it waits", || {
        let found = host.list().into_iter().find(|info| info.pid == pid);
        matches!(
            found.map(|info| info.state),
            Some(ProcessState::Idle | ProcessState::Blocked)
        )
    })
    .await;
}

/// A record that processes write and the test reads.
#[derive(Debug)]
pub(crate) struct Log<T>(Arc<Mutex<Vec<T>>>);

impl<T> Clone for Log<T> {
    fn clone(&self) -> Self {
        Log(self.0.clone())
    }
}

impl<T> Default for Log<T> {
    fn default() -> Self {
        Log(Arc::default())
    }
}

impl<T: Clone> Log<T> {
    pub(crate) fn add(&self, entry: T) {
        self.0.lock().expect("no panic inside").push(entry);
    }

    pub(crate) fn all(&self) -> Vec<T> {
        self.0.lock().expect("no panic inside").clone()
    }
}

/// A counter that clones share.
#[derive(Debug, Clone, Default)]
pub(crate) struct Count(Arc<AtomicUsize>);

impl Count {
    pub(crate) fn up(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// A step machine made of a closure; counts its `close`.
pub(crate) struct Machine<F> {
    pub(crate) step: F,
    pub(crate) closed: Count,
    pub(crate) ctx: Option<ProcessContext>,
}

impl<F> Machine<F>
where
    F: FnMut(&ProcessContext, &mut Events<'_>, &mut Output) -> Result<Status, ActorError>
        + Send
        + 'static,
{
    pub(crate) fn new(step: F) -> Machine<F> {
        Machine {
            step,
            closed: Count::default(),
            ctx: None,
        }
    }

    pub(crate) fn counting(step: F, closed: &Count) -> Machine<F> {
        Machine {
            step,
            closed: closed.clone(),
            ctx: None,
        }
    }
}

impl<F> Process for Machine<F>
where
    F: FnMut(&ProcessContext, &mut Events<'_>, &mut Output) -> Result<Status, ActorError>
        + Send
        + 'static,
{
    fn init(&mut self, ctx: &ProcessContext, _: &str, _: Payloads) -> Result<(), ActorError> {
        self.ctx = Some(ctx.clone());
        Ok(())
    }

    fn step(&mut self, events: &mut Events<'_>, out: &mut Output) -> Result<Status, ActorError> {
        let ctx = self.ctx.as_ref().expect("init came first");
        (self.step)(ctx, events, out)
    }

    fn close(&mut self) {
        self.closed.up();
    }
}

/// A step machine that ignores everything.
pub(crate) fn deaf() -> impl Process {
    Machine::new(|_, events, _| {
        while events.next().is_some() {}
        Ok(Status::Idle)
    })
}

/// A step machine that writes down every event.
pub(crate) fn recorder(log: &Log<String>) -> impl Process {
    let log = log.clone();
    Machine::new(move |_, events, _| {
        while let Some(event) = events.next() {
            log.add(name_of(&event));
        }
        Ok(Status::Idle)
    })
}

pub(crate) fn name_of(event: &Event) -> String {
    match event {
        Event::YieldComplete { tag, result } => format!("complete {tag} {result:?}"),
        Event::Message(message) => format!("message {} {:?}", message.topic, message.payload),
        Event::Cancel(reason) => format!("cancel {reason}"),
        Event::Exit(exited) => format!("exit {}", exited.reason),
        other => format!("{other:?}"),
    }
}

/// An async process that lives until it is cancelled.
pub(crate) async fn idle(mut ctx: Context<Message>) {
    while ctx.recv().await.is_some() {}
}

/// Panics that tests cause; their reports would drown the real ones.
pub(crate) fn expect_panics() {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let text = info.payload_as_str().unwrap_or_default();
            if !text.contains("on purpose") {
                usual(info);
            }
        }));
    });
}
