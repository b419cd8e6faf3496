//! The formatter: white space between tokens, and nothing else. Comments, the spelling of numbers and strings, what `/-`
//! switches off and the order of everything stay as they are.
//!
//! Four spaces per block; one space between values and before a comment at a line's end; at most one blank line; a block
//! that was written on one line stays on one, any other gets a line per brace. Line ends become LF, or CRLF where the first
//! one is. Nothing is aligned, and long lines stay long.

use crate::parser::parse;
use crate::problem::Problem;
use crate::token::{Token, TokenKind, tokens};
use std::sync::Arc;

/// `text` formatted. Formatting twice changes nothing more.
///
/// # Errors
/// The problems of a text that has any: white space that is safe to change can only be told where all is understood.
pub fn format(text: &str) -> Result<String, Vec<Problem>> {
    let parsed = parse(Arc::from(text));
    if !parsed.problems.is_empty() {
        return Err(parsed.problems);
    }
    let tokens = tokens(text);
    let first = tokens.iter().find(|token| token.kind == TokenKind::Newline);
    let crlf = first.is_some_and(|token| token.span.of(text) == "\r\n");
    let mut writer = Writer::new(text, crlf, one_line_blocks(text, &tokens));
    for token in &tokens {
        writer.token(*token);
    }
    Ok(writer.end())
}

/// For each `{` in order: whether its block holds no line end at all.
fn one_line_blocks(text: &str, tokens: &[Token]) -> Vec<bool> {
    let mut one_line = Vec::new();
    // For each open block its number and the number of line ends before it.
    let mut open = Vec::new();
    let mut lines = 0u32;
    for token in tokens {
        match token.kind {
            TokenKind::OpenBrace => {
                open.push((one_line.len(), lines));
                one_line.push(false);
            }
            TokenKind::CloseBrace => {
                if let Some((number, before)) = open.pop()
                    && let Some(block) = one_line.get_mut(number)
                {
                    *block = lines == before;
                }
            }
            TokenKind::Newline => lines += 1,
            TokenKind::MultiLine | TokenKind::RawMultiLine | TokenKind::BlockComment | TokenKind::Quoted => {
                let breaks =
                    token.span.of(text).contains(['\n', '\r', '\u{B}', '\u{C}', '\u{85}', '\u{2028}', '\u{2029}']);
                lines += u32::from(breaks);
            }
            _ => {}
        }
    }
    one_line
}

struct Writer<'t> {
    text: &'t str,
    out: String,
    newline: &'static str,
    one_line: Vec<bool>,
    braces: usize,
    /// For each open block whether it stays on one line.
    open: Vec<bool>,
    previous: Option<TokenKind>,
    /// Line ends and spaces since the previous token.
    newlines: u32,
    spaced: bool,
    /// A node has begun and not ended.
    in_node: bool,
    /// A `\` waits for its line end.
    escaping: bool,
    /// A `/-` waits for what it switches off, so line ends end nothing.
    slashdash: bool,
}

impl<'t> Writer<'t> {
    fn new(text: &'t str, crlf: bool, one_line: Vec<bool>) -> Self {
        Self {
            text,
            out: String::with_capacity(text.len() + text.len() / 8),
            newline: if crlf { "\r\n" } else { "\n" },
            one_line,
            braces: 0,
            open: Vec::new(),
            previous: None,
            newlines: 0,
            spaced: false,
            in_node: false,
            escaping: false,
            slashdash: false,
        }
    }

    fn token(&mut self, token: Token) {
        match token.kind {
            TokenKind::Space => self.spaced = true,
            TokenKind::Newline => {
                self.newlines += 1;
                match self.escaping {
                    true => self.escaping = false,
                    false if !self.slashdash => self.in_node = false,
                    false => {}
                }
            }
            TokenKind::Mark => self.out.push_str(token.span.of(self.text)),
            kind => {
                self.separate(kind);
                let spelling = token.span.of(self.text);
                self.out.push_str(if kind == TokenKind::LineComment { spelling.trim_end() } else { spelling });
                self.went_past(kind);
                self.previous = Some(kind);
                (self.newlines, self.spaced) = (0, false);
            }
        }
    }

    fn went_past(&mut self, kind: TokenKind) {
        match kind {
            TokenKind::OpenBrace => {
                self.open.push(self.one_line.get(self.braces).copied().unwrap_or(false));
                self.braces += 1;
                self.in_node = false;
            }
            TokenKind::CloseBrace => {
                self.open.pop();
                self.in_node = true;
            }
            TokenKind::Semicolon => self.in_node = false,
            TokenKind::Backslash => self.escaping = true,
            TokenKind::LineComment | TokenKind::BlockComment => return,
            TokenKind::Slashdash => {
                self.slashdash = true;
                return;
            }
            _ => self.in_node = true,
        }
        if kind != TokenKind::Backslash {
            self.slashdash = false;
        }
    }

    /// The white space between the previous token and one of kind `next`.
    fn separate(&mut self, next: TokenKind) {
        use TokenKind::{
            Backslash, BlockComment, CloseBrace, CloseParen, Equals, LineComment, OpenBrace, OpenParen, Semicolon,
            Slashdash,
        };
        let Some(previous) = self.previous else { return };
        let in_one_line = self.open.last().copied().unwrap_or(false);
        let kept = if self.spaced { " " } else { "" };
        let space = match (previous, next) {
            // An empty block has nothing inside, whatever stood there.
            (OpenBrace, CloseBrace) => "",
            (OpenBrace, _) | (_, CloseBrace) if in_one_line => " ",
            (_, CloseBrace) => return self.new_line(0, self.open.len().saturating_sub(1)),
            (OpenBrace, LineComment | BlockComment) if self.newlines == 0 => " ",
            (OpenBrace, _) => return self.new_line(0, self.open.len()),
            _ if self.newlines > 0 => {
                let depth = self.open.len() + usize::from(self.in_node);
                return self.new_line(self.newlines.min(2) - 1, depth);
            }
            (_, Semicolon | Equals | CloseParen) | (Equals | OpenParen | CloseParen, _)
                if previous != BlockComment && next != BlockComment && previous != Backslash && next != Backslash =>
            {
                ""
            }
            (_, LineComment) | (_, Backslash) | (Semicolon, _) => " ",
            (BlockComment | Slashdash, _) | (_, BlockComment) => kept,
            _ => " ",
        };
        self.out.push_str(space);
    }

    fn new_line(&mut self, blank: u32, depth: usize) {
        for _ in 0..=blank {
            self.out.push_str(self.newline);
        }
        for _ in 0..depth {
            self.out.push_str("    ");
        }
    }

    fn end(mut self) -> String {
        if self.previous.is_some() {
            self.out.push_str(self.newline);
        }
        self.out
    }
}
