//! Where output goes, and with which colours.

use std::fs;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use serde::Serialize;

use crate::args::Color;
use crate::outcome::Error;

/// Standard output and standard error.
#[derive(Debug)]
pub(crate) struct Terminal {
    /// Whether reports have colours.
    pub(crate) colored: bool,
    /// Whether standard error is a terminal.
    pub(crate) watched: bool,
}

impl Terminal {
    pub(crate) fn new(color: Color) -> Terminal {
        let watched = io::stderr().is_terminal();
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colored = match color {
            Color::Auto => watched && !refused,
            Color::Always => true,
            Color::Never => false,
        };
        Terminal { colored, watched }
    }

    /// Prints a result. A reader that has closed the pipe has read enough: that is no error, and
    /// what the command found decides its exit code, whenever the reader left.
    pub(crate) fn print(&self, text: &str) -> Result<(), Error> {
        let mut out = io::stdout().lock();
        printed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
    }

    /// Prints a result as JSON.
    pub(crate) fn print_json(&self, document: &impl Serialize) -> Result<(), Error> {
        self.print(&pretty(document)?)
    }

    /// Prints a result, or writes it to a file.
    pub(crate) fn print_to(&self, file: Option<&Path>, text: &str) -> Result<(), Error> {
        let Some(file) = file else {
            return self.print(text);
        };
        fs::write(file, text).map_err(|source| Error::Write {
            file: file.display().to_string(),
            source,
        })
    }

    /// As `print_to`, for what is too large to be a text first.
    pub(crate) fn write_to(
        &self,
        file: Option<&Path>,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Error> {
        let Some(file) = file else {
            let mut out = BufWriter::new(io::stdout().lock());
            return printed(write(&mut out).and_then(|()| out.flush()));
        };
        let written = fs::File::create(file).and_then(|created| {
            let mut out = BufWriter::new(created);
            write(&mut out).and_then(|()| out.flush())
        });
        written.map_err(|source| Error::Write {
            file: file.display().to_string(),
            source,
        })
    }

    /// Tells people something that is not a result.
    pub(crate) fn note(&self, text: &str) {
        // Without standard error there is no place for it.
        let _ = writeln!(io::stderr().lock(), "{text}");
    }
}

/// Returns a document as it is printed: with sorted keys, and a line for each.
pub(crate) fn pretty(document: &impl Serialize) -> Result<String, Error> {
    // By way of a value, which sorts the keys.
    let value = serde_json::to_value(document).map_err(|error| Error::Print(error.into()))?;
    Ok(format!("{value:#}\n"))
}

/// What became of writing to standard output; see [`Terminal::print`].
fn printed(written: io::Result<()>) -> Result<(), Error> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(Error::Print),
    }
}
