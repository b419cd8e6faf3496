//! Lowering of traffic: workloads, streams, requests, expectations, the contract.

use plan::workload::{BodyCheck, HeaderCheck, JsonTest, JsonType};
use plan::{Body, BodyFile, ContentHash, ContractCase, Expect, Request, Stream, Text, Workload};

use super::parameter::parameters;
use super::subject::{relative, template};
use crate::codes;
use crate::names;
use crate::problems::{Problems, problem};
use crate::resolve::{Item, Study};
use crate::schema::METHODS;
use crate::value::units::as_percent;
use crate::value::{Value, Valued};

/// The workloads, in the order of the study.
pub fn workloads(study: &Study, root: &str, problems: &mut Problems) -> Vec<Workload> {
    study
        .each("workload")
        .map(|item| {
            let own_rates = own_rates(item, problems);
            if !own_rates {
                shares(item, problems);
            }
            let mut streams: Vec<Stream> =
                item.each("stream").map(|stream| lower_stream(stream, root, problems)).collect();
            let total: f64 = streams.iter().filter_map(|stream| stream.rate).sum();
            for stream in &mut streams {
                match stream.rate {
                    Some(rate) if own_rates => stream.share = rate / total,
                    _ => stream.rate = None,
                }
            }
            Workload { name: item.key.clone(), streams }
        })
        .collect()
}

/// Whether the streams have rates of their own. All of them have, or none; a stream has a share or a rate.
fn own_rates(item: &Item, problems: &mut Problems) -> bool {
    let streams: Vec<&Item> = item.each("stream").collect();
    let rated: Vec<(&Item, &Valued)> =
        streams.iter().filter_map(|stream| Some((*stream, stream.setting("rate")?))).collect();
    let Some((_, first)) = rated.first() else { return false };
    for (stream, rate) in &rated {
        if let Some(share) = stream.setting("share") {
            let message =
                format!("{} has a share ({}) and a rate ({})", stream.described(), share.written, rate.written);
            problems.push(
                problem(&codes::CONTRADICTION, &share.at, message)
                    .also(rate.at.clone(), "its rate")
                    .help("keep one of them: a share of the load's rate, or a rate of its own"),
            );
        }
        if let Value::Reference { name, .. } = &rate.value {
            let message = format!(
                "{} has the rate `${{{name}}}`, and a stream's own rate is the same in every cell",
                stream.described()
            );
            problems.push(problem(&codes::WRONG_TYPE, &rate.at, message).help(
                "write a rate such as \"500/s\"; to vary the rate of a mix, give streams shares and the load a rate",
            ));
        }
    }
    if rated.len() < streams.len() && !item.broken {
        let with: Vec<String> =
            rated.iter().map(|(stream, rate)| format!("`{}` {}", stream.key, rate.written)).collect();
        let without: Vec<&str> = streams
            .iter()
            .filter(|stream| stream.setting("rate").is_none())
            .map(|stream| stream.key.as_str())
            .collect();
        let message = format!(
            "workload `{}` mixes streams with rates of their own ({}) and streams without ({})",
            item.key,
            with.join(", "),
            names::listed(without.iter().copied())
        );
        let mut diagnostic = problem(&codes::SHARES, &first.at, message)
            .help("give every stream a rate, or every stream a share and the load the rate");
        for stream in streams.iter().filter(|stream| stream.setting("rate").is_none()) {
            diagnostic = diagnostic.also(place(stream, stream.setting("share")), "no rate of its own");
        }
        problems.push(diagnostic);
    }
    true
}

/// The shares of a workload's streams add up to 100 %.
fn shares(item: &Item, problems: &mut Problems) {
    if item.broken {
        return;
    }
    let streams: Vec<&Item> = item.each("stream").collect();
    let share = |stream: &Item| stream.ratio("share").unwrap_or(1.0);
    let total: f64 = streams.iter().map(|stream| share(stream)).sum();
    let Some(first) = streams.first() else { return };
    // A thousandth of a percent: "33.3%" three times is a mistake, rounding of doubles is not.
    if (total - 1.0).abs() <= 1e-5 {
        return;
    }
    let operands: Vec<String> = streams.iter().map(|stream| as_percent(share(stream))).collect();
    let place = |stream: &Item| stream.setting("share").map_or(stream.name_at.clone(), |valued| valued.at.clone());
    let mut diagnostic = problem(
        &codes::SHARES,
        &place(first),
        format!("shares add up to {} ({})", as_percent(total), operands.join(" + ")),
    )
    .label(operands[0].clone())
    .help("make them add up to 100 %; a stream without `share` has 100 %");
    for (stream, operand) in streams.iter().zip(&operands).skip(1) {
        diagnostic = diagnostic.also(place(stream), operand.clone());
    }
    problems.push(diagnostic);
}

