//! Containers that serve.

use std::collections::HashMap;
use std::time::Duration;

use bollard::models::{ContainerCreateBody, HostConfig, Mount, MountType, MountVolumeOptions, ResourcesUlimits};
use bollard::query_parameters::{
    CreateContainerOptions, InspectContainerOptions, LogsOptions, RemoveContainerOptions, StartContainerOptions,
    StopContainerOptions,
};
use futures_util::StreamExt;

use super::connection::{Docker, failed, is_status};
use crate::error::StepError;
use crate::host::{CounterSource, Exit, RUN_LABEL, STOP_GRACE, Server, ServerSpec};
use crate::port;
use crate::sample::{clock, locate};

/// How long the engine may take to say what a container printed.
const LOGS: Duration = Duration::from_secs(10);

impl Docker {
    /// Starts a server. It is running when this returns, and may not be listening yet.
    ///
    /// It uses the host's network: nothing is between it and the generator. A leftover container of ours with the same
    /// name is removed; one of somebody else is an error.
    pub fn start(&self, spec: &ServerSpec, image: &str) -> Result<Container, StepError> {
        let name = container_name(spec);
        self.remove_leftover(&name)?;
        port::require_free(spec.port, &spec.name)?;
        let mut body = container(spec, image);
        body.cmd = (!spec.arguments.is_empty()).then(|| spec.arguments.clone());
        let mut container = self.create(spec, body)?;
        container.start()?;
        Ok(container)
    }

    /// Makes a container that is not started yet. From here on dropping the result removes it.
    pub(super) fn create(&self, spec: &ServerSpec, body: ContainerCreateBody) -> Result<Container, StepError> {
        let name = container_name(spec);
        let what = format!("the container {name} can't be made");
        let (client, options) = (
            self.client.clone(),
            CreateContainerOptions { name: Some(name.clone()), ..CreateContainerOptions::default() },
        );
        let made = self.ask(&what, async move { client.create_container(Some(options), body).await })?;
        Ok(Container {
            docker: self.clone(),
            name: spec.name.clone(),
            full_name: name,
            id: made.id,
            pid: 0,
            asked_ns: 0,
            fewer_files: engine_limit().filter(|limit| *limit < spec.open_files).map(|limit| {
                format!(
                    "{}: {limit} open files instead of {}, the Docker Engine's own limit",
                    spec.name, spec.open_files
                )
            }),
            exit: None,
            removed: false,
        })
    }

    /// Removes a container of ours with this name, left by a run that was killed.
    pub(super) fn remove_leftover(&self, name: &str) -> Result<(), StepError> {
        let (client, asked) = (self.client.clone(), name.to_owned());
        let found = match self
            .try_ask(async move { client.inspect_container(&asked, None::<InspectContainerOptions>).await })
        {
            Ok(found) => found,
            Err(error) if is_status(&error, 404) => return Ok(()),
            Err(error) => return Err(failed(&format!("the container {name} can't be looked up"), &error)),
        };
        let labels = found.config.and_then(|config| config.labels).unwrap_or_default();
        if !labels.contains_key(RUN_LABEL) {
            return Err(StepError::environment(
                format!("a container {name} is there already"),
                format!("it does not carry the label {RUN_LABEL}, so it is not one of exp's"),
                format!("Look what it is (`docker inspect {name}`), and rename or remove it."),
            ));
        }
        self.remove(name)
    }

    /// Kills and removes a container with its anonymous volumes. One that is not there is fine.
    pub(super) fn remove(&self, name: &str) -> Result<(), StepError> {
        let (client, asked) = (self.client.clone(), name.to_owned());
        let options = RemoveContainerOptions { force: true, v: true, ..RemoveContainerOptions::default() };
        match self.try_ask(async move { client.remove_container(&asked, Some(options)).await }) {
            Ok(()) => Ok(()),
            Err(error) if is_status(&error, 404) => Ok(()),
            // Somebody removes it already, perhaps the engine itself after an earlier request of ours.
            Err(error) if is_status(&error, 409) => self.wait_until_gone(name),
            Err(error) => Err(failed(&format!("the container {name} can't be removed"), &error)),
        }
    }

