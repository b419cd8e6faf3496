//! The reader against a second reader of the same bytes, which has them all at once and goes by httparse alone.

use proptest::prelude::*;

use super::*;

const PLAIN: Asked = Asked { is_head: false, keep_body: true };

/// A complete answer, owned.
#[derive(Debug, PartialEq, Eq, Clone)]
struct Owned {
    status: u16,
    headers: Vec<(Vec<u8>, Vec<u8>)>,
    body: Vec<u8>,
    persists: bool,
    used: usize,
}

fn owned(response: &Response<'_>, used: usize) -> Owned {
    assert_eq!(response.body_length, response.body.len() as u64);
    Owned {
        status: response.status,
        headers: response.headers().map(|(name, value)| (name.to_vec(), value.to_vec())).collect(),
        body: response.body.to_vec(),
        persists: response.persists,
        used,
    }
}

#[derive(Debug, PartialEq, Eq, Clone)]
enum Read {
    Whole(Owned),
    Broken(Violation),
    Unfinished,
}

/// The reader under test, given the bytes in these pieces, then the end of the connection.
fn in_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, is_head: bool) -> Read {
    let asked = Asked { is_head, ..PLAIN };
    let mut reader = Reader::new();
    let mut before = 0;
    for piece in pieces {
        match reader.feed(piece, asked) {
            Ok(Some(used)) => return Read::Whole(owned(&reader.response(), before + used)),
            Ok(None) => before += piece.len(),
            Err(violation) => return Read::Broken(violation),
        }
    }
    if reader.end() { Read::Whole(owned(&reader.response(), before)) } else { Read::Unfinished }
}

/// What the look at a whole buffer gives; what it leaves to the reader is read by it in one piece.
fn at_once(bytes: &[u8], is_head: bool) -> Read {
    match look(bytes, is_head) {
        Look::Whole { response, used } => Read::Whole(owned(&response, used)),
        Look::Bad(violation) => Read::Broken(violation),
        Look::Other => in_pieces([bytes], is_head),
    }
}

/// A straightforward reading of the same rules: RFC 9112 §6.3 over httparse, recursion and copies.
fn reference(bytes: &[u8], is_head: bool) -> Read {
    let mut storage = [httparse::EMPTY_HEADER; 128];
    let mut parsed = httparse::Response::new(&mut storage);
    let head = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => return Read::Unfinished,
        Err(httparse::Error::TooManyHeaders) => return Read::Broken(Violation::LongHead),
        Err(_) => return Read::Broken(Violation::Head),
    };
    let status = parsed.code.expect("complete");
    if status < 100 {
        return Read::Broken(Violation::Head);
    }
    let headers: Vec<(Vec<u8>, Vec<u8>)> = parsed
        .headers
        .iter()
        .map(|header| (header.name.as_bytes().to_vec(), header.value.trim_ascii().to_vec()))
        .collect();
    let all = |name: &str| -> Vec<String> {
        headers
            .iter()
            .filter(|(header, _)| header.eq_ignore_ascii_case(name.as_bytes()))
            .flat_map(|(_, value)| {
                String::from_utf8_lossy(value)
                    .split(',')
                    .map(|part| part.trim().to_ascii_lowercase())
                    .collect::<Vec<_>>()
            })
            .collect()
    };
    let lengths = all("content-length");
    let mut length = None;
    for text in &lengths {
        let plain = !text.is_empty() && text.len() < 20 && text.bytes().all(|byte| byte.is_ascii_digit());
        let Some(value) = text.parse::<u64>().ok().filter(|_| plain) else { return Read::Broken(Violation::Length) };
        if length.is_some_and(|known| known != value) {
            return Read::Broken(Violation::Length);
        }
        length = Some(value);
    }
    if status == 101 {
        return Read::Broken(Violation::Switched);
    }
    if status < 200 {
        return match reference(&bytes[head..], is_head) {
            Read::Whole(whole) => Read::Whole(Owned { used: whole.used + head, ..whole }),
            other => other,
        };
    }
    let encodings = all("transfer-encoding");
    let options = all("connection");
    let one_framing = length.is_none() || encodings.is_empty();
    let stays = parsed.version == Some(1) || options.contains(&"keep-alive".to_owned());
    let mut persists = one_framing && stays && !options.contains(&"close".to_owned());
    let rest = &bytes[head..];
    let (body, used) = if is_head || status == 204 || status == 304 {
        (Vec::new(), 0)
    } else if encodings.last().is_some_and(|last| last == "chunked") {
        let (mut body, mut at) = (Vec::new(), 0);
        loop {
            if rest.get(at).is_some_and(|byte| !byte.is_ascii_hexdigit()) {
                return Read::Broken(Violation::Chunk);
            }
            let (line, size) = match httparse::parse_chunk_size(&rest[at..]) {
                Ok(httparse::Status::Complete(found)) => found,
                Ok(httparse::Status::Partial) => return Read::Unfinished,
                Err(_) => return Read::Broken(Violation::Chunk),
            };
            at += line;
            if size == 0 {
                break;
            }
            let Some(data) = rest.get(at..at + size as usize) else { return Read::Unfinished };
            body.extend_from_slice(data);
            at += size as usize;
            for expected in b"\r\n" {
                match rest.get(at) {
                    None => return Read::Unfinished,
                    Some(byte) if byte == expected => at += 1,
                    Some(_) => return Read::Broken(Violation::Chunk),
                }
            }
        }
        loop {
            let Some(end) = rest[at..].iter().position(|byte| *byte == b'\n') else { return Read::Unfinished };
            let line = &rest[at..at + end + 1];
            at += end + 1;
            if line == b"\r\n" || line == b"\n" {
                break;
            }
        }
        (body, at)
    } else if let Some(length) = length.filter(|_| encodings.is_empty()) {
        let Some(body) = rest.get(..length as usize) else { return Read::Unfinished };
        (body.to_vec(), length as usize)
    } else {
        persists = false;
        (rest.to_vec(), rest.len())
    };
    Read::Whole(Owned { status, headers, body, persists, used: head + used })
}

