//! SQL cut into tokens, as far as a mutator has to know it: what is text, what is a
//! comment, and which parenthesis closes which. A function's body between dollar
//! quotes is SQL like the rest, so that the quotes themselves only separate.

use std::ops::Range;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name, a keyword or a number.
    Word,
    /// A text or a quoted name.
    Text,
    Open,
    Close,
    /// The end of a statement, or of a function's body.
    End,
    /// An operator, a comma.
    Symbol,
}

/// One token: what it is, and where.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) at: Range<usize>,
    /// How many parentheses are open around it; the pair itself counts as outside.
    pub(super) depth: usize,
}

/// The tokens of a text, in order, without comments.
pub(super) fn tokens(sql: &str) -> Vec<Token> {
    let bytes = sql.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    let mut depth = 0_usize;
    while at < bytes.len() {
        let rest = &sql[at..];
        let byte = bytes[at];
        let (length, kind) = match byte {
            b' ' | b'\t' | b'\r' | b'\n' => (1, None),
            b'-' if rest.starts_with("--") => (rest.find('\n').unwrap_or(rest.len()), None),
            b'/' if rest.starts_with("/*") => {
                (rest.find("*/").map_or(rest.len(), |end| end + 2), None)
            }
            b'\'' => (quoted(rest, b'\'', false), Some(Kind::Text)),
            b'"' => (quoted(rest, b'"', false), Some(Kind::Text)),
            b'E' | b'e' if rest[1..].starts_with('\'') => {
                (1 + quoted(&rest[1..], b'\'', true), Some(Kind::Text))
            }
            b'$' if dollar_quote(rest).is_some() => {
                (dollar_quote(rest).unwrap_or(1), Some(Kind::End))
            }
            b'(' => (1, Some(Kind::Open)),
            b')' => (1, Some(Kind::Close)),
            b';' => (1, Some(Kind::End)),
            _ if is_word(byte) => {
                (bytes[at..].iter().take_while(|b| is_word(**b)).count(), Some(Kind::Word))
            }
            _ => (1, Some(Kind::Symbol)),
        };
        if kind == Some(Kind::Close) {
            depth = depth.saturating_sub(1);
        }
        if let Some(kind) = kind {
            found.push(Token { kind, at: at..at + length, depth });
        }
        if kind == Some(Kind::Open) {
            depth += 1;
        }
        at += length;
    }
    found
}

/// Letters, digits, what stands between a table and its column, the parameters of
/// statements, and the places that a program fills in, as `{schema}`.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.$?{}".contains(&byte) || byte >= 0x80
}

/// How long a quoted text is, with its quotes.
fn quoted(rest: &str, quote: u8, escapes: bool) -> usize {
    let bytes = rest.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if escapes => at += 1,
            byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 1,
            byte if byte == quote => return at + 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// How long `$tag$` is, if the text begins with one.
fn dollar_quote(rest: &str) -> Option<usize> {
    let tag = rest[1..].find('$')?;
    let plain = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    rest.as_bytes()[1..=tag].iter().all(|byte| plain(*byte)).then_some(tag + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(sql: &str) -> Vec<&str> {
        tokens(sql).into_iter().map(|token| &sql[token.at]).collect()
    }

    #[test]
    fn texts_and_comments_hide_what_is_in_them() {
        assert_eq!(words("a -- b AND c\nd /* e */ f"), ["a", "d", "f"]);
        assert_eq!(words("x = 'it''s; AND' OR y"), ["x", "=", "'it''s; AND'", "OR", "y"]);
        assert_eq!(words(r"E'a\'b' \"), [r"E'a\'b'", "\\"]);
        assert_eq!(words("\"we\"\"ird\" z"), ["\"we\"\"ird\"", "z"]);
    }

    #[test]
    fn a_body_between_dollar_quotes_is_read_like_the_rest() {
        assert_eq!(words("AS $$ a $$ b $1 $x$"), ["AS", "$$", "a", "$$", "b", "$1", "$x$"]);
    }

    #[test]
    fn parentheses_are_counted() {
        let depths: Vec<_> = tokens("a (b (c) d)").iter().map(|t| t.depth).collect();
        assert_eq!(depths, [0, 0, 1, 1, 2, 1, 1, 0]);
    }

    #[test]
    fn places_to_fill_in_and_parameters_are_words() {
        assert_eq!(words("{schema}._f($1, ?2)"), ["{schema}._f", "(", "$1", ",", "?2", ")"]);
    }
}
