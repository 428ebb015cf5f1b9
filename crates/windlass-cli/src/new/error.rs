//! Why a folder is not made.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a folder is not made.
#[derive(Debug)]
pub(crate) enum NewError {
    /// It cannot have this name.
    Name {
        /// The name, as given.
        name: String,
        /// What is wrong with it.
        reason: BadName,
    },
    /// There is a folder of this name with something in it.
    NotEmpty(PathBuf),
    /// There is something else of this name.
    NotAFolder(PathBuf),
    /// It cannot be made, or a file in it cannot be written.
    Write {
        /// The path that could not be made.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// What is wrong with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadName {
    Empty,
    /// It leads to another folder.
    Separator,
    /// It would be taken for a flag.
    LeadingDash,
    /// `.` and `..` are folders that are there.
    OnlyDots,
    /// A shell or a file system may take it for something else.
    Character(char),
}

impl fmt::Display for NewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NewError::Name { name, reason } => {
                let advice = match reason {
                    BadName::Separator => {
                        "give the name alone, and the folder around it with --dir"
                    }
                    _ => "use letters, digits, `-`, `_` and `.`, such as my_graph",
                };
                write!(
                    f,
                    "{name:?} is no name for a graph: {reason}\nhelp: {advice}"
                )
            }
            NewError::NotEmpty(folder) => write!(
                f,
                "{} is there and not empty; nothing was written\nhelp: choose another name, or another place with --dir",
                folder.display()
            ),
            NewError::NotAFolder(path) => write!(
                f,
                "{} is there and no folder; nothing was written\nhelp: choose another name, or another place with --dir",
                path.display()
            ),
            NewError::Write { path, source } => write!(
                f,
                "cannot write {}: {source}\nhelp: name a place that you may write to with --dir",
                path.display()
            ),
        }
    }
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadName::Empty => f.write_str("it is empty"),
            BadName::Separator => f.write_str("it has a path separator"),
            BadName::LeadingDash => f.write_str("it begins with a dash"),
            BadName::OnlyDots => f.write_str("it has nothing but dots"),
            BadName::Character(character) => write!(f, "it has {character:?} in it"),
        }
    }
}

impl std::error::Error for NewError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            NewError::Write { source, .. } => Some(source),
            _ => None,
        }
    }
}
