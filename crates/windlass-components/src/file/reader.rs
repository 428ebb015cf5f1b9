//! A file, line by line.

use std::fs::File;
use std::io::Read as _;

use windlass_graph::component::Failure;

use crate::format::refused;
use crate::settings::about_file;
use crate::splitter::{Line, Splitter};

/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// Reads a file line by line; it knows whether there is another.
#[derive(Debug)]
pub(crate) struct Reader {
    file: File,
    path: String,
    splitter: Splitter,
    chunk: Vec<u8>,
    ahead: Option<Line>,
    at_end: bool,
    /// The number of the last line given.
    number: u64,
}

impl Reader {
    pub(super) fn open(path: &str, most: usize) -> Result<Reader, Failure> {
        let file = File::open(path).map_err(|error| about_file("open", path, &error))?;
        Ok(Reader {
            file,
            path: path.to_owned(),
            splitter: Splitter::new(most),
            chunk: vec![0; CHUNK],
            ahead: None,
            at_end: false,
            number: 0,
        })
    }

    /// Whether there is no other line.
    pub(super) fn is_at_end(&mut self) -> Result<bool, Failure> {
        self.look_ahead()?;
        Ok(self.ahead.is_none())
    }

    /// The next line and its number; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Vec<u8>)>, Failure> {
        self.look_ahead()?;
        let Some(line) = self.ahead.take() else {
            return Ok(None);
        };
        self.number += 1;
        match line {
            Line::Whole(line) => Ok(Some((self.number, line))),
            Line::TooLong(start) => {
                let failure = refused(&start, "is longer than config.max_line_bytes");
                Err(self.at(self.number, &failure))
            }
        }
    }

    /// A failure with the place of the line.
    pub(super) fn at(&self, number: u64, failure: &Failure) -> Failure {
        Failure::new(format!("{}, line {number}: {failure}", self.path))
    }

    fn look_ahead(&mut self) -> Result<(), Failure> {
        while self.ahead.is_none() {
            self.ahead = self.splitter.next();
            if self.ahead.is_some() || self.at_end {
                break;
            }
            let read = self.file.read(&mut self.chunk);
            let read = read.map_err(|error| about_file("read", &self.path, &error))?;
            self.splitter.push(&self.chunk[..read]);
            if read == 0 {
                self.at_end = true;
                self.ahead = self.splitter.rest();
            }
        }
        Ok(())
    }
}
