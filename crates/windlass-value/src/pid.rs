//! The names of processes.
//!
//! A PID is three numbers: the place (node and host, in a table of this program), the incarnation
//! of the host, and a count. So it is copied like a number, and a PID from before a restart names
//! no process.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use windlass_core::sync::Mutex;

/// The name of a process: `{node@host|unique}`, or `{host|unique}` on a host without a node name.
///
/// ```
/// use windlass_value::Pid;
///
/// let pid: Pid = "{berlin@orders|1f3a.2a}".parse()?;
/// assert_eq!(pid.to_string(), "{berlin@orders|1f3a.2a}");
/// assert_eq!(pid.node().as_deref(), Some("berlin"));
/// # Ok::<(), windlass_value::ParsePidError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pid {
    node: NodeId,
    incarnation: u64,
    number: u64,
}

/// A node and a host, as a number in this program's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u16);

/// Why a text is no PID.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParsePidError {
    /// It is not of the form `{node@host|unique}`.
    Form(String),
    /// A node or host has no name, or one with a character that PIDs use themselves.
    Name(String),
    /// `unique` is not what a PID prints.
    Unique(String),
    /// This program knows 65,535 places already, and remembers them all.
    TooManyPlaces,
}

impl fmt::Display for ParsePidError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParsePidError::Form(text) => write!(
                f,
                "{text:?} is no PID: write {{node@host|unique}} or {{host|unique}}"
            ),
            ParsePidError::Name(name) => write!(
                f,
                "{name:?} cannot name a node or host: it needs at least one character and none of {FORBIDDEN:?}, \
                 white space or control characters"
            ),
            ParsePidError::Unique(unique) => write!(
                f,
                "{unique:?} is not the unique part of a PID: it has two hexadecimal numbers with a point between them"
            ),
            ParsePidError::TooManyPlaces => f.write_str(
                "this program has met 65,535 nodes and hosts and remembers no more: use fewer names",
            ),
        }
    }
}

impl Error for ParsePidError {}

const FORBIDDEN: &str = "{}|@";

struct Table {
    numbers: BTreeMap<(Option<Arc<str>>, Arc<str>), u16>,
    places: Vec<(Option<Arc<str>>, Arc<str>)>,
}

static TABLE: Mutex<Table> = Mutex::new(Table {
    numbers: BTreeMap::new(),
    places: Vec::new(),
});

impl NodeId {
    /// Returns the number of a node and a host; enters them in the table if they are new.
    pub fn of(node: Option<&str>, host: &str) -> Result<NodeId, ParsePidError> {
        for name in node.into_iter().chain([host]) {
            let bad = |c: char| FORBIDDEN.contains(c) || c.is_whitespace() || c.is_control();
            if name.is_empty() || name.contains(bad) {
                return Err(ParsePidError::Name(name.to_owned()));
            }
        }
        let names = (node.map(Arc::from), Arc::from(host));
        let mut table = TABLE.lock();
        if let Some(number) = table.numbers.get(&names) {
            return Ok(NodeId(*number));
        }
        let number = u16::try_from(table.places.len())
            .ok()
            .filter(|number| *number < u16::MAX)
            .ok_or(ParsePidError::TooManyPlaces)?;
        table.places.push(names.clone());
        table.numbers.insert(names, number);
        Ok(NodeId(number))
    }

    fn names(self) -> (Option<Arc<str>>, Arc<str>) {
        // Places come from the table, and nothing leaves it.
        TABLE.lock().places[usize::from(self.0)].clone()
    }
}

impl Pid {
    /// Makes the PID of a process.
    pub fn new(node: NodeId, incarnation: u64, number: u64) -> Pid {
        Pid {
            node,
            incarnation,
            number,
        }
    }

    /// Returns the node and host of the process.
    pub fn node_id(self) -> NodeId {
        self.node
    }

    /// Returns the incarnation of the host.
    pub fn incarnation(self) -> u64 {
        self.incarnation
    }

    /// Returns the count of the process on its host.
    pub fn number(self) -> u64 {
        self.number
    }

    /// As [`number`](Pid::number), by reference.
    pub fn number_ref(&self) -> &u64 {
        &self.number
    }

    /// The name of its node; none on a host that has none.
    pub fn node(self) -> Option<Arc<str>> {
        self.node.names().0
    }

    /// The name of its host.
    pub fn host(self) -> Arc<str> {
        self.node.names().1
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (node, host) = self.node.names();
        let (at, node) = match &node {
            Some(node) => ("@", &**node),
            None => ("", ""),
        };
        let (incarnation, number) = (self.incarnation, self.number);
        write!(f, "{{{node}{at}{host}|{incarnation:x}.{number:x}}}")
    }
}

impl fmt::Debug for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Pid {
    type Err = ParsePidError;

    fn from_str(text: &str) -> Result<Pid, ParsePidError> {
        let form = || ParsePidError::Form(text.to_owned());
        let inner = text
            .strip_prefix('{')
            .and_then(|text| text.strip_suffix('}'));
        let (place, unique) = inner
            .and_then(|inner| inner.split_once('|'))
            .ok_or_else(form)?;
        let (node, host) = match place.split_once('@') {
            Some((node, host)) => (Some(node), host),
            None => (None, place),
        };
        let bad = || ParsePidError::Unique(unique.to_owned());
        let (incarnation, number) = unique.split_once('.').ok_or_else(bad)?;
        let (incarnation, number) = (
            hexadecimal(incarnation).ok_or_else(bad)?,
            hexadecimal(number).ok_or_else(bad)?,
        );
        // Last: what is refused is not remembered.
        Ok(Pid::new(NodeId::of(node, host)?, incarnation, number))
    }
}

/// Exactly what `{:x}` prints.
fn hexadecimal(text: &str) -> Option<u64> {
    let number = u64::from_str_radix(text, 16).ok()?;
    (format!("{number:x}") == text).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printing_and_parsing_are_inverse() {
        for text in [
            "{host|0.0}",
            "{node@host|ffffffffffffffff.1}",
            "{a-b.c@d_e|1.ff}",
        ] {
            let pid: Pid = text.parse().expect(text);
            assert_eq!(pid.to_string(), text);
            assert_eq!(pid.to_string().parse(), Ok(pid));
        }
        let place = NodeId::of(Some("n"), "h").expect("good names");
        for number in [0, 1, 77, u64::MAX] {
            let pid = Pid::new(place, number ^ 5, number);
            assert_eq!(pid.to_string().parse(), Ok(pid));
        }
    }

    #[test]
    fn what_no_pid_prints_is_refused_with_the_reason() {
        let parse = |text: &str| text.parse::<Pid>().expect_err(text);
        for form in ["", "{}", "host|1.1", "{host|1.1", "{host1.1}"] {
            assert!(matches!(parse(form), ParsePidError::Form(_)), "{form}");
        }
        for name in [
            "{|1.1}",
            "{@host|1.1}",
            "{node@|1.1}",
            "{a@b@c|1.1}",
            "{a b|1.1}",
        ] {
            assert!(matches!(parse(name), ParsePidError::Name(_)), "{name}");
        }
        for unique in [
            "{h|1}",
            "{h|01.1}",
            "{h|1.A}",
            "{h|1.+1}",
            "{h|1.|}",
            "{h|1.1.1}",
            "{h|.}",
        ] {
            assert!(
                matches!(parse(unique), ParsePidError::Unique(_)),
                "{unique}"
            );
        }
    }
}
