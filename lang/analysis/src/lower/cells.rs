//! Cells and slots: the product of a phase's axes, a hash for each cell over everything that can change what is measured
//! there, and the order of the repetitions.

use std::collections::BTreeMap;

use plan::{Cell, ContentHash, Gate, Level, Order, Phase, Plan, Procedure, Slot};

use super::random::SplitMix64;

/// The most cells that a phase may have: more can't be measured in a lifetime.
pub const MOST_CELLS: usize = 1_000_000;

/// How many cells the axes make, or `None` where that overflows.
pub fn count(phase: &Phase) -> Option<usize> {
    phase.axes.iter().try_fold(1_usize, |product, axis| product.checked_mul(axis.levels.len()))
}

/// By phase, a hash over what its cells are measured with, whoever the candidates are: what a phase that reads it
/// depends on. Another candidate's change leaves a candidate's own cells alone.
pub type Upstream = BTreeMap<String, ContentHash>;

/// Fills a phase's cells and slots. `plan` holds everything else; `upstream` knows the phases before this one and gets
/// this one.
pub fn fill(phase: &mut Phase, plan: &Plan, upstream: &mut Upstream) {
    let total = count(phase).unwrap_or(0).min(MOST_CELLS);
    let base = base_hash(phase, plan, upstream);
    let varied: Vec<_> = phase.axes.iter().filter(|axis| axis.factor != "candidate").collect();
    upstream.insert(phase.name.clone(), ContentHash::of(&(&base, varied, &phase.choose)));
    let axis = phase.axes.iter().position(|axis| axis.factor == "candidate");
    let candidates: Vec<ContentHash> = axis
        .map(|axis| phase.axes[axis].levels.iter().map(|level| candidate_hash(level, phase, plan)).collect())
        .unwrap_or_default();
    let mut places = vec![0_usize; phase.axes.len()];
    let mut content = Vec::new();
    phase.cells = Vec::with_capacity(total);
    for _ in 0..total {
        let levels: Vec<Level> =
            phase.axes.iter().zip(&places).map(|(axis, place)| axis.levels[*place].clone()).collect();
        content.clear();
        content.extend_from_slice(base.as_str().as_bytes());
        if let Some(axis) = axis {
            content.extend_from_slice(candidates[places[axis]].as_str().as_bytes());
        }
        for (index, level) in levels.iter().enumerate() {
            // The candidate is in its own hash, by what it is made of.
            if Some(index) != axis {
                write_level(&mut content, level);
            }
        }
        phase.cells.push(Cell { levels, hash: ContentHash::of_bytes(&content) });
        for (place, axis) in places.iter_mut().zip(&phase.axes).rev() {
            *place += 1;
            if *place < axis.levels.len() {
                break;
            }
            *place = 0;
        }
    }
    phase.slots = slots(phase, plan.seed);
}

/// A level, so that no two differ only by their type.
fn write_level(content: &mut Vec<u8>, level: &Level) {
    let (tag, text) = match level {
        Level::Integer(_) => (b'i', level.to_string()),
        Level::Word(_) => (b'w', level.to_string()),
        Level::PerSecond(rate) => (b'r', format!("{:016x}", rate.to_bits())),
        Level::ShareOf { share, of } => (b's', format!("{:016x} {of}", share.to_bits())),
    };
    content.push(b'|');
    content.push(tag);
    content.extend_from_slice(text.as_bytes());
}

