//! Folders to begin with: everything in them works as it is.

use std::path::{Path, PathBuf};

use crate::support::{Ended, command, windlass};

/// An empty place of its own for a test.
struct TempFolder(PathBuf);

impl TempFolder {
    fn new(test: &str) -> TempFolder {
        let name = format!("windlass-cli-new-{test}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        TempFolder(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a readable path")
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // What is left over is in the folder for such things.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A command in a folder.
fn within(folder: &Path, arguments: &[&str]) -> Ended {
    let mut command = command(arguments);
    let output = command.current_dir(folder).output();
    output.expect("it starts").into()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What the graph writes.
const MEANS: &str = r#"{"celsius":19.9,"until_s":20}
{"celsius":21.4,"until_s":60}
{"celsius":20.1,"until_s":100}
"#;

#[test]
fn a_new_graph_is_in_order_and_does_what_its_readme_says() {
    let place = TempFolder::new("whole");
    let made = within(&place.0, &["new", "graph", "first"]).fine();
    let folder = place.0.join("first");
    for file in ["graph.yaml", "data/readings.csv", "README.md", ".gitignore"] {
        assert!(folder.join(file).is_file(), "{file}");
        assert!(
            made.out.contains(&format!("wrote: first/{file} (")),
            "{}",
            made.out
        );
    }
    assert!(made.out.contains("\n  cd first\n"), "{}", made.out);

    let valid = within(
        &folder,
        &["graph", "validate", "graph.yaml", "--strict-diagnostics"],
    );
    let valid = valid.fine();
    for kind in ["errors", "warnings", "advisories", "notes"] {
        assert_eq!(valid.line(kind), "0", "{}{}", valid.out, valid.err);
    }
    let lint = within(&folder, &["graph", "lint", "graph.yaml"]).fine();
    assert_eq!(lint.line("findings"), "0", "{}", lint.out);

    // The commands of the page, in its order.
    let page = read(&folder.join("README.md"));
    let commands: Vec<Vec<&str>> = page
        .lines()
        .filter_map(|line| line.strip_prefix("windlass "))
        .map(|line| line.split('#').next().unwrap_or_default())
        .map(|line| line.split_whitespace().collect())
        .collect();
    let names: Vec<&str> = commands.iter().map(|words| words[1]).collect();
    assert_eq!(names, ["validate", "explain", "run", "run", "replay"]);
    assert!(page.contains("\ncd first\n"), "{page}");
    let ended: Vec<Ended> = commands
        .iter()
        .map(|words| within(&folder, words).fine())
        .collect();
    for run in &ended[2..4] {
        assert_eq!(run.line("graph"), "first");
        assert_eq!(run.line("stop_reason"), "idle");
        assert_eq!(run.err.lines().count(), 3, "{}", run.err);
        assert!(run.err.contains("mean "), "{}", run.err);
    }
    assert_eq!(read(&folder.join("means.jsonl")), MEANS);
    assert_eq!(ended[4].line("same"), "true");

    let changed = read(&folder.join("graph.yaml")).replace("size: 3", "size: 2");
    std::fs::write(folder.join("graph.yaml"), changed).expect("written");
    let arguments = [
        "graph",
        "replay",
        "recording",
        "--graph",
        "graph.yaml",
        "--diff",
    ];
    let differs = within(&folder, &arguments).refused();
    assert!(
        differs.out.contains("component mean"),
        "the page says so: {}",
        differs.out
    );
    for ignored in read(&folder.join(".gitignore")).lines() {
        let path = folder.join(ignored.trim_matches('/'));
        assert!(path.exists(), "{ignored} is what a run writes");
    }
}

#[test]
fn nothing_is_ever_overwritten() {
    let place = TempFolder::new("twice");
    let dir = place.0.join("deep/inside");
    let dir = dir.to_str().expect("a readable path");
    let arguments = ["new", "graph", "again", "--dir", dir];
    windlass(&arguments).fine();
    let graph = Path::new(dir).join("again/graph.yaml");
    std::fs::write(&graph, "mine").expect("written");
    let refused = windlass(&arguments).refused();
    assert!(
        refused.err.contains("is there and not empty"),
        "{}",
        refused.err
    );
    assert!(refused.err.contains("\nhelp: "), "{}", refused.err);
    assert_eq!(refused.out, "");
    assert_eq!(read(&graph), "mine");

    let file = place.0.join("file");
    std::fs::write(&file, "mine").expect("written");
    let refused = windlass(&["new", "graph", "file", "--dir", place.path()]).refused();
    assert!(
        refused.err.contains("is there and no folder"),
        "{}",
        refused.err
    );
    assert_eq!(read(&file), "mine");

    std::fs::create_dir(place.0.join("empty")).expect("a folder");
    windlass(&["new", "graph", "empty", "--dir", place.path()]).fine();
}

#[test]
fn names_that_are_none_are_refused_with_advice() {
    let place = TempFolder::new("names");
    let names = [
        ("", "it is empty"),
        ("a/b", "path separator"),
        ("/tmp", "path separator"),
        ("-x", "begins with a dash"),
        (".", "nothing but dots"),
        ("..", "nothing but dots"),
        ("a b", "' ' in it"),
    ];
    for (name, reason) in names {
        let refused = windlass(&["new", "graph", "--dir", place.path(), "--", name]).refused();
        assert!(refused.err.contains(reason), "{name}: {}", refused.err);
        assert!(refused.err.contains("\nhelp: "), "{name}: {}", refused.err);
    }
    windlass(&["new", "graph", "-x"]).refused();
    windlass(&["new", "graph"]).refused();
    let left = std::fs::read_dir(&place.0).expect("it is there").count();
    assert_eq!(left, 0, "nothing was written");

    // Names that YAML takes for something else than a text.
    for name in ["true", "12", "null"] {
        windlass(&["new", "graph", name, "--dir", place.path()]).fine();
        let folder = place.0.join(name);
        let run = within(&folder, &["graph", "run", "graph.yaml"]).fine();
        assert_eq!(run.line("graph"), name);
    }
}
