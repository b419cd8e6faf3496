//! The fetched PostgreSQL: as able as the machine's own.

use std::time::Duration;

use engine::host::Server as _;
use engine::postgres::{LocalPostgres, clone_name, embedded};

use crate::support::{ROWS, events, spec};

#[tokio::test]
async fn a_fetched_server_makes_templates_and_clones() {
    let binaries = embedded::fetch().await.expect("fetched");
    let again = embedded::fetch().await.expect("kept");
    assert_eq!(again, binaries);
    let logs = tempfile::tempdir().expect("a directory");
    let mut local = LocalPostgres::start(&binaries, &spec("embedded", &logs)).await.expect("started");
    let server = local.access().clone();
    let version = server.version().await.expect("a version").text;
    assert!(embedded::VERSION.starts_with(&version), "{version}");
    let template = server.make_template(&events(), &mut |_, _, _| {}).await.expect("made").database;
    server.clone_template(&template, &clone_name("cell")).await.expect("cloned");
    assert!(server.prewarm(&clone_name("cell"), &events().each_cell.prewarm).await.is_ok());
    assert_eq!(server.count(&clone_name("cell"), "events").await, Ok(ROWS));
    assert!(server.settle(Duration::from_secs(5)).await.is_ok());
    assert_eq!(local.stop().expect("stopped").code, 0);
}
