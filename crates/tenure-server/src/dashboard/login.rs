//! The page that asks for a token.

use axum::response::Response;
use http::StatusCode;
use maud::html;

use super::page::plain;
use super::text::{icon, name};
use crate::App;

/// The page.
pub(crate) fn page(app: &App) -> Response {
    let needed = !app.tokens.are_absent();
    plain(
        StatusCode::OK,
        "Log in",
        &html! {
            p.brand { (icon("mark")) "Tenure" span.ns { (name(app.tenure.namespace().as_str())) } }
            h1 { "Log in" }
            @if needed {
                form #login {
                    label for="token" { "Token" }
                    input #token name="token" type="password" required autofocus
                        autocomplete="current-password" spellcheck="false";
                    p #refused .refused role="alert" hidden {}
                    button.primary type="submit" { "Log in" }
                }
                p.hint {
                    "A token is a line of one of the files that the server was started with: "
                    "a viewer's shows everything, an operator's steers, too. This browser keeps "
                    "a cookie in its place, for a day at most."
                }
                noscript { p.hint {
                    "The login needs JavaScript. Without it, send the header "
                    code { "Authorization: Bearer TOKEN" } " with each request."
                } }
            } @else {
                p { "This server needs no token: whatever reaches it may do everything." }
                p { a href="/" { "All elections" } }
            }
        },
    )
}
