//! `windlass.tcp.source` and `windlass.tcp.sink`.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use windlass_core::sync::Arc;
use windlass_graph::component::{ConfigField, ConfigKind, Descriptor, Failure, Setup};
use windlass_graph::model::BoundaryRole;
use windlass_io::io::{AsyncReadExt, AsyncWriteExt};
use windlass_io::net::{TcpListener, TcpStream};
use windlass_runtime::time::timeout;
use windlass_runtime::{race, spawn};
use windlass_sync::CancellationToken;
use windlass_sync::lock::Semaphore;
use windlass_value::Payload;

use super::sink::SinkTask;
use super::source::SourceTask;
use super::{Addresses, Pauses, address, queue};
use crate::file::{line_bytes, line_bytes_of, records};
use crate::format::{Format, refused};
use crate::inlet::{Feed, InletClosed};
use crate::outlet::Orders;
use crate::settings::Settings;
use crate::splitter::{Line, Splitter};

/// How much is read at once.
const CHUNK: usize = 16 << 10;
/// How many clients a source or a sink has at most.
const MOST_CLIENTS: u64 = 65_536;
/// How many it has unless one says otherwise.
const CLIENTS: u64 = 1024;
/// How long a client of a sink may take to make room, unless one says otherwise.
const STALL_MS: u64 = 1000;

/// Which side makes the connection.
#[derive(Debug, Clone)]
enum Side {
    Listen(String),
    Connect(String),
}

impl Side {
    fn read(settings: Settings<'_>) -> Result<Side, Failure> {
        match (address(settings, "listen")?, address(settings, "connect")?) {
            (Some(address), None) => Ok(Side::Listen(address)),
            (None, Some(address)) => Ok(Side::Connect(address)),
            _ => Err(Failure::new(
                "it needs either config.listen or config.connect, as host:port",
            )),
        }
    }

    fn fields(descriptor: Descriptor) -> Descriptor {
        let text = |name| ConfigField::new(name, ConfigKind::String);
        let clients = ConfigField::new("max_clients", ConfigKind::Integer);
        descriptor
            .field(text("listen"))
            .field(text("connect"))
            .field(text("format").one_of(Format::OF_LINES.map(|format| format.0)))
            .field(clients.within(1.0, MOST_CLIENTS as f64))
            .field(queue())
    }
}

async fn bind(address: &str, id: &str, addresses: &Addresses) -> Result<TcpListener, Failure> {
    let failed = |error: io::Error| Failure::new(format!("cannot listen at {address}: {error}"));
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    addresses.announce(id, listener.local_addr().map_err(failed)?);
    Ok(listener)
}

/// Whether only the connection that was to be accepted is concerned.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

/// Publishes the lines that come.
#[derive(Debug, Clone)]
pub(crate) struct TcpReader {
    id: String,
    side: Side,
    format: Format,
    most: usize,
    clients: usize,
    reconnect: bool,
    addresses: Addresses,
}

impl SourceTask for TcpReader {
    fn describe() -> Descriptor {
        let source = Descriptor::new()
            .output("out")
            .boundary(BoundaryRole::Input)
            .about("Publishes the lines that come over TCP.");
        Side::fields(source)
            .field(line_bytes())
            .field(records())
            .field(ConfigField::new("reconnect", ConfigKind::Bool))
    }

    fn read(setup: &Setup<'_>, addresses: &Addresses) -> Result<TcpReader, Failure> {
        let settings = Settings(setup.config());
        Ok(TcpReader {
            id: setup.id().to_owned(),
            side: Side::read(settings)?,
            format: settings.choice("format", &Format::OF_LINES)?,
            most: line_bytes_of(settings)?,
            clients: settings.count("max_clients", CLIENTS, MOST_CLIENTS)?,
            reconnect: settings.flag("reconnect", false)?,
            addresses: addresses.clone(),
        })
    }

    async fn run(self, feed: Feed<Payload>, stop: CancellationToken) {
        let ended = match &self.side {
            Side::Listen(address) => self.listen(address, &feed, &stop).await,
            Side::Connect(address) => self.connect(address, &feed).await,
        };
        if let Err(failure) = ended {
            // If the component has ended, there is no reader for the failure.
            let _ = feed.report(failure).await;
        }
    }
}

