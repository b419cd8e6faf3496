//! One request and its answer over hyper: from laid-out bytes to hyper's types, and back to what the checks read.

use std::error::Error;
use std::io;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;

use super::open::{Sender, Way};
use super::stamped::{Flight, Pulse};
use super::tls;
use crate::error::LoadError;
use crate::http::{Asked, BODY_LIMIT, EVIDENCE, Response, Violation};
use crate::tally::Failure;

/// A request in hyper's terms, to be cloned for each sending.
#[derive(Clone)]
pub struct Ready {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
}

/// Most headers that a request of ours has.
const HEADERS: usize = 256;

impl Ready {
    /// Reads a laid-out HTTP/1.1 request.
    ///
    /// # Errors
    /// When the way can't carry it.
    pub fn new(way: &Way, bytes: &[u8]) -> Result<Self, LoadError> {
        let unfit =
            |why: String| LoadError::job(format!("a request can't be sent this way: {why}"), "change the request");
        let mut storage = [httparse::EMPTY_HEADER; HEADERS];
        let mut parsed = httparse::Request::new(&mut storage);
        let length = match parsed.parse(bytes) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return Err(unfit("its head has no end".into())),
            Err(error) => return Err(unfit(error.to_string())),
        };
        let (method, path) = (parsed.method.unwrap_or_default(), parsed.path.unwrap_or_default());
        let mut headers = HeaderMap::with_capacity(parsed.headers.len());
        for found in parsed.headers.iter() {
            let name = HeaderName::from_bytes(found.name.as_bytes()).map_err(|error| unfit(error.to_string()))?;
            let value = HeaderValue::from_bytes(found.value).map_err(|error| unfit(error.to_string()))?;
            headers.append(name, value);
        }
        let is_http2 = matches!(way.transport.protocol, plan::Protocol::Http2);
        let uri = if is_http2 || way.is_absolute() {
            let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or(&way.host);
            format!("{}://{host}{path}", way.scheme())
        } else {
            path.to_owned()
        };
        if is_http2 {
            // It travels as `:authority`; and HTTP/2 knows no headers of one connection (RFC 9113 §8.2.2).
            headers.remove(header::HOST);
            headers.remove(header::CONNECTION);
        }
        Ok(Self {
            method: Method::from_bytes(method.as_bytes()).map_err(|error| unfit(error.to_string()))?,
            uri: uri.parse().map_err(|error| unfit(format!("`{uri}`: {error}")))?,
            headers,
            body: Bytes::copy_from_slice(&bytes[length..]),
        })
    }

    fn request(self) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(self.body));
        *request.method_mut() = self.method;
        *request.uri_mut() = self.uri;
        *request.headers_mut() = self.headers;
        request
    }
}

/// A complete answer.
pub struct Answer {
    status: u16,
    head: Vec<u8>,
    body: Vec<u8>,
    body_length: u64,
    /// Just after the read that brought its first byte, ns.
    pub first: u64,
    /// Just after the read that completed it, ns.
    pub done: u64,
}

impl Answer {
    /// As the checks read it.
    pub fn response(&self) -> Response<'_> {
        Response {
            status: self.status,
            head: &self.head,
            body: &self.body,
            body_length: self.body_length,
            persists: true,
        }
    }
}

/// Why a request has no answer.
#[derive(Debug)]
pub enum NoAnswer {
    /// It failed.
    Failed(Failure),
    /// The connection ended before it was written, or in good order and without having it processed (RFC 9113 §6.8): it may be
    /// sent again.
    PutBack,
}

/// Sends a request and reads its answer.
///
/// # Errors
/// When no complete answer comes.
pub async fn exchange(
    sender: &mut Sender,
    ready: Ready,
    asked: Asked,
    pulse: &Pulse,
    flight: &Flight,
) -> Result<Answer, NoAnswer> {
    let is_many = matches!(sender, Sender::Http2(_));
    let answered = match sender {
        Sender::Http1(sender) => sender.send_request(ready.request()).await,
        Sender::Http2(sender) => sender.send_request(ready.request()).await,
    };
    let response = answered.map_err(|error| {
        // It never left this machine.
        if error.is_canceled() && !flight.written.get() { NoAnswer::PutBack } else { no_answer(&error, pulse, false) }
    })?;
    let first = if is_many { pulse.last_read.get() } else { pulse.first_read.get() };
    let (parts, body) = response.into_parts();
    if parts.status == http::StatusCode::SWITCHING_PROTOCOLS {
        return Err(NoAnswer::Failed(Failure::Violation(Violation::Switched)));
    }
    let (body, body_length) = read(body, asked, pulse).await?;
    let done = pulse.last_read.get();
    let mut head = format!("{:?} {}\r\n", parts.version, parts.status).into_bytes();
    for (name, value) in &parts.headers {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    Ok(Answer { status: parts.status.as_u16(), head, body, body_length, first: first.min(done), done })
}

async fn read(mut incoming: Incoming, asked: Asked, pulse: &Pulse) -> Result<(Vec<u8>, u64), NoAnswer> {
    let (mut body, mut length) = (Vec::new(), 0u64);
    while let Some(frame) = incoming.frame().await {
        let frame = frame.map_err(|error| no_answer(&error, pulse, true))?;
        let Some(data) = frame.data_ref() else { continue };
        length += data.len() as u64;
        let room = if asked.keep_body { BODY_LIMIT } else { EVIDENCE }.saturating_sub(body.len());
        if asked.keep_body && data.len() > room {
            return Err(NoAnswer::Failed(Failure::Violation(Violation::LongBody)));
        }
        body.extend_from_slice(&data[..data.len().min(room)]);
    }
    Ok((body, length))
}

/// What an error of hyper's means for the request.
fn no_answer(error: &hyper::Error, pulse: &Pulse, in_body: bool) -> NoAnswer {
    let began = in_body || pulse.first_read.get() > 0;
    let ended = if began { Failure::Truncated } else { Failure::Closed };
    let mut source: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            if error.is_go_away() && error.is_remote() && error.reason() == Some(h2::Reason::NO_ERROR) {
                return NoAnswer::PutBack;
            }
            if let Some(reason) = error.reason() {
                return NoAnswer::Failed(Failure::Http2(reason.into()));
            }
            if let Some(error) = error.get_io() {
                return NoAnswer::Failed(of_io(error, ended, in_body));
            }
        }
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return NoAnswer::Failed(of_io(error, ended, in_body));
        }
        source = error.source();
    }
    // Which part could not be read, a client of hyper's tells in words alone.
    let words = error.to_string();
    NoAnswer::Failed(if error.is_parse() && words.contains("too large") {
        Failure::Violation(Violation::LongHead)
    } else if error.is_parse() {
        Failure::Violation(if words.contains("content-length") { Violation::Length } else { Violation::Head })
    } else {
        ended
    })
}

fn of_io(error: &io::Error, ended: Failure, in_body: bool) -> Failure {
    match (error.kind(), error.raw_os_error()) {
        (_, Some(code)) => Failure::Broken(code),
        (io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput, _) if in_body => {
            Failure::Violation(Violation::Chunk)
        }
        (io::ErrorKind::InvalidData, _) => Failure::Tls(tls::explain(error).0),
        _ => ended,
    }
}
