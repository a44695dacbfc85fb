//! What requests bring: names, bodies, numbers; each refused by a problem that names it.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use http::StatusCode;
use http::request::Parts;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tenure::ElectionName;

use crate::App;
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
        let body: Result<Json<Map<String, Value>>, _> = Json::from_request(request, app).await;
        let refused = |problem: Problem| problem.remedy("/openapi.json has the schema of the body");
        let Json(fields) = body.map_err(|rejection: JsonRejection| {
            let text = rejection.body_text();
            let problem = match rejection.status() {
                StatusCode::PAYLOAD_TOO_LARGE => {
                    let title = "the body is too large";
                    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", title, text)
                }
                _ => Problem::bad_request(text),
            };
            refused(problem)
        })?;
        let body = serde_json::from_value(Value::Object(fields)).map(Self);
        body.map_err(|error| refused(Problem::bad_request(error.to_string())))
    }
}
