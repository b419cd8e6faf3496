//! Lowering of what is measured and where: credentials, database, probe, candidates.

use plan::subject::{CellDatabase, Table};
use plan::{
    Candidate, Certificates, ContentHash, Credentials, Database, Image, ImageSource, Probe, ProcessCommand, ProcessRun,
    Ready, SqlFile, Text, Tls, Token,
};
use syntax::Location;

use crate::codes;
use crate::problems::{Problems, problem};
use crate::resolve::{Item, Study};
use crate::value::{Value, Valued};

const SECOND: i64 = 1_000_000_000;

/// The texts of an item's arguments.
pub fn texts(args: &[Valued]) -> Vec<String> {
    args.iter().filter_map(Valued::text).map(str::to_owned).collect()
}

/// The text with variables of a value.
pub fn template(valued: Option<&Valued>) -> Option<Text> {
    match valued.map(|valued| &valued.value) {
        Some(Value::Template(template)) => Some(template.text.clone()),
        _ => None,
    }
}

/// The directory of the study file: what paths of the plan are relative to.
pub fn root(study: &Study) -> String {
    let id = study.source.as_ref().map_or("", |id| id.as_str());
    id.rsplit_once('/').map_or(String::new(), |(directory, _)| directory.to_owned())
}

/// A path from the sources' root, relative to the plan's.
pub fn relative(root: &str, path: &str) -> String {
    let (root, path) = (root.trim_start_matches("./"), path.trim_start_matches("./"));
    if root.is_empty() {
        return path.to_owned();
    }
    match path.strip_prefix(root).and_then(|rest| rest.strip_prefix('/')) {
        Some(rest) => rest.to_owned(),
        None if path == root => ".".to_owned(),
        None => {
            let up = root.split('/').count();
            let shared = root.split('/').zip(path.split('/')).take_while(|(left, right)| left == right).count();
            let tail: Vec<&str> = path.split('/').skip(shared).collect();
            format!("{}{}", "../".repeat(up - shared), tail.join("/"))
        }
    }
}

/// The issuers and their tokens.
pub fn credentials(study: &Study, problems: &mut Problems) -> Vec<Credentials> {
    let mut seen: Vec<(&str, &Location)> = Vec::new();
    for token in study.each("credentials").flat_map(|item| item.each("token")) {
        if let Some((_, first)) = seen.iter().find(|(name, _)| *name == token.key) {
            problems.push(
                problem(&codes::DEFINED_TWICE, &token.name_at, format!("two issuers have a token `{}`", token.key))
                    .also((*first).clone(), "first here")
                    .help("`bearer` names a token alone: give one of them another name"),
            );
        }
        seen.push((&token.key, &token.name_at));
    }
    study
        .each("credentials")
        .map(|item| Credentials {
            name: item.key.clone(),
            algorithm: item.text("algorithm").unwrap_or("RS256").to_owned(),
            issuer: item.text("issuer").unwrap_or_default().to_owned(),
            audience: item.text("audience").unwrap_or_default().to_owned(),
            subject: item.text("subject").unwrap_or("client-bench").to_owned(),
            tokens: item.each("token").map(|token| lower_token(token, problems)).collect(),
        })
        .collect()
}

fn lower_token(item: &Item, problems: &mut Problems) -> Token {
    let raw = item.text("raw").map(str::to_owned);
    if let (Some(_), Some((name, other))) = (&raw, item.settings.iter().find(|(name, _)| *name != "raw")) {
        problems.push(problem(
            &codes::CONTRADICTION,
            &other.at,
            format!("token `{}` is sent as it stands (`raw`), so `{name}` changes nothing", item.key),
        ));
    }
    Token {
        name: item.key.clone(),
        scope: item.text("scope").map(str::to_owned),
        expires_in_s: item.duration("expires").unwrap_or(7 * 86_400 * SECOND).div_euclid(SECOND),
        not_before_in_s: item.duration("not-before").map(|ns| ns.div_euclid(SECOND)),
        issuer: item.text("issuer").map(str::to_owned),
        audience: item.text("audience").map(str::to_owned),
        subject: item.text("subject").map(str::to_owned),
        algorithm: item.text("algorithm").map(str::to_owned),
        foreign_key: item.text("key") == Some("foreign"),
        raw,
    }
}

