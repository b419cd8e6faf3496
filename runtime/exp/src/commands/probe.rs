//! `exp probe`: the built-in server without application code, for generator probes where no other is at hand.

use std::net::{Ipv4Addr, SocketAddr};

use load::noop::{Options, Server};

use crate::args::Probe;
use crate::exit::Exit;
use crate::terminal;

/// Serves until it is ended. Port and threads come from the options, else from `PORT` and `CORES`.
pub fn run(probe: &Probe) -> Exit {
    let from_environment = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u32>().ok());
    let port = probe.port.or_else(|| from_environment("PORT").and_then(|port| u16::try_from(port).ok()));
    let threads = probe.threads.or_else(|| from_environment("CORES")).unwrap_or(1);
    let Some(port) = port else {
        terminal::note("exp probe: no port: give --port, or PORT in the environment");
        return Exit::Usage;
    };
    let options = Options { listen: SocketAddr::from((Ipv4Addr::LOCALHOST, port)), threads, ..Options::default() };
    match Server::start(&options).and_then(Server::wait) {
        Ok(()) => Exit::Ok,
        Err(error) => {
            terminal::note(&format!("exp probe: can't listen on 127.0.0.1:{port}: {error}"));
            Exit::Environment
        }
    }
}
