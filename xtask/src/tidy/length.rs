//! What is too long is two things: a file, a line of SQL, a function, a type.

use std::collections::BTreeMap;

use super::Finding;
use super::source::{has_word, is_word};

/// The most lines a file of Rust or SQL may have.
pub(crate) const FILE: usize = 500;
/// The most characters a line of SQL may have; rustfmt sees to Rust's.
const LINE: usize = 100;
/// The most lines between the braces of a Rust function, or the `$$` of an SQL one.
const FUNCTION: usize = 80;
/// The most methods a type may have, in all inherent `impl` blocks of its crate.
const TYPE: usize = 40;

pub(crate) fn file(path: &str, text: &str) -> Option<Finding> {
    let lines = text.lines().count();
    (lines > FILE).then(|| {
        let text = format!("{lines} lines, the limit is {FILE}; split it by what it is about");
        Finding::of_file(path, text)
    })
}

/// The lines and functions of a file of SQL.
pub(crate) fn sql(path: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut begun: Option<(&str, usize)> = None;
    let mut name = "";
    for (number, line) in (1..).zip(text.lines()) {
        let width = line.chars().count();
        if width > LINE {
            found.push(Finding::at(
                path,
                number,
                format!("{width} characters, {LINE} are allowed"),
            ));
        }
        if let Some(rest) = line.strip_prefix("CREATE FUNCTION ") {
            name = rest.split('(').next().unwrap_or(rest);
        }
        if line.ends_with("$$;") {
            if let Some((name, start)) = begun.take() {
                found.extend(function(path, name, start, number));
            }
        } else if line.ends_with("$$") {
            begun = Some((name, number));
        }
    }
    found
}

/// The functions of a file of Rust. `code` is source without comments and literals.
pub(crate) fn functions(path: &str, code: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if code[..at].chars().next_back().is_some_and(is_word) {
            continue;
        }
        let name = code[at + 3..].split(|c| !is_word(c)).next().unwrap_or_default();
        let Some(open) = body(&code[at..]).filter(|_| !name.is_empty()) else { continue };
        let start = line_of(code, at + open);
        let end = line_of(code, at + open + closing(&code[at + open..]));
        found.extend(function(path, name, start, end));
    }
    found
}

/// The types of all crates. `codes` are the paths and sources, without comments and
/// literals.
pub(crate) fn types<'a>(codes: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Finding> {
    let mut methods: BTreeMap<(String, String), (usize, &str)> = BTreeMap::new();
    for (path, code) in codes {
        let Some((package, _)) = path.split_once("/src/") else { continue };
        for (name, count) in implemented(code) {
            let known = methods.entry((package.to_owned(), name)).or_insert((0, path));
            known.0 += count;
        }
    }
    let mut found = Vec::new();
    for ((_, name), (count, path)) in &methods {
        if *count > TYPE {
            let text = format!("{name} has {count} methods, {TYPE} are allowed; split the type");
            found.push(Finding::of_file(path, text));
        }
    }
    found
}

fn function(path: &str, name: &str, start: usize, end: usize) -> Option<Finding> {
    let lines = (end - start).saturating_sub(1);
    (lines > FUNCTION).then(|| {
        let text = format!("{name} has {lines} lines, {FUNCTION} are allowed; split it into steps");
        Finding::at(path, start, text)
    })
}

/// The types that a source has inherent `impl` blocks of, with the number of functions in
/// each block.
fn implemented(code: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("impl") {
        let block = &code[at..];
        let begins_line = code[..at].chars().rev().take_while(|c| *c != '\n').all(|c| c == ' ');
        let Some(open) = block.find('{') else { continue };
        let head = &block[4..open];
        if !begins_line || !head.starts_with([' ', '<']) || has_word(head, "for") {
            continue;
        }
        found.push((implementor(head), methods(&block[open..])));
    }
    found
}

/// The name of the type in the head of an `impl` block.
fn implementor(head: &str) -> String {
    let mut rest = head;
    if head.starts_with('<') {
        let mut depth = 0_usize;
        let end = head.find(|c| {
            depth = match c {
                '<' => depth + 1,
                '>' => depth - 1,
                _ => depth,
            };
            depth == 0
        });
        rest = &head[end.map_or(head.len(), |end| end + 1)..];
    }
    let path = rest.trim_start().split(|c| !is_word(c) && c != ':').next().unwrap_or_default();
    path.rsplit(':').next().unwrap_or_default().to_owned()
}

