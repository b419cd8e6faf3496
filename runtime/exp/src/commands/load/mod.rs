//! `exp load`: the generator, alone or driven over standard input.

mod hdr;
mod live;
mod options;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, SystemTime};

use engine::error::StepError;
use engine::generator::{Generators, Start};
use journal::{LoadFacts, RunId};
use load::alone::{self, START_NOTICE_NS, Summary};
use load::wire::{Interval, Job};
use load::{CUT_NOTICE_NS, Course, LoadError, NO_CUT, Signals, sys};
use plan::{CpuSet, GeneratorOn};

use self::hdr::FileLog;
use self::live::Gathered;
use self::options::Asked;
use crate::args::{Load, RunFormat};
use crate::exit::Exit;
use crate::leftovers::Scratch;
use crate::terminal::{self, Colours};

/// Sends load to a URL and prints the account of it, or takes orders.
pub fn run(arguments: &Load, colours: Colours) -> Exit {
    if arguments.control {
        let code = load::control(std::io::stdin().lock(), std::io::stdout());
        return if code == 0 { Exit::Ok } else { Exit::Failed };
    }
    let asked = match options::read(arguments) {
        Ok(asked) => asked,
        Err(why) => {
            terminal::error(&why, "", "exp load --help", colours);
            return Exit::Usage;
        }
    };
    let job = match alone::job(&asked.options) {
        Ok(job) => job,
        Err(error) => return failed(&error, colours),
    };
    let interrupts = Interrupts::watch();
    match send(arguments, &asked, &job, &interrupts) {
        Ok((facts, at_ns)) => told(arguments, &asked, &Summary::of(&asked.options, &job, at_ns, facts), colours),
        Err(_) if interrupts.came() => {
            terminal::note("interrupted before there was anything to sum up");
            Exit::Interrupted
        }
        Err(Ended::Load(error)) => failed(&error, colours),
        Err(Ended::Step(error)) => {
            terminal::failure(&error.failure, colours);
            Exit::from(error.class)
        }
        Err(Ended::Log(what)) => {
            terminal::error(&what, "", "give --hdr a file that can be written", colours);
            Exit::Environment
        }
    }
}

/// Says what kept the generator from its work, and how the command ends.
fn failed(error: &LoadError, colours: Colours) -> Exit {
    let told = error.told();
    terminal::error(&told.what, &told.why, &told.next, colours);
    if error.is_unreachable() {
        Exit::Unreachable
    } else if error.is_of_the_job() {
        Exit::Usage
    } else {
        Exit::Failed
    }
}

/// Why there is no account.
enum Ended {
    Load(LoadError),
    Step(StepError),
    Log(String),
}

impl From<LoadError> for Ended {
    fn from(error: LoadError) -> Self {
        Self::Load(error)
    }
}

impl From<StepError> for Ended {
    fn from(error: StepError) -> Self {
        Self::Step(error)
    }
}

/// Ctrl-C and SIGTERM: the first ends the window, the second everything.
struct Interrupts {
    stop: Arc<AtomicBool>,
    cut_at: Arc<AtomicU64>,
}

impl Interrupts {
    fn watch() -> Self {
        let interrupts = Self { stop: Arc::default(), cut_at: Arc::new(AtomicU64::new(NO_CUT)) };
        let (stop, cut_at) = (Arc::clone(&interrupts.stop), Arc::clone(&interrupts.cut_at));
        std::thread::spawn(move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
            runtime.block_on(async {
                let kind = tokio::signal::unix::SignalKind::terminate();
                let Ok(mut terminated) = tokio::signal::unix::signal(kind) else { return };
                for further in [false, true] {
                    tokio::select! {
                        heard = tokio::signal::ctrl_c() => if heard.is_err() { return },
                        _ = terminated.recv() => {}
                    }
                    if further {
                        stop.store(true, Ordering::Relaxed);
                    } else {
                        cut_at.store(sys::now_ns() + CUT_NOTICE_NS + 50_000_000, Ordering::Relaxed);
                    }
                }
            });
        });
        interrupts
    }

    fn came(&self) -> bool {
        self.cut_at.load(Ordering::Relaxed) != NO_CUT
    }
}

