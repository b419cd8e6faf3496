//! `exp load` from outside: several generators in their places, their ends, and what is told of it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tests::{Place, exp, processes_of, run, start};

/// The server without application code, on a free port, until it is dropped.
struct Service {
    child: Child,
    url: String,
}

impl Service {
    fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
        let child = exp(std::env::temp_dir().as_path(), &["probe", "--port", &port.to_string(), "--threads", "1"])
            .stdout(Stdio::null())
            .spawn()
            .expect("a probe");
        // From here on it ends with the value, also where it never listens.
        let service = Self { child, url: format!("http://127.0.0.1:{port}/") };
        let listens = |_| {
            std::thread::sleep(Duration::from_millis(25));
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        };
        assert!((0..400).any(listens), "the probe does not listen on {port}");
        service
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Another engine's address: TCP on the loopback interface, passed on to this machine's engine.
fn engine_over_tcp() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("tcp://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(engine) = UnixStream::connect("/var/run/docker.sock") else { continue };
            let (Ok(mut from_client), Ok(mut from_engine)) = (client.try_clone(), engine.try_clone()) else { continue };
            let (mut to_client, mut to_engine) = (client, engine);
            std::thread::spawn(move || {
                pass(&mut from_client, &mut to_engine);
                let _ = to_engine.shutdown(std::net::Shutdown::Write);
            });
            std::thread::spawn(move || {
                pass(&mut from_engine, &mut to_client);
                let _ = to_client.shutdown(std::net::Shutdown::Write);
            });
        }
    });
    address
}

fn pass(from: &mut impl Read, to: &mut impl Write) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count) = from.read(&mut buffer) {
        if count == 0 || to.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}

/// Containers of loads by this process.
fn containers_of(pid: u32) -> String {
    let output = Command::new("docker")
        .args(["ps", "--all", "--format", "{{.Names}}", "--filter", "name=exp-load-"])
        .output()
        .expect("docker");
    let names = String::from_utf8_lossy(&output.stdout).into_owned();
    names.lines().filter(|name| name.contains(&format!("-{pid}-generator"))).collect::<Vec<_>>().join("\n")
}

#[test]
fn two_generators_in_two_containers_send_one_load_to_one_service() {
    let (place, service) = (Place::new("two-containers"), Service::start());
    let away = engine_over_tcp();
    for (second, expected) in
        [("container,cpus=1".to_owned(), "container".to_owned()), (format!("{away},cpus=1"), away)]
    {
        let log = place.path().join("latencies.hlog");
        let arguments =
            ["load", &service.url, "-r", "1001", "-n", "2003", "-c", "9", "--format", "json", "--allow-bottleneck"];
        let more =
            ["--on", "container,cpus=0", "--on", &second, "--hdr", &log.display().to_string(), "--interval", "500ms"];
        let arguments: Vec<&str> = arguments.into_iter().chain(more).collect();
        let started = start(place.path(), &arguments);
        let pid = started.pid();
        let ended = started.end(Duration::from_secs(120)).expect_code(&[0]);
        assert_eq!(containers_of(pid), "", "containers are left");
        let summary = ended.summary();
        let census = &summary["census"];
        assert_eq!((census["due"].as_u64(), census["ok"].as_u64()), (Some(2_003), Some(2_003)), "{census}");
        let parts = summary["generators"].as_array().expect("generators");
        let each: Vec<u64> = parts.iter().map(|part| part["ok"].as_u64().expect("a count")).collect();
        assert_eq!((each.len(), each.iter().sum::<u64>()), (2, 2_003));
        assert!(each[0].abs_diff(each[1]) <= 1, "the slots of one schedule take turns: {each:?}");
        let connections: Vec<_> = parts.iter().map(|part| part["connections"].as_u64()).collect();
        assert_eq!(connections, [Some(5), Some(4)]);
        assert_eq!(
            (parts[0]["place"].as_str(), parts[1]["place"].as_str()),
            (Some("container"), Some(expected.as_str()))
        );
        let corrected = &summary["facts"]["streams"][0]["corrected"];
        let counted: u64 = corrected["buckets"]
            .as_array()
            .expect("buckets")
            .iter()
            .map(|pair| pair[1].as_u64().expect("a count"))
            .sum();
        assert_eq!((counted, corrected["count"].as_u64()), (2_003, Some(2_003)), "merged as histograms");

        // HdrHistogram's own tool counts the same.
        let read = Command::new("java")
            .args([
                "-cp",
                "/usr/share/java/hdrhistogram.jar",
                "org.HdrHistogram.HistogramLogProcessor",
                "-tag",
                "corrected",
            ])
            .args(["-i", &log.display().to_string()])
            .output()
            .expect("java");
        let text = String::from_utf8_lossy(&read.stdout);
        assert!(text.contains("Total count    =         2003"), "{text}{}", String::from_utf8_lossy(&read.stderr));
    }
}

