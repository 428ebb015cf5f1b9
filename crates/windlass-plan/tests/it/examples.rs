//! The example graphs load, and there is nothing wrong with them.

use windlass_graph::component::built_in;
use windlass_plan::check::Level;
use windlass_plan::compile::strongly_connected;

use crate::support::{check, examples, load_text};

#[test]
fn examples_load_and_check_clean() {
    for path in examples() {
        let text = std::fs::read_to_string(&path).expect("a readable example");
        let loaded =
            load_text(&text).unwrap_or_else(|errors| panic!("{}:\n{errors}", path.display()));
        let found = check(&loaded.graph, Level::Registry);
        assert!(found.is_empty(), "{}: {found:#?}", path.display());
        let catalog = built_in::descriptors();
        let all_built_in = loaded
            .graph
            .components
            .iter()
            .all(|c| catalog.contains_key(&c.type_name));
        assert!(all_built_in, "{}", path.display());
    }
}

#[test]
fn the_control_loop_is_one_region() {
    let path = examples()
        .into_iter()
        .find(|path| path.ends_with("control_loop.yaml"));
    let text = std::fs::read_to_string(path.expect("the example")).expect("a readable example");
    let graph = load_text(&text).expect("a valid file").graph;
    let largest = strongly_connected(&graph)
        .into_iter()
        .map(|group| group.len())
        .max();
    assert_eq!(largest, Some(2));
}
