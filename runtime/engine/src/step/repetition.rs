//! One repetition: probe, fresh database, candidate, warm-up, window, checks.

use std::collections::BTreeMap;
use std::time::Duration;

use journal::{Event, RepetitionFacts, RepetitionId, RowFacts, Stage};
use plan::{Gate, Level, LoadProcedure, PgbenchProcedure, Phase, Plan, Procedure, Role};

use crate::error::StepError;
use crate::generator::{self, Generators};
use crate::run::{Run, nanos};
use crate::sample::{SampleSpec, Sampler, clock};
use crate::step::serve;
use crate::tool::{Installed, ToolLoad};

/// Time between telling generator and sampler when the window begins and that instant.
pub(super) const LEAD: Duration = Duration::from_millis(150);
/// The sampler's own start, before a tool is started.
const TOOL_LEAD: Duration = Duration::from_millis(50);
/// Time after the window for answers that are under way.
const GRACE: Duration = Duration::from_secs(2);

/// The candidate of a cell, if its phase has that axis.
pub(crate) fn candidate_of<'a>(plan: &'a Plan, phase: &str, cell: u32) -> Option<&'a str> {
    let phase = plan.phase(phase)?;
    let axis = phase.axes.iter().position(|axis| axis.factor == "candidate")?;
    match phase.cells.get(cell as usize)?.levels.get(axis)? {
        Level::Word(name) => Some(name),
        _ => None,
    }
}

/// Measures one repetition and gives its facts. Servers of the repetition are stopped in every case.
pub(crate) async fn measure(run: &mut Run, id: &RepetitionId) -> Result<RepetitionFacts, StepError> {
    let missing = || {
        StepError::step(
            format!("the plan has no cell {id}"),
            "plan and journal contradict each other",
            "start a new run with --new",
        )
    };
    let phase = run.plan.phase(&id.phase).cloned().ok_or_else(missing)?;
    let hash = judge::cell_hash(&run.plan, &id.phase, id.cell).cloned().ok_or_else(missing)?;
    let judgement = run.judgement();
    let levels = match judge::levels(&run.plan, &id.phase, id.cell, &judgement) {
        Ok(levels) => levels,
        Err(why) => {
            run.stream.publish(Event::RepetitionStarted { repetition: id.clone(), hash, levels: BTreeMap::new() })?;
            return Err(StepError::step(
                format!("{id} can't be measured: {why}"),
                "a level of this cell comes from another phase",
                "see that phase's repetitions in the report",
            ));
        }
    };
    run.stream.publish(Event::RepetitionStarted { repetition: id.clone(), hash, levels: levels.clone() })?;
    let facts = match &phase.procedure {
        Procedure::Load(load) => measure_load(run, id, &phase, load, levels).await,
        Procedure::Pgbench(pgbench) => measure_pgbench(run, id, pgbench, levels).await,
        Procedure::Start(start) => super::start::measure(run, id, start, levels).await,
    };
    // The clone goes whatever happened; what can't be dropped now goes with the server.
    run.drop_clone().await;
    facts
}

pub(super) fn stage(run: &mut Run, id: &RepetitionId, stage: Stage, expected: Duration) -> Result<(), StepError> {
    run.stream.publish(Event::RepetitionStage { repetition: id.clone(), stage, expected_ns: nanos(expected) })
}

