use super::*;

/// Whatever the environment of this test is.
fn from(url: &str) -> Result<PostgresOptions> {
    PostgresOptions::from_url_with(url, |_| None)
}

fn said(url: &str) -> String {
    from(url).unwrap_err().to_string()
}

#[test]
fn a_url_sets_what_it_names_and_the_driver_gets_the_rest() {
    let url = "postgresql://u:p%40ss@a:1,b:2/db?connect_timeout=7&schema=my%20own&poll_ms=250\
               &sslmode=verify-full&sslrootcert=/etc/root.pem&migrate=0&request_timeout_ms=800";
    let options = from(url).unwrap();
    assert_eq!(options.addresses.len(), 2);
    assert_eq!(options.config.get_password(), Some(&b"p@ss"[..]));
    assert_eq!(options.schema, "my own");
    assert_eq!(options.ssl, SslMode::VerifyFull);
    assert_eq!(options.roots, Roots::File("/etc/root.pem".into()));
    assert_eq!(options.poll, Duration::from_millis(250));
    assert_eq!(options.fence_wait, Duration::from_millis(200));
    assert!(!options.migrate);
    let attrs = options.config.get_target_session_attrs();
    assert_eq!(attrs, TargetSessionAttrs::ReadWrite);
    let any = from("postgres://h/d?target_session_attrs=any").unwrap();
    assert_eq!(any.config.get_target_session_attrs(), TargetSessionAttrs::Any);
}

/// F3 for this store's own settings.
#[test]
fn options_are_checked_at_below_and_above_their_bounds() {
    let good = || from("postgres://h/d").unwrap();
    let long = "s".repeat(MAX_IDENTIFIER);
    assert!(good().schema(&long).checked().is_ok());
    assert!(good().schema(long + "s").checked().is_err());
    assert!(good().schema("").checked().is_err());
    let ms = Duration::from_millis;
    assert!(good().request_timeout(ms(10)).checked().is_ok());
    assert!(good().request_timeout(ms(9)).checked().is_err());
    assert!(good().poll(ms(9)).checked().is_err());
    assert!(good().request_timeout(ms(100)).fence_wait(ms(99)).checked().is_ok());
    assert!(good().request_timeout(ms(100)).fence_wait(ms(100)).checked().is_err());
}

#[test]
fn a_wrong_url_says_what_to_write_and_repeats_no_secret() {
    assert!(said("postgres://h/d?sslmode=maybe").contains("verify-full"));
    assert!(said("postgres://h/d?poll_ms=often").contains("whole number"));
    assert!(said("postgres://h/d?channel_binding=maybe").contains("require"));
    assert!(said("postgres://h/d?connect_timeout=long").contains("whole number"));
    let odd = said("postgres://u:hunter2@h/d?colour=red");
    assert!(odd.contains("colour") && !odd.contains("hunter2"), "{odd}");
    for cut in ["postgres://u:x?hunter2@h/d", "postgres://u:x?poll_ms=hunter2@h/d"] {
        let shown = format!("{:?}", from(cut).map_err(|e| e.to_string()));
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    let at = said("postgres://h/d?password=hunter2&a=:b@c");
    assert!(at.contains("%40") && !at.contains("hunter2"), "{at}");
    assert!(from("postgres://u@h/d?application_name=a@b").is_ok());
    let port = said("postgres://u:hunter2@h:port/d");
    assert!(!port.contains("hunter2"), "{port}");
}

/// P5: the system's roots, and never less than the whole check.
#[test]
fn the_systems_roots_go_with_the_whole_check_alone() {
    let options = from("postgres://h/d?sslrootcert=system").unwrap();
    assert_eq!((options.ssl, options.roots), (SslMode::VerifyFull, Roots::System));
    assert!(from("postgres://h/d?sslrootcert=system&sslmode=verify-full").is_ok());
    for weaker in ["disable", "allow", "prefer", "require", "verify-ca"] {
        let error = said(&format!("postgres://h/d?sslrootcert=system&sslmode={weaker}"));
        assert!(error.contains("verify-full"), "{weaker}: {error}");
    }
    let environment = |name: &str| (name == "PGSSLMODE").then(|| "require".to_owned());
    let url = "postgres://h/d?sslrootcert=system";
    assert!(PostgresOptions::from_url_with(url, environment).is_err());
}

/// P9: what is the user's own is found below HOME, and what is named goes before it.
#[test]
fn files_of_the_users_own_are_found() {
    let home = |name: &str| (name == "HOME").then(|| "/home/me".to_owned());
    let options = PostgresOptions::from_url_with("postgres://h/d", home).unwrap();
    assert_eq!(options.passfile, Some("/home/me/.pgpass".into()));
    assert_eq!(options.roots, Roots::Usual(Some("/home/me/.postgresql/root.crt".into())));
    let cert = Some(("/home/me/.postgresql/postgresql.crt".into(), false));
    assert_eq!(options.identity.cert, cert);
    let url = "postgres://h/d?passfile=/p&sslcert=/c&sslkey=/k&sslrootcert=/r";
    let options = PostgresOptions::from_url_with(url, home).unwrap();
    assert_eq!(options.passfile, Some("/p".into()));
    assert_eq!(options.identity.cert, Some(("/c".into(), true)));
    assert_eq!(options.identity.key, Some("/k".into()));
    assert_eq!(options.roots, Roots::File("/r".into()));
}

/// P14: a server's list of sessions tells one program, and one process, from another.
#[test]
fn a_session_is_called_by_its_program_and_process() {
    let name = application_name("heartbeats");
    assert!(name.starts_with("tenure heartbeats: tenure_postgres"), "{name}");
    assert!(name.contains(&format!(" {}@", std::process::id())), "{name}");
    assert!(name.len() <= MAX_IDENTIFIER, "{name}");
}
