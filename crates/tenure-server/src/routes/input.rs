//! What requests bring: names, bodies, numbers; each refused by a problem that names it.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use http::request::Parts;
use serde::de::DeserializeOwned;
use tenure::ElectionName;

use crate::App;
use crate::access::is_json;
use crate::problem::Problem;

/// An election, by the last part but one of the path or the last.
pub(crate) struct Election(pub(crate) ElectionName);

impl FromRequestParts<Arc<App>> for Election {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let Path(name) = Path::<String>::from_request_parts(parts, app).await.map_err(bad_path)?;
        Ok(Self(ElectionName::new(name).map_err(tenure::Error::from)?))
    }
}

/// A part of the path as it is.
pub(crate) struct Segment(pub(crate) String);

impl FromRequestParts<Arc<App>> for Segment {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        Path::from_request_parts(parts, app).await.map(|Path(text)| Self(text)).map_err(bad_path)
    }
}

// The signature of `map_err`.
#[allow(clippy::needless_pass_by_value)]
fn bad_path(rejection: PathRejection) -> Problem {
    Problem::bad_request(rejection.body_text())
        .remedy("encode the name as a part of a URL, in UTF-8")
}

/// What follows the `?`.
pub(crate) struct Asked<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Arc<App>> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let asked = Query::from_request_parts(parts, app).await;
        asked.map(|Query(asked)| Self(asked)).map_err(|rejection: QueryRejection| {
            Problem::bad_request(rejection.body_text()).remedy("/openapi.json lists the parameters")
        })
    }
}

/// A body in JSON, which is an object. An array would be taken for the fields in their order.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        is_json(request.headers())?;
        let body = Bytes::from_request(request, app).await.map_err(|rejection| {
            Problem::bad_request(rejection.body_text()).remedy("send the body whole")
        })?;
        let wrong = |why: &str| {
            Problem::bad_request(why).remedy("/openapi.json has the schema of the body")
        };
        // A list would be taken for the fields in their order.
        if !body.trim_ascii_start().starts_with(b"{") {
            return Err(wrong("the body is no JSON object"));
        }
        let read = Json::from_bytes(&body);
        read.map(|Json(body)| Self(body))
            .map_err(|rejection: JsonRejection| wrong(&rejection.body_text()))
    }
}
