//! Panels and alerts ask for what is measured, and for nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::{Value, json};
use tenure_api::Loss;

use super::{text, yaml};
use crate::common::{World, wait_for};
use crate::web::{Session, serve};

/// Labels that Prometheus adds.
const ADDED: [&str; 2] = ["instance", "job"];
/// Where Prometheus' own tool is.
const PROMTOOL: &str = "TENURE_TEST_PROMTOOL";

/// For each name that a server shows, its labels, and for each of them its values.
type Measured = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// What a real server shows once everything has happened that is measured.
fn measured() -> Measured {
    let world = World::new();
    let served = serve(&world, "measured", &["--ttl", "1500ms", "--stand", "nightly"]);
    let mut session = Session::begin(&served.web, "jobs", &json!({ "id": "a" }));
    session.until("leading");
    served.web.post(&session.path("/resign"), &json!({})).unwrap();
    let text = wait_for("everything to be measured", || {
        let text = served.web.get("/metrics").1;
        let wanted = ["renew_margin_seconds_count", "leaderships_lost_total{", "trust_remaining"];
        let all = wanted.iter().all(|name| text.contains(&format!("tenure_{name}")));
        (all && text.contains("verb=\"heartbeat\"")).then_some(text)
    });
    let mut found = Measured::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, rest) = line.split_at(line.find(['{', ' ']).unwrap());
        let labels = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        let known = found.entry(name.to_owned()).or_default();
        for pair in labels.map_or("", |(labels, _)| labels).split(',').filter(|l| !l.is_empty()) {
            let (label, value) = pair.split_once('=').unwrap();
            let value = value.trim_matches('"').to_owned();
            known.entry(label.to_owned()).or_default().insert(value);
        }
    }
    found
}

/// What an expression asks for: names, with what their selectors say of labels, and the labels
/// that it groups by.
#[derive(Debug, Default)]
struct Asked {
    names: Vec<(String, Vec<(String, String)>)>,
    groups: BTreeSet<String>,
}

fn asked(expression: &str) -> Asked {
    let mut asked = Asked::default();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = expression;
    while let Some(at) = rest.find("tenure_") {
        let end = rest[at..].find(|c| !is_word(c)).map_or(rest.len(), |length| at + length);
        let name = rest[at..end].to_owned();
        rest = &rest[end..];
        let selector = rest.strip_prefix('{').and_then(|inside| inside.split_once('}'));
        let mut labels = Vec::new();
        if let Some((inside, after)) = selector {
            rest = after;
            for part in inside.split("\",").filter(|part| !part.is_empty()) {
                let end = part.find(|c| !is_word(c)).unwrap();
                let value = part[end..].trim_start_matches(['=', '~', '!']).trim_matches('"');
                labels.push((part[..end].to_owned(), value.to_owned()));
            }
        }
        asked.names.push((name, labels));
    }
    for group in ["by (", "on ("] {
        for part in expression.split(group).skip(1) {
            let inside = part.split(')').next().unwrap();
            asked.groups.extend(inside.split(',').map(|label| label.trim().to_owned()));
        }
    }
    asked
}

/// What is wrong with an expression, if anything.
fn wrong(known: &Measured, expression: &str) -> Option<String> {
    let asked = asked(expression);
    let mut all = BTreeSet::from(ADDED.map(str::to_owned));
    for (name, labels) in &asked.names {
        let Some(shown) = known.get(name) else { return Some(format!("{name} is not measured")) };
        all.extend(shown.keys().cloned());
        for (label, value) in labels {
            let Some(values) = shown.get(label) else {
                return Some(format!("{name} has no label {label}"));
            };
            let mut words = value.split('|').filter(|word| !word.is_empty());
            let unknown = match label.as_str() {
                // Which reasons there are is said by the program, whatever happened here.
                "reason" => words.find(|word| !Loss::ALL.iter().any(|loss| loss.as_str() == *word)),
                "le" | "verb" => words.find(|word| !values.contains(*word)),
                _ => None,
            };
            if let Some(word) = unknown {
                return Some(format!("{name}: {label} is never {word:?}"));
            }
        }
    }
    let group = asked.groups.iter().find(|label| !all.contains(*label));
    group.map(|label| format!("nothing has the label {label}"))
}

