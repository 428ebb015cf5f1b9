//! A script: runs `main`, prints what it logs, and ends with what it says.

use std::io::Write as _;
use std::pin::pin;
use std::time::Duration;

use windlass::Runtime;
use windlass::actor::{Exit, ExitReason};
use windlass::lua::{Interpreter, Level, Printed, Sandbox};
use windlass::time::{Instant, sleep};
use windlass::value::Payload;
use windlass::vm::{Placement, Task, Vm};

use super::refuse;
use super::watch::Watch;
use crate::args::{PlacementArg, RunFile};
use crate::outcome::{Error, INTERRUPTED, Outcome, Verdict};
use crate::stopping::{StopSignals, leave_interrupted, leave_not_stopped, listed, tell_stopping};
use crate::terminal::Terminal;

/// The memory of each process, in MiB, unless one says otherwise.
const MEMORY: u32 = 256;

/// How long processes that are left have to end before the command says that it waits for them.
const SAY_AFTER: Duration = Duration::from_millis(200);

/// The least time that a kill has to take effect. A kill is carried out by the worker that runs the
/// script. On a busy machine that worker's thread may wait this long for a core, and the script is
/// not stuck because of that.
const KILL_GRACE: Duration = Duration::from_secs(1);

/// How many processes that did not stop are named.
const PROCESSES_SHOWN: usize = 8;

/// How long a task may run while others are ready, in ms, unless one says otherwise.
const SLICE_MS: u64 = 10;

pub(super) fn run(args: &RunFile, terminal: &Terminal) -> Outcome {
    let graphs = "graphs";
    refuse(args.steps > 0, "--steps", graphs)?;
    refuse(args.duration_ms > 0, "--duration-ms", graphs)?;
    refuse(args.until_idle, "--until-idle", graphs)?;
    refuse(args.strict, "--strict", graphs)?;
    let mut builder = Runtime::builder();
    if let Some(workers) = args.workers {
        builder.workers(workers);
    }
    let runtime = builder.build().map_err(Error::Runtime)?;
    let mut stopping = Stopping::new(args);
    let outcome = runtime.block_on(run_in(args, terminal, &mut stopping));
    // The processes have ended, or were named.
    let report = runtime.shutdown(stopping.left());
    if report.is_clean() {
        return outcome;
    }
    terminal.note(&format!("error: {report}"));
    outcome.map(|_| Verdict::NotStopped)
}

/// How long a script has to stop.
struct Stopping {
    who: String,
    within: Duration,
    /// When the request to stop came.
    since: Option<Instant>,
}

impl Stopping {
    fn new(args: &RunFile) -> Stopping {
        Stopping {
            who: args.file.display().to_string(),
            within: Duration::from_millis(args.stop_ms),
            since: None,
        }
    }

    /// Returns how long a process that was killed has to end: a tenth of the time, but at least
    /// [`KILL_GRACE`].
    fn kill_grace(&self) -> Duration {
        (self.within / 10).max(KILL_GRACE)
    }

    /// Returns how long the other processes have to stop: what is left of the time, but at least as
    /// long as a kill may take.
    fn left(&self) -> Duration {
        let took = self.since.map_or(Duration::ZERO, |since| since.elapsed());
        self.within.saturating_sub(took).max(self.kill_grace())
    }
}

async fn run_in(args: &RunFile, terminal: &Terminal, stopping: &mut Stopping) -> Outcome {
    let mut signals = StopSignals::listen()?;
    let vm = vm(args)?;
    let lua = interpreter(args, terminal, &vm)?;
    let given: Vec<Payload> = args.args.iter().map(|arg| arg.as_str().into()).collect();
    // Before it runs: what changes from its first line on is seen. A file that is not there is an
    // error of the script.
    let _watch = match args.watch && args.file.exists() {
        true => Some(Watch::start(&args.file, &lua).map_err(Error::Watch)?),
        false => None,
    };
    let main = lua.spawn_file(&args.file, given).map_err(Error::Script)?;
    let exit = end_of(&main, &vm, &mut signals, terminal, stopping).await;
    if args.replay.is_some() {
        vm.replayed().await.map_err(Error::Guests)?;
        terminal.note("replayed: everything happened as it was recorded");
    }
    if args.record.is_some() {
        vm.end_recording().await.map_err(Error::Guests)?;
    }
    let verdict = verdict(&exit, terminal, stopping);
    let all_stopped = stop_others(&vm, &mut signals, terminal, stopping).await;
    Ok(if all_stopped {
        verdict
    } else {
        Verdict::NotStopped
    })
}

/// Waits for the processes that are left when the script has ended, and names those that had to be
/// killed. False: there were such, after a signal.
async fn stop_others(
    vm: &Vm,
    signals: &mut StopSignals,
    terminal: &Terminal,
    stopping: &Stopping,
) -> bool {
    let (who, left) = (&stopping.who, stopping.left());
    let within = left.as_millis();
    let mut stopped = pin!(vm.host().shutdown(left));
    let report = windlass::select! {
        report = stopped.as_mut() => report,
        () = signals.next() => leave_interrupted(terminal, who),
        () = sleep(SAY_AFTER.min(left)) => {
            let number = vm.host().processes();
            terminal.note(&format!(
                "note: {who} has ended: waiting for {number} of its processes, at most {within} ms; \
                 Ctrl-C or SIGTERM ends them at once"
            ));
            windlass::select! {
                report = stopped.as_mut() => report,
                () = signals.next() => leave_interrupted(terminal, who),
            }
        }
    };
    let killed = report.killed.iter().map(ToString::to_string);
    let stuck = report.stuck.iter().map(ToString::to_string);
    let names: Vec<String> = killed.chain(stuck).collect();
    // A script that ends by itself has said how; what it has left behind does not change that.
    let kind = match stopping.since {
        Some(_) => "error",
        None => "note",
    };
    for name in names.iter().take(PROCESSES_SHOWN) {
        terminal.note(&format!("{kind}: {name}"));
    }
    if let Some(more @ 1..) = names.len().checked_sub(PROCESSES_SHOWN) {
        terminal.note(&format!("{kind}: and {more} more processes"));
    }
    names.is_empty() || stopping.since.is_none()
}

