//! What every verb works with: which store, which namespace, how to answer.

use std::path::PathBuf;
use std::time::Duration;

use tenure::{Builder, ElectionName, ElectionView, ErrorKind, Operator, Tenure};

use crate::args::{Color, Global};
use crate::config::{Config, RunConfig, xdg};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome, did_you_mean};
use crate::output::{Output, say};
use crate::redact::redact;

/// The command line, the environment and the config file, put together in this
/// order of precedence.
#[derive(Debug)]
pub(crate) struct Context {
    store: String,
    /// The directory of the store that is used when none is named.
    home: Option<PathBuf>,
    pub(crate) namespace: String,
    pub(crate) output: Output,
    pub(crate) run: RunConfig,
    /// How old what `purge` removes must be, by the config file.
    pub(crate) older_than: Option<Duration>,
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
        let (store, home) = match &global.store {
            Some(store) => (named("--store", "TENURE_STORE", store)?, None),
            None => match config.store {
                Some(store) => (store, None),
                None => default_store()?,
            },
        };
        let namespace = match &global.namespace {
            Some(name) => Some(named("--namespace", "TENURE_NAMESPACE", name)?),
            None => config.namespace,
        };
        let namespace = namespace.unwrap_or_else(|| "default".into());
        let output = Output::new(global.json, color);
        Ok(Self { store, home, namespace, output, run: config.run, older_than: config.older_than })
    }

    /// Makes the directory of the default store, for a verb that may write to it.
    pub(crate) fn make_home(&self) -> Outcome<()> {
        let Some(home) = &self.home else { return Ok(()) };
        std::fs::create_dir_all(home).map_err(|error| {
            let what = format!("the directory {} cannot be made: {error}", home.display());
            Failure::new(Exit::Store, format!("{what}; give --store sqlite:/path/to/file.db"))
        })
    }

    /// The store's URL without its secrets.
    pub(crate) fn shown_store(&self) -> String {
        redact(&self.store)
    }

    /// A member to be; it goes by the user's name until it joins anything.
    pub(crate) fn builder(&self) -> Builder {
        Tenure::builder(&self.store).namespace(&self.namespace)
    }

    /// Opens the store as an operator, who asks and joins nothing. What was asked is noted in
    /// the journal under the user's name.
    pub(crate) async fn operate(&self) -> Outcome<Operator> {
        let connected = self.builder().id(operator()).operate().await;
        connected.map_err(|error| Failure::connecting(error, &self.shown_store()))
    }

    /// Connects as a reader alone: nothing is made, and no right to
    /// write is needed.
    pub(crate) async fn watch(&self) -> Outcome<Operator> {
        let connected = self.builder().id(operator()).read_only(true).operate().await;
        connected.map_err(|error| Failure::connecting(error, &self.shown_store()))
    }

    /// The same for one look: a store that is not there yet is an empty one.
    pub(crate) async fn look(&self) -> Outcome<Operator> {
        match self.builder().id(operator()).read_only(true).operate().await {
            Err(tenure::Error::Store(error)) if error.kind() == ErrorKind::Absent => {
                say(&error.to_string());
                Ok(Tenure::builder("memory:").namespace(&self.namespace).operate().await?)
            }
            connected => connected.map_err(|e| Failure::connecting(e, &self.shown_store())),
        }
    }
}

/// Who asks: user and host.
fn operator() -> String {
    let user = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    let user = user.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| "someone".into());
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let name = format!("{user}@{host}");
    name.chars()
        .filter(|c| !tenure::views::is_hidden(*c))
        .take(60)
        .collect::<String>()
        .trim()
        .to_owned()
}

/// An SQLite file of the user's own, so that everything works with nothing set
/// up.
fn default_store() -> Outcome<(String, Option<PathBuf>)> {
    let no_home = || {
        let what = "there is no store to use: neither --store nor TENURE_STORE is given, and \
                    without HOME there is no state directory";
        Failure::usage(format!("{what}; give --store sqlite:/path/to/file.db"))
    };
    let dir = xdg("XDG_STATE_HOME", ".local/state").ok_or_else(no_home)?.join("tenure");
    Ok((tenure::store::sqlite_url(&dir.join("tenure.db")), Some(dir)))
}

/// A text that was given by an option or in the environment. An empty one is
/// mostly a variable of a script that was never set: to go on with the default
/// would look at another store than the one that was meant.
fn named(option: &str, variable: &str, text: &str) -> Outcome<String> {
    if !text.trim().is_empty() {
        return Ok(text.to_owned());
    }
    let by_variable = std::env::var_os(variable).is_some_and(|value| value == text);
    let (what, remedy) = match by_variable {
        true => (format!("{variable} is set, and empty"), format!("unset {variable}")),
        false => (format!("{option} is given, and empty"), format!("leave {option} out")),
    };
    Err(Failure::usage(format!("{what}; give it a value, or {remedy} to use the default")))
}

/// Whether anything was ever known of this election.
pub(crate) fn exists(view: &ElectionView) -> bool {
    view.number.get() > 0 || !view.candidates.is_empty() || view.paused.is_some()
}

/// The view of an election; one that never had a candidate is an error that
/// offers a near name.
pub(crate) async fn known_view(operator: &Operator, name: &str) -> Outcome<ElectionView> {
    let view = operator.election(name).view().await?;
    if exists(&view) {
        return Ok(view);
    }
    let others = operator.elections().await?;
    let near = did_you_mean(name, others.iter().map(|view| view.election.as_str()));
    let near = near.unwrap_or_else(|| "; `tenure elections` lists them".into());
    let ns = operator.namespace();
    let what = format!("there is no election {name:?} in the namespace {:?}{near}", ns.as_str());
    Err(Failure::new(Exit::NotFound, what))
}

/// There is no such member: says so, and offers a near one.
pub(crate) async fn no_such_member(operator: &Operator, id: &str) -> Outcome<Failure> {
    let members = operator.members().await?;
    let near = did_you_mean(id, members.iter().map(|view| view.member.id.as_str()));
    let near = near.unwrap_or_else(|| "; `tenure members` lists them".into());
    let ns = operator.namespace();
    let what = format!("there is no live member {id:?} in the namespace {:?}{near}", ns.as_str());
    Ok(Failure::new(Exit::NotFound, what))
}

/// Checks a name that came from the command line.
pub(crate) fn election_name(name: &str) -> Outcome<ElectionName> {
    Ok(ElectionName::new(name)?)
}
