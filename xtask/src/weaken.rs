//! `cargo xtask weaken`: proof that models and tests see what they are there for.
//!
//! Each entry of `xtask/weaken.list` takes one ordering, fence or fix away, in a copy of the
//! workspace, and its model or test must then fail. One that passes anyway does not check that
//! line.

mod list;

use std::fmt;
use std::fs;
use std::path::PathBuf;

use crate::error::Error;
use crate::folder_copy::FolderCopy;
use crate::models::{self, ADVERSARY, Checker, LOOM, Model};
use crate::process::How;
use crate::text;
use crate::workspace::Workspace;
pub(crate) use list::ListError;
use list::{Entry, LIST, Witness, apply, parse};

/// What the copy does without.
const LEFT_OUT: &str = "bench/";

/// What came of one model of one entry.
enum Outcome {
    Caught,
    NotCaught,
    NotFinished,
}

impl Witness {
    fn checker(self) -> Checker {
        let checker = match self {
            Witness::Loom => LOOM,
            Witness::Adversary => ADVERSARY,
        };
        Checker {
            incremental: true,
            ..checker
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Outcome::Caught => "yes",
            Outcome::NotCaught => "NO",
            Outcome::NotFinished => "NO, did not finish",
        })
    }
}

pub(crate) fn command(workspace: &Workspace, arguments: &[String]) -> Result<(), Error> {
    let mut entries = parse(&workspace.read(LIST)?)?;
    if let Some(name) = models::one_name("weaken", arguments)? {
        let known = entries.iter().map(|entry| entry.name.clone()).collect();
        // `fix-*`: all whose names begin so.
        let is_meant = |entry: &Entry| match name.strip_suffix('*') {
            Some(beginning) => entry.name.starts_with(beginning),
            None => entry.name == name,
        };
        entries.retain(is_meant);
        if entries.is_empty() {
            return Err(Error::Unknown {
                kind: "weakening",
                name: name.to_owned(),
                known,
            });
        }
    }
    if entries.is_empty() {
        return Err(ListError::Empty.into());
    }
    let copy = Scratch::of(workspace)?;
    copy.all_pass_unweakened(&mut entries)?;

    let mut rows = vec![
        ["name", "model", "seconds", "caught"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let mut findings = 0;
    for entry in &entries {
        println!("{} ...", entry.name);
        match copy.try_entry(entry) {
            Ok(outcomes) => {
                for (model, seconds, outcome) in outcomes {
                    println!("  {model}: {outcome}");
                    findings += usize::from(!matches!(outcome, Outcome::Caught));
                    let cells = [
                        entry.name.clone(),
                        model,
                        format!("{seconds:.1}"),
                        outcome.to_string(),
                    ];
                    rows.push(cells.to_vec());
                }
            }
            Err(Error::List(error)) => {
                findings += 1;
                println!("{error}");
                let models = entry.models.join(", ");
                rows.push(vec![
                    entry.name.clone(),
                    models,
                    "-".to_owned(),
                    "NO, bad entry".to_owned(),
                ]);
            }
            Err(error) => return Err(error),
        }
    }
    println!("\n{}", text::columns(&rows));
    if findings == 0 {
        return Ok(());
    }
    Err(Error::Findings {
        check: "weaken",
        count: findings,
        advice: "a weakening that is not caught needs a better model, or is not needed in the code",
    })
}

/// What is wrong with the entries as such: their files exist, and hold what is to be replaced.
pub(crate) fn check_list(workspace: &Workspace) -> Result<Vec<ListError>, Error> {
    let mut wrong = Vec::new();
    for entry in parse(&workspace.read(LIST)?)? {
        let applied = match workspace.read(&entry.file) {
            Ok(text) => apply(&entry, &text).map(drop),
            Err(_) => Err(ListError::NoFile {
                name: entry.name,
                file: entry.file,
            }),
        };
        wrong.extend(applied.err());
    }
    Ok(wrong)
}

/// The copy of the workspace that is weakened.
struct Scratch {
    copy: FolderCopy,
    target: PathBuf,
}

impl Scratch {
    /// Makes the copy, or brings the one of the last time up to date.
    fn of(workspace: &Workspace) -> Result<Self, Error> {
        let dir = workspace.target.join("weaken");
        let mut files = Vec::new();
        for file in workspace.files()? {
            if !file.starts_with(LEFT_OUT) {
                let content = fs::read(workspace.path(&file)).map_err(Error::reading(&file))?;
                files.push((file, content));
            }
        }
        Ok(Scratch {
            copy: FolderCopy::of(dir.join("src"), &files)?,
            target: dir.join("target"),
        })
    }

    /// Every model passes before anything is weakened. Also puts the full names into the entries.
    fn all_pass_unweakened(&self, entries: &mut [Entry]) -> Result<(), Error> {
        let mut failed = 0;
        for by in [Witness::Loom, Witness::Adversary] {
            let mut entries: Vec<&mut Entry> =
                entries.iter_mut().filter(|entry| entry.by == by).collect();
            if !entries.is_empty() {
                failed += self.failures_unweakened(by.checker(), &mut entries)?;
            }
        }
        if failed == 0 {
            return Ok(());
        }
        Err(Error::Findings {
            check: "weaken",
            count: failed,
            advice: "these models fail without any weakening; repair that first",
        })
    }

    fn failures_unweakened(
        &self,
        checker: Checker,
        entries: &mut [&mut Entry],
    ) -> Result<usize, Error> {
        let known = self.build(checker, checker.packages)?;
        let mut needed: Vec<Model> = Vec::new();
        for entry in entries {
            for model in &mut entry.models {
                let Some([one]) = models::select(&known, model)
                    .map(<[Model; 1]>::try_from)
                    .and_then(Result::ok)
                else {
                    return Err(models::unknown(&known, model));
                };
                model.clone_from(&one.name);
                if !entry.packages.contains(&one.package) {
                    entry.packages.push(one.package);
                }
                if needed.iter().all(|needed| needed.name != one.name) {
                    needed.push(one);
                }
            }
        }
        println!("unweakened:");
        let runs = checker.run_all(&needed)?;
        let has_failed = |run: &&models::Run| run.ended.how != How::Passed;
        Ok(runs.iter().filter(has_failed).count())
    }

    fn build(&self, checker: Checker, packages: &[&'static str]) -> Result<Vec<Model>, Error> {
        checker.build_in(&self.copy.root, &self.target.join(checker.test), packages)
    }

    /// Weakens, builds, runs the models of the entry, and puts the file back.
    fn try_entry(&self, entry: &Entry) -> Result<Vec<(String, f64, Outcome)>, Error> {
        let path = self.copy.root.join(&entry.file);
        let original = fs::read_to_string(&path).map_err(|_| ListError::NoFile {
            name: entry.name.clone(),
            file: entry.file.clone(),
        })?;
        self.copy
            .write(&entry.file, apply(entry, &original)?.as_bytes())?;
        let outcomes = self.run_weakened(entry);
        self.copy.write(&entry.file, original.as_bytes())?;
        outcomes
    }

    fn run_weakened(&self, entry: &Entry) -> Result<Vec<(String, f64, Outcome)>, Error> {
        let checker = entry.by.checker();
        // Only what holds the models: a change of the core would have everything above it built.
        let built = self.build(checker, &entry.packages);
        let known = built.map_err(|error| match error {
            Error::Failed { .. } => ListError::DoesNotCompile {
                name: entry.name.clone(),
            }
            .into(),
            other => other,
        })?;
        let mut outcomes = Vec::new();
        for model in known.iter().filter(|m| entry.models.contains(&m.name)) {
            let run = checker.run_one(model)?;
            let outcome = match (run.ended.how, entry.by) {
                (How::Failed(_), _) => Outcome::Caught,
                (How::Passed, _) => Outcome::NotCaught,
                // A model that is too large shows nothing; a program that hangs does.
                (How::TimedOut, Witness::Loom) => Outcome::NotFinished,
                (How::TimedOut, Witness::Adversary) => Outcome::Caught,
            };
            outcomes.push((run.model, run.ended.seconds, outcome));
        }
        Ok(outcomes)
    }
}
