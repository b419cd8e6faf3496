//! What a study takes from elsewhere: from its environment, and from a definition's caller.

use super::{Count, Kind, NODE, NodeSpec, Type, Word, argument, setting, word};

/// `input`.
pub static INPUT: NodeSpec = NodeSpec {
    name: "input",
    doc: "An environment variable that texts may read as `${env:NAME}`. Its value is taken when the study is planned or \
          run, and is recorded: plan and report hold it, and another value is another measurement. Without a default it \
          must be set where the study is run.",
    example: "input IMAGE_TAG default=\"latest\"",
    count: Count::Any,
    arguments: &[argument("name", Type::Variable, "The variable.")],
    settings: &[setting("default", Type::Text, "\"latest\"", "Its value where the environment has none.")],
    key: 1,
    defines: Some(Kind::Input),
    ..NODE
};

/// `secret`.
pub static SECRET: NodeSpec = NodeSpec {
    name: "secret",
    doc: "An environment variable whose value is never written anywhere: not into plan, journal, report, logs or messages. \
          `${env:NAME}` reads it in a server's `env` and in requests, where it is filled in at use. It must be set where \
          the study is run, to at least 8 characters.",
    example: "secret API_TOKEN",
    count: Count::Any,
    arguments: &[argument("name", Type::Variable, "The variable.")],
    key: 1,
    defines: Some(Kind::Secret),
    ..NODE
};

const PARAMETER_TYPES: &[Word] = &[
    word("count", "A whole number of at least 0."),
    word("duration", "A duration, such as \"20s\"."),
    word("rate", "A rate, such as \"500/s\"."),
    word("size", "A number of bytes, such as \"1GiB\"."),
    word("share", "A share, such as \"5%\"."),
    word("name", "A name: of a factor, a workload, a token …"),
    word("figure", "A figure, such as `ceiling.throughput`."),
    word("file", "The path of a file, relative to the file that gives it."),
    word("text", "Any text."),
];

/// The type of what a parameter is given.
pub fn parameter_type(word: &str) -> Option<Type> {
    Some(match word {
        "count" => Type::Integer(0, i64::MAX),
        "duration" => Type::Duration,
        "rate" => Type::Rate,
        "size" => Type::Bytes,
        "share" => Type::Percent(100.0),
        "name" => Type::Name,
        "figure" => Type::Figure,
        "file" => Type::File,
        "text" => Type::Text,
        _ => return None,
    })
}

/// `parameter`, inside `define`.
pub static PARAMETER: NodeSpec = NodeSpec {
    name: "parameter",
    doc: "What a definition is given where it is amended: `phase ceiling like=saturation repetitions=7`. The body reads it \
          as `${NAME}`, which then takes the place of a whole value or of a part of a text.",
    example: "parameter repetitions type=count default=5 min=3",
    count: Count::Any,
    arguments: &[argument("name", Type::Name, "Its name: no setting and no child of the kind that is defined.")],
    settings: &[
        setting("type", Type::Word(PARAMETER_TYPES), "count", "What it is.").required(),
        setting("default", Type::Scalar, "5", "What holds where nothing is given; without it, something must be."),
        setting("min", Type::Scalar, "3", "The least that may be given, of its own type."),
        setting("max", Type::Scalar, "100", "The most that may be given, of its own type."),
        setting("one-of", Type::Text, "\"median mean\"", "The only words that may be given, in one text."),
    ],
    key: 1,
    ..NODE
};
