//! Templates, clones and counters on a real PostgreSQL that each test starts itself.

use std::time::{Duration, Instant};

use crate::support::{ROWS, SCHEMA, SEED, cluster, connect, database, events};
use engine::error::Class;
use engine::postgres::{Server, clone_name};

fn quiet(_: &str, _: u64, _: u64) {}

#[tokio::test]
async fn a_template_is_made_once_locked_and_cloned() {
    let cluster = cluster("template").await;
    let server = &cluster.server;
    let mut told = Vec::new();
    let made = server
        .make_template(&events(), &mut |what, done, of| told.push((what.to_owned(), done, of)))
        .await
        .expect("made");
    assert_eq!(made.database, format!("events_{}", events().template_hash.short()));
    assert_eq!(made.rows.get("events"), Some(&ROWS));
    assert!(made.bytes > 5_000_000 && made.took > Duration::ZERO && !made.reused, "{made:?}");
    let expected = [("sql/schema.sql", 0), ("sql/seed.sql", 1), ("sql/seed.sql", 2), ("counting rows", 3)];
    assert_eq!(told, expected.map(|(what, done)| (what.to_owned(), done, 3)));

    let refused = server.count(&made.database, "events").await.expect_err("locked");
    assert!(refused.failure.why.contains("not currently accepting connections"), "{refused:?}");

    let again = server.make_template(&events(), &mut |_, _, _| panic!("nothing is to be done")).await.expect("reused");
    assert_eq!((again.reused, &again.rows, again.bytes), (true, &made.rows, made.bytes));

    let names = [clone_name("ceiling-0-1"), clone_name("ceiling-0-2")];
    for name in &names {
        assert!(server.clone_template(&made.database, name).await.expect("cloned") > Duration::ZERO);
        assert_eq!(server.count(name, "events").await, Ok(ROWS));
    }
    cluster.sql(&names[0], "INSERT INTO events (kind) VALUES ('x'), ('y')").await;
    assert_eq!(server.count(&names[0], "events").await, Ok(ROWS + 2));
    assert_eq!(server.count(&names[1], "events").await, Ok(ROWS), "the clones have nothing in common");

    // Cloned under a name that is there: a fresh one takes its place.
    server.clone_template(&made.database, &names[0]).await.expect("cloned anew");
    assert_eq!(server.count(&names[0], "public.events").await, Ok(ROWS));

    let wrong = server.count(&names[0], "evnets").await.expect_err("no such table");
    assert!(wrong.failure.why.contains("42P01") && wrong.failure.what.contains("`evnets`"), "{wrong:?}");
    let wrong = server.clone_template(&made.database, "production").await.expect_err("not a clone's name");
    assert!(wrong.failure.why.contains("exp_cell_"), "{wrong:?}");
    let wrong = server.clone_template("nothing", &names[0]).await.expect_err("no such template");
    assert!(wrong.failure.why.contains("3D000"), "{wrong:?}");
}

#[tokio::test]
async fn what_is_half_made_is_made_anew() {
    let cluster = cluster("half-made").await;
    let server = &cluster.server;
    let wanted = events();
    let name = format!("events_{}", wanted.template_hash.short());
    let lock = format!("ALTER DATABASE {name} WITH IS_TEMPLATE true ALLOW_CONNECTIONS false");
    let comment = |hash: &str| format!("COMMENT ON DATABASE {name} IS '{{\"exp.template\":\"{hash}\",\"rows\":{{}}}}'");
    let finished = comment(wanted.template_hash.as_str());
    for (state, commands) in [
        ("killed within the SQL", vec![]),
        ("killed before the mark", vec![&lock]),
        ("marked and never locked", vec![&finished]),
        ("of another hash", vec![&lock, &comment("0123456789abcdef0123456789abcdef")]),
        ("somebody else's comment", vec![&lock, &format!("COMMENT ON DATABASE {name} IS 'mine'")]),
    ] {
        cluster.sql("postgres", &format!("CREATE DATABASE {name}")).await;
        cluster.sql(&name, "CREATE TABLE events (id int); INSERT INTO events VALUES (1)").await;
        for command in commands {
            cluster.sql("postgres", command).await;
        }
        let made = server.make_template(&wanted, &mut quiet).await.expect(state);
        assert_eq!((made.reused, made.rows.get("events")), (false, Some(&ROWS)), "{state}");
        server.clone_template(&name, &clone_name("x")).await.expect(state);
        assert_eq!(server.count(&clone_name("x"), "events").await, Ok(ROWS), "{state}");
        server.drop_database(&name).await.expect("even a locked template");
    }
    server.drop_database(&name).await.expect("what is not there needs no dropping");
}

