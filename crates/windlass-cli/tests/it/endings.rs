//! How the process ends.

use std::process::Stdio;

use crate::support::{broken, command, example, windlass};

#[test]
fn help_and_version_are_fine() {
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["graph", "--help"],
        &["graph", "run", "-h"],
    ] {
        let ended = windlass(arguments).fine();
        assert!(
            !ended.out.is_empty() && ended.err.is_empty(),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_command_line_that_makes_no_sense_is_refused() {
    for arguments in [
        &[][..],
        &["graph"],
        &["graph", "nonsense"],
        &["graph", "run"],
        &["graph", "run", "a", "--steps", "some"],
        &["graph", "run", "a", "--format", "chrome"],
        &["graph", "bench", "a", "--runs", "0"],
        &["completions", "tcsh"],
    ] {
        let ended = windlass(arguments).refused();
        assert!(
            ended.out.is_empty() && !ended.err.is_empty(),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_file_that_is_not_there_is_named_with_advice() {
    for command in ["validate", "plan", "run", "explain"] {
        let ended = windlass(&["graph", command, "no/such.yaml"]).refused();
        assert!(
            ended.err.contains("cannot read no/such.yaml"),
            "{}",
            ended.err
        );
        assert!(ended.err.contains("help: check the path"), "{}", ended.err);
    }
    let folder = windlass(&["graph", "validate", "examples"]).refused();
    assert!(
        folder.err.contains("cannot read examples"),
        "{}",
        folder.err
    );
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let file = example("hello");
    for command in ["render", "trace"] {
        let ended = windlass(&["graph", command, &file, "-o", "no/such/file"]).refused();
        assert!(
            ended.err.contains("cannot write no/such/file"),
            "{}",
            ended.err
        );
    }
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    // The exit code is what the command found, whether or not its output was read.
    for (command, file, code) in [
        ("run", example("hello"), 0),
        ("trace", example("hello"), 0),
        ("validate", broken("unknown_port"), 1),
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = self::command(&["graph", command, &file, "--format", "json"])
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .expect("it starts");
        assert_eq!(output.status.code(), Some(code), "{command}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{command}");
    }
}
