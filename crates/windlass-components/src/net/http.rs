//! `windlass.http.source` and `windlass.http.sink`.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use windlass_core::sync::Arc;
use windlass_graph::component::{ConfigField, ConfigKind, Descriptor, Failure, Setup};
use windlass_graph::model::BoundaryRole;
use windlass_http::body::{AnyBody, Incoming, ReadError, full, read_all};
use windlass_http::{
    Client, HeaderMap, Method, Request, Response, StatusCode, Uri, header, serve, service_fn,
};
use windlass_io::net::TcpListener;
use windlass_runtime::time::timeout;
use windlass_sync::CancellationToken;
use windlass_value::Payload;

use super::sink::SinkTask;
use super::source::SourceTask;
use super::{Addresses, Pauses, needed_address, queue};
use crate::file::records;
use crate::format::{Format, beginning};
use crate::inlet::Feed;
use crate::outlet::Orders;
use crate::settings::{MOST_MS, Settings};

/// How many bytes a body may have, unless one says otherwise, and at most.
const BODY_BYTES: u64 = 1 << 20;
const MOST_BODY_BYTES: u64 = 1 << 30;
/// How often a message is sent again, unless one says otherwise, and at most.
const RETRIES: u64 = 3;
const MOST_RETRIES: u64 = 1000;
/// How long an answer may take, unless one says otherwise.
const TIMEOUT_MS: u64 = 10_000;
/// How much of an answer is read.
const ANSWER_BYTES: usize = 64 << 10;

/// The formats of a source; the first is that which the request names.
const FORMATS: [(&str, Option<Format>); 4] = [
    ("auto", None),
    ("text", Some(Format::Text)),
    ("json", Some(Format::Json)),
    ("bytes", Some(Format::Bytes)),
];
/// The formats of a sink.
const SENT: [(&str, Format); 3] = [
    ("json", Format::Json),
    ("text", Format::Text),
    ("bytes", Format::Bytes),
];

/// Publishes the bodies of requests.
#[derive(Debug)]
pub(crate) struct HttpListener {
    id: String,
    address: String,
    path: String,
    format: Option<Format>,
    most: usize,
    addresses: Addresses,
}

impl SourceTask for HttpListener {
    fn describe() -> Descriptor {
        let text = |name| ConfigField::new(name, ConfigKind::String);
        let most = ConfigField::new("max_body_bytes", ConfigKind::Integer);
        Descriptor::new()
            .output("out")
            .boundary(BoundaryRole::Input)
            .field(text("listen").required())
            .field(text("path"))
            .field(text("format").one_of(FORMATS.map(|format| format.0)))
            .field(most.within(1.0, MOST_BODY_BYTES as f64))
            .field(queue())
            .field(records())
            .about("Publishes the bodies of POST and PUT requests.")
    }

    fn read(setup: &Setup<'_>, addresses: &Addresses) -> Result<HttpListener, Failure> {
        let settings = Settings(setup.config());
        let path = settings.text("path")?.unwrap_or("/");
        if !path.starts_with('/') {
            return Err(Failure::new(format!(
                "config.path is {path:?}: it begins with /"
            )));
        }
        Ok(HttpListener {
            id: setup.id().to_owned(),
            address: needed_address(settings, "listen")?,
            path: path.to_owned(),
            format: settings.choice("format", &FORMATS)?,
            most: settings.count("max_body_bytes", BODY_BYTES, MOST_BODY_BYTES)?,
            addresses: addresses.clone(),
        })
    }

    async fn run(self, feed: Feed<Payload>, stop: CancellationToken) {
        let address = self.address.clone();
        if let Err(error) = Arc::new(self).serve(&feed, &stop).await {
            let failure = Failure::new(format!("cannot serve at {address}: {error}"));
            // If the component has ended, there is no reader for the failure.
            let _ = feed.report(failure).await;
        }
    }
}

impl HttpListener {
    async fn serve(
        self: Arc<Self>,
        feed: &Feed<Payload>,
        stop: &CancellationToken,
    ) -> io::Result<()> {
        let listener = TcpListener::bind(self.address.as_str()).await?;
        self.addresses.announce(&self.id, listener.local_addr()?);
        let feed = feed.clone();
        let service = service_fn(move |request| {
            let (serving, feed) = (self.clone(), feed.clone());
            async move { Ok::<_, Infallible>(serving.answer(request, &feed).await) }
        });
        serve(listener, service).stop_on(stop).await.map(drop)
    }

    async fn answer(&self, request: Request<Incoming>, feed: &Feed<Payload>) -> Response<AnyBody> {
        if request.uri().path() != self.path {
            return say(
                StatusCode::NOT_FOUND,
                format!("messages go to {}", self.path),
            );
        }
        if !matches!(*request.method(), Method::POST | Method::PUT) {
            let mut answer = say(StatusCode::METHOD_NOT_ALLOWED, "use POST or PUT".to_owned());
            let allowed = header::HeaderValue::from_static("POST, PUT");
            answer.headers_mut().insert(header::ALLOW, allowed);
            return answer;
        }
        let format = self.format.unwrap_or_else(|| format_of(request.headers()));
        let body = match read_all(request.into_body(), self.most).await {
            Ok(body) => body,
            Err(error @ ReadError::TooLong { .. }) => {
                return say(StatusCode::PAYLOAD_TOO_LARGE, error.to_string());
            }
            Err(error) => return say(StatusCode::BAD_REQUEST, error.to_string()),
        };
        let payload = match format.decode(&body) {
            Ok(payload) => payload,
            Err(failure) => return say(StatusCode::BAD_REQUEST, failure.to_string()),
        };
        match feed.try_give(payload) {
            Ok(()) => say(StatusCode::ACCEPTED, String::new()),
            Err(_) => {
                let full = "as many messages wait as may: try again later";
                let mut answer = say(StatusCode::SERVICE_UNAVAILABLE, full.to_owned());
                let later = header::HeaderValue::from_static("1");
                answer.headers_mut().insert(header::RETRY_AFTER, later);
                answer
            }
        }
    }
}

