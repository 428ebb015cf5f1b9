//! Where the workspace is and which files belong to it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::error::Error;
use crate::process;

/// The checkout that the commands work on.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// Where cargo puts what it builds; our own scratch directories lie below.
    pub(crate) target: PathBuf,
}

impl Workspace {
    /// Takes the checkout from cargo, which says where this crate is, or else from the current
    /// directory.
    pub(crate) fn find() -> Result<Self, Error> {
        let here = env::current_dir().map_err(Error::reading("."))?;
        let start = env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| here.clone(), PathBuf::from);
        let root = start
            .ancestors()
            .find(|dir| dir.join("xtask/Cargo.toml").is_file() && dir.join("Cargo.toml").is_file())
            .ok_or(Error::NoWorkspace)?
            .to_owned();
        let target = env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| root.join("target"), |dir| here.join(dir));
        Ok(Workspace { root, target })
    }

    /// The path of something in the workspace.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// Reads a text file of the workspace.
    pub(crate) fn read(&self, relative: &str) -> Result<String, Error> {
        fs::read_to_string(self.path(relative)).map_err(Error::reading(relative))
    }

    /// Says what to do if a file is not there yet.
    pub(crate) fn require(
        &self,
        relative: &'static str,
        advice: &'static str,
    ) -> Result<(), Error> {
        if self.path(relative).is_file() {
            Ok(())
        } else {
            Err(Error::Absent {
                file: relative,
                advice,
            })
        }
    }

    /// Cargo, in the root of the workspace.
    pub(crate) fn cargo(&self) -> Command {
        cargo_in(&self.root)
    }

    /// The names of a package's features.
    pub(crate) fn features(&self, package: &str) -> Result<Vec<String>, Error> {
        let metadata = self.metadata()?;
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let features = packages
            .filter(|known| known["name"] == package)
            .filter_map(|known| known["features"].as_object())
            .flat_map(|features| features.keys().cloned());
        Ok(features.filter(|name| name != "default").collect())
    }

    /// All files that git knows or would add, relative to the root, in order.
    pub(crate) fn files(&self) -> Result<Vec<String>, Error> {
        let mut git = Command::new("git");
        git.args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(&self.root);
        let listing = process::stdout_of(&mut git)?;
        let mut files: Vec<String> = listing
            .split('\0')
            .filter(|name| !name.is_empty() && self.path(name).is_file())
            .map(str::to_owned)
            .collect();
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// What cargo knows about the packages of the workspace.
    pub(crate) fn metadata(&self) -> Result<Value, Error> {
        self.metadata_with(&["--no-deps"])
    }

    /// What cargo knows about the packages of the workspace, and about all that they depend on.
    pub(crate) fn whole_metadata(&self) -> Result<Value, Error> {
        self.metadata_with(&["--locked"])
    }

    fn metadata_with(&self, arguments: &[&str]) -> Result<Value, Error> {
        let mut cargo = self.cargo();
        cargo
            .args(["metadata", "--format-version", "1"])
            .args(arguments);
        let text = process::stdout_of(cargo.stderr(Stdio::inherit()))?;
        serde_json::from_str(&text).map_err(|source| Error::Json {
            what: "cargo metadata".to_owned(),
            source,
        })
    }
}

/// The cargo that started us, or the one on the PATH.
pub(crate) fn cargo_in(dir: &Path) -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut cargo = Command::new(program);
    cargo.current_dir(dir);
    if env::var_os("CI").is_some() {
        // A checkout that is built once gains nothing from incremental data, which takes gigabytes.
        cargo.env("CARGO_INCREMENTAL", "0");
    }
    cargo
}