fn lower_stream(item: &Item, root: &str, problems: &mut Problems) -> Stream {
    Stream {
        name: item.key.clone(),
        share: item.ratio("share").unwrap_or(1.0),
        rate: match item.setting("rate").map(|valued| &valued.value) {
            Some(Value::Rate(rate)) => Some(*rate),
            _ => None,
        },
        request: request(item, root, problems),
        parameters: parameters(item, root, problems),
        expect: expect(item.child("expect"), problems),
        creates_row_in: creates(item),
    }
}

fn creates(item: &Item) -> Option<String> {
    item.child("creates").and_then(|creates| creates.text("in")).map(str::to_owned)
}

fn request(item: &Item, root: &str, problems: &mut Problems) -> Request {
    let mut methods = METHODS.iter().filter_map(|method| item.child(method.name));
    let first = methods.next();
    if let (Some(first), Some(second)) = (first, methods.next()) {
        problems.push(
            problem(
                &codes::CONTRADICTION,
                &second.name_at,
                format!("{} sends one request, and `{}` is another", item.described(), second.kind()),
            )
            .also(first.name_at.clone(), "first here")
            .help("write a further stream (or case) for it"),
        );
    }
    let path = template(first.and_then(|node| node.args.first())).unwrap_or_default();
    if let (Some(plan::Piece::Literal(start)), Some(argument)) =
        (path.0.first(), first.and_then(|node| node.args.first()))
        && !start.starts_with('/')
    {
        let message = format!("the path `{path}` does not start with `/`");
        problems.push(problem(&codes::MALFORMED, &argument.at, message));
    }
    let (json, body) = (item.child("json"), item.child("body"));
    if let (Some(json), Some(body)) = (json, body) {
        let message = format!("{} has two bodies", item.described());
        problems
            .push(problem(&codes::CONTRADICTION, &body.name_at, message).also(json.name_at.clone(), "the other one"));
    }
    let (content, content_type) = match (json, body) {
        (Some(json), _) => (template(json.args.first()).map(Body::Text), Some("application/json".to_owned())),
        (None, Some(body)) => {
            let content = lower_body(body, root, problems);
            let usual = match &content {
                Some(Body::File(_)) => "application/octet-stream",
                _ => "text/plain",
            };
            (content, Some(body.text("content-type").unwrap_or(usual).to_owned()))
        }
        (None, None) => (None, None),
    };
    Request {
        method: first.map_or("GET", |node| node.kind()).to_owned(),
        path,
        headers: item
            .each("header")
            .filter_map(|header| Some((header.key.clone(), template(header.args.get(1))?)))
            .collect(),
        bearer: item.text("bearer").map(str::to_owned),
        body: content,
        content_type,
        accept_gzip: item.text("accept-encoding").is_some(),
    }
}

/// Largest file that is sent as a body: it lies in the plan and in every job.
const LARGEST_BODY: usize = 16 * 1024 * 1024;

/// A body: a text, or the content of a file.
fn lower_body(item: &Item, root: &str, problems: &mut Problems) -> Option<Body> {
    let text = template(item.args.first());
    let Some(valued) = item.setting("file") else {
        if text.is_none() && item.args.is_empty() && !item.broken {
            problems.push(
                problem(&codes::MISSING, &item.name_at, "`body` has no content")
                    .help("write a text, or `file=` and the path of a file"),
            );
        }
        return text.map(Body::Text);
    };
    if let Some(argument) = item.args.first() {
        problems.push(
            problem(&codes::CONTRADICTION, &valued.at, "`body` has a text and a file")
                .also(argument.at.clone(), "the text")
                .help("keep one of them"),
        );
        return None;
    }
    let Value::Content { id, bytes } = &valued.value else { return None };
    if bytes.len() > LARGEST_BODY {
        let message = format!(
            "the body {} has {} bytes, and at most {LARGEST_BODY} (16 MiB) are carried in a plan",
            valued.written,
            bytes.len()
        );
        problems.push(problem(&codes::OUT_OF_RANGE, &valued.at, message).help("send a smaller file"));
        return None;
    }
    Some(Body::File(BodyFile {
        path: relative(root, id.as_str()),
        digest: ContentHash::of_bytes(bytes),
        content: bytes.to_vec(),
    }))
}

