//! A client with TLS. With a URL it fetches that; without one it makes a certificate of its own,
//! serves itself over TLS and asks that server, over HTTP/2.
//!
//! `cargo run --example http_client --features http -- https://example.org/`

use std::convert::Infallible;
use std::future::IntoFuture;

use windlass::http::body::{self, Incoming, read_all};
use windlass::http::{Client, Request, Response, TlsAcceptor, TlsConnector, serve, service_fn};
use windlass::net::TcpListener;

/// A server that only those trust who are given its certificate; gives its URL.
async fn own_server() -> windlass::Result<(String, Client)> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let listener = TcpListener::bind("localhost:0").await?;
    let url = format!("https://localhost:{}/", listener.local_addr()?.port());
    let service = service_fn(|request: Request<Incoming>| async move {
        let answer = format!("you speak {:?}\n", request.version());
        Ok::<_, Infallible>(Response::new(body::full(answer)))
    });
    let acceptor = TlsAcceptor::from_pem(chain.as_bytes(), key.as_bytes())?;
    windlass::spawn(serve(listener, service).tls(acceptor).into_future()).detach();
    let client = Client::builder()
        .tls(TlsConnector::trusting(chain.as_bytes())?)
        .build();
    Ok((url, client))
}

#[windlass::main]
async fn main() -> windlass::Result<()> {
    let (url, client) = match std::env::args().nth(1) {
        Some(url) => (url, Client::new()),
        None => own_server().await?,
    };
    let response = client.get(&url).await?;
    println!("{url}: {} {:?}", response.status(), response.version());
    let body = read_all(response.into_body(), 1 << 20).await?;
    print!("{}", String::from_utf8_lossy(&body));
    Ok(())
}
