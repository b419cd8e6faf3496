//! Lowering of a stream's parameters: how their values are drawn, and the columns of CSV files.

use plan::{ContentHash, Parameter, ParameterKind, RowOrder};

use super::subject::{relative, texts};
use crate::codes;
use crate::names;
use crate::problems::{Problems, problem};
use crate::resolve::Item;
use crate::value::{Value, Valued};

/// The parameters of a stream, in the order of the study.
pub fn parameters(stream: &Item, root: &str, problems: &mut Problems) -> Vec<Parameter> {
    let parameters = stream
        .each("vary")
        .map(|vary| Parameter { name: vary.key.clone(), kind: kind(vary, root, problems) })
        .collect::<Vec<_>>();
    orders(stream, &parameters, problems);
    parameters
}

fn kind(item: &Item, root: &str, problems: &mut Problems) -> ParameterKind {
    let (from, to) = (item.integer("from").unwrap_or(0), item.integer("to").unwrap_or(0));
    let variant = item.variant.map_or("", |variant| variant.name);
    if from > to
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
    // Doubles don't tell neighbouring ranks apart beyond it.
    const WIDEST: i128 = 1 << 53;
    if variant == "zipf"
        && i128::from(to) - i128::from(from) >= WIDEST
        && let Some(last) = item.setting("to")
    {
        let message = format!("the parameter `{}` has more than 2⁵³ values, from {from} to {to}", item.key);
        problems.push(problem(&codes::OUT_OF_RANGE, &last.at, message).help("give it a narrower range"));
    }
    match variant {
        "uniform" => ParameterKind::Uniform { from, to },
        "zipf" => ParameterKind::Zipf {
            from,
            to,
            exponent: match item.setting("exponent").map(|valued| &valued.value) {
                Some(Value::Number(exponent)) => *exponent,
                _ => 1.0,
            },
        },
        "sequence" => ParameterKind::Sequence { from, to },
        "choice" => ParameterKind::Choice(texts(item.args.get(2..).unwrap_or_default())),
        "csv" => csv_column(item, root, problems),
        _ => ParameterKind::Uuid,
    }
}

/// Most bytes of a CSV file: its columns lie in the plan and in every job.
const LARGEST_CSV: usize = 16 * 1024 * 1024;

/// A column of a CSV file (RFC 4180), read and checked.
fn csv_column(item: &Item, root: &str, problems: &mut Problems) -> ParameterKind {
    let order = match item.text("order") {
        Some("listed") => RowOrder::Listed,
        _ => RowOrder::Random,
    };
    let column = item.text("column").unwrap_or_default().to_owned();
    let Some((valued, id, text)) = item.setting("file").and_then(|valued| match &valued.value {
        Value::File { id, text } => Some((valued, id, text)),
        _ => None,
    }) else {
        // A file that can't be read has its own diagnostic.
        return ParameterKind::Csv {
            path: String::new(),
            digest: ContentHash::of_bytes(b""),
            column,
            values: Vec::new(),
            order,
        };
    };
    let values = match read_column(text, &column) {
        Ok(values) => values,
        Err(wrong) => {
            problems.push(wrong.diagnostic(item, valued, &column));
            Vec::new()
        }
    };
    ParameterKind::Csv {
        path: relative(root, id.as_str()),
        digest: ContentHash::of_bytes(text.as_bytes()),
        column,
        values,
        order,
    }
}

/// What is wrong with a CSV file.
enum CsvProblem {
    TooLarge(usize),
    Malformed(String),
    NoColumn(Vec<String>),
    ColumnTwice,
    NoRows,
}

fn read_column(text: &str, column: &str) -> Result<Vec<String>, CsvProblem> {
    if text.len() > LARGEST_CSV {
        return Err(CsvProblem::TooLarge(text.len()));
    }
    let malformed = |error: csv::Error| {
        CsvProblem::Malformed(match error.kind() {
            csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
                let line = pos.as_ref().map_or(0, csv::Position::line);
                format!("line {line} has {len} fields, and the first line names {expected_len} columns")
            }
            _ => error.to_string(),
        })
    };
    // A byte order mark would become part of the first column's name.
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let headers: Vec<String> = reader.headers().map_err(malformed)?.iter().map(|name| name.trim().to_owned()).collect();
    let mut places = (0..headers.len()).filter(|place| headers[*place] == column);
    let place = match (places.next(), places.next()) {
        (Some(place), None) => place,
        (Some(_), Some(_)) => return Err(CsvProblem::ColumnTwice),
        (None, _) => return Err(CsvProblem::NoColumn(headers)),
    };
    let mut values = Vec::new();
    for row in reader.records() {
        values.push(row.map_err(malformed)?.get(place).unwrap_or_default().to_owned());
    }
    if values.is_empty() { Err(CsvProblem::NoRows) } else { Ok(values) }
}

impl CsvProblem {
    fn diagnostic(self, item: &Item, file: &Valued, column: &str) -> syntax::Diagnostic {
        let written = &file.written;
        match self {
            Self::TooLarge(bytes) => problem(
                &codes::OUT_OF_RANGE,
                &file.at,
                format!(
                    "the file {written} has {bytes} bytes, and at most {LARGEST_CSV} (16 MiB) are carried in a plan"
                ),
            )
            .help("use fewer rows"),
            Self::Malformed(why) => {
                problem(&codes::MALFORMED, &file.at, format!("the file {written} is no CSV: {why}"))
                    .help("the first line names the columns, and every other line has as many fields")
            }
            Self::NoColumn(columns) => {
                let at = item.setting("column").map_or(&file.at, |valued| &valued.at);
                let known = columns.iter().map(String::as_str);
                problem(
                    &codes::UNKNOWN_NAME,
                    at,
                    format!("the file {written} has no column `{column}`{}", names::hint(column, known.clone())),
                )
                .help(format!("its columns are {}", names::listed(known)))
            }
            Self::ColumnTwice => {
                problem(&codes::DEFINED_TWICE, &file.at, format!("the file {written} has two columns `{column}`"))
                    .help("rename one of them")
            }
            Self::NoRows => {
                problem(&codes::EMPTY_RANGE, &file.at, format!("the file {written} has no row after the line of names"))
            }
        }
    }
}

/// Parameters that take the same row take rows in the same order.
fn orders(stream: &Item, parameters: &[Parameter], problems: &mut Problems) {
    let read: Vec<(&ContentHash, RowOrder, &Item)> = parameters
        .iter()
        .zip(stream.each("vary"))
        .filter_map(|(parameter, item)| match &parameter.kind {
            ParameterKind::Csv { digest, order, .. } => Some((digest, *order, item)),
            _ => None,
        })
        .collect();
    for (index, (digest, order, item)) in read.iter().enumerate() {
        let other = read[..index].iter().find(|(known, other, _)| known == digest && other != order);
        if let Some((_, _, first)) = other {
            let message =
                format!("`{}` and `{}` take the same row of one file, and in different orders", first.key, item.key);
            problems.push(
                problem(&codes::CONTRADICTION, &item.name_at, message)
                    .also(first.name_at.clone(), "the other one")
                    .help("give both the same `order`"),
            );
        }
    }
}