/// The same bytes at once, cut at every position, and byte by byte: always what the reference reads.
fn agrees(bytes: &[u8], is_head: bool) {
    let expected = reference(bytes, is_head);
    let name = String::from_utf8_lossy(bytes);
    assert_eq!(at_once(bytes, is_head), expected, "at once: {name:?}");
    for cut in 0..=bytes.len() {
        let (a, b) = bytes.split_at(cut);
        assert_eq!(in_pieces([a, b], is_head), expected, "cut at {cut}: {name:?}");
    }
    assert_eq!(in_pieces(bytes.chunks(1), is_head), expected, "byte by byte: {name:?}");
}

#[test]
fn answers_are_read_the_same_however_they_are_cut() {
    for text in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more",
        "HTTP/1.1 200 OK\r\ncontent-LENGTH:\t 0 \r\nConnection: close\r\n\r\n",
        "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\nA;a=b\r\n0123456789\r\n1 \r\nx\r\n0\r\nT: v\r\n\r\nrest",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabcdef",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        "HTTP/1.1 200 OK\r\n\r\nuntil the end",
        "HTTP/1.0 200 OK\r\n\r\nuntil the end",
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 P\r\nA: b\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\nx",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\noops",
        "HTTP/1.1 200 OK\nContent-Length: 2\n\nab",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: no name\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n folded: 3\r\n\r\nab",
        "HTTP/1.1 20x OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/2 200\r\n\r\n",
        "SSH-2.0-OpenSSH_9\r\n",
        "{\"error\": true}\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Len",
        "H",
        "",
    ] {
        agrees(text.as_bytes(), false);
        agrees(text.as_bytes(), true);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Answers put together at random, with damage in some of them.
    #[test]
    fn random_answers_are_read_as_the_reference_reads_them(
        status in prop::sample::select(vec![100u16, 200, 201, 204, 304, 404, 500]),
        headers in prop::collection::vec(prop::sample::select(vec![
            "X-A: b", "Content-Type: application/json", "Connection: keep-alive", "connection: close",
            "Content-Length: 7", "Content-Length: 0", "Transfer-Encoding: chunked", "Cookie: a:b:c", "T: ",
        ]), 0..5),
        body in prop::sample::select(vec!["", "7 bytes", "7 bytes+", "7\r\n7 bytes\r\n0\r\n\r\n", "0\r\nx: y\r\n\r\n", "7\r\n7 by"]),
        damage in prop::option::weighted(0.3, (any::<prop::sample::Index>(), prop::sample::select(b"\r\n :0x".to_vec()))),
    ) {
        let mut bytes = format!("HTTP/1.1 {status} Reason\r\n").into_bytes();
        for header in headers {
            bytes.extend_from_slice(header.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(body.as_bytes());
        if let Some((index, byte)) = damage {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        agrees(&bytes, false);
    }
}

#[test]
fn a_body_that_no_check_reads_is_counted_and_not_kept() {
    let mut reader = Reader::new();
    let asked = Asked { is_head: false, keep_body: false };
    assert_eq!(reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", asked), Ok(None));
    for _ in 0..999 {
        assert_eq!(reader.feed(&[b'x'; 1_000], asked), Ok(None));
    }
    assert_eq!(reader.feed(&[b'x'; 1_001], asked), Ok(Some(1_000)));
    assert_eq!(reader.response().body_length, 1_000_000);
    assert_eq!(reader.response().body.len(), EVIDENCE);
    reader.reset();
    assert_eq!(reader.feed(b"HTTP/1.1 204 No Content\r\n\r\n", asked), Ok(Some(27)));
    assert_eq!((reader.response().status, reader.response().body_length), (204, 0));
}

#[test]
fn a_head_with_many_plain_headers_is_read_however_it_is_cut() {
    let text = format!("HTTP/1.1 200 OK\r\n{}Content-Length: 2\r\n\r\nab", "X-Many: y\r\n".repeat(500));
    let whole = at_once(text.as_bytes(), false);
    assert!(matches!(&whole, Read::Whole(answer) if answer.headers.len() == 501 && answer.body == b"ab"));
    for size in [1, 2, 7, 100, 4_000] {
        assert_eq!(in_pieces(text.as_bytes().chunks(size), false), whole, "pieces of {size}");
    }
}

#[test]
fn heads_without_end_are_given_up() {
    let mut reader = Reader::new();
    let mut result = reader.feed(b"HTTP/1.1 200 OK\r\n", PLAIN);
    for _ in 0..10_000 {
        if result.is_err() {
            break;
        }
        result = reader.feed(b"X-Header: some value\r\n", PLAIN);
    }
    assert_eq!(result, Err(Violation::LongHead));
    let mut reader = Reader::new();
    reader.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", PLAIN).expect("a head");
    assert_eq!(reader.feed(&[b'1'; 5_000], PLAIN), Err(Violation::Chunk));
}

#[test]
fn excerpts_are_short_and_printable() {
    assert_eq!(excerpt(b"a\r\n\x00b\xFF", 100), "a\\r\\n\\u{0}b\u{FFFD}");
    assert_eq!(excerpt(b"abcdef", 3), "abc…");
}