#[tokio::test]
async fn sql_that_fails_is_named_by_file_and_line_and_leaves_nothing() {
    let cluster = cluster("sql-error").await;
    let bad_column = "INSERT INTO events (kind) VALUES ('a');\n\n-- Twice.\nINSERT INTO events (kind)\n  SELECT kinds FROM events;\n";
    let duplicate = "INSERT INTO events OVERRIDING SYSTEM VALUE\nVALUES (1, 'a'), (1, 'b');";
    let in_block = "BEGIN;\nSELECT 1;\nVACUUM events;\nCOMMIT;";
    for (seed, rows, what, why) in [
        (
            bad_column,
            1,
            "sql/seed.sql:5: ERROR 42703: column \"kinds\" does not exist; hint: ",
            "the statement of line 4",
        ),
        (duplicate, 1, "sql/seed.sql:1: ERROR 23505: ", "`INSERT INTO events OVERRIDING SYSTEM VALUE …`"),
        (in_block, 1, "sql/seed.sql:3: ERROR 25001: VACUUM cannot run inside a transaction block", "line 3"),
        ("SELECT 'a", 1, "sql/seed.sql:1: a string is never closed", "plain SQL"),
        ("\\copy events from x", 1, "sql/seed.sql:1: `\\copy` is a command of psql", "plain SQL"),
        ("COPY events (kind) FROM stdin;\na\tb\n\\.\n", 1, "sql/seed.sql:1: ERROR 22P04: extra data", "line 1"),
        (SEED, ROWS + 1, "holds 5000 rows in `events`, not 5001", "`holds table=events rows=5001`"),
    ] {
        let wanted = database(&[("sql/schema.sql", SCHEMA), ("sql/seed.sql", seed)], rows);
        let error = cluster.server.make_template(&wanted, &mut quiet).await.expect_err(what);
        assert_eq!(error.class, Class::Step);
        assert!(error.failure.what.contains(what) && error.failure.why.contains(why), "{error:?}");
        let name = format!("events_{}", wanted.template_hash.short());
        let gone = cluster.server.reading(&name).await.expect_err("dropped");
        assert!(gone.failure.why.contains("there is no database"), "{gone:?}");
    }
    let mut wanted = events();
    wanted.each_cell.prewarm.push("events_kind".to_owned());
    let error = cluster.server.make_template(&wanted, &mut quiet).await.expect_err("no such index");
    assert!(error.failure.what.contains("`events_kind`"), "{error:?}");
    // The twin: lines of a COPY that fit, and a transaction of the file's own.
    let copied = "BEGIN;\nCOPY events (kind) FROM stdin;\na;\nb'\n\\.\nCOMMIT;";
    let wanted = database(&[("sql/schema.sql", SCHEMA), ("sql/seed.sql", copied)], 2);
    assert!(cluster.server.make_template(&wanted, &mut quiet).await.is_ok());
}

#[tokio::test]
async fn whoever_holds_the_template_is_named_and_only_that_clone_fails() {
    let cluster = cluster("blocker").await;
    let server = &cluster.server;
    let template = server.make_template(&events(), &mut quiet).await.expect("made").database;
    let other = database(&[("sql/schema.sql", SCHEMA), ("sql/seed.sql", "INSERT INTO events (kind) VALUES ('a')")], 1);
    let other = server.make_template(&other, &mut quiet).await.expect("made").database;

    // A session that got in before the lock: only the lock's own means let one in here.
    cluster.sql("postgres", &format!("ALTER DATABASE {template} ALLOW_CONNECTIONS true")).await;
    let holder = connect(server, &template, "somebody's console").await;
    holder.simple_query("SELECT 42 AS looking_around").await.expect("a query");
    let pid: i32 = holder.query_one("SELECT pg_backend_pid()", &[]).await.expect("a row").get(0);
    holder.simple_query("SELECT 42 AS looking_around").await.expect("a query");
    cluster.sql("postgres", &format!("ALTER DATABASE {template} ALLOW_CONNECTIONS false")).await;

    let begin = Instant::now();
    let error = server.clone_template(&template, &clone_name("cell-1")).await.expect_err("held");
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    assert_eq!(error.class, Class::Step);
    for part in ["55006", &format!("session {pid}"), "somebody's console", "user exp", "idle", "42 AS looking_around"] {
        assert!(error.failure.why.contains(part), "{part}: {error:?}");
    }
    assert!(error.failure.next.contains(&format!("pg_terminate_backend({pid})")), "{error:?}");
    server.clone_template(&other, &clone_name("cell-2")).await.expect("another template is not concerned");

    // Held for a moment only: the clone waits and succeeds.
    let releasing = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(6)).await;
        drop(holder);
    });
    server.clone_template(&template, &clone_name("cell-1")).await.expect("free again");
    releasing.await.expect("released");
    assert_eq!(server.count(&clone_name("cell-1"), "events").await, Ok(ROWS));
}

