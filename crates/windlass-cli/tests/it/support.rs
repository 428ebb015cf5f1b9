//! What the tests share: the binary, the examples, the golden files.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// What a command gave.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// Demands that it went well.
    #[track_caller]
    pub(crate) fn fine(self) -> Ended {
        assert_eq!(self.code, Some(0), "{}{}", self.out, self.err);
        self
    }

    /// Demands that it did not go well, and that it said so rather than crash.
    #[track_caller]
    pub(crate) fn refused(self) -> Ended {
        assert_eq!(self.code, Some(1), "{}{}", self.out, self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }

    /// The value of a line `name: value`.
    #[track_caller]
    pub(crate) fn line(&self, name: &str) -> &str {
        let mut lines = self.out.lines();
        lines
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
            .unwrap_or_else(|| panic!("no line {name}: {}", self.out))
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Ended {
        Ended {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("output is UTF-8"),
            err: String::from_utf8(output.stderr).expect("errors are UTF-8"),
        }
    }
}

/// The binary, at the root of the workspace, so that no path depends on the machine.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command
        .args(arguments)
        .current_dir(root())
        .env("LANG", "C.UTF-8")
        .env_remove("LC_ALL")
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .env_remove("FORCE_COLOR")
        .stdin(Stdio::null());
    command
}

pub(crate) fn windlass(arguments: &[&str]) -> Ended {
    command(arguments).output().expect("it starts").into()
}

/// With this text as standard input.
pub(crate) fn windlass_with(arguments: &[&str], input: &[u8]) -> Ended {
    let mut child = command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // It may have enough before it has read everything.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    child.wait_with_output().expect("it ends").into()
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn example(name: &str) -> String {
    format!("examples/graphs/{name}.yaml")
}

pub(crate) fn example_text(name: &str) -> String {
    std::fs::read_to_string(root().join(example(name))).expect("a readable example")
}

/// The names of all examples.
pub(crate) fn examples() -> Vec<String> {
    let files = std::fs::read_dir(root().join("examples/graphs")).expect("the folder is there");
    let mut names: Vec<String> = files
        .map(|file| file.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .map(|path| path.file_stem().expect("a name").display().to_string())
        .collect();
    names.sort();
    assert!(!names.is_empty());
    names
}

/// A fixture of the graph crate.
pub(crate) fn broken(name: &str) -> String {
    format!("crates/windlass-plan/tests/fixtures/broken/{name}.yaml")
}

/// Compares with a golden file; `WINDLASS_BLESS=1` writes it instead.
#[track_caller]
pub(crate) fn compare(file: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(file);
    if std::env::var_os("WINDLASS_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, found).expect("the file can be written");
        return;
    }
    let expected = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{file}: {error}; WINDLASS_BLESS=1 makes it"));
    if expected != found {
        panic!(
            "{file}; WINDLASS_BLESS=1 accepts this:\n{}",
            differences(&expected, found)
        );
    }
}

/// The lines between the first and the last that differ.
fn differences(expected: &str, found: &str) -> String {
    let (expected, found) = (lines(expected), lines(found));
    let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let before = expected.iter().zip(&found).take_while(same).count();
    let (expected, found) = (&expected[before..], &found[before..]);
    let after = expected.iter().rev().zip(found.iter().rev());
    let after = after.take_while(same).count();
    let mut text = format!("@ line {}\n", before + 1);
    for line in &expected[..expected.len() - after] {
        let _ = writeln!(text, "- {line}");
    }
    for line in &found[..found.len() - after] {
        let _ = writeln!(text, "+ {line}");
    }
    text
}

fn lines(text: &str) -> Vec<&str> {
    text.split('\n').collect()
}

#[test]
fn differences_are_shown_by_line() {
    let text = differences("a\nb\nc\nd\n", "a\nx\ny\nd\n");
    assert_eq!(text, "@ line 2\n- b\n- c\n+ x\n+ y\n");
    assert_eq!(differences("a\n", "a\nb\n"), "@ line 2\n+ b\n");
}
