//! The generators as processes of their own, one or several: started in their places, told to begin at one instant, asked for
//! their accounts, which become one.

mod clock;
mod link;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use journal::facts::PartFacts;
use journal::{LoadFacts, RunId};
use load::wire::{Answer, Hello, Interval, Job, Order, PROTOCOL, Part};
use plan::{GeneratorOn, GeneratorPlace};
use tokio::sync::mpsc;

use self::clock::Offset;
use self::link::{Link, Silence};
use crate::backend::blocking;
use crate::docker::Docker;
use crate::error::StepError;

/// How long a generator may take to answer a question that it knows the answer of.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How long a generator may take to open its connections.
const CONNECT_WITHIN: Duration = Duration::from_secs(15);
/// How much longer than its own schedule a generator may take to answer.
const SLACK: Duration = Duration::from_secs(10);

/// Where generators are started from.
#[derive(Clone, Copy)]
pub struct Start<'a> {
    /// The `exp` binary.
    pub exp: &'a Path,
    /// The run that they belong to.
    pub run: &'a RunId,
    /// A directory for files of this run.
    pub scratch: &'a Path,
    /// The engine that the run uses; `None`: the one that `DOCKER_HOST` names, or else this machine's.
    pub docker: Option<&'a Docker>,
}

/// Generators that have their parts of one job, and their connections.
pub struct Generators {
    each: Vec<Generator>,
    /// The whole job.
    job: Job,
}

struct Generator {
    link: Link,
    /// In words: `the generator`, or `generator 2 of 2 (container, CPUs 3)`.
    name: String,
    place: GeneratorPlace,
    hello: Hello,
    offset: Offset,
    job: Job,
}

/// Ends the window of running generators early.
#[derive(Clone)]
pub struct Cutter(Vec<(mpsc::UnboundedSender<Vec<u8>>, Offset)>);

impl Cutter {
    /// Ends the window of all of them at an instant of CLOCK_MONOTONIC, at least [`load::CUT_NOTICE_NS`] ahead.
    pub fn cut(&self, at_ns: u64) {
        for (orders, offset) in &self.0 {
            if let Ok(line) = link::line(&Order::Cut { at_ns: offset.theirs(at_ns) }) {
                // One that has ended has nothing to cut.
                let _ended = orders.send(line);
            }
        }
    }
}

/// Makes sure that each engine that a generator is to run on has its image: before anything is measured, since it may take a while.
///
/// # Errors
/// When an engine doesn't answer, or an image can't be built.
pub async fn prepare_images(start: Start<'_>, places: &[GeneratorPlace]) -> Result<(), StepError> {
    for place in places {
        if let Some(docker) = engine_of(start, &place.on).await? {
            image(&docker, start).await?;
        }
    }
    Ok(())
}

async fn engine_of(start: Start<'_>, on: &GeneratorOn) -> Result<Option<Docker>, StepError> {
    match (on, start.docker) {
        (GeneratorOn::Process, _) => Ok(None),
        (GeneratorOn::Container, Some(docker)) => Ok(Some(docker.clone())),
        (GeneratorOn::Container, None) => blocking(Docker::connect).await.map(Some),
        (GeneratorOn::Engine { address, .. }, _) => {
            let address = address.clone();
            blocking(move || Docker::connect_to(&address)).await.map(Some)
        }
    }
}

async fn image(docker: &Docker, start: Start<'_>) -> Result<String, StepError> {
    let (docker, exp, scratch) = (docker.clone(), start.exp.to_owned(), start.scratch.to_owned());
    blocking(move || docker.generator_image(&exp, &scratch)).await
}

