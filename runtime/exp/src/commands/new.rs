//! `exp new`: a study to begin with, and a small service that it can measure at once.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use analysis::Host;
use plan::CpuSet;

use crate::args::{New, Template};
use crate::exit::Exit;
use crate::terminal::{self, Colours};

/// The file of every template that is the study.
const STUDY: &str = "study.kdl";
/// Stands for the study's name in a template.
const NAME: &str = "__NAME__";
/// Stands for the settings of `cpus` in a template.
const CPUS: &str = "__CPUS__";

impl Template {
    /// What it is for, in a line.
    fn about(self) -> &'static str {
        match self {
            Self::Http => "an HTTP service: its ceiling, and the rates that it carries",
            Self::HttpDatabase => "an HTTP service in front of PostgreSQL: reads and writes, rows counted",
        }
    }

    /// Its name on the command line.
    fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::HttpDatabase => "http-database",
        }
    }

    /// Its files: path, text, what it is.
    fn files(self) -> &'static [(&'static str, &'static str, &'static str)] {
        match self {
            Self::Http => &[
                (STUDY, include_str!("../../templates/http/study.kdl"), "the study: read it from the top"),
                (
                    "service/service.py",
                    include_str!("../../templates/http/service/service.py"),
                    "a small service; put yours in its place",
                ),
            ],
            Self::HttpDatabase => &[
                (STUDY, include_str!("../../templates/http-database/study.kdl"), "the study: read it from the top"),
                (
                    "service/service.py",
                    include_str!("../../templates/http-database/service/service.py"),
                    "a small service; put yours in its place",
                ),
                (
                    "service/postgres.py",
                    include_str!("../../templates/http-database/service/postgres.py"),
                    "its way to the database",
                ),
                ("sql/schema.sql", include_str!("../../templates/http-database/sql/schema.sql"), "the tables"),
                ("sql/seed.sql", include_str!("../../templates/http-database/sql/seed.sql"), "the rows in them"),
            ],
        }
    }
}

/// Every template, in the order of the list.
const ALL: [Template; 2] = [Template::Http, Template::HttpDatabase];

/// Writes a template's files into a new directory, or lists the templates.
pub fn run(new: &New, colours: Colours) -> Exit {
    if new.list {
        for template in ALL {
            terminal::out(&format!("{:<14} {}\n", template.name(), template.about()));
        }
        return Exit::Ok;
    }
    let directory = new.directory.clone().unwrap_or_else(|| PathBuf::from("first-study"));
    let Some(name) = study_name(&directory) else {
        let what = format!("`{}` is no name for a study", directory.display());
        terminal::error(&what, "a name has letters, digits, `-` and `_`", "exp new requests-per-core", colours);
        return Exit::Usage;
    };
    if let Some(found) = in_the_way(&directory) {
        let what = format!("{} is there already", found.display());
        terminal::error(&what, "`exp new` changes nothing that exists", "name another directory", colours);
        return Exit::Usage;
    }
    let cpus = cpus(&crate::host::read(false), new.template == Template::HttpDatabase);
    let mut said = format!("made {}/\n", directory.display());
    for (path, text, about) in new.template.files() {
        let text = text.replace(NAME, &name).replace(CPUS, &cpus);
        if let Err(error) = write_new(&directory.join(path), &text) {
            let what = format!("{} can't be written: {error}", directory.join(path).display());
            terminal::error(&what, "", "name a directory that you may write to", colours);
            return Exit::Environment;
        }
        said.push_str(&format!("  {path:<20} {about}\n"));
    }
    let study = directory.join(STUDY);
    let study = study.display();
    said.push_str(&format!("next:\n  exp check {study}\n  exp plan {study}\n  exp run {study} --profile smoke\n"));
    terminal::out(&said);
    Exit::Ok
}

/// The study's name: the directory's last part, where that is a name.
fn study_name(directory: &Path) -> Option<String> {
    let name = directory.file_name()?.to_str()?;
    let first = name.chars().next()?;
    let fits = first.is_ascii_alphabetic() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    fits.then(|| name.to_owned())
}

/// What stands where the directory should: anything but a directory with nothing in it.
fn in_the_way(directory: &Path) -> Option<PathBuf> {
    match fs::read_dir(directory) {
        Ok(mut entries) => entries.next().map(|entry| entry.map_or(directory.to_owned(), |entry| entry.path())),
        Err(_) if fs::symlink_metadata(directory).is_ok() => Some(directory.to_owned()),
        Err(_) => None,
    }
}

fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
}

