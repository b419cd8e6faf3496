//! How long `exp check FILE` takes as a process, from start to exit, beside `true` (what any process costs here) and the
//! linters ruff and taplo on files of as many lines, where they are installed. `cargo bench -p exp --bench process`; the bars
//! are 5 ms for 1,000 lines and 20 ms for 10,000.
//!
//! In random order within each round, so that a noisy moment hits all of them.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const ROUNDS: usize = 60;

/// A study without problems of about `lines` lines, most of them a contract.
fn study(lines: usize) -> String {
    let mut text = String::from(
        "study big { title \"t\"; question \"q\" }\nuse \"std/http\"\n\
         machine bench { cpus candidate=\"0\" load=\"1\" }\n\
         probe noop { process builtin; listen 18090; ready GET=\"/\" }\n\
         candidate app { process \"./app\"; listen 18080; ready GET=\"/\" }\n\
         workload mixed { stream read { GET \"/\"; expect 200 { body \"ok\" } } }\n\
         phase first like=saturation { over candidate }\n\
         phase ceiling like=saturation { over candidate; gate generator-probe of=first.throughput; repeat 6 }\n\
         agreement two { between ceiling.throughput first.throughput within=\"5%\" }\n\
         report { table \"Ceiling\" of=ceiling.throughput rows=candidate }\n\
         contract {\n",
    );
    for index in 0..lines / 6 {
        let _ = writeln!(
            text,
            "    case \"case {index}\" {{\n        GET \"/items/{index}\"\n        expect 200 {{\n            json \"$.id\" equals={index}\n        }}\n    }}"
        );
    }
    text.push_str("}\n");
    text
}

struct Rival {
    name: String,
    command: Vec<String>,
    took: Vec<f64>,
}

fn installed(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

fn once(command: &[String]) -> Option<f64> {
    let (program, arguments) = command.split_first()?;
    let mut process = Command::new(program);
    process.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let ended = process.status().ok()?;
    ended.success().then(|| start.elapsed().as_secs_f64() * 1e3)
}

fn main() {
    let place = tempfile::tempdir().unwrap_or_else(|error| panic!("no directory for the files: {error}"));
    let write = |name: &str, text: &str| {
        let path = place.path().join(name);
        std::fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path.display().to_string()
    };
    // Another build can be measured: EXP=target/release/exp.
    let exp = std::env::var("EXP").unwrap_or_else(|_| env!("CARGO_BIN_EXE_exp").to_owned());
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let mut rivals = vec![Rival { name: "true".to_owned(), command: words(&["true"]), took: Vec::new() }];
    for lines in [100, 1_000, 10_000] {
        let path = write(&format!("study-{lines}.kdl"), &study(lines));
        rivals.push(Rival {
            name: format!("exp check, {lines} lines"),
            command: words(&[&exp, "check", &path]),
            took: Vec::new(),
        });
    }
    let path = write("study.kdl", &study(1_000));
    rivals.push(Rival {
        name: "exp fmt --check, 1000 lines".to_owned(),
        command: words(&[&exp, "fmt", "--check", &path]),
        took: Vec::new(),
    });
    if installed("ruff") {
        let path = write("a.py", &"VALUE = {\"a\": 1, \"b\": [1, 2, 3]}\n".repeat(1_000));
        let command = words(&["ruff", "check", "--no-cache", "--isolated", &path]);
        rivals.push(Rival { name: "ruff check, 1000 lines".to_owned(), command, took: Vec::new() });
    } else {
        println!("ruff is not installed: pip install ruff");
    }
    if installed("taplo") {
        let text: String = (0..1_000).map(|line| format!("key{line} = [1, 2, \"three\"]\n")).collect();
        let command = words(&["taplo", "lint", &write("a.toml", &text)]);
        rivals.push(Rival { name: "taplo lint, 1000 lines".to_owned(), command, took: Vec::new() });
    } else {
        println!("taplo is not installed: npm install --global @taplo/cli, or cargo install taplo-cli");
    }
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..ROUNDS {
        let mut order: Vec<usize> = (0..rivals.len()).collect();
        for at in (1..order.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            order.swap(at, (state >> 33) as usize % (at + 1));
        }
        for at in order {
            match once(&rivals[at].command) {
                Some(took) => rivals[at].took.push(took),
                None => {
                    println!("{} fails: {}", rivals[at].name, rivals[at].command.join(" "));
                    std::process::exit(1);
                }
            }
        }
    }
    let size = std::fs::metadata(Path::new(&exp)).map_or(0, |metadata| metadata.len());
    println!("{ROUNDS} rounds; {exp}, {:.1} MB", size as f64 / 1e6);
    println!("process                        min ms   median ms   median less `true`   bar");
    rivals.iter_mut().for_each(|rival| rival.took.sort_by(f64::total_cmp));
    let floor = rivals[0].took[ROUNDS / 2];
    for rival in &rivals {
        let median = rival.took[ROUNDS / 2];
        let bar = match rival.name.as_str() {
            "exp check, 1000 lines" => "5 ms",
            "exp check, 10000 lines" => "20 ms",
            _ => "",
        };
        println!("{:<30} {:>6.2} {median:>11.2} {:>20.2}   {bar}", rival.name, rival.took[0], median - floor);
    }
}
