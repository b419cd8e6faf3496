//! Traffic: requests, what their answers must be, streams of them, and the contract.

use serde::{Deserialize, Serialize};

use crate::hash::ContentHash;
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
    /// Share of the workload's requests, 0–1. Of streams with rates of their own: this rate ÷ the sum of the rates.
    pub share: f64,
    /// Requests per second of this stream alone (open loop). Either every stream of a workload has a rate of its own, or none.
    #[serde(default)]
    pub rate: Option<f64>,
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
    pub body: Option<Body>,
    /// The body's `Content-Type`.
    pub content_type: Option<String>,
    /// Whether answers may be compressed with gzip: `Accept-Encoding: gzip` is sent, and bodies are decoded before they are
    /// checked. Nothing is asked for otherwise.
    #[serde(default)]
    pub accept_gzip: bool,
}

/// What a request carries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Body {
    /// A text with variables: JSON, or any other.
    Text(Text),
    /// The content of a file, byte by byte.
    File(BodyFile),
}

impl Body {
    /// The text, where it is one.
    pub fn text(&self) -> Option<&Text> {
        match self {
            Self::Text(text) => Some(text),
            Self::File(_) => None,
        }
    }
}

/// A file that is sent as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BodyFile {
    /// Path, relative to the plan's root.
    pub path: String,
    /// Hash of the content.
    pub digest: ContentHash,
    /// The content; base64 (RFC 4648 §4) in JSON.
    #[serde(with = "base64_text")]
    pub content: Vec<u8>,
}

mod base64_text {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(content: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(content))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        STANDARD.decode(text.as_bytes()).map_err(D::Error::custom)
    }
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Parameter {
    /// The variable's name.
    pub name: String,
    /// How its values are drawn.
    pub kind: ParameterKind,
}

/// How a parameter's values are drawn; all are seeded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ParameterKind {
    /// An integer from `from` to `to`, both included, each as likely.
    Uniform {
        /// Smallest value.
        from: i64,
        /// Largest value.
        to: i64,
    },
    /// An integer from `from` to `to`, both included; the k-th of them (from 1) with a probability ∝ k^−exponent: a few are
    /// asked for often, most rarely.
    Zipf {
        /// The most frequent value.
        from: i64,
        /// The least frequent value.
        to: i64,
        /// How uneven: 0 is uniform.
        exponent: f64,
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
    /// A column of a CSV file. The parameters of a stream that read the same file take the same row in one request.
    Csv {
        /// Path of the file, relative to the plan's root.
        path: String,
        /// Hash of the whole file: what tells that two parameters read the same one.
        digest: ContentHash,
        /// The column.
        column: String,
        /// The column's values, in the order of the rows.
        values: Vec<String>,
        /// How rows are taken.
        order: RowOrder,
    },
    /// A random (version 4) UUID.
    Uuid,
}

/// How the rows of a CSV file are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowOrder {
    /// Each row as likely.
    Random,
    /// One after the other; back to the first after the last.
    Listed,
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
