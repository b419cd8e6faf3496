//! The Rust candidate: hyper, tokio-postgres and jsonwebtoken behind the contract of ../README.md.

mod events;
mod settings;
mod token;

use std::convert::Infallible;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_postgres::NoTls;

use crate::events::Api;
use crate::settings::Settings;
use crate::token::Verifier;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("rust: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let settings = Settings::read()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(settings.cores)
        .enable_all()
        .build()
        .map_err(|e| format!("the runtime can't start: {e}"))?;
    let end = runtime.block_on(serve(settings));
    runtime.shutdown_background();
    end
}

async fn serve(settings: Settings) -> Result<(), String> {
    let mut terminate = signal(SignalKind::terminate()).map_err(|e| format!("SIGTERM can't be watched: {e}"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|e| format!("SIGINT can't be watched: {e}"))?;
    let pool = tokio::select! {
        pool = open_pool(&settings) => pool?,
        _ = terminate.recv() => return Ok(()),
        _ = interrupt.recv() => return Ok(()),
    };
    let api = Arc::new(Api { pool, verifier: Verifier::new(&settings) });
    let listener =
        TcpListener::bind(settings.listen).await.map_err(|e| format!("can't listen on {}: {e}", settings.listen))?;
    let connections = GracefulShutdown::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(e) => {
                    // Out of descriptors, most likely: waiting is all that helps, and spinning would not.
                    eprintln!("rust: accept: {e}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        };
        // Without it a small answer could wait for the acknowledgement of the one before.
        if let Err(e) = stream.set_nodelay(true) {
            eprintln!("rust: TCP_NODELAY: {e}");
        }
        let api = Arc::clone(&api);
        let service = service_fn(move |request| {
            let api = Arc::clone(&api);
            async move { Ok::<_, Infallible>(api.answer(request).await) }
        });
        let connection = connections.watch(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        // A client that breaks off is its own affair and no line per connection.
        tokio::spawn(async move { connection.await.ok() });
    }
    drop(listener);
    // What runs may end; idle connections do not keep the process.
    tokio::time::timeout(Duration::from_secs(1), connections.shutdown()).await.ok();
    Ok(())
}

/// Opens every connection before the server listens, so that no measured request pays for one.
async fn open_pool(settings: &Settings) -> Result<Pool, String> {
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(settings.database.clone(), NoTls, recycling);
    let pool = Pool::builder(manager)
        .max_size(settings.pool)
        .build()
        .map_err(|e| format!("the database pool can't be made: {e}"))?;
    let mut held = Vec::with_capacity(settings.pool);
    while held.len() < settings.pool {
        let connection = pool
            .get()
            .await
            .map_err(|e| format!("connection {} of {} to the database failed: {e}", held.len() + 1, settings.pool))?;
        held.push(connection);
    }
    drop(held);
    Ok(pool)
}
