//! An HTTP client and server in the simulator, with the network cut between them: minutes of
//! virtual time in a moment, the same for the same seed.
//!
//! `cargo run --example partition --features http -- 7`

use std::convert::Infallible;
use std::future::IntoFuture;
use std::time::Duration;

use windlass::http::body::{self, Incoming};
use windlass::http::{Client, Request, Response, serve, service_fn};
use windlass::net::TcpListener;
use windlass::simulator::Net;
use windlass::{Runtime, time};

async fn story() -> windlass::Result<()> {
    let net = Net::current();
    net.latency(Duration::from_millis(1)..=Duration::from_millis(20));
    let service = service_fn(|_: Request<Incoming>| async {
        Ok::<_, Infallible>(Response::new(body::full("here I am")))
    });
    let listener = net.on("server", TcpListener::bind("server:80")).await?;
    windlass::spawn(net.on("server", serve(listener, service).into_future())).detach();

    let client = Client::builder()
        .response_timeout(Duration::from_secs(5))
        .build();
    let began = time::Instant::now();
    for round in 0..6 {
        match round {
            2 => net.partition("client", "server"),
            4 => net.heal("client", "server"),
            _ => {}
        }
        let asked = time::Instant::now();
        let outcome = match net.on("client", client.get("http://server/")).await {
            Ok(response) => response.status().to_string(),
            Err(error) => error.to_string(),
        };
        println!(
            "{:>9.3?}  after {:>9.3?}: {outcome}",
            began.elapsed(),
            asked.elapsed()
        );
        time::sleep(Duration::from_secs(30)).await;
    }
    Ok(())
}

fn main() -> windlass::Result<()> {
    let seed = std::env::args().nth(1).and_then(|seed| seed.parse().ok());
    let runtime = Runtime::simulated(seed.unwrap_or(7));
    runtime.block_on(story())?;
    if let Some(trace) = runtime.trace() {
        println!("trace {:016x}", trace.hash);
    }
    Ok(())
}
