//! Writing a recording.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::{Value, json};

use super::{GRAPH_FILE, RUN_FILE, SUM_FIELD, VERSION};
use crate::run::Snapshot;
use windlass_plan::model::Graph;

/// What the first line says.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Header {
    pub(crate) graph: String,
    /// The components that are not called in a replay, by id.
    pub(crate) played_back: Vec<String>,
    /// Those that have a door to the world outside.
    pub(crate) doors: Vec<String>,
    /// Those that ran several times at once.
    pub(crate) reentrant: Vec<String>,
    /// Whether time was real.
    pub(crate) on_clock: bool,
    /// What the components were restored from.
    pub(crate) restored: Option<Snapshot>,
    /// Whether they were reset.
    pub(crate) reset: bool,
}

impl Header {
    pub(crate) fn to_json(&self, graph: &Graph) -> Value {
        let ids = |list: &mut dyn Iterator<Item = &str>| list.map(Value::from).collect::<Value>();
        json!({
            "windlass_recording": VERSION,
            "graph": self.graph,
            "lanes": ids(&mut graph.lanes.iter().map(|lane| lane.id.as_str())),
            "edges": ids(&mut graph.edges.iter().map(|edge| edge.id.as_str())),
            "played_back": self.played_back,
            "doors": self.doors,
            "reentrant": self.reentrant,
            "on_clock": self.on_clock,
            "reset": self.reset,
            "restored": self.restored.as_ref().map(Snapshot::to_json),
        })
    }
}

/// A recording that is being written.
#[derive(Debug)]
pub(crate) struct Writer {
    out: BufWriter<File>,
    written: u64,
    limit: u64,
    /// Nothing more is written: it is as large as it may be.
    full: bool,
}

impl Writer {
    /// Makes the folder, and the files in it; those of an earlier recording are replaced.
    pub(crate) fn create(folder: &Path, text: Option<&str>, limit: u64) -> io::Result<Writer> {
        fs::create_dir_all(folder)?;
        match text {
            Some(text) => fs::write(folder.join(GRAPH_FILE), text)?,
            // One of an earlier recording is of another graph.
            None => match fs::remove_file(folder.join(GRAPH_FILE)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            },
        }
        Ok(Writer {
            out: BufWriter::new(File::create(folder.join(RUN_FILE))?),
            written: 0,
            limit,
            full: false,
        })
    }

    pub(crate) fn line(&mut self, line: &Value) -> io::Result<()> {
        self.write(&line.to_string())
    }

    /// Writes an entry with the checksum of everything up to it.
    pub(crate) fn summed_line(&mut self, mut line: String, sum: &str) -> io::Result<()> {
        line.truncate(line.len() - "}".len());
        line.push_str(SUM_FIELD);
        line.push_str(sum);
        line.push_str("\"}");
        self.write(&line)
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        if self.full {
            return Ok(());
        }
        self.written += text.len() as u64 + 1;
        if self.written > self.limit {
            self.full = true;
            return self.out.flush();
        }
        self.out.write_all(text.as_bytes())?;
        self.out.write_all(b"\n")
    }

    /// The last line; gives whether everything is there.
    pub(crate) fn finish(mut self, end: &Value) -> io::Result<bool> {
        self.line(end)?;
        self.out.flush()?;
        Ok(!self.full)
    }
}
