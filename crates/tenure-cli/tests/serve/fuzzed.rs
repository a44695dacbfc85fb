//! The HTTP surface under schemathesis, which makes requests from the OpenAPI document: those that
//! it allows, those that it does not, and chains of them.

use std::process::{Command, Stdio};

use crate::common::World;
use crate::web::serve;

/// Where the program is.
const PROGRAM: &str = "TENURE_TEST_SCHEMATHESIS";
/// How long it may go on; longer by `TENURE_FUZZ_SECONDS`.
const SECONDS: &str = "25";

/// No answer is of another kind than the document says, no input makes the server fail, what the
/// document forbids is refused, and nothing is answered without a token.
#[test]
fn the_document_is_kept_to_under_any_request() {
    let Some(program) = std::env::var_os(PROGRAM) else {
        tenure_testkit::cannot_test_here(
            "there is no schemathesis, which `cargo xtask test` installs where pip can",
        );
        return;
    };
    let world = World::new();
    let operators = world.path("operators");
    std::fs::write(&operators, "steer\n").unwrap();
    let operators = operators.to_str().unwrap().to_owned();
    let line = ["--ttl", "3s", "--stand", "nightly", "--max-sessions", "100"];
    let mut served =
        serve(&world, "fuzzed", &[&line[..], &["--operator-tokens", &operators]].concat());
    let seconds = std::env::var("TENURE_FUZZ_SECONDS").unwrap_or_else(|_| SECONDS.to_owned());
    let seed = std::env::var("TENURE_FUZZ_SEED").unwrap_or_else(|_| "1".to_owned());
    // 503 is an answer here: this server does not lead.
    let config = "[checks.not_a_server_error]\nexpected-statuses = [\"2xx\", \"4xx\", 503]\n";
    std::fs::write(world.path("schemathesis.toml"), config).unwrap();
    let log = world.path("schemathesis.log");
    let out = std::fs::File::create(&log).unwrap();
    let mut fuzz = Command::new("python3");
    // A program of Python's own finds its parts in the folder above it.
    let folder = std::path::Path::new(&program).ancestors().nth(2).unwrap();
    fuzz.arg(&program).env("PYTHONPATH", folder).current_dir(world.dir());
    fuzz.args(["run", &format!("http://{}/openapi.json", served.web.address())]);
    fuzz.args(["--header", "Authorization: Bearer steer", "--continue-on-failure", "--no-color"]);
    fuzz.args(["--seed", &seed, "--max-time", &seconds, "--request-timeout", "20", "--no-shrink"]);
    fuzz.args(["--phases", "examples,coverage,fuzzing,stateful", "--max-examples", "40"]);
    // Events have no end, and the login is not by the token of the header.
    fuzz.args(["--exclude-path", "/v1/events", "--exclude-path", "/login"]);
    // That a name is taken, or a session over, is no fault of the request's form.
    fuzz.args(["--exclude-checks", "positive_data_acceptance"]);
    let fuzzed = fuzz.stdin(Stdio::null()).stdout(out.try_clone().unwrap()).stderr(out).status();
    let said = std::fs::read_to_string(&log).unwrap();
    assert!(fuzzed.unwrap().success(), "{said}\nit said: {}", served.process.said());
    eprintln!("{}", said.lines().rev().take(12).collect::<Vec<_>>().join("\n"));

    assert!(served.process.child.try_wait().unwrap().is_none(), "the server has ended");
    assert!(!served.process.said().contains("panicked"), "{}", served.process.said());
    assert_eq!(served.web.get("/livez").0, 200);
}
