//! FrankenPHP's worker script: its image can't be built everywhere, so PHP alone runs it, with a stand-in for the function
//! that FrankenPHP adds, against a real PostgreSQL. (The smoke study holds the other candidates to the contract.)

use std::process::Command;

use tests::{root, the_host};

#[test]
fn the_worker_loop_keeps_the_contract() {
    let _host = the_host();
    let output = Command::new("bash")
        .arg(root().join("experiments/candidates/check.sh"))
        .arg("frankenphp-loop")
        .output()
        .expect("bash runs");
    let printed = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}\n{complaints}");
    let passed = printed.lines().filter(|line| line.starts_with("PASS")).count();
    assert!(passed >= 20, "only {passed} cases were tried:\n{printed}");
}
