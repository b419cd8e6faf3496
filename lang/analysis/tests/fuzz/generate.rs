//! Studies from the schema: nodes that the language knows, mostly with the values that they take, referring to each other by
//! a handful of names. Whatever the schema gains is generated from then on.

use std::fmt::Write as _;

use analysis::lint::LINTS;
use analysis::schema::{ALLOW, Argument, Count, FILE, Kind, NodeSpec, Setting, Type, WITHOUT};
use plan::Metric;

use super::random::Random;

/// Names that generated nodes have and refer to; those of the base study among them.
const NAMES: [&str; 12] =
    ["app", "ceiling", "sweep", "mixed", "read", "bench", "cores", "pool", "rate", "nginx", "phases", "other-1"];
const DEFINED: [&str; 4] = ["saturation", "rate-grid", "bench", "slow"];
const TEXTS: [&str; 9] =
    ["\"t\"", "word", "\"é 𝄞\"", "\"\"", "#\"raw \"x\"\"#", "\"a\\nb\"", "\"$${x}\"", "\"/items/${id}\"", "\"ok\""];
const VARIABLES: [&str; 9] =
    ["port", "cores", "pool", "database.url", "oauth2.public-key", "id", "candidate", "env:HOME", "nothing.here"];
const WRONG: [&str; 16] = [
    "10s",
    "\"10 parsecs\"",
    "-1",
    "99999999999999999999",
    "1.5",
    "#null",
    "#true",
    "true",
    "\"${\"",
    "\"0-\"",
    "\"150%\"",
    "${x}",
    "a/b",
    "\"-1s\"",
    "\"x < \"",
    "\"\"\"\n    x\n    \"\"\"",
];

/// Some top-level nodes.
pub fn study(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..1 + random.below(6) {
        let spec = random.pick(FILE.children);
        match random.below(12) {
            0 => {
                let _ = writeln!(text, "profile {} {{", random.pick(&["smoke", "short"]));
                for _ in 0..random.below(4) {
                    match random.chance(20) {
                        true => node(&mut text, &WITHOUT, 1, random),
                        false => node(&mut text, random.pick(FILE.children), 1, random),
                    }
                }
                text.push_str("}\n");
            }
            1 if spec.setting("like", None).is_some() => {
                text.push_str("define ");
                node(&mut text, spec, 0, random);
            }
            _ => node(&mut text, spec, 0, random),
        }
    }
    text
}

fn node(text: &mut String, spec: &'static NodeSpec, depth: usize, random: &mut Random) {
    let _ = write!(text, "{}", "    ".repeat(depth));
    if random.chance(3) {
        text.push_str(random.pick(&["(replace)", "(remove)", "(x)", "/- "]));
    }
    text.push_str(spec.name);
    let mut variant = None;
    for (index, argument) in spec.arguments.iter().enumerate() {
        if spec.variant == Some(index) && !spec.variants.is_empty() {
            let chosen = random.choose(spec.variants);
            variant = Some(chosen);
            let _ = write!(text, " {}", chosen.name);
        } else if argument.required || random.chance(50) {
            let _ = write!(text, " {}", value(argument.ty, random));
        }
    }
    if let Some(Argument { ty, required, .. }) = spec.rest.or(variant.and_then(|variant| variant.rest)) {
        for _ in 0..random.below(3) + usize::from(required) {
            let _ = write!(text, " {}", value(ty, random));
        }
    }
    let mut block = String::new();
    for setting in spec.all_settings(variant) {
        if !random.chance(if setting.required { 95 } else { 25 }) {
            continue;
        }
        write_setting(text, &mut block, setting, depth, random);
    }
    if let Some(free) = spec.free {
        for _ in 0..random.below(3) {
            let _ =
                write!(text, " {}={}", random.pick(&["PORT", "POOL", "max_connections", "A"]), value(free.ty, random));
        }
    }
    if depth < 5 {
        for child in spec.children {
            let times = match child.count {
                Count::One | Count::Some => usize::from(random.chance(92)) + usize::from(random.chance(4)),
                Count::Optional => usize::from(random.chance(35)),
                Count::Any => random.below(3),
            };
            for _ in 0..times {
                node(&mut block, child, depth + 1, random);
            }
        }
        if spec.is_scope() && random.chance(6) {
            node(&mut block, if random.chance(50) { &ALLOW } else { &WITHOUT }, depth + 1, random);
        }
        if random.chance(2) {
            node(&mut block, random.pick(FILE.children), depth + 1, random);
        }
    }
    if !block.is_empty() {
        let _ = write!(text, " {{\n{block}{}}}", "    ".repeat(depth));
    }
    text.push('\n');
}

