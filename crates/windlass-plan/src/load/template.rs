//! Templates: bodies with `{{name}}` in them.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::expand::Body;
use super::walk::{At, Walk};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::{Entry, Key, Node, Scalar, Span, Style, Value};

/// Substituted text may have this many times the bytes that a file may have.
const MAX_GROWTH: usize = 16;

/// One of `templates`.
pub(super) struct Template {
    parameters: Vec<String>,
    body: Body,
    /// Which nodes of the body have placeholders in them, in the order of [`Body::nodes`].
    varying: Vec<bool>,
}

/// What parameters are in an instance.
type Arguments = HashMap<String, Scalar>;

/// The templates by id.
pub(super) fn templates(walk: &mut Walk<'_>, at: &At<'_>) -> HashMap<String, Template> {
    let mut templates = HashMap::new();
    for (nth, node) in walk.items(at).iter().enumerate() {
        let at = walk.at(format!("templates[{nth}]"), node);
        let Some(mut fields) = walk.fields(at) else {
            continue;
        };
        let id_at = fields.need(walk, "id");
        let id = id_at.as_ref().and_then(|at| walk.id(at, None));
        let parameters_at = fields.get(walk, "parameters");
        let parameters = parameters_at.map_or_else(Vec::new, |at| parameters(walk, &at));
        let body = Body::read(walk, &mut fields);
        report_undeclared(walk, &fields.at, &body, &parameters);
        fields.finish(walk);
        let (Some(id), Some(id_at)) = (id, id_at) else {
            continue;
        };
        if templates.contains_key(&id) {
            let message = format!("there are two templates `{id}`");
            let diagnostic = Diagnostic::new(Code::DuplicateId, &id_at.path, message)
                .fix("give one of them another id");
            walk.report(diagnostic, Some(id_at.span));
            continue;
        }
        let varying = body.nodes().map(|node| has_placeholder(node)).collect();
        let template = Template {
            parameters,
            body,
            varying,
        };
        templates.insert(id, template);
    }
    templates
}

/// The names of a template's parameters.
fn parameters(walk: &mut Walk<'_>, at: &At<'_>) -> Vec<String> {
    let names = walk.texts(at);
    let mut seen = HashSet::new();
    for name in &names {
        if !seen.insert(name) {
            let message = format!("the parameter `{name}` is declared twice");
            walk.error(at, message, "declare it once");
        }
    }
    names
}

/// Reports placeholders without a parameter, once for all instances.
fn report_undeclared(walk: &mut Walk<'_>, at: &At<'_>, body: &Body, parameters: &[String]) {
    let declared: HashSet<&str> = parameters.iter().map(String::as_str).collect();
    let mut report = |text: &str, span: Span| {
        for piece in pieces(text) {
            if let Piece::Placeholder(name) = piece
                && !declared.contains(name)
            {
                let message =
                    format!("unknown parameter {{{{{name}}}}}: the template does not declare it");
                let known = parameters.iter().map(String::as_str);
                let fix = walk.suggest(name, known, || format!("add `{name}` to its parameters"));
                let path = &at.path;
                let diagnostic =
                    Diagnostic::new(Code::GraphValidationError, path, message).fix(fix);
                walk.report(diagnostic, Some(span));
            }
        }
    };
    for node in body.nodes() {
        each_text(node, &mut report);
    }
}

/// Calls with every key and scalar; a document is not deep, so recursion is fine.
fn each_text(node: &Node, visit: &mut impl FnMut(&str, Span)) {
    match &node.value {
        Value::Scalar(scalar) => visit(&scalar.text, node.span),
        Value::List(items) => items.iter().for_each(|item| each_text(item, visit)),
        Value::Map(entries) => {
            for entry in entries {
                visit(&entry.key.text, entry.key.span);
                each_text(&entry.value, visit);
            }
        }
    }
}

fn has_placeholder(node: &Node) -> bool {
    let mut found = false;
    each_text(node, &mut |text, _| found |= text.contains("{{"));
    found
}

/// The body of an instance, with what it gives for the template's parameters in it.
pub(super) fn instantiate(
    walk: &mut Walk<'_>,
    template: &Template,
    at: &At<'_>,
    given: Option<At<'_>>,
    room: &mut usize,
) -> Option<Body> {
    let arguments = arguments(walk, template, at, given);
    let mut substitution = Substitution {
        walk,
        arguments,
        at,
        room,
    };
    let mut varying = template.varying.iter();
    let body = template.body.map(|node| match varying.next() {
        Some(true) => substitution.node(node),
        _ => Rc::clone(node),
    });
    match substitution.room {
        0 => {
            let limit = room_for(walk);
            walk.over_limit(at, "text written for parameters", limit);
            None
        }
        _ => Some(body),
    }
}

/// How many bytes all instances together may write for their parameters.
pub(super) fn room_for(walk: &Walk<'_>) -> usize {
    walk.limits.input_bytes.saturating_mul(MAX_GROWTH)
}

