//! Commands of the operating system.

use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use windlass_core::observe::WorkerState;
use windlass_io::command::{Command, Stdio};
use windlass_io::io::{AsyncReadExt, AsyncWriteExt};
use windlass_runtime::{Runtime, time};

const LONG: Duration = Duration::from_secs(20);

fn runtime() -> Runtime {
    Runtime::builder().workers(2).build().expect("it builds")
}

/// Whether a process of this number is there, a zombie included.
fn is_there(number: u32) -> bool {
    std::fs::exists(format!("/proc/{number}")).unwrap_or(true)
}

#[test]
fn a_command_reads_writes_and_complains_through_pipes()
-> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    runtime().block_on(async {
        let mut child = Command::new("sh")
            .args(["-c", "tr a-z A-Z; echo oh >&2; exit 3"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut stdin = child.stdin.take().expect("piped");
        stdin.write_all(b"hello").await?;
        drop(stdin);
        let output = time::timeout(LONG, child.wait_with_output()).await??;
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(output.stdout, b"HELLO");
        assert_eq!(output.stderr, b"oh\n");
        Ok(())
    })
}

#[test]
fn a_command_sees_the_name_that_it_is_given() -> Result<(), Box<dyn std::error::Error + Send + Sync>>
{
    runtime().block_on(async {
        let mut command = Command::new("sh");
        let output = command.arg0("somebody").args(["-c", "echo $0"]).output();
        let output = time::timeout(LONG, output).await??;
        assert_eq!(output.stdout, b"somebody\n");
        Ok(())
    })
}

#[test]
fn a_child_outlives_the_runtime_that_it_was_started_in()
-> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let started = runtime();
    let mut child = started.block_on(async {
        let mut command = Command::new("sh");
        command.args(["-c", "read line; exit 4"]);
        command.stdin(Stdio::piped()).spawn()
    })?;
    let other = runtime();
    drop(started);
    other.block_on(async {
        let status = time::timeout(LONG, child.wait()).await??;
        assert_eq!(status.code(), Some(4));
        Ok(())
    })
}

#[test]
fn a_command_that_fills_both_pipes_does_not_get_stuck()
-> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    runtime().block_on(async {
        let script = "head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2";
        let output = Command::new("sh").args(["-c", script]).output();
        let output = time::timeout(LONG, output).await??;
        assert!(output.status.success());
        assert_eq!(
            (output.stdout.len(), output.stderr.len()),
            (1_000_000, 1_000_000)
        );
        Ok(())
    })
}

#[test]
fn what_is_written_to_a_command_that_has_ended_is_an_error()
-> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    runtime().block_on(async {
        let mut child = Command::new("true").stdin(Stdio::piped()).spawn()?;
        let mut stdin = child.stdin.take().expect("piped");
        assert!(child.wait().await?.success());
        assert!(child.wait().await?.success(), "again the same");
        assert_eq!(child.try_wait()?.and_then(|status| status.code()), Some(0));
        assert_eq!(child.id(), None, "its number may be another's");
        let error = stdin
            .write_all(&[0; 100_000])
            .await
            .expect_err("nobody reads");
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        Ok(())
    })
}

#[test]
fn a_killed_command_says_so() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    runtime().block_on(async {
        let mut child = Command::new("sleep").arg("1000").spawn()?;
        assert_eq!(child.try_wait()?, None);
        assert!(
            time::timeout(Duration::from_millis(50), child.wait())
                .await
                .is_err()
        );
        child.start_kill()?;
        let status = time::timeout(LONG, child.wait()).await??;
        assert_eq!(status.signal(), Some(9));
        child.start_kill()?;
        // From outside.
        let mut child = Command::new("sleep").arg("1000").spawn()?;
        let number = child.id().expect("it runs").to_string();
        Command::new("kill")
            .args(["-TERM", &number])
            .status()
            .await?;
        assert_eq!(time::timeout(LONG, child.wait()).await??.signal(), Some(15));
        Ok(())
    })
}

#[test]
fn no_zombie_is_left_by_children_that_are_dropped()
-> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    runtime().block_on(async {
        let mut numbers = Vec::new();
        for index in 0..10 {
            let mut killed = Command::new("sleep");
            let killed = killed.arg("1000").kill_on_drop(true).spawn()?;
            let short = Command::new("sleep").arg(format!("0.{index}")).spawn()?;
            numbers.extend([killed.id().expect("it runs"), short.id().expect("it runs")]);
        }
        let began = Instant::now();
        while numbers.iter().any(|number| is_there(*number)) {
            assert!(began.elapsed() < LONG, "they are reaped");
            time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    })
}

#[test]
fn a_hundred_commands_at_once_all_end() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let runtime = runtime();
    let commands: Vec<_> = (0..100)
        .map(|number| {
            runtime.spawn(async move {
                let exit = format!("exit {}", number % 50);
                Command::new("sh").args(["-c", &exit]).status().await
            })
        })
        .collect();
    for (number, command) in commands.into_iter().enumerate() {
        let status = runtime.block_on(command)??;
        assert_eq!(status.code(), Some(number as i32 % 50));
    }
    assert_eq!(runtime.snapshot().io_sources, 0);
    Ok(())
}