/// The parts of a job for generators in these places: each has as many threads as it has CPUs (those of the job where its CPUs are
/// not named), as far as there are connections.
fn parts(job: &Job, places: &[GeneratorPlace]) -> Vec<Job> {
    let count = u32::try_from(places.len()).unwrap_or(u32::MAX);
    let mut threads: Vec<u32> = places
        .iter()
        .map(|place| if place.cpus.is_empty() { job.threads } else { place.cpus.len() as u32 }.max(1))
        .collect();
    if threads.iter().sum::<u32>() > job.connections {
        threads.fill((job.connections / count.max(1)).max(1));
    }
    let of = threads.iter().sum();
    let mut first = 0;
    places
        .iter()
        .zip(threads)
        .map(|(place, threads)| {
            let mut part = Job {
                threads,
                cpus: place.cpus.clone(),
                part: (places.len() > 1).then_some(Part { first, of }),
                ..job.clone()
            };
            if let GeneratorOn::Engine { target: Some(target), .. } = place.on {
                part.target = SocketAddr::new(target, job.target.port());
            }
            first += threads;
            part
        })
        .collect()
}

impl Generators {
    /// Starts generators in these places (none: one process on the job's CPUs), gives each its part of the job, and waits
    /// until all connections stand.
    ///
    /// # Errors
    /// When one can't be started, speaks another version, can't connect, or dies: its name is in the sentence.
    pub async fn start(start: Start<'_>, places: &[GeneratorPlace], job: Job) -> Result<Self, StepError> {
        let own = [GeneratorPlace { on: GeneratorOn::Process, cpus: job.cpus.clone() }];
        // A single place keeps the threads that the job has.
        let (places, parts) =
            if places.is_empty() { (&own[..], vec![job.clone()]) } else { (places, parts(&job, places)) };
        let mut each = Vec::new();
        for (index, (place, part)) in places.iter().zip(parts).enumerate() {
            each.push(Generator::start(start, place, part, index + 1, places.len()).await?);
        }
        for generator in &mut each {
            let job = generator.job.clone();
            generator.send(&Order::Job(Box::new(job)))?;
        }
        for generator in &mut each {
            match generator.answer(CONNECT_WITHIN, "open its connections").await? {
                Answer::Ready { .. } => {}
                Answer::Failed { why } => return Err(generator.failed(&why)),
                other => return Err(generator.failed(&format!("it answers {other:?} to its job"))),
            }
        }
        Ok(Self { each, job })
    }

    /// Begins at an instant of CLOCK_MONOTONIC, each generator told in its own clock. Where `every_ns` is above 0 each tells what it
    /// recorded each time that this much of the window has passed.
    ///
    /// # Errors
    /// When an order can't be written.
    pub fn begin(&mut self, at_ns: u64, every_ns: u64) -> Result<(), StepError> {
        for generator in &mut self.each {
            let at_ns = generator.offset.theirs(at_ns);
            generator.send(&Order::Start { at_ns, every_ns })?;
        }
        Ok(())
    }

    /// Ends the window early, from beside [`Generators::finish`].
    pub fn cutter(&self) -> Cutter {
        Cutter(self.each.iter().filter_map(|generator| Some((generator.link.orders()?, generator.offset))).collect())
    }

    /// Waits for the accounts of generators that have begun, and makes one of them. `hear` gets the intervals, each with the
    /// number of its generator from 0.
    ///
    /// # Errors
    /// When one fails, dies, or takes longer than its schedule allows: then the others are ended at once, and there is no account.
    pub async fn finish(self, hear: &(dyn Fn(usize, Interval) + Sync)) -> Result<LoadFacts, StepError> {
        let Self { each, job } = self;
        let accounts = each.into_iter().enumerate().map(|(index, generator)| generator.finish(index, hear));
        // The first failure drops the others, which ends their processes and containers.
        let mut accounts = futures_util::future::try_join_all(accounts).await?;
        if let [(part, _)] = accounts.as_slice()
            && part.place == GeneratorOn::Process.to_string()
            && let Some((_, facts)) = accounts.pop()
        {
            return Ok(facts);
        }
        load::merge(accounts, job.rate).map_err(|why| {
            StepError::step("the generators' accounts can't be made one", why, "use the same exp for all of them")
        })
    }
}