fn arguments(
    walk: &mut Walk<'_>,
    template: &Template,
    at: &At<'_>,
    given: Option<At<'_>>,
) -> Arguments {
    let mut arguments = Arguments::new();
    let declared: HashSet<&str> = template.parameters.iter().map(String::as_str).collect();
    for (entry, field) in given
        .iter()
        .flat_map(|given| walk.entries(given))
        .collect::<Vec<_>>()
    {
        let name = &entry.key.text;
        if !declared.contains(name.as_str()) {
            let known = template.parameters.iter().map(String::as_str);
            let fix = walk.suggest(name, known, || "remove it".to_owned());
            let message = format!("unknown parameter {name:?}: the template does not declare it");
            walk.error(&field, message, fix);
            continue;
        }
        match &field.node.value {
            Value::Scalar(scalar) if scalar.text.len() > walk.limits.string_bytes => {
                walk.over_limit(&field, "string length", walk.limits.string_bytes);
            }
            Value::Scalar(scalar) => {
                arguments.insert(name.clone(), scalar.clone());
            }
            _ => walk.expected(&field, "a scalar", "a parameter stands for one value"),
        }
    }
    let present: HashSet<&str> = given
        .iter()
        .flat_map(|given| match &given.node.value {
            Value::Map(entries) => entries.as_slice(),
            _ => &[],
        })
        .map(|entry| entry.key.text.as_str())
        .collect();
    for name in &template.parameters {
        if !present.contains(name.as_str()) {
            let message = format!("missing parameter `{name}`");
            walk.error(at, message, format!("add `{name}` to `parameters`"));
        }
    }
    arguments
}

/// Writes arguments into one instance.
struct Substitution<'w, 'l, 'n> {
    walk: &'w mut Walk<'l>,
    arguments: Arguments,
    at: &'w At<'n>,
    /// Bytes that may still be written.
    room: &'w mut usize,
}

impl Substitution<'_, '_, '_> {
    fn node(&mut self, node: &Rc<Node>) -> Rc<Node> {
        match &node.value {
            Value::Scalar(scalar) if scalar.text.contains("{{") => {
                Rc::new(Node::scalar(self.scalar(scalar), node.span))
            }
            Value::Scalar(_) => Rc::clone(node),
            Value::List(items) => {
                let items = items.iter().map(|item| self.node(item)).collect();
                Rc::new(Node::list(items, node.span))
            }
            Value::Map(entries) => {
                let mut seen = HashSet::new();
                let mut changed = Vec::new();
                for entry in entries {
                    let key = self.key(&entry.key);
                    if !seen.insert(key.text.clone()) {
                        let message = format!("duplicate key {:?} after substitution", key.text);
                        let path = &self.at.path;
                        let diagnostic = Diagnostic::new(Code::GraphValidationError, path, message)
                            .fix("give the parameters different values");
                        self.walk.report(diagnostic, Some(key.span));
                        continue;
                    }
                    let value = self.node(&entry.value);
                    changed.push(Entry { key, value });
                }
                Rc::new(Node::map(changed, node.span))
            }
        }
    }

    fn key(&mut self, key: &Key) -> Key {
        let text = match key.text.contains("{{") {
            true => self.text(&key.text),
            false => key.text.clone(),
        };
        Key {
            text,
            span: key.span,
        }
    }

    /// A placeholder alone becomes the parameter's own scalar, with its type; otherwise it becomes
    /// text.
    fn scalar(&mut self, scalar: &Scalar) -> Scalar {
        if let [Piece::Placeholder(name)] = pieces(&scalar.text)[..]
            && let Some(argument) = self.arguments.get(name)
        {
            let mut argument = argument.clone();
            if argument.style == Style::Plain {
                argument.style = Style::Given;
            }
            *self.room = self.room.saturating_sub(argument.text.len());
            return argument;
        }
        Scalar {
            text: self.text(&scalar.text),
            style: Style::Substituted,
        }
    }

    fn text(&mut self, text: &str) -> String {
        let mut written = String::new();
        for piece in pieces(text) {
            if *self.room == 0 {
                break;
            }
            let piece = match piece {
                Piece::Text(text) => text,
                // Without an argument there is an error already.
                Piece::Placeholder(name) => self.arguments.get(name).map_or("", |a| &a.text),
            };
            written.push_str(piece);
            *self.room = self.room.saturating_sub(piece.len());
        }
        written
    }
}

/// A part of a text that may have placeholders in it.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'t> {
    Text(&'t str),
    Placeholder(&'t str),
}

/// Takes a text apart. Two braces that are never closed are text.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{")
        && let Some((name, after)) = after.split_once("}}")
    {
        if !before.is_empty() {
            pieces.push(Piece::Text(before));
        }
        pieces.push(Piece::Placeholder(name.trim()));
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::{Piece, pieces};

    #[test]
    fn texts_are_taken_apart_at_their_placeholders() {
        use Piece::{Placeholder, Text};
        assert_eq!(pieces("{{a}}"), [Placeholder("a")]);
        assert_eq!(
            pieces("x{{ a }}y{{b}}"),
            [Text("x"), Placeholder("a"), Text("y"), Placeholder("b")]
        );
        assert_eq!(pieces("{{a"), [Text("{{a")]);
        assert_eq!(pieces("a}}"), [Text("a}}")]);
        assert_eq!(pieces(""), []);
    }
}
