//! The reader against hyper's client on the same bytes, cut at every place, and a bounded fuzz of both from a kept corpus.
//!
//! Where they differ on purpose, [`DIFFERENCES`] says why; any other difference fails. The fuzz tries 2,000 inputs from `FUZZ_SEED`,
//! and goes on for `FUZZ_SECONDS` where that is set; an input that fails is written beside the corpus, to be kept there.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};

use super::*;
use crate::random::Sequence;

/// What a reader makes of bytes and the end of their connection.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    /// An answer: status, headers sorted and in lower case, body, and whether the connection could carry another request.
    Answer { status: u16, headers: Vec<(String, Vec<u8>)>, body: Vec<u8>, persists: bool },
    /// No answer can come of it.
    Broken,
    /// The bytes end within an answer.
    Unfinished,
}

fn sorted(headers: impl Iterator<Item = (String, Vec<u8>)>) -> Vec<(String, Vec<u8>)> {
    let mut headers: Vec<_> = headers.collect();
    headers.sort();
    headers
}

/// Ours, given these pieces and then the end. Also how many bytes belong to the answer.
fn ours(pieces: &[&[u8]], is_head: bool) -> (Verdict, usize) {
    let asked = Asked { is_head, keep_body: true };
    let mut reader = Reader::new();
    let (mut used, mut whole) = (0, false);
    for piece in pieces {
        match reader.feed(piece, asked) {
            Ok(Some(end)) => {
                used += end;
                whole = true;
                break;
            }
            Ok(None) => used += piece.len(),
            Err(_) => return (Verdict::Broken, used),
        }
    }
    let by_end = !whole && reader.end();
    if !whole && !by_end {
        return (Verdict::Unfinished, used);
    }
    let response = reader.response();
    let headers =
        response.headers().map(|(name, value)| (String::from_utf8_lossy(name).to_ascii_lowercase(), value.to_vec()));
    let verdict = Verdict::Answer {
        status: response.status,
        headers: sorted(headers),
        body: response.body.to_vec(),
        persists: response.persists && !by_end,
    };
    (verdict, used)
}

/// A connection that brings these pieces, one a read, and then nothing until it is ended.
struct Script {
    pieces: std::collections::VecDeque<Vec<u8>>,
    ended: Arc<AtomicBool>,
    dry: Arc<AtomicBool>,
    asked: bool,
}

impl hyper::rt::Read for Script {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buffer: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.asked {
            // Nothing is answered before it was asked.
            return Poll::Pending;
        }
        let Some(mut piece) = self.pieces.pop_front() else {
            self.dry.store(true, Ordering::Relaxed);
            return if self.ended.load(Ordering::Relaxed) { Poll::Ready(Ok(())) } else { Poll::Pending };
        };
        if piece.len() > buffer.remaining() {
            let rest = piece.split_off(buffer.remaining());
            self.pieces.push_front(rest);
        }
        buffer.put_slice(&piece);
        cx.waker().wake_by_ref();
        Poll::Ready(Ok(()))
    }
}

impl hyper::rt::Write for Script {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.asked = true;
        cx.waker().wake_by_ref();
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Polls until nothing moves any more; `None` where it is then not ready.
fn settle<F: Future>(mut future: Pin<&mut F>, drive: &mut dyn FnMut(&mut Context<'_>)) -> Option<F::Output> {
    let bell = Arc::new(Bell(AtomicBool::new(true)));
    let waker = Waker::from(Arc::clone(&bell));
    let mut cx = Context::from_waker(&waker);
    while bell.0.swap(false, Ordering::Relaxed) {
        drive(&mut cx);
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return Some(output);
        }
    }
    None
}

/// hyper's, given these pieces and then the end.
fn hypers(pieces: &[&[u8]], is_head: bool) -> Verdict {
    let (ended, dry) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let script = Script {
        pieces: pieces.iter().filter(|piece| !piece.is_empty()).map(|piece| piece.to_vec()).collect(),
        ended: Arc::clone(&ended),
        dry,
        asked: false,
    };
    let mut nothing = |_: &mut Context<'_>| {};
    let made = settle(std::pin::pin!(hyper::client::conn::http1::handshake(script)), &mut nothing);
    let Some(Ok((mut sender, connection))) = made else { panic!("a handshake of HTTP/1 sends nothing") };
    let mut connection = Box::pin(connection);
    let mut over = false;
    let mut drive = |cx: &mut Context<'_>| {
        if !over {
            over = connection.as_mut().poll(cx).is_ready();
        }
    };
    let request = http::Request::builder()
        .method(if is_head { "HEAD" } else { "GET" })
        .uri("/")
        .header("host", "h")
        .body(Empty::<Bytes>::new())
        .expect("a request");
    let mut answering = Box::pin(async {
        let response = sender.send_request(request).await?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok::<_, hyper::Error>((parts, body, sender))
    });
    let mut by_end = false;
    let mut answered = settle(answering.as_mut(), &mut drive);
    if answered.is_none() {
        // Nothing more comes: the end may be what completes it.
        by_end = true;
        ended.store(true, Ordering::Relaxed);
        answered = settle(answering.as_mut(), &mut drive);
    }
    match answered {
        None => Verdict::Unfinished,
        Some(Ok((parts, body, mut sender))) => {
            let ready = settle(std::pin::pin!(sender.ready()), &mut drive);
            let headers =
                parts.headers.iter().map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()));
            Verdict::Answer {
                status: parts.status.as_u16(),
                headers: sorted(headers),
                body: body.to_vec(),
                persists: !by_end && matches!(ready, Some(Ok(()))),
            }
        }
        Some(Err(error)) => {
            let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<io::Error>());
            let cut = source.is_some_and(|source| source.kind() == io::ErrorKind::UnexpectedEof);
            if error.is_incomplete_message() || cut { Verdict::Unfinished } else { Verdict::Broken }
        }
    }
}

