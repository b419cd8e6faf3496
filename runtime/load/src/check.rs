//! What an answer must be, compiled from [`plan::Expect`]; one validator for the hot path and for single requests.

use std::io::Read as _;

use memchr::memmem;
use plan::{BodyCheck, Expect, JsonTest, JsonType};

use crate::error::LoadError;
use crate::http::{BODY_LIMIT, Response, excerpt};
use crate::json::{self, Step};
use crate::parameter::Values;
use crate::request::{Names, Part};

/// Buffers to work in, so that checking an answer allocates nothing.
#[derive(Default)]
pub struct Scratch {
    text: Vec<u8>,
    decoded: Vec<u8>,
}

/// All checks of a stream's answers.
pub struct Checks {
    /// Answers may be compressed: the request asked for gzip.
    gzip: bool,
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
    /// The body is compressed in a way that the request did not ask for.
    Encoded,
    /// The body is not the gzip that its header says.
    NotGzip,
    /// The body is no JSON.
    NotJson,
    /// The body is something else.
    Body(u16),
}

impl Checks {
    /// Compiles an expectation of answers that may be compressed with gzip or not.
    ///
    /// # Errors
    /// When a variable has no value, a path is none or a digest has not 64 hexadecimal digits.
    pub fn new(expect: &Expect, gzip: bool, names: Names<'_>) -> Result<Self, LoadError> {
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
            gzip,
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
        self.body.iter().any(|check| self.gzip || !matches!(check, Body::Length(_)))
    }

    /// The answer with its body decoded, where it is compressed.
    fn decoded<'a>(&self, response: &Response<'a>, decoded: &'a mut Vec<u8>) -> Result<Response<'a>, Mismatch> {
        if self.body.is_empty() { Ok(*response) } else { decode(response, self.gzip, decoded) }
    }

    /// Checks an answer.
    ///
    /// # Errors
    /// The first check that it does not pass.
    #[inline]
    pub fn verify(&self, response: &Response<'_>, values: &Values, scratch: &mut Scratch) -> Result<(), Mismatch> {
        let Scratch { text: scratch, decoded } = scratch;
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
        let compressed = response;
        let response = &self.decoded(response, decoded)?;
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
                    match (
                        json::find(response.body, path)
                            .map_err(|_| unasked(compressed, self.gzip, Mismatch::NotJson))?,
                        test,
                    ) {
                        (None, _) => false,
                        (Some(value), Test::Equals(parts)) => json::equals(value, filled(parts, values, scratch)),
                        (Some(value), Test::Type(kind)) => json::is_of_type(value, *kind),
                        (Some(_), Test::Exists) => true,
                    }
                }
            };
            if !holds {
                return Err(unasked(compressed, self.gzip, Mismatch::Body(index as u16)));
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
            Mismatch::Encoded => "body: compressed, which the request did not ask for".into(),
            Mismatch::NotGzip => "body: not the gzip that its header says".into(),
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
        let (mut scratch, mut decoded) = (Vec::new(), Vec::new());
        let response = &match self.decoded(response, &mut decoded) {
            Ok(decoded) => decoded,
            Err(_) => *response,
        };
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
            Mismatch::Encoded => {
                let encodings: Vec<String> =
                    response.header(CONTENT_ENCODING).map(|value| excerpt(value, SHOWN)).collect();
                format!("body is compressed (`{}`), which the request did not ask for", encodings.join("`, `"))
            }
            Mismatch::NotGzip => "body is not the gzip that its header says".into(),
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

/// The header that says how a body is compressed.
pub const CONTENT_ENCODING: &str = "content-encoding";

/// How a body is compressed.
enum Encoding {
    None,
    Gzip,
    Other,
}

fn encoding(response: &Response<'_>) -> Encoding {
    let mut found = Encoding::None;
    for value in response.header(CONTENT_ENCODING) {
        found = match (found, value) {
            (found, b"" | b"identity") => found,
            (Encoding::None, value) if value.eq_ignore_ascii_case(b"gzip") || value.eq_ignore_ascii_case(b"x-gzip") => {
                Encoding::Gzip
            }
            _ => Encoding::Other,
        };
    }
    found
}

/// The answer to a request that accepts gzip or not, its body decoded where it is compressed.
///
/// # Errors
/// When it is compressed otherwise, or not the gzip that its header says.
pub fn decode<'a>(response: &Response<'a>, gzip: bool, decoded: &'a mut Vec<u8>) -> Result<Response<'a>, Mismatch> {
    if !gzip {
        return Ok(*response);
    }
    match encoding(response) {
        Encoding::None => Ok(*response),
        Encoding::Gzip => {
            gunzip(response.body, decoded)?;
            Ok(Response { body: decoded, body_length: decoded.len() as u64, ..*response })
        }
        Encoding::Other => Err(Mismatch::Encoded),
    }
}

/// What a body check that failed really says: a body that is compressed unasked fails for that.
#[cold]
fn unasked(response: &Response<'_>, gzip: bool, mismatch: Mismatch) -> Mismatch {
    if !gzip && !matches!(encoding(response), Encoding::None) { Mismatch::Encoded } else { mismatch }
}

/// Decodes gzip (RFC 1952) into an emptied buffer.
fn gunzip(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Mismatch> {
    out.clear();
    let limit = BODY_LIMIT as u64 + 1;
    match flate2::bufread::MultiGzDecoder::new(bytes).take(limit).read_to_end(out) {
        Ok(length) if (length as u64) < limit => Ok(()),
        _ => Err(Mismatch::NotGzip),
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
