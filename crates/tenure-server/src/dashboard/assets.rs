//! The stylesheet, the script and the icon: compiled in, and named by their content.

use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{StatusCode, header};
use sha2::{Digest as _, Sha256};

const STYLE: &str = include_str!("assets/tenure.css");
const SCRIPT: &str = include_str!("assets/tenure.js");
const ICON: &str = include_str!("assets/icon.svg");

/// Changes when any of them changes, so that a browser may keep them for ever.
static MARK: LazyLock<String> = LazyLock::new(|| {
    let digest = Sha256::new().chain_update(STYLE).chain_update(SCRIPT).chain_update(ICON);
    digest.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
});

/// Where an asset is.
pub(crate) fn href(file: &str) -> String {
    format!("/assets/{}/{file}", *MARK)
}

pub(crate) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/assets/{mark}/{file}", get(asset))
}

async fn asset(Path((mark, file)): Path<(String, String)>) -> Response {
    let found = match file.as_str() {
        "tenure.css" => Some(("text/css; charset=utf-8", STYLE)),
        "tenure.js" => Some(("text/javascript; charset=utf-8", SCRIPT)),
        "icon.svg" => Some(("image/svg+xml", ICON)),
        _ => None,
    };
    let Some((kind, text)) = found else { return StatusCode::NOT_FOUND.into_response() };
    // A page of another version asks by another mark: it gets what there is, and keeps it not.
    let keep = if mark == *MARK { "public, max-age=31536000, immutable" } else { "no-store" };
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, keep)], text).into_response()
}
