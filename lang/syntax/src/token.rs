//! Tokens: the text cut into pieces, all of it, white space and comments too. It knows KDL v2 and the habits of other
//! formats, which get kinds of their own so that the parser can say what was meant.

use crate::chars::{self, CLASS, class, line_end, newline_len, skip_space, space_len, word_len};
use crate::value::is_number;
use crate::{Span, strings};

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TokenKind {
    /// The byte order mark at byte 0.
    Mark,
    /// White space within a line.
    Space,
    /// One line end.
    Newline,
    /// `// …` without the line end.
    LineComment,
    /// `/* … */`, nested ones included.
    BlockComment,
    /// `\`, which takes the line end after it.
    Backslash,
    /// `/-`
    Slashdash,
    /// `{`
    OpenBrace,
    /// `}`
    CloseBrace,
    /// `(`
    OpenParen,
    /// `)`
    CloseParen,
    /// `=`
    Equals,
    /// `;`
    Semicolon,
    /// A word: a string without quotes.
    Bare,
    /// `"…"`
    Quoted,
    /// `"""`, lines, `"""`
    MultiLine,
    /// `#"…"#`
    Raw,
    /// `#"""`, lines, `"""#`
    RawMultiLine,
    /// A number that is spelled right; it may still be too large.
    Number,
    /// `#true`, `#false`, `#null`, `#inf`, `#-inf`, `#nan`
    Keyword,
    /// Not KDL: a keyword without `#`.
    BareKeyword,
    /// Not KDL: something that starts like a number and is none, such as `10s`, `115%`, `0-3`, `64/s`.
    Quantity,
    /// Not KDL: a bare word with `/`, such as `./x`, `a/b`, `http://x`.
    Path,
    /// Not KDL: a bare word with `${…}`.
    Variable,
    /// Not KDL: `'…'`.
    SingleQuoted,
    /// KDL v1: `r"…"`, `r#"…"#`.
    OldRaw,
    /// Not KDL: `#` and what follows it, neither keyword nor raw string.
    Hash,
    /// A string that has no end, or is wrong inside. The reader has complained.
    BrokenString,
    /// A character that has no business where it is, or is banned.
    Stray,
}

impl TokenKind {
    /// Whether it stands for a string in KDL, be it broken.
    pub(crate) fn is_string(self) -> bool {
        use TokenKind::{
            Bare, BrokenString, MultiLine, OldRaw, Path, Quoted, Raw, RawMultiLine, SingleQuoted, Variable,
        };
        matches!(
            self,
            Bare | Quoted | MultiLine | Raw | RawMultiLine | BrokenString | Path | Variable | SingleQuoted | OldRaw
        )
    }

    /// Whether it stands for a value, be it broken.
    pub(crate) fn is_value(self) -> bool {
        use TokenKind::{BareKeyword, Keyword, Number, Quantity};
        self.is_string() || matches!(self, Number | Keyword | BareKeyword | Quantity)
    }

    /// Whether it is white space, a line end or a byte order mark: what a formatter may change.
    #[must_use]
    pub fn is_white(self) -> bool {
        matches!(self, Self::Space | Self::Newline | Self::Mark)
    }
}

/// A piece of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Where it is.
    pub span: Span,
}

/// All tokens of `text`. Each starts where the one before ends, the first at 0, the last ends with the text.
#[must_use]
pub fn tokens(text: &str) -> Vec<Token> {
    let mut lexer = Lexer::new(text);
    let mut tokens = Vec::with_capacity(text.len() / 4 + 1);
    let mut start = 0;
    while let Some(kind) = lexer.next() {
        tokens.push(Token { kind, span: Span::from(start..lexer.at) });
        start = lexer.at;
    }
    tokens
}

/// What the lexer alone can see to be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LexProblem {
    /// A string that does not end on its line; how many `#` it would end with.
    OpenString,
    /// A `"""` without its end.
    OpenLines,
    /// `/*` without its end.
    OpenComment,
    /// Something wrong inside a string.
    Inside(strings::BadString),
}

/// Searches for an end that is not there cost the rest of the text each; after so many of them the rest belongs to the
/// string that has no end.
const SEARCHES: u32 = 8;

