//! What the tests of all files came to.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::list::List;
use super::package::{Built, Package};
use super::run;
use crate::error::Error;
use crate::text;
use crate::workspace::Workspace;

/// How a test ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    Passed,
    /// It failed; its panic message or its end.
    Failed(String),
}

/// The tests of one file.
#[derive(Debug)]
pub(super) struct FileResults {
    pub(super) name: String,
    /// The first error of a file that does not compile.
    error: Option<String>,
    pub(super) tests: Vec<(String, Outcome)>,
}

/// The tests of all files.
#[derive(Debug)]
pub(super) struct Results {
    pub(super) files: Vec<FileResults>,
}

impl Results {
    /// Runs the tests.
    pub(super) fn of(package: &Package, built: &BTreeMap<String, Built>) -> Result<Results, Error> {
        let mut tests: BTreeMap<String, Vec<(String, Outcome)>> = BTreeMap::new();
        for (file, test, outcome) in run::all(package, built)? {
            tests.entry(file).or_default().push((test, outcome));
        }
        let files = built.iter().map(|(name, built)| FileResults {
            name: name.clone(),
            error: match built {
                Built::Executable(_) => None,
                Built::Error(error) => Some(error.clone()),
            },
            tests: tests.remove(name).unwrap_or_default(),
        });
        Ok(Results {
            files: files.collect(),
        })
    }

    /// Prints a line per file with applicable tests, and the total.
    pub(super) fn report(&self, list: &List) {
        let mut rows = Vec::new();
        let (mut passed, mut broken) = (0, 0);
        for file in &self.files {
            let applicable = list.count_in(&file.name);
            if applicable == 0 {
                continue;
            }
            let good = file.passed(list);
            passed += good;
            let mut row = vec![
                file.name.clone(),
                format!("{good} of {applicable} passed"),
                format!("{} failed", applicable - good),
            ];
            if let Some(error) = &file.error {
                broken += 1;
                row.push(format!("does not compile: {error}"));
            }
            rows.push(row);
        }
        print!("{}", text::columns(&rows));
        let percent = 100.0 * passed as f64 / list.len().max(1) as f64;
        println!(
            "\n{passed} of {} applicable tests passed ({percent:.1} %), {broken} of {} files with \
             applicable tests do not compile",
            list.len(),
            rows.len()
        );
    }

    /// Writes every outcome as JSON and returns where.
    pub(super) fn write(&self, workspace: &Workspace, list: &List) -> Result<PathBuf, Error> {
        let files: Vec<Value> = self.files.iter().map(|file| file.json(list)).collect();
        let passed: usize = self.files.iter().map(|file| file.passed(list)).sum();
        let all = json!({ "applicable": list.len(), "passed": passed, "files": files });
        let path = workspace.target.join("tokio-tests/results.json");
        fs::write(&path, format!("{all:#}\n")).map_err(Error::writing(&path))?;
        Ok(path)
    }
}

impl FileResults {
    /// Returns how many applicable tests passed.
    fn passed(&self, list: &List) -> usize {
        let tests = self.tests.iter();
        tests
            .filter(|(test, outcome)| *outcome == Outcome::Passed && list.has(&self.name, test))
            .count()
    }

    fn json(&self, list: &List) -> Value {
        let tests: Vec<Value> = self
            .tests
            .iter()
            .map(|(test, outcome)| {
                let failure = match outcome {
                    Outcome::Passed => None,
                    Outcome::Failed(reason) => Some(reason),
                };
                let is_applicable = list.has(&self.name, test);
                json!({ "name": test, "applicable": is_applicable, "failure": failure })
            })
            .collect();
        json!({
            "name": self.name,
            "applicable": list.count_in(&self.name),
            "error": self.error,
            "tests": tests,
        })
    }
}
