//! The config file: defaults for what is not said on the command line.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::{Table, Value};

use tenure_api::span;

use crate::failure::{Failure, Outcome, did_you_mean};

/// What a config file may say; `docs/cli.md` shows one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) store: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) color: Option<String>,
    /// Under `[run]`.
    pub(crate) run: RunConfig,
    /// Under `[purge]`: how old what is removed must be.
    pub(crate) older_than: Option<Duration>,
}

/// Defaults for `tenure run`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RunConfig {
    pub(crate) id: Option<String>,
    pub(crate) preset: Option<String>,
    pub(crate) ttl: Option<Duration>,
    pub(crate) grace: Option<Duration>,
    pub(crate) priority: Option<u16>,
    pub(crate) endpoints: Vec<String>,
}

const TOP_KEYS: [&str; 5] = ["store", "namespace", "color", "run", "purge"];
const RUN_KEYS: [&str; 6] = ["id", "preset", "ttl", "grace", "priority", "endpoints"];
const PURGE_KEYS: [&str; 1] = ["older_than"];

impl Config {
    /// Reads the file named, or the one in its usual place if there is one.
    pub(crate) fn load(named: Option<&Path>) -> Outcome<Self> {
        let path = match named {
            Some(path) => path.to_owned(),
            None => match usual_place() {
                Some(path) if path.is_file() => path,
                _ => return Ok(Self::default()),
            },
        };
        let text = read(&path).map_err(|error| {
            let what = format!("the config file {} cannot be read: {error}", path.display());
            Failure::usage(format!("{what}; name another with --config"))
        })?;
        Self::parse(&text)
            .map_err(|why| Failure::usage(format!("the config file {}: {why}", path.display())))
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut table: Table = text.parse().map_err(|error: toml::de::Error| {
            // The place and not the line, which may have a password in it.
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            format!("it is not TOML in line {line}: {}", error.message())
        })?;
        check_keys(&table, &TOP_KEYS, "")?;
        let run = inner(&mut table, "run", &RUN_KEYS)?;
        let purge = inner(&mut table, "purge", &PURGE_KEYS)?;
        let priority = whole(&run, "priority")?;
        Ok(Self {
            store: string(&table, "store")?,
            namespace: string(&table, "namespace")?,
            color: string(&table, "color")?,
            run: RunConfig {
                id: string(&run, "id")?,
                preset: string(&run, "preset")?,
                ttl: duration(&run, "ttl")?,
                grace: duration(&run, "grace")?,
                priority,
                endpoints: strings(&run, "endpoints")?,
            },
            older_than: duration(&purge, "older_than")?,
        })
    }
}

/// More than people write by hand.
const MOST: u64 = 1 << 20;

/// The text of a file, or of a pipe. One that has no end is no config file.
fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let read = std::fs::File::open(path)?.take(MOST + 1).read_to_string(&mut text)?;
    match u64::try_from(read).is_ok_and(|read| read > MOST) {
        true => Err(std::io::Error::other("it has more than a megabyte")),
        false => Ok(text),
    }
}

/// `$XDG_CONFIG_HOME/tenure/config.toml`, or below `~/.config`.
fn usual_place() -> Option<PathBuf> {
    Some(xdg("XDG_CONFIG_HOME", ".config")?.join("tenure/config.toml"))
}

/// A base directory as the XDG specification has it: a relative path in the
/// variable counts as none.
pub(crate) fn xdg(variable: &str, below_home: &str) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    set(variable).or_else(|| Some(set("HOME")?.join(below_home)))
}

/// The table of this name; an empty one if there is none.
fn inner(table: &mut Table, name: &str, keys: &[&str]) -> Result<Table, String> {
    let inner = match table.remove(name) {
        None => Table::new(),
        Some(Value::Table(inner)) => inner,
        Some(_) => return Err(format!("{name} must be a table: write [{name}]")),
    };
    check_keys(&inner, keys, &format!("{name}."))?;
    Ok(inner)
}

fn check_keys(table: &Table, known: &[&str], prefix: &str) -> Result<(), String> {
    match table.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => {
            let near = did_you_mean(key, known.iter().copied());
            let known = known.join(", ");
            let near = near.unwrap_or_else(|| format!("; the keys are {known}"));
            Err(format!("{prefix}{key} is not a key{near}"))
        }
    }
}

fn string(table: &Table, key: &str) -> Result<Option<String>, String> {
    match table.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(format!("{key} must be text in quotes, not {}", other.type_str())),
    }
}

fn strings(table: &Table, key: &str) -> Result<Vec<String>, String> {
    let refuse = || format!("{key} must be a list of texts: {key} = [\"a\", \"b\"]");
    match table.get(key) {
        None => Ok(Vec::new()),
        Some(Value::Array(items)) => {
            items.iter().map(|v| v.as_str().map(str::to_owned).ok_or_else(refuse)).collect()
        }
        Some(_) => Err(refuse()),
    }
}

fn duration(table: &Table, key: &str) -> Result<Option<Duration>, String> {
    let Some(text) = string(table, key)? else { return Ok(None) };
    span::parse(&text).map(Some).map_err(|why| format!("{key}: {why}"))
}

fn whole(table: &Table, key: &str) -> Result<Option<u16>, String> {
    match table.get(key) {
        None => Ok(None),
        Some(value) => match value.as_integer().and_then(|n| u16::try_from(n).ok()) {
            Some(number) => Ok(Some(number)),
            None => Err(format!("{key} must be a whole number from 0 to 65535")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_is_understood() {
        let text = r#"
            store = "sqlite:/var/lib/t.db"
            namespace = "billing"
            color = "never"
            [run]
            id = "web-1"
            ttl = "3s"
            grace = "500ms"
            priority = 7
            endpoints = ["h:1"]
            [purge]
            older_than = "30d"
        "#;
        let config = Config::parse(text).unwrap();
        assert_eq!(config.store.as_deref(), Some("sqlite:/var/lib/t.db"));
        assert_eq!(config.namespace.as_deref(), Some("billing"));
        assert_eq!(config.run.ttl, Some(Duration::from_secs(3)));
        assert_eq!(config.older_than, Some(Duration::from_secs(30 * 86_400)));
        assert_eq!((config.run.priority, config.run.endpoints), (Some(7), vec!["h:1".to_owned()]));
        assert_eq!(Config::parse("").unwrap(), Config::default());
    }

    #[test]
    fn mistakes_are_named_with_what_to_write() {
        for (text, said) in [
            ("stor = 'x'", "did you mean \"store\"?"),
            ("whatever = 1", "the keys are store, namespace"),
            ("store = 5", "store must be text"),
            ("[run]\nttl = '5'", "ttl: \"5\" is not a duration"),
            ("[run]\npriority = 70000", "from 0 to 65535"),
            ("[run]\nendpoints = 'h:1'", "list of texts"),
            ("[run]\ngrase = '1s'", "run.grase is not a key; did you mean \"grace\"?"),
            ("run = 1", "write [run]"),
            ("purge = '30d'", "write [purge]"),
            ("[purge]\nolder_than = '30'", "older_than: \"30\" is not a duration"),
            ("[purge]\nolder = '30d'", "purge.older is not a key"),
            ("= 5", "not TOML in line 1"),
            ("color = 'never'\nstore = 'postgres://u:hunter2@h", "not TOML in line 2"),
        ] {
            let refused = Config::parse(text).unwrap_err();
            assert!(refused.contains(said), "{text}: {refused}");
            assert!(!refused.contains("hunter2"), "{refused}");
        }
    }
}
