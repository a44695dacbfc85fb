//! Text of strangers, as it may be shown to people.
//!
//! Names are data: two members may be called by any text that has no control
//! characters. Some characters are no part of what one sees, though: they turn
//! the direction of what follows (U+202E), have no width (U+200B), or end a line
//! (U+2028). Printed as they are, one name passes for another, and a line for
//! two. So they are never printed as they are.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt::Write;

/// Format characters, separators of lines and paragraphs, and others that show
/// nothing of themselves, from first to last.
const HIDDEN: &[(char, char)] = &[
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

/// Whether a character shows nothing of itself, or changes how others are shown.
/// Control characters are among them.
///
/// ```
/// use tenure_core::is_hidden;
/// assert!(is_hidden('\u{202e}') && is_hidden('\u{200b}') && is_hidden('\n'));
/// assert!(!is_hidden('é') && !is_hidden('選') && !is_hidden(' '));
/// ```
pub fn is_hidden(c: char) -> bool {
    let listed = || HIDDEN.iter().any(|(first, last)| (*first..=*last).contains(&c));
    c.is_control() || (!c.is_ascii() && listed())
}

/// The text with its hidden characters written out, as in `\u{202e}`.
///
/// ```
/// use tenure_core::shown;
/// assert_eq!(shown("gpj.\u{202e}exe"), "gpj.\\u{202e}exe");
/// assert_eq!(shown("nightly report"), "nightly report");
/// ```
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return text.into();
    }
    let mut clean = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_hidden(c) {
            // Writing to a string does not fail.
            let _ = write!(clean, "\\u{{{:x}}}", u32::from(c));
        } else {
            clean.push(c);
        }
    }
    clean.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_hidden_stays_where_it_is() {
        assert_eq!(shown("gpj.\u{202e}exe"), "gpj.\\u{202e}exe");
        assert_eq!(shown("nightly report"), "nightly report");
    }

    /// R18: what turns, hides or breaks text is written out; letters, marks and
    /// symbols of any script stay.
    #[test]
    fn what_cannot_be_seen_is_written_out_and_letters_are_not() {
        for hidden in "\u{202e}\u{202a}\u{2066}\u{2069}\u{200b}\u{200d}\u{200e}\u{2028}\u{2029}\
                       \u{feff}\u{ad}\u{61c}\u{2060}\u{180e}\u{e0041}\u{1d173}\u{85}\u{1b}\n\u{fe0f}"
            .chars()
        {
            assert!(is_hidden(hidden), "{hidden:?}");
            assert!(!shown(&alloc::format!("a{hidden}b")).contains(hidden), "{hidden:?}");
        }
        for plain in "aé選挙ñ̃हिन्दी العربية עברית 🦀 – … \u{a0}\u{3000}".chars()
        {
            assert!(!is_hidden(plain), "{plain:?}");
        }
    }

    #[test]
    fn the_list_is_in_order() {
        assert!(HIDDEN.iter().all(|(first, last)| first <= last));
        assert!(HIDDEN.windows(2).all(|pair| pair[0].1 < pair[1].0));
    }
}
