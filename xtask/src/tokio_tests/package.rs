//! The package below `target` whose tests are the files of the checkout.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::error::Error;
use crate::process;
use crate::workspace::{self, Workspace};

/// The name of the package, by which its messages are told from those of its dependencies.
const NAME: &str = "tokio-tests";

/// What the tests are run against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// The package in `facade/tokio`.
    Facade,
    /// The checkout's own tokio.
    Tokio,
}

impl Subject {
    fn folder(self) -> &'static str {
        match self {
            Subject::Facade => "facade",
            Subject::Tokio => "baseline",
        }
    }
}

/// Features of tokio that the test files ask for by `cfg`. They are features of this package then.
const FEATURES: &[&str] = &[
    "full",
    "fs",
    "io-util",
    "io-std",
    "macros",
    "net",
    "parking_lot",
    "process",
    "rt",
    "rt-multi-thread",
    "signal",
    "sync",
    "time",
    "test-util",
];

/// What the test files use beside tokio.
const DEPENDENCIES: &str = r#"
tokio = { version = "1", features = ["full", "test-util"] }
tokio-test = "0.4"
tokio-stream = "0.1"
tokio-util = { version = "0.7", features = ["rt"] }
async-stream = "0.3"
bytes = "1"
futures = { version = "0.3", features = ["async-await"] }
futures-concurrency = "7.6"
futures-test = "0.3"
libc = "0.2"
mockall = "0.13"
nix = { version = "0.31", default-features = false, features = ["aio", "fs", "socket"] }
pin-project-lite = "0.2"
proptest = "1"
rand = "0.9"
socket2 = { version = "0.6", features = ["all"] }
tempfile = "3"
"#;

/// Packages of the checkout that are used as they are.
const COMPANIONS: &[&str] = &["tokio-stream", "tokio-test", "tokio-util"];

/// A package on disk.
#[derive(Debug)]
pub(super) struct Package {
    pub(super) folder: PathBuf,
    target: PathBuf,
    /// The names of the test files, in order.
    pub(super) files: Vec<String>,
}

/// What became of a test file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Built {
    Executable(PathBuf),
    /// It does not compile; the first error.
    Error(String),
}

impl Package {
    /// Writes the package for all test files of the checkout, or for some.
    pub(super) fn write(
        workspace: &Workspace,
        checkout: &Path,
        subject: Subject,
        only: &[String],
    ) -> Result<Package, Error> {
        let checkout = checkout
            .canonicalize()
            .map_err(Error::reading(checkout.to_owned()))?;
        let mut files = test_files(&checkout.join("tokio/tests"))?;
        if let Some(name) = only.iter().find(|name| !files.contains(name)) {
            return Err(Error::Unknown {
                kind: "test file",
                name: name.clone(),
                known: files,
            });
        }
        files.retain(|file| only.is_empty() || only.contains(file));
        let scratch = workspace.target.join("tokio-tests");
        let folder = scratch.join(subject.folder());
        let source = folder.join("src");
        fs::create_dir_all(&source).map_err(Error::writing(&source))?;
        let library = source.join("lib.rs");
        fs::write(&library, "").map_err(Error::writing(&library))?;
        let manifest = folder.join("Cargo.toml");
        let text = manifest_text(workspace, &checkout, subject, &files);
        // An unchanged manifest keeps its time, and cargo what it built.
        if fs::read_to_string(&manifest).ok().as_deref() != Some(&text) {
            fs::write(&manifest, text).map_err(Error::writing(&manifest))?;
        }
        Ok(Package {
            target: scratch.join(format!("{}-target", subject.folder())),
            folder,
            files,
        })
    }

    /// Compiles every test file on its own.
    ///
    /// # Errors
    /// If a dependency does not compile, or cargo itself fails.
    pub(super) fn build(&self) -> Result<BTreeMap<String, Built>, Error> {
        let mut cargo = workspace::cargo_in(&self.folder);
        cargo
            .args(["build", "--tests", "--keep-going", "--message-format=json"])
            .arg("--target-dir")
            .arg(&self.target)
            // Some files deny warnings, and the facade may warn about other things than tokio.
            .env("RUSTFLAGS", "--cap-lints=warn");
        let messages = messages_of(&mut cargo)?;
        let mut built = BTreeMap::new();
        let mut first_of_others = None;
        for message in &messages {
            let target = message["target"]["name"].as_str().unwrap_or_default();
            let is_ours = message["package_id"]
                .as_str()
                .is_some_and(|id| id.contains(NAME) && self.files.iter().any(|it| it == target));
            match message["reason"].as_str() {
                Some("compiler-artifact") if is_ours => {
                    if let Some(executable) = message["executable"].as_str() {
                        let executable = Built::Executable(PathBuf::from(executable));
                        built.entry(target.to_owned()).or_insert(executable);
                    }
                }
                Some("compiler-message") if message["message"]["level"] == "error" => {
                    let error = first_line(&message["message"]);
                    if is_ours {
                        built
                            .entry(target.to_owned())
                            .or_insert(Built::Error(error));
                    } else {
                        first_of_others.get_or_insert_with(|| format!("{target}: {error}"));
                    }
                }
                _ => {}
            }
        }
        if let Some(error) = first_of_others {
            return Err(Error::Failed {
                command: process::describe(&cargo),
                status: error,
            });
        }
        for file in &self.files {
            let unknown = || Built::Error("cargo did not compile it".to_owned());
            built.entry(file.clone()).or_insert_with(unknown);
        }
        Ok(built)
    }
}

