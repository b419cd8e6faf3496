//! A service of known capacity that can be told to be at fault: what the tests measure.
//!
//! Eight workers, each held for 4 ms a request: 2,000 requests per second, whatever the CPU does. `GET /healthz` answers
//! at once; `GET /items/N` answers `{"id":N}`. `FAULT` chooses what is wrong: `none`, `errors` (every hundredth answer is
//! a 500), `body` (another id), `never-ready`, `dies` (after 1,000 requests), `tells` (answers with `TOKEN` in every
//! hundredth body), `tells-at-once` (in every body), `tells-and-dies` (prints it as its last word).

use std::net::SocketAddr;
use std::process::ExitCode;

use load::peer::{Peer, Reply};

const WORKERS: usize = 8;
const BUSY_NS: u64 = 4_000_000;

fn main() -> ExitCode {
    let port: u16 = std::env::var("PORT").ok().and_then(|port| port.parse().ok()).unwrap_or(18_080);
    let fault = std::env::var("FAULT").unwrap_or_else(|_| "none".to_owned());
    eprintln!("faulty: listening on 127.0.0.1:{port}, fault {fault}");
    let token = std::env::var("TOKEN").unwrap_or_default();
    if fault.starts_with("tells") {
        eprintln!("faulty: the token is {token}");
    }
    let mut served = 0u64;
    let peer = Peer::listen(SocketAddr::from(([127, 0, 0, 1], port)), WORKERS, move |asked| {
        if asked.path == "/healthz" {
            let (status, body) = if fault == "never-ready" { (503, "{}") } else { (200, "{\"ok\":true}") };
            return Reply::json(status, body);
        }
        let Some(id) = asked.path.strip_prefix("/items/").and_then(|id| id.parse::<u64>().ok()) else {
            return Reply::json(404, "{\"error\":\"not_found\"}");
        };
        served += 1;
        let reply = match fault.as_str() {
            "errors" if served.is_multiple_of(100) => Reply::json(500, "{\"error\":\"server_error\"}"),
            "tells-and-dies" if served > 1_000 => {
                eprintln!("faulty: died with the token {token}");
                std::process::exit(4);
            }
            "tells" | "tells-at-once" if served.is_multiple_of(100) || fault == "tells-at-once" => {
                Reply::json(500, &format!("{{\"id\":{id},\"token\":\"{token}\"}}"))
            }
            "body" => Reply::json(200, &format!("{{\"id\":{}}}", id + 1)),
            "dies" if served > 1_000 => {
                eprintln!("faulty: out of cheese after {served} requests");
                std::process::exit(3);
            }
            _ => Reply::json(200, &format!("{{\"id\":{id}}}")),
        };
        reply.after(BUSY_NS)
    });
    match peer.and_then(Peer::wait) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("faulty: {error}");
            ExitCode::FAILURE
        }
    }
}
