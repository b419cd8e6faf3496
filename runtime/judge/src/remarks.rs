//! What a reader should know of a repetition though it voids nothing: checkpoints, foreign load, findings.

use plan::{Metric, Procedure};

use crate::gate::{Context, bottleneck_remark};
use crate::words::{count, ms, number};

/// Processes outside the study that use less of a core are not worth a word.
const FOREIGN_CORES: f64 = 0.05;

/// How the remark on a checkpoint begins; figures count these.
pub(crate) const CHECKPOINT: &str = "a checkpoint ran within the window";

/// How the remark on a generator that was the bottleneck begins; figures count these.
pub(crate) const BOTTLENECK: &str = "the generator was the bottleneck";

/// From this ratio of corrected to service p99 on, a latency is a backlog and not the time of an answer.
const CLIFF: f64 = 3.0;

/// The remarks on one repetition, in a fixed order.
pub(crate) fn remarks(context: &Context<'_>) -> Vec<String> {
    let facts = context.facts;
    let mut remarks = Vec::new();
    if let Some(postgres) = &facts.postgres {
        let (timed, requested) = (postgres.checkpoints_timed, postgres.checkpoints_requested);
        if timed > 0 || requested > 0 {
            remarks.push(format!("{CHECKPOINT} ({} timed, {} requested)", count(timed), count(requested)));
        }
    }
    let foreign = facts.host.foreign_cpu_ns.map(|ns| ns as f64 / 1e9 / facts.window.seconds());
    if let Some(foreign) = foreign.filter(|foreign| foreign.is_finite() && *foreign > FOREIGN_CORES) {
        remarks.push(format!("processes outside the study used {} cores", number(foreign)));
    }
    if let (Procedure::Load(_), Some(load)) = (&context.phase.procedure, &facts.load) {
        if let Some(tool) = &load.tool {
            remarks.push(format!(
                "the load was sent by {} {}, which can't give {}",
                tool.name,
                tool.version,
                tool.lacks.join("; ")
            ));
            remarks.extend(tool.remarks.iter().cloned());
        }
        if load.reconnects > 0 {
            remarks.push(format!("{} connections had to be opened again", count(load.reconnects)));
        }
        let failed: u128 = load.streams.iter().map(|stream| u128::from(stream.warm_up_failed)).sum();
        if failed > 0 {
            remarks.push(format!("{} answers of the warm-up were not as expected", count(failed)));
        }
    }
    remarks.extend(cliff(context));
    remarks.extend(bottleneck_remark(context));
    remarks.extend(silence(context));
    remarks.extend(facts.findings.iter().map(|finding| format!("{}: {}", finding.what, finding.why)));
    remarks
}

/// A stillness of the target this many times its median service time is no slow answer.
const STILL: u64 = 5;

/// The longest time in which the target brought nothing though requests were in flight: its own doing, since what the generator was
/// away of it is taken out.
fn silence(context: &Context<'_>) -> Option<String> {
    let load = context.facts.load.as_ref()?;
    let median = context.latency.service?.any_p50_ns()?;
    let longest = load.silences.iter().max_by_key(|silence| silence.for_ns)?;
    (longest.for_ns > median.saturating_mul(STILL)).then(|| {
        format!(
            "the candidate stood still for {}, {} s into the window: requests were in flight, the generator was there, and nothing came",
            ms(longest.for_ns as f64),
            number(longest.at_ns.saturating_sub(context.facts.window.start_ns) as f64 / 1e9)
        )
    })
}

/// Names a corrected latency that comes from a backlog while the whole rate was delivered and every answer was quick.
fn cliff(context: &Context<'_>) -> Option<String> {
    let value = |metric| context.values.get(&metric).copied();
    let (corrected, service) = (value(Metric::CorrectedP99)?, value(Metric::ServiceP99)?);
    (value(Metric::Achieved)? >= 0.99 && corrected > CLIFF * service).then(|| {
        format!(
            "the rate was delivered, yet corrected p99 is {} ms beside a service p99 of {} ms: a backlog after a stall, not slow answers",
            number(corrected),
            number(service)
        )
    })
}
