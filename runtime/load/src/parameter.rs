//! Parameters: variables that have a new value in every request.
//!
//! A value is a function of seed, stream, parameter and the request's ordinal in its stream, so that nothing need be kept while a
//! request is in flight: when its answer comes, the values are drawn again and compared with it.

use plan::{Parameter, ParameterKind, RowOrder};

use crate::error::LoadError;
use crate::random::Sequence;
use crate::zipf::{WIDEST, Zipf};

/// The parameters of a stream.
pub struct Parameters(Box<[Kind]>);

enum Kind {
    /// `from` plus a number below `span`; span 0 stands for 2⁶⁴.
    Uniform {
        from: i64,
        span: u64,
        numbers: Sequence,
    },
    Sequence {
        from: i64,
        span: u64,
    },
    /// `from` plus a rank − 1.
    Zipf {
        from: i64,
        zipf: Zipf,
    },
    /// One of these texts: drawn by these numbers, or in turn where there are none. Columns of one file have the same numbers.
    Text {
        texts: Box<[Box<[u8]>]>,
        numbers: Option<Sequence>,
    },
    Uuid {
        numbers: Sequence,
    },
}

/// The values of one request's parameters, one after the other in one buffer.
#[derive(Default)]
pub struct Values {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Values {
    /// The value of the parameter with this index.
    #[inline]
    pub fn get(&self, index: u16) -> &[u8] {
        let index = usize::from(index);
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }
}

impl Parameters {
    /// Reads a stream's parameters.
    ///
    /// # Errors
    /// When a range is empty or a choice has nothing to choose from.
    pub fn new(parameters: &[Parameter], seed: u64, stream: usize) -> Result<Self, LoadError> {
        let numbers = |index: usize| Sequence::new(seed, ((stream as u64) << 16) + index as u64);
        let kinds = parameters.iter().enumerate().map(|(index, parameter)| {
            let boxed = |texts: &[String]| texts.iter().map(|text| text.as_bytes().into()).collect();
            let span = |from: i64, to: i64| {
                if from > to {
                    return Err(LoadError::job(
                        format!("the parameter `{}` runs from {from} to {to}: the range is empty", parameter.name),
                        "swap the two",
                    ));
                }
                Ok((to.wrapping_sub(from) as u64).wrapping_add(1))
            };
            Ok(match &parameter.kind {
                ParameterKind::Uniform { from, to } => {
                    Kind::Uniform { from: *from, span: span(*from, *to)?, numbers: numbers(index) }
                }
                ParameterKind::Zipf { from, to, exponent } => {
                    let span = span(*from, *to)?;
                    if !(1..=WIDEST).contains(&span) || !(0.0..=100.0).contains(exponent) {
                        return Err(LoadError::job(
                            format!(
                                "the parameter `{}` has {} values and the exponent {exponent}",
                                parameter.name,
                                i128::from(*to) - i128::from(*from) + 1
                            ),
                            "give it at most 2⁵³ values and an exponent from 0 to 100",
                        ));
                    }
                    Kind::Zipf { from: *from, zipf: Zipf::new(span, *exponent, numbers(index)) }
                }
                ParameterKind::Sequence { from, to } => Kind::Sequence { from: *from, span: span(*from, *to)? },
                ParameterKind::Choice(texts) if texts.is_empty() => {
                    return Err(LoadError::job(
                        format!("the parameter `{}` has nothing to choose from", parameter.name),
                        "give it at least one text",
                    ));
                }
                ParameterKind::Choice(texts) => Kind::Text { texts: boxed(texts), numbers: Some(numbers(index)) },
                ParameterKind::Csv { path, values, .. } if values.is_empty() => {
                    return Err(LoadError::job(
                        format!("the parameter `{}` has no row to take: `{path}` is empty", parameter.name),
                        "give the file at least one row after the names of its columns",
                    ));
                }
                ParameterKind::Csv { digest, values, order, .. } => {
                    // The first parameter that reads the file draws for all of them.
                    let first = parameters.iter().position(
                        |other| matches!(&other.kind, ParameterKind::Csv { digest: theirs, .. } if theirs == digest),
                    );
                    let numbers = match order {
                        RowOrder::Random => Some(numbers(first.unwrap_or(index))),
                        RowOrder::Listed => None,
                    };
                    Kind::Text { texts: boxed(values), numbers }
                }
                ParameterKind::Uuid => Kind::Uuid { numbers: numbers(index) },
            })
        });
        Ok(Self(kinds.collect::<Result<_, LoadError>>()?))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a value may hold any character; the others are digits, letters and `-` only.
    pub fn is_free_text(&self, index: u16) -> bool {
        matches!(self.0.get(usize::from(index)), Some(Kind::Text { .. }))
    }

    /// Whether a value could end a header early.
    pub fn breaks_lines(&self, index: u16) -> bool {
        match self.0.get(usize::from(index)) {
            Some(Kind::Text { texts, .. }) => {
                texts.iter().any(|text| text.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)))
            }
            _ => false,
        }
    }