/// Sends the load, in this process or by others, and gives the account and the instant at which it began.
fn send(arguments: &Load, asked: &Asked, job: &Job, interrupts: &Interrupts) -> Result<(LoadFacts, u64), Ended> {
    let terminal = console::Term::stderr();
    let is_live = terminal.is_term() && !arguments.quiet;
    let every_ns = match (is_live, &arguments.hdr) {
        (true, None) => live::PICTURE.as_nanos() as u64,
        (true, Some(_)) => asked.interval_ns.min(live::PICTURE.as_nanos() as u64),
        (false, Some(_)) => asked.interval_ns,
        (false, None) => 0,
    };
    let (tell, heard) = mpsc::channel::<(usize, Interval)>();
    let log = |at_ns: u64| -> Result<Option<(FileLog, u64)>, Ended> {
        let Some(path) = &arguments.hdr else { return Ok(None) };
        let starts = SystemTime::now() + Duration::from_nanos((at_ns + job.warm_up_ns).saturating_sub(sys::now_ns()));
        let what = format!("{} {}", asked.options.method, asked.options.url);
        let log = FileLog::create(path, starts, &what)
            .map_err(|error| Ended::Log(format!("{} can't be written: {error}", path.display())))?;
        Ok(Some((log, asked.interval_ns)))
    };
    // Shows and writes beside the load, on a thread of its own; ends when nobody tells any more.
    let watch = |at_ns: u64, generators: usize| -> Result<_, Ended> {
        let gathered = Gathered::new(generators, job, at_ns, log(at_ns)?);
        let terminal = is_live.then_some(terminal);
        Ok(std::thread::spawn(move || live::follow(gathered, &heard, terminal.as_ref()).end()))
    };
    let (facts, at_ns, watching) = if asked.places.is_empty() {
        let prepared = load::prepare(job)?;
        let at_ns = sys::now_ns() + START_NOTICE_NS;
        let watching = watch(at_ns, 1)?;
        let hear = move |interval| {
            let _unheard = tell.send((0, interval));
        };
        let facts = prepared.run_course(Course {
            at_ns,
            signals: Signals { stop: &interrupts.stop, cut_at: &interrupts.cut_at },
            intervals: (every_ns > 0).then_some((every_ns, &hear)),
        });
        drop(hear);
        (facts.map_err(Ended::from), at_ns, watching)
    } else {
        by_others(asked, job, interrupts, every_ns, tell, watch)?
    };
    let written = watching.join().unwrap_or_else(|_| Err(std::io::Error::other("its thread ended in a panic")));
    let facts = facts?;
    written.map_err(|error| Ended::Log(format!("the HDR log can't be written: {error}")))?;
    Ok((facts, at_ns))
}

type Watching = std::thread::JoinHandle<std::io::Result<()>>;

/// Sends the load by generators in their own processes and containers.
fn by_others(
    asked: &Asked,
    job: &Job,
    interrupts: &Interrupts,
    every_ns: u64,
    tell: mpsc::Sender<(usize, Interval)>,
    watch: impl FnOnce(u64, usize) -> Result<Watching, Ended>,
) -> Result<(Result<LoadFacts, Ended>, u64, Watching), Ended> {
    reach(asked, job)?;
    let environment = |what: String| {
        Ended::Step(StepError::environment(what, "generators need it", "free space, or mend its rights"))
    };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let run = RunId(format!("load-{now}-{}", std::process::id()));
    let scratch = Scratch::make(&run)
        .map_err(|error| environment(format!("the scratch directory of this load can't be made: {error}")))?;
    let exp = std::env::current_exe()
        .map_err(|error| environment(format!("the path of this program can't be read: {error}")))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| environment(format!("no thread can be started: {error}")))?;
    let start = Start { exp: &exp, run: &run, scratch: scratch.path(), docker: None };
    runtime.block_on(async {
        let starting = async {
            engine::generator::prepare_images(start, &asked.places).await?;
            Generators::start(start, &asked.places, job.clone()).await
        };
        let Some(started) = unless(starting, || interrupts.came()).await else {
            return Err(Ended::Load(LoadError::Stopped));
        };
        let mut generators = started?;
        let at_ns = sys::now_ns() + 3 * START_NOTICE_NS;
        let watching = watch(at_ns, asked.places.len())?;
        generators.begin(at_ns, every_ns)?;
        let cutter = generators.cutter();
        let hear = {
            let tell = std::sync::Mutex::new(tell);
            move |generator: usize, interval: Interval| {
                let _unheard =
                    tell.lock().unwrap_or_else(std::sync::PoisonError::into_inner).send((generator, interval));
            }
        };
        let mut is_cut = false;
        let finished = unless(generators.finish(&hear), || {
            if interrupts.came() && !is_cut {
                is_cut = true;
                cutter.cut(interrupts.cut_at.load(Ordering::Relaxed));
            }
            interrupts.stop.load(Ordering::Relaxed)
        })
        .await;
        drop(hear);
        let facts = match finished {
            Some(facts) => facts.map_err(Ended::from),
            None => Err(Ended::Load(LoadError::Stopped)),
        };
        Ok((facts, at_ns, watching))
    })
}

