//! tokio as a guest of ours, and we as a guest of tokio.

use std::convert::Infallible;
use std::future::IntoFuture;
use std::time::{Duration, Instant};

use windlass::Runtime;
use windlass::http::body::{self, Incoming};
use windlass::http::{Request, Response, serve, service_fn};
use windlass::net::TcpListener;
use windlass::tokio_guest::{GuestError, try_with_tokio, with_tokio};

/// The tasks in the guest; none if it was never asked for.
fn tokio_tasks(runtime: &Runtime) -> Option<f64> {
    let snapshot = runtime.snapshot();
    let guest = snapshot.sources("tokio_guest").next();
    guest.and_then(|guest| guest.sample("tasks"))
}

fn runtime() -> Runtime {
    Runtime::builder().workers(2).build().expect("it builds")
}

/// A server of ours; gives its URL.
async fn hello() -> String {
    let service = service_fn(|request: Request<Incoming>| async move {
        let answer = format!("hello {}", request.uri().path());
        Ok::<_, Infallible>(Response::new(body::full(answer)))
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let url = format!("http://{}", listener.local_addr().expect("known"));
    drop(windlass::spawn(serve(listener, service).into_future()));
    url
}

#[test]
fn reqwest_runs_unmodified_in_tasks_of_ours() {
    let runtime = runtime();
    let url = runtime.block_on(async { windlass::spawn(hello()).await.expect("served") });
    let client = reqwest::Client::new();
    let tasks: Vec<_> = (0..20)
        .map(|number| {
            let request = client.get(format!("{url}/{number}")).send();
            runtime.spawn(with_tokio(async move { request.await?.text().await }))
        })
        .collect();
    for (number, task) in tasks.into_iter().enumerate() {
        let text = runtime.block_on(task).expect("no panic").expect("answered");
        assert_eq!(text, format!("hello /{number}"));
    }
    let guest = tokio_tasks(&runtime);
    assert!(
        guest.is_some_and(|tasks| tasks > 0.0),
        "reqwest keeps its connections there: {guest:?}"
    );
    drop(client);
    assert!(runtime.shutdown(Duration::from_secs(20)).is_clean());
}

#[test]
fn what_tokio_spawns_is_counted_and_ends_with_the_runtime() {
    struct Tell(std::sync::mpsc::Sender<()>);
    impl Drop for Tell {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let runtime = runtime();
    assert_eq!(tokio_tasks(&runtime), None, "nobody has asked yet");
    let (tell, told) = std::sync::mpsc::channel();
    runtime.block_on(with_tokio(async move {
        let tell = Tell(tell);
        tokio::spawn(async move {
            let _tell = tell;
            std::future::pending::<()>().await;
        });
    }));
    assert_eq!(tokio_tasks(&runtime), Some(1.0));
    let mut dump = Vec::new();
    runtime.debug_dump(&mut dump).expect("written");
    assert!(String::from_utf8_lossy(&dump).contains("tokio_guest: tasks 1"));
    assert!(runtime.shutdown(Duration::from_secs(20)).is_clean());
    told.try_recv()
        .expect("dropped before the shutdown has ended");
}

#[test]
fn a_guest_that_blocks_is_named_by_the_shutdown() {
    let runtime = runtime();
    let (release, held) = std::sync::mpsc::channel::<()>();
    let (begun, beginning) = std::sync::mpsc::channel();
    runtime.block_on(with_tokio(async move {
        tokio::spawn(async move {
            begun.send(()).expect("somebody waits");
            let _ = held.recv();
        });
    }));
    beginning.recv().expect("it runs");
    let report = runtime.shutdown(Duration::from_millis(100));
    assert!(!report.is_clean());
    assert!(
        report.not_stopped[0].starts_with("the tokio guest"),
        "{report}"
    );
    assert!(report.to_string().contains("tokio"));
    drop(release);
}

#[test]
fn tokio_is_entered_only_during_polls_of_those_who_asked() {
    let runtime = runtime();
    let at_hand = || tokio::runtime::Handle::try_current().is_ok();
    let asked = runtime.spawn(with_tokio(async move {
        let mut always = true;
        for _ in 0..100 {
            always &= at_hand();
            windlass::task::yield_now().await;
        }
        always
    }));
    let did_not = runtime.spawn(async move {
        let mut ever = false;
        for _ in 0..100 {
            ever |= at_hand();
            windlass::task::yield_now().await;
        }
        ever
    });
    assert!(runtime.block_on(asked).expect("no panic"));
    assert!(!runtime.block_on(did_not).expect("no panic"));
}

#[test]
fn what_needs_tokio_to_be_dropped_has_it() {
    struct NeedsTokio;
    impl Drop for NeedsTokio {
        fn drop(&mut self) {
            // Panics outside of tokio.
            drop(tokio::spawn(async {}));
        }
    }
    let runtime = runtime();
    let task = runtime.spawn(with_tokio(async {
        let _held = NeedsTokio;
        std::future::pending::<()>().await;
    }));
    std::thread::sleep(Duration::from_millis(50));
    task.abort();
    let error = runtime.block_on(task).expect_err("aborted");
    assert!(error.is_cancelled(), "and did not panic: {error}");
}

#[test]
fn a_simulation_has_no_tokio_and_says_so() {
    Runtime::simulated(1).block_on(async {
        let refused = try_with_tokio(async {}).expect_err("not here");
        assert!(matches!(refused, GuestError::Simulated), "{refused}");
    });
    let refused = try_with_tokio(async {}).expect_err("not here either");
    assert!(matches!(refused, GuestError::TryCurrentError), "{refused}");
}

#[test]
fn a_runtime_of_ours_lives_in_a_tokio_program() {
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("tokio starts");
    let ours = runtime();
    let handle = ours.handle().clone();
    let began = Instant::now();
    tokio.block_on(async move {
        // From a task of tokio's to ours and back, over our channels, timers and sockets.
        let (sender, mut receiver) = windlass::sync::mpsc::channel(4);
        let server = handle.spawn(hello());
        let counting = handle.spawn(async move {
            for number in 0..100 {
                sender.send(number).await.expect("somebody receives");
                windlass::time::sleep(Duration::from_micros(10)).await;
            }
        });
        let received = tokio::spawn(async move {
            let mut all = Vec::new();
            while let Some(number) = receiver.recv().await {
                all.push(number);
            }
            all
        });
        let all = tokio::time::timeout(Duration::from_secs(20), received).await;
        assert_eq!(
            all.expect("in time").expect("no panic"),
            (0..100).collect::<Vec<_>>()
        );
        counting.await.expect("no panic");
        let url = server.await.expect("no panic");
        let text = reqwest::get(format!("{url}/embedded"))
            .await
            .expect("answered");
        assert_eq!(text.text().await.expect("whole"), "hello /embedded");
    });
    assert!(ours.shutdown(Duration::from_secs(20)).is_clean());
    assert!(began.elapsed() < Duration::from_secs(20));
}
