//! What tasks wait for: from the words of a script to the reasons of a guest.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mlua::{AnyUserData, Lua, MultiValue, Table, Value};
use windlass_actor::command::{Run, StopTimer, Ticker, Timer, YieldError};
use windlass_actor::{Pid, Topic};
use windlass_http::Request;
use windlass_http::body;
use windlass_value::Payload;
use windlass_vm::{Exception, Reason};

use crate::interpreter::InterpreterShared;
use crate::native::ProcessHandle;
use crate::script::Script;
use crate::value::{LuaPid, to_payload};

/// The one entry of a failure that is the sandbox's.
pub(crate) const SANDBOX: &str = "sandbox";

/// The most that a file or an answer may have that a script reads.
const LARGEST: usize = 64 << 20;

macro_rules! ops {
    ($($op:ident $name:literal,)*) => {
        /// What a task asks for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Op { $($op,)* }

        impl Op {
            const ALL: &[(Op, &str)] = &[$((Op::$op, $name),)*];
        }
    };
}

ops! {
    Park "park",
    Yield "yield",
    Sleep "sleep",
    Receive "receive",
    Await "await",
    Upgrade "upgrade",
    TimerAfter "timer_after",
    TimerEvery "timer_every",
    TimerStop "timer_stop",
    Blocking "blocking",
    Tree "tree",
    Http "http",
    Read "fs_read",
    Write "fs_write",
    Append "fs_append",
    List "fs_list",
    Stat "fs_stat",
    Remove "fs_remove",
    MakeDir "fs_mkdir",
}

impl Op {
    /// Their numbers, for the prelude.
    pub(crate) fn table(lua: &Lua) -> mlua::Result<Table> {
        let table = lua.create_table()?;
        for (number, (_, name)) in Op::ALL.iter().enumerate() {
            table.set(*name, number)?;
        }
        Ok(table)
    }

    /// As scripts are given it, and [`of_number`](Op::of_number) takes it.
    pub(crate) fn number(self) -> usize {
        self as usize
    }

    pub(crate) fn of_number(number: i64) -> Option<Op> {
        let (op, _) = Op::ALL.get(usize::try_from(number).ok()?)?;
        Some(*op)
    }
}

