//! Names that users choose: namespaces, elections, members, endpoints, and the
//! opaque metadata beside them. Each is checked once, when it is made; whatever
//! holds one of these types holds a good name.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

/// The longest namespace, election name or member id, in bytes.
pub const MAX_NAME: usize = 200;
/// The most endpoints one member may publish.
pub const MAX_ENDPOINTS: usize = 16;
/// The longest endpoint, in bytes.
pub const MAX_ENDPOINT: usize = 255;
/// The most metadata one member may publish, in bytes.
pub const MAX_METADATA: usize = 4096;
/// Stands before the election's name in what its leader leaves to a successor.
const LEFT: &str = "tenure-left:";
/// The longest reason or operator's name in a request, in bytes.
pub const MAX_NOTE: usize = 500;

/// Why a name, endpoint or piece of metadata was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BadName {
    what: &'static str,
    shown: String,
    problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Problem {
    Empty,
    TooLong { len: usize, limit: usize },
    Control { at: usize },
    Edge,
    TooMany { count: usize, limit: usize },
    Repeated,
}

impl BadName {
    pub(crate) fn too_many(what: &'static str, count: usize, limit: usize) -> Self {
        Self { what, shown: String::new(), problem: Problem::TooMany { count, limit } }
    }

    pub(crate) fn too_long(what: &'static str, len: usize, limit: usize) -> Self {
        Self { what, shown: String::new(), problem: Problem::TooLong { len, limit } }
    }

    pub(crate) fn repeated(what: &'static str, text: &str) -> Self {
        Self { what, shown: excerpt(text), problem: Problem::Repeated }
    }
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, shown, problem } = self;
        match problem {
            Problem::Empty => write!(f, "{what} is empty: give it at least one character"),
            Problem::TooLong { len, limit } if shown.is_empty() => {
                write!(f, "{what} is {len} bytes long: the limit is {limit} bytes")
            }
            Problem::TooLong { len, limit } => {
                write!(f, "{what} {shown:?} is {len} bytes long: the limit is {limit} bytes")
            }
            Problem::Control { at } => write!(
                f,
                "{what} {shown:?} has a control character at byte {at}: use printable characters"
            ),
            Problem::Edge => {
                write!(f, "{what} {shown:?} begins or ends with a space: remove it")
            }
            Problem::TooMany { count, limit } => {
                write!(f, "{count} {what}s were given: the limit is {limit}")
            }
            Problem::Repeated => {
                write!(f, "{what} {shown:?} is given twice: give it once")
            }
        }
    }
}

impl core::error::Error for BadName {}

