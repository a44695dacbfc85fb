//! Which store this is, so that a term of one is never taken for another's.

use std::fmt;
use std::str::FromStr;

/// A random number that a store was given when it was installed, and keeps.
///
/// A copy of a store (a dump, a template, a snapshot, a file) has the number of
/// its original: to a fence they are the same store.
///
/// ```
/// use tenure_store::StoreId;
/// let id: StoreId = "67e55044-10b1-426f-9247-bb680e5fe0c8".parse().unwrap();
/// assert_eq!(id.to_string(), "67e55044-10b1-426f-9247-bb680e5fe0c8");
/// assert_eq!("67e5504410b1426f9247bb680e5fe0c8".parse(), Ok(id));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct StoreId(u128);

impl StoreId {
    /// The id with these bits.
    #[must_use]
    pub const fn from_u128(bits: u128) -> Self {
        Self(bits)
    }

    /// The bits.
    #[must_use]
    pub const fn as_u128(self) -> u128 {
        self.0
    }
}

/// As a uuid is written.
impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = format!("{:032x}", self.0);
        let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
        f.write_str(&parts.join("-"))
    }
}

impl fmt::Debug for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for StoreId {
    type Err = BadStoreId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let hex = text.replace('-', "");
        let digits = hex.len() == 32 && hex.bytes().all(|b| b.is_ascii_hexdigit());
        let bits = digits.then(|| u128::from_str_radix(&hex, 16).ok()).flatten();
        bits.map(Self).ok_or(BadStoreId)
    }
}

/// A text that is no [`StoreId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadStoreId;

impl fmt::Display for BadStoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a store's id has 32 hexadecimal digits, as a uuid")
    }
}

impl std::error::Error for BadStoreId {}

/// Which store this is. It goes with every leadership, and a fence in any other
/// store refuses it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Identity {
    /// The kind of store, as in its URL.
    pub kind: &'static str,
    /// Its own number. `None` for a store that has no fence.
    pub id: Option<StoreId>,
    /// The schema it lives in, where the kind has such: the fence is asked there
    /// and nowhere else.
    pub schema: Option<String>,
    /// Where it is, for people: the file, the database. Never a secret.
    pub place: String,
}

impl Identity {
    /// A store of this kind that has no number.
    #[must_use]
    pub fn unnumbered(kind: &'static str) -> Self {
        Self { kind, id: None, schema: None, place: String::new() }
    }

    /// The store with this number, at this place.
    #[must_use]
    pub fn new(kind: &'static str, id: StoreId, place: impl Into<String>) -> Self {
        Self { id: Some(id), place: place.into(), ..Self::unnumbered(kind) }
    }

    /// The same, in this schema.
    #[must_use]
    pub fn in_schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
        self
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} store", self.kind)?;
        if let Some(id) = self.id {
            write!(f, " {id}")?;
        }
        match (&self.schema, self.place.as_str()) {
            (Some(schema), "") => write!(f, " (schema {schema:?})"),
            (Some(schema), place) => write!(f, " ({place}, schema {schema:?})"),
            (None, "") => Ok(()),
            (None, place) => write!(f, " ({place})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_was_written_and_nothing_else_is() {
        for bits in [0, 1, u128::MAX, 0x67e5_5044_10b1_426f_9247_bb68_0e5f_e0c8] {
            let id = StoreId::from_u128(bits);
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        for text in ["", "1", "+7e5504410b1426f9247bb680e5fe0c8", "gg"] {
            assert_eq!(text.parse::<StoreId>(), Err(BadStoreId), "{text}");
        }
    }

    #[test]
    fn a_store_is_told_with_its_place() {
        let id = StoreId::from_u128(0);
        let told = Identity::new("postgres", id, "database \"app\"").in_schema("elections");
        let number = "00000000-0000-0000-0000-000000000000";
        assert_eq!(
            told.to_string(),
            format!("the postgres store {number} (database \"app\", schema \"elections\")")
        );
        assert_eq!(Identity::unnumbered("s3").to_string(), "the s3 store");
    }
}
