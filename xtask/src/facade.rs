//! The workspace `facade/`: that it compiles, and that its programs print what they should.

use std::process::Command;

use crate::error::Error;
use crate::process;
use crate::workspace::{self, Workspace};

/// A program of `facade/programs/` and what it prints.
struct Program {
    name: &'static str,
    prints: &'static str,
}

const PROGRAMS: &[Program] = &[Program {
    name: "hello",
    prints: "hello 1\nhello 2\nhello 3\nserved 3\ntimed out: true\n",
}];

/// Checks the packages of the workspace and runs its programs.
pub(crate) fn check(workspace: &Workspace) -> Result<(), Error> {
    process::run(cargo(workspace, "check").args(["--workspace", "--all-targets"]))?;
    for program in PROGRAMS {
        let mut run = cargo(workspace, "run");
        run.args(["--quiet", "--package", program.name]);
        let printed = process::stdout_of(&mut run)?;
        if printed != program.prints {
            println!(
                "it should print:\n{}and printed:\n{printed}",
                program.prints
            );
            return Err(Error::Failed {
                command: process::describe(&run),
                status: "it printed something else".to_owned(),
            });
        }
    }
    Ok(())
}

/// Cargo in the facade's workspace, with a target directory below ours.
fn cargo(workspace: &Workspace, command: &str) -> Command {
    let mut cargo = workspace::cargo_in(&workspace.path("facade"));
    cargo
        .arg(command)
        .arg("--target-dir")
        .arg(workspace.target.join("facade"));
    cargo
}
