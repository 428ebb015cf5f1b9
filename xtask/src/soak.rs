//! `cargo xtask soak`: an HTTP server under load and clients that break off, for a given time.
//!
//! wrk asks for small answers all the time; vandals of our own ask for something long or slow, or
//! send half a request, and break off. Every tenth of the time what the server holds is written
//! down: tasks, timers, registered sockets and descriptors, memory. At the end the load stops, and
//! what was held must be given back.
//!
//! `--mix` runs every front end on one runtime instead (`crates/windlass/examples/soak_mix.rs`),
//! for ten minutes.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::process;
use crate::text;
use crate::workspace::Workspace;

const VANDALS: u64 = 4;
/// Looks during the load.
const LOOKS: u32 = 10;
/// What memory may grow by from the third look to the last: allocators keep some of it.
const GROWTH: f64 = 1.25;
/// How long the server has to give back what it held for the load.
const SETTLE: Duration = Duration::from_secs(40);

/// How long all front ends are mixed unless told otherwise.
const MIX_SECONDS: u64 = 600;

pub(crate) fn command(workspace: &Workspace, arguments: &[String]) -> Result<(), Error> {
    if let Some((first, rest)) = arguments.split_first()
        && first == "--mix"
    {
        return mix(workspace, rest);
    }
    let seconds = match arguments {
        [] => 60,
        [seconds] => seconds
            .parse()
            .ok()
            .filter(|seconds| *seconds >= 5)
            .ok_or_else(|| Error::usage("`soak` takes a number of seconds, 5 or more"))?,
        _ => return Err(Error::usage("`soak` takes a number of seconds")),
    };
    if !process::succeeds(Command::new("wrk").arg("--version"))
        && !process::succeeds(Command::new("sh").args(["-c", "command -v wrk"]))
    {
        return Err(Error::Missing {
            tool: "wrk",
            install: "apt-get install wrk",
        });
    }
    let program = process::build(
        workspace.cargo().args([
            "build",
            "--release",
            "-p",
            "windlass",
            "--features",
            "http",
            "--example",
            "soak_server",
        ]),
        "soak_server",
    )?;
    let mut server = Server::start(&mut Command::new(program))?;
    let looks = soak(&mut server, Duration::from_secs(seconds))?;
    server.end()?;
    verdict(&looks)
}

/// All front ends together; the program itself says whether what it holds stays flat.
fn mix(workspace: &Workspace, arguments: &[String]) -> Result<(), Error> {
    let seconds = match arguments {
        [] => MIX_SECONDS,
        [seconds] => seconds
            .parse()
            .ok()
            .filter(|seconds| *seconds >= 10)
            .ok_or_else(|| Error::usage("`soak --mix` takes a number of seconds, 10 or more"))?,
        _ => return Err(Error::usage("`soak --mix` takes a number of seconds")),
    };
    let mut build = workspace.cargo();
    build
        .args(["build", "--release", "-p", "windlass", "--features", "lua"])
        .args(["--example", "soak_mix"]);
    let program = process::build(&mut build, "soak_mix")?;
    process::run(Command::new(program).arg(seconds.to_string()))
}

/// The server's process.
struct Server {
    child: Child,
    address: SocketAddr,
}

/// What the server holds at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Look {
    tasks: u64,
    timers: u64,
    sources: u64,
    descriptors: u64,
    kilobytes: u64,
    panics: u64,
}

impl Look {
    fn row(&self, when: String) -> Vec<String> {
        let numbers = [
            self.tasks,
            self.timers,
            self.sources,
            self.descriptors,
            self.kilobytes,
            self.panics,
        ];
        [when]
            .into_iter()
            .chain(numbers.map(|number| number.to_string()))
            .collect()
    }
}

impl Server {
    fn start(command: &mut Command) -> Result<Server, Error> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|source| Error::Start {
                program: process::describe(command),
                source,
            })?;
        let mut line = String::new();
        if let Some(out) = &mut child.stdout {
            // By bytes: what comes after the line is read later.
            let mut byte = [0];
            while out.read(&mut byte).is_ok_and(|read| read == 1) && byte != *b"\n" {
                line.push(byte[0] as char);
            }
        }
        let address = line.parse().map_err(|_| Error::Failed {
            command: process::describe(command),
            status: format!("it said {line:?} instead of its address"),
        })?;
        Ok(Server { child, address })
    }

    fn look(&self) -> Result<Look, Error> {
        let page = get(self.address, "/numbers").map_err(Error::reading("/numbers"))?;
        let number = |name: &str| {
            let line = page.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.trim().parse().ok())
                .unwrap_or_default()
        };
        let process = format!("/proc/{}", self.child.id());
        let descriptors = fs::read_dir(format!("{process}/fd"))
            .map_err(Error::reading("/proc"))?
            .count();
        let status =
            fs::read_to_string(format!("{process}/status")).map_err(Error::reading("/proc"))?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident = resident.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        Ok(Look {
            tasks: number("tasks "),
            timers: number("timers "),
            sources: number("sources "),
            panics: number("panics "),
            descriptors: descriptors as u64,
            kilobytes: resident.unwrap_or_default(),
        })
    }

    fn end(mut self) -> Result<(), Error> {
        drop(self.child.stdin.take());
        let status = self.child.wait().map_err(Error::reading("the server"))?;
        let mut said = String::new();
        if let Some(out) = &mut self.child.stdout {
            let _ = out.read_to_string(&mut said);
        }
        print!("{said}");
        if status.success() {
            Ok(())
        } else {
            Err(Error::Failed {
                command: "soak_server".to_owned(),
                status: status.to_string(),
            })
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After a failure; otherwise it has ended.
        let _ = self.child.kill();
    }
}

/// One answer, over a connection of its own.
fn get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    Ok(body.to_owned())
}

