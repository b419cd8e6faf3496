//! Traffic: requests, what their answers must be, streams of them, and the contract.

use serde::{Deserialize, Serialize};

use crate::text::Text;

/// The traffic of a phase: one or more streams on one clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Workload {
    /// Name, as written after `workload`.
    pub name: String,
    /// The streams, in the order of the study; their shares add up to 1.
    pub streams: Vec<Stream>,
}

/// One kind of request within a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Stream {
    /// Name, as written after `stream`.
    pub name: String,
    /// Share of the workload's requests, 0–1.
    pub share: f64,
    /// What is sent.
    pub request: Request,
    /// Parameters that vary per request.
    pub parameters: Vec<Parameter>,
    /// What every answer must be.
    pub expect: Expect,
    /// The table in which every expected answer acknowledges one new row.
    pub creates_row_in: Option<String>,
}

/// One HTTP request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Request {
    /// Method in capitals.
    pub method: String,
    /// Path and query, starting with `/`.
    pub path: Text,
    /// Further headers, in order.
    pub headers: Vec<(String, Text)>,
    /// Name of the token that is sent as `Authorization: Bearer …`.
    pub bearer: Option<String>,
    /// The body, if there is one.
    pub body: Option<Text>,
    /// The body's `Content-Type`.
    pub content_type: Option<String>,
}

/// What an answer must be. An answer that isn't counts as failed, whatever its status.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Expect {
    /// Statuses that are accepted.
    pub status: Vec<u16>,
    /// Headers that must be there.
    pub headers: Vec<HeaderCheck>,
    /// Checks of the body; all must hold.
    pub body: Vec<BodyCheck>,
}

/// A check of one header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct HeaderCheck {
    /// Name, compared without case.
    pub name: String,
    /// A part that the value must contain; `None` asks only for presence.
    pub contains: Option<String>,
}

/// A check of a body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BodyCheck {
    /// The body is exactly this text.
    Exact(Text),
    /// The body contains this text.
    Contains(Text),
    /// The body has this many bytes.
    Length(u64),
    /// The body's BLAKE3 digest in hexadecimal (64 digits).
    Digest(String),
    /// A value inside a JSON body. `path` is `$`, then `.name` or `[index]`.
    Json {
        /// Where the value is.
        path: String,
        /// What it must be.
        test: JsonTest,
    },
}

/// What a JSON value must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JsonTest {
    /// Equal: compared as JSON where the text is JSON (`1` equals `1`), else as a string.
    Equals(Text),
    /// Of this type.
    Type(JsonType),
    /// Present, whatever it is.
    Exists,
}

/// Types of JSON values. `Integer` is a number without fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the variants are JSON's own types")]
pub enum JsonType {
    String,
    Integer,
    Number,
    Boolean,
    Object,
    Array,
    Null,
}

/// A parameter of a stream: a variable with a new value for every request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Parameter {
    /// The variable's name.
    pub name: String,
    /// How its values are drawn.
    pub kind: ParameterKind,
}

/// How a parameter's values are drawn; all are seeded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ParameterKind {
    /// An integer from `from` to `to`, both included, each as likely.
    Uniform {
        /// Smallest value.
        from: i64,
        /// Largest value.
        to: i64,
    },
    /// Integers from `from` on, one after the other; back to `from` after `to`.
    Sequence {
        /// First value.
        from: i64,
        /// Last value.
        to: i64,
    },
    /// One of these texts, each as likely.
    Choice(Vec<String>),
    /// A random (version 4) UUID.
    Uuid,
}

/// One case of the contract that every candidate passes before anything is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ContractCase {
    /// What is tried, for people.
    pub name: String,
    /// What is sent, once.
    pub request: Request,
    /// What must come back.
    pub expect: Expect,
    /// The table that must have one row more after all cases of its kind.
    pub creates_row_in: Option<String>,
}
