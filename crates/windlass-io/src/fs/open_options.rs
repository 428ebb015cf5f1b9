//! How to open a file.

use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::{File, run};

/// Says how a file is to be opened, as `std::fs::OpenOptions` does.
#[derive(Debug, Clone)]
pub struct OpenOptions(std::fs::OpenOptions);

/// Options that are forwarded as they are.
macro_rules! options {
    ($($(#[$doc:meta])+ $name:ident($value:ty);)+) => { $(
        $(#[$doc])+
        pub fn $name(&mut self, $name: $value) -> &mut Self {
            self.0.$name($name);
            self
        }
    )+ };
}

impl OpenOptions {
    /// Makes options that allow nothing yet.
    pub fn new() -> OpenOptions {
        OpenOptions(std::fs::OpenOptions::new())
    }

    options! {
        /// May be read.
        read(bool);
        /// May be written.
        write(bool);
        /// Writes go to the end.
        append(bool);
        /// What was there is thrown away.
        truncate(bool);
        /// Is made if it is not there.
        create(bool);
        /// Is made, and must not be there.
        create_new(bool);
        /// The permissions of a file that is made.
        mode(u32);
        /// Flags for the operating system.
        custom_flags(i32);
    }

    /// Opens the file.
    pub async fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let (options, path) = (self.0.clone(), path.as_ref().to_owned());
        run(move || options.open(path)).await.map(File::from_std)
    }
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl From<std::fs::OpenOptions> for OpenOptions {
    fn from(options: std::fs::OpenOptions) -> Self {
        OpenOptions(options)
    }
}
