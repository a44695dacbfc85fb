//! The service config that a leader publishes in its profile's metadata.
//!
//! The metadata is a JSON object with the key `grpc.service_config`, whose value is a service
//! config of gRPC, as an object or as a text that contains one. Of its `methodConfig` the
//! fields `timeout` and `waitForReady` are honoured. What else it says is logged once for each
//! text and left alone: a channel to one leader balances nothing, and repeats by its own rule.
//! A config that cannot be read is logged once, too, and calls go on without one: a leader's
//! typing error must not be the end of its service.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Map, Value};

/// The key in the metadata.
const KEY: &str = "grpc.service_config";

/// Metadata for [`tenure::Builder::metadata`] with this service config in it.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let metadata = tenure_grpc::service_config(
///     r#"{"methodConfig": [{"name": [{"service": "greet.Greeter"}], "timeout": "2s"}]}"#,
/// )?;
/// let member = tenure::Tenure::builder("memory:").endpoint("10.0.0.7:50051").metadata(metadata);
/// assert!(tenure_grpc::service_config("timeout: 2s").is_err());
/// # drop(member); Ok(())
/// # }
/// ```
pub fn service_config(json: &str) -> Result<Vec<u8>, BadServiceConfig> {
    let value: Value = serde_json::from_str(json)
        .map_err(|error| BadServiceConfig(format!("it is no JSON: {error}")))?;
    ServiceConfig::of(&value).map_err(BadServiceConfig)?;
    let metadata = Value::Object(Map::from_iter([(KEY.to_owned(), value)]));
    Ok(metadata.to_string().into_bytes())
}

/// A service config that no client could read.
///
/// ```
/// let refused = tenure_grpc::service_config("{\"methodConfig\": 7}").unwrap_err();
/// assert!(refused.to_string().contains("methodConfig"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this service config cannot be published: {0}; nothing was written")]
pub struct BadServiceConfig(String);

/// What is honoured of a service config.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServiceConfig {
    /// By `service/method`, by `service/`, and for all by the empty text.
    methods: HashMap<String, Method>,
    /// What it says beyond that.
    pub(crate) ignored: Vec<String>,
}

/// What is honoured for a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Method {
    pub(crate) timeout: Option<Duration>,
    pub(crate) wait_for_ready: Option<bool>,
}

impl ServiceConfig {
    /// Of a leader's metadata. `Ok(None)` if it has none: the metadata is the application's.
    pub(crate) fn of_metadata(metadata: &[u8]) -> Result<Option<Self>, String> {
        let Ok(Value::Object(metadata)) = serde_json::from_slice(metadata) else { return Ok(None) };
        match metadata.get(KEY) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => {
                let value = serde_json::from_str(text);
                Self::of(&value.map_err(|error| format!("it is no JSON: {error}"))?).map(Some)
            }
            Some(value) => Self::of(value).map(Some),
        }
    }

    fn of(value: &Value) -> Result<Self, String> {
        let Value::Object(config) = value else { return Err("it is no JSON object".into()) };
        let mut found = Self::default();
        found.ignored.extend(config.keys().filter(|key| *key != "methodConfig").cloned());
        let methods = match config.get("methodConfig") {
            None => return Ok(found),
            Some(Value::Array(methods)) => methods,
            Some(_) => return Err("methodConfig is no list".into()),
        };
        for method in methods {
            found.add(method)?;
        }
        found.ignored.sort();
        found.ignored.dedup();
        Ok(found)
    }

    fn add(&mut self, method: &Value) -> Result<(), String> {
        let Value::Object(fields) = method else {
            return Err("an entry of methodConfig is no object".into());
        };
        let mut said = Method::default();
        for (field, value) in fields {
            match (field.as_str(), value) {
                ("name", Value::Array(_)) => {}
                ("timeout", Value::String(text)) => {
                    let timeout = duration(text);
                    said.timeout = Some(timeout.ok_or(format!("{text:?} is no timeout, as 1.5s"))?);
                }
                ("waitForReady", Value::Bool(wait)) => said.wait_for_ready = Some(*wait),
                ("name" | "timeout" | "waitForReady", _) => {
                    return Err(format!("{field} is of the wrong kind: {value}"));
                }
                (other, _) => self.ignored.push(format!("methodConfig.{other}")),
            }
        }
        let no_names = Vec::new();
        let names = fields.get("name").and_then(Value::as_array).unwrap_or(&no_names);
        for name in names {
            let part = |key: &str| name.get(key).and_then(Value::as_str).unwrap_or_default();
            let path = match (part("service"), part("method")) {
                ("", "") => String::new(),
                ("", _) => return Err(format!("a name has a method and no service: {name}")),
                (service, method) => format!("{service}/{method}"),
            };
            self.methods.entry(path).or_insert(said);
        }
        Ok(())
    }

    /// For a call to this path: `/service/method`.
    pub(crate) fn method(&self, path: &str) -> Method {
        if self.methods.is_empty() {
            return Method::default();
        }
        let path = path.strip_prefix('/').unwrap_or(path);
        let service = path.rfind('/').map_or(path, |slash| &path[..=slash]);
        let found = [path, service, ""].into_iter().find_map(|key| self.methods.get(key));
        found.copied().unwrap_or_default()
    }
}

