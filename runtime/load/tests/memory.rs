//! The module with `unsafe` under valgrind: every byte that it hands to the kernel is ours and written, every one it takes back is
//! read after it was written. Miri knows neither epoll nor timers, and a sanitizer would need the standard library built anew.

use std::path::PathBuf;
use std::process::{Command, Output};

/// What valgrind ends with when it finds something.
const FOUND: i32 = 99;

fn valgrind(program: &PathBuf, arguments: &[&str]) -> Output {
    Command::new("valgrind")
        .args(["--quiet", &format!("--error-exitcode={FOUND}")])
        .arg(program)
        .args(arguments)
        .output()
        .expect("valgrind runs; tests/run.sh installs it")
}

/// The crate's own unit tests, as they are now.
fn unit_tests() -> PathBuf {
    let output = Command::new(env!("CARGO"))
        .args(["test", "--no-run", "--lib", "--message-format=json", "--quiet"])
        .args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")])
        .output()
        .expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let built = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let path = built.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).next_back();
    path.expect("the unit tests' binary")
}

#[test]
fn the_module_with_unsafe_is_clean() {
    let output = valgrind(&unit_tests(), &["sys::", "--test-threads=1"]);
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{errors}");
    let passed = out.split("test result: ok. ").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<u32>().ok());
    assert!(passed.is_some_and(|passed| passed >= 6), "too few tests ran: {out}");
}

/// The drill: an event that was never written, given to the kernel, is found.
#[test]
fn memory_that_was_never_written_is_found() {
    let place = std::env::temp_dir().join(format!("exp-load-memory-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("a directory");
    for (name, written, expected) in
        [("faulty", "", FOUND), ("clean", "event->events = EPOLLIN; event->data.u64 = 1;", 0)]
    {
        let source = format!(
            "#include <stdlib.h>\n#include <sys/epoll.h>\n#include <sys/timerfd.h>\nint main(void) {{\n\
             struct epoll_event *event = malloc(sizeof *event); {written}\n\
             epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, timerfd_create(1, 0), event); free(event); return 0; }}"
        );
        let (from, to) = (place.join(format!("{name}.c")), place.join(name));
        std::fs::write(&from, source).expect("written");
        let compiled = Command::new("cc").arg("-g").arg("-o").arg(&to).arg(&from).status().expect("cc runs");
        assert!(compiled.success());
        let output = valgrind(&to, &[]);
        assert_eq!(output.status.code(), Some(expected), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
    std::fs::remove_dir_all(&place).ok();
}
