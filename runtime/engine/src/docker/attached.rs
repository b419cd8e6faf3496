//! Containers that are spoken to over their standard streams while they run: generators.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bollard::container::LogOutput;
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::AttachContainerOptions;
use futures_util::StreamExt;
use plan::{ContentHash, Image, ImageSource};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;

use super::connection::Docker;
use super::container::{Container, container, container_name};
use crate::error::StepError;
use crate::host::ServerSpec;

/// What somebody wrote on standard error: the last lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Complaints(Arc<Mutex<VecDeque<String>>>);

/// Lines that are kept.
const KEPT: usize = 20;

impl Complaints {
    pub(crate) fn add(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// A container with its standard streams. Dropping `orders` closes its standard input; `answers` ends with its output.
pub(crate) struct Attached {
    pub(crate) container: Container,
    pub(crate) orders: mpsc::UnboundedSender<Vec<u8>>,
    pub(crate) answers: mpsc::UnboundedReceiver<String>,
    pub(crate) complaints: Complaints,
}

impl Docker {
    /// Makes sure that an image with this `exp` is on the engine: `exp/generator`, named by the binary's own hash.
    ///
    /// # Errors
    /// When the binary can't be read or copied, or the image can't be built.
    pub fn generator_image(&self, exp: &Path, scratch: &Path) -> Result<String, StepError> {
        let no_image = |error: &std::io::Error| {
            StepError::environment(
                "the image of the generator can't be built",
                format!("{} can't be copied into {}: {error}", exp.display(), scratch.display()),
                "check that the binary still exists and that there is room on the disk",
            )
        };
        // The binary does not change while it runs; reading it once is enough.
        static HASH: OnceLock<ContentHash> = OnceLock::new();
        let hash = match HASH.get() {
            Some(hash) => hash.clone(),
            None => {
                let mut bytes = DOCKERFILE.as_bytes().to_vec();
                bytes.extend(std::fs::read(exp).map_err(|error| no_image(&error))?);
                HASH.get_or_init(|| ContentHash::of_bytes(&bytes)).clone()
            }
        };
        let image = Image {
            hash,
            source: ImageSource::Build {
                context: CONTEXT.to_owned(),
                dockerfile: "Dockerfile".to_owned(),
                digest: String::new(),
            },
        };
        let reference = format!("exp/{CONTEXT}:{}", image.hash.short());
        if self.image_id(&reference)?.is_none() {
            let context = scratch.join(CONTEXT);
            let copied = std::fs::create_dir_all(&context)
                .and_then(|()| std::fs::write(context.join("Dockerfile"), DOCKERFILE))
                .and_then(|()| std::fs::copy(exp, context.join("exp")));
            copied.map_err(|error| no_image(&error))?;
            self.image(&image, scratch, |_| {})?;
            // Only the engine needs it from here on; what stays goes with the scratch directory.
            let _ = std::fs::remove_dir_all(&context);
        }
        Ok(reference)
    }

    /// Starts a container with these arguments and holds on to its standard streams. It ends when its input does.
    ///
    /// # Errors
    /// When the engine refuses.
    pub(crate) fn start_attached(
        &self,
        spec: &ServerSpec,
        image: &str,
        arguments: &[&str],
    ) -> Result<Attached, StepError> {
        self.remove_leftover(&container_name(spec))?;
        let body = ContainerCreateBody {
            cmd: Some(arguments.iter().map(|argument| (*argument).to_owned()).collect()),
            attach_stdin: Some(true),
            open_stdin: Some(true),
            // Its input ends when we are gone, however we went.
            stdin_once: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            ..container(spec, image)
        };
        let mut container = self.create(spec, body)?;
        let what = format!("the container {} can't be spoken to", container.full_name());
        let (client, id) = (self.client.clone(), container.id.clone());
        let options = AttachContainerOptions {
            stream: true,
            stdin: true,
            stdout: true,
            stderr: true,
            ..AttachContainerOptions::default()
        };
        let attached = self.ask(&what, async move { client.attach_container(&id, Some(options)).await })?;
        container.start()?;

        let (orders, mut ordered) = mpsc::unbounded_channel::<Vec<u8>>();
        let (answer, answers) = mpsc::unbounded_channel();
        let complaints = Complaints::default();
        let mut input = attached.input;
        self.spawn(async move {
            while let Some(line) = ordered.recv().await {
                if input.write_all(&line).await.and(input.flush().await).is_err() {
                    return;
                }
            }
            let _closed = input.shutdown().await;
        });
        let (mut output, heard) = (attached.output, complaints.clone());
        self.spawn(async move {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            while let Some(piece) = output.next().await {
                match piece {
                    Ok(LogOutput::StdErr { message }) => lines(&mut err, &message, |line| heard.add(line)),
                    Ok(piece) => lines(&mut out, &piece.into_bytes(), |line| {
                        let _unheard = answer.send(line);
                    }),
                    Err(error) => {
                        heard.add(format!("(its output can't be read: {error})"));
                        return;
                    }
                }
            }
        });
        Ok(Attached { container, orders, answers, complaints })
    }
}

/// Directory of the generator's build context, and name of its image.
const CONTEXT: &str = "generator";
/// The same system as the images of a study.
const DOCKERFILE: &str = "FROM debian:bookworm-slim\nCOPY exp /exp\nENTRYPOINT [\"/exp\"]\n";

/// Adds a piece to what is there and hands out the complete lines.
fn lines(open: &mut Vec<u8>, piece: &[u8], mut each: impl FnMut(String)) {
    let mut rest = piece;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        open.extend_from_slice(&rest[..end]);
        each(String::from_utf8_lossy(open).into_owned());
        open.clear();
        rest = &rest[end + 1..];
    }
    open.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_put_together_from_any_pieces() {
        for size in 1..12 {
            let (mut open, mut heard) = (Vec::new(), Vec::new());
            for piece in "one\n\ntwö\nrest".as_bytes().chunks(size) {
                lines(&mut open, piece, |line| heard.push(line));
            }
            assert_eq!((heard, open), (vec!["one".to_owned(), String::new(), "twö".to_owned()], b"rest".to_vec()));
        }
    }

    #[test]
    fn the_last_complaints_are_kept() {
        let complaints = Complaints::default();
        (0..50).for_each(|number| complaints.add(number.to_string()));
        assert_eq!((complaints.lines().len(), complaints.lines()[0].as_str()), (KEPT, "30"));
    }
}