async fn measure_load(
    run: &mut Run,
    id: &RepetitionId,
    phase: &Phase,
    load: &LoadProcedure,
    levels: BTreeMap<String, String>,
) -> Result<RepetitionFacts, StepError> {
    let stop = run.stop.clone();
    let mut facts = RepetitionFacts { levels: levels.clone(), ..RepetitionFacts::default() };
    stop.guard(generator::prepare_images(run.generators(), &run.plan.machine.generators)).await?;
    if phase.gates.iter().any(|gate| matches!(gate, Gate::GeneratorProbe { .. })) {
        stage(run, id, Stage::Probing, super::probe::expected(load))?;
        let judgement = run.judgement();
        match judge::probe_target(&run.plan, &id.phase, id.cell, &judgement) {
            Ok(target) => facts.probe = Some(super::probe::drive(run, load, &levels, target).await?),
            Err(why) => facts.findings.push(journal::Finding { what: "generator probe".to_owned(), why }),
        }
    }
    stage(run, id, Stage::PreparingDatabase, Duration::from_secs(3))?;
    let database = run.fresh_clone(&id.to_string(), &mut facts.findings).await?;
    let table = creates_in(&run.plan, load);
    let before = match (&database, &table) {
        (Some(name), Some(table)) => Some(stop.guard(run.database()?.server.count(name, table)).await?),
        _ => None,
    };
    stage(run, id, Stage::Starting, Duration::from_secs(1))?;
    let mut candidate = serve::candidate(run, &levels, database.as_deref()).await?;
    facts.findings.extend(candidate.notes());
    let measured = measure_window(run, id, load, &levels, database.as_deref(), &mut candidate, &mut facts).await;
    stage(run, id, Stage::Checking, Duration::from_secs(1))?;
    let measured = match measured {
        // A candidate that died explains what the generator met.
        Err(error) => Err(candidate.explain(error)),
        // A generator whose candidate has died still gives its account: every request refused.
        Ok(()) => candidate.death("it had ended before it was stopped").map_or(Ok(()), Err),
    };
    candidate.stop().await;
    measured?;
    if let (Some(name), Some(table), Some(before)) = (&database, table, before) {
        let after = stop.guard(run.database()?.server.count(name, &table)).await?;
        facts.rows = Some(RowFacts { table, before, after });
    }
    Ok(facts)
}

/// Warm-up and window, with the sampler beside them and nothing else.
async fn measure_window(
    run: &mut Run,
    id: &RepetitionId,
    load: &LoadProcedure,
    levels: &BTreeMap<String, String>,
    database: Option<&str>,
    candidate: &mut serve::Served,
    facts: &mut RepetitionFacts,
) -> Result<(), StepError> {
    let stop = run.stop.clone();
    let job = serve::job(run, load, levels, candidate)?;
    if let Some(installed) = run.tool(load)? {
        return measure_by_tool(run, id, load, &installed, &job, database, candidate, facts).await;
    }
    let mut generators = stop.guard(Generators::start(run.generators(), &run.plan.machine.generators, job)).await?;
    let at_start = match database {
        Some(name) => Some(stop.guard(run.database()?.server.reading(name)).await?),
        None => None,
    };
    let warm_up = Duration::from_nanos(load.warm_up_ns);
    let window = Duration::from_nanos(load.window_ns);
    stage(run, id, Stage::WarmingUp, LEAD + warm_up)?;
    let begin_ns = clock::monotonic_ns() + nanos(LEAD);
    let window_start = begin_ns + load.warm_up_ns;
    let mut sampler = Sampler::start(candidate_spec(run, candidate));
    sampler.window(window_start, window_start + load.window_ns);
    generators.begin(begin_ns, 0)?;
    stop.guard(async {
        tokio::time::sleep(LEAD + warm_up).await;
        Ok(())
    })
    .await?;
    stage(run, id, Stage::Measuring, window)?;
    let account = stop.guard(generators.finish(&|_, _| {})).await?;
    // The window lies behind: this only joins the sampler's threads.
    sampler.finish().fill(facts);
    facts.window.declared_ns = load.window_ns;
    facts.load = Some(account);
    if let (Some(name), Some(at_start)) = (database, at_start) {
        let at_end = stop.guard(run.database()?.server.reading(name)).await?;
        enter(&at_start, &at_end, facts);
    }
    Ok(())
}

