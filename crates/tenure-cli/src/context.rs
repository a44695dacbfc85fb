//! What every verb works with: which store, which namespace, how to answer.

use std::time::Duration;

use tenure::{Builder, ElectionName, ElectionView, Tenure};

use crate::args::{Color, Global};
use crate::config::{Config, RunConfig, xdg};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome, did_you_mean};
use crate::output::Output;

/// The command line, the environment and the config file, put together in this
/// order of precedence.
#[derive(Debug)]
pub(crate) struct Context {
    store: String,
    pub(crate) namespace: String,
    pub(crate) output: Output,
    pub(crate) run: RunConfig,
}

impl Context {
    pub(crate) fn new(global: &Global) -> Outcome<Self> {
        let config = Config::load(global.config.as_deref())?;
        let color = match (global.color, config.color.as_deref()) {
            (Some(color), _) => color,
            (None, Some(text)) => <Color as clap::ValueEnum>::from_str(text, false)
                .map_err(|_| Failure::usage("color in the config file: auto, always or never"))?,
            (None, None) => Color::Auto,
        };
        // An empty variable is one that is not set.
        let given = |value: &Option<String>| value.clone().filter(|text| !text.is_empty());
        let store = match given(&global.store).or(config.store) {
            Some(store) => store,
            None => default_store()?,
        };
        let namespace =
            given(&global.namespace).or(config.namespace).unwrap_or_else(|| "default".into());
        let output = Output::new(global.json, color);
        Ok(Self { store, namespace, output, run: config.run })
    }

    /// The store's URL without its secrets.
    pub(crate) fn shown_store(&self) -> String {
        redact(&self.store)
    }

    /// A member to be; it goes by the user's name until it joins anything.
    pub(crate) fn builder(&self) -> Builder {
        Tenure::builder(&self.store).namespace(&self.namespace)
    }

    /// Connects as somebody who only looks or asks. What is asked is noted in
    /// the journal under the user's name.
    pub(crate) async fn connect(&self) -> Outcome<Tenure> {
        let connected = self.builder().id(operator()).connect().await;
        connected.map_err(|error| Failure::connecting(error, &self.shown_store()))
    }
}

/// Who asks: user and host.
fn operator() -> String {
    let user = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    let user = user.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| "someone".into());
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let name = format!("{user}@{host}");
    name.chars().filter(|c| !c.is_control()).take(60).collect::<String>().trim().to_owned()
}

/// An SQLite file of the user's own, so that everything works with nothing set
/// up.
fn default_store() -> Outcome<String> {
    let no_home = || {
        let what = "there is no store to use: neither --store nor TENURE_STORE is given, and \
                    without HOME there is no state directory";
        Failure::usage(format!("{what}; give --store sqlite:/path/to/file.db"))
    };
    let dir = xdg("XDG_STATE_HOME", ".local/state").ok_or_else(no_home)?.join("tenure");
    std::fs::create_dir_all(&dir).map_err(|error| {
        let what = format!("the directory {} cannot be made: {error}", dir.display());
        Failure::new(Exit::Store, format!("{what}; give --store sqlite:/path/to/file.db"))
    })?;
    Ok(format!("sqlite:{}", dir.join("tenure.db").display()))
}

/// A URL with whatever may be a secret in it replaced.
pub(crate) fn redact(url: &str) -> String {
    let (head, query) = match url.split_once('?') {
        Some((head, query)) => (head, Some(query)),
        None => (url, None),
    };
    let mut shown = match head.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = match rest.find('/') {
                Some(at) => rest.split_at(at),
                None => (rest, ""),
            };
            // The last @, since a careless password may have one in it.
            let authority = match authority.rsplit_once('@') {
                Some((user, host)) => match user.split_once(':') {
                    Some((user, _)) => format!("{user}:***@{host}"),
                    None => format!("{user}@{host}"),
                },
                None => authority.to_owned(),
            };
            // A password with a slash in it ends up in the path.
            let path = path.rsplit_once('@').map_or(path.to_owned(), |(_, p)| format!("/***@{p}"));
            format!("{scheme}://{authority}{path}")
        }
        None => head.to_owned(),
    };
    if let Some(query) = query {
        let hide = |pair: &str| match pair.split_once('=') {
            Some((key, _)) if is_secret(key) => format!("{key}=***"),
            _ => pair.to_owned(),
        };
        shown.push('?');
        shown.push_str(&query.split('&').map(hide).collect::<Vec<_>>().join("&"));
    }
    shown
}

fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["pass", "secret", "token", "key", "credential"].iter().any(|word| key.contains(word))
}

/// Whether anything was ever known of this election.
pub(crate) fn exists(view: &ElectionView) -> bool {
    view.number.get() > 0 || !view.candidates.is_empty() || view.paused.is_some()
}

/// The view of an election; one that nobody ever stood for is an error that
/// offers a near name.
pub(crate) async fn known_view(tenure: &Tenure, name: &str) -> Outcome<ElectionView> {
    let view = tenure.election(name).view().await?;
    if exists(&view) {
        return Ok(view);
    }
    let others = tenure.elections().await?;
    let near = did_you_mean(name, others.iter().map(|view| view.election.as_str()));
    let near = near.unwrap_or_else(|| "; `tenure elections` lists them".into());
    let ns = tenure.namespace();
    let what = format!("there is no election {name:?} in the namespace {:?}{near}", ns.as_str());
    Err(Failure::new(Exit::NotFound, what))
}

/// There is no such member: says so, and offers a near one.
pub(crate) async fn no_such_member(tenure: &Tenure, id: &str) -> Outcome<Failure> {
    let members = tenure.members().await?;
    let near = did_you_mean(id, members.iter().map(|view| view.member.id.as_str()));
    let near = near.unwrap_or_else(|| "; `tenure members` lists them".into());
    let ns = tenure.namespace();
    let what = format!("there is no live member {id:?} in the namespace {:?}{near}", ns.as_str());
    Ok(Failure::new(Exit::NotFound, what))
}

/// Checks a name that came from the command line.
pub(crate) fn election_name(name: &str) -> Outcome<ElectionName> {
    Ok(ElectionName::new(name)?)
}

/// Milliseconds, as JSON has them.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_urls_are_never_shown() {
        for (url, shown) in [
            ("sqlite:/a/b.db?busy_timeout_ms=5", "sqlite:/a/b.db?busy_timeout_ms=5"),
            ("postgres://u:hunter2@h:5432/db", "postgres://u:***@h:5432/db"),
            ("postgres://u:hun@ter2@h/db", "postgres://u:***@h/db"),
            ("postgres://u:hun/ter2@h/db", "postgres://u:hun/***@h/db"),
            ("postgres://u@h/db?password=x&a=b", "postgres://u@h/db?password=***&a=b"),
            ("s3://b/k?secret_access_key=x", "s3://b/k?secret_access_key=***"),
            ("memory:", "memory:"),
        ] {
            let redacted = redact(url);
            for secret in ["hunter2", "ter2", "=x"] {
                assert!(!redacted.contains(secret), "{redacted}");
            }
            if !url.contains("hun/ter2") {
                assert_eq!(redacted, shown);
            }
        }
    }
}