/// Runs cargo, whose failure is told by its messages.
fn messages_of(cargo: &mut Command) -> Result<Vec<Value>, Error> {
    let output = cargo.stderr(Stdio::piped()).output();
    let output = output.map_err(|source| Error::Start {
        program: process::describe(cargo),
        source,
    })?;
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let messages: Vec<Value> = lines
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    if messages.is_empty() {
        // Not even the build began: a manifest or a version that does not resolve.
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        return Err(Error::Failed {
            command: process::describe(cargo),
            status: output.status.to_string(),
        });
    }
    Ok(messages)
}

/// What a compiler's message says, with its place.
fn first_line(message: &Value) -> String {
    let text = message["message"].as_str().unwrap_or_default();
    let text = text.lines().next().unwrap_or_default();
    let span = message["spans"]
        .as_array()
        .and_then(|spans| spans.iter().find(|span| span["is_primary"] == true));
    match span.and_then(|span| Some((span["file_name"].as_str()?, span["line_start"].as_u64()?))) {
        Some((file, line)) => {
            let file = Path::new(file).file_name().unwrap_or_default();
            format!("{}:{line}: {text}", file.to_string_lossy())
        }
        None => text.to_owned(),
    }
}

/// The names of the files with tests.
fn test_files(folder: &Path) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(Error::reading(folder))? {
        let path = entry.map_err(Error::reading(folder))?.path();
        if path.extension().is_some_and(|it| it == "rs")
            && let Some(name) = path.file_stem()
        {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn manifest_text(
    workspace: &Workspace,
    checkout: &Path,
    subject: Subject,
    files: &[String],
) -> String {
    let mut text = format!(
        "[package]\nname = \"{NAME}\"\nversion = \"0.0.0\"\nedition = \"2021\"\npublish = false\n\
         autotests = false\n\n[workspace]\n\n[features]\ndefault = {FEATURES:?}\n"
    );
    // A `String` takes every write.
    for feature in FEATURES {
        let _ = writeln!(text, "{feature} = []");
    }
    let _ = write!(
        text,
        "\n[dev-dependencies]{DEPENDENCIES}\n[patch.crates-io]\n"
    );
    let mut patch = |name: &str, path: PathBuf| {
        let _ = writeln!(
            text,
            "{name} = {{ path = {:?} }}",
            path.display().to_string()
        );
    };
    match subject {
        Subject::Facade => patch("tokio", workspace.path("facade/tokio")),
        Subject::Tokio => {
            patch("tokio", checkout.join("tokio"));
            patch("tokio-macros", checkout.join("tokio-macros"));
        }
    }
    for name in COMPANIONS {
        patch(name, checkout.join(name));
    }
    text.push_str("\n[profile.dev]\ndebug = false\nincremental = false\n");
    for file in files {
        let path = checkout.join("tokio/tests").join(format!("{file}.rs"));
        let path = path.display().to_string();
        let _ = write!(text, "\n[[test]]\nname = \"{file}\"\npath = {path:?}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_given_with_its_place() {
        let message = serde_json::json!({
            "message": "cannot find `x`\nin this scope",
            "spans": [
                { "is_primary": false, "file_name": "a.rs", "line_start": 1 },
                { "is_primary": true, "file_name": "/c/tests/udp.rs", "line_start": 7 },
            ],
        });
        assert_eq!(first_line(&message), "udp.rs:7: cannot find `x`");
    }

    #[test]
    fn the_facade_stands_in_for_tokio_alone() {
        let workspace = Workspace {
            root: PathBuf::from("/w"),
            target: PathBuf::from("/w/target"),
        };
        let files = ["udp".to_owned()];
        let text = manifest_text(&workspace, Path::new("/c"), Subject::Facade, &files);
        assert!(text.contains("tokio = { path = \"/w/facade/tokio\" }"));
        assert!(text.contains("tokio-test = { path = \"/c/tokio-test\" }"));
        assert!(!text.contains("tokio-macros"), "{text}");
        assert!(text.contains("path = \"/c/tokio/tests/udp.rs\""), "{text}");
    }
}
