//! The names of the applicable tests, `file::test` a line.

use std::collections::BTreeSet;
use std::fs;

use super::results::{Outcome, Results};
use crate::error::Error;
use crate::workspace::Workspace;

const FILE: &str = "facade/tokio-tests.list";
const ADVICE: &str = "`cargo xtask tokio-tests PATH --baseline` writes it";

/// The applicable tests, in order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct List(BTreeSet<String>);

impl List {
    /// The tests that passed.
    pub(super) fn of(results: &Results) -> List {
        let passed = results.files.iter().flat_map(|file| {
            let tests = file.tests.iter();
            let passed = tests.filter(|(_, outcome)| *outcome == Outcome::Passed);
            passed.map(|(test, _)| format!("{}::{test}", file.name))
        });
        List(passed.collect())
    }

    pub(super) fn read(workspace: &Workspace) -> Result<List, Error> {
        workspace.require(FILE, ADVICE)?;
        Ok(List::parse(&workspace.read(FILE)?))
    }

    fn parse(text: &str) -> List {
        let lines = text.lines().filter(|line| !line.is_empty());
        List(lines.map(str::to_owned).collect())
    }

    pub(super) fn write(&self, workspace: &Workspace) -> Result<(), Error> {
        let path = workspace.path(FILE);
        let mut text = String::new();
        for name in &self.0 {
            text.push_str(name);
            text.push('\n');
        }
        fs::write(&path, text).map_err(Error::writing(&path))?;
        println!("{FILE}: {} applicable tests", self.0.len());
        Ok(())
    }

    /// Forgets the tests of other files.
    pub(super) fn retain_files(&mut self, files: &[String]) {
        let file = |name: &String| name.split("::").next().map(str::to_owned);
        self.0
            .retain(|name| file(name).is_some_and(|file| files.contains(&file)));
    }

    pub(super) fn has(&self, file: &str, test: &str) -> bool {
        self.0.contains(&format!("{file}::{test}"))
    }

    /// Returns how many tests of a file are applicable.
    pub(super) fn count_in(&self, file: &str) -> usize {
        let of_file = |name: &&String| name.split_once("::").is_some_and(|(it, _)| it == file);
        self.0.iter().filter(of_file).count()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_counted_by_file() {
        let mut list = List::parse("udp::send\nudp::peek::twice\n\nudp_other::send\n");
        assert_eq!(list.len(), 3);
        assert_eq!(list.count_in("udp"), 2);
        assert!(list.has("udp", "peek::twice") && !list.has("udp", "peek"));
        list.retain_files(&["udp_other".to_owned()]);
        assert_eq!(list, List::parse("udp_other::send"));
    }
}
