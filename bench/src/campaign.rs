//! The parent: rounds over the peers, one child process per sample.

use std::env;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::child::{self, Outcome};
use crate::cli::SampleArgs;
use crate::peers::{Job, Peer};
use crate::sample::Sample;
use crate::workload::Workload;

/// The time limit of a peer that has not finished a run yet, and the least and the most of it
/// later.
const FIRST_LIMIT: Duration = Duration::from_secs(20);
const LEAST_LIMIT: Duration = Duration::from_secs(5);
const MOST_LIMIT: Duration = Duration::from_secs(40);
/// A run may take this many times as long as the slowest one that the same peer has finished.
/// Another peer's time says nothing: slow is not hung.
const PATIENCE: u32 = 10;
/// After so many runs that did not finish, a peer is left alone for the rest of the line.
const GIVE_UP: usize = 3;

/// How a line is run: the workers and the factor on the size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    pub workers: usize,
    pub scale: f64,
}

impl Setting {
    /// The settings of `--matrix` besides this one: 1 and 4 workers, and a tenth of the size.
    pub fn others(self) -> Vec<Setting> {
        [
            Setting { workers: 1, ..self },
            Setting { workers: 4, ..self },
            Setting {
                scale: self.scale / 10.0,
                ..self
            },
        ]
        .into_iter()
        .filter(|other| *other != self)
        .collect()
    }
}

/// All runs of one peer in one line.
#[derive(Debug, Default)]
pub struct Tally {
    pub peer: &'static str,
    pub samples: Vec<Sample>,
    pub runs: usize,
    pub hung: usize,
    pub failed: usize,
    /// The end of what the last failed run said.
    pub complaint: Option<String>,
    /// The longest run that finished, the warm-up included.
    pub slowest: Option<Duration>,
}

impl Tally {
    fn of(peer: &'static str) -> Self {
        Tally {
            peer,
            ..Tally::default()
        }
    }

    fn given_up(&self) -> bool {
        self.hung + self.failed >= GIVE_UP
    }

    fn add(&mut self, outcome: Outcome, counts: bool) {
        self.runs += 1;
        match outcome {
            Outcome::Finished(sample) if counts => self.samples.push(sample),
            Outcome::Finished(_) => {}
            Outcome::Hung => self.hung += 1,
            Outcome::Failed(complaint) => {
                self.failed += 1;
                self.complaint = Some(complaint);
            }
        }
    }
}

/// Runs lines of the table.
pub struct Campaign {
    program: PathBuf,
    rounds: usize,
}

impl Campaign {
    /// Fails if the path of this program, which the children run, is not known.
    pub fn new(rounds: usize) -> io::Result<Self> {
        Ok(Campaign {
            program: env::current_exe()?,
            rounds,
        })
    }

    /// Measures one workload on the peers that can run it, in turn. The first round warms up and
    /// does not count.
    pub fn line(
        &self,
        workload: Workload,
        setting: Setting,
        peers: &[&'static Peer],
    ) -> Vec<Tally> {
        let facts = workload.facts();
        let able: Vec<&Peer> = peers
            .iter()
            .copied()
            .filter(|peer| peer.can(workload))
            .collect();
        let job = Job {
            workload,
            workers: setting.workers,
            size: workload.size(setting.scale),
        };
        let mut tallies: Vec<Tally> = able.iter().map(|peer| Tally::of(peer.name)).collect();
        for round in 0..=self.rounds.min(facts.most_rounds) {
            // Each round begins with another peer, so that none is always the one after the same
            // other.
            for turn in 0..able.len() {
                let turn = (turn + round) % able.len();
                let tally = &mut tallies[turn];
                if tally.given_up() {
                    continue;
                }
                let start = Instant::now();
                let outcome = self.sample(able[turn], job, limit(tally.slowest));
                if matches!(outcome, Outcome::Finished(_)) {
                    tally.slowest = tally.slowest.max(Some(start.elapsed()));
                }
                tally.add(outcome, round > 0);
            }
        }
        tallies
    }

    fn sample(&self, peer: &Peer, job: Job, limit: Duration) -> Outcome {
        child::run(
            Command::new(&self.program).args(SampleArgs::for_child(peer, job)),
            limit,
        )
    }
}

/// The time limit of a peer, given the slowest run that it has finished.
fn limit(slowest: Option<Duration>) -> Duration {
    slowest.map_or(FIRST_LIMIT, |slowest| {
        (slowest * PATIENCE).clamp(LEAST_LIMIT, MOST_LIMIT)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_matrix_leaves_out_what_was_measured() {
        let here = Setting {
            workers: 4,
            scale: 1.0,
        };
        assert_eq!(
            here.others(),
            [
                Setting {
                    workers: 1,
                    scale: 1.0
                },
                Setting {
                    workers: 4,
                    scale: 0.1
                }
            ]
        );
    }

    #[test]
    fn the_limit_is_generous_and_bounded() {
        assert_eq!(limit(None), FIRST_LIMIT);
        assert_eq!(limit(Some(Duration::from_millis(1))), LEAST_LIMIT);
        assert_eq!(limit(Some(Duration::from_secs(2))), Duration::from_secs(20));
        assert_eq!(limit(Some(Duration::from_secs(60))), MOST_LIMIT);
    }

    #[test]
    fn a_run_that_hangs_while_warming_up_counts_as_hung() {
        let mut tally = Tally::of("x");
        tally.add(Outcome::Hung, false);
        tally.add(Outcome::Finished(Sample::of(1.0)), true);
        assert_eq!((tally.runs, tally.hung, tally.samples.len()), (2, 1, 1));
    }
}
