//! What a study takes from elsewhere: from its environment, and from a definition's caller.

use super::{Count, Kind, NODE, NodeSpec, Type, argument, setting};

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
