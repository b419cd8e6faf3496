//! Splits a file of SQL into its statements: at every `;` that is not inside a quote, a comment, parentheses or the body
//! of an SQL-standard function, as psql does. Pure.
//!
//! `COPY … FROM STDIN` takes the lines that follow it up to `\.`, as dumps have them. Other commands of psql (`\connect`,
//! `\set`) are not SQL and are refused by line.

/// One statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Statement<'a> {
    /// From its first word on, without the `;`. Comments before it are left out.
    pub(super) text: &'a str,
    /// The line of its first word, from 1.
    pub(super) line: usize,
    /// The lines of `COPY … FROM STDIN`.
    pub(super) copied: Option<&'a str>,
}

impl Statement<'_> {
    /// The line of the `position`-th character of the statement (from 1), which is how PostgreSQL tells where an error is.
    pub(super) fn line_of(&self, position: u32) -> usize {
        let before = self.text.chars().take(position.saturating_sub(1) as usize);
        self.line + before.filter(|&c| c == '\n').count()
    }
}

/// A text that can't be split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotSql {
    /// Where it begins, from 1.
    pub(super) line: usize,
    /// What is wrong, as a sentence.
    pub(super) what: String,
}

/// The statements of a text, in order.
///
/// # Errors
/// Where a quote, comment or parenthesis is not closed, where a `COPY` has no end, at a command of psql.
pub(super) fn statements(text: &str) -> Result<Vec<Statement<'_>>, NotSql> {
    // Some editors put a byte order mark before the text.
    let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut splitter = Splitter { text, at, statements: Vec::new(), begin: None, depth: 0, words: Words::default() };
    splitter.split()?;
    Ok(splitter.statements)
}

struct Splitter<'a> {
    text: &'a str,
    at: usize,
    statements: Vec<Statement<'a>>,
    /// Where the current statement's first word is.
    begin: Option<usize>,
    /// Open parentheses.
    depth: usize,
    words: Words,
}

/// What the words of a statement tell about where it ends.
#[derive(Default)]
struct Words {
    /// The first words, in lower case.
    first: Vec<String>,
    /// Open `BEGIN ATOMIC` and, within them, `CASE`.
    blocks: usize,
    /// The last word.
    last: String,
    /// Whether `FROM STDIN` was among them.
    from_stdin: bool,
}

impl Words {
    fn take(&mut self, word: &str) {
        let word = word.to_ascii_lowercase();
        if self.makes_routine() {
            match word.as_str() {
                "atomic" if self.last == "begin" => self.blocks += 1,
                "case" if self.blocks > 0 => self.blocks += 1,
                "end" => self.blocks = self.blocks.saturating_sub(1),
                _ => {}
            }
        }
        if self.first.len() < 4 {
            self.first.push(word.clone());
        }
        self.from_stdin |= self.last == "from" && word == "stdin";
        self.last = word;
    }

    fn makes_routine(&self) -> bool {
        let words: Vec<&str> = self.first.iter().map(String::as_str).collect();
        matches!(
            words.as_slice(),
            ["create", "function" | "procedure", ..] | ["create", "or", "replace", "function" | "procedure", ..]
        )
    }
}

impl<'a> Splitter<'a> {
    fn split(&mut self) -> Result<(), NotSql> {
        while let Some(&byte) = self.text.as_bytes().get(self.at) {
            let start = self.at;
            let rest = &self.text[start..];
            match byte {
                _ if byte.is_ascii_whitespace() => {
                    self.at += 1;
                    continue;
                }
                b'-' if rest.starts_with("--") => {
                    self.at += rest.find('\n').unwrap_or(rest.len());
                    continue;
                }
                b'/' if rest.starts_with("/*") => {
                    self.block_comment()?;
                    continue;
                }
                b'\'' => self.quote('\'', self.is_escape_string(), "a string")?,
                b'"' => self.quote('"', false, "a quoted name")?,
                b'$' => self.dollar()?,
                b'(' => self.depth += 1,
                b')' => self.depth = self.depth.saturating_sub(1),
                b'\\' if self.begin.is_none() => {
                    let command = rest.split_whitespace().next().unwrap_or(rest);
                    return Err(self.wrong(start, format!("`{command}` is a command of psql, not SQL; remove it")));
                }
                b';' if self.depth == 0 && self.words.blocks == 0 => {
                    self.at += 1;
                    self.end(start)?;
                    continue;
                }
                _ if is_word_start(byte) => {
                    let length = rest.bytes().take_while(|&byte| is_word(byte)).count();
                    self.words.take(&rest[..length]);
                    self.at += length - 1;
                }
                _ => {}
            }
            self.begin.get_or_insert(start);
            // A quote or word is left at its last byte, so that one step is right for everything.
            self.at += 1;
        }
        if self.depth > 0
            && let Some(begin) = self.begin
        {
            return Err(self.wrong(begin, "the statement has a `(` that is never closed".to_owned()));
        }
        self.end(self.text.len())
    }

