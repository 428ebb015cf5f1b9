//! Which component types there are.

use clap::Args;

/// Which component types there are.
#[derive(Debug, Args)]
pub(crate) struct Types {
    /// Let stubs stand in for unknown component types: they forward what comes
    #[arg(long)]
    pub(crate) stub_unknown: bool,
}
