//! A script: runs `main`, prints what it logs, and ends with what it says.

use std::io::Write as _;
use std::time::Duration;

use windlass::lua::{Interpreter, Level, Printed, Sandbox};
use windlass::process::{Exit, ExitReason, Payload};
use windlass::signal::{SignalKind, Signals, listen};
use windlass::vm::{Placement, Task, Vm};
use windlass::{Runtime, spawn};

use super::refuse;
use super::watch::Watch;
use crate::args::{Place, RunFile};
use crate::outcome::{Error, Outcome, Verdict};
use crate::terminal::Terminal;

/// What a process ends with that Ctrl-C has ended.
const INTERRUPTED: u8 = 130;

pub(super) fn run(args: &RunFile, terminal: &Terminal) -> Outcome {
    let graphs = "graphs";
    refuse(args.steps > 0, "--steps", graphs)?;
    refuse(args.duration_ms > 0, "--duration-ms", graphs)?;
    refuse(args.until_idle, "--until-idle", graphs)?;
    let mut builder = Runtime::builder();
    if let Some(workers) = args.workers {
        builder = builder.workers(workers);
    }
    let runtime = builder.build().map_err(Error::Runtime)?;
    let outcome = runtime.block_on(run_in(args, terminal));
    let report = runtime.shutdown(Duration::from_millis(args.stop_ms));
    if !report.is_clean() {
        terminal.note(&format!(
            "warning: not everything stopped in time: {report:?}"
        ));
    }
    outcome
}

async fn run_in(args: &RunFile, terminal: &Terminal) -> Outcome {
    let interrupts = listen(SignalKind::interrupt()).map_err(Error::Signals)?;
    let requests = listen(SignalKind::terminate()).map_err(Error::Signals)?;
    let vm = vm(args)?;
    let lua = interpreter(args, terminal, &vm)?;
    let given: Vec<Payload> = args.args.iter().map(|arg| arg.as_str().into()).collect();
    // Before it runs: what changes from its first line on is seen. A file that is not there is an error of the script.
    let _watch = match args.watch && args.file.exists() {
        true => Some(Watch::start(&args.file, &lua).map_err(Error::Watch)?),
        false => None,
    };
    let main = lua.spawn_file(&args.file, given).map_err(Error::Script)?;
    let stop = spawn(stop_on_signal(
        interrupts,
        requests,
        main.clone(),
        args.stop_ms,
    ));
    let exit = main.join().await;
    stop.abort();
    if args.replay.is_some() {
        vm.replayed().await.map_err(Error::Guests)?;
        terminal.note("replayed: everything happened as it was recorded");
    }
    if args.record.is_some() {
        vm.end_recording().await.map_err(Error::Guests)?;
    }
    Ok(verdict(&exit, terminal))
}

fn vm(args: &RunFile) -> Result<Vm, Error> {
    let recorded = args.record.is_some() || args.replay.is_some();
    let placement = match args.placement {
        Some(Place::Pool) => Placement::Pool,
        Some(Place::Reactor) => Placement::Reactor,
        None if recorded => Placement::Reactor,
        None => Placement::Pool,
    };
    let mut builder = Vm::builder()
        .placement(placement)
        .slice(Duration::from_millis(args.slice_ms))
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
        .memory(args.memory.saturating_mul(1 << 20))
        .output(move |printed| print(printed, colored));
    if args.watch {
        builder = builder.watched();
    }
    builder.build().map_err(Error::Lua)
}

/// What is printed is a result; what is logged is for people.
pub(crate) fn print(printed: Printed<'_>, colored: bool) {
    let text = printed.text;
    // If nobody reads any more, the script is not told.
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

/// The first signal tells the script to stop, and the others with it; the second does not wait for that, and neither
/// does the end of the time they have.
async fn stop_on_signal(mut interrupts: Signals, mut requests: Signals, main: Task, stop_ms: u64) {
    either(&mut interrupts, &mut requests).await;
    main.cancel("interrupted");
    windlass::select! {
        () = either(&mut interrupts, &mut requests) => std::process::exit(i32::from(INTERRUPTED)),
        () = windlass::time::sleep(Duration::from_millis(stop_ms)) => main.kill(),
    }
}

async fn either(interrupts: &mut Signals, requests: &mut Signals) {
    windlass::select! {
        () = interrupts.recv() => {}
        () = requests.recv() => {}
    }
}

/// What the script's end means for whoever called it.
fn verdict(exit: &Exit, terminal: &Terminal) -> Verdict {
    match (&exit.reason, &exit.value) {
        (ExitReason::Normal, Payload::Int(code)) => Verdict::Code(*code as u8),
        (ExitReason::Normal, Payload::Bool(false)) => Verdict::Bad,
        (ExitReason::Normal, _) => Verdict::Fine,
        (ExitReason::Cancelled(_), _) => Verdict::Code(INTERRUPTED),
        (reason, _) => {
            terminal.note(&reason.to_string());
            Verdict::Bad
        }
    }
}
