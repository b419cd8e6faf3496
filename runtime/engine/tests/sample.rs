//! The sampler against real processes, real files and the real clock.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use engine::host::CounterSource;
use engine::sample::{SampleSpec, Sampled, Sampler, clock, pin};
use journal::{Finding, RepetitionFacts};
use plan::CpuSet;

const MS: u64 = 1_000_000;

/// Measurements beside each other would see each other.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn all_cpus() -> CpuSet {
    pin::allowed().expect("readable")
}

fn first_cpu() -> CpuSet {
    all_cpus().first(1).expect("a CPU")
}

/// A process of ours that is ended with the test.
struct Burner(Child);

impl Burner {
    fn start(script: &str) -> Self {
        Self(Command::new("sh").args(["-c", script]).stdout(Stdio::null()).spawn().expect("a shell"))
    }

    fn source(&self) -> CounterSource {
        CounterSource::Processes { root: self.0.id() }
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        self.0.kill().expect("our child");
        self.0.wait().expect("our child");
    }
}

/// Files as a cgroup v1 has them, in a directory of their own.
struct Group(PathBuf);

impl Group {
    fn new(name: &str, usage: &str) -> Self {
        let path = std::env::temp_dir().join(format!("exp-sample-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        std::fs::write(path.join("cpuacct.usage"), usage).expect("a file");
        std::fs::write(path.join("memory.usage_in_bytes"), "4096\n").expect("a file");
        Self(path)
    }

    fn source(&self) -> CounterSource {
        CounterSource::CgroupV1 { cpuacct: self.0.clone(), cpu: None, memory: self.0.clone() }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("our directory");
    }
}

/// A window of this length, 100 ms from now, while `meanwhile` runs.
fn sampled(spec: SampleSpec, length_ns: u64, meanwhile: impl FnOnce()) -> Sampled {
    let mut sampler = Sampler::start(spec);
    let start = clock::monotonic_ns() + 100 * MS;
    sampler.window(start, start + length_ns);
    meanwhile();
    let sampled = sampler.finish();
    assert_eq!((sampled.window.start_ns, sampled.window.end_ns), (start, start + length_ns));
    sampled
}

fn has_finding(findings: &[Finding], what: &str, why: &str) -> bool {
    findings.iter().any(|finding| finding.what == what && finding.why.contains(why))
}

#[test]
fn a_process_that_burns_is_counted_to_the_nanosecond_and_everything_else_is_told() {
    let _alone = alone();
    // Two children that burn, so that the tree counts and not only the process.
    let burner = Burner::start("(while :; do :; done) & while :; do :; done & trap 'kill %1 %2' EXIT; wait");
    std::thread::sleep(Duration::from_millis(50));
    let spec = SampleSpec {
        candidate: Some(burner.source()),
        candidate_cpus: all_cpus(),
        pace_cpus: first_cpu(),
        ..SampleSpec::of_machine(all_cpus())
    };
    let sampled = sampled(spec, 1_000 * MS, || {});
    for pid in engine::sample::tree::members(burner.0.id()).expect("alive").into_iter().skip(1) {
        // SAFETY: no pointers; children of our child.
        unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
    }
    let counters = sampled.candidate.clone().expect("a candidate");
    let (start, end) = (counters.start.expect("a start"), counters.end.expect("an end"));
    let share = counters.cpu_ns().expect("both") as f64 / (end.at_ns - start.at_ns) as f64;
    let cpus = all_cpus().len() as f64;
    println!("burners used {share:.3} of {cpus} CPUs; sampler {} µs", sampled.own_cpu_ns / 1_000);
    // Others may use the machine; more than two CPUs or than there are is impossible.
    assert!(share > 0.02 && share < cpus.min(2.0) * 1.02, "{share}");
    assert_eq!((counters.source.as_str(), counters.cpus as usize), ("proc", all_cpus().len()));
    assert!(start.memory_bytes.is_some_and(|bytes| bytes > 10_000) && end.memory_bytes.is_some());
    assert!(counters.memory_peak_bytes >= start.memory_bytes);
    // The readings are at the window's ends.
    assert!(start.at_ns >= sampled.window.start_ns && start.at_ns < sampled.window.start_ns + 20 * MS);
    assert!(end.at_ns >= sampled.window.end_ns && end.at_ns < sampled.window.end_ns + 20 * MS);

    let window = sampled.window;
    assert_eq!(window.declared_ns, 1_000 * MS);
    assert!((window.wall_end_ns - window.wall_start_ns).abs_diff(1_000 * MS) < 2 * MS, "{window:?}");
    assert!((window.boot_end_ns - window.boot_start_ns).abs_diff(1_000 * MS) < 2 * MS, "{window:?}");

    assert_eq!(sampled.host.cpus.keys().copied().collect::<Vec<_>>(), all_cpus().cpus());
    for times in sampled.host.cpus.values() {
        let ticks = times.busy + times.idle + times.steal;
        assert!((90..=115).contains(&ticks), "a second has 100 ticks, not {ticks}");
    }
    let foreign = sampled.host.foreign_cpu_ns.expect("readable");
    let busy: u64 = sampled.host.cpus.values().map(|times| times.busy * 10 * MS).sum();
    assert!(foreign < busy.saturating_sub(counters.cpu_ns().expect("both")) + 150 * MS, "{foreign} of {busy}");
    let mut facts = RepetitionFacts::default();
    let findings = sampled.findings.clone();
    sampled.fill(&mut facts);
    assert_eq!((facts.window, facts.candidate.as_ref(), &facts.findings), (window, Some(&counters), &findings));
    assert_eq!(findings, []);
}

#[test]
fn foreign_work_is_seen_and_our_own_is_not_foreign() {
    let _alone = alone();
    // Adopted by the machine's first process, so that it is no descendant of this one.
    let script = "setsid sh -c 'ulimit -t 4; while :; do :; done' >/dev/null 2>&1 & echo $!";
    let started = Command::new("sh").args(["-c", script]).output().expect("a shell");
    let pid: libc::pid_t = String::from_utf8_lossy(&started.stdout).trim().parse().expect("a process id");
    let burnt_before = engine::sample::tree::cpu_ns(&mut vec![pid as u32]).expect("alive");
    let with = sampled(SampleSpec::of_machine(all_cpus()), 1_000 * MS, || {}).host.foreign_cpu_ns.expect("readable");
    let burnt = engine::sample::tree::cpu_ns(&mut vec![pid as u32]).expect("alive") - burnt_before;
    // SAFETY: no pointers; the process that was started above, whose number is not another's while it lives.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    println!("foreign {with} ns, of which the burner {burnt} ns in a slightly longer time");
    assert!(with + 150 * MS > burnt, "{with} {burnt}");

    let mut burnt = 0;
    let own = sampled(SampleSpec::of_machine(all_cpus()), 500 * MS, || {
        let before = clock::thread_cpu_ns();
        let until = Instant::now() + Duration::from_millis(650);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        burnt = clock::thread_cpu_ns() - before;
    });
    let busy: u64 = own.host.cpus.values().map(|times| times.busy * 10 * MS).sum();
    let foreign = own.host.foreign_cpu_ns.expect("readable");
    // At most 150 ms were burnt outside of the window; the rest is ours.
    let ours = burnt.saturating_sub(150 * MS);
    println!("this thread burnt {burnt} ns, the machine {busy} ns, of which {foreign} ns foreign");
    assert!(foreign + ours < busy + 100 * MS, "{foreign} of {busy} although {ours} are ours");
}

#[test]
fn what_cannot_be_read_is_missing_and_says_why() {
    let _alone = alone();
    let (whole, broken) = (Group::new("whole", "1000\n"), Group::new("broken", "no number\n"));
    let missing = PathBuf::from("/sys/fs/cgroup/exp-no-such-group");
    let cases = [
        ("whole", whole.source(), None),
        ("broken", broken.source(), Some(("candidate cpu", "holds `no number`"))),
        (
            "missing",
            CounterSource::CgroupV1 { cpuacct: missing.clone(), cpu: None, memory: missing.clone() },
            Some(("candidate cpu", "/sys/fs/cgroup/exp-no-such-group/cpuacct.usage can't be opened: No such file")),
        ),
        (
            "missing v2",
            CounterSource::CgroupV2 { group: missing },
            Some(("candidate memory", "/sys/fs/cgroup/exp-no-such-group/memory.current can't be opened")),
        ),
        (
            "gone",
            CounterSource::Processes { root: 0x7fff_fff0 },
            Some(("candidate cpu", "at the window's start: /proc/2147483632/stat can't be read")),
        ),
    ];
    for (name, source, problem) in cases {
        let spec =
            SampleSpec { candidate: Some(source), candidate_cpus: first_cpu(), ..SampleSpec::of_machine(all_cpus()) };
        let sampled = sampled(spec, 50 * MS, || {});
        let counters = sampled.candidate.expect("a candidate was asked for");
        match problem {
            None => {
                assert_eq!(sampled.findings, [], "{name}");
                assert_eq!((counters.cpu_ns(), counters.memory_peak_bytes), (Some(0), Some(4_096)), "{name}");
            }
            Some((what, why)) => {
                assert!(has_finding(&sampled.findings, what, why), "{name}: {:?}", sampled.findings);
                assert_eq!((counters.start, counters.end, counters.cpu_ns()), (None, None, None), "{name}");
            }
        }
    }
}

#[test]
fn a_candidate_that_dies_in_the_window_has_no_end() {
    let _alone = alone();
    let burner = Burner::start("sleep 0.2; exit 3");
    let mut sampler = Sampler::start(SampleSpec {
        candidate: Some(burner.source()),
        candidate_cpus: first_cpu(),
        ..SampleSpec::of_machine(all_cpus())
    });
    let start = clock::monotonic_ns() + 20 * MS;
    sampler.window(start, start + 500 * MS);
    let mut burner = burner;
    burner.0.wait().expect("our child");
    let sampled = sampler.finish();
    let counters = sampled.candidate.expect("a candidate");
    assert!(counters.start.is_some() && counters.end.is_none() && counters.memory_peak_bytes.is_none());
    assert!(has_finding(&sampled.findings, "candidate cpu", "at the window's end"), "{:?}", sampled.findings);
    assert!(has_finding(&sampled.findings, "candidate memory", "no such process"), "{:?}", sampled.findings);
}

#[test]
fn a_window_that_is_told_late_or_never_is_a_finding_and_giving_up_is_quick() {
    let _alone = alone();
    let spec = || SampleSpec { pace_cpus: first_cpu(), ..SampleSpec::of_machine(all_cpus()) };
    let mut late = Sampler::start(spec());
    let now = clock::monotonic_ns();
    late.window(now - 100 * MS, now + 50 * MS);
    let sampled = late.finish();
    assert!(has_finding(&sampled.findings, "sampler", "ms after the window's start"), "{:?}", sampled.findings);

    let pace = format!("pace cpu {}", first_cpu());
    let sampled = Sampler::start(spec()).finish();
    assert!(has_finding(&sampled.findings, "sampler", "no window was told"), "{:?}", sampled.findings);
    assert!(has_finding(&sampled.findings, &pace, "no sample lies in the window"), "{:?}", sampled.findings);
    assert_eq!(sampled.pace, BTreeMap::new());

    let mut long = Sampler::start(spec());
    long.window(clock::monotonic_ns(), clock::monotonic_ns() + 3_600_000 * MS);
    let before = Instant::now();
    drop(long);
    assert!(before.elapsed() < Duration::from_secs(2));
}

#[test]
fn a_cpu_that_is_not_there_has_no_pace_and_says_so() {
    let _alone = alone();
    let spec = SampleSpec { pace_cpus: CpuSet::new([1_000]), ..SampleSpec::of_machine(all_cpus()) };
    let sampled = sampled(spec, 50 * MS, || {});
    assert!(has_finding(&sampled.findings, "pace cpu 1000", "can't be bound to CPU 1000"), "{:?}", sampled.findings);
    assert_eq!(sampled.pace, BTreeMap::new());
}

#[test]
fn the_pace_is_sampled_on_every_cpu_and_the_work_takes_the_same_time() {
    let _alone = alone();
    let spec = SampleSpec { pace_cpus: all_cpus(), ..SampleSpec::of_machine(all_cpus()) };
    let sampled = sampled(spec, 1_000 * MS, || {});
    assert_eq!(sampled.findings, []);
    assert_eq!(sampled.pace.keys().copied().collect::<Vec<_>>(), all_cpus().cpus());
    for (cpu, pace) in &sampled.pace {
        let samples = &pace.samples;
        let quantile = |q| samples.quantile_ns(q).expect("samples") as f64 / 1e3;
        println!(
            "cpu {cpu}: {} samples, p10 {:.1} µs, p50 {:.1}, p90 {:.1}, max {:.1}; {} stalls",
            samples.count,
            quantile(0.1),
            quantile(0.5),
            quantile(0.9),
            quantile(1.0),
            pace.stalls.len()
        );
        // 200 a second, less what the platform slept over.
        assert!((100..=200).contains(&samples.count), "{}", samples.count);
        // 16,384 multiplications need at least half a nanosecond each, on any CPU that there is.
        assert!(samples.min_ns > 8_000, "{}", samples.min_ns);
        assert!(quantile(0.1) < 200.0, "{}", quantile(0.1));
    }
}

#[test]
fn the_sampler_costs_less_than_a_hundredth_of_a_cpu() {
    let _alone = alone();
    let (candidate, database) = (Group::new("cost-candidate", "1\n"), Group::new("cost-database", "1\n"));
    let spec = SampleSpec {
        candidate: Some(candidate.source()),
        candidate_cpus: first_cpu(),
        database: Some(database.source()),
        database_cpus: first_cpu(),
        ..SampleSpec::of_machine(all_cpus())
    };
    let sampled = sampled(spec, 3_000 * MS, || {});
    let share = sampled.own_cpu_ns as f64 / 3e9;
    println!("the sampler took {:.3} % of one CPU at 10 Hz, both ends of the window included", share * 100.0);
    assert!(share < 0.01, "{share}");
    assert!(sampled.own_cpu_ns > 0);
}

/// This test runs itself a second time as another process, which it stops and lets go on: so that process stands still as
/// it would on a platform that does.
#[test]
fn standing_still_is_a_stall_and_a_busy_cpu_is_none() {
    const ROLE: &str = "EXP_TEST_WITNESS";
    const STOPPED_MS: u64 = 200;
    let _alone = alone();
    if std::env::var_os(ROLE).is_some() {
        let burner = Burner::start("while :; do :; done");
        let spec = SampleSpec { pace_cpus: all_cpus(), ..SampleSpec::of_machine(all_cpus()) };
        let sampled = sampled(spec, 1_200 * MS, || println!("\nready"));
        drop(burner);
        let longest = sampled.pace.values().flat_map(|pace| &pace.stalls).map(|stall| stall.for_ns).max();
        println!("\nlongest {}", longest.unwrap_or(0) / MS);
        return;
    }
    for stopped in [true, false] {
        let mut witness = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "standing_still_is_a_stall_and_a_busy_cpu_is_none", "--nocapture"])
            .env(ROLE, "1")
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program again");
        let pid = witness.id() as libc::pid_t;
        let mut output = witness.stdout.take().expect("piped");
        let mut text = String::new();
        while !text.contains("ready\n") {
            let mut byte = [0];
            output.read_exact(&mut byte).expect("its output");
            text.push(char::from(byte[0]));
        }
        std::thread::sleep(Duration::from_millis(500));
        if stopped {
            // SAFETY: no pointers; our child, not waited for yet.
            unsafe { libc::kill(pid, libc::SIGSTOP) };
            std::thread::sleep(Duration::from_millis(STOPPED_MS));
            // SAFETY: as above.
            unsafe { libc::kill(pid, libc::SIGCONT) };
        }
        output.read_to_string(&mut text).expect("its output");
        assert!(witness.wait().expect("our child").success());
        let longest: u64 = text
            .lines()
            .find_map(|line| line.strip_prefix("longest ")?.trim().parse().ok())
            .expect("the witness tells its longest stall");
        println!("stopped: {stopped}, longest stall {longest} ms");
        assert_eq!(stopped, longest + 20 > STOPPED_MS, "a stall of {longest} ms");
    }
}
