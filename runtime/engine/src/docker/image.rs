//! Images: built from a directory or pulled, once, and found again by what they were made from.

use std::collections::HashMap;
use std::path::Path;

use bollard::query_parameters::{BuildImageOptions, CreateImageOptions};
use futures_util::StreamExt;
use plan::{ContentHash, Image, ImageSource};

use super::connection::{Docker, failed, is_status};
use super::context;
use crate::error::StepError;
use crate::host::{IMAGE_LABEL, Progress};

/// Lines of output that a failed build is told with.
const LAST_LINES: usize = 20;

/// An image that is on the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedImage {
    /// What containers are started from: `exp/go:3f9a…`, or the reference that the study names.
    pub reference: String,
    /// Whether it was there before.
    pub reused: bool,
    /// The engine's id of it, `sha256:…`.
    pub id: String,
}

impl Docker {
    /// Makes sure that an image is on the engine: builds or pulls it unless it is there. `root` is the directory that
    /// a build's context is relative to.
    ///
    /// A base image or reference that can't be pulled is an environment failure whose next step is the command that
    /// mends it, and what needs the image can't be measured; a build that fails is a failed step with the last lines of
    /// its output.
    pub fn image(
        &self,
        image: &Image,
        root: &Path,
        progress: impl FnMut(Progress),
    ) -> Result<PreparedImage, StepError> {
        let reference = reference(image);
        if let Some(id) = self.image_id(&reference)? {
            return Ok(PreparedImage { reference, reused: true, id });
        }
        match &image.source {
            ImageSource::Pull { reference } => self.pull(reference, progress)?,
            ImageSource::Build { context, dockerfile, .. } => {
                self.build(&reference, &image.hash, &root.join(context), dockerfile, progress)?;
            }
        }
        let id = self.image_id(&reference)?.ok_or_else(|| {
            StepError::environment(
                format!("the image {reference} is gone right after it was made"),
                "somebody else removes images on this Docker Engine",
                "Run the study again when nobody does.",
            )
        })?;
        Ok(PreparedImage { reference, reused: false, id })
    }

    /// The id of an image, or `None` where the engine has none of this name.
    pub fn image_id(&self, reference: &str) -> Result<Option<String>, StepError> {
        let (client, name) = (self.client.clone(), reference.to_owned());
        match self.try_ask(async move { client.inspect_image(&name).await }) {
            Ok(found) => Ok(found.id),
            Err(error) if is_status(&error, 404) => Ok(None),
            Err(error) => Err(failed(&format!("the image {reference} can't be looked up"), &error)),
        }
    }

    fn pull(&self, reference: &str, mut progress: impl FnMut(Progress)) -> Result<(), StepError> {
        let (client, from) = (self.client.clone(), with_tag(reference));
        let what = format!("image {reference} can't be pulled");
        let pulled: Result<(), bollard::errors::Error> = self.follow(
            &what,
            None,
            |news| async move {
                let options = CreateImageOptions { from_image: Some(from), ..CreateImageOptions::default() };
                let mut steps = client.create_image(Some(options), None, None);
                while let Some(step) = steps.next().await {
                    let step = step?;
                    let layer = step.id.unwrap_or_default();
                    let detail = step.progress_detail.unwrap_or_default();
                    let number = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok()).unwrap_or(0);
                    let what = format!("{} {layer}", step.status.unwrap_or_default()).trim().to_owned();
                    // Nobody listens when the wait was given up; this task ends with it.
                    let _unheard = news.send(Progress { what, done: number(detail.current), of: number(detail.total) });
                }
                Ok(())
            },
            &mut progress,
        )?;
        pulled.map_err(|error| cannot_pull(reference, &told(&error)))
    }

    fn build(
        &self,
        tag: &str,
        hash: &ContentHash,
        directory: &Path,
        dockerfile: &str,
        mut progress: impl FnMut(Progress),
    ) -> Result<(), StepError> {
        let what = format!("the image of {} can't be built", directory.display());
        let context = context::archive(directory, dockerfile).map_err(|error| {
            StepError::step(
                &what,
                format!("its files can't be read: {error}"),
                "Make them readable, and run the study again.",
            )
        })?;
        let options = BuildImageOptions {
            dockerfile: dockerfile.to_owned(),
            t: Some(tag.to_owned()),
            rm: true,
            forcerm: true,
            // As containers of a study: a build then reaches what the host reaches.
            networkmode: Some("host".to_owned()),
            labels: Some(HashMap::from([(IMAGE_LABEL.to_owned(), hash.to_string())])),
            buildargs: Some(proxies()),
            ..BuildImageOptions::default()
        };
        let client = self.client.clone();
        let mut log = BuildLog::default();
        let built: Result<(), bollard::errors::Error> = self.follow(
            &what,
            None,
            |news| async move {
                let mut steps = client.build_image(options, None, Some(bollard::body_full(context.into())));
                while let Some(step) = steps.next().await {
                    let step = step?;
                    let text = step.stream.or(step.status).unwrap_or_default();
                    let _unheard = news.send(text);
                }
                Ok(())
            },
            |text: String| {
                for line in log.take(&text) {
                    progress(line);
                }
            },
        )?;
        built.map_err(|error| log.failure(&what, &told(&error)))
    }
}

