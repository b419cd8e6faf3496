//! The Docker backend against a real Docker Engine. The tests need one, and the image `debian:bookworm-slim` on it
//! (experiments/base-image.sh makes it where it can't be pulled).

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use engine::docker::{Container, Docker, PreparedImage};
use engine::error::Class;
use engine::host::{CounterSource, Exit, Progress, RUN_LABEL, Server, ServerSpec};
use engine::port;
use engine::sample::{SampleSpec, Sampler, clock, pin, tree};
use journal::RunId;
use plan::{ContentHash, CpuSet, Image, ImageSource, Role};

const BASE: &str = "debian:bookworm-slim";
const MINUTE: Duration = Duration::from_secs(60);

fn docker() -> Docker {
    Docker::connect().expect("a Docker Engine")
}

fn base(docker: &Docker) -> String {
    docker.image(&pulled(BASE), &PathBuf::from("."), |_| {}).expect("the base image").reference
}

fn pulled(reference: &str) -> Image {
    let source = ImageSource::Pull { reference: reference.to_owned() };
    Image { hash: ContentHash::of(&source), source }
}

/// A run of one test; what it made is removed when the test ends, however it ends.
struct Run {
    docker: Docker,
    id: RunId,
}

impl Run {
    fn new(name: &str) -> Self {
        Self { docker: docker(), id: RunId(format!("test-{}-{name}", std::process::id())) }
    }

    fn spec(&self, name: &str) -> ServerSpec {
        ServerSpec {
            run: self.id.clone(),
            name: name.to_owned(),
            role: Role::Candidate,
            cpus: pin::allowed().expect("readable"),
            memory_bytes: None,
            shared_memory_bytes: None,
            open_files: 1_024,
            env: Vec::new(),
            arguments: Vec::new(),
            port: port::free().expect("a port"),
            data_volume: None,
        }
    }

