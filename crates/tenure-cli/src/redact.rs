//! Store URLs as they may be shown.

/// A URL with whatever may be a secret in it replaced. It is for URLs with
/// mistakes in them too: rather too much is hidden than too little.
pub(crate) fn redact(url: &str) -> String {
    let (scheme, rest) = match url.split_once(':') {
        // Only the first colon ends a scheme: there may be a :// in a password.
        Some((scheme, rest)) => match rest.strip_prefix("//") {
            Some(rest) => (format!("{scheme}://"), rest),
            None => (format!("{scheme}:"), rest),
        },
        None => (String::new(), url),
    };
    // From the first colon to the last @, since a careless password may have an
    // @, a slash or a question mark in it.
    let shown = match (rest.find(':'), rest.rfind('@')) {
        (Some(colon), Some(at)) if colon < at => {
            format!("{}:***@{}", options_hidden(&rest[..colon]), options_hidden(&rest[at + 1..]))
        }
        _ => options_hidden(rest),
    };
    scheme + &shown
}

/// The text with the values of secret options replaced, wherever they stand.
fn options_hidden(text: &str) -> String {
    let hide = |part: &str| {
        let ends = part.find(['?', '&']).unwrap_or(part.len());
        match part[..ends].split_once('=') {
            Some((key, _)) if is_secret(key) => format!("{key}=***{}", &part[ends..]),
            _ => part.to_owned(),
        }
    };
    text.split_inclusive(['?', '&']).map(hide).collect()
}

fn is_secret(key: &str) -> bool {
    const WORDS: [&str; 7] = ["pass", "secret", "token", "key", "credential", "sas", "sig"];
    let key = key.to_ascii_lowercase();
    // A key that is written in another way may be any of them.
    key.contains('%') || WORDS.iter().any(|word| key.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_urls_are_never_shown() {
        for (url, shown) in [
            ("sqlite:/a/b.db?busy_timeout_ms=5", "sqlite:/a/b.db?busy_timeout_ms=5"),
            ("postgres://u:hunter2@h:5432/db", "postgres://u:***@h:5432/db"),
            ("postgres://u@h:5432/db", "postgres://u@h:5432/db"),
            ("postgres://u:hun@ter2@h/db", "postgres://u:***@h/db"),
            ("postgres://u:hun/ter2@h/db", "postgres://u:***@h/db"),
            ("postgres://u:hun?ter2@h/db", "postgres://u:***@h/db"),
            ("postgres:u:hunter2@h/db", "postgres:u:***@h/db"),
            ("postgres:u:hunter2://@h/db", "postgres:u:***@h/db"),
            ("postgres://u@h/db?password=x&a=b", "postgres://u@h/db?password=***&a=b"),
            ("postgres://u@h/db?password=x:y@z", "postgres://u@h/db?password=***:***@z"),
            ("postgres://u@h/db?p%61ssword=x", "postgres://u@h/db?p%61ssword=***"),
            ("s3://b/k?secret_access_key=x", "s3://b/k?secret_access_key=***"),
            ("az://c?sig=x&poll_ms=5", "az://c?sig=***&poll_ms=5"),
            ("memory:", "memory:"),
        ] {
            assert_eq!(redact(url), shown);
        }
    }
}
