//! `cargo xtask bench`: measures us and our peers, keeps the tables, and compares with the
//! baseline.

mod baseline;
mod report;
mod table;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::process;
use crate::workspace::Workspace;
use report::Report;

/// The lines of a page between which the table stands.
pub(crate) const BEGIN: &str = "<!-- table:begin -->";
pub(crate) const END: &str = "<!-- table:end -->";

const MANIFEST: &str = "bench/Cargo.toml";
const PROGRAM: &str = "windlass-bench";
const RESULTS: &str = "bench/results.json";
const BASELINE: &str = "bench/baseline.json";
/// The page for everybody, and the one that also says what the machine allows.
const README: &str = "README.md";
const BENCH_README: &str = "bench/README.md";
/// Arguments that make a run another one than the table promises.
const PARTIAL: &[&str] = &["--only", "--peers", "--scale", "--workers"];

const HELP: &str = "\
Usage: cargo xtask bench [options] [arguments of the benchmark]

  (nothing)           measures everything, writes bench/results.json and the tables of both READMEs
  --write             writes the tables also after a partial run (--only, --peers, --scale, --workers)
  --from FILE         measures nothing; takes the results from FILE and writes the tables
  --check             compares our ratios with bench/baseline.json; a drop over 20 % fails
  --check --from FILE the same with the results in FILE
  --json FILE         where the results go

Everything else goes to the benchmark: --only A,B  --peers X,Y  --rounds N  --workers N  --scale F
--matrix  --markdown  --list. bench/README.md explains them.
";

/// What the arguments ask for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    check: bool,
    write: bool,
    from: Option<PathBuf>,
    json: Option<PathBuf>,
    /// What the benchmark itself is given.
    passed_on: Vec<String>,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, Error> {
        let mut options = Options::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let (key, value) = match argument.split_once('=') {
                Some((key, value)) => (key, Some(value.to_owned())),
                None => (argument.as_str(), None),
            };
            match key {
                "--check" => options.check = true,
                "--write" => options.write = true,
                "--from" | "--json" => {
                    let file = value
                        .or_else(|| rest.next().cloned())
                        .ok_or_else(|| Error::usage(format!("`{key}` needs a file")))?;
                    let place = if key == "--from" {
                        &mut options.from
                    } else {
                        &mut options.json
                    };
                    *place = Some(PathBuf::from(file));
                }
                _ => options.passed_on.push(argument.clone()),
            }
        }
        if options.from.is_some() && !options.passed_on.is_empty() {
            let extra = options.passed_on.join(" ");
            return Err(Error::usage(format!(
                "`--from` measures nothing, so `{extra}` has no meaning"
            )));
        }
        if options.check && options.write {
            return Err(Error::usage(
                "`--check` compares and `--write` writes; take one of them",
            ));
        }
        Ok(options)
    }

    fn has(&self, name: &str) -> bool {
        self.passed_on
            .iter()
            .any(|argument| argument.split('=').next() == Some(name))
    }

    fn is_partial(&self) -> bool {
        PARTIAL.iter().any(|name| self.has(name))
    }

    fn writes_tables(&self) -> bool {
        !self.check && (self.write || self.from.is_some() || !self.is_partial())
    }
}

pub(crate) fn command(workspace: &Workspace, arguments: &[String]) -> Result<(), Error> {
    if arguments
        .iter()
        .any(|argument| argument == "--help" || argument == "-h")
    {
        print!("{HELP}");
        return Ok(());
    }
    let options = Options::parse(arguments)?;
    if options.has("--list") {
        return process::run(program(workspace)?.args(&options.passed_on));
    }
    // What is missing is said before the measuring, not after it.
    let baseline = options
        .check
        .then(|| read_baseline(workspace))
        .transpose()?;
    if options.writes_tables() {
        for page in [README, BENCH_README] {
            splice_into(workspace, page, None)?;
        }
    }
    let report = match &options.from {
        Some(file) => Report::read(file, &file.display().to_string())?,
        None => measure(workspace, &options)?,
    };
    if let Some(baseline) = baseline {
        return baseline::check(&baseline, &report, options.is_partial());
    }
    if options.writes_tables() {
        splice_into(workspace, README, Some(&table::comparison(&report)))?;
        let with_limits = [table::comparison(&report), table::limits(&report)].concat();
        splice_into(workspace, BENCH_README, Some(&with_limits))?;
        println!("wrote the tables of {README} and {BENCH_README}");
    } else {
        println!("a partial run: the tables stay as they are (--write writes them)");
    }
    Ok(())
}