    fn start(&self, spec: ServerSpec, script: &str) -> Container {
        let arguments = words(&["sh", "-c", script]);
        self.docker.start(&ServerSpec { arguments, ..spec }, &base(&self.docker)).expect("started")
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Err(error) = self.docker.clean(Some(&self.id), &[]) {
            eprintln!("left behind: {error:?}");
        }
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The `docker` command, for what is not ours and for a second opinion.
fn cli(arguments: &[&str]) -> (bool, String) {
    let output = Command::new("docker").args(arguments).output().expect("the docker command");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn line(server: &Container, start: &str) -> String {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let found = server.logs(50).into_iter().find_map(|line| Some(line.strip_prefix(start)?.trim().to_owned()));
        if let Some(found) = found {
            return found;
        }
        assert!(Instant::now() < until, "no line {start} within 20 s: {:?}", server.logs(50));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A build context of the test's own.
struct Context(PathBuf);

impl Context {
    fn new(name: &str, dockerfile: &str) -> Self {
        let path = std::env::temp_dir().join(format!("exp-docker-{}-{name}", std::process::id()));
        std::fs::create_dir_all(path.join("Test_App")).expect("a directory");
        std::fs::write(path.join("Test_App/Dockerfile"), dockerfile).expect("a file");
        std::fs::write(path.join("Test_App/.dockerignore"), "secret\n").expect("a file");
        std::fs::write(path.join("Test_App/secret"), "").expect("a file");
        std::fs::write(path.join("Test_App/mark"), "").expect("a file");
        Self(path)
    }

    fn build(&self, docker: &Docker) -> (Result<PreparedImage, engine::error::StepError>, Vec<Progress>) {
        let mut told = Vec::new();
        let built = docker.image(&self.image(), &self.0, |progress| told.push(progress));
        (built, told)
    }

    fn image(&self) -> Image {
        let path = self.0.display().to_string();
        let hash = ContentHash::of_bytes(path.as_bytes());
        let source =
            ImageSource::Build { context: "Test_App".into(), dockerfile: "Dockerfile".into(), digest: String::new() };
        Image { source, hash }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("our directory");
        if let Err(error) = docker().remove_images_of(&self.image().hash) {
            eprintln!("left behind: {error:?}");
        }
    }
}

#[test]
fn an_engine_answers_and_one_that_does_not_is_an_environment_failure() {
    let docker = docker();
    assert!(docker.answers());
    assert_eq!(docker.version(), cli(&["version", "--format", "{{.Server.Version}}"]).1);
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent = format!("tcp://{}", silent.local_addr().expect("its address"));
    let closed = format!("tcp://127.0.0.1:{}", port::free().expect("a port"));
    for (host, why) in [
        ("unix:///no/such/docker.sock", "/no/such/docker.sock"),
        (closed.as_str(), "Connect"),
        // Accepts by its backlog and says nothing, for as long as the listener lives.
        (silent.as_str(), ""),
        ("https://127.0.0.1:1", "not supported"),
        ("nonsense", "not supported"),
    ] {
        let before = Instant::now();
        let error = Docker::connect_to(host).expect_err(host);
        assert_eq!(error.class, Class::Environment);
        assert_eq!(error.failure.what, format!("no Docker Engine answers at {host}"));
        assert!(error.failure.why.contains(why), "{error:?}");
        assert!(error.failure.next.contains("systemctl start docker"), "{error:?}");
        assert!(before.elapsed() < Duration::from_secs(8));
    }
}

#[test]
fn it_can_be_used_from_within_an_asynchronous_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async { assert!(docker().answers()) });
}

#[test]
fn an_image_is_built_once_labelled_and_found_again() {
    let docker = docker();
    let context =
        Context::new("built", "FROM debian:bookworm-slim\nCOPY . /app\nRUN ls /app && test ! -e /app/secret\n");
    let (built, told) = context.build(&docker);
    let built = built.expect("it builds");
    assert!(!built.reused);
    assert_eq!(built.reference, format!("exp/test-app:{}", context.image().hash.short()));
    let steps: Vec<_> = told.iter().map(|progress| (progress.done, progress.of)).collect();
    // The engine makes the label a step of its own.
    assert_eq!(steps, [(1, 4), (2, 4), (3, 4), (4, 4)], "{told:?}");
    assert_eq!(told[1].what, "Step 2/4 : COPY . /app");
    let format = "{{.Id}} {{index .Config.Labels \"exp.image\"}}";
    let (_, inspected) = cli(&["image", "inspect", "--format", format, &built.reference]);
    assert_eq!(inspected, format!("{} {}", built.id, context.image().hash));
    let (again, told) = context.build(&docker);
    let reference = built.reference.clone();
    assert_eq!(again, Ok(PreparedImage { reused: true, ..built }));
    assert_eq!(told, []);
    let hash = context.image().hash;
    assert_eq!(docker.remove_images_of(&hash), Ok(vec![format!("image {reference}")]));
    assert_eq!(docker.image_id(&reference), Ok(None));
    assert_eq!(docker.remove_images_of(&hash), Ok(Vec::new()));
    assert!(docker.image_id(BASE).expect("answered").is_some(), "what is not ours is left alone");
}

#[test]
fn a_build_that_fails_shows_its_last_lines() {
    let context =
        Context::new("fails", "FROM debian:bookworm-slim\nRUN seq 100 130; echo no rule to make target; exit 7\n");
    let error = context.build(&docker()).0.expect_err("it fails");
    assert_eq!(error.class, Class::Step);
    assert!(error.failure.what.contains("Test_App can't be built"), "{error:?}");
    assert!(error.failure.why.starts_with("Step 2/3 : RUN seq") && error.failure.why.contains('7'), "{error:?}");
    assert_eq!(error.failure.log.len(), 20);
    assert_eq!(error.failure.log.last().map(String::as_str), Some("no rule to make target"));
    assert_eq!(error.failure.log.first().map(String::as_str), Some("112"));
}

#[test]
fn an_image_that_cannot_be_had_is_an_environment_failure_with_its_command() {
    let docker = docker();
    let reference = "127.0.0.1:9/exp/none:1";
    let context = Context::new("base", &format!("FROM {reference} AS build\nRUN true\n"));
    let built = context.build(&docker).0.expect_err("no such base image");
    let pulled = docker.image(&pulled(reference), &PathBuf::from("."), |_| {}).expect_err("no such image");
    for error in [built, pulled] {
        assert_eq!(error.class, Class::Environment, "{error:?}");
        assert_eq!(error.failure.what, format!("image {reference} can't be pulled"));
        assert_eq!(error.failure.next, format!("docker pull {reference}"));
        assert!(error.failure.why.contains("127.0.0.1:9"), "{error:?}");
    }
    let missing = Context::new("missing", "");
    std::fs::remove_file(missing.0.join("Test_App/Dockerfile")).expect("our file");
    let error = missing.build(&docker).0.expect_err("no Dockerfile");
    assert!(error.failure.why.contains("Dockerfile"), "{error:?}");
}

#[test]
fn an_interrupted_build_ends_soon() {
    let interrupt = Arc::new(AtomicBool::new(false));
    let docker = docker().interrupted_by(Arc::clone(&interrupt));
    let context = Context::new("interrupted", "FROM debian:bookworm-slim\nRUN sleep 60\n");
    let before = Instant::now();
    let error = docker
        .image(&context.image(), &context.0, |progress| {
            if progress.done == 2 {
                interrupt.store(true, Ordering::Relaxed);
            }
        })
        .expect_err("interrupted");
    assert_eq!(error.class, Class::Interrupted);
    assert!(before.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_server_gets_what_its_specification_says() {
    let run = Run::new("gets");
    let cpus = pin::allowed().expect("readable").first(1).expect("a CPU");
    let spec = ServerSpec {
        cpus: cpus.clone(),
        memory_bytes: Some(64 << 20),
        shared_memory_bytes: Some(16 << 20),
        open_files: 777,
        env: vec![("POOL".into(), "8".into())],
        ..run.spec("gets")
    };
    let script = "grep Cpus_allowed_list /proc/self/status; echo files $(ulimit -n); echo pool $POOL; \
        echo shm $(df -B1 /dev/shm | tail -1); echo error >&2; exec sleep 60";
    let mut server = run.start(spec, script);
    assert_eq!(line(&server, "Cpus_allowed_list:"), cpus.to_string());
    assert_eq!((line(&server, "files"), line(&server, "pool")), ("777".into(), "8".into()));
    assert!(line(&server, "shm").contains("16777216"));
    assert_eq!(line(&server, "error"), "");
    assert_eq!(server.full_name(), format!("exp-{}-gets", run.id));
    assert_eq!(server.logs(2).len(), 2);
    let format = "{{.HostConfig.NetworkMode}} {{.HostConfig.Memory}} {{.HostConfig.MemorySwap}} {{.HostConfig.AutoRemove}} {{index .Config.Labels \"exp.run\"}}";
    let (_, inspected) = cli(&["inspect", "--format", format, server.full_name()]);
    assert_eq!(inspected, format!("host 67108864 67108864 false {}", run.id));
    assert_eq!(server.exited(), Ok(None));
    assert!(std::fs::metadata(format!("/proc/{}", server.pid())).is_ok());
    assert_eq!(server.stop(), Ok(Exit { code: 143, out_of_memory: false }));
    assert!(!cli(&["inspect", server.full_name()]).0, "it is removed");
}

#[test]
fn how_a_container_ends_is_told() {
    let run = Run::new("ends");
    let limited = ServerSpec { memory_bytes: Some(16 << 20), ..run.spec("memory") };
    for (spec, script, code, out_of_memory, said) in [
        (run.spec("exits"), "echo no such table; exit 3", 3, false, "no such table"),
        (limited, "head -c 200000000 /dev/zero | tail -c 190000000", 137, true, "Killed"),
    ] {
        let mut server = run.start(spec, script);
        let until = Instant::now() + Duration::from_secs(20);
        let exit = loop {
            if let Some(exit) = server.exited().expect("readable") {
                break exit;
            }
            assert!(Instant::now() < until, "{script}");
            std::thread::sleep(Duration::from_millis(20));
        };
        assert_eq!(exit, Exit { code, out_of_memory }, "{script}");
        let logs = server.logs(5);
        assert!(logs.contains(&said.to_owned()), "{logs:?}");
        assert_eq!(server.stop(), Ok(exit), "its end stays known");
    }
}

#[test]
fn cpu_and_memory_of_a_container_are_counted() {
    let run = Run::new("counted");
    let cpus = pin::allowed().expect("readable").first(1).expect("a CPU");
    // Fills 8 MiB of memory, then burns.
    let script = "x=$(head -c 8388608 /dev/zero | tr '\\0' x); echo up; while :; do :; done";
    let mut server = run.start(ServerSpec { cpus: cpus.clone(), ..run.spec("counted") }, script);
    line(&server, "up");
    let source = server.counters().expect("on this machine");
    assert!(matches!(source, CounterSource::CgroupV1 { .. } | CounterSource::CgroupV2 { .. }), "{source:?}");
    let mut sampler = Sampler::start(SampleSpec {
        candidate: Some(source),
        candidate_cpus: cpus,
        ..SampleSpec::of_machine(pin::allowed().expect("readable"))
    });
    let start = clock::monotonic_ns() + 100_000_000;
    sampler.window(start, start + 1_000_000_000);
    // The same CPU time from another source, read at the same instants: the processes' own clocks.
    let mut members = tree::members(server.pid()).expect("alive");
    clock::sleep_until(start);
    let before = tree::cpu_ns(&mut members).expect("alive");
    clock::sleep_until(start + 1_000_000_000);
    let after = tree::cpu_ns(&mut members).expect("alive");
    let sampled = sampler.finish();
    let counters = sampled.candidate.expect("a candidate");
    let cpu = counters.cpu_ns().expect("both readings") as f64 / 1e9;
    let own = (after - before) as f64 / 1e9;
    println!("{}: {cpu:.4} s of one CPU, by the processes' clocks {own:.4} s", counters.source);
    assert!((cpu - own).abs() < 0.03, "{cpu} {own}");
    assert!((0.02..1.02).contains(&cpu), "{cpu}");
    let peak = counters.memory_peak_bytes.expect("readable");
    assert!((8 << 20..200 << 20).contains(&peak), "{peak}");
    assert_eq!(sampled.findings, []);
    server.stop().expect("stopped");
    let error = server.counters().expect_err("it is gone");
    assert!(error.failure.why.contains("/cgroup can't be read"), "{error:?}");
}

#[test]
fn a_port_that_is_held_names_its_holder() {
    let run = Run::new("port");
    let held = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = held.local_addr().expect("its address").port();
    let spec = ServerSpec { port, ..run.spec("port") };
    let error = run.docker.start(&spec, BASE).expect_err("the port is held");
    assert_eq!(error.class, Class::Environment);
    assert_eq!(error.failure.what, format!("port can't listen on 127.0.0.1:{port}"));
    assert!(error.failure.why.contains(&format!("process {}", std::process::id())), "{error:?}");
}

#[test]
fn commands_run_to_their_end_in_a_container_of_their_own_and_beside_a_server() {
    let run = Run::new("commands");
    let image = base(&run.docker);
    let cpus = pin::allowed().expect("readable").first(1).expect("a CPU");
    let spec = ServerSpec { cpus: cpus.clone(), ..run.spec("once") };
    let once = |script: &str, stdin: Option<&[u8]>, within| {
        run.docker.run_once(&spec, &image, &words(&["sh", "-c", script]), stdin, within)
    };
    let long = vec![b'x'; 300_000];
    let output = once("cat; echo error >&2; exit 3", Some(&long), MINUTE).expect("it runs");
    assert_eq!((output.exit.code, output.stdout.len(), output.stderr.as_str()), (3, 300_000, "error\n"));
    let output = once("grep Cpus_allowed_list /proc/self/status", None, MINUTE).expect("it runs");
    assert_eq!(output.stdout.trim(), format!("Cpus_allowed_list:\t{cpus}"));
    let output = once("exit 0", Some(b"nobody reads this"), MINUTE).expect("it runs");
    assert_eq!((output.exit.code, output.stdout.as_str()), (0, ""));
    let error = once("sleep 60", None, Duration::from_secs(1)).expect_err("too long");
    assert!(error.failure.why.contains("within 1 s"), "{error:?}");
    let output = run.docker.run_once(&spec, &image, &words(&["no-such-program"]), None, MINUTE).expect("it runs");
    assert!(output.exit.code == 127 && output.stderr.contains("no-such-program"), "{output:?}");
    assert_eq!(cli(&["ps", "-aq", "--filter", &format!("label={RUN_LABEL}={}", run.id)]).1, "", "all are removed");

    let server = run.start(run.spec("beside"), "echo 42 >/tmp/answer; echo up; exec sleep 60");
    line(&server, "up");
    let output = server.exec(&words(&["sh", "-c", "cat /tmp/answer; exit 4"]), MINUTE).expect("it runs");
    assert_eq!((output.exit.code, output.stdout.as_str()), (4, "42\n"));
}

#[test]
fn a_leftover_of_ours_gives_way_and_somebody_elses_container_does_not() {
    let run = Run::new("leftover");
    let first = run.start(run.spec("same"), "exec sleep 60");
    // As after `kill -9`: nobody stops it.
    let name = first.full_name().to_owned();
    let pid = first.pid();
    std::mem::forget(first);
    let second = run.start(run.spec("same"), "exec sleep 60");
    assert_ne!(second.pid(), pid);
    drop(second);
    assert!(!cli(&["inspect", &name]).0, "dropping removes");

    let foreign = format!("exp-{}-foreign", run.id);
    assert!(cli(&["create", "--name", &foreign, &base(&run.docker), "true"]).0);
    let error = run.docker.start(&run.spec("foreign"), BASE).expect_err("the name is taken");
    let there = cli(&["inspect", &foreign]).0;
    assert!(cli(&["rm", &foreign]).0);
    assert!(there, "it is left alone");
    assert!(error.failure.why.contains("does not carry the label exp.run"), "{error:?}");
}

#[test]
fn cleaning_removes_what_carries_the_label_and_nothing_else() {
    let run = Run::new("clean");
    let other = Run::new("clean-other");
    let data = |run: &Run| ServerSpec { data_volume: Some("/data".into()), ..run.spec("kept") };
    let server = run.start(data(&run), "echo 42 >/data/answer; echo up; exec sleep 60");
    line(&server, "up");
    drop(server);
    let server = run.start(data(&run), "cat /data/answer; exec sleep 60");
    assert_eq!(line(&server, "42"), "", "the volume outlives the container");
    let name = server.full_name().to_owned();
    std::mem::forget(server);
    let spared = other.start(other.spec("spared"), "exec sleep 60");
    let label = format!("{RUN_LABEL}={}", run.id);
    let (network, foreign) = (format!("exp-{}-net", run.id), format!("test-{}-foreign", std::process::id()));
    assert!(cli(&["network", "create", "--label", &label, &network]).0);
    for arguments in [
        &["create", "--name", &foreign, "--label", "exp.other=1", &base(&run.docker), "true"][..],
        &["volume", "create", &foreign],
        &["network", "create", &foreign],
    ] {
        assert!(cli(arguments).0, "{arguments:?}");
    }

    let kept = run.docker.clean(Some(&run.id), std::slice::from_ref(&run.id));
    let removed = run.docker.clean(Some(&run.id), &[]);
    let again = run.docker.clean(Some(&run.id), &[]);
    let there = [
        cli(&["inspect", &foreign]).0,
        cli(&["volume", "inspect", &foreign]).0,
        cli(&["network", "inspect", &foreign]).0,
        cli(&["inspect", spared.full_name()]).0,
    ];
    for arguments in [&["rm", &foreign][..], &["volume", "rm", &foreign], &["network", "rm", &foreign]] {
        assert!(cli(arguments).0, "{arguments:?}");
    }
    assert_eq!(kept, Ok(Vec::new()));
    let expected = [format!("container {name}"), format!("network {network}"), format!("volume {name}-data")];
    assert_eq!(removed, Ok(expected.to_vec()));
    assert_eq!(again, Ok(Vec::new()));
    assert_eq!(there, [true; 4], "what is not ours is left alone");
}

#[test]
fn a_cpu_that_the_machine_lacks_is_told() {
    let run = Run::new("cpu");
    let spec = ServerSpec { cpus: CpuSet::new([500]), ..run.spec("cpu") };
    let error = run.docker.start(&spec, &base(&run.docker)).expect_err("no CPU 500");
    assert!(error.failure.why.contains("500"), "{error:?}");
}