    /// Ends the current statement before `end`.
    fn end(&mut self, end: usize) -> Result<(), NotSql> {
        let words = std::mem::take(&mut self.words);
        let Some(begin) = self.begin.take() else { return Ok(()) };
        let text = self.text[begin..end].trim_end();
        let line = self.line(begin);
        let is_copy = words.first.first().is_some_and(|word| word == "copy");
        let copied = if is_copy && words.from_stdin { Some(self.copied(begin)?) } else { None };
        self.statements.push(Statement { text, line, copied });
        Ok(())
    }

    /// The lines up to `\.`, which stand behind the statement's own line.
    fn copied(&mut self, begin: usize) -> Result<&'a str, NotSql> {
        let open = || self.wrong(begin, "the lines of the `COPY` are not ended by a line `\\.`".to_owned());
        let first = self.at + self.text[self.at..].find('\n').ok_or_else(open)? + 1;
        let mut at = first;
        for line in self.text[first..].split_inclusive('\n') {
            if line.trim_end_matches(['\r', '\n']) == "\\." {
                self.at = at + line.len();
                return Ok(&self.text[first..at]);
            }
            at += line.len();
        }
        Err(open())
    }

    /// Whether the quote here begins `E'…'`, in which a backslash escapes.
    fn is_escape_string(&self) -> bool {
        let before = &self.text.as_bytes()[..self.at];
        let e = before.last().is_some_and(|byte| byte.eq_ignore_ascii_case(&b'e'));
        e && !before.iter().rev().nth(1).is_some_and(|&byte| is_word(byte))
    }

    /// Goes to the closing quote; a doubled one is a character.
    fn quote(&mut self, quote: char, escapes: bool, what: &str) -> Result<(), NotSql> {
        let start = self.at;
        let mut characters = self.text[start + 1..].char_indices().peekable();
        while let Some((offset, c)) = characters.next() {
            if escapes && c == '\\' {
                characters.next();
            } else if c == quote && characters.next_if(|&(_, next)| next == quote).is_none() {
                self.at = start + 1 + offset;
                return Ok(());
            }
        }
        Err(self.wrong(start, format!("{what} is never closed")))
    }

    /// Goes to the end of `$tag$ … $tag$`, if one begins here.
    fn dollar(&mut self) -> Result<(), NotSql> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        if start > 0 && is_word(bytes[start - 1]) {
            return Ok(());
        }
        let length = bytes[start + 1..].iter().take_while(|&&byte| is_word(byte) && byte != b'$').count();
        let first = bytes.get(start + 1).copied().unwrap_or(b' ');
        if bytes.get(start + 1 + length) != Some(&b'$') || first.is_ascii_digit() {
            return Ok(());
        }
        let tag = &self.text[start..start + length + 2];
        match self.text[start + tag.len()..].find(tag) {
            Some(offset) => {
                self.at = start + tag.len() + offset + tag.len() - 1;
                Ok(())
            }
            None => Err(self.wrong(start, format!("the body quoted by `{tag}` is never closed"))),
        }
    }

    /// Goes behind a comment; comments of this kind nest.
    fn block_comment(&mut self) -> Result<(), NotSql> {
        let start = self.at;
        let mut depth = 0usize;
        while self.at < self.text.len() {
            let rest = &self.text.as_bytes()[self.at..];
            if rest.starts_with(b"/*") {
                depth += 1;
                self.at += 2;
            } else if rest.starts_with(b"*/") {
                depth -= 1;
                self.at += 2;
                if depth == 0 {
                    return Ok(());
                }
            } else {
                self.at += 1;
            }
        }
        Err(self.wrong(start, "a comment `/*` is never closed".to_owned()))
    }

    fn line(&self, at: usize) -> usize {
        1 + self.text.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count()
    }

    fn wrong(&self, at: usize, what: String) -> NotSql {
        NotSql { line: self.line(at), what }
    }
}