fn read_baseline(workspace: &Workspace) -> Result<Report, Error> {
    let advice = "run `cargo xtask bench` and copy bench/results.json to that name";
    workspace.require(BASELINE, advice)?;
    Report::read(&workspace.path(BASELINE), BASELINE)
}

/// Builds the benchmark, runs it and reads its results.
fn measure(workspace: &Workspace, options: &Options) -> Result<Report, Error> {
    let json = match &options.json {
        Some(file) => env::current_dir().map_err(Error::reading("."))?.join(file),
        None if options.check || options.is_partial() => {
            workspace.target.join("bench-partial.json")
        }
        None => workspace.path(RESULTS),
    };
    if let Some(parent) = json.parent() {
        fs::create_dir_all(parent).map_err(Error::writing(parent))?;
    }
    let mut bench = program(workspace)?;
    process::run(bench.args(&options.passed_on).arg("--json").arg(&json))?;
    let name = json
        .strip_prefix(&workspace.root)
        .unwrap_or(&json)
        .display()
        .to_string();
    println!("results: {name}");
    Report::read(&json, &name)
}

/// Builds the benchmark with every peer that can be built here.
fn program(workspace: &Workspace) -> Result<Command, Error> {
    let build = |features: &str, more: &[&str]| {
        let mut cargo = workspace.cargo();
        cargo.args([
            "build",
            "--release",
            "--manifest-path",
            MANIFEST,
            "--features",
            features,
        ]);
        process::build(cargo.args(more), PROGRAM)
    };
    let with_forte = build("windlass,forte", &["--ignore-rust-version"]);
    let program = match with_forte {
        Err(Error::Failed { .. }) => {
            println!("note: the benchmark does not build with forte here; going on without it");
            build("windlass", &[])?
        }
        other => other?,
    };
    let mut command = Command::new(program);
    command.current_dir(&workspace.root);
    Ok(command)
}

/// Puts a table into a page; without one only checks that the page has a place for it.
fn splice_into(workspace: &Workspace, page: &str, table: Option<&str>) -> Result<(), Error> {
    let text = workspace.read(page)?;
    let changed = splice(&text, table.unwrap_or_default()).ok_or_else(|| Error::NoMarkers {
        path: Path::new(page).to_owned(),
    })?;
    if table.is_some() {
        fs::write(workspace.path(page), changed).map_err(Error::writing(page))?;
    }
    Ok(())
}

/// Replaces what stands between the markers. `None` without both markers, in that order.
fn splice(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!(
        "{before}{BEGIN}\n{}\n{END}{after}",
        table.trim_end()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(arguments: &str) -> Result<Options, Error> {
        Options::parse(
            &arguments
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn the_table_stands_between_its_markers() {
        let page = "# A\n<!-- table:begin -->\nold\nold\n<!-- table:end -->\nrest\n";
        let new = "# A\n<!-- table:begin -->\n| new |\n<!-- table:end -->\nrest\n";
        assert_eq!(splice(page, "| new |\n").as_deref(), Some(new));
        assert_eq!(splice(new, "| new |\n").as_deref(), Some(new));
        assert_eq!(splice("<!-- table:end --><!-- table:begin -->", "x"), None);
    }

    #[test]
    fn our_options_are_kept_and_the_rest_passed_on() {
        let parsed = options("--only a,b --json=out.json --write --rounds 3").unwrap();
        assert_eq!(parsed.passed_on, ["--only", "a,b", "--rounds", "3"]);
        assert_eq!(parsed.json.as_deref(), Some(Path::new("out.json")));
        assert!(parsed.write && !parsed.check);
    }

    #[test]
    fn a_partial_run_writes_only_when_told() {
        let writes = |arguments| options(arguments).unwrap().writes_tables();
        assert!(writes("") && writes("--rounds 3") && writes("--from x.json"));
        assert!(!writes("--only a") && !writes("--peers=tokio") && !writes("--check"));
        assert!(writes("--only a --write"));
    }

    #[test]
    fn contradictions_are_refused() {
        for arguments in ["--from", "--from x --rounds 3", "--check --write"] {
            assert!(
                matches!(options(arguments), Err(Error::Usage(_))),
                "{arguments}"
            );
        }
    }
}
