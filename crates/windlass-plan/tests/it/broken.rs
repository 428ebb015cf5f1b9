//! Each fixture says which codes it has, and on which lines; each code has a fixture.

use std::collections::HashSet;
use std::path::Path;

use windlass_plan::check::Level;
use windlass_plan::diagnostic::{Code, Diagnostic};

use crate::support::{check, fixtures, load_text};

#[test]
fn fixtures_have_the_codes_and_lines_that_they_say() {
    let mut wrong = String::new();
    for path in fixtures() {
        let text = std::fs::read_to_string(&path).expect("a readable fixture");
        let mut expected = expected(&text);
        let mut found = found(&text);
        expected.sort();
        found.sort();
        if expected != found {
            let name = path.file_name().expect("a name").display();
            wrong.push_str(&format!(
                "{name}:\n  expected {expected:?}\n  found    {found:?}\n"
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn fixtures_are_named_after_a_code_that_they_have() {
    for path in fixtures() {
        let text = std::fs::read_to_string(&path).expect("a readable fixture");
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let has_it = expected(&text)
            .iter()
            .any(|line| name.starts_with(line.split('@').next().expect("a code")));
        assert!(has_it, "{name}");
    }
}

#[test]
fn every_live_code_has_a_fixture() {
    let mut seen = HashSet::new();
    for path in fixtures() {
        let text = std::fs::read_to_string(&path).expect("a readable fixture");
        for line in expected(&text) {
            seen.insert(line.split('@').next().expect("a code").to_owned());
        }
    }
    let live = Code::ALL
        .iter()
        .filter(|code| **code != Code::DiagnosticNote);
    let missing: Vec<&str> = live
        .map(|code| code.name())
        .filter(|name| !seen.contains(*name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_finding_says_what_to_do() {
    for path in fixtures() {
        let text = std::fs::read_to_string(&path).expect("a readable fixture");
        for finding in findings(&text) {
            let at = Path::new(path.file_name().expect("a name"))
                .display()
                .to_string();
            assert!(!finding.suggested_fix.is_empty(), "{at}: {finding}");
            assert!(!finding.graph_path.is_empty(), "{at}: {finding}");
            assert!(!finding.message.ends_with('.'), "{at}: {finding}");
        }
    }
}

/// `code@line`, as the first line of a fixture lists them.
fn expected(text: &str) -> Vec<String> {
    let first = text.lines().next().unwrap_or_default();
    let list = first
        .strip_prefix("# expect: ")
        .expect("a first line `# expect: ...`");
    list.split(", ").map(str::to_owned).collect()
}

fn found(text: &str) -> Vec<String> {
    match load_text(text) {
        Ok(loaded) => check(&loaded.graph, Level::Registry)
            .iter()
            .map(|finding| {
                let span = loaded
                    .sources
                    .span_of(&finding.graph_path)
                    .expect("a place");
                let (line, _) = loaded.sources.line_col(span.start);
                format!("{}@{line}", finding.code.name())
            })
            .collect(),
        Err(errors) => errors
            .problems
            .iter()
            .map(|problem| {
                let (line, _) = errors
                    .sources
                    .line_col(problem.span.expect("a place").start);
                format!("{}@{line}", problem.diagnostic.code.name())
            })
            .collect(),
    }
}

fn findings(text: &str) -> Vec<Diagnostic> {
    match load_text(text) {
        Ok(loaded) => check(&loaded.graph, Level::Registry),
        Err(errors) => errors
            .problems
            .into_iter()
            .map(|problem| problem.diagnostic)
            .collect(),
    }
}
