//! Gates on what came back: every answer as expected and accounted for, its row in the table, each stream at its share.

use journal::{Census, LoadFacts, StreamFacts};
use plan::{Account, Procedure, Tool};

use super::{Context, Draft};
use crate::judgement::GateKind;
use crate::words::{count, number, percent};

/// A stream is expected to have at least one answer once this many are its share.
const LEAST_EXPECTED_OF_A_STREAM: f64 = 20.0;

/// Deviations of a stream's share below this many standard deviations of a random draw are chance.
const CHANCE_DEVIATIONS: f64 = 3.0;

/// Every answer as expected, every request accounted for, the generator ended well.
///
/// A rate that the candidate can't carry shows as requests without an answer in time. Where these are the candidate's own doing
/// (see [`super::generator::overloaded_by_its_own_slowness`]) they are no fault of the measurement: the gate passes and says so,
/// and the repetition counts as one that did not carry its rate.
pub(crate) fn census(context: &Context<'_>) -> Draft {
    let mut draft = Draft::new(GateKind::Wrong);
    for finding in context.facts.findings.iter().filter(|finding| finding.what == "generator") {
        draft.fail(format!("{}: {}", finding.what, finding.why));
    }
    let Some(workload) = context.workload() else {
        return pgbench(context, draft);
    };
    let Some(load) = &context.facts.load else {
        draft.fail(format!("the generator left no account{}", context.noted("load")));
        return draft;
    };
    let total: f64 = load.streams.iter().map(|stream| stream.census.ok as f64).sum();
    draft.note("answers as expected", Some(total), "count");
    let overloaded = super::generator::overloaded_by_its_own_slowness(context);
    let sender = load.tool.as_ref().map_or(Tool::Exp.name(), |tool| tool.name.as_str());
    if let Procedure::Load(procedure) = &context.phase.procedure
        && procedure.with.name() != sender
    {
        draft.fail(format!("the load was to be sent by {}, and {sender} sent it", procedure.with.name()));
    }
    draft.note("answers that nobody asked for", Some(load.unsolicited as f64), "count");
    if load.unsolicited > 0 {
        draft.fail(format!(
            "bytes came {} times on a connection with no request in flight: the target answers what nobody asked",
            count(load.unsolicited)
        ));
    }
    for stream in &workload.streams {
        let Some(facts) = load.streams.iter().find(|facts| facts.name == stream.name) else {
            draft.fail(format!("the stream `{}` left no account", stream.name));
            continue;
        };
        one_stream(context, &mut draft, facts, overloaded.is_some());
        let expected = stream.share * total;
        if facts.census.ok == 0 && expected >= LEAST_EXPECTED_OF_A_STREAM {
            draft.fail(format!(
                "the stream `{}` had no answer, where its share of {} is {}",
                stream.name,
                number(total),
                number(expected)
            ));
        }
    }
    if total < 1.0 {
        draft.fail("there was no expected answer in the window");
    }
    let late = if unanswered(load) > 0 { overloaded } else { None };
    draft.pass_with(|| match late {
        Some(why) => {
            format!("every request is accounted for; {} got no answer in time: {why}", count(unanswered(load)))
        }
        None => match &load.tool {
            None => format!("all {} answers were as expected and every request is accounted for", number(total)),
            Some(tool) => format!("{} told {} answers and no failure", tool.name, number(total)),
        },
    });
    draft
}

fn one_stream(context: &Context<'_>, draft: &mut Draft, stream: &StreamFacts, overloaded: bool) {
    let census = &stream.census;
    let name = &stream.name;
    let (left, right) = balance(census, context.is_open());
    draft.note(format!("{name}: requests"), Some(left as f64), "count");
    draft.note(format!("{name}: accounted for"), Some(right as f64), "count");
    if left != right && context.gives(Account::Conservation) {
        draft.fail(format!("stream `{name}`: {} requests, but {} are accounted for", count(left), count(right)));
    }
    for (what, number_of) in [
        ("failed", census.failed),
        ("timed out", census.timed_out),
        ("were never answered", census.unanswered),
        ("were never sent", census.unsent),
    ] {
        draft.note(format!("{name}: {what}"), Some(number_of as f64), "count");
        if number_of > 0 && !(overloaded && what != "failed") {
            draft.fail(format!("stream `{name}`: {} requests {what}{}", count(number_of), reasons(stream, what)));
        }
    }
    draft.note(format!("{name}: failed in the warm-up"), Some(stream.warm_up_failed as f64), "count");
}

/// Requests that timed out, were never answered or never sent.
pub(crate) fn unanswered(load: &LoadFacts) -> u128 {
    load.streams
        .iter()
        .flat_map(|stream| [stream.census.timed_out, stream.census.unanswered, stream.census.unsent])
        .map(u128::from)
        .sum()
}

/// Both sides of the census's equation; see [`Census`].
fn balance(census: &Census, open: bool) -> (u128, u128) {
    let ended = [census.ok, census.failed, census.timed_out, census.unanswered].map(u128::from).iter().sum::<u128>();
    if open {
        (u128::from(census.due), ended + u128::from(census.unsent))
    } else {
        (u128::from(census.carried_in) + u128::from(census.sent), ended + u128::from(census.carried_out))
    }
}

/// The three most frequent reasons, as the end of a sentence.
fn reasons(stream: &StreamFacts, what: &str) -> String {
    if what != "failed" || stream.failures.is_empty() {
        return String::new();
    }
    let mut reasons: Vec<(&String, &u64)> = stream.failures.iter().collect();
    reasons.sort_by(|left, right| right.1.cmp(left.1).then(left.0.cmp(right.0)));
    let named: Vec<String> =
        reasons.iter().take(3).map(|(reason, number_of)| format!("{reason} ({})", count(**number_of))).collect();
    format!(": {}", named.join(", "))
}

