//! Traffic: workloads, streams, requests, expectations, and the contract.

use super::subject::PARAMETERS;
use super::{Count, Kind, NODE, NodeSpec, Setting, Type, argument, optional, setting, word};

/// `workload`.
pub static WORKLOAD: NodeSpec = NodeSpec {
    name: "workload",
    doc: "The traffic of a phase: one or more streams on one clock.",
    example: "workload mixed { stream read share=\"50%\" { … }; stream write share=\"50%\" { … } }",
    count: Count::Any,
    arguments: &[argument("name", Type::Name, "The name that `load … workload=` takes.")],
    settings: &[setting("like", Type::Reference(Kind::Definition), "mixed", "The definition that this one amends.")],
    children: &[&STREAM],
    key: 1,
    defines: Some(Kind::Workload),
    ..NODE
};

/// `stream`.
pub static STREAM: NodeSpec = NodeSpec {
    name: "stream",
    doc: "One kind of request within a workload. An answer that isn't as expected counts as failed, whatever its status.",
    example: "stream read share=\"50%\" { vary id uniform from=1 to=1_000; GET \"/events/${id}\"; expect 200 }",
    count: Count::Some,
    arguments: &[argument("name", Type::Name, "Name, in the report.")],
    settings: &[
        setting("share", Type::Percent(1.0), "\"50%\"", "Share of the workload's requests.").default("100%"),
        setting(
            "rate",
            Type::Rate,
            "\"500/s\"",
            "Requests per second of this stream alone, instead of a share. Open loop only, and for all streams or none.",
        ),
        BEARER,
        ENCODING,
        setting(
            "connections",
            Type::Integer(1, 65_535),
            "32",
            "Connections of this stream alone. Always refused (lint `floating-mix`): the streams of a load share its connections, \
             so that the mix holds.",
        ),
    ],
    children: &[
        &VARY,
        METHODS[0],
        METHODS[1],
        METHODS[2],
        METHODS[3],
        METHODS[4],
        METHODS[5],
        METHODS[6],
        &HEADER,
        &JSON,
        &BODY,
        &STREAM_EXPECT,
        &CREATES,
    ],
    key: 1,
    ..NODE
};

/// `contract`.
pub static CONTRACT: NodeSpec = NodeSpec {
    name: "contract",
    doc: "What every candidate must answer before anything is measured. A candidate that fails is not measured.",
    example: "contract { case \"no token\" { GET \"/events/1\"; expect 401 } }",
    children: &[&CASE],
    ..NODE
};

static CASE: NodeSpec = NodeSpec {
    name: "case",
    doc: "One request, sent once, and what must come back.",
    example: "case \"no token\" { GET \"/events/1\"; expect 401 }",
    count: Count::Some,
    arguments: &[argument("name", Type::Text, "What is tried, for people.")],
    settings: &[BEARER, ENCODING],
    children: &[
        METHODS[0],
        METHODS[1],
        METHODS[2],
        METHODS[3],
        METHODS[4],
        METHODS[5],
        METHODS[6],
        &HEADER,
        &JSON,
        &BODY,
        &CASE_EXPECT,
        &CREATES,
    ],
    key: 1,
    ..NODE
};

const BEARER: Setting = setting(
    "bearer",
    Type::Reference(Kind::Token),
    "reader",
    "The token that is sent as `Authorization: Bearer …`; none where it is left out.",
);

const ENCODING: Setting = setting(
    "accept-encoding",
    Type::Word(&[word("gzip", "`Accept-Encoding: gzip` is sent, and bodies are decoded before they are checked.")]),
    "gzip",
    "How answers may be compressed; where it is left out, nothing is asked for.",
);

const fn method(name: &'static str, example: &'static str) -> NodeSpec {
    NodeSpec {
        name,
        doc: "The request's method and its path, which starts with `/`.",
        example,
        arguments: PATH,
        ..NODE
    }
}

const PATH: &[super::Argument] = &[argument("path", Type::Template, "Path and query.")];

static GET: NodeSpec = method("GET", "GET \"/events/${id}\"");
static HEAD: NodeSpec = method("HEAD", "HEAD \"/events/1\"");
static POST: NodeSpec = method("POST", "POST \"/events\"");
static PUT: NodeSpec = method("PUT", "PUT \"/events/${id}\"");
static PATCH: NodeSpec = method("PATCH", "PATCH \"/events/${id}\"");
static DELETE: NodeSpec = method("DELETE", "DELETE \"/events/${id}\"");
static OPTIONS: NodeSpec = method("OPTIONS", "OPTIONS \"/events\"");

/// The nodes that name a request's method; a stream or case has exactly one of them.
pub static METHODS: [&NodeSpec; 7] = [&GET, &HEAD, &POST, &PUT, &PATCH, &DELETE, &OPTIONS];

