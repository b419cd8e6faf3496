//! The language as data: every node, argument, property and child, once, with type, count, default and a line of
//! documentation. Checking, suggestions, `docs/language.md` and the editor all read this description; no second list of
//! names exists anywhere.
//!
//! One rule holds for every *setting*: it may be written as a property or as a child with one argument
//! (`load closed for="20s"` ≡ `load closed { for "20s" }`), and an amendment changes settings one by one.

pub mod document;
mod measure;
mod publish;
mod reuse;
mod subject;
mod traffic;

pub use measure::{BETWEEN, GATE, LOAD, MOST_CONNECTIONS, PHASE, RAMP, REPEAT, STEP};
pub use publish::REPORT;
pub use reuse::{INPUT, PARAMETER, SECRET, parameter_type};
pub use subject::{CANDIDATE, CREDENTIALS, DATABASE, MACHINE, PROBE};
pub use traffic::{CONTRACT, METHODS, STREAM, WORKLOAD};

/// Things that have names and are referred to by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the variants are the language's own words")]
pub enum Kind {
    Candidate,
    Phase,
    Workload,
    Token,
    Credentials,
    Factor,
    Machine,
    Database,
    Probe,
    Input,
    Secret,
    Definition,
    Profile,
    Lint,
    Metric,
}

impl Kind {
    /// The word for people.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Candidate => "candidate",
            Self::Phase => "phase",
            Self::Workload => "workload",
            Self::Token => "token",
            Self::Credentials => "credentials",
            Self::Factor => "factor",
            Self::Machine => "machine",
            Self::Database => "database",
            Self::Probe => "probe",
            Self::Input => "input",
            Self::Secret => "secret",
            Self::Definition => "definition",
            Self::Profile => "profile",
            Self::Lint => "lint",
            Self::Metric => "metric",
        }
    }
}

/// One word of a closed set.
#[derive(Debug, Clone, Copy)]
pub struct Word {
    /// The word.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static str,
}

const fn word(name: &'static str, doc: &'static str) -> Word {
    Word { name, doc }
}

/// The type of a value.
#[derive(Debug, Clone, Copy)]
pub enum Type {
    /// A new name: letters, digits, `-`, `_`.
    Name,
    /// The name of an environment variable.
    Variable,
    /// Any text.
    Text,
    /// A JSON scalar, which may hold variables.
    Scalar,
    /// A text with variables.
    Template,
    /// A JSON document with variables.
    Json,
    /// One of these words.
    Word(&'static [Word]),
    /// A whole number within bounds.
    Integer(i64, i64),
    /// A whole number within bounds, or the level of a factor.
    IntegerOrFactor(i64, i64),
    /// A number within bounds, which may have a fraction.
    Decimal(f64, f64),
    /// A duration of at least zero.
    Duration,
    /// A duration that may lie in the past.
    SignedDuration,
    /// A rate, or `${factor}`.
    Rate,
    /// A number of bytes.
    Bytes,
    /// A share, at most this ratio.
    Percent(f64),
    /// A set of CPUs.
    Cpus,
    /// A file of the study that holds text.
    File,
    /// A file of the study, whatever it holds.
    Content,
    /// A directory of the study.
    Directory,
    /// A value of a factor: a whole number, a word, a rate, or a percentage of `of=`.
    Level,
    /// A comparison with a metric.
    Condition,
    /// A figure of a phase.
    Figure,
    /// A metric.
    Metric,
    /// The name of something defined elsewhere.
    Reference(Kind),
    /// Several names, in one text or as several arguments.
    References(Kind),
    /// Several rates per second, in one text or as several arguments.
    Numbers,
    /// A place inside a JSON document: `$`, `.name`, `[index]`.
    JsonPath,
    /// A kind of top-level node, for `without`.
    NodeKind,
}

impl Type {
    /// The type for people, as the end of "must be …".
    pub fn noun(self) -> String {
        match self {
            Self::Name => "a name of letters, digits, `-` and `_`".to_owned(),
            Self::Variable => "letters, digits and `_`, as the names of environment variables are".to_owned(),
            Self::Text => "a text".to_owned(),
            Self::Scalar => "a text, number, `#true`, `#false` or `#null`".to_owned(),
            Self::Template => "a text, which may hold `${variables}`".to_owned(),
            Self::Json => "a text that holds JSON".to_owned(),
            Self::Word(words) => match words {
                [only] => format!("`{}`", only.name),
                _ => format!("one of {}", crate::names::listed(words.iter().map(|word| word.name))),
            },
            Self::IntegerOrFactor(least, most) => {
                format!("{}, or \"${{factor}}\"", Self::Integer(least, most).noun())
            }
            Self::Integer(least, most) => match (least, most) {
                (least, i64::MAX) => format!("a whole number of at least {least}"),
                (least, most) => format!("a whole number from {least} to {most}"),
            },
            Self::Decimal(least, most) => format!("a number from {least} to {most}"),
            Self::Duration => "a duration such as \"20s\"".to_owned(),
            Self::SignedDuration => "a duration such as \"1h\" or \"-1h\"".to_owned(),
            Self::Rate => "a rate such as \"500/s\", or \"${factor}\"".to_owned(),
            Self::Bytes => "a size such as \"1GiB\"".to_owned(),
            Self::Percent(_) => "a share such as \"5%\"".to_owned(),
            Self::Cpus => "a CPU set such as \"0-3\"".to_owned(),
            Self::File | Self::Content => "the path of a file".to_owned(),
            Self::Directory => "the path of a directory".to_owned(),
            Self::Level => "a whole number, a word, a rate such as \"500/s\" or a share such as \"30%\"".to_owned(),
            Self::Condition => "a condition such as \"corrected.p99 < 10ms\"".to_owned(),
            Self::Figure => "a figure such as `ceiling.throughput`".to_owned(),
            Self::Metric => "a metric such as `throughput`".to_owned(),
            Self::Reference(kind) => format!("the name of a {}", kind.noun()),
            Self::References(kind) => format!("names of {}s, such as \"candidate cores\"", kind.noun()),
            Self::Numbers => "rates per second, such as \"10000 20000\"".to_owned(),
            Self::JsonPath => "a place such as \"$.id\" or \"$.items[0].name\"".to_owned(),
            Self::NodeKind => "a kind of node".to_owned(),
        }
        .replace("lints", "lint")
    }

