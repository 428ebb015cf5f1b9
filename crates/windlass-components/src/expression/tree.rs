//! An expression as a tree.
//!
//! What stands in a row (`a + b - c`, `value.a.b`) is one node with a list, so that the depth of the tree is that of
//! the brackets, and going through it needs little stack.

use std::sync::Arc;

use windlass_graph::Payload;

use super::function::Function;

/// A part of an expression and where it begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) column: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Literal(Payload),
    Name(Name),
    List(Vec<Node>),
    Object(Vec<(Arc<str>, Node)>),
    /// A value and the way into it.
    Path(Box<Node>, Vec<Step>),
    Not(Box<Node>),
    Minus(Box<Node>),
    /// Operators of the same rank, from the left to the right.
    Row(Box<Node>, Vec<(Operator, usize, Node)>),
    /// A condition, what it is if that holds, and what otherwise.
    Choice(Box<[Node; 3]>),
    Call(&'static Function, Vec<Node>),
}

/// A step into a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    pub(super) into: Into,
    pub(super) column: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Into {
    Field(Payload),
    Index(Node),
}

/// What an expression can speak of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    Value,
    Values,
    Epoch,
    NowMs,
    Port,
    EventMs,
}

/// What stands between two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// The operators by rank: what stands later binds closer.
pub(super) const RANKS: &[&[(&str, Operator)]] = &[
    &[("||", Operator::Or)],
    &[("&&", Operator::And)],
    &[("==", Operator::Equal), ("!=", Operator::NotEqual)],
    &[
        ("<", Operator::Less),
        ("<=", Operator::LessOrEqual),
        (">", Operator::Greater),
        (">=", Operator::GreaterOrEqual),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[
        ("*", Operator::Multiply),
        ("/", Operator::Divide),
        ("%", Operator::Remainder),
    ],
];

impl Operator {
    /// As it is written.
    pub(super) fn sign(self) -> &'static str {
        let mut all = RANKS.iter().copied().flatten();
        all.find(|(_, operator)| *operator == self)
            .map_or("", |(sign, _)| sign)
    }
}

impl Name {
    /// All names; `values` only where there is a window.
    pub(super) const ALL: [(&'static str, Name); 6] = [
        ("value", Name::Value),
        ("epoch", Name::Epoch),
        ("now_ms", Name::NowMs),
        ("port", Name::Port),
        ("event_ms", Name::EventMs),
        ("values", Name::Values),
    ];
}
