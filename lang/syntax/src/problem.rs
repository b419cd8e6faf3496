//! What can be wrong with a text before anyone asks what it means: one registry, whose examples are run as tests.

use crate::{Applicability, Code, Diagnostic, Edit, Fix, Label, Location, Severity, SourceId, Span};

/// One thing that can be wrong, with an example that has it and one that has not.
#[derive(Debug, Clone, Copy)]
pub struct ProblemKind {
    /// Its code, `E01xx`.
    pub code: Code,
    /// Its name in kebab case.
    pub name: &'static str,
    /// What it is, in one line.
    pub explanation: &'static str,
    /// A text that has this problem and no other.
    pub bad: Example,
    /// A text that says the same and has none.
    pub good: Example,
}

/// An example text, written once and repeated.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    /// The text.
    pub text: &'static str,
    /// How often it stands there.
    pub times: u32,
}

impl Example {
    /// The whole text.
    #[must_use]
    pub fn source(&self) -> String {
        self.text.repeat(self.times as usize)
    }
}

macro_rules! problems {
    ($($kind:ident $code:literal $name:literal $explanation:literal, bad $bad:expr $(; $bad_times:literal times)?, good $good:expr $(; $good_times:literal times)?;)*) => {
        /// The rows of the registry, by name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Kind { $($kind),* }

        /// Everything that reading can find wrong, in the order of the codes.
        pub static PROBLEMS: &[ProblemKind] = &[$(ProblemKind {
            code: Code($code),
            name: $name,
            explanation: $explanation,
            bad: Example { text: $bad, times: 1 $(- 1 + $bad_times)? },
            good: Example { text: $good, times: 1 $(- 1 + $good_times)? },
        }),*];
    };
}

