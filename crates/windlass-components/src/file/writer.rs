//! A file that is written to, by whole records.

use std::fs::{File, OpenOptions};
use std::io::Write as _;

use windlass_graph::component::Failure;

use crate::settings::{Settings, about_file};

/// A file that is written to.
#[derive(Debug)]
pub(super) struct Writer {
    file: File,
    path: String,
}

/// The path of the file, and whether what is in it stays.
#[derive(Debug, Default, Clone)]
pub(super) struct FileTarget {
    path: String,
    append: bool,
}

impl FileTarget {
    pub(super) fn read(settings: Settings<'_>) -> Result<FileTarget, Failure> {
        Ok(FileTarget {
            path: settings.demand("path")?.to_owned(),
            append: settings.flag("append", false)?,
        })
    }

    pub(super) fn open(&self) -> Result<Writer, Failure> {
        let mut options = OpenOptions::new();
        options.create(true).append(self.append);
        options.write(true).truncate(!self.append);
        let file = options.open(&self.path);
        Ok(Writer {
            file: file.map_err(|error| about_file("open", &self.path, &error))?,
            path: self.path.clone(),
        })
    }
}

impl Writer {
    /// Whether there is nothing in it.
    pub(super) fn is_empty(&self) -> Result<bool, Failure> {
        let length = self.file.metadata().map(|data| data.len());
        let length = length.map_err(|error| about_file("look at", &self.path, &error))?;
        Ok(length == 0)
    }

    /// Writes all of it.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.file.write_all(bytes);
        written.map_err(|error| about_file("write to", &self.path, &error))
    }
}