#[tokio::test]
async fn clones_are_dropped_on_every_ending() {
    let cluster = cluster("endings").await;
    let server = &cluster.server;
    let template = server.make_template(&events(), &mut quiet).await.expect("made").database;
    for label in ["a", "b"] {
        server.clone_template(&template, &clone_name(label)).await.expect("cloned");
    }
    // A candidate that is still connected does not keep its database.
    let candidate = connect(server, &clone_name("a"), "candidate").await;
    server.drop_database(&clone_name("a")).await.expect("dropped");
    assert!(candidate.simple_query("SELECT 1").await.is_err());
    // Interrupted in the middle of a clone: whatever the server did of it is found.
    for after in [0, 5, 20, 80] {
        let name = clone_name(&format!("cut-{after}"));
        let cut = tokio::time::timeout(Duration::from_millis(after), server.clone_template(&template, &name)).await;
        drop(cut);
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    while sessions(server).await > 0 {
        assert!(Instant::now() < deadline, "an abandoned session stays");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let dropped = server.drop_clones().await.expect("dropped");
    assert!(dropped.contains(&clone_name("b")), "{dropped:?}");
    assert_eq!(server.drop_clones().await, Ok(Vec::new()));
    assert!(server.reading(&clone_name("b")).await.is_err());
    assert!(server.clone_template(&template, &clone_name("b")).await.is_ok(), "the template is untouched");
}

/// Sessions of ours that still do something.
async fn sessions(server: &Server) -> i64 {
    let session = connect(server, "postgres", "a test").await;
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'exp'";
    session.query_one(sql, &[]).await.expect("a row").get(0)
}

#[tokio::test]
async fn a_cell_is_prepared_and_what_the_server_did_is_counted() {
    let cluster = cluster("prepare").await;
    let server = &cluster.server;
    let template = server.make_template(&events(), &mut quiet).await.expect("made").database;
    let name = clone_name("cell");
    server.clone_template(&template, &name).await.expect("cloned");
    let warmed = server.prewarm(&name, &events().each_cell.prewarm).await.expect("warmed");
    assert_eq!(warmed.blocks.len(), 2);
    assert!(warmed.blocks["events"] > 20 && warmed.blocks["events_pkey"] > 10, "{warmed:?}");
    let wrong = server.prewarm(&name, &["events_kind".to_owned()]).await.expect_err("no such index");
    assert!(wrong.failure.what.contains("`events_kind`") && wrong.failure.why.contains("42P01"), "{wrong:?}");

    let start = server.reading(&name).await.expect("read");
    server.checkpoint().await.expect("written");
    let limit = Duration::from_secs(20);
    let settled = server.settle(limit).await.expect("asked");
    assert!(settled.took < limit + Duration::from_secs(3), "{settled:?}");
    assert!(settled.took >= Duration::from_secs(1), "one second has to be quiet: {settled:?}");
    assert_eq!(settled.settled, settled.why.is_empty(), "{settled:?}");
    assert!(settled.dirty_bytes.is_some() && settled.writeback_bytes.is_some());
    let hurried = server.settle(Duration::from_millis(300)).await.expect("asked");
    assert!(!hurried.settled && hurried.why.contains("the counters were read"), "{hurried:?}");
    let mut elsewhere = server.clone();
    elsewhere.port = 1;
    assert!(elsewhere.settle(limit).await.is_err());

    cluster.sql(&name, "INSERT INTO events (kind) SELECT 'x' FROM generate_series(1, 500)").await;
    // The session that wrote has ended; its counts follow within moments.
    let deadline = Instant::now() + Duration::from_secs(15);
    let facts = loop {
        let end = server.reading(&name).await.expect("read");
        let facts = start.until(&end).expect("forwards");
        if facts.inserted >= 500 || Instant::now() > deadline {
            break facts;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!((facts.inserted, facts.checkpoints_requested), (500, 1), "{facts:?}");
    assert!(facts.commits >= 1 && facts.wal_bytes > 20_000, "{facts:?}");

    assert_eq!(server.setting("max_connections").await.as_deref(), Ok("20"));
    assert_eq!(server.setting("shared_buffers").await.as_deref(), Ok("64MB"));
    let wrong = server.setting("max_conections").await.expect_err("no such setting");
    assert!(wrong.failure.what.contains("`max_conections`"), "{wrong:?}");
    let version = server.version().await.expect("a version");
    assert!(version.major >= 13 && version.text.starts_with(&version.major.to_string()), "{version:?}");
    assert!(server.wait_ready(Duration::from_secs(5)).await.is_ok());
    let mut stranger = server.clone();
    stranger.password = "wrong".to_owned();
    let begin = Instant::now();
    let refused = stranger.wait_ready(Duration::from_secs(30)).await.expect_err("refused");
    assert!(refused.failure.why.contains("28P01") && begin.elapsed() < Duration::from_secs(5), "{refused:?}");
}
