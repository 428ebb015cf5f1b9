//! Sockets: TCP, UDP and HTTP.

mod addresses;
pub(crate) mod http;
pub(crate) mod sink;
pub(crate) mod source;
pub(crate) mod tcp;
pub(crate) mod udp;

use std::time::Duration;

use windlass_graph::component::{ConfigField, ConfigKind, Failure};

pub use self::addresses::Addresses;
use crate::settings::Settings;

/// How many messages may wait between a socket and its component, unless one says otherwise, and at
/// most.
const QUEUE: u64 = 64;
const MOST_QUEUE: u64 = 1 << 20;

/// How long to wait before a connection is tried again: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

pub(crate) fn queue() -> ConfigField {
    ConfigField::new("queue", ConfigKind::Integer).within(1.0, MOST_QUEUE as f64)
}

pub(crate) fn queue_of(settings: Settings<'_>) -> Result<usize, Failure> {
    settings.count("queue", QUEUE, MOST_QUEUE)
}

/// An address of the form `host:port`, if it is there.
fn address(settings: Settings<'_>, name: &str) -> Result<Option<String>, Failure> {
    let Some(text) = settings.text(name)? else {
        return Ok(None);
    };
    let port = text
        .rsplit_once(':')
        .map(|(host, port)| (host, port.parse::<u16>()));
    match port {
        Some((host, Ok(_))) if !host.is_empty() => Ok(Some(text.to_owned())),
        _ => Err(Failure::new(format!(
            "config.{name} is {text:?}: write host:port, such as 127.0.0.1:7000"
        ))),
    }
}

/// An address that has to be there.
fn needed_address(settings: Settings<'_>, name: &str) -> Result<String, Failure> {
    let missing = || Failure::new(format!("config.{name} is missing: write host:port"));
    address(settings, name)?.ok_or_else(missing)
}

/// The pauses between attempts.
#[derive(Debug)]
struct Pauses(Duration);

impl Pauses {
    fn new() -> Pauses {
        Pauses(FIRST_PAUSE)
    }

    async fn wait(&mut self) {
        windlass_runtime::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(LONGEST_PAUSE);
    }
}
