//! The parser: one pass over the tokens with a stack of its own, which makes a tree from any text. After a mistake it goes
//! on at the next thing that can start something: a line, `;`, `{`, `}`.

mod blocks;
mod cursor;
mod entries;

use crate::problem::{Kind, Problem};
use crate::token::{Lexer, banned};
use crate::tree::{AnnotationData, EntryData, NONE, NodeData, Tree};
use crate::{Span, TokenKind, recovery};
use std::sync::Arc;

/// Blocks may be nested this deep; what lies deeper is not read.
pub const MAX_DEPTH: usize = 256;

/// A longer text is not read. Far above any study, far below what 32-bit spans can hold.
pub const MAX_TEXT: usize = 64 << 20;

/// Problems beyond this number are counted and not kept: nobody reads them, and a binary file has millions.
pub const MAX_PROBLEMS: usize = 1000;

/// Reading starts again for each unclosed block whose end can be told from the indentation, this often.
const MAX_REREADS: usize = 16;

/// What was read from a text.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// The tree, always.
    pub tree: Tree,
    /// Everything that is wrong, in the order of the text. Empty if and only if the text is right.
    pub problems: Vec<Problem>,
    /// How many further problems were found and not kept.
    pub omitted: usize,
}

/// Read `text`. Never fails and never panics: whatever is wrong is in `problems`, and the rest of the tree is there. Time
/// and memory grow with the length of the text alone.
#[must_use]
pub fn parse(text: Arc<str>) -> Parsed {
    if text.len() > MAX_TEXT {
        let message = format!("the text has {} bytes, and no more than {MAX_TEXT} are read", text.len());
        let problem = Problem::new(Kind::TooLong, Span::at(0), message).help("split it, and `use` the parts");
        let tree = Tree { text, nodes: vec![], entries: vec![], annotations: vec![], disabled: vec![] };
        return Parsed { tree, problems: vec![problem], omitted: 0 };
    }
    let mut closes = Vec::new();
    loop {
        let mut parser = Parser::new(&text, &closes);
        parser.run();
        if let Some(close) = parser.blamed
            && closes.len() < MAX_REREADS
        {
            closes.push(close);
            continue;
        }
        let Parser { nodes, entries, annotations, disabled, mut problems, omitted, .. } = parser;
        problems.sort_by_key(|problem| problem.span.start);
        let tree = Tree { text, nodes, entries, annotations, disabled };
        return Parsed { tree, problems, omitted };
    }
}

/// Where an unclosed block is taken to end, told from the indentation.
#[derive(Debug, Clone, Copy)]
struct Close {
    /// The first thing that is not inside any more.
    before: u32,
    /// The block's `{`.
    open: u32,
}

/// How far the arenas were filled when something began that `/-` switches off.
#[derive(Debug, Clone, Copy)]
struct Mark {
    slash: u32,
    nodes: usize,
    entries: usize,
    annotations: usize,
    disabled: usize,
}

/// A node that is being read.
#[derive(Debug, Clone, Copy)]
struct Open {
    id: u32,
    /// The indentation of the line it starts on.
    indent: u32,
    /// Set where the whole node is switched off.
    off: Option<Mark>,
    /// Set where the block being read is switched off.
    block_off: Option<Mark>,
    /// The `{` of the block being read.
    block: u32,
    /// A block was read: only further switched off ones may follow.
    after_block: bool,
    /// A block that counts was read.
    had_block: bool,
    /// Brackets were complained about.
    brackets: bool,
    /// The first thing in the block that is not indented as if it were inside, or `NONE`.
    evidence: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Between nodes, at the top or in the block of the innermost open node.
    Nodes,
    /// Within the innermost open node.
    Entries,
    Done,
}

