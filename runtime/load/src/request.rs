//! Requests as bytes: everything constant is laid out once; what varies is copied in between.

use std::collections::BTreeMap;

use plan::{Body, Piece, Request, Text};

use crate::error::LoadError;
use crate::parameter::{Parameters, Values, write_integer};

/// Names that a text may use, and what they stand for.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    /// Constants of the job.
    pub variables: &'a BTreeMap<String, String>,
    /// Names of the stream's parameters, by index; they hide constants of the same name.
    pub parameters: &'a [String],
}

/// A piece of a text whose constants have been filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// These bytes.
    Bytes(Vec<u8>),
    /// The value of the parameter with this index.
    Parameter(u16),
}

impl Names<'_> {
    /// Fills in the constants of a text. Neighbouring constant pieces become one.
    ///
    /// # Errors
    /// When a name stands for nothing.
    pub fn parts(&self, text: &Text, place: &str) -> Result<Vec<Part>, LoadError> {
        let mut parts = Vec::new();
        for piece in &text.0 {
            let value = match piece {
                Piece::Literal(text) => text,
                Piece::Variable(name) => {
                    if let Some(index) = self.parameters.iter().position(|parameter| parameter == name) {
                        parts.push(Part::Parameter(index as u16));
                        continue;
                    }
                    self.variables.get(name).ok_or_else(|| {
                        LoadError::job(
                            format!("the variable `${{{name}}}` in {place} has no value"),
                            "declare it as a factor, credential or parameter of the stream",
                        )
                    })?
                }
            };
            match parts.last_mut() {
                Some(Part::Bytes(bytes)) => bytes.extend_from_slice(value.as_bytes()),
                _ => parts.push(Part::Bytes(value.as_bytes().to_vec())),
            }
        }
        Ok(parts)
    }
}

/// A request, laid out.
pub struct Template {
    /// All constant bytes, in order.
    constant: Vec<u8>,
    segments: Vec<Segment>,
    /// Constant bytes of the body.
    body_length: usize,
    /// Parameters of the body, as often as they occur.
    body_parameters: Vec<u16>,
    /// The answer to this request has no body, whatever its header says.
    is_head: bool,
}

enum Segment {
    /// These constant bytes.
    Constant { start: usize, end: usize },
    /// A parameter's value.
    Parameter(u16),
    /// A parameter's value with what a path can't hold percent-encoded.
    Encoded(u16),
    /// The length of the body in decimal.
    ContentLength,
}

impl Template {
    /// Lays out a request.
    ///
    /// # Errors
    /// When a variable or token has no value, or a part of the request can't be sent as it is written.
    pub fn new(
        request: &Request,
        host: &str,
        tokens: &BTreeMap<String, String>,
        names: Names<'_>,
        parameters: &Parameters,
    ) -> Result<Self, LoadError> {
        let mut template = Self {
            constant: Vec::new(),
            segments: Vec::new(),
            body_length: 0,
            body_parameters: Vec::new(),
            is_head: request.method == "HEAD",
        };
        if request.method.is_empty() || !request.method.bytes().all(is_token) || request.method == "CONNECT" {
            return Err(LoadError::job(
                format!("`{}` is not a method that can be sent", request.method),
                "use GET, POST, PUT, PATCH, DELETE, HEAD or OPTIONS",
            ));
        }
        template.put(request.method.as_bytes());
        template.put(b" ");
        let path = names.parts(&request.path, "a path")?;
        if !matches!(path.first(), Some(Part::Bytes(bytes)) if bytes.first() == Some(&b'/')) {
            return Err(LoadError::job(
                format!("the path `{}` does not start with `/`", request.path),
                "write the path only, such as `/events/1`",
            ));
        }
        for part in path {
            match part {
                Part::Bytes(bytes) => {
                    let mut encoded = Vec::new();
                    encode(&bytes, &mut encoded);
                    template.put(&encoded);
                }
                Part::Parameter(index) if parameters.is_free_text(index) => {
                    template.segments.push(Segment::Encoded(index));
                }
                Part::Parameter(index) => template.segments.push(Segment::Parameter(index)),
            }
        }
        template.put(b" HTTP/1.1\r\n");
        let has = |name: &str| request.headers.iter().any(|(header, _)| header.eq_ignore_ascii_case(name));
        if !has("host") {
            template.header("Host", &[Part::Bytes(host.as_bytes().to_vec())], parameters)?;
        }
        for (name, value) in &request.headers {
            if name.eq_ignore_ascii_case("content-length") || name.eq_ignore_ascii_case("transfer-encoding") {
                return Err(LoadError::job(
                    format!("the header `{name}` is not the study's to set: the generator frames the body"),
                    "remove it",
                ));
            }
            if name.eq_ignore_ascii_case("accept-encoding") {
                return Err(LoadError::job(
                    format!("the header `{name}` is not the study's to set: bodies are checked as they come"),
                    "write `accept-encoding=gzip` in the stream (`exp load --compressed`), and bodies are decoded before they are checked",
                ));
            }
            template.header(name, &names.parts(value, &format!("the header `{name}`"))?, parameters)?;
        }
        if let Some(token) = &request.bearer {
            let value = tokens.get(token).ok_or_else(|| {
                LoadError::job(format!("the token `{token}` has no value"), "declare it under `credentials`")
            })?;
            template.header("Authorization", &[Part::Bytes(format!("Bearer {value}").into_bytes())], parameters)?;
        }
        if let Some(content_type) = request.content_type.as_ref().filter(|_| !has("content-type")) {
            template.header("Content-Type", &[Part::Bytes(content_type.as_bytes().to_vec())], parameters)?;
        }
        if request.accept_gzip {
            template.put(b"Accept-Encoding: gzip\r\n");
        }
        let Some(body) = &request.body else {
            if matches!(request.method.as_str(), "POST" | "PUT" | "PATCH") {
                template.put(b"Content-Length: 0\r\n");
            }
            template.put(b"\r\n");
            return Ok(template);
        };
        let body = match body {
            Body::Text(text) => names.parts(text, "a body")?,
            Body::File(file) => vec![Part::Bytes(file.content.clone())],
        };
        for part in &body {
            match part {
                Part::Bytes(bytes) => template.body_length += bytes.len(),
                Part::Parameter(index) => template.body_parameters.push(*index),
            }
        }
        template.put(b"Content-Length: ");
        if template.body_parameters.is_empty() {
            let length = template.body_length.to_string();
            template.put(length.as_bytes());
        } else {
            template.segments.push(Segment::ContentLength);
        }
        template.put(b"\r\n\r\n");
        for part in &body {
            match part {
                Part::Bytes(bytes) => template.put(bytes),
                Part::Parameter(index) => template.segments.push(Segment::Parameter(*index)),
            }
        }
        Ok(template)
    }

