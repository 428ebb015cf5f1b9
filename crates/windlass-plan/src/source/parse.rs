//! From text to nodes.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, StrInput, Tag};

use super::{Entry, Key, Node, Scalar, Span, Style};
use crate::limits::Limits;

/// How deep lists and maps may be in each other, so that code that walks the nodes
/// may use the stack.
const MAX_DEPTH: usize = 64;

/// What is wrong with the text.
#[derive(Debug)]
pub(crate) struct SourceError {
    pub(crate) message: String,
    pub(crate) fix: String,
    /// As far as the nodes had been opened.
    pub(crate) path: String,
    pub(crate) span: Span,
}

/// The root of the only document in a text, and what is wrong with it. No root: it could not be
/// read to its end.
pub(crate) fn parse(text: &str, limits: &Limits) -> (Option<Rc<Node>>, Vec<SourceError>) {
    let mut building = Building::new(text, limits);
    match building.run(text) {
        Ok(root) => (Some(root), building.errors),
        Err(error) => {
            building.errors.push(*error);
            (None, building.errors)
        }
    }
}

/// A list or map whose end was not seen yet.
enum Open {
    List {
        start: Span,
        anchor: usize,
        items: Vec<Rc<Node>>,
    },
    Map {
        start: Span,
        anchor: usize,
        entries: Vec<Entry>,
        seen: HashSet<String>,
        /// The key whose value comes next.
        key: Option<Key>,
    },
}

struct Building<'a> {
    limits: &'a Limits,
    offsets: Offsets,
    open: Vec<Open>,
    anchors: HashMap<usize, Rc<Node>>,
    aliases: usize,
    /// Nodes so far, with aliases written out.
    nodes: usize,
    root: Option<Rc<Node>>,
    errors: Vec<SourceError>,
}

/// Boxed: it is rare, and large.
type Step<T> = Result<T, Box<SourceError>>;

