//! What a mutant is called: by the file, the function and the text that is broken, not by
//! a line number, so that it keeps its name when something else is edited.

use std::ops::Range;

use super::tokens::{Kind, Token, tokens};

/// One function, table or index of a file, or the whole file if it makes none.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) name: String,
    at: Range<usize>,
    /// Changes when the text does; comments and spaces do not count.
    pub(super) digest: String,
    /// Whether the server counts its calls: it puts functions in SQL in the place of the
    /// call, but not those in plpgsql.
    pub(super) counted: bool,
}

impl Part {
    /// The bytes between the dollar quotes of a function.
    pub(super) fn body(&self, sql: &str) -> Option<Range<usize>> {
        let text = sql.get(self.at.clone()).filter(|text| text.contains("FUNCTION"))?;
        let from = text.find("$$")? + 2;
        let to = from + text[from..].find("$$")?;
        Some(self.at.start + from..self.at.start + to)
    }
}

/// What can be made by a file.
const MADE: [&str; 6] = ["FUNCTION", "TABLE", "INDEX", "TYPE", "VIEW", "TRIGGER"];

/// The parts of a text, in order.
pub(super) fn parts(sql: &str) -> Vec<Part> {
    let tokens = tokens(sql);
    let word = |token: &Token| &sql[token.at.clone()];
    let is = |place: usize, text: &str| {
        tokens.get(place).is_some_and(|token| word(token).eq_ignore_ascii_case(text))
    };
    let mut begins: Vec<(usize, String)> = Vec::new();
    for place in (0..tokens.len()).filter(|place| is(*place, "CREATE")) {
        // CREATE OR REPLACE, CREATE UNIQUE, CREATE … IF NOT EXISTS
        let made = (place + 1..place + 4).find(|next| MADE.iter().any(|what| is(*next, what)));
        let Some(mut named) = made.map(|made| made + 1) else { continue };
        while ["IF", "NOT", "EXISTS"].iter().any(|what| is(named, what)) {
            named += 1;
        }
        let Some(name) = tokens.get(named).filter(|token| token.kind == Kind::Word) else {
            continue;
        };
        begins.push((place, word(name).rsplit('.').next().unwrap_or_default().to_owned()));
    }
    if begins.first().is_none_or(|(place, _)| *place > 0) {
        begins.insert(0, (0, String::new()));
    }
    let ends: Vec<usize> = begins.iter().skip(1).map(|(place, _)| *place).collect();
    let ends = ends.into_iter().chain([tokens.len()]);
    let mut found = Vec::new();
    for ((from, name), to) in begins.into_iter().zip(ends) {
        let from_byte = tokens.get(from).map_or(0, |token| token.at.start);
        let to_byte = tokens.get(to).map_or(sql.len(), |token| token.at.start);
        let digest = digest(tokens[from..to].iter().map(word));
        let counted = (from..to).any(|place| is(place, "plpgsql"));
        found.push(Part { name, at: from_byte..to_byte, digest, counted });
    }
    found
}

/// The part that this byte is in.
pub(super) fn part_at(parts: &[Part], at: usize) -> Option<&Part> {
    parts.iter().find(|part| part.at.contains(&at))
}

/// Of a text of words.
pub(super) fn digest_of(text: &str) -> String {
    digest(text.split_whitespace())
}

/// FNV-1a: what it is compared with is an earlier version of the same, not an attack.
fn digest<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut state: u32 = 0x811c_9dc5;
    for byte in words.flat_map(|word| word.bytes().chain([b' '])) {
        state = (state ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    format!("{state:08x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_cut_at_what_it_makes() {
        let sql = "-- x\nCREATE FUNCTION {schema}._f(a int) AS $$ b $$;\n\
                   CREATE UNIQUE INDEX IF NOT EXISTS i ON t (x);\nGRANT y;";
        let parts = parts(sql);
        let names: Vec<_> = parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["_f", "i"]);
        assert!(!parts[0].counted);
        assert_eq!(part_at(&parts, sql.find("b $$").unwrap()).unwrap().name, "_f");
        assert_eq!(part_at(&parts, sql.find("GRANT").unwrap()).unwrap().name, "i");
    }

    #[test]
    fn a_function_has_a_body() {
        let sql = "CREATE TABLE t (a int); CREATE FUNCTION f() AS $$ b $$; -- $$\nGRANT y;";
        let parts = parts(sql);
        assert_eq!(parts[0].body(sql), None);
        assert_eq!(&sql[parts[1].body(sql).unwrap()], " b ");
    }

    #[test]
    fn a_single_statement_is_a_part_without_a_name() {
        let parts = parts("SELECT 1 WHERE a");
        assert_eq!(parts.len(), 1);
        assert_eq!(parts[0].name, "");
    }

    /// An edit elsewhere, a comment or another indentation changes nothing.
    #[test]
    fn only_the_text_of_the_part_itself_counts() {
        let digests = |sql: &str| parts(sql).iter().map(|p| p.digest.clone()).collect::<Vec<_>>();
        let before = digests("CREATE FUNCTION f() a; CREATE FUNCTION g() b;");
        let after = digests("CREATE FUNCTION f() -- why\n  a; CREATE FUNCTION g() c;");
        assert_eq!(before[0], after[0]);
        assert_ne!(before[1], after[1]);
    }
}
