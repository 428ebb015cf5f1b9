//! Which findings about the meaning of a graph only follow from what could not be read of its file.
//!
//! A file that is wrong in form is checked for its meaning, too, so that all mistakes are reported
//! at once. What could not be read has a default in the graph, and rules that look at a default may
//! find something that is not there. Each rule would have to know about that; instead all of them
//! run, and this throws away what depends on a part that could not be read. In doubt a finding is
//! thrown away: it comes back when the file was corrected, if it is true.

use std::collections::BTreeSet;

use crate::diagnostic::{Code, Diagnostic};

/// The paths of what could not be read, such as `edges[3].to`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unread(BTreeSet<String>);

impl Unread {
    pub(crate) fn new(paths: impl IntoIterator<Item = String>) -> Unread {
        Unread(paths.into_iter().collect())
    }

    /// Whether something at this path or below could not be read.
    fn within(&self, path: &str) -> bool {
        let from = self
            .0
            .range::<str, _>((std::ops::Bound::Included(path), std::ops::Bound::Unbounded));
        from.take_while(|unread| unread.starts_with(path))
            .any(|unread| is_at_or_below(unread, path))
    }

    /// Whether this path, or something that it is a part of, could not be read.
    fn around(&self, path: &str) -> bool {
        let ends = path.char_indices().filter(|(_, c)| matches!(c, '.' | '['));
        let mut parts = ends.map(|(end, _)| &path[..end]);
        self.0.contains(path) || parts.any(|part| self.0.contains(part))
    }

    /// Whether one of these fields of an item of a list could not be read, or all of an item, or
    /// the list.
    fn in_any(&self, list: &str, fields: &[&str]) -> bool {
        self.0.iter().any(|unread| {
            let Some(rest) = unread.strip_prefix(list) else {
                return false;
            };
            match rest.split_once(']') {
                None => rest.is_empty(),
                Some((_, "")) => true,
                Some((_, rest)) => fields.iter().any(|field| {
                    rest.strip_prefix('.')
                        .is_some_and(|rest| is_at_or_below(rest, field))
                }),
            }
        })
    }

    /// Whether a finding may be there only because something could not be read.
    pub(crate) fn explains(&self, finding: &Diagnostic) -> bool {
        let path = finding.graph_path.as_str();
        if self.around(path) {
            return true;
        }
        let (item, field) = item_and_field(path);
        let below = |field: &str| self.within(&format!("{item}.{field}"));
        if item.starts_with("lanes.") {
            let decides = ["type", "hz", "period_ms", "wall_clock_enabled", "rt_policy"];
            let stands_alone = ["max_threads", "cpu_affinity", "nice_priority", "priority"];
            return !stands_alone.iter().any(|alone| field.starts_with(alone))
                && decides.iter().any(|field| below(field));
        }
        // The fields of a policy are looked at together.
        let together = match field.split(['.', '[']).next() {
            Some("policy") => below("policy") || below("kind"),
            Some("trigger_policy" | "event_sources") => {
                below("trigger_policy") || below("event_sources")
            }
            Some("loop_policy") => below("loop_policy"),
            Some("execution") if field.ends_with("timeout_ms") => below("execution"),
            Some("boundary") => below("config"),
            _ => false,
        };
        together || self.explains_code(finding, item)
    }

