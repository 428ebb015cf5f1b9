//! `gsub`: the matches of a pattern, replaced.
//!
//! With a text it is done here and at once. With a function or a table, `drive.lua` asks for one
//! match after the other and says what becomes of it.

use mlua::{AnyUserData, IntoLuaMulti, Lua, LuaString, MultiValue, Table, UserData, Value};

use super::arguments::{Arguments, PatternError, type_name};
use super::library::{answered, with_captures};
use super::matcher::{CaptureValue, Match, Matcher};
use super::steps::{PatternProblem, Steps};

/// A longer result is refused: it is built where the memory limit of the state does not see it.
const MAX_RESULT: usize = 64 << 20;

/// What is kept here while functions of scripts run, who may never come back; more goes into a Lua
/// table, where it counts as memory of the script.
const MAX_KEPT: usize = 4096;

/// What has become of the text so far.
#[derive(Debug, Default)]
struct Output {
    bytes: Vec<u8>,
    /// Bytes of the result that are elsewhere.
    elsewhere: usize,
    /// Bytes of the subject that it has an answer for.
    covered: usize,
}

impl Output {
    fn append(&mut self, bytes: &[u8]) -> Result<(), PatternProblem> {
        if self.elsewhere + self.bytes.len() + bytes.len() > MAX_RESULT {
            return Err("the result is too long".into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Takes the subject as it is, up to here.
    fn keep(&mut self, subject: &[u8], end: usize) -> Result<(), PatternProblem> {
        self.append(&subject[self.covered..end])?;
        self.covered = end;
        Ok(())
    }

    /// Has this instead of a match.
    fn replace(
        &mut self,
        subject: &[u8],
        found: Match,
        bytes: &[u8],
    ) -> Result<(), PatternProblem> {
        self.keep(subject, found.start)?;
        self.append(bytes)?;
        self.covered = found.end;
        Ok(())
    }

    /// Moves what is here into a table, if it is much.
    fn unload(&mut self, lua: &Lua, pieces: &Table) -> mlua::Result<()> {
        if self.bytes.len() > MAX_KEPT {
            pieces.raw_push(lua.create_string(&self.bytes)?)?;
            self.elsewhere += self.bytes.len();
            self.bytes = Vec::new();
        }
        Ok(())
    }

    /// Puts what was moved in front again.
    fn load(&mut self, pieces: &Table) -> mlua::Result<()> {
        if self.elsewhere == 0 {
            return Ok(());
        }
        let mut whole = Vec::with_capacity(self.elsewhere + self.bytes.len());
        for piece in pieces.sequence_values::<LuaString>() {
            whole.extend_from_slice(&piece?.as_bytes());
        }
        whole.append(&mut self.bytes);
        self.bytes = whole;
        self.elsewhere = 0;
        Ok(())
    }
}

/// Where a `gsub` is.
#[derive(Debug)]
struct GsubProgress {
    output: Output,
    count: i64,
    most: i64,
    /// The last match, if there was one.
    last: Option<Match>,
    /// Whether anything is different from the subject.
    changed: bool,
}

impl GsubProgress {
    fn new(most: i64) -> GsubProgress {
        GsubProgress {
            output: Output::default(),
            count: 0,
            most,
            last: None,
            changed: false,
        }
    }

    fn next(&mut self, matcher: &mut Matcher<'_>) -> Result<Option<Match>, PatternProblem> {
        let over = self.count >= self.most || (matcher.is_anchored() && self.count > 0);
        if over {
            return Ok(None);
        }
        let before = self.last.map(|found| found.end);
        let found = matcher.search(before.unwrap_or(0), before)?;
        if found.is_some() {
            self.count += 1;
            self.last = found;
        }
        Ok(found)
    }

    /// The text with all that was replaced, and how often.
    fn results(&mut self, lua: &Lua, subject: &LuaString) -> Result<MultiValue, PatternError> {
        let text = match self.changed {
            true => {
                let bytes = subject.as_bytes();
                self.output.keep(&bytes, bytes.len())?;
                lua.create_string(&self.output.bytes)?
            }
            false => subject.clone(),
        };
        Ok((true, text, self.count).into_lua_multi(lua)?)
    }
}

/// A `gsub` that a function or a table of the script has its say in. Holds nothing of Lua's.
pub(super) struct Substitution {
    course: GsubProgress,
    steps: Steps,
    /// How many captures it wants: a table is asked for the first only, and the others may be
    /// unfinished.
    captures: usize,
}

impl UserData for Substitution {}

/// Begins `gsub`; does all of it if the replacement is a text. Else it gives nil, and what
/// `drive.lua` goes on with.
pub(super) fn substitute(arguments: &mut Arguments<'_>) -> Result<MultiValue, PatternError> {
    let (subject, pattern) = (arguments.take_text(1)?, arguments.take_text(2)?);
    let (bytes, pattern_bytes) = (subject.as_bytes(), pattern.as_bytes());
    let most = arguments.integer(4, bytes.len() as i64 + 1)?;
    let steps = Steps::new(&bytes, &pattern_bytes);
    match arguments.get(3) {
        Some(Value::String(_) | Value::Integer(_) | Value::Number(_)) => {
            let matcher = Matcher::new(&bytes, &pattern_bytes, steps);
            let mut course = GsubProgress::new(most);
            replace_all(
                &mut course,
                matcher,
                &bytes,
                &arguments.take_text(3)?.as_bytes(),
            )?;
            course.results(arguments.lua, &subject)
        }
        Some(replacement @ (Value::Table(_) | Value::Function(_))) => {
            let is_function = replacement.is_function();
            let work = Substitution {
                course: GsubProgress::new(most),
                steps,
                captures: if is_function { usize::MAX } else { 1 },
            };
            let work = arguments.lua.create_userdata(work)?;
            let replacement = replacement.clone();
            let values = (Value::Nil, subject, pattern, work, replacement, is_function);
            Ok(values.into_lua_multi(arguments.lua)?)
        }
        _ => Err(arguments.wrong_type(3, "string/function/table")),
    }
}

fn replace_all(
    course: &mut GsubProgress,
    mut matcher: Matcher<'_>,
    subject: &[u8],
    replacement: &[u8],
) -> Result<(), PatternProblem> {
    let as_it_is = !replacement.contains(&b'%');
    while let Some(found) = course.next(&mut matcher)? {
        course.changed = true;
        match as_it_is {
            true => course.output.replace(subject, found, replacement)?,
            false => {
                course.output.replace(subject, found, b"")?;
                expand(&mut course.output, &mut matcher, found, replacement)?;
            }
        }
    }
    Ok(())
}

/// Appends a replacement, with captures where it names them.
fn expand(
    output: &mut Output,
    matcher: &mut Matcher<'_>,
    found: Match,
    replacement: &[u8],
) -> Result<(), PatternProblem> {
    let mut rest = replacement;
    while let Some(at) = rest.iter().position(|&byte| byte == b'%') {
        // A long replacement can be made of captures that are empty.
        matcher.steps().spend(1 + at / 8)?;
        output.append(&rest[..at])?;
        let Some(&named) = rest.get(at + 1) else {
            return Err(invalid_use());
        };
        match named {
            b'%' => output.append(b"%")?,
            b'0'..=b'9' => match named_capture(matcher, found, usize::from(named - b'0'))? {
                CaptureValue::Text(text) => output.append(text)?,
                CaptureValue::Position(place) => output.append(place.to_string().as_bytes())?,
            },
            _ => return Err(invalid_use()),
        }
        rest = &rest[at + 2..];
    }
    output.append(rest)
}

fn invalid_use() -> PatternProblem {
    "invalid use of '%' in replacement string".into()
}

/// `%0` is the match, and so is `%1` if there are no captures.
fn named_capture<'a>(
    matcher: &Matcher<'a>,
    found: Match,
    number: usize,
) -> Result<CaptureValue<'a>, PatternProblem> {
    match number {
        0 => Ok(CaptureValue::Text(matcher.text(found))),
        1 if matcher.captures() == 0 => Ok(CaptureValue::Text(matcher.text(found))),
        _ if number > matcher.captures() => Err(format!("invalid capture index %{number}").into()),
        _ => matcher.capture(number - 1),
    }
}

/// What `drive.lua` says at each turn; the value is what the last match becomes, if there was one.
type AdvanceArguments = (AnyUserData, LuaString, LuaString, Table, Value);

/// Replaces the last match and looks for the next: nil and its captures, or the results.
pub(super) fn advance(
    lua: &Lua,
    (holder, subject, pattern, pieces, value): AdvanceArguments,
) -> mlua::Result<MultiValue> {
    let turn = |work: &mut Substitution| go_on(lua, work, &subject, &pattern, &pieces, value);
    let answer = turn(&mut *holder.borrow_mut()?);
    let goes_on = matches!(&answer, Ok(values) if values.front().is_some_and(Value::is_nil));
    if !goes_on {
        // What was collected does not wait for the garbage collector, which does not see how much
        // it is.
        holder.destroy()?;
    }
    answered(lua, answer)
}

fn go_on(
    lua: &Lua,
    work: &mut Substitution,
    subject: &LuaString,
    pattern: &LuaString,
    pieces: &Table,
    value: Value,
) -> Result<MultiValue, PatternError> {
    let bytes = subject.as_bytes();
    if let Some(found) = work.course.last {
        settle(lua, &mut work.course, &bytes, found, value)?;
        work.course.output.unload(lua, pieces)?;
    }
    let pattern = pattern.as_bytes();
    let mut matcher = Matcher::new(&bytes, &pattern, work.steps);
    let found = work.course.next(&mut matcher)?;
    work.steps = *matcher.steps();
    match found {
        Some(found) => with_captures(lua, Value::Nil, &matcher, found, work.captures),
        None => {
            work.course.output.load(pieces)?;
            work.course.results(lua, subject)
        }
    }
}

/// Has the value of a function or a table instead of a match; nil and false leave it.
fn settle(
    lua: &Lua,
    course: &mut GsubProgress,
    subject: &[u8],
    found: Match,
    value: Value,
) -> Result<(), PatternError> {
    let text = match &value {
        Value::Nil | Value::Boolean(false) => return Ok(()),
        Value::String(text) => Some(text.clone()),
        Value::Integer(_) | Value::Number(_) => lua.coerce_string(value.clone())?,
        _ => None,
    };
    let Some(text) = text else {
        let kind = type_name(&value);
        return Err(PatternProblem::from(format!("invalid replacement value (a {kind})")).into());
    };
    course.changed = true;
    course.output.replace(subject, found, &text.as_bytes())?;
    Ok(())
}
