//! A job made ready to run: everything looked up, laid out and checked, shared by all threads.

use std::net::SocketAddr;

use plan::{Leg, Text};

use crate::check::Checks;
use crate::error::LoadError;
use crate::http::Asked;
use crate::own::SAMPLE;
use crate::parameter::Parameters;
use crate::request::{Names, Template};
use crate::schedule::{Pace, Schedule, Slots, Turns};
use crate::wire::{Engine, Job, Part};

/// A job made ready.
pub struct Program {
    /// Where requests go.
    pub target: SocketAddr,
    /// The streams.
    pub lanes: Box<[Lane]>,
    /// Whose turn it is.
    pub turns: Turns,
    /// The open loop's rate, per second: its mean over the window where it is not constant.
    pub rate: Option<f64>,
    /// When the open loop's requests are due.
    pub schedule: Option<Schedule>,
    /// Load before the window, ns.
    pub warm_up: u64,
    /// The window, ns.
    pub window: u64,
    /// Time-out of a request, ns.
    pub timeout: u64,
    /// Time after the window, ns.
    pub grace: u64,
    /// Threads that generate, of all generators together.
    pub threads: u32,
    /// Of them, those of this generator.
    pub own: std::ops::Range<u32>,
    /// Connections of all threads.
    pub connections: u32,
    /// Whether connections are kept; otherwise each request has one of its own.
    pub keep_alive: bool,
    /// Closed loop: requests after which it ends, of all threads.
    pub requests: Option<u64>,
    /// Of so many connections of a thread one has the arrival of its answers noted by the kernel.
    pub timed_every: u32,
    /// What sends plain HTTP/1.1.
    pub engine: Engine,
}

/// A stream made ready.
pub struct Lane {
    /// Its name.
    pub name: String,
    /// Its requests.
    pub template: Template,
    /// Its parameters.
    pub parameters: Parameters,
    /// Its checks.
    pub checks: Checks,
    /// What its requests tell the reader.
    pub asked: Asked,
}

/// Longest time that a job may give for anything: a day. Sums of a few of them are far from overflowing.
const LONGEST_NS: u64 = 86_400_000_000_000;
/// Most connections: what local ports allow towards one target.
const MOST_CONNECTIONS: u32 = 64_000;
impl Program {
    /// Makes a job ready.
    ///
    /// # Errors
    /// When the job contradicts itself or can't be sent.
    pub fn new(job: &Job) -> Result<Self, LoadError> {
        let within = |what: &str, value: u64, least: u64| {
            if (least..=LONGEST_NS).contains(&value) {
                Ok(value)
            } else {
                Err(LoadError::job(format!("the {what} is {value} ns"), format!("give one from {least} ns to a day")))
            }
        };
        if job.connections == 0 || job.connections > MOST_CONNECTIONS {
            return Err(LoadError::job(
                format!("{} connections were asked for", job.connections),
                format!("ask for 1 to {MOST_CONNECTIONS}"),
            ));
        }
        if !job.keep_alive && !job.transport.is_plain() {
            return Err(LoadError::job(
                "a connection for each request was asked for together with TLS, HTTP/2 or a proxy",
                "keep connections alive, or send plain HTTP/1.1 straight to the target",
            ));
        }
        if job.engine == Engine::Uring {
            suits_uring(job)?;
        }
        let streams = &job.workload.streams;
        if streams.is_empty() || streams.len() > usize::from(u16::MAX) {
            return Err(LoadError::job(
                format!("the workload `{}` has {} streams", job.workload.name, streams.len()),
                "give it at least one",
            ));
        }
        if let Some(stream) = streams.iter().find(|stream| !(stream.share >= 0.0 && stream.share <= 1.0)) {
            return Err(LoadError::job(
                format!("the stream `{}` has a share of {}", stream.name, stream.share),
                "give it one from 0 to 1",
            ));
        }
        if streams.iter().map(|stream| stream.share).sum::<f64>() <= 0.0 {
            return Err(LoadError::job("no stream has a share above 0", "make the shares add up to 100 %"));
        }
        let lanes = streams.iter().enumerate().map(|(index, stream)| {
            let parameters = Parameters::new(&stream.parameters, job.seed, index)?;
            let names: Vec<String> = stream.parameters.iter().map(|parameter| parameter.name.clone()).collect();
            let names = Names { variables: &job.variables, parameters: &names };
            let mut request = std::borrow::Cow::Borrowed(&stream.request);
            if !job.keep_alive && !request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("connection")) {
                request.to_mut().headers.push(("Connection".to_owned(), Text::literal("close")));
            }
            let template = Template::new(&request, &job.host, &job.tokens, names, &parameters)?;
            let checks = Checks::new(&stream.expect, stream.request.accept_gzip, names)?;
            let asked = Asked { is_head: template.is_head(), keep_body: checks.read_body() };
            Ok(Lane { name: stream.name.clone(), template, parameters, checks, asked })
        });
        if job.requests.is_some() && (job.rate.is_some() || job.warm_up_ns > 0) {
            return Err(LoadError::job(
                "a number of requests was asked for together with a rate or a warm-up",
                "give a closed loop without warm-up, or the time that the requests take at the rate",
            ));
        }
        let own_threads = job.threads.clamp(1, job.connections);
        let part = job.part.unwrap_or(Part { first: 0, of: own_threads });
        let own = part.first..part.first.saturating_add(own_threads);
        if own.end > part.of || part.of > job.connections {
            return Err(LoadError::job(
                format!(
                    "threads {} to {} of {} were asked for, over {} connections",
                    own.start,
                    own.end - 1,
                    part.of,
                    job.connections
                ),
                "give each generator threads of its own, and at least one connection to each thread",
            ));
        }
        let turns = Turns::new(streams, job.seed);
        let (warm_up, window) = (within("warm-up", job.warm_up_ns, 0)?, within("window", job.window_ns, 1)?);
        Ok(Self {
            target: job.target,
            lanes: lanes.collect::<Result<_, LoadError>>()?,
            schedule: schedule(job, &turns, part.of)?,
            turns,
            rate: job.rate,
            warm_up,
            window,
            timeout: within("time-out", job.timeout_ns, 1)?,
            grace: within("grace time", job.grace_ns, 0)?,
            threads: part.of,
            own,
            connections: job.connections,
            keep_alive: job.keep_alive,
            requests: job.requests,
            timed_every: if job.kernel_time { 1 } else { SAMPLE },
            engine: job.engine,
        })
    }

    /// The slots of a thread, for an open loop.
    pub fn slots(&self, thread: u32) -> Option<Slots> {
        self.schedule.as_ref().map(|schedule| schedule.slots(thread))
    }

    /// Connections of this generator's threads.
    pub fn own_connections(&self) -> u32 {
        self.own.clone().map(|thread| self.connections_of(thread)).sum()
    }

    /// Requests of a thread, where their number is given: shared out as connections are.
    pub fn requests_of(&self, thread: u32) -> Option<u64> {
        let (requests, threads) = (self.requests?, u64::from(self.threads));
        Some(requests / threads + u64::from(u64::from(thread) < requests % threads))
    }

    /// The rate that this generator's threads have of the whole.
    pub fn own_rate(&self) -> Option<f64> {
        let rate = self.rate?;
        Some(if self.own.len() as u32 == self.threads {
            rate
        } else {
            rate * self.own.len() as f64 / f64::from(self.threads)
        })
    }

    /// Connections of a thread: shared out evenly, the first threads getting the odd ones.
    pub fn connections_of(&self, thread: u32) -> u32 {
        self.connections / self.threads + u32::from(thread < self.connections % self.threads)
    }
}

