//! Opening and closing blocks, and telling from the indentation which one was never closed.

use super::{Close, MAX_DEPTH, MAX_REREADS, Mark, Parser, State};
use crate::tree::NONE;
use crate::{Span, TokenKind, recovery};

impl Parser<'_> {
    /// The token that is looked at is `{`.
    pub(super) fn open_block(&mut self, off: Option<Mark>) -> State {
        let brace = self.span();
        if self.stack.len() > MAX_DEPTH {
            if !self.too_deep {
                self.problem(recovery::too_deep(brace));
            }
            self.too_deep = true;
            self.skip_block();
            return State::Entries;
        }
        let Some(open) = self.stack.last_mut() else { return State::Nodes };
        open.block = brace.start;
        open.block_off = off;
        open.evidence = NONE;
        open.had_block |= off.is_none();
        let id = open.id;
        if off.is_none()
            && let Some(node) = self.nodes.get_mut(id as usize)
            && node.block.start == NONE
        {
            node.block = brace;
        }
        self.consume();
        State::Nodes
    }

    /// Go past a block that is not read.
    pub(super) fn skip_block(&mut self) {
        let mut depth = 0u32;
        while let Some(kind) = self.kind {
            match kind {
                TokenKind::OpenBrace => depth += 1,
                TokenKind::CloseBrace => depth -= 1,
                _ => {}
            }
            self.consume();
            if depth == 0 {
                return;
            }
        }
    }

    /// The token that is looked at is `}`.
    pub(super) fn close_brace(&mut self) -> State {
        let brace = self.span();
        let Some(&open) = self.stack.last() else {
            let line = self.leading.then_some(self.line_start);
            self.problem(recovery::stray_brace(self.text, brace, line));
            self.consume();
            return State::Nodes;
        };
        let column = self.start - self.line_start;
        if self.leading && column < open.indent && self.blamed.is_none() && !self.closes_all_used() {
            let before = if open.evidence == NONE { brace.start } else { open.evidence };
            self.blamed = Some(Close { before, open: open.block });
        }
        self.consume();
        self.end_block(brace.end);
        State::Entries
    }

    pub(super) fn closes_all_used(&self) -> bool {
        self.closes.len() >= MAX_REREADS
    }

    /// The block of the innermost open node ends.
    pub(super) fn end_block(&mut self, end: u32) {
        let Some(open) = self.stack.last_mut() else { return };
        let id = open.id;
        open.after_block = true;
        match open.block_off.take() {
            Some(mark) => self.switch_off(mark, end),
            None => {
                if let Some(node) = self.nodes.get_mut(id as usize) {
                    node.block.end = end;
                    node.span.end = node.span.end.max(end);
                }
            }
        }
    }

    /// Note a thing that starts a line and is not indented as if it were inside the block that it is in.
    pub(super) fn look_at_indent(&mut self) {
        let column = self.start - self.line_start;
        let start = self.start;
        if self.leading
            && let Some(open) = self.stack.last_mut()
            && open.evidence == NONE
            && column <= open.indent
        {
            open.evidence = start;
        }
    }

    /// End the blocks that an earlier reading found to end here.
    pub(super) fn close_as_blamed(&mut self) {
        if self.closes.is_empty() {
            return;
        }
        while let Some(&open) = self.stack.last() {
            let here = |close: &&Close| close.before == self.start && close.open == open.block;
            if self.kind.is_none() || !self.closes.iter().any(|close| here(&close)) {
                return;
            }
            let name = self.nodes.get(open.id as usize).map_or(Span::default(), |node| node.name);
            self.problem(recovery::unclosed(self.text, name, open.block, open.indent, self.span(), self.line_start));
            self.end_block(self.last_end);
            self.finish_node();
        }
    }

    pub(super) fn end_of_text(&mut self) {
        if self.too_deep || self.stack.is_empty() {
            self.blamed = None;
        } else if self.blamed.is_none() && !self.closes_all_used() {
            let suspect = self.stack.iter().rev().find(|open| open.evidence != NONE);
            self.blamed = suspect.map(|open| Close { before: open.evidence, open: open.block });
        }
        if !self.too_deep && !self.stack.is_empty() {
            let blocks: Vec<(Span, u32)> = self
                .stack
                .iter()
                .rev()
                .filter_map(|open| Some((self.nodes.get(open.id as usize)?.name, open.block)))
                .collect();
            self.problem(recovery::unclosed_at_end(self.text, &blocks));
        }
        while !self.stack.is_empty() {
            self.end_block(self.last_end);
            self.finish_node();
        }
    }
}
