//! Reading HTTP/1.1 answers (RFC 9112): one pass over a buffer for the usual ones, an incremental reader for the rest.
//!
//! The usual answer lies complete in one read and has a `Content-Length`: a line scanner finds status, length and end
//! without copying. Odd heads go to httparse, which decides. Whatever arrives in pieces, chunked or until the
//! connection ends goes through [`Reader`], whose buffers are pooled.

use std::ops::Range;

/// Longest head, and longest trailers, that are read.
const HEAD_LIMIT: usize = 64 * 1024;
/// Longest body that is kept for its checks.
pub const BODY_LIMIT: usize = 64 * 1024 * 1024;
/// Bytes of a body that are kept as evidence where no check reads it.
pub const EVIDENCE: usize = 512;
/// Most headers of an odd head.
const HEADERS: usize = 128;
/// Longest line that gives a chunk's size.
const CHUNK_LINE_LIMIT: usize = 4_096;

/// An answer that has arrived completely.
#[derive(Debug, Clone, Copy)]
pub struct Response<'a> {
    /// Status.
    pub status: u16,
    /// Status line and headers, the empty line included.
    pub head: &'a [u8],
    /// The body, decoded. Only its start where nothing asked for more; see `body_length`.
    pub body: &'a [u8],
    /// Length of the whole body.
    pub body_length: u64,
    /// Another request may be sent on this connection.
    pub persists: bool,
}

impl<'a> Response<'a> {
    /// The values of the headers with this name, compared without case, in order.
    pub fn header(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.headers().filter(move |(header, _)| header.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    /// All headers in order.
    pub fn headers(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        self.lines().skip(1).filter_map(|line| {
            let colon = memchr::memchr(b':', line)?;
            Some((line[..colon].trim_ascii(), line[colon + 1..].trim_ascii()))
        })
    }

    /// The lines of the head. Empty ones before the status line, which a reader passes over, are none of them.
    fn lines(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.head.trim_ascii_start().split(|byte| *byte == b'\n')
    }

    /// The status line without its line break.
    pub fn status_line(&self) -> &'a [u8] {
        self.lines().next().unwrap_or_default().trim_ascii_end()
    }
}

/// What is wrong with bytes that should be an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Violation {
    /// The bytes don't start as an HTTP/1 answer does, or a header is malformed.
    Head,
    /// The head is longer than 64 KiB or has more than 128 odd headers.
    LongHead,
    /// `Content-Length` is no number, or there are two that differ.
    Length,
    /// A chunk has no readable size or no end.
    Chunk,
    /// The body is longer than the 64 MiB that are kept for checks.
    LongBody,
    /// Bytes followed the end of the answer.
    Excess,
    /// The target switched protocols, which nobody asked for.
    Switched,
}

impl Violation {
    /// In words, to follow "protocol: ".
    pub fn words(self) -> &'static str {
        match self {
            Self::Head => "the answer is not HTTP/1.1",
            Self::LongHead => "the answer's head is longer than 64 KiB",
            Self::Length => "the answer's Content-Length makes no sense",
            Self::Chunk => "a chunk of the answer makes no sense",
            Self::LongBody => "the answer's body is longer than 64 MiB",
            Self::Excess => "bytes came after the end of the answer",
            Self::Switched => "the target switched protocols",
        }
    }
}

/// What one look at a buffer found.
pub enum Look<'a> {
    /// A complete answer in the first `used` bytes.
    Whole {
        /// The answer.
        response: Response<'a>,
        /// Bytes that belong to it, interim answers before it included.
        used: usize,
    },
    /// Not complete, or not of the usual kind: give all of it to a [`Reader`].
    Other,
    /// Not an answer.
    Bad(Violation),
}

/// Looks for a complete answer with a known length at the start of a buffer. Copies nothing.
#[inline]
pub fn look(bytes: &[u8], is_head_request: bool) -> Look<'_> {
    let mut skipped = 0;
    loop {
        let rest = &bytes[skipped..];
        let head = match scan(rest, is_head_request) {
            Scan::Head(head) => head,
            Scan::Partial => return Look::Other,
            Scan::Bad(violation) => return Look::Bad(violation),
        };
        if head.is_interim() {
            skipped += head.length;
            continue;
        }
        let body_length = match head.framing {
            Framing::Length(length) if length <= (rest.len() - head.length) as u64 => length as usize,
            _ => return Look::Other,
        };
        let end = head.length + body_length;
        return Look::Whole {
            response: Response {
                status: head.status,
                head: &rest[..head.length],
                body: &rest[head.length..end],
                body_length: body_length as u64,
                persists: head.persists,
            },
            used: skipped + end,
        };
    }
}

/// How the end of a body is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length(u64),
    Chunked,
    UntilEnd,
}

