//! Holds answers against `openapi.json`: as much of JSON Schema as the document uses. A word
//! that is not known here fails, so that nothing is passed over.

use serde_json::Value;

use super::Answer;

fn document() -> Value {
    serde_json::from_str(include_str!("../../openapi.json")).unwrap()
}

/// The answer is one that the document has for this path, method and status.
pub(crate) fn check(method: &str, path: &str, answer: &Answer) {
    let document = document();
    let path = path.split('?').next().unwrap();
    let Some(operation) = operation(&document, method, path) else {
        let refused = matches!(answer.status, 401 | 403..=405 | 415 | 421) || method == "OPTIONS";
        let page = answer.header("content-type").is_some_and(|kind| kind.starts_with("text/"));
        assert!(
            refused || page || method == "HEAD",
            "{method} {path} is not in the document: {answer:?}"
        );
        return;
    };
    let responses = &operation["responses"];
    let response = responses.get(answer.status.to_string()).unwrap_or(&responses["default"]);
    let Some(content) = response.get("content") else {
        assert_eq!(answer.body, "", "{method} {path}: no body is described");
        return;
    };
    let kind = answer.header("content-type").unwrap_or_default().split(';').next().unwrap();
    // A refusal is a problem, whatever else the status may say.
    let media = match kind {
        "application/problem+json" => {
            return valid(
                &document,
                &document["components"]["schemas"]["Problem"],
                &answer.json(),
                path,
            );
        }
        kind => &content[kind],
    };
    assert!(media.is_object(), "{method} {path}: {kind} is not described for {}", answer.status);
    if kind == "application/json" {
        valid(&document, &media["schema"], &answer.json(), path);
    }
}

fn operation<'a>(document: &'a Value, method: &str, path: &str) -> Option<&'a Value> {
    let paths = document["paths"].as_object().unwrap();
    let fits = |template: &str| {
        let mut parts = path.split('/');
        let names = template.ends_with("{name}");
        let whole = template.split('/').all(|want| match parts.next() {
            Some(part) => want == part || (want.starts_with('{') && !part.is_empty()),
            None => false,
        });
        whole && (names || parts.next().is_none())
    };
    let found = paths.iter().filter(|(template, _)| fits(template));
    // The one with the fewest variables is the one that is routed to.
    let best = found.min_by_key(|(template, _)| template.matches('{').count());
    best.and_then(|(_, operations)| operations.get(method.to_lowercase()))
}

fn valid(document: &Value, schema: &Value, value: &Value, at: &str) {
    if let Some(problem) = problem(document, schema, value, at) {
        panic!("{problem}\nin {value:#}");
    }
}

fn problem(document: &Value, schema: &Value, value: &Value, at: &str) -> Option<String> {
    for (word, rule) in schema.as_object().unwrap() {
        let found = match word.as_str() {
            "description" | "format" => None,
            "$ref" => {
                let name = rule.as_str().unwrap().rsplit('/').next().unwrap();
                let schema = &document["components"]["schemas"][name];
                assert!(schema.is_object(), "{name} is not in the document");
                problem(document, schema, value, at)
            }
            "type" => wrong_type(rule, value).then(|| format!("{at}: not of type {rule}: {value}")),
            "enum" => {
                let known = rule.as_array().unwrap().contains(value);
                (!known).then(|| format!("{at}: {value} is none of {rule}"))
            }
            "minimum" => {
                let least = rule.as_f64().unwrap();
                value.as_f64().filter(|n| *n < least).map(|n| format!("{at}: {n} is below {least}"))
            }
            "maximum" => {
                let most = rule.as_f64().unwrap();
                value.as_f64().filter(|n| *n > most).map(|n| format!("{at}: {n} is above {most}"))
            }
            "oneOf" => {
                let all = rule.as_array().unwrap();
                let fit = all.iter().filter(|s| problem(document, s, value, at).is_none()).count();
                (fit != 1).then(|| format!("{at}: {fit} of the schemas fit {value}"))
            }
            "items" => value
                .as_array()
                .and_then(|items| items.iter().find_map(|item| problem(document, rule, item, at))),
            "required" => value.as_object().and_then(|object| {
                let wanted = rule.as_array().unwrap().iter().map(|key| key.as_str().unwrap());
                let missing = wanted.into_iter().find(|key| !object.contains_key(*key));
                missing.map(|key| format!("{at}: {key} is missing"))
            }),
            "properties" => value.as_object().and_then(|object| {
                object.iter().find_map(|(key, value)| {
                    let rule = rule.get(key)?;
                    problem(document, rule, value, &format!("{at}.{key}"))
                })
            }),
            "additionalProperties" => value.as_object().and_then(|object| {
                let known = &schema["properties"];
                let other = object.keys().find(|key| known.get(key.as_str()).is_none());
                other.map(|key| format!("{at}: {key} is not described"))
            }),
            word => panic!("{word} is not checked here"),
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

fn wrong_type(rule: &Value, value: &Value) -> bool {
    let fits = |kind: &Value| match kind.as_str().unwrap() {
        "null" => value.is_null(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        kind => panic!("{kind} is not checked here"),
    };
    match rule {
        Value::Array(kinds) => !kinds.iter().any(fits),
        kind => !fits(kind),
    }
}

/// The checker finds what is wrong: without this it would hold nothing against anything.
#[test]
fn a_wrong_answer_is_found() {
    let document = document();
    let schema = &document["components"]["schemas"]["Here"];
    let good = serde_json::json!({
        "election": "e", "member": "m", "leading": true, "term": null, "remaining_ms": 0,
        "trusted_until_boottime_ns": null, "boot_id": "",
    });
    assert_eq!(problem(&document, schema, &good, ""), None);
    for (key, value) in [
        ("leading", serde_json::json!("yes")),
        ("term", serde_json::json!(-1)),
        ("more", serde_json::json!(1)),
    ] {
        let mut bad = good.clone();
        bad[key] = value;
        assert!(problem(&document, schema, &bad, "").is_some(), "{bad}");
    }
    let mut short = good;
    short.as_object_mut().unwrap().remove("member");
    assert!(problem(&document, schema, &short, "").is_some());
}
