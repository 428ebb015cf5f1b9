//! Which events get out.

use windlass_plan::expression::fits;

use super::event::Observed;

/// Which events get out. Assertions see all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Patterns with `*`: one has to fit the event's name, component, edge or lane. None: all do.
    pub include: Vec<String>,
    /// Patterns with `*`: none may fit.
    pub exclude: Vec<String>,
    /// One event in so many; 0 and 1: all.
    pub sample: u64,
}

impl Filter {
    pub(crate) fn lets_through(&self, event: &Observed) -> bool {
        let names = [
            &event.name,
            &event.component_id,
            &event.channel_id,
            &event.lane,
        ];
        let fits = |pattern: &String| {
            let mut names = names.iter().filter(|name| !name.is_empty());
            names.any(|name| fits(pattern, name))
        };
        (self.include.is_empty() || self.include.iter().any(fits)) && !self.exclude.iter().any(fits)
    }
}
