//! Which candidates can be measured here, asked before anything starts.

use std::path::Path;

use plan::{Candidate, ContentHash, Image, ImageSource, Plan, ProcessRun};

use crate::backend::{Backend, blocking};
use crate::docker::Docker;
use crate::error::{Class, StepError};
use crate::process::Process;
use crate::run::NotMeasured;

/// The candidates that can't be measured on this backend, with the reason and the command that mends it.
///
/// # Errors
/// When the engine stops answering, or the study's own files can't be read.
pub async fn check(plan: &Plan, backend: &Backend, root: &Path) -> Result<Vec<NotMeasured>, StepError> {
    let mut not_measured = Vec::new();
    for candidate in &plan.candidates {
        let problem = match backend {
            Backend::Docker(docker) => on_docker(candidate, docker.clone(), root).await?,
            Backend::Process => as_process(candidate, root)?,
        };
        if let Some((why, mend)) = problem {
            not_measured.push(NotMeasured { candidate: candidate.name.clone(), why, mend });
        }
    }
    Ok(not_measured)
}

type Problem = Option<(String, String)>;

async fn on_docker(candidate: &Candidate, docker: Docker, root: &Path) -> Result<Problem, StepError> {
    let Some(image) = candidate.image.clone() else {
        let why = "the study declares no image for it".to_owned();
        return Ok(Some((why, "add `image build=\"…\"` to the candidate, or run with --backend process".to_owned())));
    };
    let wanted = match &image.source {
        ImageSource::Pull { reference } => vec![reference.clone()],
        ImageSource::Build { context, dockerfile, .. } => {
            let path = root.join(context).join(dockerfile);
            let text = std::fs::read_to_string(&path).map_err(|error| {
                StepError::step(
                    format!("{} can't be read: {error}", path.display()),
                    "an image is built from it",
                    "check the path in the study",
                )
            })?;
            base_images(&text)
        }
    };
    let root = root.to_owned();
    let looked = blocking(move || {
        for reference in wanted {
            // An image that was built before needs its base no more, but then its base is there too.
            let base =
                Image { hash: ContentHash::of_bytes(reference.as_bytes()), source: ImageSource::Pull { reference } };
            docker.image(&base, &root, |_| {})?;
        }
        Ok(())
    })
    .await;
    match looked {
        Ok(()) => Ok(None),
        Err(error) if error.class == Class::Environment => {
            Ok(Some((format!("{} ({})", error.failure.what, root_cause(&error.failure.why)), error.failure.next)))
        }
        Err(error) => Err(error),
    }
}

/// The last link of a chain of causes, as engines write them: `Get …: dial tcp: lookup …: no such host`.
fn root_cause(why: &str) -> &str {
    why.rsplit(": ").next().map(str::trim).filter(|cause| !cause.is_empty()).unwrap_or(why)
}

fn as_process(candidate: &Candidate, root: &Path) -> Result<Problem, StepError> {
    match &candidate.process {
        None => Ok(Some((
            "the study does not say how it runs as a process".to_owned(),
            "start a Docker Engine (tests/docker-engine.sh), then run the same command".to_owned(),
        ))),
        Some(ProcessRun::BuiltIn) => Ok(None),
        Some(ProcessRun::Command(command)) => {
            // Only asked for programs: nothing is written below the scratch directory.
            let process = Process::new(root, &std::env::temp_dir())?;
            match process.require_programs(command) {
                Ok(()) => Ok(None),
                Err(error) => Ok(Some((error.failure.what, error.failure.next))),
            }
        }
    }
}

/// The images that a Dockerfile starts from, its own earlier stages and `scratch` left out.
fn base_images(dockerfile: &str) -> Vec<String> {
    let mut stages: Vec<String> = Vec::new();
    let mut bases: Vec<String> = Vec::new();
    for line in dockerfile.lines() {
        let mut words = line.split_ascii_whitespace();
        if !words.next().is_some_and(|word| word.eq_ignore_ascii_case("FROM")) {
            continue;
        }
        let words: Vec<&str> = words.filter(|word| !word.starts_with("--")).collect();
        let Some(&base) = words.first() else { continue };
        let own = stages.iter().any(|stage| stage.eq_ignore_ascii_case(base));
        // A base behind an ARG is only known to the build.
        if !own && base != "scratch" && !base.contains('$') && !bases.iter().any(|known| known == base) {
            bases.push(base.to_owned());
        }
        if let [_, keyword, name] = words[..]
            && keyword.eq_ignore_ascii_case("AS")
        {
            stages.push(name.to_owned());
        }
    }
    bases
}

#[cfg(test)]
mod tests {
    use super::{base_images, root_cause};

    #[test]
    fn of_a_chain_of_causes_the_last_is_told() {
        assert_eq!(root_cause("Get \"https://x/v2/\": dial tcp: lookup x: no such host"), "no such host");
        assert_eq!(root_cause("pull access denied"), "pull access denied");
        assert_eq!(root_cause("odd: "), "odd: ");
    }

    #[test]
    fn bases_are_found_and_stages_are_not() {
        let text = "# FROM no\nARG V=1\nFROM --platform=linux/amd64 debian:bookworm-slim AS build\nRUN true\nfrom build as test\nFROM scratch\nFROM go:${V}\nFROM debian:bookworm-slim\n";
        assert_eq!(base_images(text), ["debian:bookworm-slim"]);
        assert_eq!(base_images("FROM dunglas/frankenphp\n"), ["dunglas/frankenphp"]);
        assert_eq!(base_images(""), Vec::<String>::new());
    }
}
