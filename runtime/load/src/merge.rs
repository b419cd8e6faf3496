//! Accounts of several generators that sent one load together, made one: counts are added, histograms are merged as
//! histograms. A percentile of all is none of their percentiles, and no mean of them either.

use journal::facts::{GeneratorFacts, Histogram, LoadFacts, PartFacts, ReceiveFacts, Stall, StreamFacts};

use crate::tally::EVIDENCE;

/// Makes one account of several generators'. `rate` is the rate of all of them together.
///
/// Stalls are put onto the controller's clock by each generator's `clock_offset_ns`. What one of them could not read is
/// unknown of all.
///
/// # Errors
/// When there is none, or they don't account for the same streams and slices.
pub fn merge(parts: Vec<(PartFacts, LoadFacts)>, rate: Option<f64>) -> Result<LoadFacts, String> {
    let mut parts = parts.into_iter();
    let (first, mut all) = parts.next().ok_or("no generator gave an account")?;
    shift(&mut all, first.clock_offset_ns);
    let mut identities = vec![identity(first, &all)];
    for (part, mut facts) in parts {
        shift(&mut facts, part.clock_offset_ns);
        identities.push(identity(part, &facts));
        add(&mut all, facts)?;
    }
    all.rate = rate;
    all.silences.sort_by_key(|silence| (silence.at_ns, silence.for_ns));
    all.generator.stalls.sort_by_key(|stall| (stall.at_ns, stall.for_ns));
    all.generators = identities;
    Ok(all)
}

fn identity(part: PartFacts, facts: &LoadFacts) -> PartFacts {
    PartFacts {
        connections: facts.connections,
        ok: facts.streams.iter().map(|stream| stream.census.ok).sum(),
        cpu_ns: facts.generator.cpu_ns,
        threads: facts.generator.threads,
        ..part
    }
}

fn shift(facts: &mut LoadFacts, offset_ns: i64) {
    for Stall { at_ns, .. } in facts.generator.stalls.iter_mut().chain(&mut facts.silences) {
        *at_ns = at_ns.saturating_add_signed(offset_ns.saturating_neg());
    }
}

// Every field is named here, so that a new one can't be forgotten.
fn add(all: &mut LoadFacts, part: LoadFacts) -> Result<(), String> {
    let LoadFacts {
        connections,
        connections_used,
        reconnects,
        unsolicited,
        rate: _,
        slice_ns,
        took_ns,
        generators: _,
        streams,
        generator,
        silences,
        transport,
        tool,
    } = part;
    if let Some(tool) = tool {
        return Err(format!("{} is no generator of ours, and what it told can't be added to another's", tool.name));
    }
    let names = |streams: &[StreamFacts]| streams.iter().map(|stream| stream.name.clone()).collect::<Vec<_>>();
    if (slice_ns, names(&streams)) != (all.slice_ns, names(&all.streams)) {
        return Err(format!(
            "the generators' accounts don't fit together: streams {:?} in slices of {} ns, and {:?} in slices of {slice_ns} ns",
            names(&all.streams),
            all.slice_ns,
            names(&streams)
        ));
    }
    all.connections += connections;
    all.connections_used += connections_used;
    all.reconnects += reconnects;
    all.unsolicited += unsolicited;
    all.took_ns = all.took_ns.max(took_ns);
    all.silences.extend(silences);
    if let (Some(mine), Some(theirs)) = (&mut all.transport, transport) {
        mine.sent_again += theirs.sent_again;
    }
    for (mine, theirs) in all.streams.iter_mut().zip(streams) {
        add_stream(mine, theirs);
    }
    let GeneratorFacts {
        cpu_ns,
        user_ns,
        threads,
        stalls,
        involuntary_switches,
        max_backlog,
        by_thread,
        receive,
        steal_ns,
    } = generator;
    let mine = &mut all.generator;
    let sum = |one: Option<u64>, two: Option<u64>| Some(one? + two?);
    mine.cpu_ns = sum(mine.cpu_ns, cpu_ns);
    mine.user_ns = sum(mine.user_ns, user_ns);
    mine.involuntary_switches = sum(mine.involuntary_switches, involuntary_switches);
    mine.threads += threads;
    mine.stalls.extend(stalls);
    mine.max_backlog += max_backlog;
    mine.by_thread.extend(by_thread);
    mine.steal_ns = sum(mine.steal_ns, steal_ns);
    if let Some(ReceiveFacts { connections, queue, service }) = receive {
        let mine = mine.receive.get_or_insert_with(ReceiveFacts::default);
        mine.connections += connections;
        mine.queue.merge(&queue);
        mine.service.merge(&service);
    }
    Ok(())
}