impl Generator {
    async fn start(
        start: Start<'_>,
        place: &GeneratorPlace,
        job: Job,
        number: usize,
        of: usize,
    ) -> Result<Self, StepError> {
        let cpus = if place.cpus.is_empty() { String::new() } else { format!(", CPUs {}", place.cpus) };
        let name = match (of, &place.on) {
            (1, GeneratorOn::Process) => "the generator".to_owned(),
            (1, on) => format!("the generator ({on}{cpus})"),
            (_, on) => format!("generator {number} of {of} ({on}{cpus})"),
        };
        let link = match engine_of(start, &place.on).await? {
            None => Link::process(start.exp, start.run, &place.cpus).map_err(|error| {
                StepError::environment(
                    format!("{name} `{} load --control` can't be started: {error}", start.exp.display()),
                    "a generator is a process of `exp` itself",
                    "check that the binary still exists and may be executed, and that its CPUs exist",
                )
            })?,
            Some(docker) => {
                let image = image(&docker, start).await?;
                Link::container(&docker, &image, start.run, &format!("generator-{number}"), &place.cpus).await.map_err(
                    |mut error| {
                        error.failure.what = format!("{name} can't be started: {}", error.failure.what);
                        error
                    },
                )?
            }
        };
        let mut generator =
            Self { link, name, place: place.clone(), hello: Hello::default(), offset: Offset::default(), job };
        generator.send(&Order::Hello { protocol: PROTOCOL })?;
        match generator.answer(ANSWER_WITHIN, "say who it is").await? {
            Answer::Hello(hello) => generator.hello = hello,
            Answer::Failed { why } => return Err(generator.failed(&why)),
            other => return Err(generator.failed(&format!("it answers {other:?} to a greeting"))),
        }
        if !clock::is_ours(&generator.hello.clock) {
            generator.offset = generator.measure_offset().await?;
        }
        Ok(generator)
    }

    /// How far its clock is from ours, by the quickest of some questions.
    async fn measure_offset(&mut self) -> Result<Offset, StepError> {
        let mut best: Option<Offset> = None;
        for _ in 0..clock::ROUNDS {
            let asked = load::sys::now_ns();
            self.send(&Order::Clocks)?;
            let Answer::Clocks(clocks) = self.answer(ANSWER_WITHIN, "tell its clocks").await? else {
                return Err(self.failed("it answers something else than its clocks"));
            };
            let offset = Offset::of(asked, clocks.monotonic_ns, load::sys::now_ns());
            if best.is_none_or(|best| offset.uncertainty_ns < best.uncertainty_ns) {
                best = Some(offset);
            }
        }
        Ok(best.unwrap_or_default())
    }

    async fn finish(
        mut self,
        index: usize,
        hear: &(dyn Fn(usize, Interval) + Sync),
    ) -> Result<(PartFacts, LoadFacts), StepError> {
        let job = &self.job;
        let scheduled = Duration::from_nanos(job.warm_up_ns + job.window_ns + job.timeout_ns + job.grace_ns) + SLACK;
        let until = std::time::Instant::now() + scheduled;
        loop {
            let left = until.saturating_duration_since(std::time::Instant::now());
            match self.answer(left, "give its account").await? {
                Answer::Interval(interval) => hear(index, *interval),
                Answer::Failed { why } => return Err(self.failed(&why)),
                Answer::Finished { facts } => {
                    let part = PartFacts {
                        place: self.place.on.to_string(),
                        host: self.hello.host.clone(),
                        cpus: self.hello.cpus.to_string(),
                        clock_offset_ns: self.offset.ns,
                        clock_uncertainty_ns: self.offset.uncertainty_ns,
                        ..PartFacts::default()
                    };
                    return match self.link.close().await {
                        Ok(()) => Ok((part, *facts)),
                        Err(how) => Err(StepError::step(
                            format!("{} gave its account and then ended with {how}", self.name),
                            "an account of a generator that crashed is not used",
                            "run the same command again",
                        )),
                    };
                }
                other => return Err(self.failed(&format!("it answers {other:?} to its start"))),
            }
        }
    }

