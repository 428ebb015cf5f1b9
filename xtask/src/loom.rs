//! `cargo xtask loom [MODEL]`: the loom models of all crates that have some.

use crate::error::Error;
use crate::models::{self, LOOM};
use crate::workspace::Workspace;

pub(crate) fn command(workspace: &Workspace, arguments: &[String]) -> Result<(), Error> {
    LOOM.check(workspace, models::one_name("loom", arguments)?)
}