/// Waits for the end of the script. The first signal tells it to stop. After nine tenths of the
/// time it is killed. If it has not ended [`Stopping::kill_grace`] later, it is given up.
async fn end_of(
    main: &Task,
    vm: &Vm,
    signals: &mut StopSignals,
    terminal: &Terminal,
    stopping: &mut Stopping,
) -> Exit {
    let mut ended = pin!(main.join());
    windlass::select! {
        exit = ended.as_mut() => return exit,
        () = signals.next() => {}
    }
    stopping.since = Some(Instant::now());
    let (who, within, grace) = (&stopping.who, stopping.within, stopping.kill_grace());
    main.cancel("interrupted");
    tell_stopping(terminal, who, "its processes to end", within);
    windlass::select! {
        exit = ended.as_mut() => return exit,
        () = signals.next() => leave_interrupted(terminal, who),
        () = sleep(within * 9 / 10) => main.kill(),
    }
    windlass::select! {
        exit = ended.as_mut() => exit,
        () = signals.next() => leave_interrupted(terminal, who),
        () = sleep(grace) => {
            let why = match &vm.snapshot().stuck[..] {
                [] => "its first process is inside a call that does not return, and is given up".to_owned(),
                [_, _, ..] => {
                    let stuck = listed("process", &vm.snapshot().stuck);
                    format!("{stuck} do not come back from functions of the host, and are given up")
                }
                stuck => {
                    let stuck = listed("process", stuck);
                    format!("{stuck} does not come back from a function of the host, and is given up")
                }
            };
            leave_not_stopped(terminal, who, &why, within)
        }
    }
}

fn vm(args: &RunFile) -> Result<Vm, Error> {
    let recorded = args.record.is_some() || args.replay.is_some();
    let placement = match args.placement {
        Some(PlacementArg::Pool) => Placement::Pool,
        Some(PlacementArg::Reactor) => Placement::Reactor,
        None if recorded => Placement::Reactor,
        None => Placement::Pool,
    };
    let mut builder = Vm::builder()
        .placement(placement)
        .slice(Duration::from_millis(args.slice_ms.unwrap_or(SLICE_MS)))
        .on_uncaught(|uncaught| eprintln!("error: {uncaught}"));
    if let Some(workers) = args.workers {
        builder = builder.workers(workers);
    }
    if let Some(file) = &args.record {
        builder = builder.record(file);
    }
    if let Some(file) = &args.replay {
        builder = builder.replay(file);
    }
    builder.build().map_err(Error::Vm)
}

fn interpreter(args: &RunFile, terminal: &Terminal, vm: &Vm) -> Result<Interpreter, Error> {
    let mut sandbox = Sandbox::new();
    for folder in &args.allow_fs {
        sandbox = sandbox.allow_fs(folder);
    }
    for host in &args.allow_net {
        sandbox = sandbox.allow_net(host);
    }
    if args.allow_env {
        sandbox = sandbox.allow_env();
    }
    let colored = terminal.colored;
    let mut builder = Interpreter::builder(vm)
        .sandbox(sandbox)
        .memory((args.memory.unwrap_or(MEMORY) as usize).saturating_mul(1 << 20))
        .output(move |printed| print(printed, colored));
    if args.watch {
        builder = builder.watched();
    }
    builder.build().map_err(Error::Lua)
}

/// What is printed is a result; what is logged is for people.
pub(crate) fn print(printed: Printed<'_>, colored: bool) {
    let text = printed.text;
    // If the output is closed, the script does not see it.
    let Some(level) = printed.level else {
        let _ = writeln!(std::io::stdout().lock(), "{text}");
        return;
    };
    let (name, colour) = match level {
        Level::Debug => ("debug", "\x1b[2m"),
        Level::Info => ("info", "\x1b[32m"),
        Level::Warn => ("warn", "\x1b[33m"),
        Level::Error => ("error", "\x1b[31m"),
    };
    let (colour, plain) = if colored {
        (colour, "\x1b[0m")
    } else {
        ("", "")
    };
    let pid = printed.pid.map(|pid| format!(" {pid}")).unwrap_or_default();
    let _ = writeln!(
        std::io::stderr().lock(),
        "{colour}{name}{plain}{pid} {text}"
    );
}

/// Returns what the script's end means for the caller.
fn verdict(exit: &Exit, terminal: &Terminal, stopping: &Stopping) -> Verdict {
    match (&exit.reason, &exit.value) {
        (ExitReason::Normal, Payload::Int(code)) => Verdict::Code(*code as u8),
        (ExitReason::Normal, Payload::Bool(false)) => Verdict::Bad,
        (ExitReason::Normal, _) => Verdict::Fine,
        (ExitReason::Cancelled(_), _) => Verdict::Code(INTERRUPTED),
        (ExitReason::Killed, _) if stopping.since.is_some() => {
            let (who, within) = (&stopping.who, stopping.within.as_millis());
            terminal.note(&format!(
                "error: {who} did not stop within {within} ms, and was killed"
            ));
            Verdict::NotStopped
        }
        (reason, _) => {
            terminal.note(&reason.to_string());
            Verdict::Bad
        }
    }
}