    /// Whether the setting takes several values when it is written as a child.
    pub fn is_list(self) -> bool {
        matches!(self, Self::References(_) | Self::Numbers)
    }
}

/// A positional argument.
#[derive(Debug, Clone, Copy)]
pub struct Argument {
    /// What it is called in the documentation.
    pub name: &'static str,
    /// Its type.
    pub ty: Type,
    /// Whether a node without it means nothing.
    pub required: bool,
    /// What it means.
    pub doc: &'static str,
}

/// A required argument.
const fn argument(name: &'static str, ty: Type, doc: &'static str) -> Argument {
    Argument { name, ty, required: true, doc }
}

/// An argument that may be left out.
const fn optional(name: &'static str, ty: Type, doc: &'static str) -> Argument {
    Argument { name, ty, required: false, doc }
}

/// A setting: a property, or a child with one argument.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub ty: Type,
    /// Whether the node needs it.
    pub required: bool,
    /// What holds where it is left out, as a study would write it.
    pub default: Option<&'static str>,
    /// Version of the language that brought it.
    pub since: &'static str,
    /// What it means, with the unit.
    pub doc: &'static str,
    /// A value.
    pub example: &'static str,
}

const fn setting(name: &'static str, ty: Type, example: &'static str, doc: &'static str) -> Setting {
    Setting { name, ty, required: false, default: None, since: "0.1", doc, example }
}

impl Setting {
    const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    const fn default(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }
}

/// How many nodes of one name a parent holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Exactly one.
    One,
    /// None or one.
    Optional,
    /// Any number, told apart by their keys.
    Any,
    /// At least one.
    Some,
}

/// Properties whose names the study chooses: environment variables, server settings.
#[derive(Debug, Clone, Copy)]
pub struct Free {
    /// What a name stands for.
    pub name: &'static str,
    /// The type of every value.
    pub ty: Type,
    /// What it means.
    pub doc: &'static str,
}

/// What one word of an argument brings along: `gate pace` has other settings than `gate steal`.
#[derive(Debug, Clone, Copy)]
pub struct Variant {
    /// The word.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// Its own settings.
    pub settings: &'static [Setting],
    /// Whether it takes further arguments.
    pub rest: Option<Argument>,
}