pub(crate) struct Lexer<'t> {
    text: &'t str,
    bytes: &'t [u8],
    /// Where the next token starts.
    pub(crate) at: usize,
    /// What was wrong with the last token.
    pub(crate) wrong: Option<LexProblem>,
    failed_searches: u32,
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, bytes: text.as_bytes(), at: 0, wrong: None, failed_searches: 0 }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    /// The kind of the next token; afterwards `at` is its end.
    pub(crate) fn next(&mut self) -> Option<TokenKind> {
        self.wrong = None;
        let start = self.at;
        let first = self.byte(start)?;
        let one = |lexer: &mut Self, kind| {
            lexer.at = start + 1;
            Some(kind)
        };
        match first {
            b' ' | b'\t' => {
                self.at = skip_space(self.bytes, start + 1, false);
                Some(TokenKind::Space)
            }
            b'\n' => one(self, TokenKind::Newline),
            b'{' => one(self, TokenKind::OpenBrace),
            b'}' => one(self, TokenKind::CloseBrace),
            b'(' => one(self, TokenKind::OpenParen),
            b')' => one(self, TokenKind::CloseParen),
            b'=' => one(self, TokenKind::Equals),
            b';' => one(self, TokenKind::Semicolon),
            b'\\' => one(self, TokenKind::Backslash),
            b'[' | b']' => one(self, TokenKind::Stray),
            b'"' => Some(self.quoted(start)),
            b'#' => Some(self.hash(start)),
            b'/' => Some(self.slash(start)),
            _ => Some(self.other(start, first)),
        }
    }

    fn other(&mut self, start: usize, first: u8) -> TokenKind {
        let space = space_len(self.bytes, start);
        if space > 0 {
            self.at = skip_space(self.bytes, start + space, false);
            return TokenKind::Space;
        }
        let newline = newline_len(self.bytes, start);
        if newline > 0 {
            self.at = start + newline;
            return TokenKind::Newline;
        }
        if start == 0 && self.text.starts_with('\u{FEFF}') {
            self.at = 3;
            return TokenKind::Mark;
        }
        if word_len(self.bytes, start) == 0 {
            let c = self.text.get(start..).and_then(|rest| rest.chars().next());
            self.at = start + c.map_or(1, char::len_utf8);
            return TokenKind::Stray;
        }
        if first == b'\''
            && let Some(end) = self.single_quoted(start)
        {
            self.at = end;
            return TokenKind::SingleQuoted;
        }
        self.word(start, start)
    }

    /// `'…'` where a delimiter follows the second quote. Not looked for beyond 128 bytes, so that a line of many `'` costs no
    /// more than its length.
    fn single_quoted(&self, start: usize) -> Option<usize> {
        let mut at = start + 1;
        while at < self.bytes.len().min(start + 128) && newline_len(self.bytes, at) == 0 {
            if self.byte(at) == Some(b'\'') && word_len(self.bytes, at + 1) == 0 {
                return Some(at + 1);
            }
            at += 1;
        }
        None
    }

    /// A word from `start`, whose characters up to `at` are known to belong to it.
    fn word(&mut self, start: usize, at: usize) -> TokenKind {
        let bytes = self.bytes;
        let mut at = at;
        let (mut path, mut url, mut variable) = (false, false, false);
        loop {
            while let Some(&b) = bytes.get(at) {
                if CLASS[b as usize] == class::WORD {
                    at += 1;
                } else {
                    let len = word_len(bytes, at);
                    if len == 0 {
                        break;
                    }
                    at += len;
                }
            }
            match self.byte(at) {
                Some(b'/') => match self.byte(at + 1) {
                    Some(b'/') if url || is_scheme(&bytes[start..at]) => {
                        (path, url) = (true, true);
                        at += 2;
                    }
                    Some(b'/' | b'*' | b'-') => break,
                    _ => {
                        path = true;
                        at += 1;
                    }
                },
                Some(b'{') if bytes[..at].last() == Some(&b'$') && at > start => match variable_end(bytes, at) {
                    Some(end) => {
                        variable = true;
                        at = end;
                    }
                    None => break,
                },
                // A query or fragment belongs to the address.
                Some(b'=' | b'#') if url => at += 1,
                _ => break,
            }
        }
        self.at = at;
        let word = self.text.get(start..at).unwrap_or("");
        let numeric = starts_like_number(word.as_bytes());
        if variable {
            return TokenKind::Variable;
        }
        if numeric {
            return if is_number(word) { TokenKind::Number } else { TokenKind::Quantity };
        }
        if path {
            return TokenKind::Path;
        }
        match word {
            "true" | "false" | "null" | "inf" | "-inf" | "nan" => TokenKind::BareKeyword,
            "r" => self.old_raw(start).unwrap_or(TokenKind::Bare),
            _ => TokenKind::Bare,
        }
    }

    /// `r"…"` and `r#"…"#` of KDL v1.
    fn old_raw(&mut self, start: usize) -> Option<TokenKind> {
        let hashes = self.hashes(start + 1);
        let open = start + 1 + hashes;
        if self.byte(open) != Some(b'"') {
            return None;
        }
        self.at = self.raw_end(open + 1, true, hashes, 1)?;
        Some(TokenKind::OldRaw)
    }

    fn slash(&mut self, start: usize) -> TokenKind {
        match self.byte(start + 1) {
            Some(b'/') => {
                self.at = line_end(self.bytes, start);
                TokenKind::LineComment
            }
            Some(b'*') => self.block_comment(start),
            Some(b'-') => {
                self.at = start + 2;
                TokenKind::Slashdash
            }
            _ if word_len(self.bytes, start + 1) > 0 => self.word(start, start),
            // `GET=/`: the shortest path there is.
            Some(b' ' | b'\t' | b'\n' | b'\r' | b';' | b'}' | b'{') | None => {
                self.at = start + 1;
                TokenKind::Path
            }
            _ => {
                self.at = start + 1;
                TokenKind::Stray
            }
        }
    }

    fn block_comment(&mut self, start: usize) -> TokenKind {
        let mut depth = 1u32;
        let mut at = start + 2;
        while depth > 0 {
            match (self.byte(at), self.byte(at + 1)) {
                (Some(b'*'), Some(b'/')) => {
                    depth -= 1;
                    at += 2;
                }
                (Some(b'/'), Some(b'*')) => {
                    depth += 1;
                    at += 2;
                }
                (Some(_), _) => at += 1,
                (None, _) => {
                    self.wrong = Some(LexProblem::OpenComment);
                    break;
                }
            }
        }
        self.at = at.min(self.bytes.len());
        TokenKind::BlockComment
    }

    fn quoted(&mut self, start: usize) -> TokenKind {
        if self.bytes.get(start..start + 3) == Some(b"\"\"\"") {
            return self.lines(start, start + 3, 0);
        }
        let mut at = start + 1;
        let mut escapes = false;
        loop {
            match self.byte(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escapes = true;
                    let white = skip_space(self.bytes, at + 1, true);
                    // What follows `\` belongs to it; the rest of a longer character is passed as what it is.
                    at = if white > at + 1 { white } else { at + 2 };
                }
                Some(b' '..0x80) => at += 1,
                Some(_) if newline_len(self.bytes, at) == 0 => at += 1,
                _ => return self.open_string(start),
            }
        }
        self.at = at + 1;
        match escapes {
            true => self.checked(start, TokenKind::Quoted),
            false => TokenKind::Quoted,
        }
    }

    /// A string without an end on its line takes the rest of the line.
    fn open_string(&mut self, start: usize) -> TokenKind {
        self.at = line_end(self.bytes, start);
        self.wrong = Some(LexProblem::OpenString);
        TokenKind::BrokenString
    }

    fn checked(&mut self, start: usize, kind: TokenKind) -> TokenKind {
        match strings::check(self.text.get(start..self.at).unwrap_or("")) {
            Ok(()) => kind,
            Err(bad) => {
                self.wrong = Some(LexProblem::Inside(bad));
                TokenKind::BrokenString
            }
        }
    }

    fn hashes(&self, at: usize) -> usize {
        self.bytes.get(at..).unwrap_or(&[]).iter().take_while(|&&b| b == b'#').count()
    }

    /// `#…`: a keyword, a raw string, or neither.
    fn hash(&mut self, start: usize) -> TokenKind {
        let hashes = self.hashes(start);
        let open = start + hashes;
        if self.bytes.get(open..open + 3) == Some(b"\"\"\"") {
            return self.lines(start, open + 3, hashes);
        }
        if self.byte(open) == Some(b'"') {
            return match self.raw_end(open + 1, true, hashes, 1) {
                Some(at) => {
                    self.at = at;
                    TokenKind::Raw
                }
                None => self.open_string(start),
            };
        }
        let mut at = open;
        while word_len(self.bytes, at) > 0 {
            at += word_len(self.bytes, at);
        }
        self.at = at;
        match self.text.get(start..at) {
            Some("#true" | "#false" | "#null" | "#inf" | "#-inf" | "#nan") => TokenKind::Keyword,
            _ => TokenKind::Hash,
        }
    }

    /// Where `quotes` quotes and `hashes` hashes end that start at `from` or later, on that line if `one_line`.
    fn raw_end(&self, from: usize, one_line: bool, hashes: usize, quotes: usize) -> Option<usize> {
        let mut at = from;
        loop {
            match self.byte(at)? {
                b'"' => {
                    let (quote, hash) = self.bytes.get(at..at + quotes + hashes)?.split_at(quotes);
                    if quote.iter().all(|&b| b == b'"') && hash.iter().all(|&b| b == b'#') {
                        return Some(at + quotes + hashes);
                    }
                }
                _ if one_line && newline_len(self.bytes, at) > 0 => return None,
                _ => {}
            }
            at += 1;
        }
    }

    /// The end of `"""` with escapes, on the line of `from` if `one_line`.
    fn lines_end(&self, from: usize, one_line: bool) -> Option<usize> {
        let mut at = from;
        loop {
            match self.byte(at)? {
                b'\\' => at += 1,
                b'"' if self.bytes.get(at..at + 3) == Some(b"\"\"\"") => return Some(at + 3),
                _ if one_line && newline_len(self.bytes, at) > 0 => return None,
                _ => {}
            }
            at += 1;
        }
    }

    /// A string of several lines whose body starts at `body`.
    fn lines(&mut self, start: usize, body: usize, hashes: usize) -> TokenKind {
        let kind = if hashes > 0 { TokenKind::RawMultiLine } else { TokenKind::MultiLine };
        let search = |lexer: &Self, one_line: bool| match hashes {
            0 => lexer.lines_end(body, one_line),
            _ => lexer.raw_end(body, one_line, hashes, 3),
        };
        // Text after the opening quotes: most likely it was to end on this line.
        let own_line = match newline_len(self.bytes, body) {
            0 => search(self, true),
            _ => None,
        };
        let whole = self.bytes.len();
        let found = match own_line {
            None if self.failed_searches < SEARCHES => search(self, false),
            found => found,
        };
        if let Some(end) = found {
            self.at = end;
            return self.checked(start, kind);
        }
        self.failed_searches += 1;
        self.wrong = Some(LexProblem::OpenLines);
        self.at = match self.failed_searches < SEARCHES {
            true => self.probable_end(start, body),
            false => whole,
        };
        TokenKind::BrokenString
    }

    /// Where a `"""` without an end probably was to end: before the first line that is not indented deeper than the line it
    /// starts on.
    fn probable_end(&self, start: usize, body: usize) -> usize {
        let mut first = start;
        while first > 0 && newline_len(self.bytes, first - 1) == 0 {
            first -= 1;
        }
        let indent = skip_space(self.bytes, first, false) - first;
        let mut end = line_end(self.bytes, body);
        loop {
            let line = end + newline_len(self.bytes, end);
            if line >= self.bytes.len() {
                return line.min(self.bytes.len());
            }
            let text = skip_space(self.bytes, line, false);
            let blank = text >= self.bytes.len() || newline_len(self.bytes, text) > 0;
            if !blank && text - line <= indent {
                return end;
            }
            end = line_end(self.bytes, line);
        }
    }
}