/// As a property, or as a child with one argument.
fn write_setting(text: &mut String, block: &mut String, setting: &Setting, depth: usize, random: &mut Random) {
    let value = match random.chance(30) {
        // The schema's own example of a value.
        true => setting.example.to_owned(),
        false => value(setting.ty, random),
    };
    match random.chance(50) {
        true => drop(write!(text, " {}={value}", setting.name)),
        false => drop(writeln!(block, "{}{} {value}", "    ".repeat(depth + 1), setting.name)),
    }
}

fn name(kind: Kind, random: &mut Random) -> String {
    match kind {
        Kind::Lint => random.choose(LINTS).info.name.to_owned(),
        Kind::Metric => random.pick(&Metric::ALL).name().to_owned(),
        Kind::Definition => random.pick(&DEFINED).to_owned(),
        _ => random.pick(&NAMES).to_owned(),
    }
}

fn value(ty: Type, random: &mut Random) -> String {
    if random.chance(6) {
        return random.pick(&WRONG).to_owned();
    }
    let one = |random: &mut Random, of: &[&str]| random.pick(of).to_owned();
    match ty {
        Type::Name => one(random, &NAMES),
        Type::Template => format!("\"a${{{}}}\"", random.pick(&VARIABLES)),
        Type::Scalar => one(random, &["1", "\"${id}\"", "#true", "x", "1.5"]),
        Type::Json => one(random, &["#\"{\"a\":[1,null]}\"#", "\"{}\"", "#\"{\"a\":\"${id}\"}\"#", "\"{\""]),
        Type::Word(words) => random.pick(words).name.to_owned(),
        Type::Integer(least, most) => match random.below(8) {
            0 => least.to_string(),
            1 => most.to_string(),
            2 => least.wrapping_sub(1).to_string(),
            _ => least.saturating_add(1 + random.below(5) as i64).min(most).to_string(),
        },
        Type::Duration | Type::SignedDuration => one(random, &["\"1s\"", "\"10ms\"", "\"0s\"", "\"2h\"", "\"20s\""]),
        Type::Rate => one(random, &["\"500/s\"", "\"${rate}\"", "\"10/min\"", "\"${pool}\""]),
        Type::Bytes => one(random, &["\"1GiB\"", "\"64kB\"", "\"1B\""]),
        Type::Percent(_) => one(random, &["\"5%\"", "\"50%\"", "\"115%\"", "\"0%\""]),
        Type::Cpus => one(random, &["\"0\"", "\"0-3\"", "\"1,3\"", "\"2\"", "\"9-10\""]),
        Type::File => {
            one(random, &["\"sql/schema.sql\"", "\"sql/insert.sql\"", "\"sql/none.sql\"", "\"../x\"", "\"study.kdl\""])
        }
        Type::Directory => one(random, &["\"candidates/app\"", "\"candidates/none\"", "\".\""]),
        Type::Level => one(random, &["1", "2", "8", "\"30%\"", "\"75%\"", "\"500/s\"", "app", "small"]),
        Type::Condition => format!(
            "\"{} {} {}\"",
            random.pick(&Metric::ALL).name(),
            random.pick(&["<", ">=", "==", "<="]),
            random.pick(&["10ms", "99%", "0", "500/s"])
        ),
        Type::Figure => format!("{}.{}", random.pick(&NAMES), random.pick(&Metric::ALL).name()),
        Type::Metric => name(Kind::Metric, random),
        Type::Reference(kind) => name(kind, random),
        Type::References(kind) => {
            format!("\"{} {}\"", name(kind, random), random.pick(&["candidate", "cores", "pool"]))
        }
        Type::Numbers => one(random, &["\"10000 20000\"", "5", "\"1 x\""]),
        Type::JsonPath => one(random, &["\"$.id\"", "\"$.a[0].b\"", "\"$\"", "\"id\""]),
        Type::NodeKind => random.pick(FILE.children).name.to_owned(),
        _ => one(random, &TEXTS),
    }
}