    fn put(&mut self, bytes: &[u8]) {
        let start = self.constant.len();
        self.constant.extend_from_slice(bytes);
        let now = self.constant.len();
        match self.segments.last_mut() {
            Some(Segment::Constant { end, .. }) => *end = now,
            _ => self.segments.push(Segment::Constant { start, end: now }),
        }
    }

    fn header(&mut self, name: &str, value: &[Part], parameters: &Parameters) -> Result<(), LoadError> {
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(LoadError::job(format!("`{name}` is not a header name"), "use letters, digits and `-` only"));
        }
        self.put(name.as_bytes());
        self.put(b": ");
        for part in value {
            match part {
                Part::Bytes(bytes) if bytes.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) => {
                    return Err(LoadError::job(
                        format!("the value of the header `{name}` has a line break in it"),
                        "remove the line break",
                    ));
                }
                Part::Bytes(bytes) => self.put(bytes),
                Part::Parameter(index) if parameters.breaks_lines(*index) => {
                    return Err(LoadError::job(
                        format!("a parameter in the header `{name}` has a choice with a line break in it"),
                        "remove the line break",
                    ));
                }
                Part::Parameter(index) => self.segments.push(Segment::Parameter(*index)),
            }
        }
        self.put(b"\r\n");
        Ok(())
    }

    /// Whether the answer has no body, whatever its header says.
    #[inline]
    pub fn is_head(&self) -> bool {
        self.is_head
    }

    /// The whole request, where nothing in it varies.
    #[inline]
    pub fn constant(&self) -> Option<&[u8]> {
        match self.segments.as_slice() {
            [Segment::Constant { .. }] => Some(&self.constant),
            _ => None,
        }
    }

    /// Writes the request with these values into an emptied buffer.
    #[inline]
    pub fn render(&self, values: &Values, out: &mut Vec<u8>) {
        out.clear();
        for segment in &self.segments {
            match segment {
                Segment::Constant { start, end } => out.extend_from_slice(&self.constant[*start..*end]),
                Segment::Parameter(index) => out.extend_from_slice(values.get(*index)),
                Segment::Encoded(index) => encode(values.get(*index), out),
                Segment::ContentLength => {
                    let varying: usize = self.body_parameters.iter().map(|index| values.get(*index).len()).sum();
                    write_integer((self.body_length + varying) as i64, out);
                }
            }
        }
    }
}