/// How many functions stand directly in a block.
fn methods(block: &str) -> usize {
    let mut depth = 0_usize;
    let mut count = 0;
    for (at, c) in block[..closing(block)].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            'f' if depth == 1 && block[at..].starts_with("fn ") => {
                let runs_on = block[..at].chars().next_back().is_some_and(is_word);
                count += usize::from(!runs_on);
            }
            _ => {}
        }
    }
    count
}

/// Where the body of the function begins that `code` begins with; `None` if it has none.
fn body(code: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            ';' if depth == 0 => return None,
            '{' if depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}

/// Where the brace is closed that `code` begins with.
fn closing(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in code.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return at,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    code.len()
}

/// The number of the line, from 1, in which a place is.
fn line_of(code: &str, at: usize) -> usize {
    1 + code[..at].matches('\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At the limit is fine, one over is not.
    #[test]
    fn the_limit_is_the_last_length_allowed() {
        assert_eq!(file("a.rs", &"x\n".repeat(FILE)), None);
        let found = file("a.rs", &"x\n".repeat(FILE + 1)).expect("too long");
        assert!(found.to_string().contains("a.rs: 501 lines"), "{found}");
    }

    #[test]
    fn a_function_has_so_many_lines_between_its_braces() {
        let source = |lines| {
            format!("trait T {{ fn f(x: [u8; 2]); }}\nfn g() -> X {{\n{}}}\n", "x;\n".repeat(lines))
        };
        assert_eq!(functions("a.rs", &source(FUNCTION)), []);
        let found = functions("a.rs", &source(FUNCTION + 1));
        assert_eq!(found.len(), 1);
        assert!(found[0].to_string().starts_with("a.rs:2: g has 81 lines"), "{}", found[0]);
    }

    #[test]
    fn a_function_of_sql_has_so_many_lines_too_and_its_lines_so_many_characters() {
        let source = |lines: usize, end: &str| {
            let head = "CREATE FUNCTION s.f(\n    a text\n) RETURNS x AS $$\n";
            format!("{head}{}{end}\n", "x\n".repeat(lines))
        };
        assert_eq!(sql("a.sql", &source(FUNCTION, "$$;")), []);
        for end in ["$$;", "END $$;"] {
            let found = sql("a.sql", &source(FUNCTION + 1, end));
            assert_eq!(found.len(), 1, "{end}");
            assert!(found[0].to_string().starts_with("a.sql:3: s.f has 81 lines"), "{}", found[0]);
        }
        assert_eq!(sql("a.sql", &"é".repeat(LINE)), []);
        assert_eq!(sql("a.sql", &"é".repeat(LINE + 1)).len(), 1);
    }

    /// Over the files of a crate, whatever parameters the type has; a trait's do not count.
    #[test]
    fn the_methods_of_a_type_are_counted_over_its_crate() {
        let block = |head: &str, count: usize| {
            let each = "    pub(crate) fn f(&self) { let fn_ = |x| { x }; }\n";
            format!("{head} {{\n{}}}\n", each.repeat(count))
        };
        let first = block("impl<'a, T: Into<Vec<u8>>> a::Wide<'a, T>", 30);
        let second = block("impl Wide", 10) + &block("impl Clone for Wide", 30);
        let third = block("    impl Wide", 1);
        let narrow = [("crates/a/src/a.rs", &*first), ("crates/a/src/b/c.rs", &*second)];
        assert_eq!(types(narrow.into_iter()), []);
        let elsewhere = narrow.into_iter().chain([("crates/b/src/a.rs", &*third)]);
        assert_eq!(types(elsewhere), []);
        let wide = narrow.into_iter().chain([("crates/a/src/d.rs", &*third)]);
        let found = types(wide);
        assert_eq!(found.len(), 1);
        assert!(found[0].to_string().contains("Wide has 41 methods"), "{}", found[0]);
    }
}
