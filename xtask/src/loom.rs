//! `cargo xtask loom [MODEL]`: the loom models of windlass-core.

use crate::error::Error;
use crate::models::{self, LOOM};
use crate::workspace::Workspace;

pub(crate) fn command(workspace: &Workspace, arguments: &[String]) -> Result<(), Error> {
    LOOM.check(workspace, models::one_name("loom", arguments)?)
}