    fn wait_until_gone(&self, name: &str) -> Result<(), StepError> {
        const LOOKS: u32 = 50;
        for _ in 0..LOOKS {
            let (client, asked) = (self.client.clone(), name.to_owned());
            match self.try_ask(async move { client.inspect_container(&asked, None::<InspectContainerOptions>).await }) {
                Err(error) if is_status(&error, 404) => return Ok(()),
                Err(error) => return Err(failed(&format!("the container {name} can't be looked up"), &error)),
                Ok(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
        Err(StepError::environment(
            format!("the container {name} is still being removed after 5 s"),
            "the Docker Engine said that its removal was under way",
            format!("docker rm --force --volumes {name}"),
        ))
    }
}

/// `exp-<run>-<name>`.
pub(super) fn container_name(spec: &ServerSpec) -> String {
    format!("exp-{}-{}", spec.run, spec.name)
}

/// The container of a server, without its command.
pub(super) fn container(spec: &ServerSpec, image: &str) -> ContainerCreateBody {
    let labels = HashMap::from([(RUN_LABEL.to_owned(), spec.run.to_string())]);
    let bytes = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    let memory = spec.memory_bytes.map(bytes);
    let files = bytes(engine_limit().map_or(spec.open_files, |limit| spec.open_files.min(limit)));
    let volume = spec.data_volume.as_ref().map(|target| Mount {
        target: Some(target.clone()),
        source: Some(format!("{}-data", container_name(spec))),
        typ: Some(MountType::VOLUME),
        volume_options: Some(MountVolumeOptions { labels: Some(labels.clone()), ..MountVolumeOptions::default() }),
        ..Mount::default()
    });
    ContainerCreateBody {
        image: Some(image.to_owned()),
        env: Some(spec.env.iter().map(|(name, value)| format!("{name}={value}")).collect()),
        labels: Some(labels),
        host_config: Some(HostConfig {
            network_mode: Some("host".to_owned()),
            cpuset_cpus: Some(spec.cpus.to_string()),
            memory,
            // Memory and swap together: equal means no swap.
            memory_swap: memory,
            shm_size: spec.shared_memory_bytes.map(bytes),
            ulimits: Some(vec![ResourcesUlimits {
                name: Some("nofile".to_owned()),
                soft: Some(files),
                hard: Some(files),
            }]),
            mounts: volume.map(|volume| vec![volume]),
            // Reaps what servers leave unreaped, and passes signals on to programs that ignore them as process 1.
            init: Some(true),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    }
}

/// How many open files the engine of this machine may have: it can't give a container more, and refuses to start one
/// that asks for it. `None` where the engine is elsewhere or can't be looked at.
fn engine_limit() -> Option<u64> {
    let pid = ["/run/docker.pid", "/var/run/docker.pid"].iter().find_map(|path| std::fs::read_to_string(path).ok())?;
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", pid.trim())).ok()?;
    hard_limit_of_files(&limits)
}

/// The hard limit of open files in the text of `/proc/PID/limits`.
fn hard_limit_of_files(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// A container of ours.
#[derive(Debug)]
pub struct Container {
    pub(super) docker: Docker,
    name: String,
    full_name: String,
    pub(super) id: String,
    pid: u32,
    asked_ns: u64,
    /// Set where it has fewer open files than was asked for.
    fewer_files: Option<String>,
    exit: Option<Exit>,
    removed: bool,
}

impl Container {
    pub(super) fn start(&mut self) -> Result<(), StepError> {
        let (client, id) = (self.docker.client.clone(), self.id.clone());
        self.asked_ns = clock::monotonic_ns();
        self.docker.ask(&format!("the container {} can't be started", self.full_name), async move {
            client.start_container(&id, None::<StartContainerOptions>).await
        })?;
        self.inspect()?;
        Ok(())
    }

    /// The container's name on the engine: `exp-<run>-<name>`.
    pub fn full_name(&self) -> &str {
        &self.full_name
    }

    /// Looks at the container's state, and remembers its process and its end.
    pub(super) fn inspect(&mut self) -> Result<(), StepError> {
        let what = format!("the container {} can't be looked at", self.full_name);
        let (client, id) = (self.docker.client.clone(), self.id.clone());
        let found = self
            .docker
            .ask(&what, async move { client.inspect_container(&id, None::<InspectContainerOptions>).await })?;
        let state = found.state.unwrap_or_default();
        if let Some(pid) = state.pid.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0) {
            self.pid = pid;
        }
        let over = matches!(
            state.status,
            Some(bollard::models::ContainerStateStatusEnum::EXITED | bollard::models::ContainerStateStatusEnum::DEAD)
        );
        if over {
            self.exit =
                Some(Exit { code: state.exit_code.unwrap_or(-1), out_of_memory: state.oom_killed.unwrap_or(false) });
        }
        Ok(())
    }

    pub(super) fn exit(&self) -> Option<Exit> {
        self.exit
    }

    fn remove(&mut self) -> Result<(), StepError> {
        if !self.removed {
            self.docker.remove(&self.id)?;
            self.removed = true;
        }
        Ok(())
    }
}

impl Server for Container {
    fn name(&self) -> &str {
        &self.name
    }

    fn pid(&self) -> u32 {
        self.pid
    }

    fn asked_ns(&self) -> u64 {
        self.asked_ns
    }

    fn counters(&self) -> Result<CounterSource, StepError> {
        let no_counters = |why: String, next: &str| {
            StepError::environment(format!("the CPU and memory counters of {} can't be found", self.name), why, next)
        };
        let cgroup = format!("/proc/{}/cgroup", self.pid);
        let text = std::fs::read_to_string(&cgroup).map_err(|error| {
            no_counters(
                format!("{cgroup} can't be read: {error}"),
                "Look whether the container still runs (`docker ps --all`).",
            )
        })?;
        // Both drivers put the container's id into the group's name. Another process of that number means that the engine
        // is on another machine.
        if !text.contains(&self.id) {
            return Err(no_counters(
                format!("{cgroup} does not name the container, so the Docker Engine is not on this machine"),
                "Run exp where the Docker Engine is.",
            ));
        }
        locate::of_process(self.pid)
            .map_err(|why| no_counters(why, "Run exp where it sees the host's cgroups (not inside a container)."))
    }

    fn exited(&mut self) -> Result<Option<Exit>, StepError> {
        if self.exit.is_none() {
            self.inspect()?;
        }
        Ok(self.exit)
    }

    fn notes(&self) -> Vec<String> {
        self.fewer_files.iter().cloned().collect()
    }

    fn logs(&self, last: usize) -> Vec<String> {
        let (client, id) = (self.docker.client.clone(), self.id.clone());
        let options = LogsOptions { stdout: true, stderr: true, tail: last.to_string(), ..LogsOptions::default() };
        let what = format!("the output of {} can't be read", self.name);
        let mut text = Vec::new();
        let read: Result<Result<(), bollard::errors::Error>, StepError> = self.docker.follow(
            &what,
            Some(LOGS),
            |news| async move {
                let mut pieces = client.logs(&id, Some(options));
                while let Some(piece) = pieces.next().await {
                    let _unheard = news.send(piece?.into_bytes());
                }
                Ok(())
            },
            |piece| text.extend_from_slice(&piece),
        );
        let why = match read {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(error) => Some(error.failure.why),
        };
        let mut lines: Vec<String> = String::from_utf8_lossy(&text).lines().map(str::to_owned).collect();
        lines.drain(..lines.len().saturating_sub(last));
        lines.extend(why.map(|why| format!("({what}: {why})")));
        lines
    }

    fn stop(&mut self) -> Result<Exit, StepError> {
        if self.exited()?.is_none() {
            let (client, id) = (self.docker.client.clone(), self.id.clone());
            let grace = i32::try_from(STOP_GRACE.as_secs()).unwrap_or(i32::MAX);
            let options = StopContainerOptions { t: Some(grace), ..StopContainerOptions::default() };
            self.docker.ask(&format!("the container {} can't be stopped", self.full_name), async move {
                client.stop_container(&id, Some(options)).await
            })?;
            self.inspect()?;
        }
        let exit = self.exit.unwrap_or(Exit { code: -1, out_of_memory: false });
        self.remove()?;
        Ok(exit)
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // A failure can't be told from here; the label lets the next `exp` command find what is left.
        let _left = self.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::hard_limit_of_files;

    #[test]
    fn the_engines_limit_is_read_from_its_process() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
            Max processes             94000                94000                processes\n\
            Max open files            1024                 20000                files\n";
        assert_eq!(hard_limit_of_files(limits), Some(20_000));
        assert_eq!(
            hard_limit_of_files("Max open files            unlimited            unlimited            files"),
            None
        );
        assert_eq!(hard_limit_of_files(""), None);
    }
}
