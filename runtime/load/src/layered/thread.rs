//! One layered thread: a current-thread runtime with a task per connection, a task per request in flight, and the pacer.
//!
//! The runtime's own timers go by milliseconds. The pacer therefore sleeps on a timerfd until 60 µs before the next slot and then
//! yields in turns, which polls the sockets each time, until the slot is due.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::task::{JoinSet, LocalSet};

use super::books::{Books, Issue, State};
use super::crew::Start;
use super::exchange::{NoAnswer, exchange};
use super::open::{self, Opened, Sender, Way};
use crate::error::LoadError;
use crate::program::Program;
use crate::sys::{self, Alarm, Usage};
use crate::tally::{Failure, Outcome};
use crate::worker::{Account, CUT_GRACE_NS, LATEST_START_NS, SPIN_NS};

/// Longest sleep: how soon a stop is seen, and what bounds the blur of a stall that began in a sleep.
const SLEEP_NS: u64 = 5_000_000;
/// How long opening one connection may take before the start.
const OPEN_WITHIN: Duration = Duration::from_secs(5);
/// Connections that are opened at a time.
const AT_A_TIME: usize = 32;

/// When the thread slept, told by the runtime.
#[derive(Default)]
struct Sleep {
    /// When it went to sleep last.
    from: AtomicU64,
    /// When it was to be awake.
    until: AtomicU64,
    /// When it woke.
    to: AtomicU64,
}

/// What the tasks of a thread share.
struct Shared {
    books: RefCell<Books>,
    /// The pacer has something new to wait for.
    nudge: Notify,
}

/// Opens the connections, tells so, waits for the start and runs the job to its end. Also gives how many requests were sent
/// again.
///
/// # Errors
/// When it is stopped, the system fails it, a connection can't be opened or its books don't balance.
pub fn run(
    program: Arc<Program>,
    way: Arc<Way>,
    number: u32,
    index: usize,
    cpu: Option<u32>,
    opened: &mpsc::Sender<Option<String>>,
    start: oneshot::Receiver<Start>,
) -> Result<(Account, u64), LoadError> {
    if let Some(cpu) = cpu {
        let next = "give the load role CPUs that this machine has";
        sys::pin_to_cpu(cpu).map_err(LoadError::system(format!("run on CPU {cpu}"), next))?;
    }
    sys::set_least_timer_slack();
    let sleep = Arc::new(Sleep::default());
    let (parking, waking) = (Arc::clone(&sleep), Arc::clone(&sleep));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .on_thread_park(move || parking.from.store(sys::now_ns(), Ordering::Relaxed))
        .on_thread_unpark(move || waking.to.store(sys::now_ns(), Ordering::Relaxed))
        .build()
        .map_err(LoadError::system("start its runtime", "close other programs"))?;
    let local = LocalSet::new();
    let result = local.block_on(&runtime, life(program, way, number, index, &sleep, opened, start));
    // What still runs has been entered as unanswered.
    drop(local);
    result
}

async fn life(
    program: Arc<Program>,
    way: Arc<Way>,
    number: u32,
    index: usize,
    sleep: &Sleep,
    opened: &mpsc::Sender<Option<String>>,
    start: oneshot::Receiver<Start>,
) -> Result<(Account, u64), LoadError> {
    let next = "close other programs or raise the limit of open files (`ulimit -n`)";
    let timer = Alarm::new().map_err(LoadError::system("set a timer", next))?;
    let shared =
        Rc::new(Shared { books: RefCell::new(Books::new(program, Arc::clone(&way), number)?), nudge: Notify::new() });
    let agreed = open_all(&shared, &way).await?;
    if opened.send(agreed).is_err() {
        return Err(LoadError::Stopped);
    }
    // Nobody starts it any more: the job was given up.
    let Ok(start) = start.await else { return Err(LoadError::Stopped) };
    wait_for(&start, &timer, &shared).await?;
    let usage = pace(&shared, &start, index, &timer, sleep).await?;
    let Some(shared) = finished(shared) else {
        return Err(LoadError::Panicked("a task of the generator outlived its job".into()));
    };
    shared.close(usage)
}

/// Takes the books away from the tasks, which see a job that is over.
fn finished(shared: Rc<Shared>) -> Option<Books> {
    let (program, way) = {
        let books = shared.books.borrow();
        (Arc::clone(&books.program), Arc::clone(&books.way))
    };
    let empty = Books::new(program, way, 0).ok()?;
    Some(shared.books.replace(empty))
}