#[derive(Debug, Clone, Copy)]
struct Head {
    status: u16,
    length: usize,
    framing: Framing,
    persists: bool,
}

impl Head {
    fn is_interim(&self) -> bool {
        self.status < 200
    }
}

enum Scan {
    Head(Head),
    Partial,
    Bad(Violation),
}

/// What the headers said, before the rules of RFC 9112 §6.3 are applied.
#[derive(Default)]
struct Said {
    length: Option<u64>,
    chunked: bool,
    other_encoding: bool,
    close: bool,
    keep_alive: bool,
    http_1_0: bool,
}

impl Said {
    fn head(self, status: u16, length: usize, is_head_request: bool) -> Scan {
        if status == 101 {
            return Scan::Bad(Violation::Switched);
        }
        let framing = if is_head_request || status < 200 || status == 204 || status == 304 {
            Framing::Length(0)
        } else if self.chunked {
            Framing::Chunked
        } else if self.other_encoding {
            Framing::UntilEnd
        } else {
            self.length.map_or(Framing::UntilEnd, Framing::Length)
        };
        // An answer with both framings may be an attempt to smuggle: the connection is not used again (RFC 9112 §6.3).
        let mixed = self.length.is_some() && (self.chunked || self.other_encoding);
        let persists = !self.close && !mixed && framing != Framing::UntilEnd && (!self.http_1_0 || self.keep_alive);
        Scan::Head(Head { status, length, framing, persists })
    }

