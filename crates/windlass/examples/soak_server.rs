//! The server of `cargo xtask soak`: small, long and slow answers, and a page with the runtime's
//! own numbers. Prints its address and serves until its standard input ends.
//!
//! `cargo run --release --example soak_server --features http`

use std::convert::Infallible;
use std::future::IntoFuture;
use std::time::Duration;

use windlass::http::body::{AnyBody, Bytes, Incoming, full, read_all};
use windlass::http::{Request, Response, serve, service_fn};
use windlass::net::TcpListener;
use windlass::runtime::Handle;
use windlass::{CancellationToken, spawn_blocking, time};

/// One number per line.
fn numbers() -> String {
    let snapshot = Handle::current().snapshot();
    let sum = |of: fn(&windlass::observe::WorkerSnapshot) -> u64| {
        snapshot.pool.workers.iter().map(of).sum::<u64>()
    };
    format!(
        "tasks {}\ntimers {}\nsources {}\npolls {}\npanics {}\n",
        snapshot.pool.suspended_tasks,
        snapshot.timers,
        snapshot.io_sources,
        sum(|worker| worker.polls),
        sum(|worker| worker.panics),
    )
}

async fn answer(request: Request<Incoming>) -> Result<Response<AnyBody>, Infallible> {
    let body = match request.uri().path() {
        "/numbers" => Bytes::from(numbers()),
        "/long" => Bytes::from(vec![b'x'; 1 << 20]),
        "/slow" => {
            time::sleep(Duration::from_millis(20)).await;
            Bytes::from_static(b"slow")
        }
        "/echo" => match time::timeout(
            Duration::from_secs(5),
            read_all(request.into_body(), 1 << 20),
        )
        .await
        {
            Ok(Ok(body)) => body,
            _ => Bytes::from_static(b"that did not arrive"),
        },
        _ => Bytes::from_static(b"Hello, World!"),
    };
    Ok(Response::new(full(body)))
}

#[windlass::main]
async fn main() -> windlass::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let stop = CancellationToken::new();
    let server = serve(listener, service_fn(answer))
        .stop_on(&stop)
        .drain_within(Duration::from_secs(5));
    let server = windlass::spawn(server.into_future());
    spawn_blocking(|| std::io::read_to_string(std::io::stdin())).await??;
    stop.cancel();
    println!("{:?}", server.await??);
    Ok(())
}
