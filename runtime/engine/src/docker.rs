//! The Docker backend: images, containers, commands in containers, and cleaning up. The only user of the Docker API.
//!
//! Everything waits on the calling thread; the client's tasks run on one thread of their own, which sleeps while nothing
//! is asked, so that nothing of it runs beside a measurement.

mod attached;
mod clean;
mod command;
mod connection;
mod container;
mod context;
mod image;

pub(crate) use attached::Complaints;
pub use connection::Docker;
pub use container::Container;
pub use image::PreparedImage;