/// The first characters of something too long or odd to show whole.
fn excerpt(text: &str) -> String {
    let mut shown: String = text.chars().take(40).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

pub(crate) fn check(what: &'static str, text: &str, limit: usize) -> Result<(), BadName> {
    let problem = if text.is_empty() {
        Problem::Empty
    } else if text.len() > limit {
        Problem::TooLong { len: text.len(), limit }
    } else if let Some((at, _)) = text.char_indices().find(|(_, c)| c.is_control()) {
        Problem::Control { at }
    } else if text.trim() != text {
        Problem::Edge
    } else {
        return Ok(());
    };
    Err(BadName { what, shown: excerpt(text), problem })
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(Arc<str>);

        impl $type {
            #[doc = concat!("Checks `text` as ", $what, ": 1 to [`MAX_NAME`] bytes, no control characters, no space at either end.")]
            pub fn new(text: impl AsRef<str>) -> Result<Self, BadName> {
                let text = text.as_ref();
                check($what, text, MAX_NAME)?;
                Ok(Self(text.into()))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl FromStr for $type {
            type Err = BadName;

            fn from_str(text: &str) -> Result<Self, BadName> {
                Self::new(text)
            }
        }

        // Ordered and compared as its text, so that a map finds it by the text.
        impl core::borrow::Borrow<str> for $type {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

name! {
    /// An isolated world of members and elections.
    ///
    /// ```
    /// use tenure_core::Namespace;
    /// assert_eq!(Namespace::default().as_str(), "default");
    /// assert!(Namespace::new("").is_err());
    /// ```
    Namespace, "the namespace"
}
name! {
    /// The name of an election inside a namespace.
    ///
    /// ```
    /// use tenure_core::ElectionName;
    /// assert!(ElectionName::new("nightly-report").is_ok());
    /// assert!(ElectionName::new("tab\there").is_err());
    /// ```
    ElectionName, "the election name"
}
name! {
    /// The id a member goes by. Two processes may choose the same one: the
    /// [`Incarnation`](crate::Incarnation) beside it keeps them apart.
    ///
    /// ```
    /// use tenure_core::MemberId;
    /// assert_eq!(MemberId::new("web-1").unwrap().as_str(), "web-1");
    /// ```
    MemberId, "the member id"
}

name! {
    /// A name that is bound to one owner at a time: a user's session, a shard, a device.
    ///
    /// ```
    /// use tenure_core::Name;
    /// assert_eq!(Name::new("user/42").unwrap().as_str(), "user/42");
    /// ```
    Name, "the name"
}

impl Name {
    /// The name under which a leader of this election leaves something to its successor;
    /// `None` if the election's own name is too long for it. It has no owner, and goes
    /// with the election.
    ///
    /// ```
    /// use tenure_core::{ElectionName, Name};
    /// let left = Name::left_in(&ElectionName::new("sequencer")?);
    /// assert_eq!(left, Some(Name::new("tenure-left:sequencer")?));
    /// # Ok::<(), tenure_core::BadName>(())
    /// ```
    #[must_use]
    pub fn left_in(election: &ElectionName) -> Option<Self> {
        Self::new(alloc::format!("{LEFT}{election}")).ok()
    }
}

impl Default for Namespace {
    fn default() -> Self {
        Self("default".into())
    }
}

/// Short free text that goes with an operator's request: who asks, and why.
/// Control characters are replaced by spaces and the text is cut at
/// [`MAX_NOTE`] bytes: a note is never a reason to refuse a request.
///
/// ```
/// assert_eq!(tenure_core::Note::new("node\ndrain").as_str(), "node drain");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Note(String);

impl Note {
    /// Makes a note of `text`.
    pub fn new(text: impl AsRef<str>) -> Self {
        let mut clean = String::new();
        // What is skipped at either end is what would be skipped the next time:
        // a note that was stored must read back as it was.
        let blank = |c: char| c.is_whitespace() || c.is_control();
        for c in text.as_ref().trim_matches(blank).chars() {
            if clean.len() + c.len_utf8() > MAX_NOTE {
                break;
            }
            clean.push(if c.is_control() { ' ' } else { c });
        }
        clean.truncate(clean.trim_end().len());
        Self(clean)
    }

    /// The note as text; empty if nothing was said.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What a member publishes about itself: where it can be reached, and opaque
/// bytes of the application's own. Observers get both back byte for byte.
///
/// ```
/// use tenure_core::Profile;
/// let profile = Profile::new(["10.0.0.7:8080"], b"zone=a").unwrap();
/// assert_eq!(profile.endpoints(), ["10.0.0.7:8080"]);
/// assert_eq!(profile.metadata(), b"zone=a");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Profile {
    endpoints: Arc<[String]>,
    metadata: Arc<[u8]>,
}

impl Profile {
    /// Checks the endpoints and metadata against the limits.
    pub fn new<E: AsRef<str>>(
        endpoints: impl IntoIterator<Item = E>,
        metadata: impl AsRef<[u8]>,
    ) -> Result<Self, BadName> {
        let endpoints: Vec<String> =
            endpoints.into_iter().map(|e| e.as_ref().to_string()).collect();
        if endpoints.len() > MAX_ENDPOINTS {
            return Err(BadName::too_many("endpoint", endpoints.len(), MAX_ENDPOINTS));
        }
        for endpoint in &endpoints {
            check("the endpoint", endpoint, MAX_ENDPOINT)?;
        }
        let metadata = metadata.as_ref();
        if metadata.len() > MAX_METADATA {
            return Err(BadName::too_long("the metadata", metadata.len(), MAX_METADATA));
        }
        Ok(Self { endpoints: endpoints.into(), metadata: metadata.into() })
    }

    /// Where the member can be reached.
    pub fn endpoints(&self) -> &[String] {
        &self.endpoints
    }

    /// The application's own bytes.
    pub fn metadata(&self) -> &[u8] {
        &self.metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::vec;

    #[test]
    fn names_are_refused_below_and_above_their_bounds_with_the_reason() {
        assert!(ElectionName::new("x").is_ok());
        assert!(ElectionName::new("x".repeat(MAX_NAME)).is_ok());
        let long = ElectionName::new("x".repeat(MAX_NAME + 1)).unwrap_err().to_string();
        assert!(long.contains("201 bytes") && long.contains("limit is 200"), "{long}");
        let empty = MemberId::new("").unwrap_err().to_string();
        assert!(empty.contains("the member id is empty"), "{empty}");
        let control = Namespace::new("a\u{7}b").unwrap_err().to_string();
        assert!(control.contains("control character at byte 1"), "{control}");
        assert!(ElectionName::new(" x").is_err());
        assert!(ElectionName::new("ünïcødé 選挙").is_ok());
    }

    /// What is refused is shown, and cut where it is long.
    #[test]
    fn a_refused_name_is_shown_up_to_its_fortieth_character() {
        let short = ElectionName::new(format!("{}\n", "x".repeat(39))).unwrap_err().to_string();
        assert!(short.contains(&format!("\"{}\\n\"", "x".repeat(39))), "{short}");
        let long = ElectionName::new("x".repeat(MAX_NAME + 1)).unwrap_err().to_string();
        assert!(long.contains(&format!("\"{}…\"", "x".repeat(40))), "{long}");
    }

    #[test]
    fn profiles_are_refused_above_their_bounds_with_the_reason() {
        let ok = Profile::new(vec!["h:1"; MAX_ENDPOINTS], vec![0xff; MAX_METADATA]).unwrap();
        assert_eq!(ok.metadata().len(), MAX_METADATA);
        assert_eq!(ok.endpoints(), ["h:1"; MAX_ENDPOINTS]);
        let many = Profile::new(vec!["h:1"; MAX_ENDPOINTS + 1], b"").unwrap_err();
        assert!(format!("{many}").contains("17 endpoints"), "{many}");
        let big = Profile::new(["h:1"], vec![0; MAX_METADATA + 1]).unwrap_err();
        assert!(format!("{big}").contains("4097 bytes"), "{big}");
        assert!(Profile::new([""], b"").is_err());
    }

    #[test]
    fn a_note_is_cut_and_never_refused() {
        assert_eq!(Note::new("é".repeat(MAX_NOTE)).as_str().len(), MAX_NOTE);
        assert_eq!(Note::new("  a\u{0}b ").as_str(), "a b");
        let cut = format!("{} b", "a".repeat(MAX_NOTE - 1));
        for text in ["a\u{0}", "\u{1} a", &cut] {
            let note = Note::new(text);
            assert_eq!(Note::new(note.as_str()), note, "{text:?} reads back");
        }
    }
}