/// A duration as JSON has it in protocol buffers: `1.5s`.
fn duration(text: &str) -> Option<Duration> {
    let seconds = text.strip_suffix('s')?;
    let plain = seconds.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let seconds: f64 = seconds.parse().ok().filter(|_| plain)?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(config: &str) -> ServiceConfig {
        let metadata = format!("{{\"zone\": \"a\", \"{KEY}\": {config}}}");
        ServiceConfig::of_metadata(metadata.as_bytes()).unwrap().unwrap()
    }

    /// The most exact name wins, the first of equals, and the empty one is for all.
    #[test]
    fn a_call_has_the_config_of_its_method() {
        let config = read(
            r#"{"loadBalancingConfig": [], "methodConfig": [
                {"name": [{"service": "a.B", "method": "C"}], "timeout": "0.25s"},
                {"name": [{"service": "a.B"}], "waitForReady": true, "retryPolicy": {}},
                {"name": [{}], "timeout": "3s", "waitForReady": false}]}"#,
        );
        assert_eq!(config.method("/a.B/C").timeout, Some(Duration::from_millis(250)));
        let service = Method { timeout: None, wait_for_ready: Some(true) };
        assert_eq!(config.method("/a.B/D"), service);
        assert_eq!(config.method("/x.Y/Z").timeout, Some(Duration::from_secs(3)));
        assert_eq!(config.ignored, ["loadBalancingConfig", "methodConfig.retryPolicy"]);
    }

    /// As vimeo's ConnectionParams had it: a text.
    #[test]
    fn a_config_in_a_text_is_read() {
        let config = read(r#""{\"methodConfig\": [{\"name\": [{}], \"timeout\": \"1s\"}]}""#);
        assert_eq!(config.method("/a/b").timeout, Some(Duration::from_secs(1)));
        assert_eq!(ServiceConfig::default().method("/a/b"), Method::default());
    }

    #[test]
    fn metadata_of_another_kind_is_the_applications_own() {
        for metadata in [&b""[..], b"\xff\xfe", b"zone=a", b"[1]", b"{}", b"{\"zone\": 1}"] {
            assert_eq!(ServiceConfig::of_metadata(metadata), Ok(None));
        }
    }

    #[test]
    fn a_config_that_cannot_be_read_is_refused_with_the_reason() {
        for config in [
            "7",
            "\"{\"",
            "\"\"",
            "[]",
            r#"{"methodConfig": {}}"#,
            r#"{"methodConfig": [7]}"#,
            r#"{"methodConfig": [{"name": [{}], "timeout": 7}]}"#,
            r#"{"methodConfig": [{"name": [{}], "timeout": "-1s"}]}"#,
            r#"{"methodConfig": [{"name": [{}], "timeout": "1e99s"}]}"#,
            r#"{"methodConfig": [{"name": [{}], "timeout": "7"}]}"#,
            r#"{"methodConfig": [{"name": [{"method": "C"}]}]}"#,
            r#"{"methodConfig": [{"name": [{}], "waitForReady": "yes"}]}"#,
        ] {
            let metadata = format!("{{\"{KEY}\": {config}}}");
            let read = ServiceConfig::of_metadata(metadata.as_bytes());
            assert!(read.is_err_and(|why| !why.is_empty()), "{config}");
        }
    }
}
