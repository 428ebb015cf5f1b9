//! The nodes of a YAML document.

use std::rc::Rc;

use super::{Plain, Span};

/// A value in a document; aliases share it.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) value: Value,
    /// How many nodes it is when all aliases are written out.
    pub(crate) size: usize,
    /// How many levels it has; a scalar has one.
    pub(crate) depth: usize,
}

#[derive(Debug)]
pub(crate) enum Value {
    Scalar(Scalar),
    List(Vec<Rc<Node>>),
    /// No key is there twice.
    Map(Vec<Entry>),
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) value: Rc<Node>,
}

#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) span: Span,
}

#[derive(Debug, Clone)]
pub(crate) struct Scalar {
    pub(crate) text: String,
    pub(crate) style: Style,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Its text says what it is.
    Plain,
    /// A string, whatever it looks like.
    Text,
    /// The same, and it came from a parameter: where its place wants text it is text.
    Given,
    /// Text into which parameters were written: its place says what it is.
    Substituted,
}

impl Node {
    pub(crate) fn scalar(scalar: Scalar, span: Span) -> Node {
        Node {
            span,
            value: Value::Scalar(scalar),
            size: 1,
            depth: 1,
        }
    }

    pub(crate) fn list(items: Vec<Rc<Node>>, span: Span) -> Node {
        let (size, depth) = measure(items.iter());
        Node {
            span,
            value: Value::List(items),
            size,
            depth,
        }
    }

    pub(crate) fn map(entries: Vec<Entry>, span: Span) -> Node {
        let (size, depth) = measure(entries.iter().map(|entry| &entry.value));
        Node {
            span,
            value: Value::Map(entries),
            size,
            depth,
        }
    }

    /// The value of a key, if this is a map that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Rc<Node>> {
        match &self.value {
            Value::Map(entries) => entries
                .iter()
                .find(|entry| entry.key.text == key)
                .map(|entry| &entry.value),
            _ => None,
        }
    }

    /// Whether there is nothing here, as after `key:`.
    pub(crate) fn is_null(&self) -> bool {
        match &self.value {
            Value::Scalar(scalar) => {
                let says_what_it_is = matches!(scalar.style, Style::Plain | Style::Given);
                says_what_it_is && matches!(scalar.resolve(), Plain::Null)
            }
            _ => false,
        }
    }

    /// What it is, for messages.
    pub(crate) fn what(&self) -> String {
        let scalar = match &self.value {
            Value::List(_) => return "a list".to_owned(),
            Value::Map(_) => return "a map".to_owned(),
            Value::Scalar(scalar) => scalar,
        };
        let shown: String = scalar.text.chars().take(40).collect();
        match (scalar.style, scalar.resolve()) {
            (Style::Plain | Style::Given, Plain::Null) => "nothing".to_owned(),
            (Style::Plain | Style::Given, Plain::Bool(_)) => format!("the boolean {shown}"),
            (Style::Plain | Style::Given, Plain::Int(_) | Plain::Huge | Plain::Float(_)) => {
                format!("the number {shown}")
            }
            _ => format!("the string {shown:?}"),
        }
    }
}

impl Scalar {
    /// What its text says when it is read as a plain scalar.
    pub(crate) fn resolve(&self) -> Plain {
        Plain::of(&self.text)
    }
}

fn measure<'a>(children: impl Iterator<Item = &'a Rc<Node>>) -> (usize, usize) {
    children.fold((1, 1), |(size, depth), child| {
        (
            child.size.saturating_add(size),
            depth.max(child.depth.saturating_add(1)),
        )
    })
}
