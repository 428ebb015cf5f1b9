//! Tokens to a tree.

use windlass_value::Payload;

use super::error::{ExpressionError, ExpressionErrorKind};
use super::function::{Function, function_names};
use super::lexer::{LEAST_MAGNITUDE, SpannedToken, Token, tokens};
use super::scope::Names;
use super::tree::{Kind, Node, RANKS, Step, StepKind};
use crate::suggest::did_you_mean;

/// How deep brackets may be in each other.
pub(super) const DEPTH: usize = 64;

/// Reads a source.
pub(super) fn parse(
    source: &str,
    names: Names,
    constants: &[(&str, Payload)],
) -> Result<Node, ExpressionError> {
    let mut parser = Parser {
        tokens: tokens(source)?,
        place: 0,
        depth: 0,
        names,
        constants,
    };
    let node = parser.expression()?;
    match parser.peek().token {
        Token::End => Ok(node),
        _ => Err(parser.expected("an operator or the end")),
    }
}

struct Parser<'a> {
    tokens: Vec<SpannedToken>,
    place: usize,
    depth: usize,
    names: Names,
    constants: &'a [(&'a str, Payload)],
}

type ParseResult = Result<Node, ExpressionError>;

impl Parser<'_> {
    fn peek(&self) -> &SpannedToken {
        // The last token is the end, and is never taken.
        &self.tokens[self.place]
    }

    fn take(&mut self) -> SpannedToken {
        let taken = self.tokens[self.place].clone();
        if taken.token != Token::End {
            self.place += 1;
        }
        taken
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let fits = matches!(self.peek().token, Token::Sign(there) if there == sign);
        if fits {
            self.place += 1;
        }
        fits
    }

    fn demand(&mut self, sign: &str, wanted: &'static str) -> Result<(), ExpressionError> {
        match self.take_sign(sign) {
            true => Ok(()),
            false => Err(self.expected(wanted)),
        }
    }

    fn expected(&self, wanted: &'static str) -> ExpressionError {
        let SpannedToken { token, column } = self.peek();
        let found = token.to_string();
        ExpressionError::new(ExpressionErrorKind::Expected { wanted, found }, *column)
    }

    /// One level deeper, for as long as `parse` runs.
    fn deeper(&mut self, parse: impl FnOnce(&mut Self) -> ParseResult) -> ParseResult {
        if self.depth >= DEPTH {
            let kind = ExpressionErrorKind::TooDeep { most: DEPTH };
            return Err(ExpressionError::new(kind, self.peek().column));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn expression(&mut self) -> ParseResult {
        self.deeper(|parser| {
            let condition = parser.row(0)?;
            if !parser.take_sign("?") {
                return Ok(condition);
            }
            let then = parser.expression()?;
            parser.demand(":", "`:`")?;
            let otherwise = parser.expression()?;
            let column = condition.column;
            let kind = Kind::Choice(Box::new([condition, then, otherwise]));
            Ok(Node { kind, column })
        })
    }

    /// Operators of this rank, and those that bind closer.
    fn row(&mut self, rank: usize) -> ParseResult {
        let Some(operators) = RANKS.get(rank) else {
            return self.unary();
        };
        let first = self.row(rank + 1)?;
        let mut rest = Vec::new();
        while let Token::Sign(sign) = self.peek().token
            && let Some(&(_, operator)) = operators.iter().find(|(there, _)| *there == sign)
        {
            let column = self.take().column;
            rest.push((operator, column, self.row(rank + 1)?));
        }
        if rest.is_empty() {
            return Ok(first);
        }
        let column = first.column;
        let kind = Kind::Row(Box::new(first), rest);
        Ok(Node { kind, column })
    }

    fn unary(&mut self) -> ParseResult {
        let column = self.peek().column;
        let kind = match self.peek().token {
            Token::Sign("!") => Kind::Not,
            Token::Sign("-") => Kind::Minus,
            _ => return self.postfix(),
        };
        let sign = self.take().token;
        if sign == Token::Sign("-") && self.peek().token == Token::Int(LEAST_MAGNITUDE) {
            // Its magnitude alone is no whole number.
            self.take();
            let kind = Kind::Literal(Payload::from(i64::MIN));
            return Ok(Node { kind, column });
        }
        let inner = self.deeper(Self::unary)?;
        Ok(Node {
            kind: kind(Box::new(inner)),
            column,
        })
    }

    fn postfix(&mut self) -> ParseResult {
        let base = self.primary()?;
        let mut steps = Vec::new();
        loop {
            let column = self.peek().column;
            let kind = if self.take_sign(".") {
                let Token::Name(name) = &self.peek().token else {
                    return Err(self.expected("the name of a field"));
                };
                let field = StepKind::Field(name.as_str().into());
                self.take();
                field
            } else if self.take_sign("[") {
                let index = self.expression()?;
                self.demand("]", "`]`")?;
                StepKind::Index(index)
            } else {
                break;
            };
            steps.push(Step { kind, column });
        }
        if steps.is_empty() {
            return Ok(base);
        }
        let column = base.column;
        let kind = Kind::Path(Box::new(base), steps);
        Ok(Node { kind, column })
    }

    fn primary(&mut self) -> ParseResult {
        let column = self.peek().column;
        let kind = match &self.peek().token {
            Token::Int(number) => match i64::try_from(*number) {
                Ok(number) => Kind::Literal(Payload::from(number)),
                Err(_) => {
                    let kind = ExpressionErrorKind::Number(number.to_string());
                    return Err(ExpressionError::new(kind, column));
                }
            },
            Token::Float(number) => Kind::Literal(Payload::from(*number)),
            Token::Text(text) => Kind::Literal(Payload::from(text.as_str())),
            Token::Name(_) => return self.named(),
            Token::Sign("(") => {
                self.take();
                let inner = self.expression()?;
                self.demand(")", "`)`")?;
                return Ok(inner);
            }
            Token::Sign("[") => {
                self.take();
                let kind = Kind::List(self.until("]")?);
                return Ok(Node { kind, column });
            }
            Token::Sign("{") => return self.object(),
            _ => return Err(self.expected("a value")),
        };
        self.take();
        Ok(Node { kind, column })
    }

    /// Expressions with commas between them, up to this bracket.
    fn until(&mut self, end: &'static str) -> Result<Vec<Node>, ExpressionError> {
        let mut nodes = Vec::new();
        loop {
            if self.take_sign(end) {
                return Ok(nodes);
            }
            nodes.push(self.expression()?);
            if !self.take_sign(",") {
                let wanted = match end {
                    ")" => "`,` or `)`",
                    _ => "`,` or `]`",
                };
                self.demand(end, wanted)?;
                return Ok(nodes);
            }
        }
    }

    fn object(&mut self) -> ParseResult {
        let column = self.take().column;
        let mut fields = Vec::new();
        while !self.take_sign("}") {
            let key = match &self.peek().token {
                Token::Name(name) => name.clone(),
                Token::Text(text) => text.clone(),
                _ => return Err(self.expected("the name of a field, or `}`")),
            };
            self.take();
            self.demand(":", "`:`")?;
            fields.push((key.into(), self.expression()?));
            if !self.take_sign(",") {
                self.demand("}", "`,` or `}`")?;
                break;
            }
        }
        let kind = Kind::Object(fields);
        Ok(Node { kind, column })
    }

    /// A constant, a name, or a call.
    fn named(&mut self) -> ParseResult {
        let SpannedToken { token, column } = self.take();
        let name = token.to_string();
        if self.take_sign("(") {
            return self.call(&name, column);
        }
        let kind = match name.as_str() {
            "true" => Kind::Literal(Payload::Bool(true)),
            "false" => Kind::Literal(Payload::Bool(false)),
            "null" => Kind::Literal(Payload::Nil),
            _ => self
                .known(&name)
                .ok_or_else(|| ExpressionError::new(self.unknown(&name), column))?,
        };
        Ok(Node { kind, column })
    }

    /// Returns what a name stands for.
    fn known(&self, written: &str) -> Option<Kind> {
        let constant = self.constants.iter().find(|(known, _)| *known == written);
        match constant {
            Some((_, value)) => Some(Kind::Literal(value.clone())),
            None => self.names.named(written).map(Kind::Name),
        }
    }

    fn unknown(&self, written: &str) -> ExpressionErrorKind {
        let known: Vec<&str> = self.names.iter().collect();
        ExpressionErrorKind::Name {
            name: written.to_owned(),
            known: known.join(", "),
        }
    }

    fn call(&mut self, name: &str, column: usize) -> ParseResult {
        let unknown = || {
            let kind = ExpressionErrorKind::Function {
                name: name.to_owned(),
                hint: did_you_mean(name, function_names()).unwrap_or_default(),
            };
            ExpressionError::new(kind, column)
        };
        let function = Function::named(name).ok_or_else(unknown)?;
        let arguments = self.until(")")?;
        function
            .takes(arguments.len())
            .map_err(|kind| ExpressionError::new(kind, column))?;
        let kind = Kind::Call(function, arguments);
        Ok(Node { kind, column })
    }
}
