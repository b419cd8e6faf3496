//! Removes what runs left on an engine: containers, networks and volumes with our label, and nothing else.

use std::collections::HashMap;

use bollard::query_parameters::{
    ListContainersOptions, ListImagesOptions, ListNetworksOptions, ListVolumesOptions, RemoveImageOptions,
    RemoveVolumeOptions,
};
use journal::RunId;
use plan::ContentHash;

use super::connection::{Docker, failed, is_status};
use crate::error::StepError;
use crate::host::{IMAGE_LABEL, RUN_LABEL};

impl Docker {
    /// Removes containers, networks and volumes of this run, or of every run when there is none, but for the runs to
    /// keep; and says which. Images stay: they are a cache.
    ///
    /// Goes on after a failure, so that one thing that is stuck keeps nothing else; then the first failure is told.
    pub fn clean(&self, run: Option<&RunId>, keep: &[RunId]) -> Result<Vec<String>, StepError> {
        let ours = |labels: Option<&HashMap<String, String>>| {
            labels
                .and_then(|labels| labels.get(RUN_LABEL))
                .is_some_and(|id| run.is_none_or(|run| run.0 == *id) && keep.iter().all(|kept| kept.0 != *id))
        };
        // The engine filters by the label's presence; whose it is, is checked here.
        let filter = || Some(HashMap::from([("label".to_owned(), vec![RUN_LABEL.to_owned()])]));
        let mut removed = Vec::new();
        let mut problem = None;
        let mut note = |what: String, result: Result<(), StepError>| match result {
            Ok(()) => removed.push(what),
            Err(error) => problem = problem.take().or(Some(error)),
        };

        let client = self.client.clone();
        let options = ListContainersOptions { all: true, filters: filter(), ..ListContainersOptions::default() };
        let containers =
            self.ask("containers can't be listed", async move { client.list_containers(Some(options)).await })?;
        for container in containers.iter().filter(|container| ours(container.labels.as_ref())) {
            let Some(id) = &container.id else { continue };
            let name = container.names.iter().flatten().next().map_or(id.as_str(), |name| name.trim_start_matches('/'));
            note(format!("container {name}"), self.remove(id));
        }

        let client = self.client.clone();
        let options = ListNetworksOptions { filters: filter() };
        let networks =
            self.ask("networks can't be listed", async move { client.list_networks(Some(options)).await })?;
        for network in networks.into_iter().filter(|network| ours(network.labels.as_ref())) {
            let Some(id) = network.id else { continue };
            let what = format!("network {}", network.name.unwrap_or_else(|| id.clone()));
            let client = self.client.clone();
            let result = gone(&what, self.try_ask(async move { client.remove_network(&id).await }));
            note(what, result);
        }

        let client = self.client.clone();
        let options = ListVolumesOptions { filters: filter() };
        let volumes = self.ask("volumes can't be listed", async move { client.list_volumes(Some(options)).await })?;
        for volume in volumes.volumes.into_iter().flatten().filter(|volume| ours(Some(&volume.labels))) {
            let what = format!("volume {}", volume.name);
            let (client, name) = (self.client.clone(), volume.name);
            let request = async move { client.remove_volume(&name, Some(RemoveVolumeOptions { force: false })).await };
            let result = gone(&what, self.try_ask(request));
            note(what, result);
        }
        problem.map_or(Ok(removed), Err)
    }
}

impl Docker {
    /// Removes every image that we built, and says which. A study builds them anew when it needs them.
    pub fn remove_images(&self) -> Result<Vec<String>, StepError> {
        self.remove_images_with(IMAGE_LABEL)
    }

    /// Removes the images that were built from what has this hash.
    pub fn remove_images_of(&self, hash: &ContentHash) -> Result<Vec<String>, StepError> {
        self.remove_images_with(&format!("{IMAGE_LABEL}={hash}"))
    }

    /// Goes on after a failure, as [`Docker::clean`] does.
    fn remove_images_with(&self, label: &str) -> Result<Vec<String>, StepError> {
        let filters = Some(HashMap::from([("label".to_owned(), vec![label.to_owned()])]));
        let client = self.client.clone();
        let options = ListImagesOptions { filters, ..ListImagesOptions::default() };
        let images = self.ask("images can't be listed", async move { client.list_images(Some(options)).await })?;
        let (mut removed, mut problem) = (Vec::new(), None);
        for image in images {
            // By name where there is one, since an id with two names can't be removed at once.
            let names = if image.repo_tags.is_empty() { vec![image.id] } else { image.repo_tags };
            for name in names {
                let what = format!("image {name}");
                let client = self.client.clone();
                let request = async move { client.remove_image(&name, None::<RemoveImageOptions>, None).await };
                match gone(&what, self.try_ask(request).map(drop)) {
                    Ok(()) => removed.push(what),
                    Err(error) => problem = problem.or(Some(error)),
                }
            }
        }
        problem.map_or(Ok(removed), Err)
    }
}

/// What is gone already needs no removal.
fn gone(what: &str, result: Result<(), bollard::errors::Error>) -> Result<(), StepError> {
    match result {
        Err(error) if !is_status(&error, 404) => Err(failed(&format!("the {what} can't be removed"), &error)),
        _ => Ok(()),
    }
}
