//! Model checkers: building their test binary and running each test of it in its own process. The
//! programs that try to break the runtime, under AddressSanitizer, are run in the same way.
//!
//! loom ends the process when a model deadlocks, so two models never share one.

use std::collections::VecDeque;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::error::Error;
use crate::process::{self, Ended, How};
use crate::san;
use crate::text;
use crate::workspace::{self, Workspace};

/// How long one model may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(300);
/// How long one of the programs that try to break the runtime may take: they give up after 20 s.
const PROGRAM_LIMIT: Duration = Duration::from_secs(60);
/// Models that run at the same time.
const AT_ONCE: usize = 2;
/// Lines of a failed model's output that are shown.
const SHOWN_LINES: usize = 80;
/// Preemptions loom tries per execution: three find what weakening the orderings breaks.
const LOOM_PREEMPTIONS: (&str, &str) = ("LOOM_MAX_PREEMPTIONS", "3");

/// One model checker and how the crate is built for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checker {
    /// The test target, which is also the name of its directory below `target`.
    pub(crate) test: &'static str,
    /// What the compiler is told.
    pub(crate) flags: &'static str,
    /// The packages that have models for it.
    pub(crate) packages: &'static [&'static str],
    /// Optimised: models run long, the other programs are built often.
    pub(crate) optimised: bool,
    /// Built incrementally: for a change of one line after the other.
    pub(crate) incremental: bool,
    /// For which target it is built; none: the machine's own.
    pub(crate) target: Option<&'static str>,
    pub(crate) limit: Duration,
}

pub(crate) const LOOM: Checker = Checker {
    test: "loom",
    flags: "--cfg windlass_loom",
    packages: &["windlass-core", "windlass-sync"],
    optimised: true,
    incremental: false,
    target: None,
    limit: LIMIT,
};
pub(crate) const SHUTTLE: Checker = Checker {
    test: "shuttle",
    flags: "--cfg windlass_shuttle",
    packages: &["windlass-core"],
    optimised: true,
    incremental: false,
    target: None,
    limit: LIMIT,
};
/// The programs that try to break the runtime.
pub(crate) const ADVERSARY: Checker = Checker {
    test: "adversary",
    flags: san::FLAGS,
    packages: &["windlass-runtime"],
    optimised: false,
    incremental: false,
    target: Some(san::TARGET),
    limit: PROGRAM_LIMIT,
};

/// One test of a checker, and the binary that holds it.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) name: String,
    pub(crate) package: &'static str,
    pub(crate) binary: PathBuf,
}

/// One test of a checker's binary, after its run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) model: String,
    pub(crate) ended: Ended,
}

impl Checker {
    /// Builds the models as they are in the checkout, and lists them.
    pub(crate) fn build(self, workspace: &Workspace) -> Result<Vec<Model>, Error> {
        let target = workspace.target.join(self.test);
        self.build_in(&workspace.root, &target, self.packages)
    }

