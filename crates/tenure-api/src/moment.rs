//! Moments as people and JSON write them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tenure_core::Timestamp;

/// A moment of a store's wall clock, for people: never compared between machines. It is
/// written in RFC 3339, in UTC and to the millisecond.
///
/// ```
/// use tenure_api::Moment;
/// let text = "2026-11-15T22:08:23.250Z";
/// let moment: Moment = text.parse()?;
/// assert_eq!(moment.to_string(), text);
/// assert_eq!(moment.short(), "2026-11-15 22:08:23");
/// # Ok::<(), tenure_api::BadMoment>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(Timestamp);

impl Moment {
    /// The moment as the stores have it.
    #[must_use]
    pub const fn timestamp(self) -> Timestamp {
        self.0
    }

    /// For a person, in UTC: `2026-11-15 22:08:23`.
    #[must_use]
    pub fn short(self) -> String {
        self.civil().strftime("%Y-%m-%d %H:%M:%S").to_string()
    }

    /// What lies beyond the year 9999 is written as its end.
    fn civil(self) -> jiff::Timestamp {
        let millis = i64::try_from(self.0.unix_millis()).unwrap_or(i64::MAX);
        jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX)
    }
}

impl From<Timestamp> for Moment {
    fn from(at: Timestamp) -> Self {
        Self(at)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.civil().strftime("%Y-%m-%dT%H:%M:%S.%3fZ").fmt(f)
    }
}

/// A text that is not a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadMoment(String);

impl fmt::Display for BadMoment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let example = "2026-11-15T22:08:23.250Z";
        write!(f, "{:?} is not a moment since 1970: write it like {example}", self.0)
    }
}

impl std::error::Error for BadMoment {}

impl FromStr for Moment {
    type Err = BadMoment;

    fn from_str(text: &str) -> Result<Self, BadMoment> {
        let parsed = text.parse::<jiff::Timestamp>().ok();
        let millis = parsed.and_then(|at| u64::try_from(at.as_millisecond()).ok());
        let millis = millis.ok_or_else(|| BadMoment(text.into()))?;
        Ok(Self(Timestamp::from_unix_millis(millis)))
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates_and_read_back() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_826_271_001, "2000-02-29T12:11:11.001Z"),
            (1_700_000_000_000, "2023-11-14T22:13:20.000Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
        ] {
            let moment = Moment::from(Timestamp::from_unix_millis(millis));
            assert_eq!(moment.to_string(), text);
            assert_eq!(text.parse(), Ok(moment));
            let json = serde_json::to_string(&moment).unwrap();
            assert_eq!(serde_json::from_str::<Moment>(&json).unwrap(), moment);
        }
        let far = Moment::from(Timestamp::from_unix_millis(u64::MAX));
        assert!(far.to_string().starts_with("9999-12-30T"), "{far}");
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in ["", "yesterday", "1969-12-31T23:59:59Z", "2023-11-14"] {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
    }
}
