//! What to say about each mistake: the message, the help, the fix. The parser decides that it is one.

use crate::chars::line_end;
use crate::problem::{Kind, Problem};
use crate::strings::{BadString, quote};
use crate::token::LexProblem;
use crate::value::{BadNumber, is_number};
use crate::{Span, TokenKind, strings};

/// As much of `text` as a message can take.
fn shown(text: &str) -> String {
    let line = text.lines().next().unwrap_or("");
    match line.char_indices().nth(40) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or("")),
        None if line.len() < text.len() => format!("{line}…"),
        None => line.to_owned(),
    }
}

/// The rest of the line from `at`, without white space at its end, or what of it is near: a line of a megabyte has room for
/// as many mistakes, and none may cost a megabyte.
pub(crate) fn rest_of_line(text: &str, at: u32) -> &str {
    let at = at as usize;
    let mut near = text.len().min(at + 1024);
    while !text.is_char_boundary(near) {
        near -= 1;
    }
    let near = text.get(at..near).unwrap_or("");
    near.get(..line_end(near.as_bytes(), 0)).unwrap_or("").trim_end()
}

// ── tokens ───────────────────────────────────────────────────────────────────────────────────────────────────────────

pub(crate) fn banned(text: &str, span: Span) -> Problem {
    let c = span.of(text).chars().next().unwrap_or('\u{0}') as u32;
    Problem::new(Kind::Banned, span, format!("the character U+{c:04X} can't stand in a study: nobody sees it"))
        .label("here")
        .help(format!("take it out, or write `\\u{{{c:x}}}` in a quoted string"))
        .guess("take it out", vec![(span, String::new())])
}

/// What the lexer saw to be wrong with the token at `span`.
pub(crate) fn lexical(text: &str, span: Span, wrong: LexProblem) -> Problem {
    let spelling = span.of(text);
    match wrong {
        LexProblem::OpenString => {
            let hashes = spelling.bytes().take_while(|&b| b == b'#').count();
            let close = format!("\"{}", "#".repeat(hashes));
            let end = Span::at(span.start + spelling.trim_end().len() as u32);
            Problem::new(Kind::OpenString, span, "the string does not end on its line")
                .label(format!("starts here; no `{close}` follows on this line"))
                .help("close it, or put text of several lines between `\"\"\"` and `\"\"\"`, each on a line of its own")
                .guess(format!("close it with `{close}` at the end of the line"), vec![(end, close)])
        }
        LexProblem::OpenLines => {
            let opening = Span::new(span.start, span.start + spelling.find("\"\"\"").map_or(0, |at| at as u32 + 3));
            let close: String = opening.of(text).chars().rev().collect();
            Problem::new(Kind::OpenLines, opening, format!("`{}` is never closed", opening.of(text)))
                .label("starts here")
                .help(format!(
                    "write `{close}` on a line of its own after the text; its indentation is taken from all lines"
                ))
        }
        LexProblem::OpenComment => {
            Problem::new(Kind::OpenComment, Span::new(span.start, span.start + 2), "`/*` is never closed")
                .label("all that follows is a comment")
                .help("write `*/` where it ends; comments within it need their own `*/`")
        }
        LexProblem::Inside(bad) => inside(text, span, bad),
    }
}

