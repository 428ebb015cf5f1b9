//! The list of weakenings: reading it, and applying an entry to a text.

use std::fmt;

use crate::error::Error;

/// Where the list is.
pub(super) const LIST: &str = "xtask/weaken.list";

/// One weakening of the list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) file: String,
    pub(super) find: String,
    /// Which occurrence of `find` is meant; without it there must be one only.
    pub(super) occurrence: Option<usize>,
    pub(super) with: String,
    /// Who must notice.
    pub(super) by: Witness,
    /// The models or tests that must fail.
    pub(super) models: Vec<String>,
    /// The packages that hold them, once they are known.
    pub(super) packages: Vec<&'static str>,
}

/// Who must notice that a line was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Witness {
    /// A loom model (`model:`).
    Loom,
    /// A program that tries to break the runtime, under AddressSanitizer (`test:`).
    Adversary,
}

/// What is wrong with the list or with an entry of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ListError {
    NoKey {
        line: usize,
    },
    UnknownKey {
        line: usize,
        key: String,
    },
    Repeated {
        line: usize,
        key: String,
    },
    BadOccurrence {
        line: usize,
        key: String,
    },
    Missing {
        line: usize,
        key: &'static str,
    },
    SameName {
        line: usize,
        name: String,
    },
    Empty,
    NoFile {
        name: String,
        file: String,
    },
    NotFound {
        name: String,
        file: String,
        find: String,
    },
    TooFew {
        name: String,
        file: String,
        wanted: usize,
        found: usize,
    },
    Ambiguous {
        name: String,
        file: String,
        found: usize,
    },
    NoChange {
        name: String,
    },
    DoesNotCompile {
        name: String,
    },
}

impl fmt::Display for ListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListError::NoKey { line } => write!(
                f,
                "{LIST}:{line}: expected `key: value` (name, file, find, find@N, with, model, test)"
            ),
            ListError::UnknownKey { line, key } => write!(
                f,
                "{LIST}:{line}: there is no key `{key}` (name, file, find, find@N, with, model, test)"
            ),
            ListError::Repeated { line, key } => {
                write!(
                    f,
                    "{LIST}:{line}: `{key}` again; separate entries by a blank line"
                )
            }
            ListError::BadOccurrence { line, key } => {
                write!(
                    f,
                    "{LIST}:{line}: `{key}` needs a number from 1 on, as in `find@2:`"
                )
            }
            ListError::Missing { line, key } => {
                write!(
                    f,
                    "{LIST}:{line}: the entry that begins here has no `{key}:`"
                )
            }
            ListError::SameName { line, name } => {
                write!(f, "{LIST}:{line}: there is another entry called {name}")
            }
            ListError::Empty => write!(f, "{LIST} has no entries, so nothing was shown"),
            ListError::NoFile { name, file } => write!(f, "{name}: there is no file {file}"),
            ListError::NotFound { name, file, find } => write!(
                f,
                "{name}: `{find}` does not occur in {file}; the code has changed, so change the entry"
            ),
            ListError::TooFew {
                name,
                file,
                wanted,
                found,
            } => {
                write!(
                    f,
                    "{name}: occurrence {wanted} was asked for, but {file} has {found}"
                )
            }
            ListError::Ambiguous { name, file, found } => write!(
                f,
                "{name}: the text occurs {found} times in {file}; make it longer or use `find@N:`"
            ),
            ListError::NoChange { name } => write!(f, "{name}: `with` is the same as `find`"),
            ListError::DoesNotCompile { name } => write!(
                f,
                "{name}: the changed copy does not compile (see above), so it shows nothing; change `with`"
            ),
        }
    }
}

impl std::error::Error for ListError {}

impl From<ListError> for Error {
    fn from(error: ListError) -> Self {
        Error::List(error)
    }
}

