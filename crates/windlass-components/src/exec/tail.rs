//! What a command writes to its standard error: it is logged, and its last lines are kept.

use std::collections::VecDeque;

use windlass_core::sync::{Arc, Mutex};
use windlass_io::command::ChildStderr;
use windlass_io::io::AsyncReadExt;

use crate::log::Level;
use crate::splitter::{Line, Splitter};

/// How many lines are kept.
const LINES: usize = 10;
/// How long a line may be.
const LINE_BYTES: usize = 4096;

/// The last complaints; clones are of the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    /// Reads to the end.
    pub(super) async fn read(self, mut stderr: ChildStderr, component: String) {
        let mut splitter = Splitter::new(LINE_BYTES);
        let mut chunk = vec![0; 4096];
        loop {
            let count = stderr.read(&mut chunk).await.unwrap_or(0);
            splitter.push(&chunk[..count]);
            while let Some(line) = splitter.next() {
                self.add(line, &component);
            }
            if count == 0 {
                if let Some(line) = splitter.rest() {
                    self.add(line, &component);
                }
                return;
            }
        }
    }

    fn add(&self, line: Line, component: &str) {
        let (Line::Whole(line) | Line::TooLong(line)) = line;
        let line = String::from_utf8_lossy(&line).into_owned();
        Level::Warn.log(component, &line);
        let mut lines = self.0.lock();
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// The last complaints, for a message about the end.
    pub(super) fn shown(&self) -> String {
        let lines = self.0.lock();
        match lines.is_empty() {
            true => "it said nothing on stderr".to_owned(),
            false => {
                let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
                format!("it said last:\n  {}", lines.join("\n  "))
            }
        }
    }
}
