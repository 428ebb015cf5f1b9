//! Recordings: what is written is read, and what is not a recording is said.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "tests use the standard library directly"
)]

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use windlass_record::{Comparison, Format, Recording, RecordingError, Writer};

#[derive(Debug)]
struct Walk;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Step { to: f64 },
    Rest {},
}

impl Format for Walk {
    const NAME: &'static str = "walk";
    const VERSION: u32 = 3;
    type Header = String;
    type Line = Line;
    type End = u64;
}

struct File(PathBuf);

impl File {
    fn new(name: &str) -> File {
        let name = format!("windlass-record-{}-{name}", std::process::id());
        File(std::env::temp_dir().join(name))
    }

    fn write(&self, lines: &[Line], limit: u64) -> bool {
        let header = "a walk".to_owned();
        let mut writer = Writer::<Walk>::create(&self.0, &header, limit).expect("a file");
        for line in lines {
            writer.line(line).expect("a line");
        }
        writer.finish(&7).expect("an end")
    }

    fn open(&self) -> Result<Recording<Walk>, RecordingError> {
        Recording::open(&self.0)
    }

    fn edit(&self, from: &str, to: &str) {
        let text = fs::read_to_string(&self.0).expect("a file");
        assert!(text.contains(from), "{text}");
        fs::write(&self.0, text.replacen(from, to, 1)).expect("a file");
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn lines() -> Vec<Line> {
    let to = |to| Line::Step { to };
    vec![to(0.1 + 0.2), Line::Rest {}, to(-0.0), to(3.0)]
}

#[test]
fn what_is_written_is_read() {
    let file = File::new("whole");
    assert!(file.write(&lines(), u64::MAX));
    let recording = file.open().expect("a recording");
    assert_eq!(recording.header, "a walk");
    assert_eq!(recording.lines, lines());
    assert_eq!(recording.end, Some(7));
    assert_eq!(recording.edited_line(), None);
    assert_eq!(recording.build(), env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_recording_that_is_cut_off_anywhere_is_read_up_to_its_last_whole_line() {
    let file = File::new("cut");
    file.write(&lines(), u64::MAX);
    let bytes = fs::read(&file.0).expect("a file");
    let first = bytes.iter().position(|byte| *byte == b'\n').expect("lines");
    for end in first + 1..bytes.len() - 1 {
        fs::write(&file.0, &bytes[..end]).expect("a file");
        let recording = file.open().expect("a part");
        let whole = bytes[first + 1..end].split(|byte| *byte == b'\n').count() - 1;
        // The last line may lack nothing but its newline.
        let read = recording.lines.len();
        assert!(read == whole || read == whole + 1, "{end} bytes");
        assert_eq!(recording.lines, lines()[..read]);
        assert!(!recording.is_complete() && recording.edited_line().is_none());
        assert!(
            recording
                .truncated()
                .to_string()
                .contains("breaks off after line")
        );
    }
}

#[test]
fn a_recording_is_not_larger_than_it_may_be() {
    let file = File::new("limit");
    assert!(!file.write(&lines(), 200));
    assert!(fs::metadata(&file.0).is_ok_and(|meta| meta.len() <= 200));
    let recording = file.open().expect("a part");
    assert!(!recording.is_complete() && recording.lines.len() < lines().len());
}

#[test]
fn the_first_line_that_was_edited_is_named() {
    let file = File::new("edited");
    file.write(&lines(), u64::MAX);
    file.edit("{\"to\":-0.0}", "{\"to\":5.0}");
    let recording = file.open().expect("a recording");
    assert_eq!(recording.edited_line(), Some(4));
    // A replay that does what the line says now finds it by its checksum.
    let mut comparison = Comparison::new(&recording);
    for line in &recording.lines[..2] {
        comparison.check(line).expect("the same");
    }
    let difference = comparison.check(&recording.lines[2]).expect_err("edited");
    assert!(difference.is_edited && difference.line == 4, "{difference}");
}

#[test]
fn a_header_that_was_edited_is_noticed() {
    let file = File::new("header");
    file.write(&lines(), u64::MAX);
    let text = fs::read_to_string(&file.0).expect("a recording");
    let header = text.lines().next().expect("a header");
    let edited = text.replacen(header, &header.replace("\"build\":\"", "\"build\":\"9"), 1);
    assert_ne!(text, edited);
    fs::write(&file.0, edited).expect("written");
    let recording = file.open().expect("a recording");
    assert_eq!(recording.edited_line(), Some(2), "the first checksum");
}

#[test]
fn the_first_difference_is_found() {
    let file = File::new("difference");
    file.write(&lines(), u64::MAX);
    let recording = file.open().expect("a recording");
    let mut comparison = Comparison::new(&recording);
    comparison.check(&lines()[0]).expect("the same");
    assert_eq!(comparison.rest(), &lines()[1..]);
    let other = Line::Step { to: f64::NAN };
    let difference = comparison.check(&other).expect_err("another line");
    assert_eq!(difference.line, 3);
    assert_eq!(difference.recorded, r#"{"rest":{}}"#);
    assert_eq!(difference.replayed, r#"{"step":{"to":null}}"#);
    let missing = comparison.finish().expect_err("more is to come");
    assert!(
        missing.to_string().ends_with("replayed: nothing"),
        "{missing}"
    );
    for line in &lines()[1..] {
        comparison.check(line).expect("the same");
    }
    comparison.finish().expect("all has come");
    let beyond = comparison.check(&other).expect_err("nothing more");
    assert!(beyond.recorded.is_empty() && beyond.line == 6, "{beyond}");
}

#[test]
fn what_is_no_recording_of_this_kind_is_said() {
    let file = File::new("foreign");
    let says = |text: &str| {
        fs::write(&file.0, text).expect("a file");
        file.open().expect_err("no recording").to_string()
    };
    assert!(says("").contains("is no recording"));
    assert!(says("hello\n").contains("\"hello\""));
    assert!(says("{}\n").contains("is no recording"));
    let graph = r#"{"windlass_recording":"graph","version":3,"build":"0.1.0","header":1}"#;
    assert!(says(graph).contains("of a graph, not of a walk"));
    let newer = r#"{"windlass_recording":"walk","version":4,"build":"9.9.9","header":1}"#;
    let said = says(newer);
    assert!(
        said.contains("version 4, written by Windlass 9.9.9"),
        "{said}"
    );
    assert!(says(r#"{"windlass_recording":2}"#).contains("of version 2"));
    let header = r#"{"windlass_recording":"walk","version":3,"build":"0.1.0","header":1}"#;
    assert!(says(header).contains(":1: invalid type"));

    file.write(&lines(), u64::MAX);
    file.edit("{\"rest\":{}", "{\"rest\":1");
    let error = file.open().expect_err("a bad line");
    assert!(
        matches!(error, RecordingError::BadLine { line: 3, .. }),
        "{error}"
    );
    assert!(matches!(
        Recording::<Walk>::open(&file.0.with_extension("none")),
        Err(RecordingError::File { .. })
    ));
}