/// A node.
#[derive(Debug, Clone, Copy)]
pub struct NodeSpec {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// A line of a study.
    pub example: &'static str,
    /// Version of the language that brought it.
    pub since: &'static str,
    /// How many of them the parent holds.
    pub count: Count,
    /// Positional arguments.
    pub arguments: &'static [Argument],
    /// Further arguments, any number (at least one where required).
    pub rest: Option<Argument>,
    /// Properties, or children with one argument.
    pub settings: &'static [Setting],
    /// Properties with names that the study chooses.
    pub free: Option<Free>,
    /// Children.
    pub children: &'static [&'static NodeSpec],
    /// How many leading arguments tell siblings of this name apart.
    pub key: usize,
    /// The setting that tells siblings apart, where no argument does.
    pub key_setting: Option<&'static str>,
    /// The argument whose word selects among the variants.
    pub variant: Option<usize>,
    /// The variants.
    pub variants: &'static [Variant],
    /// What the name of this node is referred to as.
    pub defines: Option<Kind>,
}

const NODE: NodeSpec = NodeSpec {
    name: "",
    doc: "",
    example: "",
    since: "0.1",
    count: Count::Optional,
    arguments: &[],
    rest: None,
    settings: &[],
    free: None,
    children: &[],
    key: 0,
    key_setting: None,
    variant: None,
    variants: &[],
    defines: None,
};

impl NodeSpec {
    /// The child called `name`.
    pub fn child(&self, name: &str) -> Option<&'static NodeSpec> {
        self.children.iter().copied().find(|child| child.name == name)
    }

    /// The variant for a word.
    pub fn variant(&self, name: &str) -> Option<&'static Variant> {
        self.variants.iter().find(|variant| variant.name == name)
    }

    /// The setting called `name`, of the node or of one of its variants.
    pub fn setting(&self, name: &str, variant: Option<&'static Variant>) -> Option<&'static Setting> {
        let own = self.settings.iter().find(|setting| setting.name == name);
        own.or_else(|| variant.and_then(|variant| variant.settings.iter().find(|setting| setting.name == name)))
    }

    /// The settings of the node and the variant.
    pub fn all_settings(&self, variant: Option<&'static Variant>) -> impl Iterator<Item = &'static Setting> {
        self.settings.iter().chain(variant.map_or(&[][..], |variant| variant.settings))
    }

    /// Whether blocks of this node may hold the levels of lints and `without`.
    pub fn is_scope(&self) -> bool {
        !self.children.is_empty()
    }
}

/// `study`: what the study is about.
pub static STUDY: NodeSpec = NodeSpec {
    name: "study",
    doc: "What the study is about. Exactly one, in the study's own file.",
    example: "study capacity { title \"Requests per core\"; question \"How much does each candidate carry?\" }",
    count: Count::One,
    arguments: &[argument("name", Type::Name, "Name of the study; results lie under it.")],
    settings: &[
        setting("title", Type::Text, "\"Requests per core\"", "One line for people.").required(),
        setting(
            "question",
            Type::Text,
            "\"How much does each candidate carry?\"",
            "The question that the study answers.",
        )
        .required(),
        setting(
            "budget",
            Type::Duration,
            "\"2h\"",
            "Time that the study may take. A plan that is estimated to need more is refused; a run that needed more says so \
             among the report's limits.",
        ),
        setting(
            "seed",
            Type::Integer(0, i64::MAX),
            "7",
            "Seed of the order of repetitions and of generated parameters.",
        )
        .default("1"),
    ],
    ..NODE
};

/// `use`: another file of the study or the standard library.
pub static USE: NodeSpec = NodeSpec {
    name: "use",
    doc: "Reads the definitions of another file, inside the study's root, or of the standard library.",
    example: "use \"std/http\"",
    count: Count::Any,
    arguments: &[argument("source", Type::Text, "`std/…`, or a path relative to this file.")],
    key: 1,
    ..NODE
};

/// `define`: a node to be amended by `like`.
pub static DEFINE: NodeSpec = NodeSpec {
    name: "define",
    doc: "A node that others amend with `like=`. It is not measured itself. Followed by the kind, the name and the block \
          of that kind.",
    example: "define phase saturation { parameter window type=duration; load closed { connections 64; for \"${window}\" } }",
    count: Count::Any,
    arguments: &[
        argument("kind", Type::NodeKind, "`phase`, `workload`, `candidate`, `database` …"),
        argument("name", Type::Name, "The name that `like=` refers to."),
    ],
    children: &[&PARAMETER],
    key: 2,
    ..NODE
};

/// `profile`: a shorter (or longer) run of the same study.
pub static PROFILE: NodeSpec = NodeSpec {
    name: "profile",
    doc: "Another run of the same study. Its nodes amend those of the study: same kind and name, settings one by one; \
          `without` removes. It can't add top-level nodes. What only a removed phase feeds falls away with it.",
    example: "profile smoke { factor pool 8 32; without phase fixed-rates }",
    count: Count::Any,
    arguments: &[argument("name", Type::Name, "The name that `--profile` takes.")],
    key: 1,
    defines: Some(Kind::Profile),
    ..NODE
};

/// `allow`: an accepted lint.
pub static ALLOW: NodeSpec = NodeSpec {
    name: "allow",
    doc: "Accepts what a lint says about the node it stands in (or about the whole study). The reason is printed among \
          the report's limits.",
    example: "allow single-repetition reason=\"a smoke run shows that the chain works, not how fast it is\"",
    count: Count::Any,
    arguments: LINT_NAME,
    settings: &[setting("reason", Type::Text, "\"a smoke run\"", "Why it is accepted.").required()],
    key: 1,
    ..NODE
};

/// `warn`: a lint that warns.
pub static WARN: NodeSpec = NodeSpec {
    name: "warn",
    doc: "What the lint says about the node it stands in (or about the whole study) is a warning, and a limit of the report.",
    example: "warn overlapping-cpus",
    count: Count::Any,
    arguments: LINT_NAME,
    key: 1,
    ..NODE
};

/// `deny`: a lint that keeps the study from running.
pub static DENY: NodeSpec = NodeSpec {
    name: "deny",
    doc: "What the lint says about the node it stands in (or about the whole study) is an error.",
    example: "deny fixed-order",
    count: Count::Any,
    arguments: LINT_NAME,
    key: 1,
    ..NODE
};

const LINT_NAME: &[Argument] = &[argument("lint", Type::Reference(Kind::Lint), "The lint's name.")];

/// The nodes that say how much a lint weighs. They may stand in every block.
pub static LEVELS: [&NodeSpec; 3] = [&ALLOW, &WARN, &DENY];

/// The node of that name that says how much a lint weighs.
pub fn level(name: &str) -> Option<&'static NodeSpec> {
    LEVELS.into_iter().find(|spec| spec.name == name)
}

