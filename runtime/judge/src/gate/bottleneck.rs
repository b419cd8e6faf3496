//! Whether the generator itself was the bottleneck, by what it says of itself.

use journal::LoadFacts;
use plan::Gate;

use super::{Context, Draft};
use crate::judgement::GateKind;
use crate::latency::Summary;
use crate::remarks::BOTTLENECK;
use crate::words::{count, number, percent};

/// The busiest thread's utilisation ≤ `busy`, and the median time that answers waited to be read ≤ `receive_queue` × the median service
/// time of the same answers, or no longer than a wake-up.
pub(crate) fn gate(context: &Context<'_>, busy: f64, receive_queue: f64) -> Draft {
    let mut draft = Draft::new(GateKind::BenchLimited);
    draft.note("largest accepted utilisation", Some(busy), "ratio");
    draft.note("largest accepted receive queue", Some(receive_queue), "ratio");
    draft.note("receive queue accepted as a wake-up", Some(Gate::WAKE_UP_NS as f64 / 1e3), "µs");
    let Some(load) = &context.facts.load else {
        draft.fail("the generator left no account of itself");
        return draft;
    };
    let seen = Seen::of(load, context);
    draft.note("utilisation of its busiest thread", seen.busy, "ratio");
    draft.note("median of the receive queue", seen.queue_us, "µs");
    draft.note("receive queue ÷ service time", seen.queue_share, "ratio");
    draft.note("answers timed", Some(seen.timed as f64), "count");
    match seen.busy {
        None => {
            draft.fail(format!("the CPU time of the generator's threads is not known{}", context.noted("generator")))
        }
        Some(share) if share > busy => draft.fail(too_busy(share, busy)),
        Some(_) => {}
    }
    match seen.queue_share {
        None => draft.fail("nobody recorded how long answers waited for the generator to read them"),
        Some(share) if share > receive_queue && !seen.is_wake_up() => draft.fail(seen.waited(share, receive_queue)),
        Some(_) => {}
    }
    draft.pass_with(|| {
        let wake_up = match seen.queue_share {
            Some(share) if share > receive_queue => {
                format!(" ({} µs, no longer than its wake-up)", number(seen.queue_us.unwrap_or_default()))
            }
            _ => String::new(),
        };
        format!(
            "the generator had time to spare: {} busy, and answers waited for it for {} of their time{wake_up}",
            percent(seen.busy.unwrap_or_default()),
            percent(seen.queue_share.unwrap_or_default())
        )
    });
    draft
}

/// What is said of a repetition: that the generator was the bottleneck by the usual thresholds, where no gate says that, or that its
/// wake-ups are a large part of the latencies.
pub(crate) fn remark(context: &Context<'_>) -> Option<String> {
    let seen = Seen::of(context.facts.load.as_ref()?, context);
    if let Some(share) = seen.queue_share.filter(|share| *share > Gate::RECEIVE_QUEUE && seen.is_wake_up())
        && seen.busy.is_some_and(|busy| busy <= Gate::GENERATOR_BUSY)
    {
        return Some(format!(
            "answers lay in the kernel for {} µs until the generator woke up and read them, {} of their service time (medians of {} answers)",
            number(seen.queue_us.unwrap_or_default()),
            percent(share),
            count(seen.timed)
        ));
    }
    if context.phase.gates.iter().any(|gate| matches!(gate, Gate::GeneratorBottleneck { .. })) {
        return None;
    }
    if let Some(busy) = seen.busy.filter(|busy| *busy > Gate::GENERATOR_BUSY) {
        return Some(too_busy(busy, Gate::GENERATOR_BUSY));
    }
    let share = seen.queue_share.filter(|share| *share > Gate::RECEIVE_QUEUE && !seen.is_wake_up())?;
    Some(seen.waited(share, Gate::RECEIVE_QUEUE))
}

fn too_busy(busy: f64, most: f64) -> String {
    format!(
        "{BOTTLENECK}: a thread of it was busy for {} of the window, more than {}",
        percent(busy.min(1.0)),
        percent(most)
    )
}

/// What the generator says of itself.
struct Seen {
    busy: Option<f64>,
    queue_us: Option<f64>,
    queue_share: Option<f64>,
    timed: u64,
}

impl Seen {
    fn of(load: &LoadFacts, context: &Context<'_>) -> Self {
        let window_ns = context.facts.window.end_ns.saturating_sub(context.facts.window.start_ns);
        let receive = context.latency.receive.as_ref();
        let median = |of: Option<&Summary>| of.and_then(Summary::any_p50_ns).map(|ns| ns as f64);
        let (queue, service) = (median(receive.map(|(queue, _)| queue)), median(receive.map(|(_, service)| service)));
        Self {
            busy: load.generator.busiest(window_ns),
            queue_us: queue.map(|ns| ns / 1e3),
            queue_share: queue.zip(service.filter(|ns| *ns > 0.0)).map(|(queue, service)| queue / service),
            timed: receive.map_or(0, |(queue, _)| queue.count),
        }
    }

    /// Whether answers waited no longer than a thread needs to wake up.
    fn is_wake_up(&self) -> bool {
        self.queue_us.is_some_and(|us| us * 1e3 <= Gate::WAKE_UP_NS as f64)
    }

    fn waited(&self, share: f64, most: f64) -> String {
        format!(
            "{BOTTLENECK} of the latencies: answers lay in the kernel for {} µs until it read them, {} of their \
             service time, more than {} (medians of {} answers)",
            number(self.queue_us.unwrap_or_default()),
            percent(share),
            percent(most),
            count(self.timed)
        )
    }
}