/// The name of an image: the study's own for one that is pulled, else the directory's and the hash of what it is made from.
fn reference(image: &Image) -> String {
    match &image.source {
        ImageSource::Pull { reference } => reference.clone(),
        ImageSource::Build { context, .. } => format!("exp/{}:{}", repository(context), image.hash.short()),
    }
}

/// The last directory of a context, as far as a repository's name may hold it: small letters, digits and single
/// hyphens between them.
fn repository(context: &str) -> String {
    let last = context.trim_end_matches('/').rsplit('/').next().unwrap_or("");
    let plain: String = last.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let parts: Vec<&str> = plain.split('-').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "image".to_owned() } else { parts.join("-") }
}

/// A reference without a tag or digest means `latest`; the API would take it for all tags.
fn with_tag(reference: &str) -> String {
    let name = reference.rsplit('/').next().unwrap_or(reference);
    if name.contains(':') || name.contains('@') { reference.to_owned() } else { format!("{reference}:latest") }
}

/// Proxies of this host: Docker passes them to every step, knows them without a declaration, and leaves them out of its
/// cache's keys and the image.
fn proxies() -> HashMap<String, String> {
    ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"]
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)))
        .collect()
}

fn cannot_pull(reference: &str, why: &str) -> StepError {
    let mend = if matches!(reference, "debian:bookworm-slim" | "docker.io/library/debian:bookworm-slim") {
        "experiments/base-image.sh".to_owned()
    } else {
        format!("docker pull {reference}")
    };
    StepError::environment(format!("image {reference} can't be pulled"), why, mend)
}

/// The engine's own words, without the client's around them.
fn told(error: &bollard::errors::Error) -> String {
    match error {
        bollard::errors::Error::DockerResponseServerError { message, .. } => message.clone(),
        bollard::errors::Error::DockerStreamError { error } => error.clone(),
        other => other.to_string(),
    }
}

/// What a build printed, as far as it is needed.
#[derive(Debug, Default)]
struct BuildLog {
    /// A line that is not complete yet.
    open: String,
    last: Vec<String>,
    /// The step that runs: `Step 3/9 : RUN go build`.
    step: String,
    done: u64,
    of: u64,
}

impl BuildLog {
    /// Takes a piece of output and gives the progress that it tells.
    fn take(&mut self, text: &str) -> Vec<Progress> {
        self.open.push_str(text);
        let mut told = Vec::new();
        while let Some(end) = self.open.find(['\n', '\r']) {
            let line: String = self.open.drain(..=end).collect();
            let line = line.trim_end();
            if line.is_empty() {
                continue;
            }
            self.keep(line);
            if let Some((done, of)) = step(line) {
                (self.done, self.of) = (done, of);
                self.step = line.to_owned();
                told.push(Progress { what: self.step.clone(), done, of });
            }
        }
        told
    }

    /// Keeps a line, unless it is the engine's book-keeping, which would push out what the step itself said.
    fn keep(&mut self, line: &str) {
        if line.starts_with(" ---> ") || line.starts_with("Removing intermediate container ") {
            return;
        }
        if self.last.len() == LAST_LINES {
            self.last.remove(0);
        }
        self.last.push(line.to_owned());
    }

