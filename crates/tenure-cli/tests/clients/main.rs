//! The clients in other languages: their own tests, and all of them on one store under faults.

#![allow(clippy::unwrap_used)]

mod checked;
mod members;
mod packages;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use packages::Packages;

/// Where the packages lie.
fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients").canonicalize().unwrap()
}

/// The database for tests, with the schema.
fn database() -> String {
    let url = std::env::var("TENURE_TEST_POSTGRES_URL")
        .expect("TENURE_TEST_POSTGRES_URL is not set: run `cargo xtask test`");
    let mut made = tenure();
    let made = made.args(["--store", &url, "status"]).output().unwrap();
    passed("tenure status", &made);
    url
}

fn tenure() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tenure"))
}

#[track_caller]
fn passed(what: &str, output: &Output) {
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = format!("{}\n{}", said(&output.stdout), said(&output.stderr));
    assert!(output.status.success(), "{what}: {}\n{said}", output.status);
}

/// The scripts, the hostile servers, real servers under faults, PostgreSQL by each driver, the
/// recipe, and the package by `import` and by `require`.
#[test]
fn the_typescript_package_passes_its_tests() {
    let Some(packages) = Packages::find() else { return };
    packages.build();
    let folder = clients().join("typescript");
    let mut tests: Vec<_> = std::fs::read_dir(folder.join("test"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(".test.mjs"))
        .collect();
    tests.sort();
    assert!(tests.len() >= 6, "{tests:?}");
    let mut node = packages.node();
    // They wait most of the time.
    node.current_dir(&folder).args(["--test", "--test-concurrency=6"]).args(tests);
    let output = node.env("TENURE_TEST_POSTGRES_URL", database()).output().unwrap();
    passed("node --test", &output);
}

#[test]
fn the_python_package_passes_its_tests() {
    let Some(packages) = Packages::find() else { return };
    let database = database();
    let folder = clients().join("python/tests");
    let modules = ["test_trust", "test_hostile", "test_server", "test_postgres"];
    // Each in a process of its own: they wait most of the time.
    let running = modules.map(|module| {
        let mut python = packages.python();
        python.current_dir(&folder).args([
            "-W",
            "error::ResourceWarning",
            "-m",
            "unittest",
            module,
        ]);
        python.env("TENURE_TEST_POSTGRES_URL", &database);
        python.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        python.spawn().unwrap()
    });
    for (module, running) in modules.iter().zip(running) {
        passed(module, &running.wait_with_output().unwrap());
    }
}

#[test]
fn the_python_package_is_typed() {
    let Some(packages) = Packages::find() else { return };
    let folder = clients().join("python");
    assert!(folder.join("src/tenure_client/py.typed").is_file());
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mypy");
    let mut python = packages.python();
    python.current_dir(folder).args(["-m", "mypy", "--cache-dir"]).arg(cache).arg("src");
    passed("mypy", &python.output().unwrap());
}
