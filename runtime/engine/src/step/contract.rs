//! Checks the contract of one candidate: every case once, against a fresh clone, before anything is measured.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use journal::{CaseOutcome, Event, StepEnd};
use plan::{ContractCase, Level, Plan, Procedure, Tls};

use crate::error::StepError;
use crate::run::Run;
use crate::step::serve;

/// How long one case may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Verifies a candidate. Fails with class step when a case is not as the contract says, or the candidate can't start.
pub(crate) async fn verify(run: &mut Run, candidate: &str) -> Result<StepEnd, StepError> {
    let result = verify_on_clone(run, candidate).await;
    run.drop_clone().await;
    result
}

async fn verify_on_clone(run: &mut Run, candidate: &str) -> Result<StepEnd, StepError> {
    let stop = run.stop.clone();
    let levels = first_levels(&run.plan, candidate);
    let database = run.fresh_clone(&format!("contract-{candidate}"), &mut Vec::new()).await?;
    let cases = run.plan.contract.clone();
    let mut tables: BTreeMap<String, u64> = BTreeMap::new();
    for table in cases.iter().filter_map(|case| case.creates_row_in.clone()) {
        if let Some(name) = &database {
            let rows = stop.guard(run.database()?.server.count(name, &table)).await?;
            tables.insert(table, rows);
        }
    }
    let mut served = serve::candidate(run, &levels, database.as_deref()).await?;
    let mut outcomes = Vec::new();
    let values = run.variables(&levels, database.as_deref());
    for case in &cases {
        let asked = stop.guard(ask(run, case, served.port, served.tls.clone(), values.clone())).await;
        match asked {
            Ok(problem) => outcomes.push(CaseOutcome { case: case.name.clone(), problem }),
            Err(error) => {
                let error = served.explain(error);
                served.stop().await;
                return Err(error);
            }
        }
    }
    let log = served.logs();
    served.stop().await;
    for (table, before) in &tables {
        let Some(name) = &database else { continue };
        let after = stop.guard(run.database()?.server.count(name, table)).await?;
        let created = cases.iter().filter(|case| case.creates_row_in.as_ref() == Some(table)).count() as u64;
        let problem = (after != before + created).then(|| {
            format!("expected {} rows in {table} ({before} and {created} created), found {after}", before + created)
        });
        outcomes.push(CaseOutcome { case: format!("rows of {table} afterwards"), problem });
    }
    let total = outcomes.len();
    let failed: Vec<String> = outcomes
        .iter()
        .filter_map(|outcome| Some(format!("{}: {}", outcome.case, outcome.problem.as_ref()?)))
        .collect();
    run.stream.publish(Event::ContractChecked { candidate: candidate.to_owned(), cases: outcomes })?;
    if failed.is_empty() {
        return Ok(StepEnd::Done { detail: format!("{total}/{total}") });
    }
    Err(StepError::step(
        format!("{candidate} failed its contract in {} of {total} cases: {}", failed.len(), failed.join("; ")),
        "candidates that answer differently do different work, so nothing of this one is measured",
        format!("mend {candidate} (or the contract), then run the same command"),
    )
    .with_log(log))
}

async fn ask(
    run: &Run,
    case: &ContractCase,
    port: u16,
    tls: Option<Tls>,
    values: BTreeMap<String, String>,
) -> Result<Option<String>, StepError> {
    let target = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let tokens = run.minted.tokens().clone();
    let case = case.clone();
    let asked = tokio::task::spawn_blocking(move || {
        let host = format!("127.0.0.1:{port}");
        match load::single_shot(target, &host, &case.request, &tokens, &values, ANSWER_WITHIN, tls.as_ref()) {
            Ok(response) => load::check(&case.expect, &response, &values),
            Err(error) => Some(format!("no answer: {error}")),
        }
    });
    asked.await.map_err(|error| {
        StepError::step(format!("a case of the contract could not be asked: {error}"), "", "report this")
    })
}

/// Levels for a candidate outside any cell: the first of every factor that its phases have.
pub(crate) fn first_levels(plan: &Plan, candidate: &str) -> BTreeMap<String, String> {
    let mut levels = BTreeMap::from([("candidate".to_owned(), candidate.to_owned())]);
    for phase in plan.phases.iter().filter(|phase| matches!(phase.procedure, Procedure::Load(_))) {
        for axis in &phase.axes {
            if let Some(level @ (Level::Integer(_) | Level::Word(_))) = axis.levels.first() {
                levels.entry(axis.factor.clone()).or_insert_with(|| level.to_string());
            }
        }
    }
    levels.entry("cores".to_owned()).or_insert_with(|| plan.machine.candidate.len().to_string());
    levels
}
