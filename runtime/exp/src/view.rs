//! Draws the live view: an onlooker that hands every record to a thread of its own, so that the run never waits for the
//! terminal.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use console::Term;
use engine::stream::Onlooker;
use journal::{Event, Record, Stage};
use plan::Plan;
use report::terminal::{Layout, View};

use crate::terminal::{self, Colours};

/// Time between two drawings of the live region.
const FRAME: Duration = Duration::from_millis(120);
/// The same within a window, where nothing of ours should run beside the measurement.
const FRAME_WHILE_MEASURING: Duration = Duration::from_millis(1_000);

/// The onlooker.
pub struct Screen {
    records: Sender<Told>,
}

/// A record, and whether it is from the part of the journal that is continued.
struct Told {
    record: Record,
    past: bool,
}

/// The thread that draws.
pub struct Drawing {
    thread: JoinHandle<()>,
}

impl Screen {
    /// Starts to draw: on standard output, or on standard error where standard output belongs to `--format json`.
    pub fn start(plan: &Plan, run_directory: &str, to_stderr: bool, colours: Colours) -> (Self, Drawing) {
        let (records, received) = channel();
        let term = if to_stderr { Term::stderr() } else { Term::stdout() };
        let tty = term.is_term() && std::env::var_os("CI").is_none();
        let layout = Layout {
            width: terminal::width(),
            colour: if to_stderr { colours.err } else { colours.out },
            tty,
            run_dir: run_directory.to_owned(),
        };
        let view = View::new(plan, layout);
        let thread = std::thread::spawn(move || {
            Canvas { term, view, tty, drawn: 0, frame: 0 }.draw(&received);
        });
        (Self { records }, Drawing { thread })
    }
}

impl Onlooker for Screen {
    fn take(&mut self, record: &Record) {
        // A drawing thread that is gone draws nothing; the run goes on.
        let _ = self.records.send(Told { record: record.clone(), past: false });
    }

    fn past(&mut self, record: &Record) {
        let _ = self.records.send(Told { record: record.clone(), past: true });
    }
}

impl Drawing {
    /// Waits until everything is drawn. The screen must have been dropped.
    pub fn finish(self) {
        let _ = self.thread.join();
    }
}

struct Canvas {
    term: Term,
    view: View,
    tty: bool,
    /// Lines of the live region that stand on the terminal now.
    drawn: usize,
    frame: usize,
}

impl Canvas {
    fn draw(&mut self, records: &Receiver<Told>) {
        let mut pause = FRAME;
        self.final_lines(Vec::new());
        loop {
            match records.recv_timeout(pause) {
                Ok(Told { record, past: true }) => self.view.past(&record),
                Ok(Told { record, past: false }) => {
                    pause = match &record.event {
                        Event::RepetitionStage { stage: Stage::WarmingUp | Stage::Measuring, .. } => {
                            FRAME_WHILE_MEASURING
                        }
                        _ => FRAME,
                    };
                    let lines = self.view.take(&record);
                    self.final_lines(lines);
                }
                Err(RecvTimeoutError::Timeout) => self.final_lines(Vec::new()),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.clear();
    }

    fn clear(&mut self) {
        if self.drawn > 0 {
            let _ = self.term.clear_last_lines(self.drawn);
            self.drawn = 0;
        }
    }

    /// Prints lines that are final, and the live region under them.
    fn final_lines(&mut self, lines: Vec<String>) {
        if !self.tty {
            for line in lines {
                let _ = self.term.write_line(&line);
            }
            return;
        }
        let now_ns = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
        self.frame += 1;
        let live = self.view.live(now_ns, self.frame);
        // One write, so that nobody sees a half-drawn region.
        let mut text = String::new();
        if self.drawn > 0 {
            text.push_str(&format!("\u{1b}[{}A\r\u{1b}[J", self.drawn));
        }
        for line in lines.iter().chain(&live) {
            text.push_str(line);
            text.push('\n');
        }
        self.drawn = live.len();
        let _ = self.term.write_str(&text);
        let _ = self.term.flush();
    }
}