#[test]
fn a_generator_that_dies_takes_the_load_with_it_by_name() {
    let (place, service) = (Place::new("dead-generator"), Service::start());
    let mut started =
        start(place.path(), &["load", &service.url, "-z", "60s", "-r", "100", "--on", "process", "--on", "process"]);
    let pid = started.pid();
    let generators = || -> Vec<u32> {
        std::fs::read_dir("/var/tmp/exp")
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with("load-") && name.ends_with(&format!("-{pid}")))
            .flat_map(|name| processes_of(&name))
            .filter_map(|line| line.split(':').next()?.parse().ok())
            .collect()
    };
    started.wait_until(Duration::from_secs(60), "two generators", || generators().len() == 2);
    std::thread::sleep(Duration::from_secs(1));
    let victim = generators()[0];
    assert!(Command::new("kill").args(["-9", &victim.to_string()]).status().expect("kill").success());
    let ended = started.end(Duration::from_secs(30)).expect_code(&[30]);
    assert!(
        ended.err.contains(" of 2 (process") && ended.err.contains("died") && ended.err.contains("signal: 9"),
        "{}",
        ended.err
    );
    assert_eq!(ended.out, "", "half a load has no summary");
    assert_eq!(generators(), Vec::<u32>::new(), "the other one has ended too");
}

#[test]
fn a_place_that_cannot_be_had_is_named() {
    let (place, service) = (Place::new("no-place"), Service::start());
    for (on, code, words) in [
        ("tcp://127.0.0.1:1", 20, "no Docker Engine answers at tcp://127.0.0.1:1"),
        ("container,cpus=4000", 20, "generator 1 of 2 (container, CPUs 4000) can't be started"),
        ("nowhere", 2, "`nowhere` is no place for a generator"),
    ] {
        let ended =
            run(place.path(), &["load", &service.url, "-z", "1s", "--on", on, "--on", "process"]).expect_code(&[code]);
        assert!(ended.err.contains(words), "{on}: {}", ended.err);
    }
}

#[test]
fn each_ending_has_its_exit_code() {
    let (place, service) = (Place::new("load-endings"), Service::start());
    let url = service.url.as_str();
    for (arguments, code, words) in [
        (&["load", url, "-n", "100", "--allow-bottleneck"][..], 0, ""),
        (&["load", url, "-n", "100", "--expect", "201"], 41, "100.0 % of the requests failed"),
        (&["load", url, "-n", "100", "--expect", "201", "--allow-failures", "100%", "--allow-bottleneck"], 0, ""),
        (&["load", "http://127.0.0.1:1/"], 31, "connection refused"),
        (&["load", "http://127.0.0.1:1/", "-g", "2"], 31, "connection refused"),
        (&["load", "http://no-such-name.invalid/"], 31, "can't be resolved"),
        (&["load", "http://192.0.2.1/"], 2, "--allow-host 192.0.2.1"),
        (&["load", url, "-n", "5", "--warm-up", "1s"], 2, "has no warm-up"),
    ] {
        let ended = run(place.path(), arguments).expect_code(&[code]);
        assert!(ended.err.contains(words), "{arguments:?}: {}", ended.err);
    }
}

#[test]
fn an_interrupted_load_sums_up_what_it_measured() {
    let (place, service) = (Place::new("cut-short"), Service::start());
    for more in [&[][..], &["-g", "2"]] {
        let arguments: Vec<&str> =
            ["load", &service.url, "-z", "60s", "-r", "500"].iter().chain(more).copied().collect();
        let started = start(place.path(), &arguments);
        std::thread::sleep(Duration::from_secs(4));
        started.signal(2);
        let ended = started.end(Duration::from_secs(20)).expect_code(&[130]);
        assert!(
            ended.out.contains("CUT SHORT") && ended.out.contains("answers as expected"),
            "{}{}",
            ended.out,
            ended.err
        );
        assert!(!ended.out.contains("\u{1b}"), "a pipe gets no control codes");
    }
}
