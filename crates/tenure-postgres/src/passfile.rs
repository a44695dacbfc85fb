//! The password file, as libpq reads it: `~/.pgpass`, or the file that `PGPASSFILE`
//! or `passfile` names.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::address::Address;
use crate::options::PostgresOptions;

/// What the file has for a server.
pub(crate) enum Found {
    Nothing,
    Password(String),
    /// There is a file, and why it is not read.
    Ignored(String),
}

/// The password for this server. It is looked up at every connection, so that a new
/// one is used from the next on.
pub(crate) fn find(options: &PostgresOptions, address: &Address) -> Found {
    let Some(path) = &options.passfile else { return Found::Nothing };
    if options.config.get_password().is_some() {
        return Found::Nothing;
    }
    let Ok(file) = std::fs::metadata(path) else { return Found::Nothing };
    if let Some(why) = is_unfit(path, &file) {
        tracing::warn!("{why}");
        return Found::Ignored(why);
    }
    let Ok(text) = std::fs::read_to_string(path) else {
        return Found::Ignored(format!("{} cannot be read: check who owns it", path.display()));
    };
    let own = whoami();
    let user = options.config.get_user().unwrap_or(&own);
    let database = options.config.get_dbname().unwrap_or(user);
    password(&text, address, database, user).map_or(Found::Nothing, Found::Password)
}

/// The user this program runs as, for which a connection is if no user is named.
fn whoami() -> String {
    std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_default()
}

fn is_unfit(path: &Path, file: &std::fs::Metadata) -> Option<String> {
    let shown = path.display();
    if !file.is_file() {
        return Some(format!("the password file {shown} is ignored, since it is no plain file"));
    }
    (file.mode() & 0o077 != 0).then(|| {
        format!("the password file {shown} is ignored, since others may read it: chmod 600 {shown}")
    })
}

/// The password on the first line that means this server, database and user.
fn password(text: &str, address: &Address, database: &str, user: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let line = line.trim_end_matches('\r');
        if line.starts_with('#') {
            return None;
        }
        let [host, port, base, name, password] = fields(line)?;
        let means = |field: &str, value: &str| field == "*" || field == value;
        let fits = (host == "*" || address.is_called(&host))
            && means(&port, &address.port.to_string())
            && means(&base, database)
            && means(&name, user);
        fits.then_some(password)
    })
}

/// The five fields of a line. A colon or a backslash in one has a backslash before it.
fn fields(line: &str) -> Option<[String; 5]> {
    let mut fields: [String; 5] = Default::default();
    let mut at = 0;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => fields[at].push(letters.next().unwrap_or('\\')),
            ':' if at < 4 => at += 1,
            // What follows the password is ignored.
            ':' => break,
            _ => fields[at].push(letter),
        }
    }
    (at == 4).then_some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        let url = "postgres://app@db:6432/shop";
        let words = crate::words::Words::gather(url, &|_| None).unwrap();
        let address = &Address::all(&words).unwrap()[0];
        let of = |text: &str| password(text, address, "shop", "app");
        assert_eq!(of("db:6432:shop:app:one"), Some("one".into()));
        assert_eq!(of("# db:6432:shop:app:no\nother:*:*:*:no\n*:*:*:app:t\\:w\\\\o:x\n"), {
            Some("t:w\\o".into())
        });
        for none in ["", "db:6432:shop:app", "db:5432:*:*:x", "*:*:other:*:x", "*:*:*:other:x"] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
