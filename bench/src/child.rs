//! One sample: a child process with a time limit.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::sample::Sample;

/// How a child ended.
#[derive(Debug)]
pub enum Outcome {
    Finished(Sample),
    /// It ran into the time limit and was killed.
    Hung,
    /// It panicked, crashed or said something else than a sample. Holds the end of what it said.
    Failed(String),
}

/// Runs `command` until it ends or `limit` has passed.
pub fn run(command: &mut Command, limit: Duration) -> Outcome {
    let deadline = Instant::now() + limit;
    let spawned = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => return Outcome::Failed(format!("cannot start the child process: {error}")),
    };
    let stdout = read_aside(child.stdout.take());
    let stderr = read_aside(child.stderr.take());
    let said = stdout.recv_timeout(limit);
    let (Ok(said), Some(status)) = (said, wait_until(&mut child, deadline)) else {
        // Both fail only if the child has just ended by itself.
        let _ = child.kill();
        let _ = child.wait();
        return Outcome::Hung;
    };
    if !status.success() {
        let complaint = stderr
            .recv_timeout(Duration::from_secs(1))
            .unwrap_or_default();
        return Outcome::Failed(format!("{status}: {}", tail(&complaint)));
    }
    match serde_json::from_str(said.trim()) {
        Ok(sample) => Outcome::Finished(sample),
        Err(error) => Outcome::Failed(format!("not a sample ({error}): {}", tail(&said))),
    }
}

/// Reads a pipe to its end on a thread, so that the child never waits for us and we never for it.
fn read_aside(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error is still worth showing.
            let _ = pipe.read_to_end(&mut bytes);
        }
        // Nobody listens any more if the child was killed.
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

/// The exit status, if the child ends before the deadline. Its output has ended already, so it is
/// about to.
fn wait_until(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(1)),
            _ => return None,
        }
    }
}

/// The last lines, as one.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines[lines.len().saturating_sub(3)..].join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Outcome {
        run(Command::new("sh").args(["-c", script]), limit)
    }

    #[test]
    fn a_hanging_child_is_killed_and_reported() {
        let start = Instant::now();
        let outcome = shell("echo $$; exec sleep 600", Duration::from_millis(200));
        assert!(matches!(outcome, Outcome::Hung), "{outcome:?}");
        assert!(start.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_child_that_hangs_after_its_answer_has_hung() {
        let outcome = shell(
            r#"echo '{"value":1,"min":1}'; exec sleep 600 >&-"#,
            Duration::from_millis(200),
        );
        assert!(matches!(outcome, Outcome::Hung), "{outcome:?}");
    }

    #[test]
    fn a_sample_is_read() {
        let outcome = shell(r#"echo '{"value":1.5,"min":1}'"#, Duration::from_secs(20));
        assert!(
            matches!(outcome, Outcome::Finished(Sample { value: 1.5, .. })),
            "{outcome:?}"
        );
    }

    #[test]
    fn a_failure_says_why() {
        let outcome = shell("echo oh no >&2; exit 3", Duration::from_secs(20));
        assert!(
            matches!(&outcome, Outcome::Failed(why) if why.contains("oh no")),
            "{outcome:?}"
        );
        let outcome = shell("echo hello", Duration::from_secs(20));
        assert!(
            matches!(&outcome, Outcome::Failed(why) if why.contains("hello")),
            "{outcome:?}"
        );
        let outcome = run(
            &mut Command::new("./no-such-program"),
            Duration::from_secs(20),
        );
        assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    }
}