/// What the body is, as its sender says.
fn format_of(headers: &HeaderMap) -> Format {
    let named = headers.get(header::CONTENT_TYPE);
    let named = named
        .and_then(|named| named.to_str().ok())
        .unwrap_or_default();
    let named = named.split(';').next().unwrap_or_default().trim();
    if named.eq_ignore_ascii_case("application/json") || named.ends_with("+json") {
        Format::Json
    } else if named.is_empty() || named.starts_with("text/") {
        Format::Text
    } else {
        Format::Bytes
    }
}

fn say(status: StatusCode, text: String) -> Response<AnyBody> {
    let mut answer = Response::new(full(text));
    *answer.status_mut() = status;
    answer
}

/// Sends each message with a request of its own.
#[derive(Debug)]
pub(crate) struct HttpPoster {
    url: String,
    kind: &'static str,
    retries: u64,
    timeout: Duration,
}

/// Why a message was not taken.
enum Refusal {
    /// It may be taken later.
    ForNow(String),
    Forever(String),
}

impl SinkTask for HttpPoster {
    fn describe() -> Descriptor {
        let text = |name| ConfigField::new(name, ConfigKind::String);
        let count = |name, least, most: u64| {
            ConfigField::new(name, ConfigKind::Integer).within(least, most as f64)
        };
        Descriptor::new()
            .input("in")
            .boundary(BoundaryRole::Output)
            .field(text("url").required())
            .field(text("format").one_of(SENT.map(|format| format.0)))
            .field(count("retries", 0.0, MOST_RETRIES))
            .field(count("timeout_ms", 1.0, MOST_MS))
            .field(queue())
            .about("Sends each message with a POST request.")
    }

    fn read(setup: &Setup<'_>, _: &Addresses) -> Result<(HttpPoster, Format), Failure> {
        let settings = Settings(setup.config());
        let url = settings.demand("url")?;
        let is_fine =
            |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some();
        if !url.parse().is_ok_and(|uri| is_fine(&uri)) {
            let message =
                format!("config.url is {url:?}: write http://host/path or https://host/path");
            return Err(Failure::new(message));
        }
        let format = settings.choice("format", &SENT)?;
        let retries = settings.count_within("retries", 0, MOST_RETRIES)?;
        let work = HttpPoster {
            url: url.to_owned(),
            kind: match format {
                Format::Json => "application/json",
                Format::Text => "text/plain; charset=utf-8",
                Format::Bytes => "application/octet-stream",
            },
            retries: retries.unwrap_or(RETRIES),
            timeout: settings.millis_from("timeout_ms", 1, TIMEOUT_MS)?,
        };
        Ok((work, format))
    }

    fn encode(format: Format, payload: &Payload, to: &mut Vec<u8>) -> Result<(), Failure> {
        format.encode(payload, to)
    }

    async fn run(self, mut orders: Orders<Vec<u8>>) {
        let client = Client::builder()
            .connect_timeout(self.timeout)
            .response_timeout(self.timeout)
            .build();
        while let Some(body) = orders.next().await {
            if let Err(failure) = self.send(&client, body).await {
                orders.completions.fail(failure);
            }
            orders.completions.done();
        }
    }
}

impl HttpPoster {
    /// Sends until it is taken, or it was tried often enough.
    async fn send(&self, client: &Client, body: Vec<u8>) -> Result<(), Failure> {
        let mut pauses = Pauses::new();
        let mut tried = 0;
        loop {
            let refused = match self.try_send(client, body.clone()).await {
                Ok(()) => return Ok(()),
                Err(Refusal::Forever(why)) => why,
                Err(Refusal::ForNow(_)) if tried < self.retries => {
                    tried += 1;
                    pauses.wait().await;
                    continue;
                }
                Err(Refusal::ForNow(why)) => format!("{why}, {} times", tried + 1),
            };
            let (url, body) = (&self.url, beginning(&body));
            return Err(Failure::new(format!(
                "{url} did not take {body}: {refused}"
            )));
        }
    }

    async fn try_send(&self, client: &Client, body: Vec<u8>) -> Result<(), Refusal> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(&self.url)
            .header(header::CONTENT_TYPE, self.kind)
            .body(full(body));
        let request = request.map_err(|error| Refusal::Forever(error.to_string()))?;
        let exchange = async {
            let answer = client.request(request).await;
            let answer = answer.map_err(|error| Refusal::ForNow(error.to_string()))?;
            let status = answer.status();
            // To its end: then the connection serves the next.
            let text = read_all(answer.into_body(), ANSWER_BYTES).await;
            Ok((status, text.unwrap_or_default()))
        };
        let (status, text) = match timeout(self.timeout, exchange).await {
            Ok(answer) => answer?,
            Err(_) => {
                return Err(Refusal::ForNow(format!(
                    "no answer within {:?}",
                    self.timeout
                )));
            }
        };
        let why = || format!("it answered {status} {}", beginning(&text));
        match status {
            _ if status.is_success() => Ok(()),
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
                Err(Refusal::ForNow(why()))
            }
            _ if status.is_server_error() => Err(Refusal::ForNow(why())),
            _ => Err(Refusal::Forever(why())),
        }
    }
}
