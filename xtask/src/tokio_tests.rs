//! `cargo xtask tokio-tests PATH`: the integration tests of a checkout of tokio, against the
//! package named `tokio` in `facade/`.
//!
//! Nothing of the checkout is copied: a package below `target` names its test files by their paths.
//! Every file is compiled on its own, and every test runs in a process of its own with a time
//! limit. `facade/tokio-tests.list` says which tests count: those that pass on tokio itself, as
//! `--baseline` finds them.

mod list;
mod package;
mod results;
mod run;

use std::path::PathBuf;

use self::list::List;
use self::package::{Package, Subject};
use self::results::Results;
use crate::error::Error;
use crate::workspace::Workspace;

/// What the arguments ask for.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    checkout: PathBuf,
    mode: Mode,
    /// Only these files; none: all.
    only: Vec<String>,
}

/// What is done with the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Runs them on the facade and compares with the list.
    Compare,
    /// Compiles them on the facade and prints their names.
    ListOnly,
    /// Runs them on tokio and writes the list.
    Baseline,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, Error> {
        const TAKES: &str = "`tokio-tests` takes the path of a checkout of tokio, and `--list-only`, \
                             `--baseline` or `--only FILE,FILE`";
        let mut options = Options {
            checkout: PathBuf::new(),
            mode: Mode::Compare,
            only: Vec::new(),
        };
        let mut words = arguments.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "--list-only" => options.mode = Mode::ListOnly,
                "--baseline" => options.mode = Mode::Baseline,
                "--only" => {
                    let files = words.next().ok_or_else(|| Error::usage(TAKES))?;
                    options.only = files.split(',').map(str::to_owned).collect();
                }
                _ if !word.starts_with('-') && options.checkout.as_os_str().is_empty() => {
                    options.checkout = PathBuf::from(word);
                }
                _ => return Err(Error::usage(TAKES)),
            }
        }
        if options.checkout.as_os_str().is_empty() {
            return Err(Error::usage(TAKES));
        }
        if options.mode == Mode::Baseline && !options.only.is_empty() {
            return Err(Error::usage("`--baseline` writes the whole list"));
        }
        Ok(options)
    }
}

pub(crate) fn command(workspace: &Workspace, arguments: &[String]) -> Result<(), Error> {
    let options = Options::parse(arguments)?;
    let subject = match options.mode {
        Mode::Baseline => Subject::Tokio,
        Mode::Compare | Mode::ListOnly => Subject::Facade,
    };
    let package = Package::write(workspace, &options.checkout, subject, &options.only)?;
    let built = package.build()?;
    if options.mode == Mode::ListOnly {
        for (file, tests) in run::names(&package, &built)? {
            for test in tests {
                println!("{file}::{test}");
            }
        }
        return Ok(());
    }
    let results = Results::of(&package, &built)?;
    if options.mode == Mode::Baseline {
        return List::of(&results).write(workspace);
    }
    let mut list = List::read(workspace)?;
    list.retain_files(&package.files);
    results.report(&list);
    let file = results.write(workspace, &list)?;
    println!("Details: {}", file.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options, Error> {
        let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
        Options::parse(&arguments)
    }

    #[test]
    fn a_path_and_a_mode_can_be_given() {
        let options = parse(&["../checkout", "--only", "io_read,udp"]).unwrap();
        assert_eq!(options.checkout, PathBuf::from("../checkout"));
        assert_eq!(options.mode, Mode::Compare);
        assert_eq!(options.only, ["io_read", "udp"]);
        assert_eq!(parse(&["--baseline", "p"]).unwrap().mode, Mode::Baseline);
        assert_eq!(parse(&["p", "--list-only"]).unwrap().mode, Mode::ListOnly);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for arguments in [
            &[][..],
            &["--baseline"],
            &["p", "q"],
            &["p", "--fast"],
            &["p", "--only"],
            &["p", "--baseline", "--only", "udp"],
        ] {
            let result = parse(arguments);
            assert!(matches!(result, Err(Error::Usage(_))), "{arguments:?}");
        }
    }
}