/// Opens all connections and leaves each to its keeper.
async fn open_all(shared: &Rc<Shared>, way: &Arc<Way>) -> Result<Option<String>, LoadError> {
    let count = shared.books.borrow().lines.len();
    let mut agreed = None;
    let mut opening = JoinSet::new();
    let mut begun = 0;
    for _ in 0..count {
        while begun < count && opening.len() < AT_A_TIME {
            let (way, line) = (Arc::clone(way), begun);
            opening.spawn_local(async move { (line, open::open(&way, OPEN_WITHIN).await) });
            begun += 1;
        }
        match opening.join_next().await {
            Some(Ok((line, Ok(opened)))) => {
                agreed.clone_from(&opened.agreed);
                drop(tokio::task::spawn_local(keep(Rc::clone(shared), Arc::clone(way), line, opened)));
            }
            Some(Ok((line, Err(trouble)))) => return Err(trouble.error(way, line as u32 + 1, count as u32)),
            Some(Err(error)) => return Err(LoadError::Panicked(error.to_string())),
            None => break,
        }
    }
    Ok(agreed)
}

/// Waits for the job's start.
async fn wait_for(start: &Start, timer: &Alarm, shared: &Shared) -> Result<(), LoadError> {
    let at = start.at_ns;
    let warm_up = shared.books.borrow().program.warm_up;
    let latest = LATEST_START_NS.max(warm_up / 4);
    if let Some(late_ns) = sys::now_ns().checked_sub(at).filter(|late| *late > latest) {
        return Err(LoadError::Late { late_ns });
    }
    loop {
        let now = sys::now_ns();
        if start.stop.load(Ordering::Relaxed) {
            return Err(LoadError::Stopped);
        }
        if now >= at {
            return Ok(());
        }
        if at - now > SPIN_NS {
            timer
                .sleep_until((at - SPIN_NS).min(now + SLEEP_NS))
                .await
                .map_err(LoadError::system("set its timer", "run it again"))?;
        } else {
            tokio::task::yield_now().await;
        }
    }
}

/// Keeps a connection: hands it over when it is open, opens another when it has ended and is needed.
async fn keep(shared: Rc<Shared>, way: Arc<Way>, line: usize, first: Opened) {
    let mut next = Some(first);
    loop {
        let opened = match next.take() {
            Some(opened) => opened,
            None => {
                let began = sys::now_ns();
                let within = {
                    let books = shared.books.borrow();
                    if !books.is_needed(began) {
                        return;
                    }
                    Duration::from_nanos(books.window.timeout)
                };
                match open::open(&way, within).await {
                    Ok(opened) => opened,
                    Err(trouble) => {
                        let pause = shared.not_opened(line, began, trouble.failure());
                        tokio::time::sleep(pause).await;
                        continue;
                    }
                }
            }
        };
        let mut driver = opened.driver;
        let change = shared.up(line, opened.sender, opened.pulse);
        let ended = tokio::select! {
            biased;
            ended = &mut driver => Some(ended),
            () = change.notified() => None,
        };
        let drop_it = shared.down(line, ended.as_ref().is_some_and(Result::is_err));
        if ended.is_none() && !drop_it {
            // Requests that it still has get their answers; no new ones are given to it.
            drop(tokio::task::spawn_local(driver));
        }
    }
}

impl Shared {
    /// A connection is open: its places get to work.
    fn up(self: &Rc<Self>, line: usize, sender: Sender, pulse: Rc<super::stamped::Pulse>) -> Rc<Notify> {
        let mut books = self.books.borrow_mut();
        let now = books.stamp();
        let kept = &mut books.lines[line];
        kept.sender = Some(sender);
        kept.pulse = pulse;
        kept.up = true;
        kept.attempts = 0;
        kept.drop_it = false;
        // What was said of the connection before does not concern this one.
        kept.change = Rc::default();
        let change = Rc::clone(&kept.change);
        for place in kept.places.clone() {
            if books.places[place].state == State::Parked {
                books.idle(place, now);
            }
        }
        self.send(&mut books);
        change
    }

    /// A connection has ended or takes nothing new. Gives whether it is to be dropped at once.
    fn down(self: &Rc<Self>, line: usize, with_error: bool) -> bool {
        let mut books = self.books.borrow_mut();
        let now = books.stamp();
        let needed = books.is_needed(now);
        let inside = books.in_window(now);
        books.reconnects += u64::from(needed && inside);
        let kept = &mut books.lines[line];
        kept.sender = None;
        kept.up = false;
        let drop_it = std::mem::take(&mut kept.drop_it);
        let places = kept.places.clone();
        let idle = places.clone().all(|place| books.places[place].state != State::Waiting);
        books.unsolicited += u64::from(with_error && idle && inside);
        for place in places.clone() {
            if books.places[place].state == State::Free {
                books.places[place].state = State::Parked;
            }
        }
        books.free.retain(|free| !places.contains(free));
        drop_it
    }

