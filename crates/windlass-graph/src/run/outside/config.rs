//! New configurations of components while a run goes on.

use crate::run::lifecycle::Lifecycle;
use crate::run::result::ErrorCode;
use crate::run::run_state::Halt;
use crate::run::sinks::sink::{ConfigBegin, ConfigEnd, LifecycleKind, Sink};
use windlass_plan::model::Config;

/// New configurations for some components: all of them, or none.
///
/// Each component says first whether it could work with its new configuration; then each is given
/// it. If one cannot, those that already have theirs get the old one back, and the run ends with an
/// error.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConfigTransaction {
    changes: Vec<(String, Config)>,
}

impl ConfigTransaction {
    /// Makes one of the changes in a recording.
    pub(crate) fn of(changes: Vec<(String, Config)>) -> ConfigTransaction {
        ConfigTransaction { changes }
    }

    /// Makes one without a change.
    pub fn new() -> ConfigTransaction {
        ConfigTransaction::default()
    }

    /// Gives this component another configuration, which replaces the one it has.
    pub fn set(mut self, component: impl Into<String>, config: Config) -> ConfigTransaction {
        self.changes.push((component.into(), config));
        self
    }
}

impl Lifecycle<'_> {
    /// Gives components their new configurations: the transaction whole, or the run ends.
    pub(crate) fn commit_config(&mut self, transaction: ConfigTransaction) -> Result<(), Halt> {
        self.sinks.config_begin(&ConfigBegin {
            changes: &transaction.changes,
        });
        let mut changes = Vec::with_capacity(transaction.changes.len());
        for (id, config) in transaction.changes {
            let Some((component, _)) = self.tables.plan.graph.component(&id) else {
                let message = format!("the transaction names component {id}, which is not there");
                return Err(self.sinks.halt("config", ErrorCode::Runtime, None, message));
            };
            changes.push((component, config));
        }
        for (component, config) in &changes {
            self.report(LifecycleKind::ValidateConfig, *component);
            self.ask(*component, |c| c.validate_config(config))
                .map_err(|message| self.config_failed(*component, message))?;
        }
        for (done, (component, config)) in changes.iter().enumerate() {
            self.report(LifecycleKind::ApplyConfig, *component);
            if let Err(message) = self.reconfigure(*component, config) {
                let applied: Vec<usize> = changes[..=done].iter().map(|(c, _)| *c).collect();
                self.roll_back(&applied);
                return Err(self.config_failed(*component, message));
            }
        }
        for (component, config) in changes {
            self.report(LifecycleKind::CommitConfig, component);
            self.members.set_config(component, config);
        }
        self.sinks.config_end(&ConfigEnd);
        Ok(())
    }

    /// Gives back the old configurations, the last first.
    fn roll_back(&mut self, applied: &[usize]) {
        for &component in applied.iter().rev() {
            self.report(LifecycleKind::RollBackConfig, component);
            let old = self.members.config(component).clone();
            if let Err(message) = self.reconfigure(component, &old) {
                let message = format!("could not go back to its old configuration: {message}");
                let code = ErrorCode::Runtime;
                self.sinks
                    .add_error("config", code, Some(component), message, false);
            }
        }
    }

    fn reconfigure(&mut self, component: usize, config: &Config) -> Result<(), String> {
        self.ask(component, |c| c.reconfigure(config))
    }

    fn config_failed(&mut self, component: usize, message: String) -> Halt {
        let message = format!("refused its new configuration: {message}");
        self.sinks
            .halt("config", ErrorCode::Runtime, Some(component), message)
    }
}