/// The text with the entry's change in it.
pub(super) fn apply(entry: &Entry, original: &str) -> Result<String, ListError> {
    let (name, file) = (entry.name.clone(), entry.file.clone());
    if entry.with == entry.find {
        return Err(ListError::NoChange { name });
    }
    let places: Vec<usize> = original
        .match_indices(&entry.find)
        .map(|(at, _)| at)
        .collect();
    let found = places.len();
    let at = match (entry.occurrence, places.as_slice()) {
        (_, []) => {
            return Err(ListError::NotFound {
                name,
                file,
                find: entry.find.clone(),
            });
        }
        (None, [at]) => *at,
        (None, _) => return Err(ListError::Ambiguous { name, file, found }),
        (Some(wanted), places) => match places.get(wanted - 1) {
            Some(at) => *at,
            None => {
                return Err(ListError::TooFew {
                    name,
                    file,
                    wanted,
                    found,
                });
            }
        },
    };
    Ok([
        &original[..at],
        &entry.with,
        &original[at + entry.find.len()..],
    ]
    .concat())
}

/// An entry while its lines are read.
#[derive(Default)]
struct Draft {
    line: usize,
    name: Option<String>,
    file: Option<String>,
    find: Option<(String, Option<usize>)>,
    with: Option<String>,
    model: Option<String>,
    test: Option<String>,
}

impl Draft {
    fn set(&mut self, line: usize, key: &str, value: &str) -> Result<(), ListError> {
        if self.line == 0 {
            self.line = line;
        }
        let value = value.to_owned();
        let repeated = match key {
            "name" => self.name.replace(value).is_some(),
            "file" => self.file.replace(value).is_some(),
            "with" => self.with.replace(value).is_some(),
            "model" => self.model.replace(value).is_some() || self.test.is_some(),
            "test" => self.test.replace(value).is_some() || self.model.is_some(),
            "find" => self.find.replace((value, None)).is_some(),
            _ => match key.strip_prefix("find@") {
                Some(number) => {
                    let number = number.parse().ok().filter(|number: &usize| *number > 0);
                    let bad = || ListError::BadOccurrence {
                        line,
                        key: key.to_owned(),
                    };
                    self.find
                        .replace((value, Some(number.ok_or_else(bad)?)))
                        .is_some()
                }
                None => {
                    return Err(ListError::UnknownKey {
                        line,
                        key: key.to_owned(),
                    });
                }
            },
        };
        if repeated {
            Err(ListError::Repeated {
                line,
                key: key.to_owned(),
            })
        } else {
            Ok(())
        }
    }

    fn finish(self) -> Result<Entry, ListError> {
        let line = self.line;
        let missing = |key| ListError::Missing { line, key };
        let filled = |value: Option<String>, key| {
            value
                .filter(|value| !value.is_empty())
                .ok_or_else(|| missing(key))
        };
        let (find, occurrence) = self
            .find
            .filter(|(find, _)| !find.is_empty())
            .ok_or_else(|| missing("find"))?;
        let by = match self.test {
            Some(_) => Witness::Adversary,
            None => Witness::Loom,
        };
        let models = filled(self.test.or(self.model), "model")?;
        Ok(Entry {
            name: filled(self.name, "name")?,
            file: filled(self.file, "file")?,
            find,
            occurrence,
            with: self.with.ok_or_else(|| missing("with"))?,
            by,
            models: models
                .split([',', ' '])
                .filter(|m| !m.is_empty())
                .map(str::to_owned)
                .collect(),
            packages: Vec::new(),
        })
    }
}