fn inside(text: &str, string: Span, bad: BadString) -> Problem {
    let place = |at: usize, len: usize| {
        let spelling = string.of(text);
        let mut end = (at + len).min(spelling.len());
        while !spelling.is_char_boundary(end) {
            end += 1;
        }
        Span::new(string.start + at as u32, string.start + end as u32)
    };
    match bad {
        BadString::Escape { at, len } => {
            let span = place(at, len);
            Problem::new(Kind::BadEscape, span, format!("`{}` is no escape", shown(span.of(text))))
                .label("not one of \\n \\r \\t \\\\ \\\" \\b \\f \\s \\u{…}")
                .help("write `\\\\` for a backslash, or use a raw string: #\"…\"#")
                .safe("double the backslash", vec![(Span::at(span.start), "\\".to_owned())])
        }
        BadString::Unicode { at, len } => {
            let span = place(at, len);
            Problem::new(Kind::BadEscape, span, format!("`{}` names no character", shown(span.of(text))))
                .label("one to six hex digits in braces, up to 10ffff, without d800 to dfff")
        }
        BadString::FirstLine { at } => {
            let spelling = string.of(text);
            let problem = Problem::new(Kind::BadLines, place(at, 0), "text stands on the line of the opening `\"\"\"`")
                .label("a line must end here")
                .help("the text begins on the next line, and the closing `\"\"\"` stands alone on the last");
            let body = spelling.strip_prefix("\"\"\"").and_then(|rest| rest.strip_suffix("\"\"\""));
            match body.filter(|body| !body.contains(['"', '\n', '\r'])) {
                Some(body) => problem.safe("use one `\"` on each side", vec![(string, format!("\"{body}\""))]),
                None => problem,
            }
        }
        BadString::LastLine { at } => {
            Problem::new(Kind::BadLines, place(at, 1), "text stands before the closing `\"\"\"`")
                .label("the closing quotes must stand alone on their line")
                .help("their indentation is taken from all lines, so they need a line of their own")
        }
        BadString::Indent { at } => {
            let line = place(at, 0);
            let span = Span::new(line.start, line.start + rest_of_line(text, line.start).len() as u32);
            let closing = Span::new(string.end - 3.min(string.len()), string.end);
            Problem::new(
                Kind::BadLines,
                span,
                "the line does not begin with the white space that stands before the closing `\"\"\"`",
            )
            .label("indented less, or with other characters")
            .also(closing, "what stands before these is taken from all lines")
            .help("indent it like the closing quotes, tabs and spaces alike")
        }
    }
}

pub(crate) fn backslash(span: Span) -> Problem {
    Problem::new(Kind::Stray, span, "a `\\` continues a line, and this one is not at the end of its line")
        .label("something follows")
        .help("a text with a backslash needs quotes: #\"a\\b\"#")
}

pub(crate) fn stray(text: &str, span: Span) -> Problem {
    let what = span.of(text);
    let help = match what {
        "=" => "a property is `key=value`",
        ")" => "parentheses stand around an annotation only: `(name)value`",
        "/" => "a comment is `// …`; a text with `/` needs quotes",
        _ => "take it out, or put the text it belongs to in quotes",
    };
    Problem::new(Kind::Stray, span, format!("`{}` has no business here", shown(what)))
        .help(help)
        .guess("take it out", vec![(span, String::new())])
}

pub(crate) fn semicolon(span: Span) -> Problem {
    Problem::new(Kind::StraySemicolon, span, "this `;` ends nothing")
        .label("no node stands before it")
        .safe("take it out", vec![(span, String::new())])
}

pub(crate) fn slashdash(span: Span) -> Problem {
    Problem::new(Kind::Slashdash, span, "this `/-` stands before nothing that it could switch off")
        .label("a node, an argument, a property or a block must follow")
        .guess("take it out", vec![(span, String::new())])
}

// ── strings, numbers, keywords ───────────────────────────────────────────────────────────────────────────────────────

/// What is to be said about a string of that kind, if anything.
pub(crate) fn string(text: &str, kind: TokenKind, span: Span) -> Option<Problem> {
    let spelling = span.of(text);
    let quoted = || vec![(span, quote(&strings::decode(spelling)))];
    let problem = match kind {
        TokenKind::Path => Problem::new(Kind::BarePath, span, format!("`{}` needs quotes", shown(spelling)))
            .label("a `/` ends a bare word")
            .safe("quote it", quoted()),
        TokenKind::Variable => Problem::new(Kind::BareVariable, span, format!("`{}` needs quotes", shown(spelling)))
            .label("variables are read inside quotes only")
            .help("without quotes KDL reads a `$` and a block")
            .safe("quote it", quoted()),
        TokenKind::SingleQuoted => {
            Problem::new(Kind::SingleQuotes, span, format!("{} needs double quotes", shown(spelling)))
                .label("a `'` is a letter like any other")
                .safe("use double quotes", quoted())
        }
        TokenKind::OldRaw => {
            let hashes = spelling.bytes().skip(1).take_while(|&b| b == b'#').count();
            let mut edits =
                vec![(Span::new(span.start, span.start + 1), if hashes == 0 { "#" } else { "" }.to_owned())];
            if hashes == 0 {
                edits.push((Span::at(span.end), "#".to_owned()));
            }
            Problem::new(Kind::OldRaw, span, "raw strings are written with `#` alone, without the `r`")
                .label("KDL v1")
                .safe("write it the new way", edits)
        }
        _ => return None,
    };
    Some(problem)
}

