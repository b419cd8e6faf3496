//! Reading arguments and properties, and complaining about what they are made of.

use super::Parser;
use crate::problem::Kind;
use crate::tree::{AnnotationData, EntryData, NONE};
use crate::value::check_number;
use crate::{Span, TokenKind, recovery};

impl Parser<'_> {
    /// An argument or a property; the token that is looked at starts one.
    pub(super) fn entry(&mut self) {
        let start = self.start;
        let mut annotation = None;
        if self.kind == Some(TokenKind::OpenParen) {
            annotation = Some(self.annotation(start));
            self.skip_node_space();
        }
        let before = annotation.map(|_| Span::new(start, self.last_end));
        let Some(kind) = self.kind.filter(|kind| kind.is_value() || *kind == TokenKind::Hash) else {
            if let Some(span) = before {
                self.problem(recovery::annotation_of_nothing(span, "a value"));
            }
            return;
        };
        let mut value = self.span();
        let kind = self.take_value(kind, &mut value);
        let comma = value.end < self.last_end;
        self.skip_node_space();

        if self.kind == Some(TokenKind::Equals) && !comma {
            if let Some(span) = before {
                self.problem(recovery::annotation_of_key(self.text, span, self.end));
            }
            self.complain_about_key(kind, value);
            self.consume();
            self.property(value);
            return;
        }
        let text = value.of(self.text);
        let colon = kind == TokenKind::Bare && text.len() > 1 && text.ends_with(':') && !comma;
        if colon && self.spaced && self.kind.is_some_and(TokenKind::is_value) {
            self.problem(recovery::colon_after_key(Span::new(value.end - 1, self.start)));
            self.property(Span::new(value.start, value.end - 1));
            return;
        }
        if colon {
            value.end -= 1;
            self.problem(recovery::colon_after_node(text, value));
        }
        let kind = self.complain_about_value(kind, value);
        self.entries.push(EntryData {
            span: Span::new(start, value.end),
            key_end: NONE,
            value_start: value.start,
            kind,
        });
    }

    /// The value of the property `key`, whose `=` has been read.
    pub(super) fn property(&mut self, key: Span) {
        let equals_end = self.last_end;
        self.skip_node_space();
        let annotation = self.start;
        let mut annotated = false;
        if self.kind == Some(TokenKind::OpenParen) {
            annotated = true;
            self.annotation(key.start);
            self.skip_node_space();
        }
        let Some(kind) = self.kind.filter(|kind| kind.is_value() || *kind == TokenKind::Hash) else {
            let problem = match annotated {
                true => recovery::annotation_of_nothing(Span::new(annotation, self.last_end), "a value"),
                false => recovery::missing_value(self.text, key, Span::new(key.start, equals_end)),
            };
            self.problem(problem);
            let end = self.last_end;
            let kind = TokenKind::BrokenString;
            self.entries.push(EntryData { span: Span::new(key.start, end), key_end: key.end, value_start: end, kind });
            self.spaced = true;
            return;
        };
        let mut value = self.span();
        let kind = self.take_value(kind, &mut value);
        let kind = self.complain_about_value(kind, value);
        let span = Span::new(key.start, value.end);
        self.entries.push(EntryData { span, key_end: key.end, value_start: value.start, kind });
    }

    /// Go past a value, and take a comma at its end off it.
    pub(super) fn take_value(&mut self, kind: TokenKind, value: &mut Span) -> TokenKind {
        let text = value.of(self.text);
        self.consume();
        let bare = matches!(kind, TokenKind::Bare | TokenKind::Quantity | TokenKind::Path | TokenKind::Variable);
        if !bare || !text.ends_with(',') {
            return kind;
        }
        let kept = text.trim_end_matches(',').len();
        let comma = Span::new(value.start + kept as u32, value.end);
        self.problem(recovery::comma(self.text, comma));
        self.spaced = true;
        value.end = comma.start;
        match kind {
            TokenKind::Quantity if crate::value::is_number(value.of(self.text)) => TokenKind::Number,
            TokenKind::Bare if kept == 0 => TokenKind::BrokenString,
            kind => kind,
        }
    }

    /// `(name)` before a name or value that starts at `owner`.
    pub(super) fn annotation(&mut self, owner: u32) -> bool {
        let open = self.span();
        self.consume();
        self.skip_node_space();
        let name = self.span();
        let kind = self.kind;
        let mut well = kind.is_some_and(TokenKind::is_string);
        if well {
            if let Some(kind) = kind {
                self.complain_about_string(kind, name);
            }
            self.consume();
            self.skip_node_space();
        }
        if self.kind == Some(TokenKind::CloseParen) {
            self.consume();
            self.spaced = true;
        } else {
            // Go to the `)` of this line if it has one nearby.
            well = false;
            let near = self.text.as_bytes().get(self.start as usize..).unwrap_or(&[]);
            let rest = near.get(..64).unwrap_or(near);
            let stop = rest.iter().position(|b| matches!(b, b')' | b'{' | b'}' | b';' | b'"' | b'(' | b'\n' | b'\r'));
            if let Some(at) = stop.filter(|&at| rest.get(at) == Some(&b')')) {
                self.lexer.at = self.start as usize + at;
                self.advance();
                self.consume();
                self.spaced = true;
            }
        }
        match well {
            true => self.annotations.push(AnnotationData { owner, name }),
            false => self.problem(recovery::annotation(Span::new(open.start, self.last_end))),
        }
        well
    }

    pub(super) fn complain_about_string(&mut self, kind: TokenKind, span: Span) {
        if let Some(problem) = recovery::string(self.text, kind, span) {
            self.problem(problem);
        }
    }

    pub(super) fn complain_about_key(&mut self, kind: TokenKind, span: Span) {
        match kind {
            TokenKind::BareKeyword | TokenKind::Number | TokenKind::Keyword | TokenKind::Quantity | TokenKind::Hash => {
                self.problem(recovery::not_a_name(self.text, span, kind, "a property's key"));
            }
            kind => self.complain_about_string(kind, span),
        }
    }

    /// The kind to keep: a value that can't be used becomes a broken one.
    pub(super) fn complain_about_value(&mut self, kind: TokenKind, span: Span) -> TokenKind {
        let text = span.of(self.text);
        match kind {
            TokenKind::Number if text.len() > 18 || text.contains(['e', 'E']) => match check_number(text) {
                Ok(_) => kind,
                Err(bad) => {
                    self.problem(recovery::number(text, span, bad));
                    TokenKind::BrokenString
                }
            },
            TokenKind::Quantity => {
                let problem = recovery::quantity(text, span);
                let number = problem.code == Kind::BadNumber.row().code;
                self.problem(problem);
                if number { TokenKind::BrokenString } else { kind }
            }
            TokenKind::BareKeyword => {
                self.problem(recovery::bare_keyword(text, span));
                kind
            }
            TokenKind::Hash => {
                self.problem(recovery::unknown_keyword(text, span));
                TokenKind::BrokenString
            }
            kind => {
                self.complain_about_string(kind, span);
                kind
            }
        }
    }
}
