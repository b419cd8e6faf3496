//! Lowering of traffic: workloads, streams, requests, expectations, the contract.

use plan::workload::{BodyCheck, HeaderCheck, JsonTest, JsonType};
use plan::{ContractCase, Expect, Parameter, ParameterKind, Request, Stream, Text, Workload};

use super::subject::{template, texts};
use crate::codes;
use crate::problems::{Problems, problem};
use crate::resolve::{Item, Study};
use crate::schema::METHODS;
use crate::value::units::as_percent;
use crate::value::{Value, Valued};

/// The workloads, in the order of the study.
pub fn workloads(study: &Study, problems: &mut Problems) -> Vec<Workload> {
    study
        .each("workload")
        .map(|item| {
            shares(item, problems);
            Workload {
                name: item.key.clone(),
                streams: item.each("stream").map(|stream| lower_stream(stream, problems)).collect(),
            }
        })
        .collect()
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

fn lower_stream(item: &Item, problems: &mut Problems) -> Stream {
    Stream {
        name: item.key.clone(),
        share: item.ratio("share").unwrap_or(1.0),
        request: request(item, problems),
        parameters: item.each("vary").map(|vary| parameter(vary, problems)).collect(),
        expect: expect(item.child("expect"), problems),
        creates_row_in: creates(item),
    }
}

fn creates(item: &Item) -> Option<String> {
    item.child("creates").and_then(|creates| creates.text("in")).map(str::to_owned)
}

fn parameter(item: &Item, problems: &mut Problems) -> Parameter {
    let (from, to) = (item.integer("from").unwrap_or(0), item.integer("to").unwrap_or(0));
    let variant = item.variant.map_or("", |variant| variant.name);
    if matches!(variant, "uniform" | "sequence")
        && from > to
        && let (Some(first), Some(last)) = (item.setting("from"), item.setting("to"))
    {
        problems.push(
            problem(
                &codes::EMPTY_RANGE,
                &first.at,
                format!("the parameter `{}` has no values: from {from} to {to} runs backwards", item.key),
            )
            .also(last.at.clone(), "the smaller end")
            .help("swap them"),
        );
    }
    let kind = match variant {
        "uniform" => ParameterKind::Uniform { from, to },
        "sequence" => ParameterKind::Sequence { from, to },
        "choice" => ParameterKind::Choice(texts(item.args.get(2..).unwrap_or_default())),
        _ => ParameterKind::Uuid,
    };
    Parameter { name: item.key.clone(), kind }
}

fn request(item: &Item, problems: &mut Problems) -> Request {
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
    let (text, content_type) = match (json, body) {
        (Some(json), _) => (template(json.args.first()), Some("application/json".to_owned())),
        (None, Some(body)) => {
            (template(body.args.first()), Some(body.text("content-type").unwrap_or("text/plain").to_owned()))
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
        body: text,
        content_type,
    }
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
pub fn contract(study: &Study, problems: &mut Problems) -> Vec<ContractCase> {
    let Some(contract) = study.only("contract") else { return Vec::new() };
    contract
        .each("case")
        .map(|case| ContractCase {
            name: case.key.clone(),
            request: request(case, problems),
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
            .chain(&request.body)
            .chain(expected)
            .map(move |text| (stream, text))
    })
}

/// A value's place, or the item's.
pub fn place(item: &Item, valued: Option<&Valued>) -> syntax::Location {
    valued.map_or_else(|| item.name_at.clone(), |valued| valued.at.clone())
}