    fn take_length(&mut self, value: &[u8]) -> Result<(), Violation> {
        for one in value.split(|byte| *byte == b',') {
            let one = one.trim_ascii();
            if one.is_empty() || one.len() > 19 || !one.iter().all(u8::is_ascii_digit) {
                return Err(Violation::Length);
            }
            let length = one.iter().fold(0u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
            if self.length.is_some_and(|known| known != length) {
                return Err(Violation::Length);
            }
            self.length = Some(length);
        }
        Ok(())
    }

    fn take_encoding(&mut self, value: &[u8]) {
        // Only a final `chunked` frames the body.
        let last = value.rsplit(|byte| *byte == b',').next().unwrap_or_default();
        self.chunked = last.trim_ascii().eq_ignore_ascii_case(b"chunked");
        self.other_encoding = !self.chunked;
    }

    fn take_connection(&mut self, value: &[u8]) {
        for option in value.split(|byte| *byte == b',') {
            let option = option.trim_ascii();
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    fn take(&mut self, name: &[u8], value: &[u8]) -> Result<(), Violation> {
        if name.eq_ignore_ascii_case(b"content-length") {
            self.take_length(value)?;
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.take_encoding(value);
        } else if name.eq_ignore_ascii_case(b"connection") {
            self.take_connection(value);
        }
        Ok(())
    }
}

/// Reads a head by lines; anything but the plainest form is left to [`scan_odd`].
#[inline]
fn scan(bytes: &[u8], is_head_request: bool) -> Scan {
    if bytes.len() < 16 || &bytes[..9] != b"HTTP/1.1 " || !matches!(bytes[12], b' ' | b'\r') {
        return scan_odd(bytes, is_head_request);
    }
    let mut status = 0u16;
    for digit in &bytes[9..12] {
        if !digit.is_ascii_digit() {
            return scan_odd(bytes, is_head_request);
        }
        status = status * 10 + u16::from(digit - b'0');
    }
    if status < 100 {
        return scan_odd(bytes, is_head_request);
    }
    let mut said = Said::default();
    let mut start = 12;
    let mut first = true;
    loop {
        let Some(length) = memchr::memchr(b'\n', &bytes[start..]) else {
            return scan_odd(bytes, is_head_request);
        };
        let end = start + length;
        if length == 0 || bytes[end - 1] != b'\r' || !is_printable(&bytes[start..end - 1]) {
            return scan_odd(bytes, is_head_request);
        }
        let line = &bytes[start..end - 1];
        start = end + 1;
        if std::mem::take(&mut first) {
            continue;
        }
        if line.is_empty() {
            return if start > HEAD_LIMIT {
                Scan::Bad(Violation::LongHead)
            } else {
                said.head(status, start, is_head_request)
            };
        }
        let Some(colon) = memchr::memchr(b':', line) else { return scan_odd(bytes, is_head_request) };
        let name = &line[..colon];
        if name.is_empty() || !name.iter().all(|byte| IN_NAME[usize::from(*byte)]) {
            return scan_odd(bytes, is_head_request);
        }
        if matches!(name[0] | 0x20, b'c' | b't') {
            // What makes no sense is judged on the whole head, so that the judgement is the same however it is cut.
            if said.take(name, &line[colon + 1..]).is_err() {
                return scan_odd(bytes, is_head_request);
            }
        }
    }
}

/// Whether a line has no control characters but tabs. Without branches, so that it is compiled to wide instructions.
#[inline]
fn is_printable(line: &[u8]) -> bool {
    !line.iter().fold(false, |odd, byte| odd | ((*byte < b' ' && *byte != b'\t') | (*byte == 0x7F)))
}

/// Characters of a header's name (RFC 9110 §5.6.2).
const IN_NAME: [bool; 256] = {
    let mut table = [false; 256];
    let others = b"!#$%&'*+-.^_`|~";
    let mut index = 0;
    while index < others.len() {
        table[others[index] as usize] = true;
        index += 1;
    }
    let mut byte = 0;
    while byte < 256 {
        table[byte] |= (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    table
};

fn partial(bytes: &[u8]) -> Scan {
    if bytes.len() > HEAD_LIMIT { Scan::Bad(Violation::LongHead) } else { Scan::Partial }
}

/// Has httparse read a head.
#[cold]
fn scan_odd(bytes: &[u8], is_head_request: bool) -> Scan {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let length = match response.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return partial(bytes),
        // More headers than there is room for, of a head that goes on: when it is complete, it may be one of the plain ones.
        Err(httparse::Error::TooManyHeaders) if !has_end(bytes) => return partial(bytes),
        Err(httparse::Error::TooManyHeaders) => return Scan::Bad(Violation::LongHead),
        Err(_) => return Scan::Bad(Violation::Head),
    };
    let (Some(status), Some(version)) = (response.code, response.version) else { return Scan::Bad(Violation::Head) };
    if status < 100 {
        return Scan::Bad(Violation::Head);
    }
    if length > HEAD_LIMIT {
        return Scan::Bad(Violation::LongHead);
    }
    let mut said = Said { http_1_0: version == 0, ..Said::default() };
    for header in response.headers.iter() {
        if let Err(violation) = said.take(header.name.as_bytes(), header.value) {
            return Scan::Bad(violation);
        }
    }
    said.head(status, length, is_head_request)
}

fn has_end(head: &[u8]) -> bool {
    memchr::memmem::find(head, b"\r\n\r\n").is_some() || memchr::memmem::find(head, b"\n\n").is_some()
}

/// What a request tells the reader of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// It was a HEAD request: no body whatever the head says.
    pub is_head: bool,
    /// The checks read the body: keep all of it.
    pub keep_body: bool,
}

/// Reads an answer that comes in pieces.
pub struct Reader {
    state: State,
    head: Vec<u8>,
    found: Head,
    body: Vec<u8>,
    body_length: u64,
    /// The line that gives a chunk's size, as far as it has come; then the length of the trailers.
    line: Vec<u8>,
    trailers: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    Length {
        left: u64,
    },
    ChunkSize,
    Chunk {
        left: u64,
    },
    /// Bytes of the line break after a chunk that have come.
    ChunkEnd {
        seen: u8,
    },
    Trailers,
    UntilEnd,
    Done,
}

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}

impl Reader {
    /// A reader that has seen nothing.
    pub fn new() -> Self {
        Self {
            state: State::Head,
            head: Vec::new(),
            found: Head { status: 0, length: 0, framing: Framing::UntilEnd, persists: false },
            body: Vec::new(),
            body_length: 0,
            line: Vec::new(),
            trailers: 0,
        }
    }

    /// Forgets what it has seen; the buffers stay, unless a rare large answer made them large.
    pub fn reset(&mut self) {
        const KEEP: usize = 1024 * 1024;
        self.state = State::Head;
        self.head.clear();
        self.body.clear();
        self.body.shrink_to(KEEP);
        self.line.clear();
        self.body_length = 0;
        self.trailers = 0;
    }

    /// Takes the next bytes. Returns how many belong to the answer once it is complete, `None` while it isn't.
    ///
    /// # Errors
    /// When they are not the continuation of an answer.
    pub fn feed(&mut self, bytes: &[u8], asked: Asked) -> Result<Option<usize>, Violation> {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            if self.state == State::Done {
                return Ok(Some(at));
            }
            if rest.is_empty() {
                return Ok(None);
            }
            at += match self.state {
                State::Head => match self.take_head(rest, asked)? {
                    Some(used) => used,
                    None => return Ok(None),
                },
                State::Length { left } => {
                    let take = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    self.take_body(&rest[..take], asked)?;
                    let left = left - take as u64;
                    self.state = if left == 0 { State::Done } else { State::Length { left } };
                    take
                }
                State::UntilEnd => {
                    self.take_body(rest, asked)?;
                    rest.len()
                }
                State::ChunkSize => self.take_chunk_size(rest)?,
                State::Chunk { left } => {
                    let take = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    self.take_body(&rest[..take], asked)?;
                    let left = left - take as u64;
                    self.state = if left == 0 { State::ChunkEnd { seen: 0 } } else { State::Chunk { left } };
                    take
                }
                State::ChunkEnd { seen } => {
                    if rest[0] != b"\r\n"[usize::from(seen)] {
                        return Err(Violation::Chunk);
                    }
                    self.state = if seen == 0 { State::ChunkEnd { seen: 1 } } else { State::ChunkSize };
                    1
                }
                State::Trailers => self.take_trailer(rest)?,
                State::Done => 0,
            };
        }
    }

    /// Reads as much of the head as there is; `None` when it has not ended. All of `rest` is then taken.
    fn take_head(&mut self, rest: &[u8], asked: Asked) -> Result<Option<usize>, Violation> {
        let before = self.head.len();
        // No more than a head may have, so that a body behind it is not copied.
        let room = (HEAD_LIMIT + 1).saturating_sub(before).min(rest.len());
        self.head.extend_from_slice(&rest[..room]);
        match scan(&self.head, asked.is_head) {
            Scan::Partial => Ok(None),
            Scan::Bad(violation) => Err(violation),
            Scan::Head(head) => {
                let used = head.length - before.min(head.length);
                if head.is_interim() {
                    self.head.clear();
                    return Ok(Some(used));
                }
                self.head.truncate(head.length);
                self.found = head;
                self.state = match head.framing {
                    Framing::Length(0) => State::Done,
                    Framing::Length(left) => State::Length { left },
                    Framing::Chunked => State::ChunkSize,
                    Framing::UntilEnd => State::UntilEnd,
                };
                Ok(Some(used))
            }
        }
    }

    fn take_body(&mut self, bytes: &[u8], asked: Asked) -> Result<(), Violation> {
        self.body_length += bytes.len() as u64;
        let kept = if asked.keep_body {
            if self.body.len() + bytes.len() > BODY_LIMIT {
                return Err(Violation::LongBody);
            }
            bytes.len()
        } else {
            EVIDENCE.saturating_sub(self.body.len()).min(bytes.len())
        };
        self.body.extend_from_slice(&bytes[..kept]);
        Ok(())
    }

    fn take_chunk_size(&mut self, rest: &[u8]) -> Result<usize, Violation> {
        let take = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        if self.line.len() + take > CHUNK_LINE_LIMIT {
            return Err(Violation::Chunk);
        }
        self.line.extend_from_slice(&rest[..take]);
        // httparse takes a line without a digit for a size of 0, which would end the body.
        if !self.line[0].is_ascii_hexdigit() {
            return Err(Violation::Chunk);
        }
        match httparse::parse_chunk_size(&self.line) {
            Ok(httparse::Status::Complete((_, size))) => {
                self.line.clear();
                self.state = if size == 0 { State::Trailers } else { State::Chunk { left: size } };
                Ok(take)
            }
            // httparse takes a line feed alone for a part of an extension, and would read on into the chunk.
            Ok(httparse::Status::Partial) if self.line.ends_with(b"\n") => Err(Violation::Chunk),
            Ok(httparse::Status::Partial) => Ok(take),
            Err(_) => Err(Violation::Chunk),
        }
    }

    fn take_trailer(&mut self, rest: &[u8]) -> Result<usize, Violation> {
        let end = memchr::memchr(b'\n', rest);
        let take = end.map_or(rest.len(), |end| end + 1);
        self.trailers += take;
        if self.trailers > HEAD_LIMIT {
            return Err(Violation::LongHead);
        }
        // Only whether the line is empty matters: of a line's start two bytes are enough.
        let room = 2usize.saturating_sub(self.line.len()).min(take);
        self.line.extend_from_slice(&rest[..room]);
        if end.is_some() {
            if self.line == b"\r\n" || self.line == b"\n" {
                self.state = State::Done;
            }
            self.line.clear();
        }
        Ok(take)
    }

    /// Whether the connection's end completes the answer.
    pub fn end(&mut self) -> bool {
        if self.state == State::UntilEnd {
            self.state = State::Done;
        }
        self.state == State::Done
    }

    /// The answer, once it is complete.
    pub fn response(&self) -> Response<'_> {
        Response {
            status: self.found.status,
            head: &self.head,
            body: &self.body,
            body_length: self.body_length,
            persists: self.found.persists,
        }
    }
}

/// Bytes as text for a person: at most `limit` of them, control characters made visible.
pub fn excerpt(bytes: &[u8], limit: usize) -> String {
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(limit)]);
    let mut text: String =
        shown.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect();
    if bytes.len() > limit {
        text.push('…');
    }
    text
}

/// The part of a message that is its head, for tests and peers.
pub fn head_range(bytes: &[u8]) -> Option<Range<usize>> {
    memchr::memmem::find(bytes, b"\r\n\r\n").map(|end| 0..end + 4)
}

#[cfg(test)]
mod against;
#[cfg(test)]
mod tests;