/// Refuses what io_uring would not send, or would send at other instants than the books say.
fn suits_uring(job: &Job) -> Result<(), LoadError> {
    let refuse = |with: &str, why: &str| {
        Err(LoadError::job(format!("io_uring was asked for together with {with}; {why}"), "leave the engine at epoll"))
    };
    if !job.transport.is_plain() {
        return refuse("TLS, HTTP/2 or a proxy", "it carries plain HTTP/1.1 straight to the target only");
    }
    if !job.keep_alive {
        return refuse("a connection for each request", "it saves nothing where each request opens a socket");
    }
    if job.rate.is_some() {
        return refuse("a rate", "it sends in batches, and an open loop's requests have instants of their own");
    }
    Ok(())
}

/// The schedule of a job's open loop; `None` for a closed one.
fn schedule(job: &Job, turns: &Turns, threads: u32) -> Result<Option<Schedule>, LoadError> {
    let streams = &job.workload.streams;
    let own: Vec<f64> = streams.iter().filter_map(|stream| stream.rate).collect();
    if !own.is_empty() && own.len() < streams.len() {
        return Err(LoadError::job(
            format!("{} of {} streams have rates of their own", own.len(), streams.len()),
            "give every stream a rate, or none",
        ));
    }
    let Some(rate) = job.rate else {
        if !own.is_empty() || !job.course.is_empty() {
            return Err(LoadError::job(
                "a closed loop has no rate, and its streams, ramps or steps have one",
                "give the job a rate, or remove these",
            ));
        }
        return Ok(None);
    };
    if !(rate >= 1e-6 && rate.is_finite()) {
        return Err(LoadError::job(format!("the rate is {rate} requests per second"), "give a positive one"));
    }
    let agrees = |what: &str, sum: f64| {
        if (sum - rate).abs() <= 1e-6 * rate.max(1.0) {
            Ok(())
        } else {
            Err(LoadError::job(format!("the rate is {rate}/s, and {what} {sum}/s"), "make the two the same"))
        }
    };
    let span = (job.warm_up_ns, job.window_ns);
    let schedule = |pace: Pace<'_>| Schedule::new(pace, turns, job.arrivals, span, threads, job.seed).map(Some);
    if !own.is_empty() {
        if !job.course.is_empty() {
            return Err(LoadError::job(
                "the streams have rates of their own, and there are ramps or steps",
                "keep one of the two",
            ));
        }
        agrees("the streams' rates add up to", own.iter().sum())?;
        return schedule(Pace::Each(&own));
    }
    if job.course.is_empty() {
        return schedule(Pace::Together(&[Leg { from: rate, to: rate, for_ns: job.window_ns }]));
    }
    let together = job.course.iter().fold(0u64, |sum, leg| sum.saturating_add(leg.for_ns));
    if together != job.window_ns {
        return Err(LoadError::job(
            format!("the window is {} ns, and its ramps and steps take {together} ns", job.window_ns),
            "make the two the same",
        ));
    }
    agrees("the mean over its ramps and steps is", Leg::mean(&job.course))?;
    schedule(Pace::Together(&job.course))
}