/// What an answer must be. Without a status, any 2xx that says something is accepted.
fn expect(item: Option<&Item>, problems: &mut Problems) -> Expect {
    let Some(item) = item else { return Expect { status: ANY_SUCCESS.to_vec(), ..Expect::default() } };
    let mut status: Vec<u16> = item
        .args
        .iter()
        .filter_map(|valued| match valued.value {
            Value::Integer(status) => u16::try_from(status).ok(),
            _ => None,
        })
        .collect();
    if status.is_empty() {
        status = ANY_SUCCESS.to_vec();
    }
    let mut body: Vec<BodyCheck> = item.each("json").map(|json| json_check(json, problems)).collect();
    body.extend(item.each("body").flat_map(|body| body_checks(body, problems)));
    Expect {
        status,
        headers: item
            .each("header")
            .map(|header| HeaderCheck {
                name: header.key.clone(),
                contains: header.text("contains").map(str::to_owned),
            })
            .collect(),
        body,
    }
}

const ANY_SUCCESS: [u16; 4] = [200, 201, 202, 204];

fn json_check(item: &Item, problems: &mut Problems) -> BodyCheck {
    let equals = template(item.setting("equals"));
    let type_name = item.text("type");
    if let (Some(_), Some(_), Some(valued)) = (&equals, type_name, item.setting("type")) {
        problems.push(
            problem(&codes::CONTRADICTION, &valued.at, format!("`equals` already decides the type at `{}`", item.key))
                .help("keep one of them"),
        );
    }
    let test = match (equals, type_name) {
        (Some(text), _) => JsonTest::Equals(text),
        (None, Some(name)) => JsonTest::Type(match name {
            "string" => JsonType::String,
            "integer" => JsonType::Integer,
            "number" => JsonType::Number,
            "boolean" => JsonType::Boolean,
            "object" => JsonType::Object,
            "array" => JsonType::Array,
            _ => JsonType::Null,
        }),
        (None, None) => JsonTest::Exists,
    };
    BodyCheck::Json { path: item.key.clone(), test }
}

fn body_checks(item: &Item, problems: &mut Problems) -> Vec<BodyCheck> {
    let mut checks = Vec::new();
    checks.extend(template(item.args.first()).map(BodyCheck::Exact));
    checks.extend(template(item.setting("contains")).map(BodyCheck::Contains));
    checks.extend(item.integer("length").and_then(|length| u64::try_from(length).ok()).map(BodyCheck::Length));
    if let Some(valued) = item.setting("digest")
        && let Some(digest) = valued.text()
    {
        if digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            checks.push(BodyCheck::Digest(digest.to_ascii_lowercase()));
        } else {
            let message = format!("`{digest}` is no BLAKE3 digest: it must have 64 hexadecimal digits");
            problems.push(problem(&codes::MALFORMED, &valued.at, message));
        }
    }
    if checks.is_empty() && !item.broken && item.setting("digest").is_none() {
        problems.push(
            problem(&codes::MISSING, &item.name_at, "`body` checks nothing")
                .help("write the whole body, or `contains=`, `length=` or `digest=`"),
        );
    }
    checks
}

/// The cases of the contract.
pub fn contract(study: &Study, root: &str, problems: &mut Problems) -> Vec<ContractCase> {
    let Some(contract) = study.only("contract") else { return Vec::new() };
    contract
        .each("case")
        .map(|case| ContractCase {
            name: case.key.clone(),
            request: request(case, root, problems),
            expect: expect(case.child("expect"), problems),
            creates_row_in: creates(case),
        })
        .collect()
}

/// Every text of a workload that may hold variables.
pub fn workload_texts(workload: &Workload) -> impl Iterator<Item = (&Stream, &Text)> {
    workload.streams.iter().flat_map(|stream| {
        let request = &stream.request;
        let expected = stream.expect.body.iter().filter_map(|check| match check {
            BodyCheck::Exact(text) | BodyCheck::Contains(text) => Some(text),
            BodyCheck::Json { test: JsonTest::Equals(text), .. } => Some(text),
            _ => None,
        });
        std::iter::once(&request.path)
            .chain(request.headers.iter().map(|(_, text)| text))
            .chain(request.body.as_ref().and_then(Body::text))
            .chain(expected)
            .map(move |text| (stream, text))
    })
}

/// A value's place, or the item's.
pub fn place(item: &Item, valued: Option<&Valued>) -> syntax::Location {
    valued.map_or_else(|| item.name_at.clone(), |valued| valued.at.clone())
}
