//! Rust source without its comments and literals, so that a word in prose or in
//! a test's sample is not taken for code.

/// The text with comments and the contents of string and character literals
/// replaced by spaces. Lines stay where they are.
pub(crate) fn code(text: &str) -> String {
    let mut rest = text;
    let mut out = String::with_capacity(text.len());
    while let Some(c) = rest.chars().next() {
        let after_word = out.chars().next_back().is_some_and(is_word);
        let skipped = comment(rest).or_else(|| literal(rest, after_word));
        match skipped {
            Some(length) => {
                blank(&rest[..length], &mut out);
                rest = &rest[length..];
            }
            None => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    out
}

/// Whether a character can be part of a Rust name.
pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether `what` stands in `line` with no name running on at either side.
pub(crate) fn has_word(line: &str, what: &str) -> bool {
    line.match_indices(what).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_some_and(is_word);
        let after = line[at + what.len()..].chars().next().is_some_and(is_word);
        let runs_on = after && what.chars().next_back().is_some_and(is_word);
        !before && !runs_on
    })
}

fn blank(text: &str, out: &mut String) {
    out.extend(text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
}

/// The length of the comment that begins here.
fn comment(rest: &str) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if !rest.starts_with("/*") {
        return None;
    }
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    Some(rest.len())
}

/// The length of the string or character literal that begins here.
fn literal(rest: &str, after_word: bool) -> Option<usize> {
    if rest.starts_with('"') {
        return Some(quoted(rest, '"'));
    }
    if rest.starts_with('\'') {
        return character(rest);
    }
    if after_word {
        return None;
    }
    // A prefix such as b, c, r or br, and for raw strings any number of hashes.
    let prefix = rest.find(|c| !matches!(c, 'b' | 'c' | 'r')).filter(|n| (1..=2).contains(n))?;
    let (letters, tail) = rest.split_at(prefix);
    if letters.contains('r') {
        return raw(tail).map(|length| prefix + length);
    }
    match tail.chars().next() {
        Some('"') => Some(prefix + quoted(tail, '"')),
        Some('\'') => character(tail).map(|length| prefix + length),
        _ => None,
    }
}

/// The length up to and including the closing quote.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A character literal, or `None` for a lifetime.
fn character(rest: &str) -> Option<usize> {
    let mut chars = rest.chars().skip(1);
    match (chars.next()?, chars.next()) {
        ('\\', _) => Some(quoted(rest, '\'')),
        (c, Some('\'')) => Some(2 + c.len_utf8()),
        _ => None,
    }
}

fn raw(tail: &str) -> Option<usize> {
    let hashes = tail.len() - tail.trim_start_matches('#').len();
    let body = tail[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let length = body.find(&close).map_or(body.len(), |at| at + close.len());
    Some(hashes + 1 + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left of `text` when runs of spaces are closed up.
    fn left(text: &str) -> String {
        code(text).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Prose and samples are not code; what follows them is.
    #[test]
    fn comments_and_literals_are_blanked() {
        for (text, expected) in [
            ("a // todo!()\nb", "a b"),
            ("/// todo!()\nb", "b"),
            ("a /* x /* y */ todo!() */ b", "a b"),
            (r#"a "todo!() \" dbg!()" b"#, "a b"),
            (r##"a r#"todo!() " dbg!()"# b"##, "a b"),
            (r#"a br"\" b"#, "a b"),
            (r#"a b"x" c"y" d"#, "a d"),
            ("a '\"' b \"x\" c", "a b c"),
            (r"a '\'' b '\u{1F600}' b'x' c", "a b c"),
            ("a \"not closed", "a"),
            ("a /* not closed", "a"),
        ] {
            assert_eq!(left(text), expected, "{text}");
        }
    }

    /// Lifetimes and raw names are code.
    #[test]
    fn lifetimes_and_names_stay() {
        for text in ["fn f<'a>(x: &'a str) {}", "r#type = br + cr;", "'outer: loop {}", "é = ü"] {
            assert_eq!(code(text), text);
        }
    }

    /// A finding must name the right line.
    #[test]
    fn lines_stay_where_they_are() {
        let text = "\"one\ntwo\"\n/* three\nfour */ five";
        assert_eq!(code(text).lines().count(), 4);
        assert_eq!(code(text).lines().nth(3).unwrap().trim(), "five");
    }

    /// A longer name that contains a word is another name.
    #[test]
    fn words_are_whole() {
        assert!(has_word("use tokio::sync;", "tokio"));
        assert!(!has_word("use tokio_util::sync;", "tokio"));
        assert!(!has_word("use mytokio::sync;", "tokio"));
        assert!(has_word("x = todo!();", "todo!"));
        assert!(has_word("todo!x", "todo!"));
    }
}