impl TcpReader {
    async fn listen(
        &self,
        address: &str,
        feed: &Feed<Payload>,
        stop: &CancellationToken,
    ) -> Result<(), Failure> {
        let listener = bind(address, &self.id, &self.addresses).await?;
        let room = Arc::new(Semaphore::new(self.clients));
        loop {
            let place = room.clone().acquire_owned().await?;
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) if is_of_one_connection(&error) => continue,
                Err(error) => {
                    return Err(Failure::new(format!("cannot accept at {address}: {error}")));
                }
            };
            let (reading, feed, stop) = (self.clone(), feed.clone(), stop.clone());
            drop(spawn(async move {
                let _place = place;
                let read = stop.run_until_cancelled(reading.read(stream, &feed)).await;
                if let Some(Ok(Err(error))) = read {
                    tracing::debug!(target: "windlass::graph", component = reading.id, %error, "a client went away");
                }
            }));
        }
    }

    async fn connect(&self, address: &str, feed: &Feed<Payload>) -> Result<(), Failure> {
        let mut pauses = Pauses::new();
        loop {
            let ended = match TcpStream::connect(address).await {
                Ok(stream) => {
                    pauses = Pauses::new();
                    match self.read(stream, feed).await {
                        Err(InletClosed) => return Ok(()),
                        Ok(ended) => ended,
                    }
                }
                Err(error) => Err(error),
            };
            match ended {
                _ if self.reconnect => pauses.wait().await,
                Ok(()) => return Ok(()),
                Err(error) => {
                    return Err(Failure::new(format!(
                        "no connection to {address} ({error}); is it running? config.reconnect tries again"
                    )));
                }
            }
        }
    }

    /// Reads a connection to its end.
    async fn read(
        &self,
        mut stream: TcpStream,
        feed: &Feed<Payload>,
    ) -> Result<io::Result<()>, InletClosed> {
        let mut splitter = Splitter::new(self.most);
        let mut chunk = vec![0; CHUNK];
        loop {
            let count = match stream.read(&mut chunk).await {
                Ok(count) => count,
                Err(error) => return Ok(Err(error)),
            };
            splitter.push(&chunk[..count]);
            while let Some(line) = splitter.next() {
                self.take(line, feed).await?;
            }
            if count == 0 {
                if let Some(line) = splitter.rest() {
                    self.take(line, feed).await?;
                }
                return Ok(Ok(()));
            }
        }
    }

    async fn take(&self, line: Line, feed: &Feed<Payload>) -> Result<(), InletClosed> {
        let decoded = match line {
            Line::Whole(line) => self.format.decode(&line),
            Line::TooLong(start) => Err(refused(&start, "is longer than config.max_line_bytes")),
        };
        match decoded {
            Ok(payload) => feed.give(payload).await,
            Err(failure) => feed.report(failure).await,
        }
    }
}

/// Sends each message as a line.
#[derive(Debug)]
pub(crate) struct TcpWriter {
    id: String,
    side: Side,
    clients: usize,
    wait_for: usize,
    stall: Duration,
    addresses: Addresses,
}

/// What a sink that listens hears of next.
enum Event {
    Client(io::Result<TcpStream>),
    Line(Option<Vec<u8>>),
}

impl SinkTask for TcpWriter {
    fn describe() -> Descriptor {
        let sink = Descriptor::new()
            .input("in")
            .boundary(BoundaryRole::Output)
            .about("Sends each message over TCP, as a line.");
        let wait_for = ConfigField::new("wait_for", ConfigKind::Integer);
        let stall = ConfigField::new("stall_ms", ConfigKind::Integer);
        Side::fields(sink)
            .field(wait_for.within(0.0, MOST_CLIENTS as f64))
            .field(stall.within(1.0, crate::settings::MOST_MS as f64))
    }

    fn read(setup: &Setup<'_>, addresses: &Addresses) -> Result<(TcpWriter, Format), Failure> {
        let settings = Settings(setup.config());
        let clients = settings.count("max_clients", CLIENTS, MOST_CLIENTS)?;
        let wait_for = settings.count_within("wait_for", 0, clients as u64)?;
        let work = TcpWriter {
            id: setup.id().to_owned(),
            side: Side::read(settings)?,
            clients,
            wait_for: wait_for.unwrap_or(0) as usize,
            stall: settings.millis_from("stall_ms", 1, STALL_MS)?,
            addresses: addresses.clone(),
        };
        Ok((work, settings.choice("format", &Format::OF_LINES)?))
    }

