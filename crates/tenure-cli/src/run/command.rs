//! The command: whether it can be run at all, found out before the program stands
//! for its election.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};

/// Finds the command as the shell would, or says why it cannot be run.
pub(crate) fn check(program: &OsStr) -> Outcome<()> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    find(program, &path)
}

fn find(program: &OsStr, path: &OsStr) -> Outcome<()> {
    let shown = program.display();
    if program.is_empty() {
        return Err(Failure::new(Exit::NoCommand, "the command is empty; name one after --"));
    }
    if program.as_bytes().contains(&b'/') {
        return match runnable(Path::new(program)) {
            Some(true) => Ok(()),
            Some(false) => Err(not_executable(&shown.to_string(), Path::new(program))),
            None => {
                let what = format!("{shown} does not exist");
                Err(Failure::new(Exit::NoCommand, format!("{what}; check the path of the command")))
            }
        };
    }
    let mut found: Option<PathBuf> = None;
    for directory in std::env::split_paths(path) {
        let candidate = directory.join(program);
        match runnable(&candidate) {
            Some(true) => return Ok(()),
            Some(false) => found = found.or(Some(candidate)),
            None => {}
        }
    }
    match found {
        Some(candidate) => Err(not_executable(&shown.to_string(), &candidate)),
        None => {
            let what = format!("the command {shown} was not found in PATH");
            let remedy = "install it, or give its path; a shell's own command needs sh -c";
            Err(Failure::new(Exit::NoCommand, format!("{what}; {remedy}")))
        }
    }
}

/// Whether a file can be executed; `None` if there is no such file.
fn runnable(path: &Path) -> Option<bool> {
    let found = std::fs::metadata(path).ok()?;
    Some(found.is_file() && access(path, Access::EXEC_OK).is_ok())
}

fn not_executable(shown: &str, path: &Path) -> Failure {
    let remedy = if path.is_dir() { "it is a directory" } else { "chmod +x makes it so" };
    let what = format!("{shown} ({}) is not executable", path.display());
    Failure::new(Exit::NotExecutable, format!("{what}; {remedy}"))
}

/// Why the kernel refused to execute a command that looked fine.
pub(crate) fn explain(program: &OsStr, error: &io::Error) -> (Exit, String) {
    let exit = match error.kind() {
        io::ErrorKind::NotFound => Exit::NoCommand,
        _ => Exit::NotExecutable,
    };
    let shown = program.display();
    let why = match error.kind() {
        // The file is there: what is missing is what it wants to be run by.
        io::ErrorKind::NotFound if Path::new(program).exists() => {
            format!("{shown} cannot be run: the interpreter it names does not exist")
        }
        _ => format!("{shown} cannot be run: {error}"),
    };
    (exit, why)
}

/// `--meta k=v …` as one JSON object, which is what is published.
pub(crate) fn metadata(pairs: &[String]) -> Outcome<Vec<u8>> {
    if pairs.is_empty() {
        return Ok(Vec::new());
    }
    let mut object = serde_json::Map::new();
    for pair in pairs {
        let Some((key, value)) = pair.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(Failure::usage(format!("--meta {pair:?} is not KEY=VALUE")));
        };
        if object.insert(key.to_owned(), value.into()).is_some() {
            return Err(Failure::usage(format!("--meta {key:?} is given twice")));
        }
    }
    Ok(serde_json::Value::Object(object).to_string().into_bytes())
}

/// The environment that the command finds itself in.
pub(crate) fn environment(
    held: [(&'static str, OsString); 2],
    member: &str,
    store: &str,
    namespace: &str,
) -> [(&'static str, OsString); 5] {
    let [what, token] = held;
    [
        what,
        token,
        ("TENURE_MEMBER", member.into()),
        ("TENURE_STORE", store.into()),
        ("TENURE_NAMESPACE", namespace.into()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(program: &str, path: &str) -> u8 {
        find(program.as_ref(), path.as_ref()).map_or_else(|f| f.exit().code(), |()| 0)
    }

    /// L24: of the machine it takes only a shell and `true` for granted.
    #[test]
    fn commands_are_found_as_the_shell_finds_them() {
        let dir = tempfile::tempdir().unwrap();
        let plain = dir.path().join("plain");
        std::fs::write(&plain, "#!/bin/sh\n").unwrap();
        let here = dir.path().to_str().unwrap();
        assert_eq!(code("true", "/usr/bin:/bin"), 0);
        assert_eq!(code("/bin/sh", ""), 0);
        assert_eq!(code("plain", here), 126);
        assert_eq!(code(plain.to_str().unwrap(), ""), 126);
        assert_eq!(code(here, ""), 126);
        let missing = dir.path().join("missing");
        assert_eq!(code("missing", here), 127);
        assert_eq!(code("missing", missing.to_str().unwrap()), 127);
        assert_eq!(code(missing.to_str().unwrap(), ""), 127);
        assert_eq!(code(missing.join("command").to_str().unwrap(), ""), 127);
        assert_eq!(code("", here), 127);
        // The first that can be executed wins over one that cannot.
        std::fs::write(dir.path().join("true"), "").unwrap();
        assert_eq!(code("true", &format!("{here}:/usr/bin:/bin")), 0);
    }

    #[test]
    fn metadata_is_one_object_of_the_pairs() {
        let pairs = ["zone=a".to_owned(), "expr=x=y".to_owned()];
        assert_eq!(metadata(&pairs).unwrap(), br#"{"zone":"a","expr":"x=y"}"#);
        assert_eq!(metadata(&[]).unwrap(), b"");
        for bad in
            [vec!["zone".to_owned()], vec!["=a".to_owned()], vec!["a=1".into(), "a=2".into()]]
        {
            assert!(metadata(&bad).is_err(), "{bad:?}");
        }
    }
}
