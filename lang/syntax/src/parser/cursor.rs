//! Going from token to token: what lies between them, where lines start, and keeping what is found wrong.

use super::{MAX_PROBLEMS, Parser};
use crate::chars::line_end;
use crate::problem::Problem;
use crate::{Span, TokenKind, recovery};

impl<'t> Parser<'t> {
    pub(super) fn advance(&mut self) {
        self.start = self.lexer.at as u32;
        self.kind = self.lexer.next();
        self.end = self.lexer.at as u32;
        if let Some(wrong) = self.lexer.wrong {
            let problem = recovery::lexical(self.text, self.span(), wrong);
            self.problem(problem);
        }
        match self.kind {
            Some(TokenKind::Space) | None => {}
            Some(TokenKind::Newline) => {
                self.line_start = self.end;
                self.leading = true;
            }
            Some(_) if self.leading => self.indent = self.start - self.line_start,
            Some(_) => {}
        }
    }

    /// Go past a token that is neither white space nor a comment.
    pub(super) fn consume(&mut self) {
        self.last_end = self.end;
        self.spaced = false;
        self.leading = false;
        self.advance();
    }

    pub(super) fn span(&self) -> Span {
        Span::new(self.start, self.end)
    }

    pub(super) fn token_text(&self) -> &'t str {
        self.span().of(self.text)
    }

    pub(super) fn problem(&mut self, problem: Problem) {
        match self.problems.len() < MAX_PROBLEMS {
            true => self.problems.push(problem),
            false => self.omitted += 1,
        }
    }

    /// Go past the rest of the line, from the token that is looked at.
    pub(super) fn skip_line(&mut self) {
        self.lexer.at = line_end(self.text.as_bytes(), self.start as usize);
        self.spaced = true;
        self.advance();
    }

    /// White space within a node: spaces, block comments, and line ends after `\`.
    pub(super) fn skip_node_space(&mut self) {
        loop {
            match self.kind {
                Some(TokenKind::Space | TokenKind::BlockComment) => {}
                Some(TokenKind::Backslash) => {
                    self.continuation();
                    continue;
                }
                // A banned character, which was complained about.
                Some(TokenKind::Stray) if self.is_banned() => {}
                _ => return,
            }
            self.pass();
        }
    }

    /// White space between nodes: line ends and all comments too.
    pub(super) fn skip_line_space(&mut self) {
        loop {
            match self.kind {
                Some(
                    TokenKind::Space
                    | TokenKind::Newline
                    | TokenKind::LineComment
                    | TokenKind::BlockComment
                    | TokenKind::Mark,
                ) => {}
                Some(TokenKind::Backslash) => {
                    self.continuation();
                    continue;
                }
                Some(TokenKind::Stray) if self.is_banned() => {}
                _ => return,
            }
            self.pass();
        }
    }

    /// Go past white space or a comment.
    pub(super) fn pass(&mut self) {
        self.spaced = true;
        if !matches!(self.kind, Some(TokenKind::Space | TokenKind::Newline)) {
            self.leading = false;
        }
        self.advance();
    }

    pub(super) fn is_banned(&self) -> bool {
        crate::chars::banned_len(self.text.as_bytes(), self.start as usize) > 0
    }

    /// `\`, which takes the line end after it, with a comment before it if there is one.
    pub(super) fn continuation(&mut self) {
        let backslash = self.span();
        self.pass();
        while matches!(self.kind, Some(TokenKind::Space | TokenKind::BlockComment)) {
            self.pass();
        }
        if self.kind == Some(TokenKind::LineComment) {
            self.pass();
        }
        match self.kind {
            Some(TokenKind::Newline) => self.pass(),
            None => {}
            Some(_) => self.problem(recovery::backslash(backslash)),
        }
    }
}
