//! Which events get out.

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

/// Whether a text fits a pattern, in which `*` stands for anything.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        if let Some(before) = last.replace(part) {
            match rest.find(before) {
                Some(at) => rest = &rest[at + before.len()..],
                None => return false,
            }
        }
    }
    match last {
        // Without a star it is the text itself.
        None => rest.is_empty(),
        Some(last) => rest.ends_with(last),
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns_fit_what_they_say() {
        for (pattern, text, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("*", "anything", true),
            ("a*", "ab", true),
            ("a*", "b", false),
            ("*b", "ab", true),
            ("*b", "ba", false),
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "a", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "acb", false),
            ("*.in*", "sub.input", true),
            ("ab*ab", "ab", false),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }
}