/// Whether a word that starts so has to be a number: a digit after an optional sign and an optional dot.
fn starts_like_number(word: &[u8]) -> bool {
    let word = word.strip_prefix(b"-").or_else(|| word.strip_prefix(b"+")).unwrap_or(word);
    let word = word.strip_prefix(b".").unwrap_or(word);
    word.first().is_some_and(u8::is_ascii_digit)
}

/// Whether `word` is `name:`, the start of an address (RFC 3986, 3.1).
fn is_scheme(word: &[u8]) -> bool {
    matches!(word, [first, middle @ .., b':'] if first.is_ascii_alphabetic()
        && middle.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.')))
}

/// Where `{name}` at `at` ends, if that is what stands there.
fn variable_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at + 1..)?;
    let name = rest.iter().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b':')).count();
    (name > 0 && rest.get(name) == Some(&b'}')).then_some(at + name + 2)
}

/// The places of all banned characters of `text`, for which most texts are passed once and quickly.
pub(crate) fn banned(text: &str) -> Vec<Span> {
    let bytes = text.as_bytes();
    let suspicious = |b: u8| (b < b' ' && !matches!(b, b'\t'..=b'\r')) || b == 0x7F || b == 0xE2 || b == 0xEF;
    let mut found = Vec::new();
    // Blocks let the first test run on many bytes at once.
    for (block, chunk) in bytes.chunks(64).enumerate() {
        if !chunk.iter().fold(false, |any, &b| any | suspicious(b)) {
            continue;
        }
        for at in block * 64..block * 64 + chunk.len() {
            let len = chars::banned_len(bytes, at);
            if len > 0 {
                found.push(Span::from(at..at + len));
            }
        }
    }
    found
}