static VARY: NodeSpec = NodeSpec {
    name: "vary",
    doc: "A parameter with a new value for every request, read as `${NAME}`. All are seeded.",
    example: "vary id uniform from=1 to=1_000_000",
    count: Count::Any,
    arguments: &[
        argument("name", Type::Name, "The variable's name."),
        argument("how", Type::Text, "How its values are drawn."),
    ],
    key: 1,
    variant: Some(1),
    variants: PARAMETERS,
    ..NODE
};

static HEADER: NodeSpec = NodeSpec {
    name: "header",
    doc: "A further header of the request.",
    example: "header Accept \"application/json\"",
    count: Count::Any,
    arguments: &[argument("name", Type::Text, "The header's name."), argument("value", Type::Template, "Its value.")],
    key: 1,
    ..NODE
};

static JSON: NodeSpec = NodeSpec {
    name: "json",
    doc: "A JSON body, sent as `application/json`.",
    example: "json #\"{\"kind\":\"page_view\"}\"#",
    arguments: &[argument("document", Type::Json, "The document.")],
    ..NODE
};

static BODY: NodeSpec = NodeSpec {
    name: "body",
    doc: "A body of any type: a text, which may hold variables, or the content of a file, which is sent as it is.",
    example: "body \"a=1\" content-type=\"application/x-www-form-urlencoded\"",
    arguments: &[optional("text", Type::Template, "The body.")],
    settings: &[
        setting("file", Type::Content, "\"bodies/upload.bin\"", "The file that is the body, instead of a text."),
        setting(
            "content-type",
            Type::Text,
            "\"text/plain\"",
            "Its `Content-Type`; `text/plain` for a text, `application/octet-stream` for a file.",
        ),
    ],
    ..NODE
};

static CREATES: NodeSpec = NodeSpec {
    name: "creates",
    doc: "That every expected answer acknowledges one new row. Rows added are compared with answers after each \
          repetition.",
    example: "creates row in=events",
    arguments: &[argument("what", Type::Word(&[word("row", "One row.")]), "`row`.")],
    settings: &[setting("in", Type::Text, "events", "The table.").required()],
    ..NODE
};

const EXPECT: NodeSpec = NodeSpec {
    name: "expect",
    doc: "What the answer must be: the accepted statuses, and checks of headers and body that must all hold.",
    example: "expect 200 { json \"$.id\" equals=\"${id}\" }",
    rest: Some(argument("status", Type::Integer(100, 599), "An accepted status.")),
    children: &[&JSON_CHECK, &BODY_CHECK, &HEADER_CHECK],
    ..NODE
};

static STREAM_EXPECT: NodeSpec = EXPECT;
static CASE_EXPECT: NodeSpec = NodeSpec { count: Count::One, ..EXPECT };

static HEADER_CHECK: NodeSpec = NodeSpec {
    name: "header",
    doc: "A header that the answer must have.",
    example: "header WWW-Authenticate contains=\"invalid_token\"",
    count: Count::Any,
    arguments: &[argument("name", Type::Text, "The header's name; case doesn't count.")],
    settings: &[setting("contains", Type::Text, "\"invalid_token\"", "A part of its value.")],
    key: 1,
    ..NODE
};

const JSON_TYPES: Type = Type::Word(&[
    word("string", "A string."),
    word("integer", "A number without fraction."),
    word("number", "A number."),
    word("boolean", "`true` or `false`."),
    word("object", "An object."),
    word("array", "An array."),
    word("null", "`null`."),
]);

static JSON_CHECK: NodeSpec = NodeSpec {
    name: "json",
    doc: "A value inside the answer's JSON: that it is there, its type, or what it equals.",
    example: "json \"$.id\" equals=\"${id}\"",
    count: Count::Any,
    arguments: &[argument("place", Type::JsonPath, "Where it is.")],
    settings: &[
        setting("equals", Type::Scalar, "\"${id}\"", "What it equals, compared as JSON."),
        setting("type", JSON_TYPES, "integer", "Its type."),
    ],
    key: 1,
    ..NODE
};

static BODY_CHECK: NodeSpec = NodeSpec {
    name: "body",
    doc: "The answer's body: the text it is, a part of it, its length, or its digest.",
    example: "body contains=\"ok\"",
    arguments: &[optional("text", Type::Template, "The whole body.")],
    settings: &[
        setting("contains", Type::Template, "\"ok\"", "A part of it."),
        setting("length", Type::Integer(0, i64::MAX), "12", "Its length in bytes."),
        setting("digest", Type::Text, "\"af13…\"", "Its BLAKE3 digest, 64 hexadecimal digits."),
    ],
    ..NODE
};