/// Waits for work, unless a condition comes true first, which is looked at every few milliseconds.
async fn unless<T>(work: impl Future<Output = T>, mut given_up: impl FnMut() -> bool) -> Option<T> {
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return Some(done),
            () = tokio::time::sleep(Duration::from_millis(10)) => if given_up() { return None },
        }
    }
}

/// One connection before others are asked to open theirs: its failure is told in plain words, and nothing is built in vain.
fn reach(asked: &Asked, job: &Job) -> Result<(), Ended> {
    let is_elsewhere = |on: &GeneratorOn| matches!(on, GeneratorOn::Engine { target: Some(_), .. });
    if asked.places.iter().any(|place| is_elsewhere(&place.on)) {
        return Ok(());
    }
    let one = Job { connections: 1, threads: 1, cpus: CpuSet::default(), ..job.clone() };
    load::prepare(&one).map(drop).map_err(Ended::from)
}

/// Prints the summary, and says how the command ends.
fn told(arguments: &Load, asked: &Asked, summary: &Summary, colours: Colours) -> Exit {
    match arguments.format {
        RunFormat::Human => terminal::out(&summary.text(terminal::width())),
        RunFormat::Json => match serde_json::to_string_pretty(summary) {
            Ok(text) => terminal::out(&format!("{text}\n")),
            Err(error) => {
                terminal::error(&format!("the summary can't be written as JSON: {error}"), "", "report this", colours);
                return Exit::Defect;
            }
        },
    }
    let failed = summary.failed_share();
    if summary.cut_short {
        terminal::note("cut short: the figures are of the part of the window that was measured");
        return Exit::Interrupted;
    }
    if failed > asked.allow_failures {
        terminal::error(
            &format!("{} of the requests failed, {} are allowed", percent(failed), percent(asked.allow_failures)),
            "the rate and the latencies are those of the others alone",
            "mend what the reasons above say, expect what comes with --expect, or allow more with --allow-failures",
            colours,
        );
        return Exit::FailedRequests;
    }
    if summary.bottleneck.is_some() && !arguments.allow_bottleneck {
        terminal::error(
            "the generator was the bottleneck: these figures are not the target's",
            summary.bottleneck.as_deref().and_then(|why| Some(why.split_once(": ")?.1)).unwrap_or_default(),
            "give it more CPUs (--threads, --cpus, --generators), ask for a lower --rate, or accept it with --allow-bottleneck",
            colours,
        );
        return Exit::Bottleneck;
    }
    Exit::Ok
}

/// A share as a percentage, with as many digits as it takes to tell it from none.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 || percent >= 0.095 { format!("{percent:.1} %") } else { format!("{percent:.1e} %") }
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn a_small_share_is_not_none() {
        assert_eq!((percent(0.0), percent(0.5), percent(1e-6)), ("0.0 %".into(), "50.0 %".into(), "1.0e-4 %".into()));
    }
}