fn image(item: &Item, root: &str, problems: &mut Problems) -> Option<Image> {
    let node = item.child("image")?;
    let reference = node.args.first().and_then(Valued::text);
    let build = node.setting("build").map(|valued| &valued.value);
    match (reference, build) {
        (Some(_), Some(_)) => {
            problems.push(
                problem(
                    &codes::CANNOT_RUN,
                    &node.name_at,
                    format!("the image of {} is both pulled and built", item.described()),
                )
                .help("keep the reference, or `build=`"),
            );
            None
        }
        (None, None) => {
            if !node.broken {
                problems.push(
                    problem(
                        &codes::CANNOT_RUN,
                        &node.name_at,
                        format!("the image of {} has no source", item.described()),
                    )
                    .help("write `image \"nginx:1\"`, or `image build=\"candidates/app\"`"),
                );
            }
            None
        }
        (Some(reference), None) => {
            let source = ImageSource::Pull { reference: reference.to_owned() };
            Some(Image { hash: ContentHash::of(&source), source })
        }
        (None, Some(Value::Directory(directory))) => {
            let source = ImageSource::Build {
                context: relative(root, &directory.path),
                dockerfile: node.text("dockerfile").unwrap_or("Dockerfile").to_owned(),
                digest: directory.digest.clone(),
            };
            // The same files make the same image wherever they lie.
            let content = (node.text("dockerfile").unwrap_or("Dockerfile"), &directory.digest);
            Some(Image { hash: ContentHash::of(&content), source })
        }
        (None, Some(_)) => None,
    }
}

fn process(item: &Item, root: &str, problems: &mut Problems) -> Option<ProcessRun> {
    let node = item.child("process")?;
    let run = texts(&node.args);
    if run == ["builtin"] {
        if item.kind() == "probe" {
            return Some(ProcessRun::BuiltIn);
        }
        let message = format!("`builtin` is the probe inside `exp` itself; {} can't be it", item.described());
        problems.push(problem(&codes::CANNOT_RUN, &node.args[0].at, message).help("name the command that serves"));
        return None;
    }
    let (directory, digest) = match node.setting("in").map(|valued| &valued.value) {
        Some(Value::Directory(directory)) => (relative(root, &directory.path), directory.digest.clone()),
        _ => (".".to_owned(), String::new()),
    };
    Some(ProcessRun::Command(ProcessCommand {
        directory,
        digest,
        build: node.child("build").map(|build| texts(&build.args)).unwrap_or_default(),
        run,
        needs: node.child("needs").map(|needs| texts(&needs.args)).unwrap_or_default(),
    }))
}

fn ready(item: &Item) -> Ready {
    let node = item.child("ready");
    Ready {
        path: node.and_then(|node| node.text("GET")).unwrap_or("/").to_owned(),
        within_ns: node.and_then(|node| node.duration("within")).map_or(30 * SECOND as u64, i64::unsigned_abs),
    }
}

fn env(item: &Item) -> Vec<(String, Text)> {
    let Some(node) = item.child("env") else { return Vec::new() };
    node.free.iter().filter_map(|(name, valued)| Some((name.clone(), template(Some(valued))?))).collect()
}

fn port(item: &Item) -> u16 {
    item.integer("listen").and_then(|port| u16::try_from(port).ok()).unwrap_or(0)
}

fn tls(item: &Item, root: &str, problems: &mut Problems) -> Option<Tls> {
    let node = item.child("tls")?;
    let unchecked = node.setting("certificate").is_some();
    if let Some(valued) = node.setting("ca").filter(|_| unchecked) {
        problems.push(
            problem(
                &codes::CONTRADICTION,
                &valued.at,
                format!("the certificate of {} is not checked, so `ca` changes nothing", item.described()),
            )
            .help("remove `certificate=unchecked`, or `ca`"),
        );
    }
    let ca = sql_file(node.setting("ca"), root).map(|file| Certificates { path: file.path, text: file.text });
    if let (Some(ca), Some(valued)) = (&ca, node.setting("ca"))
        && !ca.text.contains("-----BEGIN CERTIFICATE-----")
    {
        let message = format!("`{}` holds no certificate in PEM", ca.path);
        problems.push(
            problem(&codes::MALFORMED, &valued.at, message)
                .help("a PEM certificate begins with `-----BEGIN CERTIFICATE-----`"),
        );
    }
    Some(Tls { ca, name: node.text("name").map(str::to_owned), unchecked })
}

fn runnable(item: &Item, problems: &mut Problems) {
    if item.child("image").is_none() && item.child("process").is_none() && !item.broken {
        problems.push(
            problem(
                &codes::CANNOT_RUN,
                &item.name_at,
                format!("{} has neither an image nor a process", item.described()),
            )
            .help("write `image build=\"candidates/app\"`, or `process \"./server\" in=\"candidates/app\"`"),
        );
    }
}

fn check_ready(item: &Item, problems: &mut Problems) {
    if let Some(valued) = item.child("ready").and_then(|node| node.setting("GET"))
        && let Some(path) = valued.text()
        && !path.starts_with('/')
    {
        let message = format!("the path `{path}` does not start with `/`");
        problems.push(problem(&codes::MALFORMED, &valued.at, message));
    }
}

