//! JSON over HTTP, for tests and for programs that call the same cloud.
//!
//! `/truth`, `/summary`, `/leaks`, `/settings` and `/things` look behind the curtain and are free of
//! latency and faults; `/cloud` is the cloud's own API with both. There is no authentication: it is
//! meant for the loopback address.

mod cloud;
mod curtain;

use std::future::Future;
use std::io;
use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use tokio::net::TcpListener;

use crate::cloud::Api;

/// Serves until `shutdown` completes.
///
/// # Errors
/// Whatever the listener says.
pub async fn serve(
    listener: TcpListener,
    api: Arc<Api>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    axum::serve(listener, routes(api)).with_graceful_shutdown(shutdown).await
}

fn routes(api: Arc<Api>) -> Router {
    Router::new()
        .route("/truth", get(curtain::truth))
        .route("/summary", get(curtain::summary))
        .route("/leaks", post(curtain::leaks))
        .route("/settings", get(curtain::settings).put(curtain::set_settings))
        .route("/things", get(curtain::things))
        .route("/things/{id}", get(curtain::thing).post(curtain::drift).delete(curtain::vanish))
        .route("/cloud/things", get(cloud::list).post(cloud::create))
        .route("/cloud/things/{id}", get(cloud::read).put(cloud::update).delete(cloud::delete))
        .route("/cloud/tokens/{token}", get(cloud::lookup))
        .with_state(api)
}