    /// Builds the models of some packages in the copy of the workspace at `root`, and lists them.
    pub(crate) fn build_in(
        self,
        root: &Path,
        target: &Path,
        packages: &[&'static str],
    ) -> Result<Vec<Model>, Error> {
        let mut models = Vec::new();
        for package in packages {
            let binary = self.build_package(package, root, target)?;
            for name in self.list(package, &binary)? {
                let binary = binary.clone();
                models.push(Model {
                    name,
                    package,
                    binary,
                });
            }
        }
        Ok(models)
    }

    fn build_package(self, package: &str, root: &Path, target: &Path) -> Result<PathBuf, Error> {
        let mut cargo = workspace::cargo_in(root);
        cargo
            .args(["test", "--package", package])
            .args(self.optimised.then_some("--release"))
            .args(["--test", self.test, "--no-run", "--target-dir"])
            .arg(target)
            .env("RUSTFLAGS", self.flags())
            .env_remove("CARGO_ENCODED_RUSTFLAGS");
        if self.incremental {
            cargo.env("CARGO_INCREMENTAL", "1");
        }
        if let Some(target) = self.target {
            // A target of its own for the sanitizer, which is an unstable flag.
            cargo.args(["--target", target]).env("RUSTC_BOOTSTRAP", "1");
        }
        process::build(&mut cargo, self.test)
    }

    fn flags(self) -> OsString {
        let mut flags = env::var_os("RUSTFLAGS").unwrap_or_default();
        flags.push(format!(" {}", self.flags));
        flags
    }

    /// The names of the models in the binary. None at all is an error: an empty check is no check.
    fn list(self, package: &'static str, binary: &Path) -> Result<Vec<String>, Error> {
        let listing =
            process::stdout_of(Command::new(binary).args(["--list", "--format", "terse"]))?;
        let models = parse_list(&listing);
        if models.is_empty() {
            return Err(Error::NoModels {
                package,
                target: self.test,
                flags: self.flags,
            });
        }
        Ok(models)
    }

    /// Runs one model to its end or its limit.
    pub(crate) fn run_one(self, model: &Model) -> Result<Run, Error> {
        let mut command = Command::new(&model.binary);
        command.args(["--exact", &model.name, "--nocapture", "--test-threads", "1"]);
        if env::var_os(LOOM_PREEMPTIONS.0).is_none() {
            command.env(LOOM_PREEMPTIONS.0, LOOM_PREEMPTIONS.1);
        }
        command.env(san::OPTIONS.0, san::OPTIONS.1);
        let ended = process::limited(&mut command, self.limit)?;
        Ok(Run {
            model: model.name.clone(),
            ended,
        })
    }

    /// Runs models, a few at a time, and prints a line for each and the output of those that fail.
    pub(crate) fn run_all(self, models: &[Model]) -> Result<Vec<Run>, Error> {
        let waiting = Mutex::new(models.iter().collect::<VecDeque<_>>());
        let next = || {
            waiting
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop_front()
        };
        let width = models.iter().map(|m| m.name.len()).max().unwrap_or(0);
        let work = || -> Result<Vec<Run>, Error> {
            let mut runs = Vec::new();
            while let Some(model) = next() {
                let run = self.run_one(model)?;
                run.print(width);
                runs.push(run);
            }
            Ok(runs)
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
            let mut runs = Vec::new();
            for thread in threads {
                match thread.join() {
                    Ok(result) => runs.extend(result?),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok(runs)
        })
    }

    /// The whole step: build, run all models or those that `wanted` names, fail if any did.
    pub(crate) fn check(self, workspace: &Workspace, wanted: Option<&str>) -> Result<(), Error> {
        let mut models = self.build(workspace)?;
        if let Some(name) = wanted {
            models = select(&models, name).ok_or_else(|| unknown(&models, name))?;
        }
        let runs = self.run_all(&models)?;
        let failed: Vec<&Run> = runs
            .iter()
            .filter(|run| run.ended.how != How::Passed)
            .collect();
        println!(
            "{} of {} models passed",
            runs.len() - failed.len(),
            runs.len()
        );
        if failed.is_empty() {
            return Ok(());
        }
        for run in &failed {
            println!("  {}: {}", run.model, run.verdict());
        }
        Err(Error::Findings {
            check: self.test,
            count: failed.len(),
            advice: "run one alone with `cargo xtask loom MODEL` or `cargo xtask shuttle TEST`",
        })
    }
}

impl Run {
    /// The end in a word or two.
    pub(crate) fn verdict(&self) -> String {
        match self.ended.how {
            How::Passed => "ok".to_owned(),
            How::Failed(status) => format!("FAILED ({status})"),
            How::TimedOut => format!("NOT FINISHED after {:.0} s", self.ended.seconds),
        }
    }

    fn print(&self, width: usize) {
        let line = format!(
            "  {:width$}  {:7.1} s  {}",
            self.model,
            self.ended.seconds,
            self.verdict()
        );
        if self.ended.how == How::Passed {
            println!("{line}");
        } else {
            println!("{line}\n{}", text::tail(&self.ended.output, SHOWN_LINES));
        }
    }
}

/// The arguments of `loom` and `shuttle`: at most one name.
pub(crate) fn one_name<'a>(
    command: &str,
    arguments: &'a [String],
) -> Result<Option<&'a str>, Error> {
    match arguments {
        [] => Ok(None),
        [name] if !name.starts_with('-') => Ok(Some(name)),
        _ => Err(Error::usage(format!(
            "`{command}` takes one name or nothing"
        ))),
    }
}

/// The models that a name means: the exact one, the one that ends in it, or else all that contain
/// it.
pub(crate) fn select(models: &[Model], name: &str) -> Option<Vec<Model>> {
    let path_end = format!("::{name}");
    let by = |test: &dyn Fn(&str) -> bool| {
        let found: Vec<Model> = models.iter().filter(|m| test(&m.name)).cloned().collect();
        (!found.is_empty()).then_some(found)
    };
    by(&|model| model == name)
        .or_else(|| by(&|model| model.ends_with(&path_end)))
        .or_else(|| by(&|model| model.contains(name)))
}

/// There is no such model; says which there are.
pub(crate) fn unknown(models: &[Model], name: &str) -> Error {
    Error::Unknown {
        kind: "model",
        name: name.to_owned(),
        known: models.iter().map(|model| model.name.clone()).collect(),
    }
}

/// The names in the answer to `--list --format terse`.
fn parse_list(listing: &str) -> Vec<String> {
    listing
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_listed_and_benchmarks_are_not() {
        let listing = "idle::no_task_is_left_behind: test\nring: test\nspeed: benchmark\n\n";
        assert_eq!(
            parse_list(listing),
            ["idle::no_task_is_left_behind", "ring"]
        );
    }

    #[test]
    fn a_name_means_the_nearest_match() {
        let models = ["ring", "steal::ring", "ring_wraps", "park"].map(|name| Model {
            name: name.to_owned(),
            package: "windlass-core",
            binary: PathBuf::new(),
        });
        let first = |models, name| select(models, name).map(|found| found[0].name.clone());
        assert_eq!(first(&models, "ring").unwrap(), "ring");
        assert_eq!(first(&models[1..], "ring").unwrap(), "steal::ring");
        assert_eq!(first(&models[2..], "ring").unwrap(), "ring_wraps");
        assert_eq!(first(&models, "join"), None);
    }

    #[test]
    fn a_model_is_named_once() {
        assert_eq!(one_name("loom", &[]).unwrap(), None);
        assert_eq!(
            one_name("loom", &["ring".to_owned()]).unwrap(),
            Some("ring")
        );
        assert!(one_name("loom", &["a".to_owned(), "b".to_owned()]).is_err());
        assert!(one_name("loom", &["--all".to_owned()]).is_err());
    }
}
