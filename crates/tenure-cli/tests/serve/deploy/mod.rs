//! What is in `deploy/`: every line of it is held against the real program and its real answers.

mod measured;
mod started;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Where schemathesis is, which brings a reader of YAML along.
const READER: &str = "TENURE_TEST_SCHEMATHESIS";

/// The folder.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

fn text(path: &str) -> String {
    std::fs::read_to_string(folder().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The documents of a YAML file; `None` where no reader can be had.
fn yaml(path: &str) -> Option<Vec<Value>> {
    let Some(program) = std::env::var_os(READER) else {
        tenure_testkit::cannot_test_here(
            "there is no reader of YAML, which `cargo xtask test` installs where pip can",
        );
        return None;
    };
    let script = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(sys.stdin))))";
    let mut reader = Command::new("python3");
    let place = Path::new(&program).ancestors().nth(2).unwrap();
    reader.args(["-c", script]).env("PYTHONPATH", place);
    let file = std::fs::File::open(folder().join(path)).unwrap();
    let read = reader.stdin(file).stderr(Stdio::inherit()).output().unwrap();
    assert!(read.status.success(), "{path} is no YAML");
    Some(serde_json::from_slice(&read.stdout).unwrap())
}

/// Every text in a document, whatever it is a part of.
fn texts<'a>(value: &'a Value, into: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => into.push(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, into)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, into)),
        _ => {}
    }
}

fn words(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
}
