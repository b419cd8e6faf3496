//! The generator probe: a server without application code on the candidate's CPUs, driven open-loop.

use std::collections::BTreeMap;
use std::time::Duration;

use journal::ProbeFacts;
use plan::{Expect, LoadProcedure};

use crate::error::StepError;
use crate::generator::Generators;
use crate::run::{Run, nanos};
use crate::sample::clock;
use crate::step::serve;
use crate::tool::ToolLoad;

/// Load before the probe's window.
const WARM_UP: Duration = Duration::from_millis(500);
/// Shortest and longest window of a probe.
const WINDOW: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(10));
/// Time between telling the generator when to begin and that instant.
const LEAD: Duration = Duration::from_millis(100);

fn window(load: &LoadProcedure) -> Duration {
    Duration::from_nanos(load.window_ns / 2).clamp(WINDOW.0, WINDOW.1)
}

/// How long a probe takes, about.
pub(crate) fn expected(load: &LoadProcedure) -> Duration {
    window(load) + WARM_UP + Duration::from_secs(1)
}

/// Drives the probe at `target` requests per second with the phase's own requests; any 200 counts.
pub(crate) async fn drive(
    run: &mut Run,
    load: &LoadProcedure,
    levels: &BTreeMap<String, String>,
    target: f64,
) -> Result<ProbeFacts, StepError> {
    let stop = run.stop.clone();
    let mut served = serve::probe(run, levels).await?;
    let mut job = serve::job(run, load, levels, &served)?;
    for stream in &mut job.workload.streams {
        stream.expect = Expect { status: vec![200], ..Expect::default() };
        stream.creates_row_in = None;
        // The probe has one rate, `target`, in which the streams have their shares.
        stream.rate = None;
    }
    job.rate = Some(target);
    job.course = Vec::new();
    job.warm_up_ns = nanos(WARM_UP);
    job.window_ns = nanos(window(load));
    let tool = run.tool(load)?;
    if let Some(installed) = &tool
        && !installed.tool.sends(true)
    {
        // It goes as fast as it can, which shows what it can.
        job.rate = None;
    }
    let (name, scratch) = (run.run.clone(), run.scratch.clone());
    let driven = async {
        if let Some(installed) = &tool {
            let mut load = ToolLoad::new(installed, &name, &job, &scratch)?;
            load.warm_up().await?;
            return load.measure().await;
        }
        let mut generators = Generators::start(run.generators(), &run.plan.machine.generators, job.clone()).await?;
        generators.begin(clock::monotonic_ns() + nanos(LEAD), 0)?;
        generators.finish(&|_, _| {}).await
    };
    let outcome = stop.guard(driven).await.map_err(|error| served.explain(error));
    served.stop().await;
    let facts = outcome?;
    let sum =
        |count: fn(&journal::Census) -> u64| facts.streams.iter().map(|stream| count(&stream.census)).sum::<u64>();
    let ok = sum(|census| census.ok);
    let window_ns = facts.tool.as_ref().map_or(job.window_ns, |tool| tool.measured_ns);
    Ok(ProbeFacts {
        target,
        achieved: ok as f64 / (window_ns as f64 / 1e9),
        errors: sum(|census| census.failed + census.timed_out + census.unanswered + census.unsent),
        window_ns,
    })
}