problems! {
    OpenString "E0101" "unterminated-string"
        "A string in quotes does not end on the line it starts on; text of several lines goes between `\"\"\"` and `\"\"\"`.",
        bad "title \"OAuth2\nrepeat 3\n", good "title \"OAuth2\"\nrepeat 3\n";
    OpenLines "E0102" "unterminated-multi-line-string"
        "A `\"\"\"` has no closing `\"\"\"`.",
        bad "note {\n    text \"\"\"\n        one\n}\n", good "note {\n    text \"\"\"\n        one\n        \"\"\"\n}\n";
    OpenComment "E0103" "unterminated-comment"
        "A `/*` has no closing `*/`, so all that follows is a comment.",
        bad "repeat 3\n/* for now\n", good "repeat 3\n/* for now */\n";
    UnclosedBlock "E0104" "unclosed-block"
        "A `{` has no closing `}`.",
        bad "phase a {\n    load {\n        for \"3s\"\n    repeat 3\n}\n",
        good "phase a {\n    load {\n        for \"3s\"\n    }\n    repeat 3\n}\n";
    StrayBrace "E0105" "stray-brace"
        "A `}` closes nothing.",
        bad "phase a {\n}\n}\n", good "phase a {\n}\n";
    TooDeep "E0106" "too-deep"
        "Blocks are nested deeper than 256, which no study needs; what lies deeper is not read.",
        bad "a {"; 257 times, good "a;"; 257 times;
    TooLong "E0107" "too-long"
        "The text is longer than 64 MiB; nothing of it is read.",
        bad "                                                                "; 1_048_577 times, good " "; 1 times;
    BareQuantity "E0108" "bare-quantity"
        "What starts like a number and is none needs quotes: durations, rates, sizes, ranges, dates.",
        bad "for 30s\n", good "for \"30s\"\n";
    BadNumber "E0109" "malformed-number"
        "A number is not spelled right.",
        bad "share .5\n", good "share 0.5\n";
    NumberRange "E0110" "number-out-of-range"
        "An integer does not fit into 128 bits, or a number would become infinite or 0.",
        bad "rate 1e400\n", good "rate 1e300\n";
    BareKeyword "E0111" "bare-keyword"
        "`true`, `false`, `null`, `inf`, `-inf` and `nan` are written with a `#`.",
        bad "reuse true\n", good "reuse #true\n";
    BareVariable "E0112" "bare-variable"
        "A `${…}` outside quotes is no variable; KDL would read `$` and a block.",
        bad "rate ${rate}\n", good "rate \"${rate}\"\n";
    BarePath "E0113" "bare-path"
        "A `/` ends a bare word, so paths and addresses need quotes.",
        bad "sql sql/schema.sql\n", good "sql \"sql/schema.sql\"\n";
    Colon "E0114" "colon-after-name"
        "A colon after a name belongs to YAML and JSON; here the value follows after a space, or after `=`.",
        bad "repeat: 3\n", good "repeat 3\n";
    ListDash "E0115" "list-dash"
        "A `-` does not start a list item; each item is a node with a name.",
        bad "- repeat 3\n", good "repeat 3\n";
    HashComment "E0116" "hash-comment"
        "A `#` does not start a comment; `//` does.",
        bad "# five are too few\nrepeat 6\n", good "// five are too few\nrepeat 6\n";
    SingleQuotes "E0117" "single-quotes"
        "Strings have double quotes; a single quote is a letter like any other.",
        bad "title 'two words'\n", good "title \"two words\"\n";
    Assignment "E0118" "assignment"
        "A node's value follows its name after a space; `=` belongs to properties only.",
        bad "repeat = 3\n", good "repeat 3\n";
    MissingValue "E0119" "missing-value"
        "A key has no value after its `=`.",
        bad "load connections=\n", good "load connections=64\n";
    Comma "E0120" "comma"
        "Values are separated by spaces, not by commas.",
        bad "cores 1, 2, 4\n", good "cores 1 2 4\n";
    Brackets "E0121" "brackets"
        "There are no lists in brackets; a node has as many arguments as it needs.",
        bad "cores [1 2 4]\n", good "cores 1 2 4\n";
    MissingSpace "E0122" "missing-space"
        "Two values stand together without a space.",
        bad "stream \"read\"1\n", good "stream \"read\" 1\n";
    AfterBlock "E0123" "text-after-block"
        "After a `}` a node ends; what follows needs a line of its own or a `;`.",
        bad "phase a { repeat 3 } phase b\n", good "phase a { repeat 3 }\nphase b\n";
    SecondBlock "E0124" "second-block"
        "A node has two blocks.",
        bad "phase a { repeat 3 } { load }\n", good "phase a { repeat 3; load }\n";
    NamelessBlock "E0125" "nameless-block"
        "A `{` stands where a node's name should.",
        bad "{\n    repeat 3\n}\n", good "phase {\n    repeat 3\n}\n";
    BadEscape "E0126" "unknown-escape"
        "A `\\` in a string is followed by something that is no escape.",
        bad "script \"C:\\dir\"\n", good "script #\"C:\\dir\"#\n";
    BadLines "E0127" "multi-line-layout"
        "A `\"\"\"` string has text on its first or last line, or a line that is indented less than its closing quotes.",
        bad "note \"\"\"one line\"\"\"\n", good "note \"one line\"\n";
    UnknownKeyword "E0128" "unknown-keyword"
        "A `#` is followed by a word that is no keyword.",
        bad "reuse #yes\n", good "reuse #true\n";
    Banned "E0129" "banned-character"
        "A character that can't be seen or that turns the direction of the text, which KDL bans.",
        bad "title \"a\u{202E}b\"\n", good "title \"a\\u{202e}b\"\n";
    Annotation "E0130" "annotation"
        "An annotation is a name in parentheses right before a node's name or a value.",
        bad "count ()3\n", good "count (u8)3\n";
    Slashdash "E0131" "slashdash-of-nothing"
        "A `/-` stands before nothing that it could switch off.",
        bad "phase a /-\n", good "phase a /-b\n";
    NotAName "E0132" "not-a-name"
        "The name of a node or the key of a property is a string, not a number or a keyword.",
        bad "10 20\n", good "\"10\" 20\n";
    OldRaw "E0133" "old-raw-string"
        "`r\"…\"` is a raw string of KDL v1; in v2 it is `#\"…\"#`.",
        bad "json r#\"{\"a\":1}\"#\n", good "json #\"{\"a\":1}\"#\n";
    Version "E0134" "kdl-version"
        "The text says it is KDL v1; studies are KDL v2.",
        bad "/- kdl-version 1\nrepeat 3\n", good "/- kdl-version 2\nrepeat 3\n";
    Stray "E0135" "stray-character"
        "A character has no business where it stands.",
        bad "phase a ) b\n", good "phase a b\n";
    StraySemicolon "E0136" "stray-semicolon"
        "A `;` ends a node, and here is none.",
        bad "phase a;;\n", good "phase a;\n";
}

