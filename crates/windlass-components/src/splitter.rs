//! Bytes as they come to lines of a bounded length.

/// Cuts bytes into lines; a line that is longer than the limit is thrown away and reported.
#[derive(Debug)]
pub(crate) struct Splitter {
    buffer: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to where there is no newline.
    seen: usize,
    most: usize,
    /// In a line that is too long.
    skipping: bool,
}

/// A line without its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Whole(Vec<u8>),
    /// It was longer than allowed; this is how it began.
    TooLong(Vec<u8>),
}

/// How much of a line that is too long is kept to be shown.
const KEPT: usize = 256;

impl Splitter {
    pub(crate) fn new(most: usize) -> Splitter {
        Splitter {
            buffer: Vec::new(),
            start: 0,
            seen: 0,
            most,
            skipping: false,
        }
    }

    /// Adds what has come.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.seen -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next line, if it has come whole, or is too long already.
    pub(crate) fn next(&mut self) -> Option<Line> {
        loop {
            let end = self.buffer[self.seen..]
                .iter()
                .position(|&byte| byte == b'\n');
            let Some(end) = end.map(|end| self.seen + end) else {
                self.seen = self.buffer.len();
                return self.overlong();
            };
            let line = self.take(end);
            self.start = end + 1;
            self.seen = self.start;
            if !std::mem::take(&mut self.skipping) {
                return Some(line);
            }
        }
    }

    /// What came after the last newline, at the end.
    pub(crate) fn rest(&mut self) -> Option<Line> {
        let line = self.take(self.buffer.len());
        let empty = self.start == self.buffer.len();
        self.start = self.buffer.len();
        self.seen = self.start;
        match empty || std::mem::take(&mut self.skipping) {
            true => None,
            false => Some(line),
        }
    }

    fn take(&self, end: usize) -> Line {
        let line = &self.buffer[self.start..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match line.len() > self.most {
            true => Line::TooLong(line[..line.len().min(KEPT)].to_vec()),
            false => Line::Whole(line.to_vec()),
        }
    }

    /// A line without an end that is too long is reported at once, and thrown away up to its end.
    fn overlong(&mut self) -> Option<Line> {
        let begun = &self.buffer[self.start..];
        // One more may be the carriage return of its end.
        if begun.len() <= self.most + 1 {
            return None;
        }
        let kept = begun[..begun.len().min(KEPT)].to_vec();
        self.buffer.clear();
        (self.start, self.seen) = (0, 0);
        match std::mem::replace(&mut self.skipping, true) {
            true => None,
            false => Some(Line::TooLong(kept)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&str], most: usize) -> Vec<String> {
        let mut splitter = Splitter::new(most);
        let mut found = Vec::new();
        let mut add = |line| {
            found.push(match line {
                Line::Whole(line) => String::from_utf8(line).unwrap(),
                Line::TooLong(line) => format!("<{}>", String::from_utf8(line).unwrap()),
            });
        };
        for piece in pieces {
            splitter.push(piece.as_bytes());
            while let Some(line) = splitter.next() {
                add(line);
            }
        }
        splitter.rest().into_iter().for_each(add);
        found
    }

    #[test]
    fn lines_do_not_depend_on_how_the_bytes_come() {
        let text = "one\ntwo\r\n\nlast";
        let expected = ["one", "two", "", "last"];
        assert_eq!(lines(&[text], 10), expected);
        for cut in 0..text.len() {
            assert_eq!(lines(&[&text[..cut], &text[cut..]], 10), expected);
        }
        let letters: Vec<&str> = text.split("").collect();
        assert_eq!(lines(&letters, 10), expected);
    }

    #[test]
    fn a_line_that_is_too_long_is_told_once_and_the_next_is_whole() {
        let text = "ab\nabcdefghijk\nxyz\n";
        assert_eq!(lines(&[text], 3), ["ab", "<abcdefghijk>", "xyz"]);
        let letters: Vec<&str> = text.split("").collect();
        assert_eq!(lines(&letters, 3), ["ab", "<abcde>", "xyz"]);
        assert_eq!(lines(&["abcdef"], 3), ["<abcdef>"]);
        assert_eq!(lines(&["abc\r\n"], 3), ["abc"]);
    }
}
