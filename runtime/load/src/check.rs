//! What an answer must be, compiled from [`plan::Expect`]; one validator for the hot path and for single requests.

use memchr::memmem;
use plan::{BodyCheck, Expect, JsonTest, JsonType};

use crate::error::LoadError;
use crate::http::{Response, excerpt};
use crate::json::{self, Step};
use crate::parameter::Values;
use crate::request::{Names, Part};

/// All checks of a stream's answers.
pub struct Checks {
    /// Empty: any status from 200 to 299.
    status: Box<[u16]>,
    headers: Box<[Header]>,
    body: Box<[Body]>,
}

struct Header {
    name: String,
    contains: Option<String>,
}

enum Body {
    Exact(Vec<Part>),
    Contains { part: Vec<Part>, finder: Option<Box<memmem::Finder<'static>>> },
    Length(u64),
    Digest([u8; 32]),
    Json { text: String, path: Box<[Step]>, test: Test },
}

enum Test {
    Equals(Vec<Part>),
    Type(JsonType),
    Exists,
}

/// The first check that an answer did not pass. Numbers are indices into the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mismatch {
    /// The status that came.
    Status(u16),
    /// A header is missing or says something else.
    Header(u16),
    /// The body is no JSON.
    NotJson,
    /// The body is something else.
    Body(u16),
}

impl Checks {
    /// Compiles an expectation.
    ///
    /// # Errors
    /// When a variable has no value, a path is none or a digest has not 64 hexadecimal digits.
    pub fn new(expect: &Expect, names: Names<'_>) -> Result<Self, LoadError> {
        let body = expect.body.iter().map(|check| {
            Ok(match check {
                BodyCheck::Exact(text) => Body::Exact(names.parts(text, "an expected body")?),
                BodyCheck::Contains(text) => {
                    let part = names.parts(text, "a text that a body must contain")?;
                    let finder = match part.as_slice() {
                        [] => Some(Box::new(memmem::Finder::new(b"").into_owned())),
                        [Part::Bytes(bytes)] => Some(Box::new(memmem::Finder::new(bytes).into_owned())),
                        _ => None,
                    };
                    Body::Contains { part, finder }
                }
                BodyCheck::Length(length) => Body::Length(*length),
                BodyCheck::Digest(digest) => Body::Digest(
                    *blake3::Hash::from_hex(digest)
                        .map_err(|_| {
                            LoadError::job(
                                format!("`{digest}` is not a BLAKE3 digest"),
                                "write its 64 hexadecimal digits",
                            )
                        })?
                        .as_bytes(),
                ),
                BodyCheck::Json { path, test } => Body::Json {
                    text: path.clone(),
                    path: json::path(path)?,
                    test: match test {
                        JsonTest::Equals(text) => Test::Equals(names.parts(text, "an expected JSON value")?),
                        JsonTest::Type(kind) => Test::Type(*kind),
                        JsonTest::Exists => Test::Exists,
                    },
                },
            })
        });
        Ok(Self {
            status: expect.status.clone().into_boxed_slice(),
            headers: expect
                .headers
                .iter()
                .map(|header| Header { name: header.name.clone(), contains: header.contains.clone() })
                .collect(),
            body: body.collect::<Result<_, LoadError>>()?,
        })
    }

    /// Whether the body's content is looked at: it must then be kept whole.
    pub fn read_body(&self) -> bool {
        self.body.iter().any(|check| !matches!(check, Body::Length(_)))
    }

    /// Checks an answer. `scratch` is a buffer to work in.
    ///
    /// # Errors
    /// The first check that it does not pass.
    #[inline]
    pub fn verify(&self, response: &Response<'_>, values: &Values, scratch: &mut Vec<u8>) -> Result<(), Mismatch> {
        let accepted = match self.status.as_ref() {
            [] => (200..300).contains(&response.status),
            accepted => accepted.contains(&response.status),
        };
        if !accepted {
            return Err(Mismatch::Status(response.status));
        }
        for (index, header) in self.headers.iter().enumerate() {
            let holds = response.header(&header.name).any(|value| {
                header.contains.as_ref().is_none_or(|part| memmem::find(value, part.as_bytes()).is_some())
            });
            if !holds {
                return Err(Mismatch::Header(index as u16));
            }
        }
        for (index, check) in self.body.iter().enumerate() {
            let holds = match check {
                Body::Exact(parts) => response.body == filled(parts, values, scratch),
                Body::Contains { finder: Some(finder), .. } => finder.find(response.body).is_some(),
                Body::Contains { part, finder: None } => {
                    memmem::find(response.body, filled(part, values, scratch)).is_some()
                }
                Body::Length(length) => response.body_length == *length,
                Body::Digest(digest) => blake3::hash(response.body).as_bytes() == digest,
                Body::Json { path, test, .. } => {
                    match (json::find(response.body, path).map_err(|_| Mismatch::NotJson)?, test) {
                        (None, _) => false,
                        (Some(value), Test::Equals(parts)) => json::equals(value, filled(parts, values, scratch)),
                        (Some(value), Test::Type(kind)) => json::is_of_type(value, *kind),
                        (Some(_), Test::Exists) => true,
                    }
                }
            };
            if !holds {
                return Err(Mismatch::Body(index as u16));
            }
        }
        Ok(())
    }