    fn encode(format: Format, payload: &Payload, to: &mut Vec<u8>) -> Result<(), Failure> {
        format.encode_line(payload, to)
    }

    async fn run(self, mut orders: Orders<Vec<u8>>) {
        match &self.side {
            Side::Connect(address) => self.connect(address, &mut orders).await,
            Side::Listen(address) => {
                if let Err(failure) = self.listen(address, &mut orders).await {
                    orders.completions.fail(failure);
                }
            }
        }
    }
}

impl TcpWriter {
    /// Sends every line, if need be over a new connection.
    async fn connect(&self, address: &str, orders: &mut Orders<Vec<u8>>) {
        let mut connection: Option<TcpStream> = None;
        while let Some(line) = orders.next().await {
            let mut pauses = Pauses::new();
            loop {
                let sent = match connection.as_mut().filter(|stream| is_open(stream)) {
                    Some(stream) => stream.write_all(&line).await,
                    None => {
                        connection = None;
                        match TcpStream::connect(address).await {
                            Ok(stream) => {
                                connection = Some(stream);
                                continue;
                            }
                            Err(error) => Err(error),
                        }
                    }
                };
                let Err(error) = sent else { break };
                connection = None;
                tracing::warn!(target: "windlass::graph", component = self.id, %error, "no connection to {address}: trying again");
                pauses.wait().await;
            }
            orders.completions.done();
        }
        if let Some(mut stream) = connection {
            // The other side may be gone.
            let _ = stream.shutdown().await;
        }
    }

    /// Sends every line to all clients that are connected.
    async fn listen(&self, address: &str, orders: &mut Orders<Vec<u8>>) -> Result<(), Failure> {
        let listener = bind(address, &self.id, &self.addresses).await?;
        let mut clients: Vec<TcpStream> = Vec::new();
        let mut waits = self.wait_for > 0;
        let mut held: Option<Vec<u8>> = None;
        loop {
            waits &= clients.len() < self.wait_for;
            if let Some(line) = held.take_if(|_| !waits) {
                self.send_to_all(&mut clients, &line).await;
                orders.completions.done();
            }
            let (listens, asks) = (clients.len() < self.clients, held.is_none());
            match next_event(&listener, orders, listens, asks).await {
                Event::Client(Ok(client)) => clients.push(client),
                Event::Client(Err(error)) if is_of_one_connection(&error) => {}
                Event::Client(Err(error)) => {
                    return Err(Failure::new(format!("cannot accept at {address}: {error}")));
                }
                Event::Line(None) => return Ok(()),
                Event::Line(line) => held = line,
            }
        }
    }

    async fn send_to_all(&self, clients: &mut Vec<TcpStream>, line: &[u8]) {
        let mut kept = Vec::with_capacity(clients.len());
        for mut client in clients.drain(..) {
            match timeout(self.stall, client.write_all(line)).await {
                Ok(Ok(())) => kept.push(client),
                Ok(Err(_)) => {}
                Err(_) => {
                    let stall = self.stall;
                    tracing::warn!(target: "windlass::graph", component = self.id, "a client did not read for {stall:?} and was let go");
                }
            }
        }
        *clients = kept;
    }
}

type Events<'a> = Vec<Pin<Box<dyn Future<Output = Event> + Send + 'a>>>;

/// A client if it listens, a line if it asks for one: whichever comes first.
async fn next_event(
    listener: &TcpListener,
    orders: &mut Orders<Vec<u8>>,
    listens: bool,
    asks: bool,
) -> Event {
    let mut events: Events<'_> = Vec::with_capacity(2);
    if listens {
        events.push(Box::pin(async {
            Event::Client(listener.accept().await.map(|(stream, _)| stream))
        }));
    }
    if asks {
        events.push(Box::pin(async { Event::Line(orders.next().await) }));
    }
    race(events).await.unwrap_or(Event::Line(None))
}

/// Whether the other side has not hung up, as far as we know.
fn is_open(stream: &TcpStream) -> bool {
    // What it says is of no interest; that it says nothing any more is.
    let mut ignored = [0; 512];
    loop {
        match stream.try_read(&mut ignored) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
        }
    }
}
