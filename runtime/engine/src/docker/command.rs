//! Commands in containers: in one of their own, or beside a server.

use std::time::Duration;

use bollard::container::LogOutput;
use bollard::exec::{CreateExecOptions, StartExecResults};
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::AttachContainerOptions;
use futures_util::StreamExt;
use tokio::io::AsyncWriteExt;

use super::connection::{Docker, failed};
use super::container::{Container, container, container_name};
use crate::error::StepError;
use crate::host::{Exit, Output, Server, ServerSpec};

impl Docker {
    /// Runs a command to its end in a container of its own, on the CPUs and with the limits of `spec` (whose port and
    /// arguments are not used), in place of the image's entrypoint; then removes the container. `stdin` is fed to it.
    pub fn run_once(
        &self,
        spec: &ServerSpec,
        image: &str,
        command: &[String],
        stdin: Option<&[u8]>,
        within: Duration,
    ) -> Result<Output, StepError> {
        self.remove_leftover(&container_name(spec))?;
        let mut body = container(spec, image);
        body.entrypoint = Some(command.iter().take(1).cloned().collect());
        body.cmd = Some(command.iter().skip(1).cloned().collect());
        let body = ContainerCreateBody {
            attach_stdin: Some(stdin.is_some()),
            open_stdin: Some(stdin.is_some()),
            stdin_once: Some(stdin.is_some()),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            ..body
        };
        let mut made = self.create(spec, body)?;
        let what = format!("`{}` in {image} did not run to its end", command.join(" "));

        // Attached before it starts, so that not a byte of its output is missed.
        let (client, id) = (self.client.clone(), made.id.clone());
        let options = AttachContainerOptions {
            stream: true,
            stdin: stdin.is_some(),
            stdout: true,
            stderr: true,
            ..AttachContainerOptions::default()
        };
        let attached = self.ask(&what, async move { client.attach_container(&id, Some(options)).await })?;
        made.start()?;
        let fed = stdin.map(<[u8]>::to_vec);
        let (stdout, stderr) = self.collect(&what, within, attached.output, attached.input, fed)?;
        let exit = ended(&mut made, within, &what)?;
        made.stop()?;
        Ok(Output { exit, stdout, stderr })
    }

    /// Feeds a command and gathers what it prints until it closes both outputs.
    fn collect(
        &self,
        what: &str,
        within: Duration,
        mut output: std::pin::Pin<
            Box<dyn futures_util::Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>,
        >,
        mut input: std::pin::Pin<Box<dyn tokio::io::AsyncWrite + Send>>,
        fed: Option<Vec<u8>>,
    ) -> Result<(String, String), StepError> {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let read: Result<(), bollard::errors::Error> = self.follow(
            what,
            Some(within),
            |news| async move {
                let feed = async {
                    if let Some(fed) = fed {
                        // A command may end without reading all of it, which breaks the pipe and is its own affair.
                        let _unread = input.write_all(&fed).await;
                        let _closed = input.shutdown().await;
                    }
                };
                let read = async {
                    while let Some(piece) = output.next().await {
                        let _unheard = news.send(piece?);
                    }
                    Ok(())
                };
                futures_util::future::join(feed, read).await.1
            },
            |piece| match piece {
                LogOutput::StdErr { message } => stderr.extend_from_slice(&message),
                other => stdout.extend_from_slice(&other.into_bytes()),
            },
        )?;
        read.map_err(|error| failed(what, &error))?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok((text(stdout), text(stderr)))
    }
}

impl Container {
    /// Runs a command to its end inside this container, beside the server and on its CPUs.
    pub fn exec(&self, command: &[String], within: Duration) -> Result<Output, StepError> {
        let what = format!("`{}` in {} did not run to its end", command.join(" "), self.full_name());
        let (client, id) = (self.docker.client.clone(), self.id.clone());
        let options = CreateExecOptions {
            cmd: Some(command.to_vec()),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            ..CreateExecOptions::<String>::default()
        };
        let (exec, started) = self.docker.ask(&what, async move {
            let made = client.create_exec(&id, options).await?;
            let started = client.start_exec(&made.id, None).await?;
            Ok((made.id, started))
        })?;
        let StartExecResults::Attached { output, input } = started else {
            return Err(StepError::environment(what, "the Docker Engine did not attach to it", "Run the study again."));
        };
        let (stdout, stderr) = self.docker.collect(&what, within, output, input, None)?;
        let client = self.docker.client.clone();
        let ended = self.docker.ask(&what, async move { client.inspect_exec(&exec).await })?;
        Ok(Output { exit: Exit { code: ended.exit_code.unwrap_or(-1), out_of_memory: false }, stdout, stderr })
    }
}

/// The end of a container whose outputs are closed: it follows at once, unless it closed them itself.
fn ended(container: &mut Container, within: Duration, what: &str) -> Result<Exit, StepError> {
    let until = std::time::Instant::now() + within;
    loop {
        container.inspect()?;
        if let Some(exit) = container.exit() {
            return Ok(exit);
        }
        if std::time::Instant::now() > until {
            let why = format!("it closed its outputs and did not end within {:.0} s", within.as_secs_f64());
            return Err(StepError::step(what, why, "Look at the command; give it more time if it needs that."));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