/// One input: its bytes, and whether HEAD had asked for it.
#[derive(Clone)]
struct Input {
    bytes: Vec<u8>,
    is_head: bool,
}

/// A difference that is meant.
struct Difference {
    why: &'static str,
    holds: fn(&Input, &Verdict, &Verdict) -> bool,
}

fn status_of(verdict: &Verdict) -> Option<u16> {
    match verdict {
        Verdict::Answer { status, .. } => Some(*status),
        Verdict::Broken | Verdict::Unfinished => None,
    }
}

fn has(input: &Input, part: &str) -> bool {
    input.bytes.to_ascii_lowercase().windows(part.len()).any(|window| window == part.as_bytes())
}

/// The same answer but for whether its connection can carry another request.
fn same_answer(ours: &Verdict, hypers: &Verdict) -> bool {
    match (ours, hypers) {
        (
            Verdict::Answer { status, headers, body, .. },
            Verdict::Answer { status: other_status, headers: other_headers, body: other_body, .. },
        ) => (status, headers, body) == (other_status, other_headers, other_body),
        _ => false,
    }
}

/// Every difference that is meant, with its reason.
const DIFFERENCES: &[Difference] = &[
    Difference {
        why: "an answer with both framings may be an attempt to smuggle: ours closes the connection (RFC 9112 §6.3), hyper keeps it",
        holds: |input, ours, hypers| {
            same_answer(ours, hypers) && has(input, "content-length") && has(input, "transfer-encoding")
        },
    },
    Difference {
        why: "no check reads trailers: ours looks for their end only, hyper wants each to be a header",
        holds: |input, ours, hypers| {
            *ours != Verdict::Broken && status_of(hypers).is_none() && has(input, "chunked") && has(input, "\n0")
        },
    },
    Difference {
        why: "a senseless Content-Length is wrong to ours also where no body depends on it: 204, 304, HEAD, chunked; hyper passes over it",
        holds: |input, ours, hypers| {
            let needless = input.is_head
                || matches!(status_of(hypers), Some(204 | 304))
                || (status_of(hypers).is_some() && has(input, "transfer-encoding"));
            *ours == Verdict::Broken && needless && has(input, "content-length")
        },
    },
    Difference {
        why: "Transfer-Encoding and Connection with bytes beyond ASCII say to ours what their other words say, and nothing to hyper",
        holds: |input, _, _| !input.bytes.is_ascii() && (has(input, "transfer-encoding") || has(input, "connection")),
    },
    Difference {
        why: "HTTP/1.0 has no chunks, yet servers send them: ours reads them and closes the connection, hyper reads no answer",
        holds: |input, ours, hypers| {
            *hypers == Verdict::Broken
                && *ours != Verdict::Broken
                && has(input, "http/1.0")
                && has(input, "transfer-encoding")
        },
    },
    Difference {
        why: "a Content-Length of more than 19 digits is senseless to ours, whatever its value",
        holds: |input, ours, _| *ours == Verdict::Broken && digits(input) > 19,
    },
    Difference {
        why: "ours reads heads of up to 64 KiB with any number of plain headers; hyper 100 headers and about 400 KiB",
        holds: |input, _, _| {
            input.bytes.len() > HEAD_LIMIT || input.bytes.iter().filter(|byte| **byte == b'\n').count() > 100
        },
    },
    Difference {
        why: "a head that is damaged and has no end yet: ours calls it damaged at once, hyper reads on until the connection ends",
        holds: |_, ours, hypers| *ours == Verdict::Broken && *hypers == Verdict::Unfinished,
    },
    Difference {
        why: "nobody asked to switch protocols: a violation to ours, an answer to hyper",
        holds: |_, ours, hypers| *ours == Verdict::Broken && status_of(hypers) == Some(101),
    },
];

