//! `windlass-bench`: one table of Windlass and its peers. See the README beside it.

mod campaign;
mod child;
mod cli;
mod countdown;
mod peers;
mod process;
mod report;
mod sample;
mod stats;
mod table;
mod workload;
mod workloads;

#[cfg(feature = "allocations")]
mod allocations;

use std::fs;
use std::process::ExitCode;

use clap::Parser;

use campaign::{Campaign, Setting};
use cli::{Cli, Hidden, RunArgs, SampleArgs};
use peers::Peer;
use report::{Line, Report};
use workload::Workload;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.sample {
        Some(Hidden::Sample(args)) => sample(&args),
        None if cli.run.list => {
            list();
            Ok(())
        }
        None => run(&cli.run),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("windlass-bench: {}", failure.message);
            ExitCode::from(failure.code)
        }
    }
}

/// Why the command ends early, and with which exit code.
struct Failure {
    message: String,
    code: u8,
}

impl From<cli::UnknownName> for Failure {
    fn from(unknown: cli::UnknownName) -> Self {
        Failure {
            message: unknown.to_string(),
            code: 2,
        }
    }
}

impl Failure {
    fn during(what: &str, error: impl std::fmt::Display) -> Self {
        Failure {
            message: format!("{what}: {error}"),
            code: 1,
        }
    }
}

/// A child's whole life.
fn sample(args: &SampleArgs) -> Result<(), Failure> {
    let (peer, job) = args.job()?;
    // A child that hangs must not outlive its parent.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(|error| Failure::during("cannot tie this process to its parent", error))?;
    let sample = (peer.run)(job);
    let line = serde_json::to_string(&sample)
        .map_err(|error| Failure::during("cannot write JSON", error))?;
    println!("{line}");
    // How a runtime shuts down is not measured, and some of these never do.
    std::process::exit(0)
}

fn list() {
    println!("workloads:");
    for workload in Workload::ALL {
        let facts = workload.facts();
        println!(
            "  {:18} {:11} {} (size {})",
            facts.name,
            facts.unit,
            facts.about,
            workload.size(1.0)
        );
    }
    println!("peers:");
    for peer in peers::ALL {
        let names: Vec<_> = peer
            .workloads
            .iter()
            .copied()
            .flatten()
            .map(|w| w.facts().name)
            .collect();
        println!("  {:18} {}", peer.name, names.join(", "));
    }
}

fn run(args: &RunArgs) -> Result<(), Failure> {
    let (workloads, peers) = (args.workloads()?, args.peers()?);
    let campaign = Campaign::new(args.rounds)
        .map_err(|error| Failure::during("cannot find this program", error))?;
    let mut report = Report::new(args.workers, args.rounds);
    for workload in workloads {
        if args.markdown {
            // The table comes at the end; until then this says that something happens.
            eprintln!("{} ...", workload.facts().name);
        }
        if let Some(line) = measure(&campaign, workload, args, &peers) {
            if !args.markdown {
                print!("{}", table::line(&line));
            }
            report.workloads.push(line);
        }
    }
    if args.markdown {
        print!("{}", table::markdown(&report));
    }
    if let Some(path) = &args.json {
        let json = serde_json::to_string_pretty(&report)
            .map_err(|error| Failure::during("cannot write JSON", error))?;
        fs::write(path, json + "\n")
            .map_err(|error| Failure::during(&format!("cannot write {}", path.display()), error))?;
    }
    Ok(())
}

/// One line of the table, with its matrix if that was asked for. `None` if no peer can run it.
fn measure(
    campaign: &Campaign,
    workload: Workload,
    args: &RunArgs,
    peers: &[&'static Peer],
) -> Option<Line> {
    let facts = workload.facts();
    let setting = Setting {
        workers: args.workers,
        scale: args.scale,
    };
    if !peers.iter().any(|peer| peer.can(workload)) {
        return None;
    }
    let takes_part = |setting: &Setting| setting.workers >= facts.least_workers;
    if !takes_part(&setting) {
        eprintln!(
            "{}: needs {} workers, left out",
            facts.name, facts.least_workers
        );
        return None;
    }
    let mut line = Line::new(workload, campaign.line(workload, setting, peers));
    // The machine has no workers and no best peer.
    if args.matrix && !workload.is_limit() {
        for other in setting.others().into_iter().filter(takes_part) {
            line.add_setting(
                other,
                Line::new(workload, campaign.line(workload, other, peers)),
            );
        }
    }
    Some(line)
}