impl Kind {
    pub(crate) fn row(self) -> &'static ProblemKind {
        // The enum and the table come from the same rows.
        &PROBLEMS[self as usize]
    }
}

/// A diagnostic that does not know yet which source it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Its code.
    pub code: Code,
    /// Its name in kebab case.
    pub name: &'static str,
    /// One sentence that stands alone.
    pub message: String,
    /// Where it is.
    pub span: Span,
    /// What that place says.
    pub label: String,
    /// Other places that explain it.
    pub secondary: Vec<(Span, String)>,
    /// What to do.
    pub help: Option<String>,
    /// A change that would remove it.
    pub fix: Option<ProblemFix>,
}

/// A fix that does not know yet which source it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProblemFix {
    /// What it does, as an order.
    pub title: String,
    /// The edits in ascending order.
    pub edits: Vec<(Span, String)>,
    /// Whether it may be applied without asking.
    pub applicability: Applicability,
}

impl Problem {
    pub(crate) fn new(kind: Kind, span: Span, message: impl Into<String>) -> Self {
        let row = kind.row();
        Self {
            code: row.code,
            name: row.name,
            message: message.into(),
            span,
            label: String::new(),
            secondary: Vec::new(),
            help: None,
            fix: None,
        }
    }

    pub(crate) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn also(mut self, span: Span, text: impl Into<String>) -> Self {
        self.secondary.push((span, text.into()));
        self
    }

    pub(crate) fn safe(self, title: impl Into<String>, edits: Vec<(Span, String)>) -> Self {
        self.fixed(title, edits, Applicability::Safe)
    }

    pub(crate) fn guess(self, title: impl Into<String>, edits: Vec<(Span, String)>) -> Self {
        self.fixed(title, edits, Applicability::Unsafe)
    }

    fn fixed(mut self, title: impl Into<String>, edits: Vec<(Span, String)>, applicability: Applicability) -> Self {
        self.fix = Some(ProblemFix { title: title.into(), edits, applicability });
        self
    }

    /// The diagnostic about `source`, whose text this was found in.
    #[must_use]
    pub fn in_source(&self, source: &SourceId) -> Diagnostic {
        let at = |span: Span| Location::new(source, span);
        let fix = self.fix.as_ref().map(|fix| Fix {
            title: fix.title.clone(),
            edits: fix.edits.iter().map(|(span, text)| Edit { at: at(*span), text: text.clone() }).collect(),
            applicability: fix.applicability,
        });
        Diagnostic {
            code: self.code,
            name: self.name,
            severity: Severity::Error,
            message: self.message.clone(),
            primary: Label { at: at(self.span), text: self.label.clone() },
            secondary: self.secondary.iter().map(|(span, text)| Label { at: at(*span), text: text.clone() }).collect(),
            help: self.help.clone(),
            fixes: fix.into_iter().collect(),
            chain: Vec::new(),
        }
    }
}
