//! An expression as a tree.
//!
//! What stands in a row (`a + b - c`, `value.a.b`) is one node with a list, so that the depth of
//! the tree is that of the brackets, and going through it needs little stack.

use std::sync::Arc;

use windlass_value::Payload;

use super::function::Function;
use super::scope::Name;

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

impl Node {
    /// Returns true if this part of an expression uses a name.
    pub(super) fn uses(&self, name: Name) -> bool {
        match &self.kind {
            Kind::Literal(_) => false,
            Kind::Name(used) => *used == name,
            Kind::List(nodes) | Kind::Call(_, nodes) => nodes.iter().any(|node| node.uses(name)),
            Kind::Object(fields) => fields.iter().any(|(_, node)| node.uses(name)),
            Kind::Path(base, steps) => {
                let is_used =
                    |step: &Step| matches!(&step.kind, StepKind::Index(index) if index.uses(name));
                base.uses(name) || steps.iter().any(is_used)
            }
            Kind::Not(inner) | Kind::Minus(inner) => inner.uses(name),
            Kind::Row(first, rest) => {
                first.uses(name) || rest.iter().any(|(_, _, node)| node.uses(name))
            }
            Kind::Choice(nodes) => nodes.iter().any(|node| node.uses(name)),
        }
    }
}

/// A step into a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    pub(super) kind: StepKind,
    pub(super) column: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum StepKind {
    Field(Payload),
    Index(Node),
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