/// The looks before, during and after the load.
struct Looks {
    before: Look,
    during: Vec<Look>,
    after: Look,
}

fn soak(server: &mut Server, time: Duration) -> Result<Looks, Error> {
    let names = [
        "when",
        "tasks",
        "timers",
        "sockets",
        "descriptors",
        "KiB",
        "panics",
    ];
    let mut rows = vec![names.map(str::to_owned).to_vec()];
    let before = server.look()?;
    rows.push(before.row("before".to_owned()));

    let stop = Arc::new(AtomicBool::new(false));
    let broken = Arc::new(AtomicU64::new(0));
    let address = server.address;
    let vandals: Vec<_> = (0..VANDALS)
        .map(|number| {
            let (stop, broken) = (stop.clone(), broken.clone());
            thread::spawn(move || vandalize(address, number, &stop, &broken))
        })
        .collect();
    let mut wrk = Command::new("wrk")
        .args(["-t2", "-c64", &format!("-d{}s", time.as_secs())])
        .arg(format!("http://{address}/"))
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|source| Error::Start {
            program: "wrk".to_owned(),
            source,
        })?;
    let began = Instant::now();
    let mut during = Vec::new();
    for number in 1..=LOOKS {
        let due = time * number / (LOOKS + 1);
        thread::sleep(due.saturating_sub(began.elapsed()));
        let look = server.look()?;
        rows.push(look.row(format!("{:.0} s", began.elapsed().as_secs_f64())));
        during.push(look);
    }
    let status = wrk.wait().map_err(Error::reading("wrk"))?;
    stop.store(true, Ordering::Relaxed);
    for vandal in vandals {
        let _ = vandal.join();
    }
    if let Some(out) = wrk.stdout.take() {
        let lines = BufReader::new(out).lines().map_while(Result::ok);
        lines
            .filter(|line| {
                line.contains("Requests/sec") || line.contains("errors") || line.contains("Latency")
            })
            .for_each(|line| println!("wrk: {}", line.trim()));
    }
    println!(
        "vandals: {} connections broken off",
        broken.load(Ordering::Relaxed)
    );
    if !status.success() {
        return Err(Error::Failed {
            command: "wrk".to_owned(),
            status: status.to_string(),
        });
    }
    let after = settled(server, before)?;
    rows.push(after.row("after".to_owned()));
    print!("{}", text::columns(&rows));
    Ok(Looks {
        before,
        during,
        after,
    })
}

/// The look once the server holds no more than before, or the last one if it does not come to that.
fn settled(server: &Server, before: Look) -> Result<Look, Error> {
    let began = Instant::now();
    loop {
        let look = server.look()?;
        if given_back(before, look) || began.elapsed() > SETTLE {
            return Ok(look);
        }
        thread::sleep(Duration::from_millis(200));
    }
}

fn given_back(before: Look, after: Look) -> bool {
    after.tasks <= before.tasks
        && after.timers <= before.timers
        && after.sources <= before.sources
        && after.descriptors <= before.descriptors
}

/// Connects, says something, and breaks off at a random moment, again and again.
fn vandalize(address: SocketAddr, seed: u64, stop: &AtomicBool, broken: &AtomicU64) {
    const WORDS: [&[u8]; 5] = [
        b"GET /long HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 5000\r\n\r\nonly a part of it",
        b"GET / HTTP/1.1\r\nhost: x\r\n\r\nGET /slow HT",
        b"no HTTP at all\r\n\r\n",
    ];
    let mut dice = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut roll = move |sides: usize| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        (dice % sides as u64) as usize
    };
    while !stop.load(Ordering::Relaxed) {
        let Ok(mut stream) = TcpStream::connect(address) else {
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        let word = WORDS[roll(WORDS.len())];
        // A write to a server that has closed fails; that is what we came for.
        let _ = stream.write_all(&word[..1 + roll(word.len())]);
        if roll(2) == 0 {
            let mut some = vec![0; 1 + roll(100_000)];
            let _ = stream.set_read_timeout(Some(Duration::from_millis(1 + roll(30) as u64)));
            let _ = stream.read(&mut some);
        }
        drop(stream);
        broken.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(roll(5) as u64));
    }
}

fn verdict(looks: &Looks) -> Result<(), Error> {
    let mut flat = true;
    if !given_back(looks.before, looks.after) {
        println!(
            "not everything was given back: {:?} before, {:?} after",
            looks.before, looks.after
        );
        flat = false;
    }
    let warm = looks.during.get(2).copied().unwrap_or_default();
    let last = looks.during.last().copied().unwrap_or_default();
    if last.kilobytes as f64 > warm.kilobytes as f64 * GROWTH {
        println!(
            "memory grew from {} to {} KiB under the same load",
            warm.kilobytes, last.kilobytes
        );
        flat = false;
    }
    if looks.after.panics > 0 {
        println!("{} tasks panicked", looks.after.panics);
        flat = false;
    }
    if flat {
        println!("flat: everything was given back");
        Ok(())
    } else {
        Err(Error::Reported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(warm: u64, last: u64, after: Look) -> Looks {
        let at = |kilobytes| Look {
            kilobytes,
            ..Look::default()
        };
        Looks {
            before: Look::default(),
            during: vec![at(1), at(1), at(warm), at(last)],
            after,
        }
    }

    #[test]
    fn what_is_not_given_back_is_a_finding() {
        assert!(verdict(&looks(100, 110, Look::default())).is_ok());
        let leak = Look {
            tasks: 1,
            ..Look::default()
        };
        assert!(verdict(&looks(100, 100, leak)).is_err());
    }

    #[test]
    fn growing_memory_is_a_finding() {
        assert!(verdict(&looks(100, 200, Look::default())).is_err());
    }
}