/// Reads the list.
pub(super) fn parse(list: &str) -> Result<Vec<Entry>, ListError> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut draft = Draft::default();
    // A blank line at the end closes the last entry.
    for (index, line) in list.lines().chain([""]).enumerate() {
        let (number, line) = (index + 1, line.trim());
        if line.starts_with('#') {
            continue;
        }
        if line.is_empty() {
            let draft = std::mem::take(&mut draft);
            if draft.line > 0 {
                let line = draft.line;
                let entry = draft.finish()?;
                if entries.iter().any(|other| other.name == entry.name) {
                    return Err(ListError::SameName {
                        line,
                        name: entry.name,
                    });
                }
                entries.push(entry);
            }
            continue;
        }
        let (key, value) = line
            .split_once(':')
            .ok_or(ListError::NoKey { line: number })?;
        draft.set(number, key.trim(), value.trim())?;
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "\
# a comment
name:  fence
file:  src/idle.rs
find:  fence(Ordering::SeqCst);
with:
model: idle, park

name:  release
file:  src/ring.rs
find@2: Ordering::Release
with:  Ordering::Relaxed
# between the lines
model: ring::steal";

    fn entry(find: &str, occurrence: Option<usize>, with: &str) -> Entry {
        Entry {
            name: "n".to_owned(),
            file: "f.rs".to_owned(),
            find: find.to_owned(),
            occurrence,
            with: with.to_owned(),
            by: Witness::Loom,
            models: vec!["m".to_owned()],
            packages: Vec::new(),
        }
    }

    #[test]
    fn entries_are_read() {
        let entries = parse(TWO).unwrap();
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0].find, "fence(Ordering::SeqCst);");
        assert_eq!(
            (entries[0].with.as_str(), entries[0].occurrence),
            ("", None)
        );
        assert_eq!(entries[0].models, ["idle", "park"]);
        assert_eq!(
            (entries[1].find.as_str(), entries[1].occurrence),
            ("Ordering::Release", Some(2))
        );
        assert_eq!(entries[1].models, ["ring::steal"]);
    }

    #[test]
    fn the_list_in_the_repository_is_well_formed() {
        parse(include_str!("../../weaken.list")).unwrap();
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let mistakes = [
            ("name: a\nwhat", ListError::NoKey { line: 2 }),
            (
                "nam: a",
                ListError::UnknownKey {
                    line: 1,
                    key: "nam".to_owned(),
                },
            ),
            (
                "name: a\nname: b",
                ListError::Repeated {
                    line: 2,
                    key: "name".to_owned(),
                },
            ),
            (
                "find: a\nfind@2: b",
                ListError::Repeated {
                    line: 2,
                    key: "find@2".to_owned(),
                },
            ),
            (
                "find@0: a",
                ListError::BadOccurrence {
                    line: 1,
                    key: "find@0".to_owned(),
                },
            ),
            (
                "\nname: a\nfile: b\nfind: c\nmodel: d",
                ListError::Missing {
                    line: 2,
                    key: "with",
                },
            ),
        ];
        for (list, error) in mistakes {
            assert_eq!(parse(list).unwrap_err(), error, "{list}");
        }
        let twice = format!("{TWO}\n\n{TWO}");
        assert!(matches!(parse(&twice), Err(ListError::SameName { .. })));
    }

    #[test]
    fn one_place_is_changed() {
        let text = "a.store(1, Release);\nb.store(2, Release);\n";
        let changed = apply(
            &entry("a.store(1, Release)", None, "a.store(1, Relaxed)"),
            text,
        );
        assert_eq!(
            changed.unwrap(),
            "a.store(1, Relaxed);\nb.store(2, Release);\n"
        );
        let changed = apply(&entry("Release", Some(2), "Relaxed"), text);
        assert_eq!(
            changed.unwrap(),
            "a.store(1, Release);\nb.store(2, Relaxed);\n"
        );
    }

    #[test]
    fn a_text_that_is_not_there_once_is_an_error() {
        let text = "Release, Release";
        let error = |find, occurrence| apply(&entry(find, occurrence, "x"), text).unwrap_err();
        assert!(matches!(error("Acquire", None), ListError::NotFound { .. }));
        assert!(matches!(
            error("Release", None),
            ListError::Ambiguous { found: 2, .. }
        ));
        assert!(matches!(
            error("Release", Some(3)),
            ListError::TooFew {
                wanted: 3,
                found: 2,
                ..
            }
        ));
        assert!(matches!(error("x", None), ListError::NoChange { .. }));
    }
}