    /// The values of the stream's request number `ordinal`.
    #[inline]
    pub fn draw(&self, ordinal: u64, values: &mut Values) {
        values.bytes.clear();
        values.ends.clear();
        for kind in &self.0 {
            match kind {
                Kind::Uniform { from, span, numbers } => {
                    write_integer(from.wrapping_add(numbers.below(ordinal, *span) as i64), &mut values.bytes);
                }
                Kind::Sequence { from, span } => {
                    let step = if *span == 0 { ordinal } else { ordinal % span };
                    write_integer(from.wrapping_add(step as i64), &mut values.bytes);
                }
                Kind::Zipf { from, zipf } => {
                    write_integer(from.wrapping_add((zipf.rank(ordinal) - 1) as i64), &mut values.bytes);
                }
                Kind::Text { texts, numbers } => {
                    let count = texts.len() as u64;
                    let index = numbers.as_ref().map_or(ordinal % count, |numbers| numbers.below(ordinal, count));
                    values.bytes.extend_from_slice(&texts[index as usize]);
                }
                Kind::Uuid { numbers } => write_uuid(
                    numbers.at(ordinal.wrapping_mul(2)),
                    numbers.at(ordinal.wrapping_mul(2).wrapping_add(1)),
                    &mut values.bytes,
                ),
            }
            values.ends.push(values.bytes.len());
        }
    }
}

/// Appends an integer in decimal, without allocating.
#[inline]
pub fn write_integer(value: i64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut start = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[start..]);
}

