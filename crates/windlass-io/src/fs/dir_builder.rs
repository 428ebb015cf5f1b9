//! How to make a directory.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use super::run;

/// Says how a directory is to be made, as `std::fs::DirBuilder` does.
#[derive(Debug, Default)]
pub struct DirBuilder {
    recursive: bool,
    mode: Option<u32>,
}

impl DirBuilder {
    /// Makes options for one directory whose parent is there.
    pub fn new() -> DirBuilder {
        DirBuilder::default()
    }

    /// Says whether directories above are made, too; then one that is there is no error.
    pub fn recursive(&mut self, recursive: bool) -> &mut Self {
        self.recursive = recursive;
        self
    }

    /// Sets the permissions of the directory.
    pub fn mode(&mut self, mode: u32) -> &mut Self {
        self.mode = Some(mode);
        self
    }

    /// Makes the directory.
    pub async fn create(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref().to_owned();
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(self.recursive);
        if let Some(mode) = self.mode {
            builder.mode(mode);
        }
        run(move || builder.create(path)).await
    }
}