/// Everything but candidate and levels that can change what a phase measures: the procedure with its traffic and tokens,
/// the database, the CPUs, the probe that runs before, and the phases that it reads. Gates that only judge, repetitions,
/// estimates, titles and the report are not in it: they are derived anew from the journal.
fn base_hash(phase: &Phase, plan: &Plan, upstream: &Upstream) -> ContentHash {
    let machine = &plan.machine;
    let workload = match &phase.procedure {
        Procedure::Load(load) => plan.workload(&load.workload),
        Procedure::Pgbench(_) | Procedure::Start(_) => None,
    };
    let tokens: Vec<_> = plan
        .credentials
        .iter()
        .filter_map(|credentials| {
            let sent = |name: &str| {
                workload.is_some_and(|workload| {
                    workload.streams.iter().any(|stream| stream.request.bearer.as_deref() == Some(name))
                })
            };
            let tokens: Vec<_> = credentials.tokens.iter().filter(|token| sent(&token.name)).collect();
            (!tokens.is_empty()).then_some((
                &credentials.algorithm,
                &credentials.issuer,
                &credentials.audience,
                &credentials.subject,
                tokens,
            ))
        })
        .collect();
    let database = plan.database.as_ref().map(|database| {
        let image = database.image.as_ref().map(|image| &image.hash);
        (image, database.memory_bytes, &database.settings, &database.template_hash, &database.each_cell)
    });
    let probe = phase
        .gates
        .iter()
        .find_map(|gate| match gate {
            Gate::GeneratorProbe { at, of } => Some((at, of)),
            _ => None,
        })
        .map(|gate| {
            let server = plan
                .probe
                .as_ref()
                .map(|probe| (probe.image.as_ref().map(|image| &image.hash), &probe.process, &probe.env, probe.port));
            (gate, server)
        });
    let upstream: Vec<&ContentHash> = phase.reads.iter().filter_map(|name| upstream.get(name)).collect();
    // A workload counts by its streams, whatever it is called.
    let streams = workload.map(|workload| &workload.streams);
    let procedure = match &phase.procedure {
        Procedure::Load(load) => ContentHash::of(&(
            "load",
            streams,
            &load.rate,
            (&load.course, load.arrivals, load.keep_alive),
            // Of a factor's connections each cell has its level.
            (load.connections_of.is_none().then_some(load.connections), &load.connections_of),
            (load.window_ns, load.warm_up_ns, load.timeout_ns),
        )),
        Procedure::Pgbench(pgbench) => {
            ContentHash::of(&("pgbench", &pgbench.script.text, (pgbench.clients, pgbench.jobs, pgbench.window_ns)))
        }
        Procedure::Start(start) => ContentHash::of(&("start", start.window_ns)),
    };
    ContentHash::of(&(
        procedure,
        (&machine.candidate, &machine.database, &machine.load),
        plan.seed,
        tokens,
        database,
        probe,
        upstream,
        &phase.with,
    ))
}

/// What a candidate is, without its name and label.
fn candidate_hash(level: &Level, phase: &Phase, plan: &Plan) -> ContentHash {
    let Level::Word(name) = level else { return ContentHash::of_bytes(b"") };
    let Some(candidate) = plan.candidate(name) else { return ContentHash::of_bytes(name.as_bytes()) };
    // Credentials reach a candidate through its environment.
    let read: Vec<_> = plan
        .credentials
        .iter()
        .filter(|credentials| {
            let prefix = format!("{}.", credentials.name);
            candidate.env.iter().any(|(_, text)| text.variables().any(|name| name.starts_with(&prefix)))
        })
        .map(|credentials| (&credentials.algorithm, &credentials.issuer, &credentials.audience))
        .collect();
    ContentHash::of(&(
        candidate.image.as_ref().map(|image| &image.hash),
        &candidate.process,
        candidate.port,
        candidate.memory_bytes,
        candidate.open_files,
        &candidate.env,
        &candidate.ready,
        read,
        // Two candidates made alike are still measured apart.
        phase.axes.iter().any(|axis| axis.factor == "candidate").then_some(name),
    ))
}

/// Randomised complete blocks, or the cells as listed.
fn slots(phase: &Phase, seed: u64) -> Vec<Slot> {
    let cells = u32::try_from(phase.cells.len()).unwrap_or(u32::MAX);
    let valid = phase.repeat.valid;
    // More slots than this are no plan any more; the cells' own limit keeps sane studies far below.
    let total = (u64::from(cells) * u64::from(valid)).min(20_000_000) as usize;
    let mut slots = Vec::with_capacity(total);
    match phase.repeat.order {
        Order::Listed => {
            'cells: for cell in 0..cells {
                for block in 0..valid {
                    if slots.len() == total {
                        break 'cells;
                    }
                    slots.push(Slot { block, cell });
                }
            }
        }
        Order::Blocks => {
            let mut random = SplitMix64::new(seed, &phase.name);
            let mut order: Vec<u32> = (0..cells).collect();
            'blocks: for block in 0..valid {
                random.shuffle(&mut order);
                for cell in &order {
                    if slots.len() == total {
                        break 'blocks;
                    }
                    slots.push(Slot { block, cell: *cell });
                }
            }
        }
    }
    slots
}