    /// A mismatch in words without the values of one answer, so that the same kind counts as one.
    pub fn reason(&self, mismatch: Mismatch) -> String {
        match mismatch {
            Mismatch::Status(status) => format!("status {status}"),
            Mismatch::Header(index) => match &self.headers[usize::from(index)] {
                Header { name, contains: None } => format!("header {name} is missing"),
                Header { name, contains: Some(part) } => format!("header {name} does not contain `{part}`"),
            },
            Mismatch::NotJson => "body: not JSON".into(),
            Mismatch::Body(index) => match &self.body[usize::from(index)] {
                Body::Exact(_) => "body: not the expected text".into(),
                Body::Contains { .. } => "body: an expected text is not in it".into(),
                Body::Length(length) => format!("body: not {length} bytes long"),
                Body::Digest(_) => "body: not the expected digest".into(),
                Body::Json { text, test: Test::Equals(_), .. } => format!("body: {text} is not the expected value"),
                Body::Json { text, test: Test::Type(kind), .. } => format!("body: {text} is not {}", a_kind(*kind)),
                Body::Json { text, test: Test::Exists, .. } => format!("body: {text} is missing"),
            },
        }
    }

    /// A mismatch in words with what was expected and what came.
    pub fn explain(&self, mismatch: Mismatch, response: &Response<'_>, values: &Values) -> String {
        let mut scratch = Vec::new();
        let mut text = |parts: &[Part]| excerpt(filled(parts, values, &mut scratch), SHOWN);
        match mismatch {
            Mismatch::Status(status) => {
                let accepted = match self.status.as_ref() {
                    [] => "200 to 299".to_owned(),
                    accepted => accepted.iter().map(u16::to_string).collect::<Vec<_>>().join(" or "),
                };
                format!("status is {status}, expected {accepted}")
            }
            Mismatch::Header(index) => {
                let header = &self.headers[usize::from(index)];
                let came: Vec<String> = response.header(&header.name).map(|value| excerpt(value, SHOWN)).collect();
                match (&header.contains, came.is_empty()) {
                    (None, _) => format!("header {} is missing", header.name),
                    (Some(part), true) => {
                        format!("header {} is missing, expected one that contains `{part}`", header.name)
                    }
                    (Some(part), false) => {
                        format!(
                            "header {} is `{}`, expected one that contains `{part}`",
                            header.name,
                            came.join("`, `")
                        )
                    }
                }
            }
            Mismatch::NotJson => "body is not JSON".into(),
            Mismatch::Body(index) => match &self.body[usize::from(index)] {
                Body::Exact(parts) => {
                    format!("body is `{}`, expected `{}`", excerpt(response.body, SHOWN), text(parts))
                }
                Body::Contains { part, .. } => {
                    format!("body `{}` does not contain `{}`", excerpt(response.body, SHOWN), text(part))
                }
                Body::Length(length) => format!("body has {} bytes, expected {length}", response.body_length),
                Body::Digest(digest) => format!(
                    "body has the digest {}, expected {}",
                    blake3::hash(response.body).to_hex(),
                    blake3::Hash::from_bytes(*digest).to_hex()
                ),
                Body::Json { text: place, path, test } => {
                    let wanted = match test {
                        Test::Equals(parts) => text(parts),
                        Test::Type(kind) => a_kind(*kind).to_owned(),
                        Test::Exists => "any value".to_owned(),
                    };
                    match json::find(response.body, path) {
                        Ok(Some(value)) => format!("body: {place} is {}, expected {wanted}", excerpt(value, SHOWN)),
                        _ => format!("body: {place} is missing, expected {wanted}"),
                    }
                }
            },
        }
    }
}

/// Bytes of a value that a message shows.
const SHOWN: usize = 120;

/// A text with the values of this request. Constant ones need no copy.
#[inline]
fn filled<'a>(parts: &'a [Part], values: &Values, scratch: &'a mut Vec<u8>) -> &'a [u8] {
    match parts {
        [] => &[],
        [Part::Bytes(bytes)] => bytes,
        _ => {
            scratch.clear();
            for part in parts {
                match part {
                    Part::Bytes(bytes) => scratch.extend_from_slice(bytes),
                    Part::Parameter(index) => scratch.extend_from_slice(values.get(*index)),
                }
            }
            scratch
        }
    }
}

fn a_kind(kind: JsonType) -> &'static str {
    match kind {
        JsonType::String => "a string",
        JsonType::Integer => "an integer",
        JsonType::Number => "a number",
        JsonType::Boolean => "true or false",
        JsonType::Object => "an object",
        JsonType::Array => "an array",
        JsonType::Null => "null",
    }
}
