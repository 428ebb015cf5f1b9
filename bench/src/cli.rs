//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::peers::{self, Job, Peer};
use crate::workload::Workload;

/// Runs the same workloads on Windlass and on its peers, interleaved, each sample in a process of
/// its own.
#[derive(Parser)]
#[command(name = "windlass-bench", args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    pub sample: Option<Hidden>,
    #[command(flatten)]
    pub run: RunArgs,
}

#[derive(Subcommand)]
pub enum Hidden {
    /// Takes one sample in this process and prints it as a line of JSON.
    #[command(hide = true)]
    Sample(SampleArgs),
}

#[derive(Args)]
pub struct SampleArgs {
    #[arg(long)]
    workload: String,
    #[arg(long)]
    peer: String,
    #[arg(long)]
    workers: usize,
    #[arg(long)]
    size: u64,
}

#[derive(Args)]
pub struct RunArgs {
    /// Workloads to run (all)
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    only: Vec<String>,
    /// Peers to run (all)
    #[arg(long, value_name = "X,Y", value_delimiter = ',')]
    peers: Vec<String>,
    /// Rounds that count; one more comes first and does not
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = positive)]
    pub rounds: usize,
    /// Workers of each peer
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = positive)]
    pub workers: usize,
    /// Factor on the size of every workload
    #[arg(long, value_name = "F", default_value_t = 1.0, value_parser = factor)]
    pub scale: f64,
    /// Runs each line also at 1 and 4 workers and at a tenth of the size, and reports the worst
    /// ratio
    #[arg(long)]
    pub matrix: bool,
    /// Writes the results to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Prints the table as markdown
    #[arg(long)]
    pub markdown: bool,
    /// Lists workloads and peers and ends
    #[arg(long)]
    pub list: bool,
}

fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}

fn factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if factor.is_finite() && factor > 0.0 => Ok(factor),
        Ok(_) => Err("must be a finite number above 0".to_owned()),
        Err(error) => Err(format!("{error}")),
    }
}

/// A name on the command line that is not one of ours. Says which are.
#[derive(Debug, PartialEq)]
pub struct UnknownName {
    kind: &'static str,
    name: String,
    valid: Vec<&'static str>,
}

impl std::fmt::Display for UnknownName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "unknown {} {:?}; valid are: {}",
            self.kind,
            self.name,
            self.valid.join(", ")
        )
    }
}

impl RunArgs {
    /// The workloads that were asked for, in the order of the list.
    pub fn workloads(&self) -> Result<Vec<Workload>, UnknownName> {
        if self.only.is_empty() {
            return Ok(Workload::ALL.to_vec());
        }
        let mut asked = Vec::new();
        for name in &self.only {
            match Workload::selected(name) {
                found if found.is_empty() => return Err(unknown_workload(name)),
                found => asked.extend(found),
            }
        }
        Ok(Workload::ALL
            .into_iter()
            .filter(|w| asked.contains(w))
            .collect())
    }

    /// The peers that were asked for, in the order of the list.
    pub fn peers(&self) -> Result<Vec<&'static Peer>, UnknownName> {
        for name in &self.peers {
            find_peer(name)?;
        }
        let asked =
            |peer: &&Peer| self.peers.is_empty() || self.peers.iter().any(|n| n == peer.name);
        Ok(peers::ALL.iter().filter(asked).collect())
    }
}

impl SampleArgs {
    pub fn job(&self) -> Result<(&'static Peer, Job), UnknownName> {
        let workload =
            Workload::named(&self.workload).ok_or_else(|| unknown_workload(&self.workload))?;
        Ok((
            find_peer(&self.peer)?,
            Job {
                workload,
                workers: self.workers,
                size: self.size,
            },
        ))
    }

    /// The arguments that make a child take this sample.
    pub fn for_child(peer: &Peer, job: Job) -> Vec<String> {
        let Job {
            workload,
            workers,
            size,
        } = job;
        let name = workload.facts().name;
        format!(
            "sample --workload {name} --peer {} --workers {workers} --size {size}",
            peer.name
        )
        .split(' ')
        .map(str::to_owned)
        .collect()
    }
}

fn unknown_workload(name: &str) -> UnknownName {
    let mut valid: Vec<_> = Workload::ALL.iter().map(|w| w.facts().name).collect();
    valid.push("limits");
    UnknownName {
        kind: "workload",
        name: name.to_owned(),
        valid,
    }
}

fn find_peer(name: &str) -> Result<&'static Peer, UnknownName> {
    peers::named(name).ok_or_else(|| {
        let valid = peers::ALL.iter().map(|p| p.name).collect();
        UnknownName {
            kind: "peer",
            name: name.to_owned(),
            valid,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_args(line: &str) -> RunArgs {
        Cli::try_parse_from(line.split(' '))
            .unwrap_or_else(|e| panic!("{e}"))
            .run
    }

    #[test]
    fn names_are_taken_in_the_order_of_the_list() {
        let args = run_args("bench --only memory,yield_many --peers rayon,tokio");
        assert_eq!(
            args.workloads().unwrap(),
            [Workload::YieldMany, Workload::Memory]
        );
        assert_eq!(
            args.peers()
                .unwrap()
                .iter()
                .map(|p| p.name)
                .collect::<Vec<_>>(),
            ["tokio", "rayon"]
        );
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_valid_ones() {
        let args = run_args("bench --only yeild --peers toki");
        let workload = args.workloads().unwrap_err().to_string();
        assert!(
            workload.contains("\"yeild\"") && workload.contains("yield_many"),
            "{workload}"
        );
        let peer = args.peers().err().unwrap().to_string();
        assert!(
            peer.contains("\"toki\"") && peer.contains("tokio"),
            "{peer}"
        );
    }

    #[test]
    fn absurd_numbers_are_refused() {
        for line in [
            "bench --rounds 0",
            "bench --workers 0",
            "bench --scale 0",
            "bench --scale inf",
        ] {
            assert!(Cli::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }

    #[test]
    fn a_child_understands_its_arguments() {
        let job = Job {
            workload: Workload::FetchAdd,
            workers: 2,
            size: 7,
        };
        let arguments = SampleArgs::for_child(peers::named("machine").unwrap(), job);
        let cli =
            Cli::try_parse_from(std::iter::once("bench".to_owned()).chain(arguments)).unwrap();
        let Some(Hidden::Sample(args)) = cli.sample else {
            panic!("a sample")
        };
        let (peer, parsed) = args.job().unwrap();
        assert_eq!(
            (peer.name, parsed.workload, parsed.size),
            ("machine", Workload::FetchAdd, 7)
        );
    }
}
