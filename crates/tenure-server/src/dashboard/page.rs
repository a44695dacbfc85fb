//! What all pages have around them: head, navigation, the state of the connection, symbols.

use std::time::Duration;

use axum::response::{Html, IntoResponse, Response};
use http::StatusCode;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::assets;
use super::text::{icon, wall_millis};
use crate::App;
use crate::access::Scope;

/// Which page is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tab {
    Elections,
    Election,
    Members,
    Names,
    Journal,
}

impl Tab {
    /// The word that the script goes by.
    fn key(self) -> &'static str {
        match self {
            Self::Elections => "elections",
            Self::Election => "election",
            Self::Members => "members",
            Self::Names => "names",
            Self::Journal => "journal",
        }
    }
}

/// A page with its frame.
pub(crate) struct Page<'a> {
    pub(crate) app: &'a App,
    pub(crate) scope: Scope,
    pub(crate) tab: Tab,
    pub(crate) title: String,
    /// The place in the journal up to which the page is known to be right.
    pub(crate) seq: u64,
    /// How old what it shows was when it was written.
    pub(crate) age: Duration,
}

impl Page<'_> {
    pub(crate) fn render(&self, main: &Markup) -> Response {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                (head(&self.title))
                body data-page=(self.tab.key()) data-seq=(self.seq) data-now=(wall_millis())
                    data-operator[self.scope == Scope::Operator]
                {
                    a.skip href="#main" { "Skip to the content" }
                    (PreEscaped(SYMBOLS))
                    (self.header())
                    div #away .away role="alert" hidden {}
                    main #main tabindex="-1" { (main) }
                    div #said .said role="status" {}
                    (self.footer())
                    script src=(assets::href("tenure.js")) defer {}
                }
            }
        };
        Html(page.into_string()).into_response()
    }

    fn header(&self) -> Markup {
        let mut tabs = vec![
            (Tab::Elections, "/", "Elections"),
            (Tab::Members, "/members", "Members"),
            (Tab::Names, "/names", "Names"),
            (Tab::Journal, "/journal", "Journal"),
        ];
        let can = self.app.tenure.capabilities();
        tabs.retain(|(tab, _, _)| match tab {
            Tab::Names => can.names.is_some(),
            Tab::Journal => can.journal,
            _ => true,
        });
        let here = if self.tab == Tab::Election { Tab::Elections } else { self.tab };
        html! {
            header.top {
                a.mark href="/" aria-label="Tenure, elections" { (icon("mark")) span { "Tenure" } }
                span.ns title="the namespace" { (super::text::name(self.app.tenure.namespace().as_str())) }
                nav aria-label="Pages" {
                    @for (tab, href, label) in &tabs {
                        a href=(href) aria-current=[(*tab == here).then_some("page")] { (label) }
                    }
                }
                p #live .live data-state="still" {
                    (icon("still"))
                    span { "as of " (tenure_api::Moment::from(tenure::Timestamp::from_unix_millis(
                        wall_millis().saturating_sub(tenure_api::millis(self.age)))).short()) " UTC" }
                }
                @if !self.app.tokens.are_absent() {
                    form.logout { button type="submit" { "Log out" } }
                }
            }
        }
    }

    fn footer(&self) -> Markup {
        let member = self.app.tenure.id();
        html! {
            footer.foot {
                span { "Store: " (self.app.tenure.capabilities().name) }
                span { "Server: " (super::text::name(member.as_str())) ", " (env!("CARGO_PKG_VERSION")) }
                span { "You are: " (self.scope.name()) }
                span { "Moments are by the store's clock, in UTC" }
            }
        }
    }
}

fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (tenure::views::shown(title)) " · Tenure" }
            link rel="icon" type="image/svg+xml" href=(assets::href("icon.svg"));
            link rel="stylesheet" href=(assets::href("tenure.css"));
        }
    }
}

/// A page without data: what went wrong, or a question.
pub(crate) fn plain(status: StatusCode, title: &str, main: &Markup) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(title))
            body.plain {
                (PreEscaped(SYMBOLS))
                main #main { (main) }
                script src=(assets::href("tenure.js")) defer {}
            }
        }
    };
    (status, Html(page.into_string())).into_response()
}

