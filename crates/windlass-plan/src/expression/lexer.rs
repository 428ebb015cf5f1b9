//! Text to tokens, each with its column.

use std::fmt;
use std::iter::Peekable;
use std::str::Chars;

use super::error::{ExpressionError, ExpressionErrorKind};

/// The smallest parts of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// Digits without a sign: at most [`LEAST_MAGNITUDE`], which only fits behind a minus.
    Int(u64),
    Float(f64),
    Text(String),
    Name(String),
    /// An operator or a bracket.
    Sign(&'static str),
    End,
}

/// The magnitude of the least whole number.
pub(super) const LEAST_MAGNITUDE: u64 = i64::MIN.unsigned_abs();

/// A token and where it begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SpannedToken {
    pub(super) token: Token,
    pub(super) column: usize,
}

/// All signs; the longer ones first.
const SIGNS: &[&str] = &[
    "==", "!=", "<=", ">=", "&&", "||", "+", "-", "*", "/", "%", "<", ">", "!", "?", ":", ".", ",",
    "(", ")", "[", "]", "{", "}",
];

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Int(number) => write!(f, "{number}"),
            Token::Float(number) => write!(f, "{number}"),
            Token::Text(_) => f.write_str("a text"),
            Token::Name(name) => f.write_str(name),
            Token::Sign(sign) => write!(f, "`{sign}`"),
            Token::End => f.write_str("the end"),
        }
    }
}

/// The tokens of a source; the last one is the end.
pub(super) fn tokens(source: &str) -> Result<Vec<SpannedToken>, ExpressionError> {
    let mut lexer = Lexer {
        chars: source.chars().peekable(),
        column: 1,
    };
    let mut found = Vec::new();
    loop {
        lexer.skip_blanks();
        let column = lexer.column;
        let token = lexer.token()?;
        let ended = token == Token::End;
        found.push(SpannedToken { token, column });
        if ended {
            return Ok(found);
        }
    }
}

struct Lexer<'a> {
    chars: Peekable<Chars<'a>>,
    column: usize,
}

impl Lexer<'_> {
    fn next(&mut self) -> Option<char> {
        let next = self.chars.next();
        self.column += usize::from(next.is_some());
        next
    }

    fn next_if(&mut self, wanted: impl Fn(char) -> bool) -> Option<char> {
        match self.chars.peek() {
            Some(&c) if wanted(c) => self.next(),
            _ => None,
        }
    }

    fn skip_blanks(&mut self) {
        while self.next_if(char::is_whitespace).is_some() {}
    }

    fn token(&mut self) -> Result<Token, ExpressionError> {
        match self.chars.peek().copied() {
            None => Ok(Token::End),
            Some('0'..='9') => self.number(),
            Some(quote @ ('\'' | '"')) => self.text(quote),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => Ok(self.name()),
            Some(c) => self.sign(c),
        }
    }

    fn name(&mut self) -> Token {
        let mut name = String::new();
        while let Some(c) = self.next_if(|c| c.is_ascii_alphanumeric() || c == '_') {
            name.push(c);
        }
        Token::Name(name)
    }

    fn sign(&mut self, first: char) -> Result<Token, ExpressionError> {
        let mut ahead = self.chars.clone();
        ahead.next();
        let second = ahead.next();
        let fits = |sign: &&&str| {
            let mut chars = sign.chars();
            chars.next() == Some(first) && chars.next().is_none_or(|c| Some(c) == second)
        };
        let column = self.column;
        let sign = SIGNS.iter().find(fits);
        let sign = sign
            .ok_or_else(|| ExpressionError::new(ExpressionErrorKind::Character(first), column))?;
        for _ in sign.chars() {
            self.next();
        }
        Ok(Token::Sign(sign))
    }

    fn digits(&mut self, text: &mut String) {
        while let Some(c) = self.next_if(|c| c.is_ascii_digit()) {
            text.push(c);
        }
    }

    fn number(&mut self) -> Result<Token, ExpressionError> {
        let column = self.column;
        let mut text = String::new();
        self.digits(&mut text);
        let mut whole = true;
        // A point belongs to the number if a digit follows: `1.5`, but not `list[1].name`.
        let mut ahead = self.chars.clone();
        if ahead.next() == Some('.') && ahead.next().is_some_and(|c| c.is_ascii_digit()) {
            whole = false;
            text.extend(self.next());
            self.digits(&mut text);
        }
        if let Some(e) = self.next_if(|c| matches!(c, 'e' | 'E')) {
            whole = false;
            text.push(e);
            text.extend(self.next_if(|c| matches!(c, '+' | '-')));
            self.digits(&mut text);
        }
        let token = match whole {
            true => {
                let number = text.parse().ok();
                number
                    .filter(|&number| number <= LEAST_MAGNITUDE)
                    .map(Token::Int)
            }
            false => {
                let number = text.parse().ok().filter(|number: &f64| number.is_finite());
                number.map(Token::Float)
            }
        };
        token.ok_or_else(|| ExpressionError::new(ExpressionErrorKind::Number(text), column))
    }

    fn text(&mut self, quote: char) -> Result<Token, ExpressionError> {
        let begin = self.column;
        self.next();
        let mut text = String::new();
        loop {
            let column = self.column;
            match self.next() {
                None => return Err(ExpressionError::new(ExpressionErrorKind::OpenText, begin)),
                Some(c) if c == quote => return Ok(Token::Text(text)),
                Some('\\') => {
                    let escaped = self.escaped();
                    let wrong = || ExpressionError::new(ExpressionErrorKind::Escape, column);
                    text.push(escaped.ok_or_else(wrong)?);
                }
                Some(c) => text.push(c),
            }
        }
    }

    fn escaped(&mut self) -> Option<char> {
        match self.next()? {
            'n' => Some('\n'),
            't' => Some('\t'),
            'r' => Some('\r'),
            c @ ('\\' | '\'' | '"') => Some(c),
            'u' => {
                let mut code = 0;
                for _ in 0..4 {
                    code = code * 16 + self.next()?.to_digit(16)?;
                }
                char::from_u32(code)
            }
            _ => None,
        }
    }
}
