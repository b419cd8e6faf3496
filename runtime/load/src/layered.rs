//! The second engine: TLS, HTTP/2 and proxies, over hyper and rustls on current-thread runtimes of tokio.
//!
//! It takes the same job, keeps the same schedule, checks answers with the same validator and leaves the same account as the
//! engine on epoll. What it costs and blurs stands in `docs/generator.md`.

mod books;
mod crew;
mod exchange;
mod open;
mod stamped;
mod thread;
pub mod tls;

pub use crew::{Crew, Hand};
pub use tls::Fault;
