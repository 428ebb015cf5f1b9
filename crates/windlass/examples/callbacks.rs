//! Blocking, C-style code beside an HTTP server, on the same two workers:
//! `cargo run --example callbacks --features http`.
//!
//! The C library's `qsort` calls a comparison back, and the comparison waits for a channel: it asks
//! somebody else which of two words comes first. No future could do that, because the frames in the
//! middle are C's. In a coroutine it works, and while it waits its worker serves HTTP.
#![allow(
    unsafe_code,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "it calls C, and shows real time to a person"
)]

use std::cell::RefCell;
use std::convert::Infallible;
use std::ffi::c_void;
use std::time::{Duration, Instant};

use windlass::http::body::{self, Incoming, read_all};
use windlass::http::{Client, Request, Response, serve, service_fn};
use windlass::net::TcpListener;
use windlass::sync::{mpmc, oneshot};
use windlass::{Runtime, coroutine};

unsafe extern "C" {
    fn qsort(
        base: *mut c_void,
        count: usize,
        size: usize,
        compare: extern "C" fn(*const c_void, *const c_void) -> i32,
    );
}

type Question = (&'static str, &'static str, oneshot::Sender<i32>);

thread_local! {
    /// How a C callback finds what it needs. A coroutine stays on its thread, so this is sound; it
    /// must not be used by two of them at the same time.
    static ASK: RefCell<Option<mpmc::Sender<Question>>> = const { RefCell::new(None) };
}

extern "C" fn compare(a: *const c_void, b: *const c_void) -> i32 {
    // SAFETY: `qsort` passes pointers into the array it was given, whose elements are these.
    let (a, b) = unsafe { (*a.cast::<&'static str>(), *b.cast::<&'static str>()) };
    let ask = ASK
        .with(|ask| ask.borrow().clone())
        .expect("set before the call");
    let (sender, answer) = oneshot::channel();
    // Suspends the coroutine, C frames and all.
    coroutine::wait(ask.send((a, b, sender))).expect("somebody answers");
    coroutine::wait(answer).expect("it was answered")
}

fn sort_by_asking(mut words: Vec<&'static str>, ask: mpmc::Sender<Question>) -> Vec<&'static str> {
    ASK.with(|slot| slot.replace(Some(ask)));
    // Nothing unwinds through C: a cancellation waits until the section is over.
    coroutine::foreign(|| {
        let (base, count) = (words.as_mut_ptr().cast(), words.len());
        // SAFETY: the array is ours, and `compare` is made for its elements.
        unsafe { qsort(base, count, size_of::<&str>(), compare) };
    });
    ASK.with(|slot| slot.replace(None));
    words
}

fn main() -> windlass::Result<()> {
    let runtime = Runtime::builder().workers(2).build()?;
    let _entered = runtime.enter();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let hello = service_fn(|_: Request<Incoming>| async {
            Ok::<_, Infallible>(Response::new(body::full("hello")))
        });
        let server = windlass::spawn(async move { serve(listener, hello).await });

        let (ask, questions) = mpmc::rendezvous::<Question>();
        let answering = windlass::spawn(async move {
            let mut asked = 0;
            while let Some((a, b, answer)) = questions.recv().await {
                windlass::time::sleep(Duration::from_millis(2)).await;
                let _ = answer.send(a.cmp(b) as i32);
                asked += 1;
            }
            asked
        });
        let words = vec![
            "windlass", "capstan", "winch", "hoist", "crane", "derrick", "davit",
        ];
        let began = Instant::now();
        let sorting = coroutine::spawn(move || sort_by_asking(words, ask));

        // Meanwhile the same workers answer requests.
        let client = Client::new();
        let mut served = 0;
        while !sorting.is_finished() {
            let answer = client.get(&format!("http://{address}/")).await?;
            assert_eq!(&read_all(answer.into_body(), 100).await?[..], b"hello");
            served += 1;
        }
        println!("{:?}", sorting.await?);
        println!(
            "{} questions in {:?}, and {served} requests served meanwhile",
            answering.await?,
            began.elapsed()
        );
        server.abort();
        Ok(())
    })
}
