//! `exp load`: the generator, alone or driven over standard input.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use load::alone::{self, Options};

use crate::args::{Load, RunFormat};
use crate::exit::Exit;
use crate::terminal::{self, Colours};

/// Sends load to a URL and prints the account of it, or takes orders.
pub fn run(arguments: &Load, colours: Colours) -> Exit {
    if arguments.control {
        let code = load::control(std::io::stdin().lock(), std::io::stdout());
        return if code == 0 { Exit::Ok } else { Exit::Failed };
    }
    let options = match options(arguments) {
        Ok(options) => options,
        Err(why) => {
            terminal::error(&why, "", "exp load --help", colours);
            return Exit::Usage;
        }
    };
    let stop = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stop);
    let waiting = std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            if tokio::signal::ctrl_c().await.is_ok() {
                told.store(true, Ordering::Relaxed);
            }
        });
    });
    let result = alone::run(&options, &stop);
    drop(waiting);
    match result {
        Ok(summary) => {
            match arguments.format {
                RunFormat::Human => terminal::out(&format!("{summary}\n")),
                RunFormat::Json => match serde_json::to_string_pretty(&summary) {
                    Ok(text) => terminal::out(&format!("{text}\n")),
                    Err(error) => {
                        terminal::error(
                            &format!("the summary can't be written as JSON: {error}"),
                            "",
                            "report this",
                            colours,
                        );
                        return Exit::Defect;
                    }
                },
            }
            Exit::Ok
        }
        Err(_) if stop.load(Ordering::Relaxed) => {
            terminal::note("interrupted: a window that was cut off has no account");
            Exit::Interrupted
        }
        Err(error) => {
            terminal::error(&error.to_string(), "", "", colours);
            Exit::Failed
        }
    }
}

fn options(arguments: &Load) -> Result<Options, String> {
    let mut headers = Vec::new();
    for header in &arguments.headers {
        let (name, value) =
            header.split_once(':').ok_or_else(|| format!("`{header}` is no header; write `Name: value`"))?;
        headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    let cpus = match &arguments.cpus {
        Some(cpus) => cpus.parse().map_err(|error| format!("`{cpus}` is no CPU set: {error}"))?,
        None => plan::CpuSet::default(),
    };
    if arguments.rate.is_some_and(|rate| !(rate.is_finite() && rate > 0.0)) {
        return Err("the rate must be a number above 0".to_owned());
    }
    Ok(Options {
        url: arguments.url.clone().unwrap_or_default(),
        method: arguments.method.to_uppercase(),
        headers,
        body: arguments.body.clone(),
        expect: arguments.expect.clone(),
        connections: arguments.connections,
        rate: arguments.rate,
        warm_up_ns: duration(&arguments.warm_up)?,
        window_ns: duration(&arguments.duration)?,
        timeout_ns: duration(&arguments.timeout)?,
        threads: arguments.threads,
        kernel_time: arguments.kernel_time,
        cpus,
        ..Options::default()
    })
}

/// A duration as the language writes it, in nanoseconds.
fn duration(text: &str) -> Result<u64, String> {
    analysis::value::units::duration(text)
        .ok()
        .and_then(|ns| u64::try_from(ns).ok())
        .ok_or_else(|| format!("`{text}` is no duration; write 10s, 250ms or 1m30s"))
}
