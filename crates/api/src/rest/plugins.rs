//! `/api/v1/plugins`: what workers have registered.

use http::{Response, StatusCode};

use super::call::{Call, answer};
use super::error::Error;
use super::owners::{Owners, worker_kind};
use crate::kube::Body;

async fn owners(call: &Call<'_>) -> Result<Owners, Error> {
    call.query(&[]).check()?;
    call.permit("list", &worker_kind(), "workers", "").await?;
    Ok(Owners::read(call.store()).await?)
}

/// `GET /plugins/actions`.
pub(crate) async fn actions(call: &Call<'_>) -> Result<Response<Body>, Error> {
    Ok(answer(StatusCode::OK, &owners(call).await?.plugins("action")))
}

/// `GET /plugins/inputs`.
pub(crate) async fn inputs(call: &Call<'_>) -> Result<Response<Body>, Error> {
    Ok(answer(StatusCode::OK, &owners(call).await?.plugins("input")))
}

/// `GET /plugins/reconcilers`.
pub(crate) async fn reconcilers(call: &Call<'_>) -> Result<Response<Body>, Error> {
    Ok(answer(StatusCode::OK, &owners(call).await?.reconcilers()))
}