/// Something that starts like a number and is none.
pub(crate) fn quantity(text: &str, span: Span) -> Problem {
    let unsigned = text.trim_start_matches(['-', '+']);
    let whole = unsigned.starts_with('.') && is_number(&format!("0{unsigned}"));
    let dotted = text.strip_suffix('.').is_some_and(is_number);
    let radix = matches!(unsigned.as_bytes(), [b'0', b'x' | b'o' | b'b', ..]);
    let bad = |why: &str| Problem::new(Kind::BadNumber, span, format!("`{}` is not a number: {why}", shown(text)));
    if whole {
        let at = span.start + (text.len() - unsigned.len()) as u32;
        return bad("a digit must stand before the dot").safe("write the 0", vec![(Span::at(at), "0".to_owned())]);
    }
    if dotted {
        return bad("a digit must stand after the dot")
            .safe("take out the dot", vec![(Span::new(span.end - 1, span.end), String::new())]);
    }
    if radix {
        return bad("after `0x` come hex digits, after `0o` 0 to 7, after `0b` 0 and 1, with `_` between them")
            .guess("quote it, if it is no number", vec![(span, quote(text))]);
    }
    Problem::new(Kind::BareQuantity, span, format!("`{}` needs quotes: quantities are quoted strings", shown(text)))
        .label("starts like a number and is none")
        .help(format!("write {}", shown(&quote(text))))
        .safe("quote it", vec![(span, quote(text))])
}

pub(crate) fn number(text: &str, span: Span, bad: BadNumber) -> Problem {
    let why = match bad {
        BadNumber::TooLarge => "does not fit into 128 bits",
        BadNumber::Infinite => "is larger than any 64-bit float; it would become infinite",
        BadNumber::Vanishes => "is closer to 0 than any 64-bit float; it would become 0",
        BadNumber::Shape => "is not spelled like a number",
    };
    Problem::new(Kind::NumberRange, span, format!("`{}` {why}", shown(text))).label("can't be held")
}

pub(crate) fn bare_keyword(text: &str, span: Span) -> Problem {
    Problem::new(Kind::BareKeyword, span, format!("`{text}` is written `#{text}`"))
        .label("a keyword needs a `#`, a text needs quotes")
        .safe(format!("write `#{text}`"), vec![(Span::at(span.start), "#".to_owned())])
}

/// The keyword that `#…` was probably to be.
pub(crate) fn nearest_keyword(text: &str) -> Option<&'static str> {
    let word = text.trim_start_matches('#').to_ascii_lowercase();
    Some(match word.as_str() {
        "true" | "yes" | "on" | "t" | "y" => "#true",
        "false" | "no" | "off" | "f" | "n" => "#false",
        "null" | "nil" | "none" => "#null",
        "inf" | "+inf" | "infinity" => "#inf",
        "-inf" | "-infinity" => "#-inf",
        "nan" => "#nan",
        _ => return None,
    })
}

pub(crate) fn unknown_keyword(text: &str, span: Span) -> Problem {
    let problem = Problem::new(Kind::UnknownKeyword, span, format!("`{}` is no keyword", shown(text)))
        .label("there are #true, #false, #null, #inf, #-inf and #nan")
        .help("a text that starts with `#` needs quotes; a comment starts with `//`");
    match nearest_keyword(text) {
        Some(keyword) => problem.safe(format!("write `{keyword}`"), vec![(span, keyword.to_owned())]),
        None => problem.guess("quote it", vec![(span, quote(text))]),
    }
}

pub(crate) fn version(text: &str, span: Span) -> Problem {
    Problem::new(Kind::Version, span, format!("the text says it is KDL version {}", shown(span.of(text))))
        .label("studies are KDL version 2")
        .help("rewrite it as version 2 (`true` becomes `#true`, `r\"…\"` becomes `#\"…\"#`), then say so here")
        .guess("say 2", vec![(span, "2".to_owned())])
}

// ── names and entries ────────────────────────────────────────────────────────────────────────────────────────────────

/// `role` is what it should be: "a node's name".
pub(crate) fn not_a_name(text: &str, span: Span, kind: TokenKind, role: &str) -> Problem {
    let spelling = span.of(text);
    let what = match kind {
        TokenKind::Number => "a number",
        TokenKind::Keyword => "a keyword",
        TokenKind::BareKeyword => "kept from bare words",
        _ => "not a word",
    };
    let row = if kind == TokenKind::BareKeyword { Kind::BareKeyword } else { Kind::NotAName };
    Problem::new(row, span, format!("`{}` can't be {role}: it is {what}", shown(spelling)))
        .label("must be a string")
        .safe("quote it", vec![(span, quote(spelling))])
}

