//! The tree of one text: flat arenas of nodes and entries over the text itself. Whatever no span covers is white space or a
//! comment, so nothing of the text is lost. Values are decoded when they are asked for.

use crate::strings;
use crate::value::{StringStyle, Value};
use crate::{Span, TokenKind};
use std::borrow::Cow;
use std::sync::Arc;

/// Stands for "there is none" in the arenas.
pub(crate) const NONE: u32 = u32::MAX;

/// What was read from one text. It is there whatever the text holds.
#[derive(Debug, Clone)]
pub struct Tree {
    pub(crate) text: Arc<str>,
    /// In the order of the text: a node's children follow it, up to its `subtree_end`.
    pub(crate) nodes: Vec<NodeData>,
    /// In the order of the text: a node's entries end where the next node's begin.
    pub(crate) entries: Vec<EntryData>,
    /// Rare, so they stand aside, ordered by owner.
    pub(crate) annotations: Vec<AnnotationData>,
    pub(crate) disabled: Vec<Span>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeData {
    pub(crate) span: Span,
    pub(crate) name: Span,
    /// Both braces; `NONE` twice where there is no block.
    pub(crate) block: Span,
    pub(crate) first_entry: u32,
    pub(crate) subtree_end: u32,
    pub(crate) parent: u32,
    pub(crate) broken: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryData {
    /// From the key or the annotation to the end of the value.
    pub(crate) span: Span,
    /// `NONE` for an argument; a property's key starts where the entry does.
    pub(crate) key_end: u32,
    pub(crate) value_start: u32,
    pub(crate) kind: TokenKind,
}

/// `owner` is where the node or entry starts, which no other node or entry with an annotation does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnnotationData {
    pub(crate) owner: u32,
    pub(crate) name: Span,
}

/// A node's place in its tree; says nothing about any other tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl Tree {
    /// The text it was read from.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same text, shared.
    #[must_use]
    pub fn shared_text(&self) -> Arc<str> {
        self.text.clone()
    }

    /// The nodes at the top.
    #[must_use]
    pub fn nodes(&self) -> Siblings<'_> {
        Siblings { tree: self, next: 0, end: self.nodes.len() as u32 }
    }

    /// All nodes of all depths, in the order of the text.
    pub fn descendants(&self) -> impl Iterator<Item = Node<'_>> {
        (0..self.nodes.len() as u32).map(|id| Node { tree: self, id })
    }

    /// The node with that id, or `None` where it is another tree's.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<Node<'_>> {
        ((id.0 as usize) < self.nodes.len()).then_some(Node { tree: self, id: id.0 })
    }

    /// The nodes that a cursor at `offset` stands in, outermost first. Empty between the nodes at the top.
    #[must_use]
    pub fn path_at(&self, offset: u32) -> Vec<Node<'_>> {
        let mut path: Vec<Node<'_>> = Vec::new();
        let mut level = self.nodes();
        while let Some(node) = level.find(|node| node.span().touches(offset)) {
            level = node.children();
            path.push(node);
        }
        path
    }

    /// What `/-` switches off, each from its `/-` on, in the order of the text.
    #[must_use]
    pub fn disabled(&self) -> &[Span] {
        &self.disabled
    }

    fn annotation(&self, owner: u32) -> Option<(Cow<'_, str>, Span)> {
        let at = self.annotations.binary_search_by_key(&owner, |a| a.owner).ok()?;
        let name = self.annotations.get(at)?.name;
        Some((strings::decode(name.of(&self.text)), name))
    }
}

/// Two are equal when they stand at the same place of the same tree.
#[derive(Clone, Copy)]
pub struct Node<'t> {
    tree: &'t Tree,
    id: u32,
}

impl PartialEq for Node<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.tree, other.tree) && self.id == other.id
    }
}

impl Eq for Node<'_> {}

impl std::fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}..{}", self.name(), self.span().start, self.span().end)
    }
}

