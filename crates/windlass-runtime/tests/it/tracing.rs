//! Telling `tracing` what happens.

use std::process::Command;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use windlass_runtime::Runtime;

/// Set in a child process of these tests: what it is to do.
const PLAY: &str = "WINDLASS_TEST_PLAY";

/// Writes down events, each with the names of the spans around it.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0 += &format!("{value:?}");
        } else {
            self.0 += &format!(" {field}={value:?}");
        }
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Notes {
    fn on_new_span(
        &self,
        attributes: &span::Attributes<'_>,
        id: &span::Id,
        context: Context<'_, S>,
    ) {
        let mut line = Line(String::new());
        attributes.record(&mut line);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(line);
        }
    }

    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        let spans = context.event_scope(event).into_iter().flatten();
        for span in spans {
            let extensions = span.extensions();
            let fields = extensions.get::<Line>().map_or("", |line| &line.0);
            line.0 += &format!(" in {}:{}", event.metadata().target(), fields);
        }
        self.0.lock().unwrap().push(line.0);
    }
}

#[cfg(feature = "tracing")]
#[test]
fn what_a_task_says_is_inside_its_span() {
    if std::env::var_os(PLAY).is_none() {
        // A listener for the whole process: in one of its own.
        child("tracing::what_a_task_says_is_inside_its_span", "0");
        return;
    }
    let notes = Notes::default();
    let subscriber = tracing_subscriber::registry().with(notes.clone());
    tracing::subscriber::set_global_default(subscriber).expect("the first");
    let runtime = Runtime::builder().workers(2).build().expect("it builds");
    let spawn = |name: &str| windlass_runtime::task::Builder::new().name(name);
    runtime.block_on(async {
        let quiet = spawn("quiet").spawn(async {
            tracing::info!("from inside");
            windlass_runtime::task::yield_now().await;
            tracing::info!("again");
        });
        quiet.await.expect("it completes");
        let loud = spawn("loud").spawn(async { panic!("as asked") });
        assert!(loud.await.expect_err("it panics").is_panic());
        let idle = spawn("idle").spawn(std::future::pending::<()>());
        windlass_runtime::task::yield_now().await;
        idle.abort();
        assert!(idle.await.expect_err("it is cancelled").is_cancelled());
        coroutines().await;
    });
    drop(runtime);
    let notes = notes.0.lock().unwrap();
    let of = |task: &str| -> Vec<&str> {
        let name = format!("name=\"{task}\"");
        let mine = notes.iter().filter(|note| note.contains(&name));
        mine.map(|note| note.split(" in ").next().unwrap_or_default())
            .collect()
    };
    assert_eq!(
        of("quiet"),
        ["spawned", "from inside", "again", "completed"]
    );
    assert_eq!(of("loud"), ["spawned", "panicked"]);
    assert_eq!(of("idle"), ["spawned", "cancelled"]);
    assert_eq!(
        of("deep"),
        ["spawned", "on its stack", "again", "completed"]
    );
    assert_eq!(of("broken"), ["spawned", "panicked"]);
    assert_eq!(of("stopped"), ["spawned", "waits", "cancelled"]);
    assert_eq!(of("elsewhere"), ["spawned", "over there", "completed"]);
    assert!(
        notes
            .iter()
            .all(|note| note.contains("tracing.rs") && note.contains("line="))
    );
}

/// The same for coroutines, and for a task of a dispatcher.
#[cfg(feature = "tracing")]
async fn coroutines() {
    use windlass_runtime::coroutine::{self, wait};
    let spawn = |name: &str| coroutine::Builder::new().name(name);
    let deep = spawn("deep").spawn(|| {
        tracing::info!("on its stack");
        coroutine::yield_now();
        tracing::info!("again");
    });
    deep.await.expect("it completes");
    let broken = spawn("broken").spawn(|| panic!("as asked"));
    let error: Result<(), _> = broken.await;
    assert!(error.expect_err("it panics").is_panic());
    let begun = std::sync::Arc::new(windlass_sync::lock::Notify::new());
    let told = begun.clone();
    let stopped = spawn("stopped").spawn(move || {
        tracing::info!("waits");
        told.notify_one();
        wait(std::future::pending::<()>());
    });
    begun.notified().await;
    stopped.abort();
    assert!(stopped.await.expect_err("it is cancelled").is_cancelled());
    let custom = windlass_runtime::dispatch::Dispatcher::custom(1).expect("a thread");
    let elsewhere = custom.spawn_named("elsewhere", async { tracing::info!("over there") });
    elsewhere.await.expect("it completes");
}

/// What the children run.
fn play() {
    let runtime = Runtime::builder().workers(1).build().expect("it builds");
    runtime.block_on(async {
        let task = windlass_runtime::spawn(async {
            for _ in 0..3 {
                windlass_runtime::task::yield_now().await;
            }
        });
        task.await.expect("it completes");
    });
}

/// Runs the test of this name in a child with `WINDLASS_DEBUG` set to `value`; gives its output.
fn child(test: &str, value: &str) -> String {
    let output = Command::new(std::env::current_exe().expect("known"))
        .args(["--exact", test, "--nocapture"])
        .env(PLAY, "1")
        .env("WINDLASS_DEBUG", value)
        .output()
        .expect("it runs");
    assert!(output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

#[test]
fn windlass_debug_writes_what_the_scheduler_does() {
    if std::env::var_os(PLAY).is_some() {
        return play();
    }
    let name = "tracing::windlass_debug_writes_what_the_scheduler_does";
    let text = child(name, "1");
    let count = |kind: &str| {
        text.lines()
            .filter(|line| line.starts_with("windlass:") && line.contains(kind))
            .count()
    };
    assert!(count("Poll") >= 4, "four polls of one task:\n{text}");
    assert!(count("Park") >= 1, "and it sleeps at the end:\n{text}");
    assert!(!child(name, "0").contains("windlass:"), "only if asked");
}

#[test]
fn windlass_debug_goes_to_a_subscriber_if_there_is_one() {
    if std::env::var_os(PLAY).is_some() {
        let notes = Notes::default();
        let subscriber = tracing_subscriber::registry().with(notes.clone());
        tracing::subscriber::set_global_default(subscriber).expect("the first");
        play();
        for note in notes.0.lock().unwrap().iter() {
            println!("noted: {note}");
        }
        return;
    }
    let text = child(
        "tracing::windlass_debug_goes_to_a_subscriber_if_there_is_one",
        "1",
    );
    assert!(
        text.contains("kind=Poll") && text.contains("worker=0"),
        "{text}"
    );
    assert!(!text.contains("windlass: "), "not twice: {text}");
}