/// `written` ends with the colon, `name` does without.
pub(crate) fn colon_after_node(written: &str, name: Span) -> Problem {
    let colon = Span::new(name.end, name.end + written.len() as u32 - name.len());
    Problem::new(
        Kind::Colon,
        colon,
        format!("`{}` has a colon after it, and no name does", shown(written.trim_end_matches(':'))),
    )
    .label("YAML and JSON write it")
    .help("the value follows the name after a space")
    .safe("take out the colon", vec![(colon, String::new())])
}

/// From the colon up to the value.
pub(crate) fn colon_after_key(gap: Span) -> Problem {
    Problem::new(
        Kind::Colon,
        Span::new(gap.start, gap.start + 1),
        "a key and its value have a `=` between them, not a colon",
    )
    .label("YAML and JSON write it")
    .guess("write `=`", vec![(gap, "=".to_owned())])
}

/// `next` is where the node's real name starts, if one follows.
pub(crate) fn list_dash(dash: Span, next: Option<u32>) -> Problem {
    let problem = Problem::new(Kind::ListDash, dash, "`-` starts no list item: each item is a node with a name")
        .label("YAML writes it")
        .help("write the item as a node, or all of them as the arguments of one node");
    match next {
        Some(next) => problem.safe("take it out", vec![(Span::new(dash.start, next), String::new())]),
        None => problem,
    }
}

pub(crate) fn hash_comment(text: &str, hash: Span) -> Problem {
    let hashes = hash.of(text).bytes().take_while(|&b| b == b'#').count() as u32;
    let line = Span::new(hash.start, hash.start + rest_of_line(text, hash.start).len() as u32);
    Problem::new(Kind::HashComment, line, "`#` starts no comment; `//` does")
        .label("read as a comment")
        .safe("write `//`", vec![(Span::new(hash.start, hash.start + hashes), "//".to_owned())])
}

/// `gap` is from the end of the node's name to the value.
pub(crate) fn assignment(text: &str, name: Span, gap: Span, equals: Span) -> Problem {
    let name = strings::decode(name.of(text));
    Problem::new(
        Kind::Assignment,
        equals,
        format!("the value of `{}` follows after a space, without `=`", shown(&name)),
    )
    .label("`=` stands between a property's key and its value")
    .safe("take out the `=`", vec![(gap, " ".to_owned())])
}

pub(crate) fn missing_value(text: &str, key: Span, upto: Span) -> Problem {
    let key = strings::decode(key.of(text));
    Problem::new(Kind::MissingValue, upto, format!("`{}=` has no value", shown(&key)))
        .label("a value must follow")
        .help("the value stands on the same line; an empty text is `\"\"`")
}

pub(crate) fn comma(text: &str, span: Span) -> Problem {
    let rest = text.get(span.end as usize..).unwrap_or("");
    let space = if rest.is_empty() || rest.starts_with([' ', '\t', '\n', '\r', ';', '}']) { "" } else { " " };
    Problem::new(Kind::Comma, span, "values are separated by spaces, not by commas")
        .label("take it out")
        .safe("use a space", vec![(span, space.to_owned())])
}

pub(crate) fn brackets(text: &str, open: Span) -> Problem {
    let rest = rest_of_line(text, open.end);
    let problem = Problem::new(Kind::Brackets, open, "there are no lists in brackets")
        .label("a node takes as many arguments as it needs: `cores 1 2 4`");
    match (rest.find(']'), rest.matches(']').count(), rest.contains(['[', '"', '{'])) {
        (Some(at), 1, false) => {
            let close = Span::new(open.end + at as u32, open.end + at as u32 + 1);
            problem.safe("take out the brackets", vec![(open, String::new()), (close, String::new())])
        }
        _ => problem,
    }
}

pub(crate) fn missing_space(text: &str, span: Span) -> Problem {
    Problem::new(Kind::MissingSpace, span, format!("a space is missing before `{}`", shown(span.of(text))))
        .label("what stands before it has ended")
        .safe("put a space in", vec![(Span::at(span.start), " ".to_owned())])
}

pub(crate) fn annotation(span: Span) -> Problem {
    Problem::new(Kind::Annotation, span, "an annotation is one name in parentheses: `(u8)3`")
        .label("not one name, or never closed")
}