/// The longest run of digits.
fn digits(input: &Input) -> usize {
    input.bytes.split(|byte| !byte.is_ascii_digit()).map(<[u8]>::len).max().unwrap_or(0)
}

fn in_short(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Answer { status, headers, body, persists } => {
            format!("{status}, {} headers, body `{}`, persists: {persists}", headers.len(), excerpt(body, 80))
        }
        Verdict::Broken => "no answer".into(),
        Verdict::Unfinished => "not finished".into(),
    }
}

/// What is wrong about an input, if anything is.
fn complaint(input: &Input, pieces: &[&[u8]]) -> Option<String> {
    let (ours, used) = ours(pieces, input.is_head);
    let mut hypers = hypers(pieces, input.is_head);
    // Bytes after the end: hyper finds them when it wants to send again, ours at once. Both then drop the connection.
    if used < input.bytes.len()
        && let Verdict::Answer { persists, .. } = &mut hypers
        && let Verdict::Answer { persists: own, .. } = &ours
    {
        *persists = *own;
    }
    if ours == hypers || DIFFERENCES.iter().any(|difference| (difference.holds)(input, &ours, &hypers)) {
        return None;
    }
    Some(format!(
        "`{}` (HEAD: {}), in {} pieces, the first of {}\n  ours:    {}\n  hyper's: {}",
        excerpt(&input.bytes, 600),
        input.is_head,
        pieces.len(),
        pieces.first().map_or(0, |piece| piece.len()),
        in_short(&ours),
        in_short(&hypers),
    ))
}

/// Reads an input at once, cut at every place where that is affordable, and byte by byte.
fn check(input: &Input) -> Vec<String> {
    let bytes = &input.bytes;
    let whole = ours(&[bytes], input.is_head).0;
    let mut complaints = Vec::new();
    // A long one costs much and has few places of interest: it is cut at a few, and not byte by byte.
    let is_long = bytes.len() > 3_000;
    let step = if is_long { bytes.len() / 12 } else { 1 };
    for cut in (0..=bytes.len()).step_by(step) {
        let (head, tail) = bytes.split_at(cut);
        if ours(&[head, tail], input.is_head).0 != whole {
            complaints.push(format!("`{}` is read otherwise when it is cut at {cut}", excerpt(bytes, 600)));
        }
        complaints.extend(complaint(input, &[head, tail]));
        if !complaints.is_empty() {
            return complaints;
        }
    }
    let single: Vec<&[u8]> = bytes.chunks(if is_long { 1_000 } else { 1 }).collect();
    if ours(&single, input.is_head).0 != whole {
        complaints.push(format!("`{}` is read otherwise byte by byte", excerpt(bytes, 600)));
    }
    complaints.extend(complaint(input, &single));
    complaints
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/answers")
}

/// The kept inputs, by file name; those that begin with `head-` were asked for by HEAD.
fn kept() -> Vec<(String, Input)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(corpus()).expect("the corpus").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let bytes = std::fs::read(entry.path()).expect("an input");
        let is_head = name.starts_with("head-");
        found.push((name, Input { bytes, is_head }));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(found.len() > 30, "the corpus is not there");
    found
}

#[test]
fn the_reader_agrees_with_hyper_on_the_kept_corpus_however_it_is_cut() {
    let complaints: Vec<String> = kept()
        .iter()
        .flat_map(|(name, input)| check(input).into_iter().take(1).map(move |complaint| format!("{name}: {complaint}")))
        .collect();
    assert!(complaints.is_empty(), "{} inputs:\n{}", complaints.len(), complaints.join("\n"));
}