#[test]
fn what_cannot_be_started_is_said() {
    runtime().block_on(async {
        let missing = Command::new("/nowhere/at/all").spawn();
        assert_eq!(missing.expect_err("missing").kind(), ErrorKind::NotFound);
        let no_directory = Command::new("true").current_dir("/nowhere").status().await;
        assert_eq!(
            no_directory.expect_err("missing").kind(),
            ErrorKind::NotFound
        );
    });
    Runtime::simulated(1).block_on(async {
        let refused = Command::new("true")
            .spawn()
            .expect_err("not in a simulation");
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
    });
}

#[test]
fn the_environment_and_the_input_are_as_told()
-> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    runtime().block_on(async {
        let output = Command::new("/bin/sh")
            .args(["-c", "echo $WHO-$OTHER; cat"])
            .env_clear()
            .env("WHO", "you")
            .stdin(std::fs::File::open("/dev/null")?)
            .output()
            .await?;
        assert_eq!(output.stdout, b"you-\n");
        Ok(())
    })
}

/// Waits until this process has ended, whoever reaps it.
#[cfg(target_os = "linux")]
fn wait_until_gone(number: u32) {
    let began = Instant::now();
    let runs = || {
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    };
    while runs() {
        assert!(began.elapsed() < LONG, "it goes on");
        std::thread::yield_now();
    }
}

/// Waits on a worker that leaves afterwards: the kernel's signal follows the thread that started a
/// command.
#[cfg(target_os = "linux")]
#[test]
fn a_command_that_ends_with_the_program_outlives_the_worker_that_started_it()
-> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let runtime = Runtime::builder().workers(4).max_workers(4).build()?;
    let start = || async {
        Command::new("sleep")
            .arg("600")
            .end_with_program(true)
            .kill_on_drop(true)
            .spawn()
    };
    // On each of the workers, whichever leave.
    let started: Vec<_> = (0..16).map(|_| runtime.spawn(start())).collect();
    let mut children = Vec::new();
    for started in started {
        children.push(runtime.block_on(started)??);
    }
    runtime.resize(1)?;
    let present = || {
        let workers = runtime.snapshot().pool.workers;
        let there = workers.iter().filter(|w| w.state != WorkerState::Gone);
        there.count()
    };
    let began = Instant::now();
    while present() > 1 {
        assert!(began.elapsed() < LONG, "the workers stay");
        std::thread::yield_now();
    }
    for child in &mut children {
        assert_eq!(child.try_wait()?, None, "it ended with its worker");
    }
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn the_groups_of_commands_that_end_with_the_program_can_be_killed()
-> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    use windlass_io::command::kill_bound;

    runtime().block_on(async {
        let mut child = Command::new("sh")
            .args(["-c", "sleep 600 & echo $!; wait"])
            .stdout(Stdio::piped())
            .process_group(0)
            .end_with_program(true)
            .spawn()?;
        let mut inner = [0; 16];
        let count = child
            .stdout
            .as_mut()
            .expect("piped")
            .read(&mut inner)
            .await?;
        let inner: u32 = String::from_utf8_lossy(&inner[..count]).trim().parse()?;
        assert!(is_there(inner));
        kill_bound();
        let status = time::timeout(LONG, child.wait()).await??;
        assert_eq!(status.signal(), Some(9));
        wait_until_gone(inner);
        Ok(())
    })
}

#[test]
fn pipes_of_commands_are_given_to_others() -> Result<(), Box<dyn std::error::Error>> {
    use std::os::fd::{AsFd, AsRawFd};

    runtime().block_on(async {
        let mut first = Command::new("echo")
            .arg("hello")
            .stdout(Stdio::piped())
            .spawn()?;
        let output = first.stdout.take().expect("piped");
        assert_eq!(output.as_fd().as_raw_fd(), output.as_raw_fd());
        let input: Stdio = output.try_into()?;
        let second = Command::new("cat").stdin(input).output().await?;
        assert_eq!(second.stdout, b"hello\n");
        assert!(first.wait().await?.success());
        assert_eq!(first.id(), None, "it was waited for");

        let mut std = std::process::Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = std.stdin.take().expect("piped");
        let output = std.stdout.take().expect("piped");
        let mut input = windlass_io::command::ChildStdin::from_std(input)?;
        let mut output = windlass_io::command::ChildStdout::from_std(output)?;
        input.write_all(b"back").await?;
        input.shutdown().await?;
        let mut text = String::new();
        output.read_to_string(&mut text).await?;
        assert_eq!(text, "back");
        assert!(std.wait()?.success());
        Ok(())
    })
}

#[test]
fn a_command_may_be_called_by_another_name() -> Result<(), Box<dyn std::error::Error>> {
    runtime().block_on(async {
        let mut command = Command::new("sh");
        command
            .arg0("other")
            .args(["-c", "echo $0"])
            .kill_on_drop(true);
        assert!(command.get_kill_on_drop());
        assert_eq!(command.as_std().get_program(), "sh");
        assert_eq!(command.output().await?.stdout, b"other\n");
        let mut std = command.into_std();
        assert_eq!(std.output()?.stdout, b"other\n");
        Ok(())
    })
}
