//! An HTTP service with axum: routes, JSON, state, and a stop that answers what has begun.
//!
//! `cargo run --example http_service --features http`, then `curl localhost:8080/visits`; ctrl-c
//! stops it.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::routing::get;
use axum::{Json, Router};
use windlass::http::{Client, body::read_all, serve};
use windlass::net::TcpListener;
use windlass::sync::Mutex;
use windlass::{CancellationToken, signal};

type Visits = Arc<Mutex<u64>>;

async fn greet(State(visits): State<Visits>, Path(name): Path<String>) -> String {
    *visits.lock().await += 1;
    format!("hello {name}\n")
}

async fn count(State(visits): State<Visits>) -> Json<u64> {
    Json(*visits.lock().await)
}

#[windlass::main]
async fn main() -> windlass::Result<()> {
    let router = Router::new()
        .route("/greet/{name}", get(greet))
        .route("/visits", get(count))
        .with_state(Visits::default());
    let demo = std::env::args().nth(1).is_some();
    let listener = TcpListener::bind(if demo {
        "localhost:0"
    } else {
        "localhost:8080"
    })
    .await?;
    let url = format!("http://{}", listener.local_addr()?);
    println!("serving {url}/greet/you and {url}/visits");

    let stop = CancellationToken::new();
    let server = serve(listener, router)
        .stop_on(&stop)
        .drain_within(Duration::from_secs(10));
    let server = windlass::spawn(std::future::IntoFuture::into_future(server));
    if demo {
        let client = Client::new();
        for path in ["/greet/you", "/visits"] {
            let response = client.get(format!("{url}{path}")).await?;
            println!("{path}: {:?}", read_all(response.into_body(), 1024).await?);
        }
    } else {
        signal::shutdown().await?;
    }
    stop.cancel();
    let served = server.await??;
    println!(
        "{} connections, {} cut off",
        served.connections, served.aborted
    );
    Ok(())
}