/// Appends a version 4, variant 1 UUID (RFC 9562 §5.4) of 122 of these bits.
fn write_uuid(high: u64, low: u64, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let high = (high & !0xF000) | 0x4000;
    let low = (low & (u64::MAX >> 2)) | (1 << 63);
    let bits = (u128::from(high) << 64) | u128::from(low);
    for digit in 0..32u32 {
        if matches!(digit, 8 | 12 | 16 | 20) {
            out.push(b'-');
        }
        out.push(HEX[(bits >> (124 - digit * 4)) as usize & 15]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(kind: ParameterKind, ordinals: impl IntoIterator<Item = u64>) -> Vec<String> {
        let parameters =
            Parameters::new(&[Parameter { name: "p".into(), kind }], 7, 0).expect("parameters that make sense");
        let mut values = Values::default();
        ordinals
            .into_iter()
            .map(|ordinal| {
                parameters.draw(ordinal, &mut values);
                String::from_utf8(values.get(0).to_vec()).expect("text")
            })
            .collect()
    }

    fn csv(column: &str, values: &[&str], order: RowOrder) -> ParameterKind {
        ParameterKind::Csv {
            path: "users.csv".into(),
            digest: plan::ContentHash::of_bytes(b"the file"),
            column: column.into(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
            order,
        }
    }

    #[test]
    fn columns_of_one_file_come_from_the_same_row() {
        let names = ["ada", "grace", "édith", "\"joan\""];
        let words = ["1", "2", "3", "4"];
        for order in [RowOrder::Random, RowOrder::Listed] {
            let parameters = [("name", names), ("word", words)]
                .map(|(column, values)| Parameter { name: column.into(), kind: csv(column, &values, order) });
            let parameters = Parameters::new(&parameters, 5, 2).expect("parameters that make sense");
            let mut values = Values::default();
            let mut counts = [0u32; 4];
            for ordinal in 0..400 {
                parameters.draw(ordinal, &mut values);
                let row = names.iter().position(|name| name.as_bytes() == values.get(0)).expect("a name of the file");
                assert_eq!(values.get(1), words[row].as_bytes(), "{order:?} {ordinal}");
                counts[row] += 1;
                if order == RowOrder::Listed {
                    assert_eq!(row as u64, ordinal % 4);
                }
            }
            assert!(counts.iter().all(|count| *count > 50), "{order:?} {counts:?}");
        }
        assert_eq!(drawn(csv("name", &names, RowOrder::Listed), [3, 4, 7]), ["\"joan\"", "ada", "\"joan\""]);
    }

    #[test]
    fn zipf_favours_the_first_values() {
        let zipf = drawn(ParameterKind::Zipf { from: -5, to: 994, exponent: 1.0 }, 0..10_000);
        let count = |value: i64| zipf.iter().filter(|drawn| **drawn == value.to_string()).count();
        // 1 ÷ H₁₀₀₀ = 0.1336 of all are the first value, half as many the second.
        assert!((1_200..1_470).contains(&count(-5)) && (590..750).contains(&count(-4)), "{} {}", count(-5), count(-4));
        assert!(zipf.iter().all(|value| (-5..=994).contains(&value.parse::<i64>().expect("an integer"))));
    }

    #[test]
    fn values_are_within_their_kind_and_the_same_when_drawn_again() {
        assert_eq!(drawn(ParameterKind::Sequence { from: -1, to: 1 }, 0..5), ["-1", "0", "1", "-1", "0"]);
        let uniform = ParameterKind::Uniform { from: -3, to: 3 };
        let values = drawn(uniform.clone(), 0..1_000);
        assert_eq!(values, drawn(uniform, 0..1_000));
        for wanted in -3..=3 {
            assert!(values.contains(&wanted.to_string()), "{wanted} never came");
        }
        assert!(values.iter().all(|value| (-3..=3).contains(&value.parse::<i64>().expect("an integer"))));
        for value in drawn(ParameterKind::Uniform { from: i64::MIN, to: i64::MAX }, 0..100) {
            value.parse::<i64>().expect("any 64-bit integer");
        }
        assert_eq!(drawn(ParameterKind::Uniform { from: i64::MIN, to: i64::MIN }, [0]), [i64::MIN.to_string()]);
        let choice = drawn(ParameterKind::Choice(vec!["a".into(), "é".into()]), 0..100);
        assert!(choice.contains(&"a".to_owned()) && choice.contains(&"é".to_owned()));
        for uuid in drawn(ParameterKind::Uuid, 0..100) {
            assert_eq!(uuid.len(), 36, "{uuid}");
            assert_eq!(&uuid[14..15], "4", "{uuid}");
            assert!(matches!(&uuid[19..20], "8" | "9" | "a" | "b"), "{uuid}");
        }
    }

    #[test]
    fn an_empty_range_or_choice_is_refused_with_its_name() {
        for kind in [
            ParameterKind::Uniform { from: 2, to: 1 },
            ParameterKind::Sequence { from: 2, to: 1 },
            ParameterKind::Choice(Vec::new()),
            ParameterKind::Zipf { from: 2, to: 1, exponent: 1.0 },
            ParameterKind::Zipf { from: 1, to: 2, exponent: f64::NAN },
            ParameterKind::Zipf { from: i64::MIN, to: i64::MAX, exponent: 1.0 },
            csv("id", &[], RowOrder::Random),
        ] {
            let error = Parameters::new(&[Parameter { name: "id".into(), kind }], 1, 0).err().expect("an error");
            assert!(error.to_string().contains("`id`"), "{error}");
        }
    }
}
