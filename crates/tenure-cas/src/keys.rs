//! Where each record lies.

use tenure_core::{ElectionName, MemberId, Name, Namespace};

use crate::record::name::{ELECTIONS, FLOOR};

/// The keys of everything below one prefix: `<prefix>/<namespace>/elections/<name>`,
/// `<prefix>/<namespace>/members/<id>`, `<prefix>/<namespace>/standing/<id>`,
/// `<prefix>/<namespace>/names/<name>`, `<prefix>/<namespace>/floor/names`,
/// `<prefix>/<namespace>/floor/elections` and `<prefix>/<namespace>/terms/<name>`.
///
/// Names are written in letters, digits, `-` and `_`; every other byte becomes
/// `=` and two hexadecimal digits. So a name cannot leave its directory, no two
/// names share a key, and every service takes it.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    pub(crate) fn new(prefix: &str) -> Self {
        let trimmed = prefix.trim_matches('/');
        let prefix = if trimmed.is_empty() { String::new() } else { format!("{trimmed}/") };
        Self { prefix }
    }

    /// What the keys of everything of the namespace begin with.
    pub(crate) fn namespace(&self, ns: &Namespace) -> String {
        format!("{}{}/", self.prefix, encoded(ns.as_str()))
    }

    /// What the keys of every election of the namespace begin with.
    pub(crate) fn elections(&self, ns: &Namespace) -> String {
        format!("{}{}/elections/", self.prefix, encoded(ns.as_str()))
    }

    /// What the keys of every member of the namespace begin with.
    pub(crate) fn members(&self, ns: &Namespace) -> String {
        format!("{}{}/members/", self.prefix, encoded(ns.as_str()))
    }

    /// What the keys of what the members of the namespace wait for begin with.
    pub(crate) fn standings(&self, ns: &Namespace) -> String {
        format!("{}{}/standing/", self.prefix, encoded(ns.as_str()))
    }

    /// What the keys of every name of the namespace begin with.
    pub(crate) fn names(&self, ns: &Namespace) -> String {
        format!("{}{}/names/", self.prefix, encoded(ns.as_str()))
    }

    /// What the keys of the names begin with that begin with this text.
    pub(crate) fn names_from(&self, ns: &Namespace, text: &str) -> String {
        self.names(ns) + &encoded(text)
    }

    pub(crate) fn name(&self, ns: &Namespace, name: &Name) -> String {
        self.names_from(ns, name.as_str())
    }

    /// The floor of the numbers of names.
    pub(crate) fn floor(&self, ns: &Namespace) -> String {
        format!("{}{}/floor/{FLOOR}", self.prefix, encoded(ns.as_str()))
    }

    /// The floor of term numbers.
    pub(crate) fn floor_of_terms(&self, ns: &Namespace) -> String {
        format!("{}{}/floor/{ELECTIONS}", self.prefix, encoded(ns.as_str()))
    }

    /// Whether this is the key of some name of the namespace.
    pub(crate) fn is_name(&self, ns: &Namespace, key: &str) -> bool {
        let text = key.strip_prefix(&self.names(ns)).and_then(decoded);
        text.is_some_and(|text| Name::new(text).is_ok())
    }

    pub(crate) fn election(&self, ns: &Namespace, name: &ElectionName) -> String {
        self.elections(ns) + &encoded(name.as_str())
    }

    pub(crate) fn member(&self, ns: &Namespace, id: &MemberId) -> String {
        self.members(ns) + &encoded(id.as_str())
    }

    /// The number of the newest term of an election, for callers' fences.
    pub(crate) fn term(&self, ns: &Namespace, name: &ElectionName) -> String {
        self.namespace(ns) + "terms/" + &encoded(name.as_str())
    }

    pub(crate) fn standing(&self, ns: &Namespace, id: &MemberId) -> String {
        self.standings(ns) + &encoded(id.as_str())
    }

    /// The election whose key this is; `None` for keys that Tenure did not make.
    pub(crate) fn election_of(&self, ns: &Namespace, key: &str) -> Option<ElectionName> {
        let text = decoded(key.strip_prefix(&self.elections(ns))?)?;
        ElectionName::new(text).ok()
    }

    /// Whether this is the key of some member's record below `prefix`.
    pub(crate) fn is_member(prefix: &str, key: &str) -> bool {
        let name = key.strip_prefix(prefix).and_then(decoded);
        name.is_some_and(|text| MemberId::new(text).is_ok())
    }
}

/// The key of the cell by which callers fence their own transactions: the number of the newest
/// term of an election, in decimal digits. It is there where the register writes several cells
/// at once ([`Batches`](crate::Batches)).
///
/// ```
/// use tenure_core::{ElectionName, Namespace};
/// let election = ElectionName::new("nightly report").unwrap();
/// let key = tenure_cas::term_key("tenure", &Namespace::default(), &election);
/// assert_eq!(key, "tenure/default/terms/nightly=20report");
/// ```
#[must_use]
pub fn term_key(prefix: &str, ns: &Namespace, election: &ElectionName) -> String {
    Keys::new(prefix).term(ns, election)
}

/// Whether this key is that of something called `name`.
pub(crate) fn names(key: &str, name: &str) -> bool {
    key.strip_suffix(&encoded(name)).is_some_and(|rest| rest.ends_with('/'))
}

fn plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

fn encoded(name: &str) -> String {
    let mut key = String::with_capacity(name.len());
    for byte in name.bytes() {
        if plain(byte) {
            key.push(char::from(byte));
        } else {
            key.push_str(&format!("={byte:02X}"));
        }
    }
    key
}

/// The inverse of [`encoded`]; `None` for anything it cannot have made.
fn decoded(key: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if plain(first) {
            bytes.push(first);
            rest = after;
        } else if first == b'=' {
            let (digits, after) = after.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = after;
        } else {
            return None;
        }
    }
    let name = String::from_utf8(bytes).ok()?;
    (encoded(&name) == key).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(name: &str) -> Namespace {
        Namespace::new(name).unwrap()
    }

    #[test]
    fn every_name_comes_back_from_its_key() {
        let keys = Keys::new("/tenure/");
        for name in ["nightly-report", "a/b", "..", "ünï 選挙", "=2F", "A.b", "x*?%&"] {
            let name = ElectionName::new(name).unwrap();
            let key = keys.election(&ns("default"), &name);
            assert!(key.bytes().all(|b| plain(b) || b == b'=' || b == b'/'), "{key}");
            assert_eq!(keys.election_of(&ns("default"), &key), Some(name));
        }
    }

    /// C5: no namespace reaches into another by its name.
    #[test]
    fn namespaces_with_slashes_do_not_share_keys() {
        let keys = Keys::new("tenure");
        let name = ElectionName::new("x").unwrap();
        let inner = keys.election(&ns("a/elections"), &name);
        assert!(!inner.starts_with(&keys.elections(&ns("a"))), "{inner}");
        assert!(!keys.elections(&ns("ab")).starts_with(&keys.elections(&ns("a"))));
    }

    #[test]
    fn keys_of_other_programs_name_nothing() {
        let keys = Keys::new("");
        for key in ["a=2", "a=", "a=zz", "a b", "=41", "=FF", "a/b", "", "=2f", "=+1"] {
            let key = keys.elections(&ns("n")) + key;
            assert_eq!(keys.election_of(&ns("n"), &key), None, "{key}");
        }
        assert!(!Keys::is_member(&keys.members(&ns("n")), "n/elections/x"));
        assert!(Keys::is_member(&keys.standings(&ns("n")), "n/standing/x"));
    }
}
