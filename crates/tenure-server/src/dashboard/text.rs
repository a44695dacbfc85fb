//! Names, moments and spans as the pages show them.

use std::time::{Duration, SystemTime};

use maud::{Markup, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tenure_api::{Metadata, Moment, span};

/// What may stand in a query as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Text of a URL's query.
pub(crate) fn query(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

/// Where the page of an election is. Its name stands in the query: browsers take `.` and `..` in
/// a path for steps, however they are written.
pub(crate) fn election_href(name: &str) -> String {
    format!("/election?name={}", query(name))
}

/// A name of the user's, with what cannot be seen written out, and set apart from the
/// direction of the text around it.
pub(crate) fn name(text: &str) -> Markup {
    html! { bdi { (tenure::views::shown(text)) } }
}

/// A link to the page of an election.
pub(crate) fn election_link(text: &str) -> Markup {
    html! { a href=(election_href(text)) { (name(text)) } }
}

/// This machine's wall clock, for people: how long ago something was.
pub(crate) fn wall_millis() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map(tenure_api::millis).unwrap_or_default()
}

/// The moment, in UTC.
pub(crate) fn moment(at: Moment) -> Markup {
    html! { time datetime=(at) { (at.short()) } }
}

/// How long ago it was; the script counts on.
pub(crate) fn since(at: Moment, wall: u64) -> Markup {
    let began = at.timestamp().unix_millis();
    let span = Duration::from_millis(wall.saturating_sub(began));
    html! { time datetime=(at) title={ "since " (at.short()) " UTC" } data-since=(began) { (whole(span)) } }
}

/// A span in whole seconds, as people say it.
pub(crate) fn whole(span: Duration) -> String {
    match span.as_secs() {
        0 => "0s".into(),
        seconds => span::show(Duration::from_secs(seconds)),
    }
}

/// A span that may be short.
pub(crate) fn lasted(millis: u64) -> String {
    let span = Duration::from_millis(millis);
    if millis < 10_000 { span::roughly(span) } else { whole(span) }
}

/// What a member publishes; nothing if it publishes nothing.
pub(crate) fn metadata(metadata: &Metadata) -> Option<String> {
    match metadata {
        Metadata::Text(text) => (!text.is_empty()).then(|| tenure::views::shown(text).into_owned()),
        Metadata::Bytes { hex } => Some(format!("0x{hex}")),
    }
}

/// What is left of a ttl, as a bar and in seconds; the script counts down.
pub(crate) fn left(left: Duration, ttl: Duration) -> Markup {
    let part = left.as_secs_f64() / ttl.as_secs_f64().max(0.001);
    let width = format!("{:.1}%", 100.0 * part.min(1.0));
    html! {
        span.left data-left=(left.as_millis()) data-ttl=(ttl.as_millis()) {
            svg.bar aria-hidden="true" {
                rect.track width="100%" height="100%" rx="2" {}
                rect.fill width=(width) height="100%" rx="2" {}
            }
            span.secs { (whole(left)) }
        }
    }
}

/// A symbol of the sprite that every page has.
pub(crate) fn icon(key: &str) -> Markup {
    html! { svg.i aria-hidden="true" { use href={ "#i-" (key) } {} } }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a name has in it is text, wherever it stands.
    #[test]
    fn a_hostile_name_is_text() {
        let hostile = "\"><script>alert(1)</script>\u{202e}&'../..";
        let shown = election_link(hostile).into_string();
        assert!(!shown.contains("<script") && !shown.contains('\u{202e}'), "{shown}");
        assert!(shown.contains("\\u{202e}"), "{shown}");
        let href = election_href(hostile);
        let plain = |c: char| c.is_ascii_alphanumeric() || "/?=%.-_~".contains(c);
        assert!(href.chars().all(plain), "{href}");
    }

    #[test]
    fn spans_are_told_in_whole_seconds() {
        assert_eq!(whole(Duration::from_millis(900)), "0s");
        assert_eq!(whole(Duration::from_millis(61_900)), "1m1s");
        assert_eq!(lasted(90_900), "1m30s");
    }
}
