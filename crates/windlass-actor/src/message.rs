//! Messages, and how they are chosen.

use std::fmt;
use std::sync::Arc;

use windlass_value::{Payload, Pid};

/// What processes send each other when they do not know each other's types.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who sent it, if it was a process that said so.
    pub from: Option<Pid>,
    /// What it is about.
    pub topic: Topic,
    /// What it says.
    pub payload: Payload,
}

impl Message {
    /// Makes a message without a sender.
    pub fn new(topic: impl Into<Topic>, payload: impl Into<Payload>) -> Message {
        Message {
            from: None,
            topic: topic.into(),
            payload: payload.into(),
        }
    }

    /// The same, from this process.
    pub fn from(mut self, sender: Pid) -> Message {
        self.from = Some(sender);
        self
    }
}

/// What a message is about: any text.
#[derive(Clone)]
pub struct Topic(Text);

#[derive(Clone)]
enum Text {
    Static(&'static str),
    Shared(Arc<str>),
}

impl Topic {
    /// Returns the topic as text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::Static(text) => text,
            Text::Shared(text) => text,
        }
    }
}

impl From<&'static str> for Topic {
    fn from(text: &'static str) -> Topic {
        Topic(Text::Static(text))
    }
}

impl From<String> for Topic {
    fn from(text: String) -> Topic {
        Topic(Text::Shared(text.into()))
    }
}

impl From<Arc<str>> for Topic {
    fn from(text: Arc<str>) -> Topic {
        Topic(Text::Shared(text))
    }
}

impl PartialEq for Topic {
    fn eq(&self, other: &Topic) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Topic {}

impl PartialEq<str> for Topic {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Topic {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// A set of topics: one topic, or all that match a glob.
///
/// In a glob `*` stands for any characters, also none, and `?` for one.
///
/// ```
/// use windlass_actor::Pattern;
///
/// assert!(Pattern::exact("a*").matches("a*") && !Pattern::exact("a*").matches("ab"));
/// assert!(Pattern::glob("order.*.paid").matches("order.77.paid"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: Arc<str>,
    is_glob: bool,
}

impl Pattern {
    /// Matches this topic only.
    pub fn exact(topic: impl Into<Arc<str>>) -> Pattern {
        Pattern {
            text: topic.into(),
            is_glob: false,
        }
    }

    /// Topics that look like this.
    pub fn glob(glob: impl Into<Arc<str>>) -> Pattern {
        Pattern {
            text: glob.into(),
            is_glob: true,
        }
    }

    /// Whether a topic is one of them.
    pub fn matches(&self, topic: &str) -> bool {
        if self.is_glob {
            glob_matches(self.text.as_bytes(), topic)
        } else {
            *self.text == *topic
        }
    }
}

/// Two fingers; the last star takes one character more whenever the rest does not fit. Time at most
/// the product of the lengths, no recursion.
fn glob_matches(glob: &[u8], topic: &str) -> bool {
    let text = topic.as_bytes();
    let next_char = |at: usize| at + topic[at..].chars().next().map_or(1, char::len_utf8);
    let (mut g, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match glob.get(g) {
            Some(b'*') => {
                star = Some((g + 1, t));
                g += 1;
            }
            Some(b'?') => {
                g += 1;
                t = next_char(t);
            }
            Some(byte) if *byte == text[t] => {
                g += 1;
                t += 1;
            }
            _ => match star {
                Some((after, from)) => {
                    let from = next_char(from);
                    star = Some((after, from));
                    (g, t) = (after, from);
                }
                None => return false,
            },
        }
    }
    glob[g..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        let yes = [
            ("*", ""),
            ("*", "anything"),
            ("a*c", "abbbc"),
            ("a*c", "ac"),
            ("*.log", "x.log.log"),
            ("??", "äö"),
            ("a?*", "aé"),
            ("*ö*", "schön"),
        ];
        for (glob, topic) in yes {
            assert!(Pattern::glob(glob).matches(topic), "{glob} {topic}");
        }
        for (glob, topic) in [
            ("", "a"),
            ("a", ""),
            ("?", ""),
            ("a*c", "abd"),
            ("??", "ä"),
            ("*.log", "x.logs"),
        ] {
            assert!(!Pattern::glob(glob).matches(topic), "{glob} {topic}");
        }
    }
}