/// Why something cannot be waited for: a kind and a message.
pub(crate) type Refusal = (&'static str, String);

/// What a task has said after the operation, one by one.
pub(crate) struct Args {
    pub(crate) lua: Lua,
    pub(crate) values: MultiValue,
}

impl Args {
    pub(crate) fn next(&mut self) -> Value {
        self.values.pop_front().unwrap_or(Value::Nil)
    }

    pub(crate) fn text(&mut self, what: &str) -> Result<String, Refusal> {
        match self.next() {
            Value::String(text) => Ok(text.to_string_lossy()),
            Value::Integer(number) => Ok(number.to_string()),
            other => Err((
                "argument",
                format!("{what} must be a text, not {}", other.type_name()),
            )),
        }
    }

    /// A time in seconds; None for nil.
    pub(crate) fn time(&mut self, what: &str) -> Result<Option<Duration>, Refusal> {
        let seconds = match self.next() {
            Value::Nil => return Ok(None),
            Value::Integer(seconds) => seconds as f64,
            Value::Number(seconds) => seconds,
            other => {
                let problem = format!(
                    "{what} must be a number of seconds, not {}",
                    other.type_name()
                );
                return Err(("argument", problem));
            }
        };
        duration(seconds)
            .map(Some)
            .ok_or(("argument", format!("{what} cannot be {seconds} seconds")))
    }

    fn payload(&mut self) -> Result<Payload, Refusal> {
        let value = self.next();
        to_payload(&self.lua, &value).map_err(|problem| ("argument", problem.to_string()))
    }
}

/// So many seconds; what is longer than a century is a century.
pub(crate) fn duration(seconds: f64) -> Option<Duration> {
    const CENTURY: f64 = 100.0 * 366.0 * 86_400.0;
    Duration::try_from_secs_f64(seconds.min(CENTURY)).ok()
}

/// What a guest waits for when one of its tasks asks for this.
pub(crate) fn reason(
    inner: &Arc<InterpreterShared>,
    script: &Script,
    op: Op,
    mut args: Args,
) -> Result<Reason, Refusal> {
    Ok(match op {
        Op::Sleep => Reason::Sleep(args.time("the time")?.unwrap_or_default()),
        Op::Await => Reason::AwaitTask(handle(&args.next())?),
        Op::TimerAfter => {
            let after = args.time("the time")?.unwrap_or_default();
            let topic = Topic::from(args.text("the topic")?);
            let payload = args.payload()?;
            Reason::command(Timer {
                after,
                topic,
                payload,
            })
        }
        Op::TimerEvery => {
            let every = args.time("the period")?.unwrap_or_default();
            if every.is_zero() {
                return Err((
                    "argument",
                    "the period must be longer than nothing".to_owned(),
                ));
            }
            let topic = Topic::from(args.text("the topic")?);
            Reason::command(Ticker { every, topic })
        }
        Op::TimerStop => match args.next() {
            Value::Integer(number) => Reason::command(StopTimer(number as u64)),
            _ => return Err(("argument", "a timer is a number".to_owned())),
        },
        Op::Blocking => {
            let name = args.text("the function's name")?;
            let function = inner.blocking.get(&name).cloned().ok_or_else(|| {
                let problem = format!("the host has no blocking function {name:?}");
                ("argument", problem)
            })?;
            let mut given = Vec::new();
            while !args.values.is_empty() {
                given.push(args.payload()?);
            }
            Reason::blocking(move || function(given))
        }
        Op::Tree => {
            let pid = pid_of(&args.next())?;
            let host = inner.vm().map(|vm| vm.host().clone());
            Reason::command(Run::new(async move {
                let gone = || YieldError::Failed(format!("{pid} is no supervisor here").into());
                let supervisor = host
                    .and_then(|host| host.supervisor(pid))
                    .ok_or_else(gone)?;
                let tree = supervisor.tree().await;
                tree.map(|tree| tree.to_string().into())
                    .map_err(|error| YieldError::Failed(error.to_string().into()))
            }))
        }
        Op::Http => http(inner, args)?,
        Op::Read | Op::Write | Op::Append | Op::List | Op::Stat | Op::Remove | Op::MakeDir => {
            file(inner, script, op, args)?
        }
        Op::Park | Op::Yield | Op::Receive | Op::Upgrade => {
            return Err(("argument", "the machine does this itself".to_owned()));
        }
    })
}

fn handle(value: &Value) -> Result<windlass_vm::Task, Refusal> {
    let data = value.as_userdata().and_then(|data: &AnyUserData| {
        let handle = data.borrow::<ProcessHandle>().ok()?;
        Some(handle.0.clone())
    });
    data.ok_or_else(|| {
        let problem = format!(
            "await takes a task, or what process.spawn gives, not a {}",
            value.type_name()
        );
        ("argument", problem)
    })
}

/// The process that a value names: a PID, or a handle of one.
pub(crate) fn pid_of(value: &Value) -> Result<Pid, Refusal> {
    let data = value.as_userdata();
    let pid = data.and_then(|data| data.borrow::<LuaPid>().ok().map(|pid| pid.0));
    let handle = || {
        data?
            .borrow::<ProcessHandle>()
            .ok()
            .map(|handle| handle.0.pid())
    };
    pid.or_else(handle).ok_or_else(|| {
        (
            "argument",
            format!("a PID is expected, not a {}", value.type_name()),
        )
    })
}

fn file(
    inner: &Arc<InterpreterShared>,
    script: &Script,
    op: Op,
    mut args: Args,
) -> Result<Reason, Refusal> {
    let path = args.text("the path")?;
    let content = match op {
        Op::Write | Op::Append => match args.next() {
            Value::String(text) => text.as_bytes().to_vec(),
            value => match to_payload(&args.lua, &value) {
                Ok(Payload::Bytes(bytes)) => bytes.to_vec(),
                _ => {
                    let problem = format!(
                        "what is written must be a text, not a {}",
                        value.type_name()
                    );
                    return Err(("argument", problem));
                }
            },
        },
        _ => Vec::new(),
    };
    let (sandbox, root) = (
        inner.sandbox.clone(),
        script.root.clone().unwrap_or_default(),
    );
    Ok(Reason::blocking(move || {
        let failed = |problem: String| Exception::Failed(problem.into());
        let real = sandbox.check_path(&root, &path);
        let real = real.map_err(|problem| {
            Exception::Failed(Payload::map([(SANDBOX, Payload::from(problem))]))
        })?;
        let done = work_on(op, real, &content);
        done.map_err(|error| failed(format!("{path}: {error}")))
    }))
}

fn work_on(op: Op, path: PathBuf, content: &[u8]) -> std::io::Result<Payload> {
    Ok(match op {
        Op::Read => {
            let length = fs::metadata(&path)?.len();
            if length > LARGEST as u64 {
                let problem = format!("it has {length} bytes, and at most {LARGEST} are read");
                return Err(std::io::Error::new(
                    std::io::ErrorKind::FileTooLarge,
                    problem,
                ));
            }
            let bytes = fs::read(&path)?;
            match String::from_utf8(bytes) {
                Ok(text) => Payload::from(text),
                Err(error) => Payload::from(error.into_bytes()),
            }
        }
        Op::Write => {
            fs::write(&path, content)?;
            Payload::Bool(true)
        }
        Op::Append => {
            use std::io::Write;
            let mut file = fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(&path)?;
            file.write_all(content)?;
            Payload::Bool(true)
        }
        Op::List => {
            let entries = fs::read_dir(&path)?;
            let mut names = Vec::new();
            for entry in entries {
                names.push(entry?.file_name().to_string_lossy().into_owned());
            }
            names.sort();
            Payload::from(names.into_iter().map(Payload::from).collect::<Vec<_>>())
        }
        Op::Stat => match fs::metadata(&path) {
            Ok(found) => Payload::map([
                ("size", Payload::Int(found.len() as i64)),
                ("is_dir", Payload::Bool(found.is_dir())),
            ]),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Payload::Nil,
            Err(error) => return Err(error),
        },
        Op::Remove => {
            match fs::metadata(&path)?.is_dir() {
                true => fs::remove_dir(&path)?,
                false => fs::remove_file(&path)?,
            }
            Payload::Bool(true)
        }
        _ => {
            fs::create_dir_all(&path)?;
            Payload::Bool(true)
        }
    })
}

fn http(inner: &Arc<InterpreterShared>, mut args: Args) -> Result<Reason, Refusal> {
    let bad = |problem: String| ("argument", problem);
    let Value::Table(wanted) = args.next() else {
        return Err(bad(
            "http.request takes a table: {url =, method =, headers =, body =}".to_owned(),
        ));
    };
    let text = |key: &str| wanted.get::<Option<String>>(key);
    let url = text("url")
        .ok()
        .flatten()
        .ok_or_else(|| bad("a request needs an url".to_owned()))?;
    let method = text("method")
        .ok()
        .flatten()
        .unwrap_or_else(|| "GET".to_owned());
    let mut request = Request::builder().method(method.as_str()).uri(&url);
    if let Ok(Some(headers)) = wanted.get::<Option<Table>>("headers") {
        for (name, value) in headers.pairs::<String, String>().flatten() {
            request = request.header(name, value);
        }
    }
    let content = wanted.get::<Option<mlua::LuaString>>("body").ok().flatten();
    let content = content
        .map(|content| content.as_bytes().to_vec())
        .unwrap_or_default();
    let request = request
        .body(body::full(content))
        .map_err(|error| bad(format!("{url}: {error}")))?;
    let host = request.uri().host().unwrap_or_default().to_owned();
    let allowed = inner.sandbox.check_host(&host, request.uri().port_u16());
    allowed.map_err(|problem| ("sandbox", problem))?;
    let within = match wanted.get::<Option<f64>>("timeout") {
        Ok(Some(seconds)) => duration(seconds).unwrap_or(Duration::from_secs(30)),
        _ => Duration::from_secs(30),
    };
    let client = inner.client();
    Ok(Reason::command(Run::new(async move {
        let failed = |problem: String| YieldError::Failed(format!("{url}: {problem}").into());
        let asked = async {
            let response = client
                .request(request)
                .await
                .map_err(|error| failed(error.to_string()))?;
            let (head, content) = response.into_parts();
            let content = body::read_all(content, LARGEST).await;
            let content = content.map_err(|error| failed(error.to_string()))?;
            let content = match String::from_utf8(content.to_vec()) {
                Ok(text) => Payload::from(text),
                Err(error) => Payload::from(error.into_bytes()),
            };
            let headers = head.headers.iter().map(|(name, value)| {
                let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
                (name.as_str().to_owned(), Payload::from(value))
            });
            Ok(Payload::map([
                ("status", Payload::Int(i64::from(head.status.as_u16()))),
                ("headers", Payload::map(headers)),
                ("body", content),
            ]))
        };
        match windlass_runtime::time::timeout(within, asked).await {
            Ok(answer) => answer,
            Err(_) => Err(failed(format!("no answer within {within:?}"))),
        }
    })))
}