/// The settings of `cpus` for this host: one hardware thread of a core each, so that no two roles share a core and `cores` counts
/// cores; all of one NUMA node where it has enough. Where cores are too few the roles behind the candidate share, and say so.
fn cpus(host: &Host, database: bool) -> String {
    let cores = cores(host);
    let roles = if database { 3 } else { 2 };
    let node = host.nodes.iter().map(|node| within(&cores, node)).find(|cores| cores.len() >= roles);
    let cores = node.unwrap_or(cores);
    let of = |at: usize| {
        let core = cores.get(at.min(cores.len().saturating_sub(1)));
        core.and_then(|core| core.cpus().first()).map_or("0".to_owned(), u32::to_string)
    };
    let (candidate, load) = (of(0), of(if database && cores.len() > 2 { 2 } else { 1 }));
    let database = if database { format!(" database=\"{}\"", of(1)) } else { String::new() };
    let sharing = if cores.len() < roles { " sharing=accepted" } else { "" };
    format!("candidate=\"{candidate}\"{database} load=\"{load}\"{sharing}")
}

/// The CPUs of each core.
fn cores(host: &Host) -> Vec<CpuSet> {
    let mut cores: Vec<CpuSet> = Vec::new();
    for &cpu in host.cpus.cpus() {
        let own = CpuSet::new([cpu]);
        let siblings = host.siblings.iter().find(|set| !set.shared_with(&own).is_empty());
        let core = siblings.map_or(own, |set| set.shared_with(&host.cpus));
        if !cores.contains(&core) {
            cores.push(core);
        }
    }
    cores
}

fn within(cores: &[CpuSet], node: &CpuSet) -> Vec<CpuSet> {
    cores.iter().filter(|core| core.missing_from(node).is_empty()).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::{Options, analyse, stdlib};
    use syntax::{MemorySources, SourceId};

    fn host(cpus: &str, siblings: &[&str], nodes: &[&str]) -> Host {
        let sets = |sets: &[&str]| sets.iter().map(|set| set.parse().expect("a CPU set")).collect();
        Host {
            cpus: cpus.parse().expect("a CPU set"),
            siblings: sets(siblings),
            nodes: sets(nodes),
            memory_bytes: Some(8 << 30),
            open_files: Some(1 << 20),
            ephemeral_ports: Some((32_768, 60_999)),
            ..Host::default()
        }
    }

    /// On one CPU, on two, on a laptop with hardware threads, on a server whose first node is small: every template is
    /// without any problem, in every profile, and laid out as `exp fmt` would.
    #[test]
    fn every_template_is_clean_on_every_host() {
        let hosts = [
            (host("0", &[], &["0"]), r#"candidate="0" database="0" load="0" sharing=accepted"#),
            (host("0-1", &[], &["0-1"]), r#"candidate="0" database="1" load="1" sharing=accepted"#),
            (host("0-3", &[], &[]), r#"candidate="0" database="1" load="2""#),
            (host("0-7", &["0,4", "1,5", "2,6", "3,7"], &["0-7"]), r#"candidate="0" database="1" load="2""#),
            (host("0-1", &["0-1"], &["0-1"]), r#"candidate="0" database="0" load="0" sharing=accepted"#),
            (host("0-5", &[], &["0-1", "2-5"]), r#"candidate="2" database="3" load="4""#),
        ];
        for (host, wanted) in hosts {
            assert_eq!(cpus(&host, true), wanted);
            for template in ALL {
                let mut sources = MemorySources::new().with_directory("service", "digest", 1);
                for (path, text, _) in template.files() {
                    let settings = cpus(&host, template == Template::HttpDatabase);
                    sources.set(path, text.replace(NAME, "some-name").replace(CPUS, &settings));
                }
                for (name, text) in stdlib::FILES {
                    sources.set(name, *text);
                }
                let id = SourceId::new(STUDY);
                for profile in [None, Some("smoke".to_owned())] {
                    let options = Options { profile, host: Some(host.clone()), ..Options::default() };
                    let analysed = analyse(&sources, &id, &options);
                    assert!(analysed.diagnostics.is_empty(), "{template:?} {host:?}: {:#?}", analysed.diagnostics);
                    assert!(analysed.plan.is_some());
                }
                let text = syntax::Sources::text(&sources, &id).expect("the study");
                assert_eq!(syntax::format(&text).as_deref(), Ok(&*text));
            }
        }
    }

    #[test]
    fn names_are_names() {
        for (directory, wanted) in [
            ("a-study", Some("a-study")),
            ("some/where/b_2", Some("b_2")),
            ("2b", None),
            ("two words", None),
            (".", None),
            ("é", None),
        ] {
            assert_eq!(study_name(Path::new(directory)).as_deref(), wanted, "{directory}");
        }
    }
}
