//! `exp clean`: what killed runs left behind. (Every command removes that first; this one says so.)

use crate::args::Clean;
use crate::exit::Exit;
use crate::terminal;

/// Says that nothing is left, and removes built images if asked.
pub fn run(clean: &Clean) -> Exit {
    // `main` has swept already and printed what went.
    let alive = crate::leftovers::live_runs();
    if !alive.is_empty() {
        let names: Vec<String> = alive.iter().map(ToString::to_string).collect();
        terminal::note(&format!("still running, and left alone: {}", names.join(", ")));
    }
    if clean.images {
        let removed = engine::docker::Docker::connect().and_then(|docker| docker.remove_images());
        match removed {
            Ok(lines) if lines.is_empty() => terminal::out("no images of ours\n"),
            Ok(lines) => lines.iter().for_each(|line| terminal::out(&format!("{line}\n"))),
            Err(error) => {
                terminal::note(&error.failure.what);
                return Exit::Environment;
            }
        }
    }
    terminal::out("nothing of ours is left behind\n");
    Exit::Ok
}