    fn failed(&self, why: &str) -> StepError {
        StepError::step(
            format!("{} failed: {why}", self.name),
            format!("it was to send load to {} over {} connections", self.job.target, self.job.connections),
            "run the same command again; `exp load` with the same URL shows the failure alone",
        )
    }

    fn send(&self, order: &Order) -> Result<(), StepError> {
        self.link
            .send(order)
            .map_err(|error| StepError::step(format!("an order can't be written as JSON: {error}"), "", "report this"))
    }

    async fn answer(&mut self, within: Duration, what: &str) -> Result<Answer, StepError> {
        match self.link.answer(within).await {
            Ok(answer) => Ok(answer),
            Err(Silence::Late) => Err(StepError::step(
                format!("{} did not {what} within {:.0} s", self.name, within.as_secs_f64()),
                "its CPU may be taken by something else, or the target accepts no connections",
                "run the same command again on a quieter host",
            )),
            Err(Silence::Nonsense(why, line)) => Err(StepError::step(
                format!("the answer of {} can't be read: {why}", self.name),
                line.chars().take(500).collect::<String>(),
                "report this",
            )),
            Err(Silence::Died(how)) => Err(StepError::step(
                format!("{} died: it ended without a word, {how}", self.name),
                "a repetition without a generator's account is void, never a zero",
                "run the same command again; if it dies again, report it with the log",
            )
            .with_log(self.link.complaints())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use plan::{CpuSet, Workload};

    use super::*;

    fn job(connections: u32) -> Job {
        Job {
            target: SocketAddr::from(([127, 0, 0, 1], 8080)),
            host: "127.0.0.1:8080".into(),
            workload: Workload { name: "w".into(), streams: Vec::new() },
            tokens: BTreeMap::new(),
            variables: BTreeMap::new(),
            connections,
            keep_alive: true,
            rate: None,
            course: Vec::new(),
            arrivals: load::Arrivals::Constant,
            warm_up_ns: 0,
            window_ns: 1,
            timeout_ns: 1,
            grace_ns: 0,
            threads: 1,
            cpus: CpuSet::default(),
            seed: 1,
            kernel_time: false,
            part: None,
            requests: None,
            transport: load::wire::Transport::default(),
            engine: load::Engine::default(),
        }
    }

    fn place(on: GeneratorOn, cpus: &[u32]) -> GeneratorPlace {
        GeneratorPlace { on, cpus: CpuSet::new(cpus.iter().copied()) }
    }

    #[test]
    fn a_job_is_shared_out_by_cpus_as_far_as_there_are_connections() {
        let away =
            GeneratorOn::Engine { address: "tcp://198.18.0.7:2375".into(), target: Some([198, 18, 0, 2].into()) };
        let places = [place(GeneratorOn::Process, &[2, 3]), place(GeneratorOn::Container, &[]), place(away, &[0])];
        let shared = |connections| {
            parts(&job(connections), &places)
                .into_iter()
                .map(|part| {
                    let Part { first, of } = part.part.expect("one of several");
                    (first, part.threads, of, part.target.to_string())
                })
                .collect::<Vec<_>>()
        };
        let (here, there) = ("127.0.0.1:8080".to_owned(), "198.18.0.2:8080".to_owned());
        assert_eq!(shared(64), [(0, 2, 4, here.clone()), (2, 1, 4, here.clone()), (3, 1, 4, there.clone())]);
        assert_eq!(shared(3), [(0, 1, 3, here.clone()), (1, 1, 3, here), (2, 1, 3, there)]);
        assert_eq!(parts(&job(64), &places[..1])[0].part, None);
    }
}