    /// A connection could not be opened. Gives how long to wait before the next attempt.
    fn not_opened(&self, line: usize, began: u64, failure: Failure) -> Duration {
        let mut books = self.books.borrow_mut();
        books.not_opened(began, failure);
        let kept = &mut books.lines[line];
        kept.attempts = kept.attempts.saturating_add(1);
        // 1 ms, doubled up to 128 ms.
        Duration::from_millis(1 << (kept.attempts - 1).min(7))
    }

    /// Sends what the books have issued.
    fn send(self: &Rc<Self>, books: &mut Books) {
        let issues = std::mem::take(&mut books.issues);
        for issue in issues {
            let place = issue.place;
            let task = tokio::task::spawn_local(travel(Rc::clone(self), issue));
            books.places[place].task = Some(task.abort_handle());
        }
    }
}

/// One request on its way and back.
async fn travel(shared: Rc<Shared>, issue: Issue) {
    let Issue { place, mut sender, ready, flight, pulse, change, lane } = issue;
    let asked = shared.books.borrow().program.lanes[usize::from(lane)].asked;
    pulse.give(Rc::clone(&flight));
    let answered = exchange(&mut sender, ready, asked, &pulse, &flight).await;
    let is_many = matches!(sender, Sender::Http2(_));
    {
        let mut books = shared.books.borrow_mut();
        let now = books.stamp();
        match &answered {
            Ok(answer) => {
                let outcome = books.verify(place, &answer.response());
                books.end(place, answer.first, answer.done, outcome);
            }
            Err(NoAnswer::Failed(failure)) => {
                books.end(place, 0, now, Outcome::Failed(*failure));
                if !is_many {
                    // The connection can't carry another request.
                    let line = books.places[place].line;
                    if Rc::ptr_eq(&books.lines[line].change, &change) {
                        books.lines[line].drop_it = true;
                        change.notify_one();
                    }
                    return;
                }
            }
            Err(NoAnswer::PutBack) => {
                books.again(place);
                // Nothing more for this connection, whatever hyper still believes of it.
                let line = books.places[place].line;
                if Rc::ptr_eq(&books.lines[line].change, &change) {
                    books.lines[line].sender = None;
                    change.notify_one();
                }
            }
        }
    }
    if let Sender::Http1(one) = &mut sender {
        // Ready for the next once hyper has put the answer away; an error: the connection has ended, and its keeper knows.
        if one.ready().await.is_err() {
            return;
        }
        let mut books = shared.books.borrow_mut();
        let line = books.places[place].line;
        books.lines[line].sender = Some(sender);
    }
    let mut books = shared.books.borrow_mut();
    let now = books.stamp();
    let was_empty = books.free.is_empty();
    books.idle(place, now);
    shared.send(&mut books);
    if was_empty && !books.free.is_empty() {
        shared.nudge.notify_one();
    }
}