/// Adds what another generator, or a later interval, recorded of the same stream.
pub fn add_stream(mine: &mut StreamFacts, theirs: StreamFacts) {
    let StreamFacts {
        name: _,
        census,
        acknowledged,
        unknown,
        warm_up_failed,
        failures,
        evidence,
        service,
        ttfb,
        corrected,
        send_lag,
        own_lag,
        connect,
        progress,
        failed,
    } = theirs;
    mine.census.due += census.due;
    mine.census.sent += census.sent;
    mine.census.carried_in += census.carried_in;
    mine.census.ok += census.ok;
    mine.census.failed += census.failed;
    mine.census.timed_out += census.timed_out;
    mine.census.unanswered += census.unanswered;
    mine.census.carried_out += census.carried_out;
    mine.census.unsent += census.unsent;
    mine.acknowledged += acknowledged;
    mine.unknown += unknown;
    mine.warm_up_failed += warm_up_failed;
    for (reason, count) in failures {
        *mine.failures.entry(reason).or_default() += count;
    }
    let room = EVIDENCE.saturating_sub(mine.evidence.len());
    mine.evidence.extend(evidence.into_iter().take(room));
    mine.service.merge(&service);
    mine.ttfb.merge(&ttfb);
    mine.failed.merge(&failed);
    for (mine, theirs) in [
        (&mut mine.corrected, corrected),
        (&mut mine.send_lag, send_lag),
        (&mut mine.own_lag, own_lag),
        (&mut mine.connect, connect),
    ] {
        if let Some(theirs) = theirs {
            mine.get_or_insert_with(Histogram::default).merge(&theirs);
        }
    }
    if mine.progress.len() < progress.len() {
        mine.progress.resize(progress.len(), 0);
    }
    for (mine, theirs) in mine.progress.iter_mut().zip(progress) {
        *mine += theirs;
    }
}

#[cfg(test)]
mod tests {
    use journal::facts::Census;

    use super::*;

    /// An account of `count` answers that took `ms` each.
    fn account(count: u64, ms: u64) -> LoadFacts {
        let latencies = Histogram::of((0..count).map(|n| ms * 1_000_000 + n));
        LoadFacts {
            connections: 4,
            connections_used: 3,
            slice_ns: 100_000_000,
            streams: vec![StreamFacts {
                name: "read".into(),
                census: Census { due: count + 1, sent: count + 1, ok: count, failed: 1, ..Census::default() },
                failures: [("status 503".to_owned(), 1)].into(),
                evidence: vec!["503".into(); 3],
                service: latencies.clone(),
                corrected: Some(latencies),
                progress: vec![count],
                ..StreamFacts::default()
            }],
            generator: GeneratorFacts {
                cpu_ns: Some(5),
                threads: 1,
                stalls: vec![Stall { at_ns: 1_000, for_ns: 7 }],
                ..GeneratorFacts::default()
            },
            ..LoadFacts::default()
        }
    }

    #[test]
    fn percentiles_of_the_merged_histograms_are_not_the_average_of_percentiles() {
        // One generator met a slow path with a tenth of the load. The average of both p99 would say 50.5 ms, each answer having
        // the weight of its generator; of all answers one in ten took 100 ms, so p99 is 100 ms, and p50 is 1 ms, not 50.5.
        let (fast, slow) = (account(9_000, 1), account(1_000, 100));
        let quantile =
            |facts: &LoadFacts, q| facts.streams[0].service.quantile_ns(q).map(|ns| (ns as f64 / 1e6).round());
        let averaged = (quantile(&fast, 0.99).unwrap_or(0.0) + quantile(&slow, 0.99).unwrap_or(0.0)) / 2.0;
        assert_eq!(averaged.round(), 51.0);
        let merged =
            merge(vec![(PartFacts::default(), fast), (PartFacts::default(), slow)], Some(7.0)).expect("one account");
        assert_eq!(quantile(&merged, 0.5), Some(1.0));
        assert_eq!(quantile(&merged, 0.99), Some(100.0));
        assert_eq!(merged.streams[0].corrected.as_ref().map(|corrected| corrected.count), Some(10_000));
    }

    #[test]
    fn conservation_adds_up_and_what_one_does_not_know_nobody_knows() {
        let other = PartFacts { place: "tcp://198.18.0.1:2375".into(), clock_offset_ns: 400, ..PartFacts::default() };
        let mut unread = account(30, 1);
        unread.generator.cpu_ns = None;
        let merged = merge(vec![(PartFacts::default(), account(20, 1)), (other, unread)], None).expect("one account");
        let stream = &merged.streams[0];
        assert!(stream.census.is_conserved(true));
        assert_eq!((stream.census.due, stream.census.ok, stream.failures["status 503"]), (52, 50, 2));
        assert_eq!((stream.evidence.len(), stream.progress.as_slice()), (EVIDENCE, [50].as_slice()));
        assert_eq!((merged.connections, merged.connections_used, merged.generator.threads), (8, 6, 2));
        assert_eq!((merged.generator.cpu_ns, merged.generators[0].cpu_ns), (None, Some(5)));
        assert_eq!((merged.generators[0].ok, merged.generators[1].ok), (20, 30));
        assert_eq!(merged.generator.stalls.iter().map(|stall| stall.at_ns).collect::<Vec<_>>(), [600, 1_000]);
    }

    #[test]
    fn accounts_that_do_not_fit_are_refused() {
        assert!(merge(Vec::new(), None).is_err());
        let mut other = account(1, 1);
        other.streams[0].name = "write".into();
        let refused = merge(vec![(PartFacts::default(), account(1, 1)), (PartFacts::default(), other)], None);
        assert!(refused.is_err_and(|why| why.contains("read") && why.contains("write")));
    }
}