struct Parser<'t> {
    text: &'t str,
    lexer: Lexer<'t>,
    closes: &'t [Close],
    // The token that is looked at, `None` at the end.
    kind: Option<TokenKind>,
    start: u32,
    end: u32,
    /// The end of the last token that was neither white space nor a comment.
    last_end: u32,
    /// White space stands before the token that is looked at.
    spaced: bool,
    line_start: u32,
    /// Nothing but white space stands before the token on its line.
    leading: bool,
    /// The indentation of the line.
    indent: u32,
    stack: Vec<Open>,
    nodes: Vec<NodeData>,
    entries: Vec<EntryData>,
    annotations: Vec<AnnotationData>,
    disabled: Vec<Span>,
    problems: Vec<Problem>,
    omitted: usize,
    too_deep: bool,
    blamed: Option<Close>,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str, closes: &'t [Close]) -> Self {
        let expected = Expected::of(text);
        Self {
            text,
            lexer: Lexer::new(text),
            closes,
            kind: None,
            start: 0,
            end: 0,
            last_end: 0,
            spaced: true,
            line_start: 0,
            leading: true,
            indent: 0,
            stack: Vec::with_capacity(16),
            nodes: Vec::with_capacity(expected.nodes),
            entries: Vec::with_capacity(expected.entries),
            annotations: Vec::with_capacity(expected.annotations),
            disabled: Vec::with_capacity(expected.disabled),
            problems: Vec::new(),
            omitted: 0,
            too_deep: false,
            blamed: None,
        }
    }

    fn run(&mut self) {
        for span in banned(self.text) {
            self.problem(recovery::banned(self.text, span));
        }
        self.advance();
        let mut state = State::Nodes;
        while state != State::Done {
            state = match state {
                State::Nodes => self.between_nodes(),
                State::Entries => self.within_node(),
                State::Done => State::Done,
            };
        }
    }

    fn between_nodes(&mut self) -> State {
        self.skip_line_space();
        self.close_as_blamed();
        match self.kind {
            None => {
                self.end_of_text();
                State::Done
            }
            Some(TokenKind::CloseBrace) => self.close_brace(),
            Some(TokenKind::Semicolon) => {
                self.problem(recovery::semicolon(self.span()));
                self.consume();
                State::Nodes
            }
            Some(TokenKind::Slashdash) => {
                let mark = self.mark();
                let slash = self.span();
                self.look_at_indent();
                self.consume();
                self.skip_line_space();
                match self.kind {
                    None | Some(TokenKind::CloseBrace | TokenKind::Semicolon | TokenKind::Slashdash) => {
                        self.problem(recovery::slashdash(slash));
                        State::Nodes
                    }
                    Some(_) => self.start_node(Some(mark)),
                }
            }
            Some(_) => {
                self.look_at_indent();
                self.start_node(None)
            }
        }
    }

    fn mark(&self) -> Mark {
        Mark {
            slash: self.start,
            nodes: self.nodes.len(),
            entries: self.entries.len(),
            annotations: self.annotations.len(),
            disabled: self.disabled.len(),
        }
    }

    /// Forget what was read since `mark`, because `/-` switches it off.
    fn switch_off(&mut self, mark: Mark, end: u32) {
        self.nodes.truncate(mark.nodes);
        self.entries.truncate(mark.entries);
        self.annotations.truncate(mark.annotations);
        self.disabled.truncate(mark.disabled);
        self.disabled.push(Span::new(mark.slash, end));
    }

    fn start_node(&mut self, off: Option<Mark>) -> State {
        let start = self.start;
        let mut annotated = None;
        if self.kind == Some(TokenKind::OpenParen) {
            annotated = Some(self.span());
            self.annotation(start);
            self.skip_node_space();
        }
        let name = self.span();
        let mut kept = name;
        let mut broken = false;
        match self.kind {
            Some(TokenKind::Bare) if self.token_text() == "-" => {
                self.consume();
                self.skip_node_space();
                let next = self.kind.filter(|kind| kind.is_string());
                let problem = recovery::list_dash(name, next.map(|_| self.start));
                self.problem(problem);
                if next.is_some() && self.token_text() != "-" {
                    return self.start_node(off);
                }
                broken = true;
            }
            Some(TokenKind::Bare) => {
                let text = self.token_text();
                if text.len() > 1 && text.ends_with(':') {
                    kept.end -= 1;
                    self.problem(recovery::colon_after_node(text, kept));
                }
                self.consume();
            }
            Some(kind) if kind.is_string() => {
                broken = kind == TokenKind::BrokenString;
                self.complain_about_string(kind, name);
                self.consume();
                if self.kind == Some(TokenKind::Bare) && self.token_text() == ":" {
                    self.problem(recovery::colon_after_node(Span::new(name.start, self.end).of(self.text), name));
                    self.consume();
                    self.spaced = true;
                }
            }
            Some(kind @ (TokenKind::BareKeyword | TokenKind::Number | TokenKind::Keyword | TokenKind::Quantity)) => {
                self.problem(recovery::not_a_name(self.text, name, kind, "a node's name"));
                broken = true;
                self.consume();
            }
            Some(TokenKind::Hash) if annotated.is_none() => {
                self.problem(recovery::hash_comment(self.text, name));
                self.skip_line();
                return State::Nodes;
            }
            _ => {
                if let Some(open) = annotated {
                    self.problem(recovery::annotation_of_nothing(
                        Span::new(open.start, self.last_end),
                        "a node's name",
                    ));
                    let over = matches!(
                        self.kind,
                        None | Some(
                            TokenKind::Newline | TokenKind::LineComment | TokenKind::Semicolon | TokenKind::CloseBrace
                        )
                    );
                    if over {
                        if self.kind == Some(TokenKind::Semicolon) {
                            self.consume();
                        }
                        return State::Nodes;
                    }
                } else if self.kind == Some(TokenKind::OpenBrace) {
                    self.problem(recovery::nameless_block(name));
                }
                // A node without a name, so that what follows has a place; its first token is complained about there.
                kept = Span::at(self.last_end.max(start));
                broken = true;
                self.spaced = true;
            }
        }
        let id = self.nodes.len() as u32;
        let parent = self.stack.last().map_or(NONE, |open| open.id);
        self.nodes.push(NodeData {
            span: Span::new(start, kept.end.max(self.last_end.max(start))),
            name: kept,
            block: Span::new(NONE, NONE),
            first_entry: self.entries.len() as u32,
            subtree_end: id + 1,
            parent,
            broken,
        });
        self.stack.push(Open {
            id,
            indent: self.indent,
            off,
            block_off: None,
            block: NONE,
            after_block: false,
            had_block: false,
            brackets: false,
            evidence: NONE,
        });
        State::Entries
    }

    /// The innermost open node has been read to its end.
    fn finish_node(&mut self) {
        let Some(open) = self.stack.pop() else { return };
        let ends = self.nodes.len() as u32;
        let mut end = self.last_end;
        if let Some(node) = self.nodes.get_mut(open.id as usize) {
            node.subtree_end = ends;
            end = node.span.end;
        }
        if let Some(mark) = open.off {
            self.check_version(mark, open.id);
            self.switch_off(mark, end.max(self.last_end));
        }
    }

    /// `/- kdl-version 1` at the start of the text.
    fn check_version(&mut self, mark: Mark, id: u32) {
        let first = self.text.get(..mark.slash as usize).unwrap_or("").trim_start_matches('\u{FEFF}').is_empty();
        let Some(node) = self.nodes.get(id as usize).filter(|node| first && node.name.of(self.text) == "kdl-version")
        else {
            return;
        };
        let argument = self.entries.get(node.first_entry as usize).map(|entry| entry.span);
        if let Some(span) = argument.filter(|span| span.of(self.text) != "2") {
            self.problem(recovery::version(self.text, span));
        }
    }

    fn extend_node(&mut self) {
        let end = self.last_end;
        if let Some(node) = self.stack.last().and_then(|open| self.nodes.get_mut(open.id as usize)) {
            node.span.end = node.span.end.max(end);
        }
    }

    fn within_node(&mut self) -> State {
        self.skip_node_space();
        let Some(&open) = self.stack.last() else { return State::Nodes };
        match self.kind {
            None | Some(TokenKind::Newline | TokenKind::LineComment | TokenKind::CloseBrace) => {
                self.finish_node();
                State::Nodes
            }
            Some(TokenKind::Semicolon) => {
                self.finish_node();
                self.consume();
                State::Nodes
            }
            Some(TokenKind::OpenBrace) => {
                if open.had_block {
                    self.problem(recovery::second_block(self.span()));
                }
                self.open_block(None)
            }
            Some(TokenKind::Slashdash) => {
                let slash = self.span();
                let mark = self.mark();
                if !self.spaced {
                    self.problem(recovery::missing_space(self.text, slash));
                }
                self.consume();
                self.spaced = true;
                self.skip_line_space();
                match self.kind {
                    Some(TokenKind::OpenBrace) => self.open_block(Some(mark)),
                    Some(kind) if kind.is_value() || matches!(kind, TokenKind::OpenParen | TokenKind::Hash) => {
                        if open.after_block {
                            return self.new_node_after_block();
                        }
                        self.entry();
                        self.switch_off(mark, self.last_end);
                        State::Entries
                    }
                    _ => {
                        self.problem(recovery::slashdash(slash));
                        State::Entries
                    }
                }
            }
            Some(kind) if kind.is_value() || kind == TokenKind::OpenParen => {
                if open.after_block {
                    return self.new_node_after_block();
                }
                if self.spaced || !self.punctuation() {
                    if !self.spaced {
                        self.problem(recovery::missing_space(self.text, self.span()));
                    }
                    self.entry();
                    self.extend_node();
                }
                State::Entries
            }
            Some(TokenKind::Hash) => {
                match recovery::nearest_keyword(self.token_text()) {
                    Some(_) if !open.after_block => {
                        self.entry();
                        self.extend_node();
                    }
                    _ => {
                        self.problem(recovery::hash_comment(self.text, self.span()));
                        self.skip_line();
                    }
                }
                State::Entries
            }
            Some(TokenKind::Equals) => {
                self.equals(open);
                State::Entries
            }
            Some(_) => {
                self.stray(open);
                State::Entries
            }
        }
    }

    fn new_node_after_block(&mut self) -> State {
        let gap = Span::new(self.last_end, self.start);
        self.problem(recovery::after_block(self.span(), gap));
        self.finish_node();
        State::Nodes
    }

    /// A `,` or `:` that stands right after a quoted string, as in JSON. Whether that was it.
    fn punctuation(&mut self) -> bool {
        let text = self.token_text();
        let problem = match text {
            "," => recovery::comma(self.text, self.span()),
            ":" => recovery::colon_after_key(Span::new(self.start, self.end)),
            _ => return false,
        };
        self.problem(problem);
        self.consume();
        self.spaced = true;
        true
    }

    fn equals(&mut self, open: Open) {
        let span = self.span();
        let before = self.last_end;
        let node = self.nodes.get(open.id as usize).copied();
        self.consume();
        self.spaced = true;
        self.skip_node_space();
        let first = node.is_some_and(|node| node.first_entry as usize == self.entries.len()) && !open.after_block;
        let problem = match node {
            Some(node) if first && !node.name.is_empty() => {
                let value = self.kind.is_some_and(TokenKind::is_value);
                recovery::assignment(
                    self.text,
                    node.name,
                    Span::new(before, if value { self.start } else { span.end }),
                    span,
                )
            }
            _ => recovery::stray(self.text, span),
        };
        self.problem(problem);
    }

    fn stray(&mut self, open: Open) {
        let text = self.token_text();
        match text {
            "[" if !open.brackets => {
                self.problem(recovery::brackets(self.text, self.span()));
                if let Some(open) = self.stack.last_mut() {
                    open.brackets = true;
                }
            }
            "[" | "]" if open.brackets => {}
            _ => self.problem(recovery::stray(self.text, self.span())),
        }
        self.consume();
        self.spaced = true;
    }
}

/// About how much `text` has of everything, so that each arena is allocated once: a node per line end, `;` and `{`, an entry
/// per space before something else than a space, a brace, a slash. A wrong guess costs an allocation.
struct Expected {
    nodes: usize,
    entries: usize,
    annotations: usize,
    disabled: usize,
}

impl Expected {
    fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let count = |is: fn(u8) -> bool| bytes.iter().filter(|&&b| is(b)).count();
        let pairs = |is: fn(u8, u8) -> bool| bytes.windows(2).filter(|pair| is(pair[0], pair[1])).count();
        let nodes = 1 + count(|b| matches!(b, b'\n' | b';' | b'{'));
        let entries = pairs(|first, second| first == b' ' && second > b' ' && !matches!(second, b'{' | b'}' | b'/'));
        // Denser than any study: such a text grows its arenas, instead of reserving what it may never fill.
        let most = |bytes_each: usize| bytes.len() / bytes_each + 16;
        Self {
            nodes: nodes.min(most(12)),
            // The words of comments and long strings are no entries.
            entries: entries.min(nodes * 4).min(most(10)),
            annotations: count(|b| b == b'(').min(nodes),
            disabled: pairs(|first, second| first == b'/' && second == b'-').min(nodes),
        }
    }
}