    /// The same, for findings that depend on other items than the one they are about.
    fn explains_code(&self, finding: &Diagnostic, item: &str) -> bool {
        let has_ids = || !self.in_any("components", &["id"]);
        let has_edges = || !self.in_any("edges", &["from", "to", "kind"]);
        let has_ends = || !self.in_any("edges", &["to"]);
        let has_triggers = || !self.in_any("components", &["trigger_policy", "event_sources"]);
        match finding.code {
            Code::UnknownComponent => !finding.graph_path.ends_with(".type") && !has_ids(),
            Code::GraphValidationError if finding.graph_path.ends_with(".execution.lane") => {
                self.0.iter().any(|unread| is_lane(unread))
            }
            Code::GraphValidationError if finding.graph_path == "graph.kind" => {
                self.in_any("components", &["id", "type", "boundary"])
            }
            Code::DiagnosticNote => self.in_any("components", &["id", "type", "boundary"]),
            Code::GraphValidationError => {
                // A type looks at the fields of its configuration together.
                finding.graph_path.starts_with(&format!("{item}.config"))
                    && self.within(&format!("{item}.config"))
            }
            Code::MissingRequiredInput
            | Code::OptionalInputUnconnected
            | Code::TriggerMissingInput => !has_ends() || !has_ids(),
            Code::UnknownPort => self.in_any("components", &["config"]),
            Code::TriggerNeverReady => !has_edges() || !has_ids() || !has_triggers(),
            Code::DecorativeCompositeLoop | Code::PartialCompositeLoop => {
                !has_edges() || !has_ids()
            }
            Code::ImmediateCycleWithoutLoop => {
                self.in_any("composite_loops", &["id", "components", "loop_policy"])
            }
            Code::BackpressureRisk => self.0.iter().any(|unread| unread.starts_with("lanes.")),
            _ => false,
        }
    }
}

/// Whether a path is all of `lanes`, or a whole lane: then there may be lanes that are not known.
fn is_lane(path: &str) -> bool {
    let rest = path.strip_prefix("lanes");
    rest.is_some_and(|rest| rest.matches('.').count() <= 1)
}

fn is_at_or_below(path: &str, around: &str) -> bool {
    let rest = path.strip_prefix(around);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// `edges[3]` and `policy.mode` of `edges[3].policy.mode`; `lanes.main` and `hz` of
/// `lanes.main.hz`.
fn item_and_field(path: &str) -> (&str, &str) {
    let end = match path.strip_prefix("lanes.") {
        Some(rest) => rest.find('.').map(|at| at + "lanes.".len()),
        None => path.find("].").map(|at| at + 1),
    };
    match end {
        Some(end) => (&path[..end], &path[end + 1..]),
        None => (path, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explains(unread: &[&str], code: Code, path: &str) -> bool {
        let unread = Unread::new(unread.iter().map(|path| (*path).to_owned()));
        unread.explains(&Diagnostic::new(code, path, ""))
    }

    #[test]
    fn a_finding_at_or_below_what_was_not_read_follows_from_it() {
        let code = Code::InvalidChannelPolicy;
        assert!(explains(
            &["edges[1].policy"],
            code,
            "edges[1].policy.capacity"
        ));
        assert!(explains(&["edges[1]"], code, "edges[1].policy.capacity"));
        assert!(explains(
            &["edges[1].policy.mode"],
            code,
            "edges[1].policy.overflow"
        ));
        assert!(!explains(
            &["edges[11].policy"],
            code,
            "edges[1].policy.capacity"
        ));
        assert!(!explains(
            &["edges[1].colour"],
            code,
            "edges[1].policy.capacity"
        ));
    }

    #[test]
    fn a_finding_about_another_item_follows_if_it_depends_on_that() {
        let missing = Code::TriggerMissingInput;
        let input = "components[2].trigger_policy.inputs[0]";
        assert!(explains(&["edges[0].to"], missing, input));
        assert!(explains(&["edges"], missing, input));
        assert!(!explains(&["edges[0].from"], missing, input));
        assert!(!explains(
            &["components[2].execution.priority"],
            missing,
            input
        ));
        let lane = Code::GraphValidationError;
        assert!(explains(&["lanes.x"], lane, "components[0].execution.lane"));
        assert!(!explains(
            &["lanes.x.type"],
            lane,
            "components[0].execution.lane"
        ));
        assert!(!explains(&["lanes.x.type"], lane, "lanes.x.max_threads"));
        assert!(explains(
            &["lanes.x.type"],
            lane,
            "lanes.x.wall_clock_enabled"
        ));
    }
}
