//! `windlass new graph`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::error::{BadName, NewError};
use crate::args::NewGraph;
use crate::outcome::{Error, Outcome, Verdict};
use crate::terminal::Terminal;

/// A file of the project.
struct Template {
    path: &'static str,
    text: &'static str,
    about: &'static str,
}

/// `{{name}}` in them is the name that was given.
const TEMPLATES: &[Template] = &[
    Template {
        path: "graph.yaml",
        text: include_str!("graph/graph.yaml"),
        about: "the graph",
    },
    Template {
        path: "data/readings.csv",
        text: include_str!("graph/readings.csv"),
        about: "what it reads",
    },
    Template {
        path: "README.md",
        text: include_str!("graph/README.md"),
        about: "what to do with it",
    },
    Template {
        path: ".gitignore",
        text: include_str!("graph/gitignore"),
        about: "what it writes, for git to leave alone",
    },
];

pub(crate) fn run(args: &NewGraph, terminal: &Terminal) -> Outcome {
    let folder = make(&args.name, args.dir.as_deref()).map_err(Error::New)?;
    terminal.print(&to_text(&folder))?;
    Ok(Verdict::Fine)
}

/// Makes the folder with everything in it, and gives its path.
fn make(name: &str, dir: Option<&Path>) -> Result<PathBuf, NewError> {
    if let Some(reason) = bad(name) {
        let name = name.to_owned();
        return Err(NewError::Name { name, reason });
    }
    let folder = dir.map_or_else(|| PathBuf::from(name), |dir| dir.join(name));
    demand_free(&folder)?;
    for template in TEMPLATES {
        let path = folder.join(template.path);
        let text = template.text.replace("{{name}}", name);
        write_new(&path, &text).map_err(|source| NewError::Write { path, source })?;
    }
    Ok(folder)
}

/// What is wrong with a name.
fn bad(name: &str) -> Option<BadName> {
    let is_fine = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    match name {
        "" => Some(BadName::Empty),
        _ if name.contains(['/', '\\']) => Some(BadName::Separator),
        _ if name.starts_with('-') => Some(BadName::LeadingDash),
        _ if name.chars().all(|c| c == '.') => Some(BadName::OnlyDots),
        _ => name.chars().find(|c| !is_fine(*c)).map(BadName::Character),
    }
}

/// Demands that there is nothing, or an empty folder.
fn demand_free(folder: &Path) -> Result<(), NewError> {
    let path = folder.to_owned();
    match fs::read_dir(folder) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(NewError::NotEmpty(path)),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(NewError::NotAFolder(path))
        }
        Err(source) => Err(NewError::Write { path, source }),
    }
}

/// Writes a file that must not be there yet, also if another program writes here.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())
}

fn to_text(folder: &Path) -> String {
    let mut text = String::new();
    for template in TEMPLATES {
        let path = folder.join(template.path).display().to_string();
        text.push_str(&format!("wrote: {path} ({})\n", template.about));
    }
    text.push_str(&format!(
        "next:\n  cd {}\n  windlass graph run graph.yaml --until-idle\n",
        folder.display()
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_every_shell_and_file_system_takes() {
        for name in [
            "a",
            "my_graph",
            "my-graph.2",
            ".hidden",
            "Größe",
            "true",
            "7",
        ] {
            assert_eq!(bad(name), None, "{name}");
        }
        let wrong = [
            ("", BadName::Empty),
            ("a/b", BadName::Separator),
            ("..\\b", BadName::Separator),
            ("-f", BadName::LeadingDash),
            (".", BadName::OnlyDots),
            ("...", BadName::OnlyDots),
            ("a b", BadName::Character(' ')),
            ("a\"b", BadName::Character('"')),
            ("a\nb", BadName::Character('\n')),
        ];
        for (name, reason) in wrong {
            assert_eq!(bad(name), Some(reason), "{name}");
        }
    }
}
