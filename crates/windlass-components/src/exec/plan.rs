//! What to run, and how.

use std::time::Duration;

use serde_json::Value;
use windlass_graph::component::{Component as _, Failure, Port, Setup};
use windlass_graph::model::Config;
use windlass_io::command::{Command, Stdio};

use super::Exec;
use crate::file::{line_bytes_of, records_of};
use crate::settings::{MOST_MS, Settings};

/// How many messages may be with the command, unless one says otherwise, and at most.
const PENDING: u64 = 64;
pub(super) const MOST_PENDING: u64 = 1 << 20;
/// How long a command has to end when it is asked to, unless one says otherwise.
const STOP_MS: u64 = 2000;

/// What to run, and how.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) id: String,
    command: Vec<String>,
    env: Vec<(String, String)>,
    dir: Option<String>,
    pub(super) outputs: Vec<String>,
    pub(super) restart: Restart,
    pub(super) max_pending: usize,
    pub(super) reply: Reply,
    pub(super) stop: Duration,
    pub(super) most: usize,
    pub(super) records: usize,
}

/// How often it is started again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Restart {
    pub(super) max: usize,
    pub(super) within: Duration,
    pub(super) backoff: Duration,
}

/// Whether the command says which messages it is done with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reply {
    Free,
    PerMessage,
}

pub(super) const REPLIES: [(&str, Reply); 2] =
    [("free", Reply::Free), ("per_message", Reply::PerMessage)];

impl Plan {
    pub(super) fn read(setup: &Setup<'_>) -> Result<Plan, Failure> {
        let settings = Settings(setup.config());
        let command = settings.texts("command")?.unwrap_or_default();
        if command.first().is_none_or(String::is_empty) {
            return Err(Failure::new(
                "config.command is missing: write a list of the program and its arguments",
            ));
        }
        let (inputs, outputs) = ports(setup.config())?;
        check_ports("input", setup.inputs(), &inputs)?;
        check_ports("output", setup.outputs(), &outputs)?;
        let reply = match inputs.is_empty() {
            // There is nothing to be done with.
            true => Reply::Free,
            false => settings.choice("reply", &REPLIES)?,
        };
        Ok(Plan {
            id: setup.id().to_owned(),
            command,
            env: environment(settings)?,
            dir: settings.text("dir")?.map(str::to_owned),
            outputs,
            restart: Restart::read(settings)?,
            max_pending: settings.count("max_pending", PENDING, MOST_PENDING)?,
            reply,
            stop: settings.millis_from("stop_ms", 1, STOP_MS)?,
            most: line_bytes_of(settings)?,
            records: records_of(settings)?,
        })
    }

    /// The command, ready to be started.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.command[0]);
        command
            .args(&self.command[1..])
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for the run, which then stops it in its own way.
            .process_group(0)
            .end_with_program(true)
            .kill_on_drop(true);
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        command
    }

    /// The command as people would write it.
    pub(super) fn shown(&self) -> String {
        self.command.join(" ")
    }
}

impl Restart {
    fn read(settings: Settings<'_>) -> Result<Restart, Failure> {
        let empty = Config::new();
        let restart = settings.map("restart")?.unwrap_or(&empty);
        let known = ["max", "within_ms", "backoff_ms"];
        if let Some(other) = restart.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(Failure::new(format!(
                "config.restart has no field {other}; it has max, within_ms and backoff_ms"
            )));
        }
        let restart = Settings(restart);
        let max = restart.count_within("max", 0, 1_000_000)?.unwrap_or(5);
        Ok(Restart {
            max: max as usize,
            within: restart.millis("within_ms", 60_000)?,
            backoff: restart
                .millis("backoff_ms", 100)?
                .min(Duration::from_millis(MOST_MS)),
        })
    }
}

fn environment(settings: Settings<'_>) -> Result<Vec<(String, String)>, Failure> {
    let Some(env) = settings.map("env")? else {
        return Ok(Vec::new());
    };
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    };
    let variable = |(name, value): (&String, &Value)| match text(value) {
        Some(text) if !name.is_empty() && !name.contains(['=', '\0']) && !text.contains('\0') => {
            Ok((name.clone(), text))
        }
        _ => Err(Failure::new(format!(
            "config.env.{name} has to be a text, and its name without ="
        ))),
    };
    env.iter().map(variable).collect()
}

/// The names of the input and output ports.
fn ports(config: &Config) -> Result<(Vec<String>, Vec<String>), Failure> {
    if !Settings(config).has("ports") {
        return Err(Failure::new(
            "config.ports is missing: write {inputs: [in], outputs: [out]}, or other names",
        ));
    }
    let described = Exec::describe();
    let described = described.for_config(config)?;
    let names = |ports: &[Port]| ports.iter().map(|port| port.name.clone()).collect();
    Ok((names(&described.inputs), names(&described.outputs)))
}

fn check_ports<'a>(
    side: &str,
    mut used: impl Iterator<Item = &'a str>,
    declared: &[String],
) -> Result<(), Failure> {
    match used.find(|name| !declared.iter().any(|there| there == name)) {
        Some(name) => Err(Failure::new(format!(
            "an edge names the {side} {name}, which config.ports does not declare"
        ))),
        None => Ok(()),
    }
}