    /// The failure of the step that ran last.
    fn failure(mut self, what: &str, why: &str) -> StepError {
        let open = std::mem::take(&mut self.open);
        if !open.trim().is_empty() {
            self.keep(open.trim_end());
        }
        if let Some(base) = base_image(&self.step) {
            return cannot_pull(base, why).with_log(self.last);
        }
        let why = if self.step.is_empty() { why.to_owned() } else { format!("{} failed: {why}", self.step) };
        StepError::step(what, why, "Mend what the build's last lines say, and run the study again.").with_log(self.last)
    }
}

/// `Step 3/9 : …` → 3 of 9.
fn step(line: &str) -> Option<(u64, u64)> {
    let (numbers, _) = line.strip_prefix("Step ")?.split_once(" : ")?;
    let (done, of) = numbers.split_once('/')?;
    Some((done.parse().ok()?, of.parse().ok()?))
}

/// The image of a `FROM` step.
fn base_image(step: &str) -> Option<&str> {
    let (_, instruction) = step.split_once(" : ")?;
    let mut words = instruction.split_ascii_whitespace();
    words.next().filter(|word| word.eq_ignore_ascii_case("FROM"))?;
    words.find(|word| !word.starts_with("--"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Class;

    #[test]
    fn names_of_images_are_valid() {
        for (context, expected) in [
            ("candidates/go", "go"),
            ("candidates/PHP_FPM/", "php-fpm"),
            ("a/-x--y-", "x-y"),
            ("a/é", "image"),
            ("", "image"),
        ] {
            assert_eq!(repository(context), expected, "{context}");
        }
        for (reference, expected) in [
            ("postgres", "postgres:latest"),
            ("postgres:17", "postgres:17"),
            ("host:5000/a/b", "host:5000/a/b:latest"),
            ("a/b@sha256:00", "a/b@sha256:00"),
        ] {
            assert_eq!(with_tag(reference), expected);
        }
    }

    #[test]
    fn a_build_tells_its_steps_and_its_last_lines() {
        let mut log = BuildLog::default();
        let told = log.take("Step 1/3 : FROM debian:bookworm-slim\n ---> 2afed287f352\nStep 2/3 : RU");
        assert_eq!(told, [Progress { what: "Step 1/3 : FROM debian:bookworm-slim".into(), done: 1, of: 3 }]);
        let told = log.take("N make\nstep 9/9 : no\n");
        assert_eq!(told, [Progress { what: "Step 2/3 : RUN make".into(), done: 2, of: 3 }]);
        for line in 0..30 {
            assert_eq!(log.take(&format!("line {line}\r\n")), []);
        }
        log.take("make: *** Error 2");
        let error = log.failure("the image of x can't be built", "returned a non-zero code: 2");
        assert_eq!(error.class, Class::Step);
        assert_eq!(error.failure.why, "Step 2/3 : RUN make failed: returned a non-zero code: 2");
        assert_eq!(error.failure.log.len(), LAST_LINES);
        assert_eq!(error.failure.log.last().map(String::as_str), Some("make: *** Error 2"));
        assert_eq!(error.failure.log.first().map(String::as_str), Some("line 11"));
    }

    #[test]
    fn a_base_image_that_cannot_be_pulled_is_an_environment_failure_with_its_mending_command() {
        for (line, reference, mend) in [
            ("Step 1/3 : FROM debian:bookworm-slim\n", "debian:bookworm-slim", "experiments/base-image.sh"),
            (
                "Step 4/9 : FROM --platform=linux/amd64 dunglas/frankenphp AS run\n",
                "dunglas/frankenphp",
                "docker pull dunglas/frankenphp",
            ),
        ] {
            let mut log = BuildLog::default();
            log.take(line);
            let error = log.failure("no image", "no such host");
            assert_eq!(error.class, Class::Environment);
            assert_eq!(error.failure.what, format!("image {reference} can't be pulled"));
            assert_eq!((error.failure.why.as_str(), error.failure.next.as_str()), ("no such host", mend));
        }
    }
}