/// Every meant difference is one that some kept input shows: a rule that nothing needs would hide the next defect.
#[test]
fn every_listed_difference_is_shown_by_the_corpus() {
    let mut verdicts = Vec::new();
    for (_, input) in kept() {
        // hyper judges some damage by how it is cut.
        let (head, tail) = input.bytes.split_at(input.bytes.len().min(1));
        for pieces in [vec![input.bytes.as_slice()], vec![head, tail]] {
            let (own, hypers) = (ours(&pieces, input.is_head).0, hypers(&pieces, input.is_head));
            verdicts.push((input.clone(), own, hypers));
        }
    }
    for difference in DIFFERENCES {
        let shown =
            verdicts.iter().any(|(input, ours, hypers)| ours != hypers && (difference.holds)(input, ours, hypers));
        assert!(shown, "no kept input shows that {}", difference.why);
    }
}

/// What mutations put in: the words that answers are made of.
const WORDS: &[&str] = &[
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.0 ",
    "\r\n",
    "\n",
    "\r",
    "\r\n\r\n",
    "0\r\n\r\n",
    "Content-Length: 2\r\n",
    "Content-Length: 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Connection: close\r\n",
    "5\r\nhello\r\n",
    ";ext=1",
    ":",
    " ",
    ",",
    "\t",
    "\0",
    "A",
    "f",
    "0",
    "204",
    "304",
    "99999999999999999999",
];

/// An input made of a kept one and a few changes.
fn changed(kept: &[(String, Input)], random: &Sequence, drawn: &mut u64) -> Input {
    let mut below = |bound: usize| {
        *drawn += 1;
        random.below(*drawn, bound.max(1) as u64) as usize
    };
    let mut input = kept[below(kept.len())].1.clone();
    input.bytes.truncate(2_000);
    for _ in 0..=below(4) {
        let at = below(input.bytes.len() + 1);
        let end = (at + below(12)).min(input.bytes.len());
        match below(5) {
            0 => drop(input.bytes.drain(at..end)),
            1 => insert(&mut input.bytes, at, WORDS[below(WORDS.len())].as_bytes()),
            2 => {
                let copy = input.bytes[at..end].to_vec();
                insert(&mut input.bytes, at, &copy);
            }
            3 => {
                let other = &kept[below(kept.len())].1.bytes;
                let tail = other[below(other.len().min(4_000) + 1)..other.len().min(4_000)].to_vec();
                input.bytes.truncate(at);
                input.bytes.extend(tail);
            }
            _ if at < input.bytes.len() => input.bytes[at] = below(256) as u8,
            _ => {}
        }
    }
    input
}

fn insert(bytes: &mut Vec<u8>, at: usize, part: &[u8]) {
    let tail = bytes.split_off(at);
    bytes.extend_from_slice(part);
    bytes.extend(tail);
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Inputs that are tried at least: always the same ones for a seed, however fast the machine is.
const INPUTS: u64 = 2_000;

/// The fuzz target: no panic, the same whatever the cuts, and as hyper but for what is listed.
#[test]
fn changed_answers_are_read_as_hyper_reads_them() {
    let kept = kept();
    let random = Sequence::new(setting("FUZZ_SEED", 1), 0xF022);
    let (began, seconds) = (Instant::now(), setting("FUZZ_SECONDS", 0));
    let is_over = |inputs: u64| inputs >= INPUTS && began.elapsed() >= Duration::from_secs(seconds);
    let (mut drawn, mut inputs) = (0, 0u64);
    let mut complaints = Vec::new();
    while !is_over(inputs) && complaints.len() < 20 {
        inputs += 1;
        let input = changed(&kept, &random, &mut drawn);
        let bytes = &input.bytes;
        drawn += 2;
        let first = random.below(drawn, bytes.len() as u64 + 1) as usize;
        let second = first + random.below(drawn + 1, (bytes.len() - first) as u64 + 1) as usize;
        drawn += 1;
        let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        let whole = ours(&[bytes], input.is_head).0;
        let same = ours(&pieces, input.is_head).0 == whole && ours(&single, input.is_head).0 == whole;
        let complaint =
            if same { complaint(&input, &pieces) } else { Some("it is read otherwise when it is cut".into()) };
        if let Some(complaint) = complaint {
            let name = format!("{}{}", if input.is_head { "head-" } else { "" }, &blake3::hash(bytes).to_hex()[..12]);
            if complaints.is_empty() {
                std::fs::write(corpus().join(&name), bytes).expect("written");
            }
            complaints.push(format!("{name}: {complaint}"));
        }
    }
    assert!(
        complaints.is_empty(),
        "of {inputs} inputs {}, the first is kept in {}:\n{}",
        complaints.len(),
        corpus().display(),
        complaints.join("\n")
    );
    println!("{inputs} inputs");
}