/// The expressions of the dashboard's panels and variables.
fn panels() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&text("grafana/tenure.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let mut all: Vec<_> = targets.map(|t| t["expr"].as_str().unwrap().to_owned()).collect();
    assert!(all.len() >= panels.len(), "each panel asks for something");
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    for query in variables.iter().filter_map(|variable| variable["definition"].as_str()) {
        all.push(query.to_owned());
    }
    all
}

fn alerts() -> Option<Vec<Value>> {
    let file = yaml("prometheus/alerts.yaml")?;
    let groups = file[0]["groups"].as_array().unwrap().clone();
    Some(groups.iter().flat_map(|group| group["rules"].as_array().unwrap().clone()).collect())
}

/// Each name, each label and each value of a label in panels and alerts is one that a real server
/// shows.
#[test]
fn panels_and_alerts_ask_for_what_is_measured() {
    let known = measured();
    // The check itself: each of these is found.
    for bad in [
        "tenure_leaders == 0",
        "tenure_leader{elections=\"a\"}",
        "sum by (elections) (tenure_leader)",
        "tenure_renew_margin_seconds_bucket{le=\"1.5\"}",
        "tenure_leaderships_lost_total{reason=~\"resigned|tired\"}",
    ] {
        assert!(wrong(&known, bad).is_some(), "{bad}");
    }
    for expression in panels() {
        assert_eq!(wrong(&known, &expression), None, "a panel: {expression}");
    }
    let Some(alerts) = alerts() else { return };
    for alert in &alerts {
        let expression = alert["expr"].as_str().unwrap();
        assert_eq!(wrong(&known, expression), None, "{}: {expression}", alert["alert"]);
        for label in alert["annotations"]["summary"].as_str().unwrap().split("$labels.").skip(1) {
            let label: String = label.chars().take_while(|c| c.is_ascii_lowercase()).collect();
            let asks = format!("sum by ({label}) ({expression})");
            assert_eq!(wrong(&known, &asks), None, "{}: {label}", alert["alert"]);
        }
    }
}

/// Each alert has its chapter in the runbook, and each chapter about an alert has one.
#[test]
fn each_alert_has_its_chapter() {
    let Some(alerts) = alerts() else { return };
    let book = std::fs::read_to_string(super::folder().join("../docs/operations.md")).unwrap();
    let chapters: BTreeSet<_> =
        book.lines().filter_map(|line| line.strip_prefix("### Tenure")).collect();
    let mut named = BTreeSet::new();
    for alert in &alerts {
        let name = alert["alert"].as_str().unwrap();
        let runbook = alert["annotations"]["runbook"].as_str().unwrap();
        assert!(runbook.ends_with(&format!("#{}", name.to_lowercase())), "{name}: {runbook}");
        named.insert(name.strip_prefix("Tenure").unwrap());
        for word in ["summary", "description"] {
            assert!(alert["annotations"][word].is_string(), "{name} has no {word}");
        }
    }
    assert_eq!(named, chapters);
}

/// Prometheus' own tool takes the rules, its tests of them hold, and it reads each panel.
#[test]
fn prometheus_takes_the_rules() {
    let Some(tool) = std::env::var_os(PROMTOOL) else {
        tenure_testkit::cannot_test_here(
            "there is no promtool, which `cargo xtask test` takes from Debian's prometheus",
        );
        return;
    };
    let run = |args: &[&str], dir: &std::path::Path| {
        let said = Command::new(&tool).args(args).current_dir(dir).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(said.status.success(), "{args:?}: {}{}", text(&said.stdout), text(&said.stderr));
    };
    let rules = super::folder().join("prometheus");
    run(&["check", "rules", "alerts.yaml"], &rules);
    run(&["check", "config", "--syntax-only", "prometheus.yaml"], &rules);
    run(&["test", "rules", "alerts.test.yaml"], &rules);
    // As rules, so that they are read whole.
    let world = World::new();
    let queries = panels().into_iter().filter(|query| !query.starts_with("label_values"));
    let as_rule = |(n, query): (usize, String)| {
        let query = query.replace("$__rate_interval", "5m");
        json!({ "record": format!("panel_{n}"), "expr": query })
    };
    let rules: Vec<_> = queries.enumerate().map(as_rule).collect();
    let file = json!({ "groups": [{ "name": "panels", "rules": rules }] });
    std::fs::write(world.path("panels.yaml"), file.to_string()).unwrap();
    run(&["check", "rules", "panels.yaml"], world.dir());
}