/// As [`measure_window`], by another tool. It takes no order to begin at an instant: the counters' window begins when it is
/// started, and what it counted is weighed by the time that it says it measured.
#[expect(clippy::too_many_arguments, reason = "all of a repetition's parts, once")]
async fn measure_by_tool(
    run: &mut Run,
    id: &RepetitionId,
    load: &LoadProcedure,
    installed: &Installed,
    job: &load::wire::Job,
    database: Option<&str>,
    candidate: &mut serve::Served,
    facts: &mut RepetitionFacts,
) -> Result<(), StepError> {
    let stop = run.stop.clone();
    let (window, name) = (Duration::from_nanos(load.window_ns), run.run.clone());
    let mut tool = ToolLoad::new(installed, &name, job, &run.scratch)?;
    let at_start = match database {
        Some(name) => Some(stop.guard(run.database()?.server.reading(name)).await?),
        None => None,
    };
    stage(run, id, Stage::WarmingUp, Duration::from_nanos(load.warm_up_ns))?;
    stop.guard(tool.warm_up()).await?;
    stage(run, id, Stage::Measuring, window)?;
    let mut sampler = Sampler::start(candidate_spec(run, candidate));
    let begin_ns = clock::monotonic_ns() + nanos(TOOL_LEAD);
    sampler.window(begin_ns, begin_ns + load.window_ns);
    let account = stop
        .guard(async {
            tokio::time::sleep(TOOL_LEAD).await;
            tool.measure().await
        })
        .await?;
    sampler.finish().fill(facts);
    facts.window.declared_ns = load.window_ns;
    facts.load = Some(account);
    if let (Some(name), Some(at_start)) = (database, at_start) {
        let at_end = stop.guard(run.database()?.server.reading(name)).await?;
        enter(&at_start, &at_end, facts);
    }
    Ok(())
}

/// What is sampled beside a candidate's window.
fn candidate_spec(run: &Run, candidate: &serve::Served) -> SampleSpec {
    SampleSpec {
        candidate: candidate.counters.clone(),
        candidate_cpus: candidate.cpus.clone(),
        pace_cpus: candidate.cpus.clone(),
        ..sample_spec(run)
    }
}

async fn measure_pgbench(
    run: &mut Run,
    id: &RepetitionId,
    pgbench: &PgbenchProcedure,
    levels: BTreeMap<String, String>,
) -> Result<RepetitionFacts, StepError> {
    let stop = run.stop.clone();
    let mut facts = RepetitionFacts { levels, ..RepetitionFacts::default() };
    stage(run, id, Stage::PreparingDatabase, Duration::from_secs(3))?;
    let database = run.fresh_clone(&id.to_string(), &mut facts.findings).await?.ok_or_else(|| {
        StepError::step("pgbench needs a database, and the study has none", "", "add a `database` to the study")
    })?;
    let window = Duration::from_nanos(pgbench.window_ns);
    stage(run, id, Stage::Measuring, window)?;
    let at_start = stop.guard(run.database()?.server.reading(&database)).await?;
    let begin_ns = clock::monotonic_ns() + nanos(LEAD);
    let mut sampler =
        Sampler::start(SampleSpec { pace_cpus: run.plan.machine.cpus(Role::Database).clone(), ..sample_spec(run) });
    // pgbench connects first, so its own window begins a little later than this one.
    sampler.window(begin_ns, begin_ns + pgbench.window_ns);
    let account = stop.guard(super::database::pgbench(run, pgbench, &database)).await?;
    sampler.finish().fill(&mut facts);
    facts.window.declared_ns = pgbench.window_ns;
    facts.pgbench = Some(account);
    let at_end = stop.guard(run.database()?.server.reading(&database)).await?;
    enter(&at_start, &at_end, &mut facts);
    Ok(facts)
}

/// What every sampler of this run looks at.
pub(super) fn sample_spec(run: &Run) -> SampleSpec {
    SampleSpec {
        database: run.database.as_ref().and_then(|database| database.counters.clone()),
        database_cpus: run.plan.machine.cpus(Role::Database).clone(),
        own_cpus: run.plan.machine.cpus(Role::Load).clone(),
        ..SampleSpec::of_machine(run.plan.machine.all())
    }
}

/// What PostgreSQL did between two readings; where they don't fit, that is a finding.
fn enter(start: &crate::postgres::Reading, end: &crate::postgres::Reading, facts: &mut RepetitionFacts) {
    match start.until(end) {
        Ok(did) => facts.postgres = Some(did),
        Err(why) => facts.findings.push(journal::Finding { what: "database counters".to_owned(), why }),
    }
}

/// The table whose rows the workload's acknowledged answers add to.
fn creates_in(plan: &Plan, load: &LoadProcedure) -> Option<String> {
    let workload = plan.workload(&load.workload)?;
    workload.streams.iter().find_map(|stream| stream.creates_row_in.clone())
}

/// Time after the window in which answers may still arrive, ns.
pub(crate) fn grace_ns(load: &LoadProcedure) -> u64 {
    nanos(GRACE).min(load.timeout_ns)
}
