//! What scripts get from `--json`, byte for byte but for what differs each time:
//! moments, durations, incarnations, and the path of the store. The texts to compare
//! with are in `tests/golden`; `TENURE_GOLDEN=write` writes them anew.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::PathBuf;

use common::{Running, World, wait_for};
use serde_json::Value;

const FOREVER: [&str; 3] = ["--", "sleep", "1000"];

fn stand(world: &World, id: &str, more: &[&str]) -> Running {
    let mut args = vec!["-e", "jobs"];
    args.extend(more);
    args.extend(FOREVER);
    world.run(id, &args)
}

/// What the program prints, with what differs each time taken out.
fn printed(world: &World, args: &[&str]) -> String {
    let mut with_json = vec!["--json"];
    with_json.extend(args);
    let text = world.text(&with_json);
    let values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let values: Vec<Value> = values.map(Result::unwrap).collect();
    let pretty = values.iter().any(|value| text == format!("{value:#}\n"));
    let lines = values.into_iter().map(|mut value| {
        settle("", &mut value);
        if pretty { format!("{value:#}\n") } else { format!("{value}\n") }
    });
    lines.collect()
}

fn settle(key: &str, value: &mut Value) {
    let settled = match (key, &*value) {
        ("elected_at" | "joined_at" | "at" | "from" | "to", Value::String(text))
            if text.len() == 24 && text.ends_with('Z') =>
        {
            "MOMENT"
        }
        ("by", Value::String(text)) if text.starts_with("tester@") => "tester@HOST",
        ("incarnation", Value::String(text)) if text.len() == 32 => "INCARNATION",
        ("url" | "found", Value::String(_)) => "TEXT",
        ("seq", Value::Number(_)) => "SEQ",
        (key, Value::Number(_)) if key.ends_with("_ms") => "MILLISECONDS",
        (_, Value::Array(_)) => {
            value.as_array_mut().unwrap().iter_mut().for_each(|value| settle(key, value));
            return;
        }
        (_, Value::Object(_)) => {
            for (key, value) in value.as_object_mut().unwrap() {
                settle(key, value);
            }
            return;
        }
        _ => return,
    };
    *value = settled.into();
}

fn golden(name: &str, printed: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("TENURE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, printed).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(printed, kept, "{} differs", path.display());
}

/// Every answer of a little history: two members, a pause, a step-down, an eviction.
#[test]
fn json_answers_keep_their_shape() {
    let world = World::new();
    let compare = |name: &str, args: &[&str]| golden(name, &printed(&world, args));
    let _a = stand(&world, "a", &["--endpoint", "10.0.0.7:80", "--meta", "zone=x"]);
    world.next_leader("jobs", 0);
    let _b = stand(&world, "b", &["--priority", "7"]);
    wait_for("b to stand", || {
        let candidates = world.json(&["status", "jobs"])["candidates"].as_array().unwrap().len();
        (candidates == 2).then_some(())
    });
    compare("pause.json", &["pause", "jobs", "--reason", "maintenance"]);
    compare("status-one.json", &["status", "jobs"]);
    compare("resume.json", &["resume", "jobs"]);
    compare("status-all.json", &["status"]);
    compare("members.json", &["members"]);
    compare("elections.json", &["elections"]);
    compare("check.json", &["check", "jobs"]);
    compare("fence.json", &["fence", "jobs", "1"]);
    compare("resign.json", &["resign", "jobs", "--reason", "draining", "--wait"]);
    wait_for("a to leave", || {
        let members = world.json(&["members"])["members"].as_array().unwrap().len();
        (members == 1).then_some(())
    });
    compare("evict.json", &["evict", "b", "--now"]);
    compare("status-vacant.json", &["status", "jobs"]);
    world.text(&["run", "-q", "-e", "jobs", "--id", "c", "--", "true"]);
    compare("restored.json", &["restored"]);
    compare("timing.json", &["timing", "--recover-in", "5s", "--tolerate", "3s"]);

    // How often b joins anew before it ends is left to chance: one line of each event.
    let all = printed(&world, &["watch", "--from", "0", "--count", "15"]);
    let mut seen = std::collections::BTreeMap::new();
    for line in all.lines() {
        let event = serde_json::from_str::<Value>(line).unwrap()["event"].to_string();
        seen.entry(event).or_insert_with(|| format!("{line}\n"));
    }
    golden("watch.jsonl", &seen.into_values().collect::<String>());
    let history = world.json(&["history", "jobs"]);
    let mut history = history["elections"][0]["terms"].clone();
    settle("", &mut history);
    golden("history.json", &format!("{history:#}\n"));
}

/// The doctor's findings: what was looked at, and how it is meant.
#[test]
fn the_doctors_findings_keep_their_shape() {
    let world = World::new();
    golden("doctor.json", &printed(&world, &["doctor", "--clock-for", "200ms"]));
}
