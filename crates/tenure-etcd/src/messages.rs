//! What is said to etcd and what it answers, as its JSON has it: bytes in base64, numbers of
//! 64 bits as text, and what is zero left out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tenure_cas::{Expect, Write};

/// Bytes as the JSON has them.
pub(crate) fn text(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// Bytes from the JSON; `None` if that is no base64.
pub(crate) fn bytes(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// A key from the JSON; ours are ASCII.
pub(crate) fn key(text: &str) -> Option<String> {
    String::from_utf8(bytes(text)?).ok()
}

/// The first key after all that begin with this prefix, as etcd wants the end of a range.
pub(crate) fn end_of(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    // Every key there is.
    vec![0]
}

/// Numbers of 64 bits, which are text, or missing where they are zero.
mod number {
    use serde::{Deserialize as _, Deserializer, de::Error as _};

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(|_| D::Error::custom("not a whole number"))
    }
}

/// Which cluster answered, at which revision.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct Header {
    #[serde(default, deserialize_with = "number::deserialize")]
    pub(crate) cluster_id: u64,
    #[serde(default, deserialize_with = "number::deserialize")]
    pub(crate) revision: u64,
}

/// One cell.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct KeyValue {
    #[serde(default)]
    pub(crate) key: String,
    #[serde(default)]
    pub(crate) value: String,
    #[serde(default, deserialize_with = "number::deserialize")]
    pub(crate) mod_revision: u64,
}

/// The answer to a range.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Ranged {
    #[serde(default)]
    pub(crate) header: Header,
    #[serde(default)]
    pub(crate) kvs: Vec<KeyValue>,
    #[serde(default)]
    pub(crate) more: bool,
}

/// The answer to a transaction.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Committed {
    #[serde(default)]
    pub(crate) header: Header,
    #[serde(default)]
    pub(crate) succeeded: bool,
    #[serde(default)]
    pub(crate) responses: Vec<Response>,
}

/// The answer to one request of a transaction.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Response {
    #[serde(default)]
    pub(crate) response_range: Option<Ranged>,
}

/// The answer to a password.
#[derive(Deserialize)]
pub(crate) struct Authenticated {
    pub(crate) token: String,
}

/// What the server says of itself.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Status {
    #[serde(default)]
    pub(crate) version: String,
}

/// An error, as the JSON has it.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Refused {
    #[serde(default)]
    pub(crate) code: u32,
    #[serde(default)]
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) error: Value,
}

/// One line of a watch.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Line {
    #[serde(default)]
    pub(crate) result: Option<Watched>,
    #[serde(default)]
    pub(crate) error: Option<Value>,
}

/// What a watch tells at once.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Watched {
    #[serde(default)]
    pub(crate) header: Header,
    #[serde(default)]
    pub(crate) created: bool,
    #[serde(default)]
    pub(crate) canceled: bool,
    #[serde(default)]
    pub(crate) cancel_reason: String,
    #[serde(default)]
    pub(crate) events: Vec<Event>,
}

/// One change.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Event {
    /// `DELETE`; nothing for a put.
    #[serde(default, rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) kv: KeyValue,
}

/// What a condition compares.
#[derive(Debug, Serialize)]
struct Compare {
    target: &'static str,
    key: String,
    result: &'static str,
    mod_revision: String,
}

/// A transaction that stores these if each is as expected.
pub(crate) fn stores(writes: &[Write]) -> Value {
    let compare: Vec<Compare> = writes
        .iter()
        .filter_map(|write| {
            let revision = match write.expect.as_ref()? {
                // A cell that is not there has revision 0.
                Expect::Absent => "0".to_owned(),
                Expect::Version(version) => version.as_str().to_owned(),
            };
            let key = text(&write.key);
            Some(Compare { target: "MOD", key, result: "EQUAL", mod_revision: revision })
        })
        .collect();
    let put = |write: &Write| json!({"request_put": {"key": text(&write.key), "value": text(&write.bytes)}});
    json!({"compare": compare, "success": writes.iter().map(put).collect::<Vec<_>>()})
}

/// A transaction that removes a cell of this version, and tells whether it is there if not.
pub(crate) fn removes(key: &str, version: &str) -> Value {
    let condition = Compare {
        target: "MOD",
        key: text(key),
        result: "EQUAL",
        mod_revision: version.to_owned(),
    };
    json!({
        "compare": [condition],
        "success": [{"request_delete_range": {"key": text(key)}}],
        "failure": [{"request_range": {"key": text(key), "keys_only": true}}],
    })
}

/// A read of one cell, as of now: no copy that lags answers it.
pub(crate) fn reads(key: &str) -> Value {
    json!({"key": text(key)})
}

/// A read of the cells from this key up to the end of the prefix.
pub(crate) fn lists(from: &[u8], prefix: &str, most: usize) -> Value {
    json!({"key": text(from), "range_end": text(end_of(prefix)), "limit": most.to_string()})
}

/// The watch of this prefix.
pub(crate) fn watches(prefix: &str) -> String {
    let create = json!({
        "key": text(prefix),
        "range_end": text(end_of(prefix)),
        "progress_notify": true,
    });
    json!({"create_request": create}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_is_after_all_its_keys_and_before_all_others() {
        assert_eq!(end_of("a/"), b"a0");
        assert_eq!(end_of(""), vec![0]);
        assert!(end_of("t/n/").as_slice() > "t/n/~~~".as_bytes());
        assert!(end_of("t/n/").as_slice() <= "t/n0".as_bytes());
    }

    #[test]
    fn a_write_without_an_expectation_is_not_compared() {
        let write = |expect| Write { key: "k".into(), expect, bytes: b"v".to_vec() };
        let all = stores(&[write(Some(Expect::Absent)), write(None)]);
        assert_eq!(all["compare"].as_array().unwrap().len(), 1);
        assert_eq!(all["compare"][0]["mod_revision"], "0");
        assert_eq!(all["success"].as_array().unwrap().len(), 2);
    }

    /// As etcd 3.4 says it: zeroes are left out.
    #[test]
    fn answers_are_read_as_they_are_said() {
        let said = r#"{"header":{"cluster_id":"14841639068965178418","revision":"2"},"succeeded":true,"responses":[{"response_put":{"header":{"revision":"2"}}}]}"#;
        let committed: Committed = serde_json::from_str(said).unwrap();
        assert!(committed.succeeded && committed.header.revision == 2);
        let gone = r#"{"result":{"header":{"revision":"5"},"events":[{"type":"DELETE","kv":{"key":"YS8y","mod_revision":"5"}}]}}"#;
        let line: Line = serde_json::from_str(gone).unwrap();
        let event = &line.result.unwrap().events[0];
        assert_eq!((event.kind.as_str(), key(&event.kv.key).unwrap()), ("DELETE", "a/2".into()));
    }
}