/// Runs the job from its start to its end. Gives the usage across the window.
async fn pace(
    shared: &Rc<Shared>,
    start: &Start,
    index: usize,
    timer: &Alarm,
    sleep: &Sleep,
) -> Result<Option<Usage>, LoadError> {
    const NEVER: u64 = u64::MAX;
    let (mut usage_start, mut usage_end) = (None, None);
    let (mut deadline, mut next_interval);
    {
        let mut books = shared.books.borrow_mut();
        books.begin(start.at_ns);
        deadline = books.window.end + books.program.grace;
        next_interval = start.intervals.as_ref().map_or(NEVER, |(every, _)| books.window.start + every);
        books.last = sys::now_ns();
        let (window, last) = (books.window, books.last);
        books.stalls.between(&window, start.at_ns, last);
        books.running = true;
        let now = books.last;
        for place in 0..books.places.len() {
            if books.places[place].state == State::Parked {
                books.idle(place, now);
            }
        }
        shared.send(&mut books);
    }
    let every = (shared.books.borrow().window.timeout / 20).clamp(1_000_000, 100_000_000);
    let mut next_sweep = sys::now_ns() + every;
    loop {
        let wake = {
            let mut books = shared.books.borrow_mut();
            let now = wake_up(&mut books, sleep);
            if start.stop.load(Ordering::Relaxed) {
                return Err(LoadError::Stopped);
            }
            let cut_at = start.cut_at.load(Ordering::Relaxed);
            if cut_at < books.window.end {
                if cut_at <= books.window.start {
                    return Err(LoadError::Stopped);
                }
                if let Some(late_ns) = now.checked_sub(cut_at).filter(|late_ns| *late_ns > 0) {
                    return Err(LoadError::CutLate { late_ns });
                }
                books.cut(cut_at);
                deadline = cut_at + books.program.grace.min(CUT_GRACE_NS);
            }
            if now >= next_interval
                && let Some((every, shelves)) = &start.intervals
                && shelves.get(index).is_some_and(|shelf| shelf.lay_down(&mut books.tallies))
            {
                next_interval += every;
            }
            if usage_start.is_none() && now >= books.window.start {
                usage_start = Some(sys::thread_usage());
            }
            if usage_end.is_none() && now >= books.window.end {
                usage_end = Some(sys::thread_usage());
            }
            if now >= next_sweep {
                next_sweep = now + every;
                shared.sweep(&mut books, now);
            }
            if books.window.open {
                books.dispatch(now);
                shared.send(&mut books);
            }
            let over = now >= books.window.end || books.left == 0;
            if now >= deadline || (over && books.in_flight == 0 && books.put_back == 0 && books.next.is_none()) {
                break;
            }
            let milestone = [
                if usage_start.is_none() { books.window.start } else { NEVER },
                if usage_end.is_none() { books.window.end } else { deadline },
                next_sweep,
                now + SLEEP_NS,
            ];
            let milestone = milestone.into_iter().min().unwrap_or(now);
            // Without a free place nothing could be sent: what is due waits for an answer, and so does this thread.
            match books.next.filter(|_| !books.free.is_empty()) {
                Some(slot) => {
                    let spin = (books.start + slot.after_ns).saturating_sub(SPIN_NS);
                    if now >= spin { now } else { spin.min(milestone) }
                }
                None => milestone,
            }
        };
        let now = sys::now_ns();
        sleep.until.store(wake, Ordering::Relaxed);
        if wake <= now {
            let before = shared.books.borrow().last;
            tokio::task::yield_now().await;
            let mut books = shared.books.borrow_mut();
            let woke = sys::now_ns();
            // Nothing came meanwhile: nobody else has read the clock.
            if books.last == before && books.in_window(now) {
                books.polling_ns += woke - now;
            }
        } else {
            tokio::select! {
                biased;
                slept = timer.sleep_until(wake) => slept.map_err(LoadError::system("set its timer", "run it again"))?,
                () = shared.nudge.notified() => {}
            }
        }
    }
    let mut books = shared.books.borrow_mut();
    if books.left == 0 {
        // The requests that were asked for have all ended.
        books.took_ns = Some(books.last.min(books.window.end) - books.window.start);
        usage_end = usage_end.or_else(|| Some(sys::thread_usage()));
    }
    Ok(match (usage_start, usage_end) {
        (Some(Ok(start)), Some(Ok(end))) => Some(Usage {
            cpu_ns: end.cpu_ns.saturating_sub(start.cpu_ns),
            user_ns: end.user_ns.saturating_sub(start.user_ns),
            involuntary_switches: end.involuntary_switches.saturating_sub(start.involuntary_switches),
        }),
        _ => None,
    })
}

/// Reads the clock after the runtime may have slept: a sleep explains the gap up to its own limit.
fn wake_up(books: &mut Books, sleep: &Sleep) -> u64 {
    let (from, to) = (sleep.from.load(Ordering::Relaxed), sleep.to.load(Ordering::Relaxed));
    if to > books.last && from >= books.last {
        let window = books.window;
        books.stalls.between(&window, books.last, from);
        let until = sleep.until.load(Ordering::Relaxed).max(from);
        books.stalls.between(&window, until, to);
        books.last = to;
    }
    books.stamp()
}

impl Shared {
    /// Ends what has waited too long: over HTTP/1.1 its connection goes with it, over HTTP/2 the request alone.
    fn sweep(self: &Rc<Self>, books: &mut Books, now: u64) {
        for place in books.sweep(now) {
            let line = books.places[place].line;
            if matches!(books.lines[line].sender, Some(Sender::Http2(_))) {
                books.idle(place, now);
            } else {
                books.lines[line].drop_it = true;
                books.lines[line].change.notify_one();
            }
        }
        self.send(books);
    }
}
