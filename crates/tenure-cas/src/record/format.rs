//! How single fields are written: text for names, whole nanoseconds for
//! durations, text or hexadecimal digits for opaque bytes.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tenure_core::{ElectionName, Incarnation, Note, Profile, Value};

use super::candidacies::CandidacyRecord;

/// Anything that is printed and parsed: names, ids, incarnations.
pub(crate) mod text {
    use super::*;

    pub(crate) fn serialize<T: Display, S: Serializer>(
        value: &T,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// The same, where there may be none.
pub(crate) mod text_option {
    use super::*;

    pub(crate) fn serialize<T: Display, S: Serializer>(
        value: &Option<T>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_ref().map(ToString::to_string).serialize(to)
    }

    pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        let text = Option::<String>::deserialize(from)?;
        text.map(|t| t.parse().map_err(D::Error::custom)).transpose()
    }
}

/// Durations, to the nanosecond: what the holder wrote is what is waited out.
pub(crate) mod nanos {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(value: &Duration, to: S) -> Result<S::Ok, S::Error> {
        u64::try_from(value.as_nanos()).unwrap_or(u64::MAX).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_nanos)
    }
}

/// Notes of operators, which are never refused.
pub(crate) mod note {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(value: &Note, to: S) -> Result<S::Ok, S::Error> {
        value.as_str().serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Note, D::Error> {
        String::deserialize(from).map(Note::new)
    }
}

/// What a member publishes. Metadata is written as text where it is text, so
/// that people can read the record, and as hexadecimal digits where it is not;
/// either way it comes back byte for byte (C22).
pub(crate) mod profile {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Written {
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        endpoints: Vec<String>,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        metadata: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        metadata_hex: String,
    }

    pub(crate) fn serialize<S: Serializer>(value: &Profile, to: S) -> Result<S::Ok, S::Error> {
        let endpoints = value.endpoints().to_vec();
        let (metadata, metadata_hex) = readable(value.metadata());
        Written { endpoints, metadata, metadata_hex }.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Profile, D::Error> {
        let written = Written::deserialize(from)?;
        let metadata = bytes(written.metadata, &written.metadata_hex)
            .ok_or_else(|| D::Error::custom("metadata_hex is not hexadecimal"))?;
        Profile::new(written.endpoints, metadata).map_err(D::Error::custom)
    }
}

/// What is published with a name. Data is written like the metadata of a member.
pub(crate) mod value {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Written {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        endpoint: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        index: Vec<(String, String)>,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        data: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        data_hex: String,
    }

    pub(crate) fn serialize<S: Serializer>(value: &Value, to: S) -> Result<S::Ok, S::Error> {
        let (data, data_hex) = readable(value.data());
        let endpoint = value.endpoint().map(str::to_owned);
        let index = value.index().to_vec();
        Written { endpoint, index, data, data_hex }.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Value, D::Error> {
        let Written { endpoint, index, data, data_hex } = Written::deserialize(from)?;
        let data = bytes(data, &data_hex)
            .ok_or_else(|| D::Error::custom("data_hex is not hexadecimal"))?;
        let value = Value::empty().with_index(index).and_then(|value| value.with_data(data));
        let value = match endpoint {
            Some(endpoint) => value.and_then(|value| value.with_endpoint(endpoint)),
            None => value,
        };
        value.map_err(D::Error::custom)
    }
}

/// Lives, as a list of texts.
pub(crate) mod lives {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        value: &[Incarnation],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(value.iter().map(ToString::to_string))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<Incarnation>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
    }
}

/// Candidacies: `"name": [priority, order]`.
pub(crate) mod candidacies {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        value: &BTreeMap<ElectionName, CandidacyRecord>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_map(value.iter().map(|(name, c)| (name.as_str(), (c.priority, c.order))))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<ElectionName, CandidacyRecord>, D::Error> {
        let written = BTreeMap::<String, (u16, u64)>::deserialize(from)?;
        let read = written.into_iter().map(|(name, (priority, order))| {
            let name = name.parse().map_err(D::Error::custom)?;
            Ok((name, CandidacyRecord { priority, order }))
        });
        read.collect()
    }
}

/// Bytes as text, or else as hexadecimal digits; one of the two is empty.
fn readable(bytes: &[u8]) -> (String, String) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), String::new()),
        Err(_) => (String::new(), hex(bytes)),
    }
}

/// The inverse of [`readable`].
fn bytes(text: String, digits: &str) -> Option<Vec<u8>> {
    if digits.is_empty() { Some(text.into_bytes()) } else { unhex(digits) }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect();
    let digits = digits?;
    let pairs = digits.chunks_exact(2);
    pairs.remainder().is_empty().then(|| pairs.map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Holds(#[serde(with = "profile")] Profile);

    /// C22, H26: byte for byte, whatever the bytes.
    #[test]
    fn metadata_comes_back_byte_for_byte() {
        let all: Vec<u8> = (0..=255).collect();
        for metadata in [&b""[..], b"zone=a", "\u{0}\"\\é".as_bytes(), b"\xff\xfe", &all] {
            let profile = Profile::new(["h:1", "é:2"], metadata).unwrap();
            let text = serde_json::to_string(&Holds(profile.clone())).unwrap();
            let back: Holds = serde_json::from_str(&text).unwrap();
            assert_eq!(back.0, profile, "{text}");
        }
    }

    #[test]
    fn odd_hexadecimal_is_refused() {
        assert_eq!(unhex("0aF"), None);
        assert_eq!(unhex("zz"), None);
        assert_eq!(unhex("0aFf"), Some(vec![0x0a, 0xff]));
    }
}
