//! What the tests share.
#![allow(
    dead_code,
    reason = "the tests of two crates share it, and each uses a part"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use windlass_graph::component::built_in;
use windlass_plan::Limits;
use windlass_plan::catalog::{ConfigField, ConfigKind, Descriptor, Port};
use windlass_plan::check::{HostInfo, Level, check_for};
use windlass_plan::diagnostic::Diagnostic;
use windlass_plan::expression::Names;
use windlass_plan::model::Graph;
use windlass_plan::{LoadErrors, LoadOptions, Loaded, load};

/// The smallest file.
pub(crate) const SMALLEST: &str = "\
schema_version: 1
graph: {name: smallest, kind: internal_test}
lanes: {main: {type: event_loop}}
components: []
edges: []
";

/// The built-in types and a few with stricter ports.
pub(crate) fn catalog() -> BTreeMap<String, Descriptor> {
    let mut catalog = built_in::descriptors();
    let text = Port::new("in").of("text").schema("v1").required();
    let configured = Descriptor::new()
        .field(ConfigField::new("gain", ConfigKind::Number).within(0.0, 10.0))
        .field(ConfigField::new("mode", ConfigKind::String).one_of(["slow", "fast"]))
        .field(ConfigField::new("name", ConfigKind::String).required());
    catalog.insert("test.Text".to_owned(), Descriptor::new().input(text));
    catalog.insert(
        "test.Source".to_owned(),
        Descriptor::new().output(Port::new("out").of("text").schema("v2")),
    );
    catalog.insert("test.Configured".to_owned(), configured);
    catalog.insert(
        "test.File".to_owned(),
        Descriptor::new().output("out").finite_source(),
    );
    let condition = ConfigField::new("expr", ConfigKind::Expression(Names::Message));
    catalog.insert(
        "test.Condition".to_owned(),
        Descriptor::new().field(condition.required()),
    );
    catalog.insert("test.Guest".to_owned(), Descriptor::new().preemptible());
    catalog
}

pub(crate) fn load_text(text: &str) -> Result<Loaded, LoadErrors> {
    load(text, &LoadOptions::default())
}

pub(crate) fn load_with(text: &str, limits: Limits) -> Result<Loaded, LoadErrors> {
    load(text, &LoadOptions { limits })
}

/// The messages of a file that cannot be loaded.
pub(crate) fn messages(text: &str) -> Vec<String> {
    messages_of(load_text(text))
}

pub(crate) fn messages_of(loaded: Result<Loaded, LoadErrors>) -> Vec<String> {
    let errors = loaded.expect_err("this file should not load");
    let messages = errors.problems.into_iter();
    messages.map(|problem| problem.diagnostic.message).collect()
}

/// Checks for a machine of four CPUs.
pub(crate) fn check(graph: &Graph, level: Level) -> Vec<Diagnostic> {
    check_for(graph, &catalog(), level, &HostInfo { cpus: 4 })
}

pub(crate) fn fixtures() -> Vec<PathBuf> {
    yaml_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/broken"))
}

/// The examples whose types are all built in; the others are tested where their types are.
pub(crate) fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/graphs");
    let mut files = yaml_files(&folder);
    files.retain(|path| {
        let text = std::fs::read_to_string(path).expect("a readable example");
        let mut names = text.split("type: windlass.").skip(1);
        let built_in = ["boundary.", "transform.", "example."];
        names.all(|name| built_in.iter().any(|folder| name.starts_with(folder)))
    });
    files
}

fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{}", folder.display());
    files
}

/// The text of an example.
pub(crate) fn example(name: &str) -> String {
    let wanted = format!("{name}.yaml");
    let examples = examples();
    let path = examples.iter().find(|path| path.ends_with(&wanted));
    let path = path.unwrap_or_else(|| panic!("no example {name}"));
    std::fs::read_to_string(path).unwrap()
}