/// Characters of a method or header name (RFC 9110 §5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Appends bytes with those percent-encoded that would end or break a request line: spaces, controls, what is not ASCII.
fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in bytes {
        if byte <= b' ' || byte >= 0x7F {
            out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        } else {
            out.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use plan::{Parameter, ParameterKind};

    use super::*;

    fn text(pieces: &[&str]) -> Text {
        Text(
            pieces
                .iter()
                .map(|piece| match piece.strip_prefix('$') {
                    Some(name) => Piece::Variable(name.into()),
                    None => Piece::Literal((*piece).into()),
                })
                .collect(),
        )
    }

    fn rendered(request: &Request) -> Result<String, LoadError> {
        let parameters = [
            Parameter { name: "id".into(), kind: ParameterKind::Sequence { from: 9, to: 10_000 } },
            Parameter { name: "word".into(), kind: ParameterKind::Choice(vec!["a b/é".into()]) },
        ];
        let names: Vec<String> = parameters.iter().map(|parameter| parameter.name.clone()).collect();
        let parameters = Parameters::new(&parameters, 1, 0)?;
        let variables = BTreeMap::from([("kind".to_owned(), "page view".to_owned())]);
        let tokens = BTreeMap::from([("reader".to_owned(), "abc".to_owned())]);
        let template =
            Template::new(request, "h:1", &tokens, Names { variables: &variables, parameters: &names }, &parameters)?;
        let (mut values, mut out) = (Values::default(), Vec::new());
        parameters.draw(1, &mut values);
        template.render(&values, &mut out);
        if let Some(constant) = template.constant() {
            assert_eq!(constant, out);
        }
        Ok(String::from_utf8(out).expect("text"))
    }

    fn get(path: Text) -> Request {
        Request {
            method: "GET".into(),
            path,
            headers: Vec::new(),
            bearer: None,
            body: None,
            content_type: None,
            accept_gzip: false,
        }
    }

    #[test]
    fn requests_are_framed_and_filled_in() {
        let mut request = get(text(&["/events/", "$id", "?k=", "$kind", "&w=", "$word"]));
        request.bearer = Some("reader".into());
        assert_eq!(
            rendered(&request).expect("a request"),
            "GET /events/10?k=page%20view&w=a%20b/%C3%A9 HTTP/1.1\r\nHost: h:1\r\nAuthorization: Bearer abc\r\n\r\n"
        );
        let mut request = get(text(&["/events"]));
        request.method = "POST".into();
        request.headers = vec![("Host".into(), text(&["other"])), ("X-Id".into(), text(&["n", "$id"]))];
        request.content_type = Some("application/json".into());
        request.body = Some(Body::Text(text(&["{\"id\":", "$id", ",\"w\":\"", "$word", "\"}"])));
        assert_eq!(
            rendered(&request).expect("a request"),
            "POST /events HTTP/1.1\r\nHost: other\r\nX-Id: n10\r\nContent-Type: application/json\r\n\
             Content-Length: 22\r\n\r\n{\"id\":10,\"w\":\"a b/é\"}"
        );
        request.body = Some(Body::File(plan::BodyFile {
            path: "bodies/x.bin".into(),
            digest: plan::ContentHash::of_bytes(b"\0${id}"),
            content: b"\0${id}".to_vec(),
        }));
        request.accept_gzip = true;
        request.content_type = Some("application/octet-stream".into());
        assert_eq!(
            rendered(&request).expect("a request"),
            "POST /events HTTP/1.1\r\nHost: other\r\nX-Id: n10\r\nContent-Type: application/octet-stream\r\n\
             Accept-Encoding: gzip\r\nContent-Length: 6\r\n\r\n\0${id}",
            "a file is sent as it is"
        );
        request.body = None;
        request.content_type = None;
        assert!(rendered(&request).expect("a request").ends_with("Content-Length: 0\r\n\r\n"));
    }

    #[test]
    fn what_cannot_be_sent_is_refused_by_name() {
        let with = |change: &dyn Fn(&mut Request)| {
            let mut request = get(text(&["/"]));
            change(&mut request);
            rendered(&request).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(with(&|_| ()), "");
        assert!(with(&|r| r.method = "GE T".into()).contains("`GE T`"));
        assert!(with(&|r| r.path = text(&["events"])).contains("`events`"));
        assert!(with(&|r| r.path = text(&["$kind"])).contains("does not start"));
        assert!(with(&|r| r.path = text(&["/", "$nobody"])).contains("${nobody}"));
        assert!(with(&|r| r.bearer = Some("writer".into())).contains("`writer`"));
        assert!(with(&|r| r.headers = vec![("A b".into(), text(&["x"]))]).contains("`A b`"));
        assert!(with(&|r| r.headers = vec![("A".into(), text(&["x\r\nB: y"]))]).contains("line break"));
        assert!(with(&|r| r.headers = vec![("content-length".into(), text(&["3"]))]).contains("content-length"));
        assert!(with(&|r| r.headers = vec![("Accept-Encoding".into(), text(&["br"]))]).contains("decoded"));
    }
}
