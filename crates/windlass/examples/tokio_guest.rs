//! reqwest, which knows only tokio, in tasks of ours; and its requests go to a server of ours.
//!
//! `cargo run --example tokio_guest --features http,tokio-guest`

use std::convert::Infallible;
use std::future::IntoFuture;

use windlass::http::body::{self, Incoming};
use windlass::http::{Request, Response, serve, service_fn};
use windlass::net::TcpListener;
use windlass::tokio_guest::with_tokio;

#[windlass::main]
async fn main() -> windlass::Result<()> {
    let listener = TcpListener::bind("localhost:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let service = service_fn(|request: Request<Incoming>| async move {
        Ok::<_, Infallible>(Response::new(body::full(request.uri().path().to_owned())))
    });
    windlass::spawn(serve(listener, service).into_future()).detach();

    // One client for all: it keeps connections, in the guest.
    let client = reqwest::Client::new();
    let tasks: Vec<_> = (0..5)
        .map(|number| {
            let request = client.get(format!("{url}/{number}")).send();
            windlass::spawn(with_tokio(async move { request.await?.text().await }))
        })
        .collect();
    for task in tasks {
        println!("reqwest got {:?}", task.await??);
    }
    let snapshot = windlass::runtime::Handle::current().snapshot();
    let guest = snapshot.sources("tokio_guest").next();
    let guest = guest.and_then(|guest| guest.sample("tasks"));
    println!("tasks of reqwest's own in the guest: {guest:?}");
    Ok(())
}