impl<'t> Node<'t> {
    // The id of a node comes from its tree alone, so it is there.
    fn data(self) -> &'t NodeData {
        &self.tree.nodes[self.id as usize]
    }

    /// Its place in the tree.
    #[must_use]
    pub fn id(self) -> NodeId {
        NodeId(self.id)
    }

    /// The tree it stands in.
    #[must_use]
    pub fn tree(self) -> &'t Tree {
        self.tree
    }

    /// Its name, decoded; empty for a block that was written without one.
    #[must_use]
    pub fn name(self) -> Cow<'t, str> {
        strings::decode(self.data().name.of(&self.tree.text))
    }

    /// Where its name is written, with quotes if there are any.
    #[must_use]
    pub fn name_span(self) -> Span {
        self.data().name
    }

    /// From its annotation or name to the end of its last entry or block, without `;` and comments.
    #[must_use]
    pub fn span(self) -> Span {
        self.data().span
    }

    /// Its annotation, as in `(replace)gate …`, and the name's place between the parentheses.
    #[must_use]
    pub fn annotation(self) -> Option<(Cow<'t, str>, Span)> {
        self.tree.annotation(self.data().span.start)
    }

    /// Whether reading already complained about its name, so that nobody should again.
    #[must_use]
    pub fn broken(self) -> bool {
        self.data().broken
    }

    /// Arguments and properties in the order of the text, duplicates included.
    pub fn entries(self) -> impl DoubleEndedIterator<Item = Entry<'t>> + ExactSizeIterator + use<'t> {
        let tree = self.tree;
        let first = self.data().first_entry as usize;
        let end = match tree.nodes.get(self.id as usize + 1) {
            Some(next) => next.first_entry as usize,
            None => tree.entries.len(),
        };
        tree.entries.get(first..end).unwrap_or(&[]).iter().map(move |data| Entry { tree, data })
    }

    /// The entries without a key.
    pub fn arguments(self) -> impl DoubleEndedIterator<Item = Entry<'t>> + use<'t> {
        self.entries().filter(|entry| !entry.is_property())
    }

    /// The entries with a key, duplicates included.
    pub fn properties(self) -> impl DoubleEndedIterator<Item = Entry<'t>> + use<'t> {
        self.entries().filter(|entry| entry.is_property())
    }

    /// The argument at `index`, counted without the properties.
    #[must_use]
    pub fn argument(self, index: usize) -> Option<Entry<'t>> {
        self.arguments().nth(index)
    }

    /// The property `key`; of several the last, which is the one that counts in KDL.
    #[must_use]
    pub fn property(self, key: &str) -> Option<Entry<'t>> {
        self.properties().rev().find(|entry| entry.key().is_some_and(|(name, _)| name == key))
    }

    /// The nodes of its block.
    #[must_use]
    pub fn children(self) -> Siblings<'t> {
        Siblings { tree: self.tree, next: self.id + 1, end: self.data().subtree_end }
    }

    /// Itself and all nodes below, in the order of the text.
    pub fn descendants(self) -> impl Iterator<Item = Node<'t>> + use<'t> {
        let tree = self.tree;
        (self.id..self.data().subtree_end).map(move |id| Node { tree, id })
    }

    /// The node whose block it stands in.
    #[must_use]
    pub fn parent(self) -> Option<Node<'t>> {
        let id = self.data().parent;
        (id != NONE).then_some(Node { tree: self.tree, id })
    }

    /// Whether it has a block, be it empty.
    #[must_use]
    pub fn has_block(self) -> bool {
        self.data().block.start != NONE
    }

    /// Its block, both braces included. Of an unclosed one it ends where the block was taken to end.
    #[must_use]
    pub fn block_span(self) -> Option<Span> {
        self.has_block().then_some(self.data().block)
    }

    /// The `//` lines directly above it, without the slashes and one space, joined by line ends.
    #[must_use]
    pub fn doc(self) -> Option<String> {
        let before = self.tree.text.get(..self.data().span.start as usize)?;
        let (above, own) = before.rsplit_once('\n')?;
        if !own.trim().is_empty() {
            return None;
        }
        let mut lines: Vec<&str> = above
            .rsplit('\n')
            .map_while(|line| line.trim().strip_prefix("//"))
            .map(|line| line.strip_prefix(' ').unwrap_or(line))
            .collect();
        lines.reverse();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// The nodes of one block, or of the top.
#[derive(Debug, Clone)]
pub struct Siblings<'t> {
    tree: &'t Tree,
    next: u32,
    end: u32,
}

impl<'t> Iterator for Siblings<'t> {
    type Item = Node<'t>;

    fn next(&mut self) -> Option<Node<'t>> {
        if self.next >= self.end {
            return None;
        }
        let node = Node { tree: self.tree, id: self.next };
        self.next = node.data().subtree_end;
        Some(node)
    }
}

/// An argument or a property.
#[derive(Clone, Copy)]
pub struct Entry<'t> {
    tree: &'t Tree,
    data: &'t EntryData,
}

impl std::fmt::Debug for Entry<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}..{}", self.text(), self.span().start, self.span().end)
    }
}

impl<'t> Entry<'t> {
    /// Whether it has a key.
    #[must_use]
    pub fn is_property(self) -> bool {
        self.data.key_end != NONE
    }

    /// A property's key, decoded, and where it is written; an argument has none.
    #[must_use]
    pub fn key(self) -> Option<(Cow<'t, str>, Span)> {
        let span = Span::new(self.data.span.start, self.data.key_end);
        self.is_property().then(|| (strings::decode(span.of(&self.tree.text)), span))
    }

    /// Its value.
    #[must_use]
    pub fn value(self) -> Value<'t> {
        Value::read(self.value_text(), self.data.kind)
    }

    /// Where its value is written, with quotes if there are any, without the annotation.
    #[must_use]
    pub fn value_span(self) -> Span {
        Span::new(self.data.value_start, self.data.span.end)
    }

    /// From the key or annotation to the end of the value.
    #[must_use]
    pub fn span(self) -> Span {
        self.data.span
    }

    /// The value's annotation, as in `(u8)12`, and the name's place between the parentheses.
    #[must_use]
    pub fn annotation(self) -> Option<(Cow<'t, str>, Span)> {
        self.tree.annotation(self.data.span.start)
    }

    /// All of it as written.
    #[must_use]
    pub fn text(self) -> &'t str {
        self.data.span.of(&self.tree.text)
    }

    /// The value as written.
    #[must_use]
    pub fn value_text(self) -> &'t str {
        self.value_span().of(&self.tree.text)
    }

    /// How a string is written; `None` for other values.
    #[must_use]
    pub fn style(self) -> Option<StringStyle> {
        StringStyle::of(self.data.kind)
    }

    /// The offset in the text of byte `index` of the decoded string. Where an escape makes several bytes of one place, it is
    /// the start of the escape; past the end it is the end of the content. Of a value that is no string it is its start
    /// plus `index`, within the value.
    #[must_use]
    pub fn offset_in_value(self, index: usize) -> u32 {
        let within = match self.style() {
            Some(_) => strings::offset_of(self.value_text(), index),
            None => index.min(self.value_text().len()),
        };
        self.data.value_start + u32::try_from(within).unwrap_or(0)
    }

    /// The place in the text of the bytes `start..end` of the decoded string.
    #[must_use]
    pub fn span_in_value(self, start: usize, end: usize) -> Span {
        let (start, end) = (self.offset_in_value(start), self.offset_in_value(end));
        Span::new(start, end.max(start))
    }
}
