//! Files: lines, JSON lines, CSV and replays.
//!
//! They are read and written in `execute`, through buffers, so that a simulated run does the same
//! every time. What an invocation wrote is in the file when it has ended.

pub(crate) mod csv;
pub(crate) mod lines;
mod reader;
pub(crate) mod replay;
pub(crate) mod sink;
pub(crate) mod source;
mod writer;

use windlass_graph::component::{ConfigField, ConfigKind, Descriptor, Failure};
use windlass_graph::model::BoundaryRole;

use crate::settings::Settings;

/// How many bytes a line may have, unless one says otherwise, and at most.
pub(crate) const LINE_BYTES: u64 = 1 << 20;
pub(crate) const MOST_LINE_BYTES: u64 = 1 << 30;
/// How many records an invocation may publish.
const MOST_RECORDS: u64 = 1 << 16;

fn path() -> ConfigField {
    ConfigField::new("path", ConfigKind::String).required()
}

pub(crate) fn records() -> ConfigField {
    ConfigField::new("records", ConfigKind::Integer).within(1.0, MOST_RECORDS as f64)
}

pub(crate) fn records_of(settings: Settings<'_>) -> Result<usize, Failure> {
    settings.count("records", 1, MOST_RECORDS)
}

pub(crate) fn line_bytes() -> ConfigField {
    let field = ConfigField::new("max_line_bytes", ConfigKind::Integer);
    field.within(1.0, MOST_LINE_BYTES as f64)
}

pub(crate) fn line_bytes_of(settings: Settings<'_>) -> Result<usize, Failure> {
    settings.count("max_line_bytes", LINE_BYTES, MOST_LINE_BYTES)
}

fn source(about: &str) -> Descriptor {
    let source = Descriptor::new().output("out").field(path());
    let source = source.finite_source().boundary(BoundaryRole::Input);
    source.about(about)
}

fn sink(about: &str) -> Descriptor {
    let sink = Descriptor::new().input("in").field(path());
    let append = ConfigField::new("append", ConfigKind::Bool);
    sink.field(append)
        .boundary(BoundaryRole::Output)
        .about(about)
}