/// `what` should follow: "a value".
pub(crate) fn annotation_of_nothing(span: Span, what: &str) -> Problem {
    Problem::new(
        Kind::Annotation,
        span,
        format!("an annotation stands right before {what}, and nothing follows this one"),
    )
    .label(format!("{what} must follow"))
    .guess("take it out", vec![(span, String::new())])
}

/// `value` is where the property's value starts, or at least its `=` ends.
pub(crate) fn annotation_of_key(text: &str, span: Span, value: u32) -> Problem {
    let edits = vec![(span, String::new()), (Span::at(value), span.of(text).to_owned())];
    Problem::new(Kind::Annotation, span, "a key takes no annotation; its value does: `key=(u8)3`")
        .label("belongs before the value")
        .guess("move it to the value", edits)
}

// ── blocks ───────────────────────────────────────────────────────────────────────────────────────────────────────────

pub(crate) fn too_deep(brace: Span) -> Problem {
    Problem::new(Kind::TooDeep, brace, format!("blocks are nested deeper than {}", crate::MAX_DEPTH))
        .label("from here on nothing is read")
        .help("a study needs about six levels; look for a `{` that was written twice")
}

/// `line` is where its line starts if nothing stands before it there.
pub(crate) fn stray_brace(text: &str, brace: Span, line: Option<u32>) -> Problem {
    // With its line, where it has one for itself.
    let after = text.get(brace.end as usize..).unwrap_or("");
    let span = match line {
        Some(start) if rest_of_line(text, brace.start) == "}" => {
            Span::new(start, brace.end + after.find('\n').map_or(after.len(), |at| at + 1) as u32)
        }
        _ => brace,
    };
    Problem::new(Kind::StrayBrace, brace, "this `}` closes nothing")
        .label("no block is open")
        .guess("take it out", vec![(span, String::new())])
}

pub(crate) fn after_block(span: Span, gap: Span) -> Problem {
    Problem::new(Kind::AfterBlock, span, "a node ends with its block, and this belongs to none")
        .label("arguments and properties stand before the block; a further node on a line of its own")
        .guess("start a node: put `;` before it", vec![(Span::at(gap.start), ";".to_owned())])
}

pub(crate) fn second_block(brace: Span) -> Problem {
    Problem::new(Kind::SecondBlock, brace, "the node has a block already")
        .label("a second one")
        .help("write all children in one block, or give this one a node with a name")
}

pub(crate) fn nameless_block(brace: Span) -> Problem {
    Problem::new(Kind::NamelessBlock, brace, "a block needs a node with a name before its `{`")
        .label("no name stands before it")
        .help("the file itself is the study: it needs no block around it")
}

/// The block of `name`, opened at `open` on a line with that indentation, was taken to end before `next`, which starts on
/// the line at `line`.
pub(crate) fn unclosed(text: &str, name: Span, open: u32, indent: u32, next: Span, line: u32) -> Problem {
    let inserted = format!("{}}}\n", " ".repeat(indent as usize));
    let word = strings::decode(name.of(text));
    Problem::new(
        Kind::UnclosedBlock,
        Span::new(open, open + 1),
        format!("the block of `{}` is never closed", shown(&word)),
    )
    .label("opened here")
    .also(next, "not indented as if it were inside; the block is taken to end before it")
    .guess("close it there", vec![(Span::at(line), inserted)])
}

/// These blocks, innermost first, are open at the end of the text.
pub(crate) fn unclosed_at_end(text: &str, blocks: &[(Span, u32)]) -> Problem {
    let (name, open) = blocks.first().copied().unwrap_or_default();
    let word = shown(&strings::decode(name.of(text)));
    let message = match blocks.len() {
        1 => format!("the block of `{word}` is never closed"),
        n => format!("{n} blocks are never closed, the innermost that of `{word}`"),
    };
    let mut problem = Problem::new(Kind::UnclosedBlock, Span::new(open, open + 1), message).label("opened here");
    for &(_, open) in blocks.iter().skip(1).take(3) {
        problem = problem.also(Span::new(open, open + 1), "this one too");
    }
    let line = if text.ends_with('\n') { "" } else { "\n" };
    let braces = format!("{line}{}", "}\n".repeat(blocks.len()));
    problem.guess("close it at the end", vec![(Span::at(text.len() as u32), braces)])
}
