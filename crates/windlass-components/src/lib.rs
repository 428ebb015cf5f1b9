//! Component types for graphs: files, sockets, HTTP, expressions, windows, and commands in any
//! language.
//!
//! | types | |
//! |---|---|
//! | `windlass.lines.source`, `windlass.jsonl.source`, `windlass.csv.source`, and `.sink` of each | files |
//! | `windlass.replay`, `windlass.clock`, `windlass.random` | what comes by itself |
//! | `windlass.tcp.source`, `windlass.udp.source`, `windlass.http.source`, and `.sink` of each | the network |
//! | `windlass.map`, `windlass.filter`, `windlass.window` | [expressions](windlass_graph::expression) over messages |
//! | `windlass.throttle`, `windlass.merge`, `windlass.log` | the rest of what stands between |
//! | `windlass.exec` | a command that speaks JSON lines: a component in any language |
//!
//! Their ports and configurations are in `docs/components.md`.
//!
//! ```
//! use windlass_graph::component::Registry;
//! use windlass_graph::{LoadOptions, Prepared, RunOptions, load};
//! use windlass_runtime::Runtime;
//!
//! let mut registry = Registry::built_in();
//! windlass_components::register(&mut registry);
//! let graph = "
//! schema_version: 2
//! graph: {name: dice}
//! lanes: {main: {type: event_loop}}
//! components:
//!   - {id: dice, type: windlass.random, config: {kind: integer, min: 1, max: 6}, execution: {lane: main}}
//!   - {id: sum, type: windlass.window, config: {size: 2, expr: sum(values)}, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
//!   - {id: out, type: windlass.boundary.Output, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
//! edges:
//!   - {id: rolled, from: dice.out, to: sum.in, kind: immediate}
//!   - {id: summed, from: sum.out, to: out.in, kind: immediate}
//! ";
//! let prepared = Prepared::new(load(graph, &LoadOptions::default())?.graph, registry)?;
//! let result = Runtime::new()?.block_on(prepared.run(RunOptions::steps(10)));
//! assert_eq!(result.metrics.of("runtime.channel.delivery_count", "summed"), Some(5.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod clock;
mod emit;
mod exec;
mod file;
mod filter;
mod format;
mod inlet;
mod log;
mod map;
mod merge;
mod net;
mod outlet;
mod per_message;
mod random;
mod records;
mod settings;
mod splitter;
mod throttle;
mod window;

use windlass_graph::component::Registry;

use file::csv::{CsvEncoder, CsvReader};
use file::lines::{LineEncoder, LineReader};
use file::replay::ReplayReader;
use file::sink::FileSink;
use file::source::FileSource;
use format::Format;
pub use net::Addresses;
use net::sink::{Sink, SinkTask};
use net::source::{Source, SourceTask};
use per_message::PerMessage;

/// Adds all types.
pub fn register(registry: &mut Registry) {
    register_with(registry, &Addresses::new());
}

/// Adds all types; `addresses` hears where components listen.
pub fn register_with(registry: &mut Registry, addresses: &Addresses) {
    register_files(registry);
    register_network(registry, addresses);
    registry.register::<clock::Clock>("windlass.clock");
    registry.register::<random::Random>("windlass.random");
    registry.register::<PerMessage<map::Map>>("windlass.map");
    registry.register::<PerMessage<filter::Filter>>("windlass.filter");
    registry.register::<window::Window>("windlass.window");
    registry.register::<throttle::Throttle>("windlass.throttle");
    registry.register::<merge::Merge>("windlass.merge");
    registry.register::<log::Log>("windlass.log");
    registry.register::<exec::Exec>("windlass.exec");
}

fn register_files(registry: &mut Registry) {
    for (name, format) in [("lines", Format::Text), ("jsonl", Format::Json)] {
        let source = LineReader::describe(format);
        registry.register_with(format!("windlass.{name}.source"), source, move || {
            Box::new(FileSource::new(LineReader::new(format)))
        });
        let sink = LineEncoder::describe(format);
        registry.register_with(format!("windlass.{name}.sink"), sink, move || {
            Box::new(FileSink::new(LineEncoder(format)))
        });
    }
    registry.register_with("windlass.csv.source", CsvReader::describe(), || {
        Box::new(FileSource::new(CsvReader::default()))
    });
    registry.register_with("windlass.csv.sink", CsvEncoder::describe(), || {
        Box::new(FileSink::new(CsvEncoder::default()))
    });
    registry.register_with("windlass.replay", ReplayReader::describe(), || {
        Box::new(FileSource::new(ReplayReader::default()))
    });
}

fn register_network(registry: &mut Registry, addresses: &Addresses) {
    source::<net::tcp::TcpReader>(registry, "windlass.tcp.source", addresses);
    source::<net::udp::UdpReader>(registry, "windlass.udp.source", addresses);
    source::<net::http::HttpListener>(registry, "windlass.http.source", addresses);
    sink::<net::tcp::TcpWriter>(registry, "windlass.tcp.sink", addresses);
    sink::<net::udp::UdpSender>(registry, "windlass.udp.sink", addresses);
    sink::<net::http::HttpPoster>(registry, "windlass.http.sink", addresses);
}

fn source<W: SourceTask>(registry: &mut Registry, name: &str, addresses: &Addresses) {
    let known = addresses.clone();
    registry.register_with(name, W::describe(), move || {
        Box::new(Source::<W>::new(&known))
    });
}

fn sink<W: SinkTask>(registry: &mut Registry, name: &str, addresses: &Addresses) {
    let known = addresses.clone();
    registry.register_with(name, W::describe(), move || {
        Box::new(Sink::<W>::new(&known))
    });
}
