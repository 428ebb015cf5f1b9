//! Running other programs: with a check, with their output, with a time limit.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::error::Error;

/// Words of a command that a message repeats; rustfmt gets the name of every file.
const WORDS: usize = 16;

/// Runs a command whose output the user sees.
pub(crate) fn run(command: &mut Command) -> Result<(), Error> {
    let status = command
        .status()
        .map_err(|source| cannot_start(command, source))?;
    check(command, status)
}

/// Whether a command can be started and succeeds; for questions such as `--version`.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs a command and returns what it printed; its complaints go to the user.
pub(crate) fn stdout_of(command: &mut Command) -> Result<String, Error> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|source| cannot_start(command, source))?;
    check(command, output.status)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a cargo build and returns the executable of its target `name`.
///
/// The command needs no `--message-format`; it is added here.
pub(crate) fn build(command: &mut Command, name: &str) -> Result<PathBuf, Error> {
    let messages = stdout_of(command.arg("--message-format=json-render-diagnostics"))?;
    executable(&messages, name).ok_or_else(|| Error::NoExecutable {
        target: name.to_owned(),
    })
}

/// Finds the executable of a target in cargo's messages.
fn executable(messages: &str, name: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| {
            message["reason"] == "compiler-artifact" && message["target"]["name"] == name
        })
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

/// How a program with a time limit ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) how: How,
    /// What it printed on both streams.
    pub(crate) output: String,
    pub(crate) seconds: f64,
}

/// The end itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Passed,
    Failed(ExitStatus),
    /// Killed at its limit.
    TimedOut,
}

/// Runs a program to its end, or kills it at the limit.
pub(crate) fn limited(command: &mut Command, limit: Duration) -> Result<Ended, Error> {
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| cannot_start(command, source))?;
    // A program has ended when both its streams have: that can be waited for with a limit.
    let (done, both) = mpsc::channel();
    let streams: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|s| Box::new(s) as _),
        child.stderr.take().map(|s| Box::new(s) as _),
    ];
    for mut stream in streams.into_iter().flatten() {
        let done = done.clone();
        thread::spawn(move || {
            let mut bytes = Vec::new();
            // What was read before an error is still worth showing.
            let _ = stream.read_to_end(&mut bytes);
            let _ = done.send(bytes);
        });
    }
    drop(done);
    let mut output = Vec::new();
    let mut in_time = true;
    for _ in 0..2 {
        match both.recv_timeout(limit.saturating_sub(start.elapsed())) {
            Ok(bytes) => output.extend(bytes),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                in_time = false;
                break;
            }
        }
    }
    if !in_time {
        // An error here means that it ended a moment ago.
        let _ = child.kill();
        // The streams end with the process, unless it left a child of its own behind.
        while let Ok(bytes) = both.recv_timeout(Duration::from_secs(1)) {
            output.extend(bytes);
        }
    }
    let status = child.wait().map_err(|source| Error::Failed {
        command: describe(command),
        status: source.to_string(),
    })?;
    let how = match (in_time, status.success()) {
        (false, _) => How::TimedOut,
        (true, true) => How::Passed,
        (true, false) => How::Failed(status),
    };
    let output = String::from_utf8_lossy(&output).into_owned();
    Ok(Ended {
        how,
        output,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// The command line as a user would type it.
pub(crate) fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let words = [program.file_name().unwrap_or(program.as_os_str())];
    let words = words
        .into_iter()
        .chain(command.get_args())
        .map(OsStr::to_string_lossy);
    let mut words: Vec<_> = words.collect();
    let left_out = words.len().saturating_sub(WORDS);
    if left_out > 0 {
        words.truncate(WORDS);
        words.push(format!("(and {left_out} more)").into());
    }
    words.join(" ")
}

fn cannot_start(command: &Command, source: std::io::Error) -> Error {
    Error::Start {
        program: describe(command),
        source,
    }
}

fn check(command: &Command, status: ExitStatus) -> Result<(), Error> {
    if status.success() {
        Ok(())
    } else {
        Err(Error::Failed {
            command: describe(command),
            status: status.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_is_found_among_the_messages() {
        let messages = concat!(
            "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"loom\"},\"executable\":null}\n",
            "not json\n",
            "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"loom\"},\"executable\":\"a/loom-1\"}\n",
            "{\"reason\":\"build-finished\",\"success\":true}\n",
        );
        assert_eq!(
            executable(messages, "loom"),
            Some(PathBuf::from("a/loom-1"))
        );
        assert_eq!(executable(messages, "shuttle"), None);
    }

    #[test]
    fn a_program_that_does_not_end_is_killed() {
        let ended = limited(Command::new("sleep").arg("60"), Duration::from_millis(50)).unwrap();
        assert_eq!(ended.how, How::TimedOut);
        assert!(ended.seconds < 30.0, "{}", ended.seconds);
    }

    #[test]
    fn the_output_of_both_streams_is_kept() {
        let script = "echo out; echo err >&2; exit 3";
        let ended = limited(
            Command::new("sh").args(["-c", script]),
            Duration::from_secs(20),
        )
        .unwrap();
        assert!(matches!(ended.how, How::Failed(status) if status.code() == Some(3)));
        assert!(
            ended.output.contains("out") && ended.output.contains("err"),
            "{}",
            ended.output
        );
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = limited(
            &mut Command::new("no-such-program-here"),
            Duration::from_secs(1),
        );
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("no-such-program-here")
        );
    }
}