fn pgbench(context: &Context<'_>, mut draft: Draft) -> Draft {
    match &context.facts.pgbench {
        None => draft.fail(format!("pgbench left no account{}", context.noted("pgbench"))),
        Some(pgbench) => {
            draft.note("transactions", Some(pgbench.transactions as f64), "count");
            draft.note("failed transactions", Some(pgbench.failed as f64), "count");
            if pgbench.transactions == 0 {
                draft.fail("pgbench processed no transaction");
            }
            if let Some(skipped) = pgbench.skipped {
                draft.note("skipped transactions", Some(skipped as f64), "count");
                if skipped > 0 {
                    draft.fail(format!("{} transactions were skipped: the schedule was not kept", count(skipped)));
                }
            }
            if pgbench.failed > 0 {
                draft.fail(format!("{} transactions failed", count(pgbench.failed)));
            }
            draft.pass_with(|| format!("all {} transactions succeeded", count(pgbench.transactions)));
        }
    }
    draft
}

/// Rows before + acknowledged ≤ rows after ≤ rows before + acknowledged + unknown.
pub(crate) fn rows(context: &Context<'_>) -> Draft {
    let mut draft = Draft::new(GateKind::Wrong);
    let Some(workload) = context.workload() else {
        draft.pass_with(|| "pgbench acknowledges no rows".to_owned());
        return draft;
    };
    let creating: Vec<(&str, &str)> = workload
        .streams
        .iter()
        .filter_map(|stream| stream.creates_row_in.as_deref().map(|table| (stream.name.as_str(), table)))
        .collect();
    let Some(rows) = &context.facts.rows else {
        if creating.is_empty() {
            draft.pass_with(|| "no stream creates rows".to_owned());
        } else {
            draft.fail(format!("the rows were not counted{}", context.noted("rows")));
        }
        return draft;
    };
    let Some(load) = &context.facts.load else {
        draft.fail("the generator left no account, so nobody knows what was acknowledged");
        return draft;
    };
    let (mut acknowledged, mut unknown) = (0u128, 0u128);
    for (name, table) in creating {
        match load.streams.iter().find(|stream| stream.name == name) {
            _ if table != rows.table => {
                draft.fail(format!("stream `{name}` creates rows in `{table}`, and `{}` was counted", rows.table));
            }
            None => draft.fail(format!("the stream `{name}` left no account")),
            Some(stream) => {
                acknowledged += u128::from(stream.acknowledged);
                unknown += u128::from(stream.unknown);
            }
        }
    }
    let (before, after) = (u128::from(rows.before), u128::from(rows.after));
    draft.note("rows before", Some(rows.before as f64), "count");
    draft.note("acknowledged writes", Some(acknowledged as f64), "count");
    draft.note("writes of unknown outcome", Some(unknown as f64), "count");
    draft.note("rows after", Some(rows.after as f64), "count");
    let table = &rows.table;
    if after < before + acknowledged {
        draft.fail(format!(
            "`{table}` lacks {} of {} acknowledged rows: {} before, {} after",
            count(before + acknowledged - after),
            count(acknowledged),
            count(before),
            count(after)
        ));
    } else if after > before + acknowledged + unknown {
        draft.fail(format!(
            "`{table}` has {} rows that nobody acknowledged: {} before, {} acknowledged, {} of unknown outcome, {} after",
            count(after - before - acknowledged - unknown),
            count(before),
            count(acknowledged),
            count(unknown),
            count(after)
        ));
    }
    draft.pass_with(|| match unknown {
        0 => format!("`{table}` has exactly the {} acknowledged rows more", count(acknowledged)),
        _ => format!(
            "`{table}` has the {} acknowledged rows and at most the {} of unknown outcome more",
            count(acknowledged),
            count(unknown)
        ),
    });
    draft
}

/// Each stream's share of the answers is the declared one, within the tolerance and the chance of a random draw.
pub(crate) fn mix(context: &Context<'_>, tolerance: f64) -> Draft {
    let mut draft = Draft::new(GateKind::Wrong);
    let (Some(workload), Some(load)) = (context.workload(), &context.facts.load) else {
        draft.fail("the generator left no account, so the mix is not known");
        return draft;
    };
    let total: f64 = load.streams.iter().map(|stream| stream.census.ok as f64).sum();
    if total < 1.0 {
        draft.fail("there was no expected answer, so there is no mix");
        return draft;
    }
    draft.note("tolerance", Some(tolerance), "ratio");
    for stream in &workload.streams {
        let Some(facts) = load.streams.iter().find(|facts| facts.name == stream.name) else {
            draft.fail(format!("the stream `{}` left no account", stream.name));
            continue;
        };
        let share = facts.census.ok as f64 / total;
        let chance = CHANCE_DEVIATIONS * (stream.share * (1.0 - stream.share).max(0.0) / total).sqrt();
        draft.note(format!("share of {}", stream.name), Some(share), "ratio");
        draft.note(format!("declared share of {}", stream.name), Some(stream.share), "ratio");
        let off = (share - stream.share).abs() - chance;
        if !off.is_finite() || off > tolerance {
            draft.fail(format!(
                "`{}` was {} of the answers instead of {}, beyond {} points and the chance of {} draws",
                stream.name,
                percent(share),
                percent(stream.share),
                number(tolerance * 100.0),
                number(total)
            ));
        }
    }
    draft.pass_with(|| "every stream had its declared share".to_owned());
    draft
}