impl<'a> Building<'a> {
    fn new(text: &str, limits: &'a Limits) -> Building<'a> {
        Building {
            limits,
            offsets: Offsets::new(text),
            open: Vec::new(),
            anchors: HashMap::new(),
            aliases: 0,
            nodes: 0,
            root: None,
            errors: Vec::new(),
        }
    }

    fn run(&mut self, text: &str) -> Step<Rc<Node>> {
        // The parser would take the mark of byte order for a character of the first key.
        let body = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut parser = Parser::new(StrInput::new(body));
        let mut documents = 0;
        while let Some(event) = parser.next_event() {
            let (event, place) = event.map_err(|error| self.syntax(&error))?;
            let span = Span {
                start: self.offsets.of(place.start),
                end: self.offsets.of(place.end),
            };
            match event {
                Event::DocumentStart(_) => {
                    documents += 1;
                    if documents > 1 {
                        return Err(self.error(
                            span,
                            "a graph file holds one YAML document, and here a second one begins",
                            "put each graph in a file of its own",
                        ));
                    }
                }
                Event::StreamEnd => break,
                event => self.event(event, span)?,
            }
        }
        match self.root.take() {
            Some(root) if !root.is_null() => Ok(root),
            _ => Err(self.error(
                Span::default(),
                "the graph file is empty",
                "begin with `schema_version: 2`",
            )),
        }
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Step<()> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let style = self.style(style, tag.as_deref(), span)?;
                let text = text.into_owned();
                let node = Rc::new(Node::scalar(Scalar { text, style }, span));
                self.anchor(anchor, &node);
                self.count(1, span)?;
                self.place(node)
            }
            Event::SequenceStart(anchor, tag) => {
                self.collection_tag(tag.as_deref(), "seq", span)?;
                self.open(Open::List {
                    start: span,
                    anchor,
                    items: Vec::new(),
                })
            }
            Event::MappingStart(anchor, tag) => {
                self.collection_tag(tag.as_deref(), "map", span)?;
                self.open(Open::Map {
                    start: span,
                    anchor,
                    entries: Vec::new(),
                    seen: HashSet::new(),
                    key: None,
                })
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span),
            Event::Alias(anchor) => self.alias(anchor, span),
            _ => Ok(()),
        }
    }

    fn open(&mut self, open: Open) -> Step<()> {
        let (Open::List { start, .. } | Open::Map { start, .. }) = &open;
        let start = *start;
        if self.open.len() >= MAX_DEPTH {
            return Err(self.too_deep(start));
        }
        if let Some(Open::Map { key: None, .. }) = self.open.last() {
            return Err(self.error(
                start,
                "a key has to be a scalar, not a list or a map",
                "quote a placeholder: \"{{name}}\"",
            ));
        }
        self.count(1, start)?;
        self.open.push(open);
        Ok(())
    }

    fn close(&mut self, end: Span) -> Step<()> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let (node, anchor) = match open {
            Open::List {
                start,
                anchor,
                items,
            } => {
                let last = items.last().map(|item| item.span);
                (Node::list(items, whole(start, last, end)), anchor)
            }
            Open::Map {
                start,
                anchor,
                entries,
                ..
            } => {
                let last = entries
                    .last()
                    .map(|entry| entry.key.span.to(entry.value.span));
                (Node::map(entries, whole(start, last, end)), anchor)
            }
        };
        let node = Rc::new(node);
        self.anchor(anchor, &node);
        self.place(node)
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Step<()> {
        self.aliases += 1;
        if self.aliases > self.limits.aliases {
            let message = format!("alias count exceeds limit {}", self.limits.aliases);
            return Err(self.error(span, message, "write the values out"));
        }
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            return Err(self.error(
                span,
                "this alias refers to the value that it is part of",
                "write the value out",
            ));
        };
        if self.open.len() + node.depth > MAX_DEPTH + 1 {
            return Err(self.too_deep(span));
        }
        self.count(node.size, span)?;
        self.place(node)
    }

    /// Puts a finished node where it belongs.
    fn place(&mut self, node: Rc<Node>) -> Step<()> {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Map {
                entries, seen, key, ..
            }) => match key.take() {
                Some(key) => {
                    // Of two values the first counts; the second was reported.
                    if seen.insert(key.text.clone()) {
                        entries.push(Entry { key, value: node });
                    }
                }
                None => return self.key(&node),
            },
        }
        Ok(())
    }

    fn key(&mut self, node: &Node) -> Step<()> {
        let super::Value::Scalar(scalar) = &node.value else {
            return Err(self.error(node.span, "a key has to be a scalar", "write it out"));
        };
        let path = self.path();
        let Some(Open::Map { seen, key, .. }) = self.open.last_mut() else {
            return Ok(());
        };
        if seen.contains(&scalar.text) {
            self.errors.push(SourceError {
                message: format!("duplicate key {:?}", scalar.text),
                fix: "remove one of the two".to_owned(),
                path,
                span: node.span,
            });
        }
        *key = Some(Key {
            text: scalar.text.clone(),
            span: node.span,
        });
        Ok(())
    }

    fn anchor(&mut self, anchor: usize, node: &Rc<Node>) {
        if anchor != 0 {
            self.anchors.insert(anchor, Rc::clone(node));
        }
    }

    /// Counts nodes as if aliases were written out: a few lines must not become millions of values.
    fn count(&mut self, nodes: usize, span: Span) -> Step<()> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > self.limits.input_bytes {
            let limit = self.limits.input_bytes;
            let message = format!("node count, with aliases written out, exceeds limit {limit}");
            return Err(self.error(span, message, "use fewer aliases"));
        }
        Ok(())
    }

    fn style(&self, style: ScalarStyle, tag: Option<&Tag>, span: Span) -> Step<Style> {
        let Some(tag) = tag else {
            return Ok(match style {
                ScalarStyle::Plain => Style::Plain,
                _ => Style::Text,
            });
        };
        match tag.suffix.as_str() {
            "str" if tag.is_yaml_core_schema() => Ok(Style::Text),
            "int" | "float" | "bool" | "null" if tag.is_yaml_core_schema() => Ok(Style::Plain),
            _ => Err(self.unknown_tag(tag, span)),
        }
    }

    fn collection_tag(&self, tag: Option<&Tag>, suffix: &str, span: Span) -> Step<()> {
        match tag {
            Some(tag) if !(tag.is_yaml_core_schema() && tag.suffix == suffix) => {
                Err(self.unknown_tag(tag, span))
            }
            _ => Ok(()),
        }
    }

    fn unknown_tag(&self, tag: &Tag, span: Span) -> Box<SourceError> {
        let message = format!("the tag {tag} is not supported");
        self.error(span, message, "remove the tag")
    }

    fn too_deep(&self, span: Span) -> Box<SourceError> {
        let message = format!("nesting depth exceeds limit {MAX_DEPTH}");
        self.error(span, message, "use fewer levels of lists and maps")
    }

    fn syntax(&self, error: &ScanError) -> Box<SourceError> {
        let at = self.offsets.of(*error.marker());
        let span = Span { start: at, end: at };
        // The parser reads ahead, and so may stop before the depth is seen here.
        if error.info().contains("recursion limit") {
            return self.too_deep(span);
        }
        self.error(span, format!("not valid YAML: {}", error.info()), "")
    }

    fn error(&self, span: Span, message: impl Into<String>, fix: &str) -> Box<SourceError> {
        Box::new(SourceError {
            message: message.into(),
            fix: fix.to_owned(),
            path: self.path(),
            span,
        })
    }

    /// The path to what is being read.
    fn path(&self) -> String {
        let mut path = String::new();
        for open in &self.open {
            match open {
                Open::List { items, .. } => path.push_str(&format!("[{}]", items.len())),
                Open::Map { key: Some(key), .. } if path.is_empty() => path.push_str(&key.text),
                Open::Map { key: Some(key), .. } => path.push_str(&format!(".{}", key.text)),
                Open::Map { key: None, .. } => {}
            }
        }
        path
    }
}

/// A list or map begins where its first event was and ends with its bracket or with its last part:
/// the end of one without brackets is reported where the next thing begins.
fn whole(start: Span, last: Option<Span>, end: Span) -> Span {
    match last {
        _ if end.end > end.start => start.to(end),
        Some(last) => start.to(last),
        None => start,
    }
}

/// From the parser's places, which count characters, to bytes.
struct Offsets {
    /// The byte of each character; empty if each is one byte.
    bytes: Vec<usize>,
    /// What comes before the text that the parser sees.
    skipped: usize,
    len: usize,
}

impl Offsets {
    fn new(text: &str) -> Offsets {
        let body = text.strip_prefix('\u{feff}').unwrap_or(text);
        let bytes = match body.is_ascii() {
            true => Vec::new(),
            false => body.char_indices().map(|(at, _)| at).collect(),
        };
        Offsets {
            bytes,
            skipped: text.len() - body.len(),
            len: body.len(),
        }
    }

    fn of(&self, marker: Marker) -> usize {
        let at = match self.bytes.is_empty() {
            true => marker.index().min(self.len),
            false => self.bytes.get(marker.index()).copied().unwrap_or(self.len),
        };
        self.skipped + at
    }
}