/// Each state has a shape of its own, so that it is told without its colour.
const SYMBOLS: &str = concat!(
    r#"<svg class="symbols" aria-hidden="true">"#,
    r#"<symbol id="i-mark" viewBox="0 0 32 32"><path d="M6 8h20M16 8v16" stroke="currentColor" stroke-width="5" stroke-linecap="round" fill="none"/><circle class="spot" cx="25" cy="23" r="4"/></symbol>"#,
    r#"<symbol id="i-led" viewBox="0 0 16 16"><circle cx="8" cy="8" r="5.5" fill="currentColor"/></symbol>"#,
    r#"<symbol id="i-vacant" viewBox="0 0 16 16"><circle cx="8" cy="8" r="5" fill="none" stroke="currentColor" stroke-width="2.4"/></symbol>"#,
    r#"<symbol id="i-held-up" viewBox="0 0 16 16"><path d="M5.4 2h5.2L14 5.4v5.2L10.6 14H5.4L2 10.6V5.4z" fill="none" stroke="currentColor" stroke-width="1.8"/><path d="M5 8h6" stroke="currentColor" stroke-width="2.2"/></symbol>"#,
    r#"<symbol id="i-kept" viewBox="0 0 16 16"><circle cx="8" cy="8" r="5" fill="none" stroke="currentColor" stroke-width="2.2" stroke-dasharray="3.2 2"/></symbol>"#,
    r#"<symbol id="i-silent" viewBox="0 0 16 16"><path d="M8 1.7 15 14H1z" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linejoin="round"/><path d="M8 6.2v3.6M8 11.4v1.2" stroke="currentColor" stroke-width="1.7"/></symbol>"#,
    r#"<symbol id="i-stopping" viewBox="0 0 16 16"><path d="M8 2v9M3.8 7.2 8 11.4l4.2-4.2M3.5 14.2h9" fill="none" stroke="currentColor" stroke-width="2"/></symbol>"#,
    r#"<symbol id="i-paused" viewBox="0 0 16 16"><path d="M5.2 3v10M10.8 3v10" stroke="currentColor" stroke-width="2.8"/></symbol>"#,
    r#"<symbol id="i-flapping" viewBox="0 0 16 16"><path d="M1.5 11 5 4.5l3 7 3-7 3.5 6.5" fill="none" stroke="currentColor" stroke-width="1.9" stroke-linejoin="round"/></symbol>"#,
    r#"<symbol id="i-live" viewBox="0 0 16 16"><circle cx="8" cy="8" r="4" fill="currentColor"/></symbol>"#,
    r#"<symbol id="i-still" viewBox="0 0 16 16"><circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" stroke-width="1.6"/><path d="M8 4.5V8l2.5 1.8" fill="none" stroke="currentColor" stroke-width="1.6"/></symbol>"#,
    r#"<symbol id="i-in" viewBox="0 0 16 16"><path d="M2 8h8M7 4.5 10.5 8 7 11.5M13.5 3v10" fill="none" stroke="currentColor" stroke-width="1.7"/></symbol>"#,
    r#"<symbol id="i-out" viewBox="0 0 16 16"><path d="M6 8h8M11 4.5 14.5 8 11 11.5M3 3v10" fill="none" stroke="currentColor" stroke-width="1.7"/></symbol>"#,
    r#"<symbol id="i-ended" viewBox="0 0 16 16"><path d="m4 4 8 8M12 4l-8 8" stroke="currentColor" stroke-width="2"/></symbol>"#,
    r#"<symbol id="i-stood" viewBox="0 0 16 16"><path d="M8 3v10M3 8h10" stroke="currentColor" stroke-width="1.8"/></symbol>"#,
    r#"<symbol id="i-search" viewBox="0 0 16 16"><circle cx="7" cy="7" r="4.5" fill="none" stroke="currentColor" stroke-width="1.7"/><path d="m10.5 10.5 4 4" stroke="currentColor" stroke-width="1.7"/></symbol>"#,
    "</svg>"
);