/// `without`: removes what the amended node has.
pub static WITHOUT: NodeSpec = NodeSpec {
    name: "without",
    doc: "Removes a node (or setting) of the amended node: its kind, then its name where it has one.",
    example: "without phase fixed-rates",
    count: Count::Any,
    arguments: &[argument("kind", Type::NodeKind, "The node's kind, or a setting.")],
    rest: Some(optional("name", Type::Text, "What tells it from its siblings.")),
    ..NODE
};

/// The file: what may stand at the top level.
pub static FILE: NodeSpec = NodeSpec {
    name: "file",
    doc: "What stands at the top level of a study.",
    count: Count::One,
    children: &[
        &STUDY,
        &USE,
        &reuse::INPUT,
        &reuse::SECRET,
        &subject::MACHINE,
        &measure::FACTOR,
        &subject::CREDENTIALS,
        &subject::DATABASE,
        &subject::PROBE,
        &subject::CANDIDATE,
        &traffic::CONTRACT,
        &traffic::WORKLOAD,
        &measure::PHASE,
        &measure::AGREEMENT,
        &publish::REPORT,
        &DEFINE,
        &PROFILE,
        &ALLOW,
        &WARN,
        &DENY,
    ],
    ..NODE
};

/// Every node below `root`, `root` included, each once, in the order of the documentation.
pub fn every_node() -> Vec<&'static NodeSpec> {
    fn visit(spec: &'static NodeSpec, seen: &mut Vec<&'static NodeSpec>) {
        if seen.iter().any(|known| std::ptr::eq(*known, spec)) {
            return;
        }
        seen.push(spec);
        for child in spec.children {
            visit(child, seen);
        }
    }
    let mut seen = Vec::new();
    visit(&FILE, &mut seen);
    visit(&WITHOUT, &mut seen);
    seen
}

/// Names of the nodes in which a child or setting called `name` is valid: for "this exists inside …".
pub fn homes(name: &str) -> Vec<&'static str> {
    let mut homes: Vec<&'static str> = Vec::new();
    for spec in every_node() {
        let variant_has = spec.variants.iter().any(|variant| variant.settings.iter().any(|known| known.name == name));
        if (spec.child(name).is_some() || spec.setting(name, None).is_some() || variant_has)
            && !homes.contains(&spec.name)
        {
            homes.push(spec.name);
        }
    }
    homes
}
