//! Requests in and out.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::IntoFuture;
use std::sync::{Arc, Mutex};

use windlass_http::body::{Incoming, full, read_all};
use windlass_http::{Client, Request, Response, StatusCode, serve, service_fn};
use windlass_io::net::TcpListener;
use windlass_runtime::Runtime;
use windlass_sync::CancellationToken;

use crate::stage::{Live, Stage, contains, told};

/// What a request is answered: the status, and the text.
fn ask(live: &Live, method: &str, path: &str, kind: &str, body: &[u8]) -> (u16, String) {
    let url = format!("http://{}{path}", live.address("in"));
    let request = Request::builder().method(method).uri(url);
    let request = match kind {
        "" => request,
        kind => request.header("content-type", kind),
    };
    let request = request.body(full(body.to_vec())).unwrap();
    Runtime::new().unwrap().block_on(async {
        let answer = Client::new().request(request).await.unwrap();
        let status = answer.status().as_u16();
        let text = read_all(answer.into_body(), 10_000).await.unwrap();
        (status, String::from_utf8(text.to_vec()).unwrap())
    })
}

#[test]
fn a_source_publishes_the_bodies_of_requests() {
    let config = "listen: '127.0.0.1:0', path: /data, max_body_bytes: 100";
    let live = Stage::source("windlass.http.source", config).start();
    for (method, kind, body) in [
        ("POST", "", &b"text"[..]),
        ("PUT", "application/json; charset=utf-8", b"{\"a\": 1}"),
        ("POST", "application/octet-stream", b"\xff\xfe"),
        ("POST", "text/plain", b""),
    ] {
        assert_eq!(
            ask(&live, method, "/data", kind, body),
            (202, String::new())
        );
    }
    let seen = live.log.wait_for(4);
    assert_eq!(
        seen,
        [
            r#"in="text""#,
            r#"in={"a":1}"#,
            r#"in={"$bytes":"//4="}"#,
            r#"in="""#
        ]
    );
    let refused = [
        (
            ask(&live, "POST", "/", "", b"x"),
            404,
            "messages go to /data",
        ),
        (ask(&live, "GET", "/data", "", b""), 405, "use POST or PUT"),
        (
            ask(&live, "POST", "/data", "", &[b'x'; 101]),
            413,
            "longer than 100 bytes",
        ),
        (
            ask(&live, "POST", "/data", "application/json", b"{"),
            400,
            "is not JSON",
        ),
        (
            ask(&live, "POST", "/data", "", b"\xff"),
            400,
            "is not UTF-8",
        ),
    ];
    for ((status, text), expected, what) in refused {
        assert_eq!(status, expected);
        contains(&text, &[what]);
    }
    assert_eq!(live.log.take().len(), 4);
    live.stop_well();
}

#[test]
fn a_source_that_is_full_says_so() {
    let config = "listen: '127.0.0.1:0', queue: 2, format: text";
    let stage = Stage::source("windlass.http.source", config).with("test.Sink", "test.Gate");
    let live = stage.start();
    // The first is in the graph, which does not go on.
    assert_eq!(ask(&live, "POST", "/", "", b"first").0, 202);
    live.log.wait_for(1);
    let mut answers = Vec::new();
    while answers.last() != Some(&503) {
        answers.push(ask(&live, "POST", "/", "", b"more").0);
        assert!(answers.len() < 10, "{answers:?}");
    }
    let taken = answers.iter().filter(|status| **status == 202).count();
    assert!((1..=4).contains(&taken), "{answers:?}");
    stage.gate.open();
    assert_eq!(live.log.wait_for(1 + taken).len(), 1 + taken);
    live.stop_well();
}

/// A server that answers with these statuses in turn, and then with 200.
struct Server {
    url: String,
    bodies: Arc<Mutex<Vec<String>>>,
    stop: CancellationToken,
    runtime: Runtime,
}