/// The candidates, in the order of the study.
pub fn candidates(study: &Study, root: &str, problems: &mut Problems) -> Vec<Candidate> {
    study
        .each("candidate")
        .map(|item| {
            runnable(item, problems);
            check_ready(item, problems);
            Candidate {
                name: item.key.clone(),
                label: item.text("label").unwrap_or(&item.key).to_owned(),
                image: image(item, root, problems),
                process: process(item, root, problems),
                port: port(item),
                tls: tls(item, root, problems),
                memory_bytes: item.bytes("memory"),
                open_files: item.integer("open-files").and_then(|files| u64::try_from(files).ok()).unwrap_or(65_536),
                env: env(item),
                ready: ready(item),
            }
        })
        .collect()
}

/// The probe, if the study has one.
pub fn probe(study: &Study, root: &str, problems: &mut Problems) -> Option<Probe> {
    let item = only(study, "probe", problems)?;
    runnable(item, problems);
    check_ready(item, problems);
    Some(Probe {
        name: item.key.clone(),
        image: image(item, root, problems),
        process: process(item, root, problems),
        port: port(item),
        tls: tls(item, root, problems),
        env: env(item),
        ready: ready(item),
    })
}

/// The only node of a kind that a study has at most once.
fn only<'a>(study: &'a Study, kind: &'a str, problems: &mut Problems) -> Option<&'a Item> {
    let mut items = study.each(kind);
    let first = items.next()?;
    if let Some(second) = items.next() {
        problems.push(
            problem(&codes::DEFINED_TWICE, &second.name_at, format!("a study has one {kind}, and this is another"))
                .also(first.name_at.clone(), "first here"),
        );
    }
    Some(first)
}

/// The database, if the study has one.
pub fn database(study: &Study, root: &str, problems: &mut Problems) -> Option<Database> {
    let item = only(study, "database", problems)?;
    let image = image(item, root, problems);
    let settings = item
        .child("set")
        .map(|set| {
            set.free.iter().filter_map(|(name, valued)| Some((name.clone(), valued.text()?.to_owned()))).collect()
        })
        .unwrap_or_default();
    let template = item.child("template");
    let files: Vec<SqlFile> = template
        .map(|template| template.each("sql").filter_map(|sql| sql_file(sql.args.first(), root)).collect())
        .unwrap_or_default();
    let holds: Vec<Table> = template
        .map(|template| {
            template
                .each("holds")
                .map(|holds| Table {
                    table: holds.text("table").unwrap_or_default().to_owned(),
                    rows: holds.integer("rows").and_then(|rows| u64::try_from(rows).ok()).unwrap_or(0),
                })
                .collect()
        })
        .unwrap_or_default();
    let each = item.child("each");
    let checkpoint = each.and_then(|each| each.child("checkpoint"));
    let each_cell = CellDatabase {
        clone: each.is_some_and(|each| each.child("clone").is_some()),
        prewarm: each.and_then(|each| each.child("prewarm")).map(|node| texts(&node.args)).unwrap_or_default(),
        checkpoint: checkpoint.is_some(),
        settle_writeback: checkpoint.is_some_and(|node| node.setting("settled").is_some()),
    };
    let texts: Vec<&str> = files.iter().map(|file| file.text.as_str()).collect();
    let template_hash = ContentHash::of(&(&item.key, image.as_ref().map(|image| &image.hash), &texts, &holds));
    Some(Database {
        name: item.key.clone(),
        image,
        memory_bytes: item.bytes("memory"),
        settings,
        template: files,
        holds,
        each_cell,
        template_hash,
    })
}

/// A file of SQL.
pub fn sql_file(valued: Option<&Valued>, root: &str) -> Option<SqlFile> {
    match valued.map(|valued| &valued.value) {
        Some(Value::File { id, text }) => Some(SqlFile { path: relative(root, id.as_str()), text: text.to_string() }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::relative;

    #[test]
    fn paths_become_relative_to_the_plan() {
        for (root, path, expected) in [
            ("experiments", "experiments/sql/seed.sql", "sql/seed.sql"),
            ("experiments", "shared/seed.sql", "../shared/seed.sql"),
            ("a/b", "a/c/x.sql", "../c/x.sql"),
            ("", "sql/seed.sql", "sql/seed.sql"),
            ("experiments", "experiments", "."),
            ("", "./sql/seed.sql", "sql/seed.sql"),
            ("./experiments", "./experiments/sql/seed.sql", "sql/seed.sql"),
            ("/home/me/study", "/home/me/study/sql/seed.sql", "sql/seed.sql"),
        ] {
            assert_eq!(relative(root, path), expected, "{path} from {root}");
        }
    }
}