fn is_word_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn is_word(byte: u8) -> bool {
    is_word_start(byte) || byte.is_ascii_digit() || byte == b'$'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_where_psql_does() {
        for (text, expected) in [
            ("", vec![]),
            (" \n-- only a comment; with a semicolon\n/* and ; another */", vec![]),
            (";;  ;", vec![]),
            ("SELECT 1", vec![(1, "SELECT 1")]),
            ("SELECT 1; SELECT 2 ;\n\n SELECT 3\n;", vec![(1, "SELECT 1"), (1, "SELECT 2"), (3, "SELECT 3")]),
            ("-- first\nSELECT 1; -- ; no\nSELECT 2", vec![(2, "SELECT 1"), (3, "SELECT 2")]),
            ("SELECT 1 -- ;\n, 2;", vec![(1, "SELECT 1 -- ;\n, 2")]),
            ("/* a /* nested; */ b; */ SELECT 1;", vec![(1, "SELECT 1")]),
            ("SELECT ';', 'it''s;', \"a;\"\"b\";", vec![(1, "SELECT ';', 'it''s;', \"a;\"\"b\"")]),
            (r"SELECT E'\';', e'\\';SELECT 2", vec![(1, r"SELECT E'\';', e'\\'"), (1, "SELECT 2")]),
            (r"SELECT '\'; SELECT 2", vec![(1, r"SELECT '\'"), (1, "SELECT 2")]),
            (r"SELECT table'\'; SELECT 2", vec![(1, r"SELECT table'\'"), (1, "SELECT 2")]),
            ("DO $$ BEGIN a; END; $$; SELECT 2", vec![(1, "DO $$ BEGIN a; END; $$"), (1, "SELECT 2")]),
            ("DO $x$ $$ ; $y$ ; $x$;SELECT 2", vec![(1, "DO $x$ $$ ; $y$ ; $x$"), (1, "SELECT 2")]),
            ("SELECT $1; SELECT a$b$; SELECT 3", vec![(1, "SELECT $1"), (1, "SELECT a$b$"), (1, "SELECT 3")]),
            (
                "CREATE RULE r AS ON INSERT TO t DO (a; b); SELECT 2",
                vec![(1, "CREATE RULE r AS ON INSERT TO t DO (a; b)"), (1, "SELECT 2")],
            ),
            (
                "CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC\nSELECT CASE WHEN true THEN 1 END;\nSELECT 2; END; SELECT 3",
                vec![
                    (
                        1,
                        "CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC\nSELECT CASE WHEN true THEN 1 END;\nSELECT 2; END",
                    ),
                    (3, "SELECT 3"),
                ],
            ),
            ("BEGIN; SELECT 1; END; SELECT 2", vec![(1, "BEGIN"), (1, "SELECT 1"), (1, "END"), (1, "SELECT 2")]),
            ("SELECT 'é𝄞;';\nSELECT é", vec![(1, "SELECT 'é𝄞;'"), (2, "SELECT é")]),
            ("\u{feff}SELECT 1", vec![(1, "SELECT 1")]),
        ] {
            let found = statements(text).map(|all| all.iter().map(|one| (one.line, one.text)).collect::<Vec<_>>());
            assert_eq!(found, Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_copy_takes_its_lines() {
        let text = "COPY t (a) FROM stdin;\n1\tx;\n2\t'\n\\.\nSELECT 1;\nCOPY t FROM '/stdin';\nCOPY t TO stdout";
        let found = statements(text).expect("SQL");
        assert_eq!(
            found.iter().map(|one| (one.line, one.copied)).collect::<Vec<_>>(),
            [(1, Some("1\tx;\n2\t'\n")), (5, None), (6, None), (7, None)]
        );
        assert_eq!(statements("COPY t FROM STDIN WITH (FORMAT csv);\n\\.").expect("SQL")[0].copied, Some(""));
    }

    #[test]
    fn what_is_never_closed_is_named_by_line() {
        for (text, line, says) in [
            ("SELECT 1;\nSELECT 'a;\n", 2, "a string is never closed"),
            ("SELECT \"a", 1, "a quoted name is never closed"),
            ("\n/* /* */", 2, "a comment `/*` is never closed"),
            ("SELECT 1;\n\nDO $do$ $$", 3, "`$do$` is never closed"),
            ("\nSELECT (1;", 2, "a `(` that is never closed"),
            ("COPY t FROM STDIN;\n1\n", 1, "not ended by a line `\\.`"),
            ("COPY t FROM STDIN;", 1, "not ended by a line `\\.`"),
            ("SELECT 1;\n\\connect other\n", 2, "`\\connect` is a command of psql"),
        ] {
            let error = statements(text).expect_err(text);
            assert_eq!(error.line, line, "{text}");
            assert!(error.what.contains(says), "{text}: {}", error.what);
        }
    }

    #[test]
    fn a_position_becomes_a_line_of_the_file() {
        let text = "\nSELECT 'é',\n  nothing\nFROM t;";
        let statement = statements(text).expect("SQL")[0];
        assert_eq!((statement.line, statement.line_of(1), statement.line_of(15)), (2, 2, 3));
        assert_eq!(statement.line_of(u32::MAX), 4);
    }
}