impl Server {
    fn new(statuses: &[u16]) -> Server {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let bodies = Arc::<Mutex<Vec<String>>>::default();
        let statuses = Arc::new(Mutex::new(VecDeque::from(statuses.to_vec())));
        let seen = bodies.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let (seen, statuses) = (seen.clone(), statuses.clone());
            async move {
                let kind = request.headers()["content-type"]
                    .to_str()
                    .unwrap()
                    .to_owned();
                let body = read_all(request.into_body(), 10_000).await.unwrap();
                let body = String::from_utf8(body.to_vec()).unwrap();
                seen.lock().unwrap().push(format!("{kind} {body}"));
                let status = statuses.lock().unwrap().pop_front().unwrap_or(200);
                let mut answer = Response::new(full("because"));
                *answer.status_mut() = StatusCode::from_u16(status).unwrap();
                Ok::<_, Infallible>(answer)
            }
        });
        let stop = CancellationToken::new();
        let told = stop.clone();
        let url = runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/in", listener.local_addr().unwrap());
            drop(windlass_runtime::spawn(
                serve(listener, service).stop_on(&told).into_future(),
            ));
            url
        });
        Server {
            url,
            bodies,
            stop,
            runtime,
        }
    }

    fn bodies(self) -> Vec<String> {
        self.stop.cancel();
        drop(self.runtime);
        let bodies = self.bodies.lock().unwrap();
        bodies.clone()
    }
}

#[test]
fn a_sink_posts_every_message_in_order() {
    for (format, kind) in [
        ("json", "application/json"),
        ("text", "text/plain; charset=utf-8"),
    ] {
        let server = Server::new(&[]);
        let config = format!("url: '{}', format: {format}, queue: 1", server.url);
        let result = Stage::sink("windlass.http.sink", &config, "[[1, 2], [{k: 3}]]").run();
        assert!(result.is_ok(), "{:?}", result.errors);
        let expected = ["1", "2", "{\"k\":3}"].map(|body| format!("{kind} {body}"));
        assert_eq!(server.bodies(), expected);
    }
}

#[test]
fn a_sink_tries_again_when_the_server_has_a_bad_moment() {
    let server = Server::new(&[500, 429, 503]);
    let config = format!("url: '{}'", server.url);
    let result = Stage::sink("windlass.http.sink", &config, "[[1], [2]]").run();
    assert!(result.is_ok(), "{:?}", result.errors);
    let expected = ["1", "1", "1", "1", "2"].map(|body| format!("application/json {body}"));
    assert_eq!(server.bodies(), expected);
}

#[test]
fn a_message_that_is_not_taken_is_told_and_the_next_is_sent() {
    let server = Server::new(&[500, 500, 404]);
    let config = format!("url: '{}', retries: 1", server.url);
    let stage = Stage::sink("windlass.http.sink", &config, "[[1, 2, 3]]").forgiving("out");
    let told = told(&stage.run());
    contains(&told, &["did not take \"1\"", "500", "2 times", "because"]);
    let expected = ["1", "1", "2", "3"].map(|body| format!("application/json {body}"));
    assert_eq!(server.bodies(), expected);
}

#[test]
fn a_server_that_is_not_there_or_never_answers_is_told() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let config = format!("url: 'http://{address}/', retries: 0, timeout_ms: 100");
    let told_of = told(&Stage::sink("windlass.http.sink", &config, "[[1]]").run());
    contains(&told_of, &["did not take \"1\"", "1 times"]);
    drop(silent);
    let told_of = told(&Stage::sink("windlass.http.sink", &config, "[[1]]").run());
    contains(&told_of, &["no connection to"]);
}

#[test]
fn wrong_settings_are_told() {
    for (config, what) in [
        ("", "config.listen is missing"),
        (
            "listen: 'a:1', path: x",
            "config.path is \"x\": it begins with /",
        ),
        ("listen: 'a:1', max_body_bytes: 0", "config.max_body_bytes"),
        (
            "listen: 'a:1', format: xml",
            "allowed are auto, text, json, bytes",
        ),
    ] {
        contains(
            &Stage::source("windlass.http.source", config).fails(),
            &[what],
        );
    }
    for (config, what) in [
        ("", "config.url is missing"),
        ("url: 'example.org'", "write http://host/path"),
        ("url: 'ftp://example.org/'", "write http://host/path"),
        ("url: 'http://h/', retries: -1", "config.retries"),
        ("url: 'http://h/', timeout_ms: x", "config.timeout_ms"),
    ] {
        contains(
            &Stage::sink("windlass.http.sink", config, "[]").fails(),
            &[what],
        );
    }
}
