//! Files and directories.
//!
//! The operating system has no readiness for files, so each operation runs on a blocking thread.
//! One that is dropped before its end has happened, or will: it is not undone. In a simulation they
//! work on the real files, in lock-step.
//!
//! ```
//! use windlass_runtime::Runtime;
//! use windlass_io::fs;
//!
//! Runtime::new()?.block_on(async {
//!     let path = std::env::temp_dir().join(format!("windlass-fs-{}", std::process::id()));
//!     fs::write(&path, "hello").await?;
//!     assert_eq!(fs::read_to_string(&path).await?, "hello");
//!     fs::remove_file(&path).await
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod dir;
mod dir_builder;
mod file;
mod open_options;

use std::fs::{Metadata, Permissions};
use std::io;
use std::path::{Path, PathBuf};

pub use std::fs::FileTimes;
use windlass_core::task::JoinHandle;

pub use self::dir::{DirEntry, ReadDir, read_dir};
pub use self::dir_builder::DirBuilder;
pub use self::file::File;
pub use self::open_options::OpenOptions;
use windlass_runtime::Handle;

/// Starts `operation` on a blocking thread.
fn start<T: Send + 'static>(
    operation: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Handle::current_or_default()
        .try_spawn_blocking(operation)
        .map_err(io::Error::other)
}

/// Runs `operation` on a blocking thread.
async fn run<T: Send + 'static>(
    operation: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    start(operation)?.await.map_err(io::Error::other)?
}

/// Functions of `std::fs` that take one path.
macro_rules! of_one_path {
    ($($(#[$doc:meta])+ $name:ident -> $output:ty;)+) => { $(
        $(#[$doc])+
        pub async fn $name(path: impl AsRef<Path>) -> io::Result<$output> {
            let path = path.as_ref().to_owned();
            run(move || std::fs::$name(path)).await
        }
    )+ };
}

of_one_path! {
    /// Reads a whole file.
    read -> Vec<u8>;
    /// Reads a whole file of UTF-8 text.
    read_to_string -> String;
    /// Makes a directory; its parent must be there.
    create_dir -> ();
    /// Makes a directory and those above it, where they are missing.
    create_dir_all -> ();
    /// Removes a file.
    remove_file -> ();
    /// Removes an empty directory.
    remove_dir -> ();
    /// Removes a directory with everything in it.
    remove_dir_all -> ();
    /// What is known about a file or directory; follows symbolic links.
    metadata -> Metadata;
    /// What is known about a file, directory or symbolic link itself.
    symlink_metadata -> Metadata;
    /// The absolute path without symbolic links.
    canonicalize -> PathBuf;
    /// What a symbolic link points to.
    read_link -> PathBuf;
}

/// Functions of `std::fs` that take two paths.
macro_rules! of_two_paths {
    ($($(#[$doc:meta])+ $name:ident = $function:path => $output:ty;)+) => { $(
        $(#[$doc])+
        pub async fn $name(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<$output> {
            let (from, to) = (from.as_ref().to_owned(), to.as_ref().to_owned());
            run(move || $function(from, to)).await
        }
    )+ };
}

of_two_paths! {
    /// Copies a file and its permissions; gives its length.
    copy = std::fs::copy => u64;
    /// Renames a file or directory; replaces a file that is there.
    rename = std::fs::rename => ();
    /// Makes another name for a file.
    hard_link = std::fs::hard_link => ();
    /// Makes `to` a symbolic link that says `from`.
    symlink = std::os::unix::fs::symlink => ();
}

/// Writes a whole file, which is made or replaced.
pub async fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let (path, bytes) = (path.as_ref().to_owned(), bytes.as_ref().to_vec());
    run(move || std::fs::write(path, bytes)).await
}

/// Says who may read, write and run a file.
pub async fn set_permissions(path: impl AsRef<Path>, permissions: Permissions) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    run(move || std::fs::set_permissions(path, permissions)).await
}

/// True if something is there; an error if that cannot be known.
pub async fn try_exists(path: impl AsRef<Path>) -> io::Result<bool> {
    let path = path.as_ref().to_owned();
    run(move || path.try_exists()).await
}
