//! The repository speaks of the product, not of the machine it was written on.

use super::Finding;

/// Beginnings of paths that mean nothing on any other machine. Each is put together
/// from parts, so that this file does not find itself.
const PATHS: [&str; 7] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/tmp/", "brief"),
    concat!("/tmp/", "bash_jobs"),
    concat!("../", "shared/"),
    // That these are missing is nothing to rely on (L24): a test has a folder of its own.
    concat!("/non", "existent"),
    concat!("/no/", "such"),
];

/// Turns of speech that hide who is meant, and what stands for them: see the glossary. Put
/// together from parts, for the same reason.
const TURNS: [(&str, &str); 9] = [
    (concat!("who", "ever"), NAME_IT),
    (concat!("no", "body"), "say what is missing: no member leads, the election is vacant, ..."),
    (concat!("some", "body"), NAME_IT),
    (concat!("any", "body"), NAME_IT),
    (concat!("every", "body"), "name them: all members, every caller, each process"),
    (concat!("heard", " of"), TELL_IT),
    (concat!("hears", " of"), TELL_IT),
    (concat!("hearing", " of"), TELL_IT),
    (concat!("in so", " many words"), "say explicitly"),
];
const NAME_IT: &str = "name the one who does it: the member, the holder, a caller";
const TELL_IT: &str = "say what happened: it was told, noticed, followed or answered";

/// What stays, since the text of a function in SQL has a digest beside its mutants' verdicts.
const KEPT: [(&str, &str); 3] = [
    ("crates/tenure-postgres/src/sql/judge.sql", concat!("or post to no", "body'")),
    ("crates/tenure-postgres/src/sql/judge.sql", concat!("or 65536 if no", "body owns it'")),
    ("crates/tenure-postgres/src/sql/owners.sql", concat!("THEN 'every", "body'")),
];

/// Whether a file records what was said at its time, and is left as it was.
pub(super) fn is_record(path: &str) -> bool {
    path == "CHANGELOG.md" || path.ends_with(".tsv")
}

/// Whether a turn stands in a line, also as a part of a name. One of several words ends with
/// a word: what only begins with its last letters is another.
fn has_turn(lower: &str, turn: &str) -> bool {
    let runs_on = |at: usize| {
        let next = lower[at + turn.len()..].chars().next();
        turn.contains(' ') && next.is_some_and(char::is_alphanumeric)
    };
    lower.match_indices(turn).any(|(at, _)| !runs_on(at))
}

pub(crate) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|_| !is_record(path)) {
        let lower = line.to_lowercase().replace('_', " ");
        let is_kept = |turn: &str| {
            KEPT.iter().any(|(at, said)| path == *at && line.contains(said) && said.contains(turn))
        };
        let turns = TURNS.iter().filter(|(turn, _)| has_turn(&lower, turn) && !is_kept(turn));
        for (turn, instead) in turns {
            let text = format!("\"{turn}\" hides who is meant; {instead}");
            found.push(Finding::at(path, number + 1, text));
        }
        // Who reads it has to pair what stands on the two sides.
        let code = line.trim();
        if path.ends_with(".rs") && code.starts_with("let (") && pairs(code) {
            let text = "a let binds one name; take the tuples on its two sides apart";
            found.push(Finding::at(path, number + 1, text));
        }
    }
    for (number, line) in text.lines().enumerate() {
        for what in PATHS.iter().filter(|what| begins_a_path(line, what)) {
            let text = format!("`{what}` is a path of one machine; say it without");
            found.push(Finding::at(path, number + 1, text));
        }
    }
    found
}

/// Whether a statement is a let with a tuple on both sides.
fn pairs(code: &str) -> bool {
    let Some((left, right)) = code.split_once(") = (") else { return false };
    let depth = |c| match c {
        '(' | '[' | '{' => 1,
        ')' | ']' | '}' => -1,
        _ => 0,
    };
    // The bracket that opens on the right is the one that closes before the semicolon.
    let Some(inner) = right.strip_suffix(");") else { return false };
    let mut open = 0;
    let stays_open = inner.chars().all(|c| {
        open += depth(c);
        open >= 0
    });
    !left.contains('=') && stays_open && inner.contains(',')
}

/// `/a/` inside `https://example.org/a/b` or `x/a/b` is another thing.
fn begins_a_path(line: &str, what: &str) -> bool {
    line.match_indices(what).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_-./}".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L24: each path is found where it begins, and a longer path that only contains
    /// it is not.
    #[test]
    fn paths_of_one_machine_are_found() {
        for what in PATHS {
            let found = check("a.md", &format!("first\nsee {what}x"));
            assert_eq!(found.len(), 1, "{what}");
            assert_eq!(found[0].line, 2, "{what}");
            assert_eq!(check("a.md", &format!("(`{what}`)")).len(), 1, "{what}");
            assert!(check("a.md", &format!("see x{what}y")).is_empty(), "{what}");
        }
        assert!(check("a.md", "the work/life balance").is_empty());
    }

    /// Each turn is found in prose, in code and in names, and not in what records what was
    /// said, nor where a longer word only begins like it.
    #[test]
    fn turns_that_hide_who_is_meant_are_found() {
        for (turn, _) in TURNS {
            let name = turn.replace(' ', "_");
            assert_eq!(check("a.rs", &format!("/// It is {turn}.")).len(), 1, "{turn}");
            assert_eq!(check("a.rs", &format!("fn a_{name}_b() {{")).len(), 1, "{turn}");
            assert_eq!(check("a.md", &turn.to_uppercase()).len(), 1, "{turn}");
            assert!(check("CHANGELOG.md", turn).is_empty());
        }
        assert_eq!(check("a.rs", concat!("struct StepsDownNo", "body;")).len(), 1);
        assert!(check("a.md", concat!("we heard", " offers")).is_empty());
        for (path, said) in KEPT {
            assert!(check(path, said).is_empty(), "{said}");
            assert_eq!(check("a.sql", said).len(), 1, "{said}");
        }
    }

    /// A tuple on both sides is found; one that a call gives, or a part of another, is not.
    #[test]
    fn a_let_with_a_tuple_on_both_sides_is_found() {
        for code in ["let (a, b) = (1, f(2));", "    let (mut a, _) = (x.y(), [1, 2]);"] {
            assert_eq!(check("a.rs", code).len(), 1, "{code}");
            assert!(check("a.md", code).is_empty());
        }
        for code in ["let (a, b) = f(1, 2);", "let a = (1, 2);", "let (a, b) = (0..9).unzip();"] {
            assert!(check("a.rs", code).is_empty(), "{code}");
        }
    }
}
