//! How large a graph file may be.

/// How large a graph file may be; what is over a limit is refused with one error that names the
/// limit.
///
/// Counts are those after templates and subgraphs have been expanded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of text. The file, with its aliases and templates written out, may not have more nodes
    /// than this either.
    pub input_bytes: usize,
    /// How many lanes.
    pub lanes: usize,
    /// How many components.
    pub components: usize,
    /// How many edges.
    pub edges: usize,
    /// How many composite loops.
    pub loops: usize,
    /// Bytes of an id, with the prefix of its subgraph.
    pub id_bytes: usize,
    /// Levels of maps and lists in a `config`; the map itself is the first.
    pub config_depth: usize,
    /// Bytes of any string.
    pub string_bytes: usize,
    /// Bytes of a string in a `config` whose key is `script`.
    pub script_bytes: usize,
    /// How many YAML aliases.
    pub aliases: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            input_bytes: 1024 * 1024,
            lanes: 256,
            components: 4096,
            edges: 8192,
            loops: 1024,
            id_bytes: 128,
            config_depth: 8,
            string_bytes: 4096,
            script_bytes: 64 * 1024,
            aliases: 32,
        }
    }
}
