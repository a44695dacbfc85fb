//! What can be broken in SQL: each condition, each boolean value, and each lock.
//!
//! A condition is what follows WHERE, ON, IF, ELSIF, WHEN, HAVING or CHECK; `values.rs`
//! finds the boolean values. Each of their terms, that is what AND and OR join, is removed
//! by itself, and negated by itself; so are the terms in parentheses of their own. A lock
//! clause is removed, and SKIP LOCKED by itself; an advisory lock is not taken.

use std::ops::Range;

use super::tokens::{Kind, Token, tokens};

/// One thing to break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mutant {
    pub(super) what: What,
    pub(super) at: Range<usize>,
    /// What stands there instead.
    pub(super) instead: String,
}

/// How it is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// A term of a condition is gone.
    Removed,
    /// A lock is not taken.
    Unlocked,
    /// A term says the opposite.
    Negated,
}

impl What {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Removed => "remove",
            Self::Unlocked => "unlock",
            Self::Negated => "negate",
        }
    }
}

/// Where a condition ends, besides a parenthesis or a semicolon.
const ENDS: &[&str] = &[
    "THEN",
    "GROUP",
    "ORDER",
    "LIMIT",
    "OFFSET",
    "RETURNING",
    "FOR",
    "UNION",
    "EXCEPT",
    "HAVING",
    "WHERE",
    "JOIN",
    "LEFT",
    "INNER",
    "CROSS",
    "WINDOW",
    "LOOP",
    "ON",
    "DO",
    "INTO",
    "SET",
    "WHEN",
    "ELSE",
    "END",
];

/// The words of a lock clause after FOR.
const STRENGTHS: &[&str] = &["UPDATE", "SHARE", "NO", "KEY"];

/// Everything that can be broken in a text: what was removed first, which tells most.
pub(super) fn mutants(sql: &str) -> Vec<Mutant> {
    let reader = Reader { sql, tokens: tokens(sql) };
    let mut found = Vec::new();
    for place in 0..reader.tokens.len() {
        if let Some(from) = reader.condition(place) {
            reader.terms(from, reader.end(from), &mut found);
        }
        if let Some((from, to)) = reader.value(place) {
            reader.terms(from, to, &mut found);
        }
        found.extend(reader.locks(place));
    }
    // The same place may be reached twice, as a term and in its parentheses.
    found.sort_by_key(|m| (m.what, m.at.start, m.at.end));
    found.dedup_by(|a, b| (a.what, &a.at) == (b.what, &b.at));
    found
}

/// The text with one thing broken.
pub(super) fn broken(sql: &str, mutant: &Mutant) -> String {
    format!("{}{}{}", &sql[..mutant.at.start], mutant.instead, &sql[mutant.at.end..])
}

pub(super) struct Reader<'a> {
    pub(super) sql: &'a str,
    pub(super) tokens: Vec<Token>,
}

impl Reader<'_> {
    pub(super) fn is(&self, place: usize, word: &str) -> bool {
        let token = self.tokens.get(place).filter(|token| token.kind == Kind::Word);
        token.is_some_and(|token| self.sql[token.at.clone()].eq_ignore_ascii_case(word))
    }

    pub(super) fn is_any(&self, place: usize, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(place, word))
    }

    pub(super) fn kind(&self, place: usize) -> Option<Kind> {
        self.tokens.get(place).map(|token| token.kind)
    }

    pub(super) fn before(&self, place: usize, word: &str) -> bool {
        place > 0 && self.is(place - 1, word)
    }

    /// Where a condition begins that is led in by the token at `place`.
    fn condition(&self, place: usize) -> Option<usize> {
        let next = place + 1;
        let leads = match () {
            () if self.is_any(place, &["WHERE", "HAVING", "ELSIF"]) => true,
            // CREATE … IF NOT EXISTS, DROP … IF EXISTS, END IF
            () if self.is(place, "IF") => {
                let exists = self.is(next, "EXISTS")
                    || self.is(next, "NOT") && {
                        self.is(next + 1, "EXISTS") && self.kind(next + 2) != Some(Kind::Open)
                    };
                !exists && !self.before(place, "END")
            }
            () if self.is(place, "ON") => {
                let no_condition =
                    ["CONFLICT", "DELETE", "UPDATE", "ALL", "FUNCTION", "SCHEMA", "true", "TABLE"];
                // SELECT DISTINCT ON, CREATE INDEX … ON
                let named = place > 1 && self.is(place - 2, "INDEX");
                !(self.is_any(next, &no_condition) || self.before(place, "DISTINCT") || named)
            }
            // Handlers of exceptions are no conditions, nor is `CASE x WHEN 1`.
            () if self.is(place, "WHEN") => !self.before(place, "EXCEPTION"),
            () if self.is(place, "CHECK") => {
                return (self.kind(next) == Some(Kind::Open)).then_some(next + 1);
            }
            () => false,
        };
        (leads && next < self.tokens.len()).then_some(next)
    }

    /// Where the condition that begins at `from` is over.
    pub(super) fn end(&self, from: usize) -> usize {
        let depth = self.tokens[from].depth;
        let mut cases = 0_usize;
        for place in from..self.tokens.len() {
            let token = &self.tokens[place];
            if token.depth < depth || token.depth == depth && token.kind == Kind::End {
                return place;
            }
            if token.depth > depth {
                continue;
            }
            match () {
                () if self.is(place, "CASE") => cases += 1,
                () if cases > 0 && self.is(place, "END") => cases -= 1,
                () if cases == 0 && self.sql[token.at.clone()] == *"," => return place,
                () if cases == 0 && self.is_any(place, ENDS) && !self.is_distinct(place) => {
                    return place;
                }
                () => {}
            }
        }
        self.tokens.len()
    }

    /// LEFT and the like may be functions: then a parenthesis follows.
    fn is_distinct(&self, place: usize) -> bool {
        self.is_any(place, &["LEFT", "SET"]) && self.kind(place + 1) == Some(Kind::Open)
    }

    /// The places between `from` and `to` at which this word joins terms.
    pub(super) fn joints(&self, from: usize, to: usize, word: &str) -> Vec<usize> {
        let depth = self.tokens[from].depth;
        let mut found = Vec::new();
        let mut cases = 0_usize;
        let mut between = 0_usize;
        for place in (from..to).filter(|place| self.tokens[*place].depth == depth) {
            match () {
                () if self.is(place, "CASE") => cases += 1,
                () if self.is(place, "END") => cases = cases.saturating_sub(1),
                () if cases > 0 => {}
                () if self.is(place, "BETWEEN") => between += 1,
                () if between > 0 && self.is(place, "AND") => between -= 1,
                () if self.is(place, word) => found.push(place),
                () => {}
            }
        }
        found
    }

    /// What the terms of a condition can be broken into.
    fn terms(&self, from: usize, to: usize, found: &mut Vec<Mutant>) {
        if from >= to {
            return;
        }
        for (word, neutral) in [("OR", "false"), ("AND", "true")] {
            let joints = self.joints(from, to, word);
            if joints.is_empty() {
                continue;
            }
            let mut begin = from;
            for end in joints.into_iter().chain([to]) {
                self.term(begin, end, neutral, found);
                begin = end + 1;
            }
            return;
        }
        self.term(from, to, "true", found);
    }

    fn term(&self, from: usize, to: usize, neutral: &str, found: &mut Vec<Mutant>) {
        if from >= to {
            return;
        }
        let at = self.tokens[from].at.start..self.tokens[to - 1].at.end;
        let text = &self.sql[at.clone()];
        // `CASE x WHEN 'a'` compares with a text.
        if to == from + 1 && self.kind(from) == Some(Kind::Text) {
            return;
        }
        if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
            return;
        }
        let joined = ["OR", "AND"].iter().any(|word| !self.joints(from, to, word).is_empty());
        if !joined {
            let instead = neutral.to_owned();
            found.push(Mutant { what: What::Removed, at: at.clone(), instead });
            let instead = format!("NOT ({text})");
            found.push(Mutant { what: What::Negated, at, instead });
        } else {
            // An operand of OR that is joined by AND: as a whole, and each of its own.
            found.push(Mutant { what: What::Removed, at, instead: neutral.to_owned() });
            self.terms(from, to, found);
        }
        // `( … )` or `NOT ( … )` around terms of its own.
        let inner = from + usize::from(self.is(from, "NOT"));
        let wrapped = self.kind(inner) == Some(Kind::Open)
            && self.kind(to - 1) == Some(Kind::Close)
            && (inner + 1..to - 1).all(|p| self.tokens[p].depth > self.tokens[inner].depth);
        let whole = inner + 1 < to - 1 && !self.is(inner + 1, "SELECT");
        if wrapped && whole {
            let many = ["OR", "AND"].iter();
            if many.into_iter().any(|word| !self.joints(inner + 1, to - 1, word).is_empty()) {
                self.terms(inner + 1, to - 1, found);
            }
        }
    }

    /// The lock that is taken at this place.
    fn locks(&self, place: usize) -> Vec<Mutant> {
        let gone = |from: usize, to: usize, instead: &str| Mutant {
            what: What::Unlocked,
            at: self.tokens[from].at.start..self.tokens[to - 1].at.end,
            instead: instead.to_owned(),
        };
        if self.is(place, "FOR") && self.is_any(place + 1, STRENGTHS) {
            let mut end = place + 1;
            while self.is_any(end, STRENGTHS) {
                end += 1;
            }
            if self.is(end, "OF") {
                end += 2;
            }
            if self.is(end, "SKIP") {
                return vec![gone(place, end + 2, ""), gone(end, end + 2, "")];
            }
            end += usize::from(self.is(end, "NOWAIT"));
            return vec![gone(place, end, "")];
        }
        let named = self.tokens[place].kind == Kind::Word
            && self.sql[self.tokens[place].at.clone()].to_ascii_lowercase().contains("advisory");
        if named && self.kind(place + 1) == Some(Kind::Open) {
            let depth = self.tokens[place].depth;
            let close = (place + 2..self.tokens.len())
                .find(|p| self.tokens[*p].kind == Kind::Close && self.tokens[*p].depth == depth);
            return close.map(|close| gone(place, close + 1, "true")).into_iter().collect();
        }
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the text becomes, one way after the other.
    fn all(sql: &str, what: What) -> Vec<String> {
        let found = mutants(sql);
        found.iter().filter(|m| m.what == what).map(|m| broken(sql, m)).collect()
    }

    #[test]
    fn each_term_of_a_where_is_removed_by_itself() {
        assert_eq!(
            all("UPDATE m SET a = 1 WHERE b = $1 AND NOT c RETURNING d", What::Removed),
            [
                "UPDATE m SET a = 1 WHERE true AND NOT c RETURNING d",
                "UPDATE m SET a = 1 WHERE b = $1 AND true RETURNING d",
            ]
        );
    }

    #[test]
    fn each_term_is_negated_by_itself() {
        let negated = all("SELECT 1 WHERE a > 1 AND b", What::Negated);
        assert_eq!(
            negated,
            ["SELECT 1 WHERE NOT (a > 1) AND b", "SELECT 1 WHERE a > 1 AND NOT (b)"]
        );
    }

    #[test]
    fn an_operand_of_or_becomes_false() {
        let removed = all("IF a OR b AND c THEN x; END IF;", What::Removed);
        assert_eq!(
            removed,
            [
                "IF false OR b AND c THEN x; END IF;",
                "IF a OR true AND c THEN x; END IF;",
                "IF a OR false THEN x; END IF;",
                "IF a OR b AND true THEN x; END IF;",
            ]
        );
    }

    #[test]
    fn between_is_one_term() {
        let removed = all("SELECT 1 WHERE a BETWEEN 1 AND 2 AND b", What::Removed);
        assert_eq!(
            removed,
            ["SELECT 1 WHERE true AND b", "SELECT 1 WHERE a BETWEEN 1 AND 2 AND true"]
        );
    }

    #[test]
    fn terms_in_parentheses_are_broken_too() {
        let removed = all("SELECT 1 WHERE (a OR b) AND c", What::Removed);
        assert_eq!(
            removed,
            [
                "SELECT 1 WHERE true AND c",
                "SELECT 1 WHERE (false OR b) AND c",
                "SELECT 1 WHERE (a OR false) AND c",
                "SELECT 1 WHERE (a OR b) AND true",
            ]
        );
    }

    #[test]
    fn conditions_of_every_kind_are_found() {
        for (sql, count) in [
            ("CONTINUE WHEN a;", 1),
            ("EXIT WHEN a AND b;", 2),
            ("SELECT CASE WHEN a THEN b END", 1),
            ("x int CHECK (x > 0)", 1),
            ("a JOIN b ON a.x = b.x AND a.y = b.y WHERE c", 3),
            ("ELSIF a THEN", 1),
            ("count(*) FILTER (WHERE a)", 1),
            ("WHERE a = (SELECT 1 WHERE b)", 2),
            ("EXCEPTION WHEN unique_violation THEN", 0),
            ("CREATE TABLE IF NOT EXISTS t (a int)", 0),
            ("INSERT INTO t VALUES (1) ON CONFLICT (a) DO NOTHING", 0),
            ("FROM x LEFT JOIN y ON true", 0),
            ("END IF;", 0),
            ("FROM a JOIN b ON a.x = b.x, c", 1),
        ] {
            assert_eq!(all(sql, What::Removed).len(), count, "{sql}");
        }
    }

    #[test]
    fn locks_are_not_taken() {
        assert_eq!(
            all("SELECT 1 FROM e FOR UPDATE OF e SKIP LOCKED;", What::Unlocked),
            ["SELECT 1 FROM e ;", "SELECT 1 FROM e FOR UPDATE OF e ;"]
        );
        assert_eq!(all("SELECT 1 FROM e FOR NO KEY UPDATE", What::Unlocked), ["SELECT 1 FROM e "]);
        assert_eq!(
            all("PERFORM pg_advisory_xact_lock(f(x), 1);", What::Unlocked),
            ["PERFORM true;"]
        );
        assert_eq!(all("FOR v IN SELECT 1 LOOP", What::Unlocked), [""; 0]);
    }

    /// Whatever is broken, the rest of the text is as it was.
    #[test]
    fn a_mutant_changes_one_place() {
        let sql = "SELECT 'WHERE x' -- WHERE y\nFROM t WHERE a = 'AND' AND b";
        let found = mutants(sql);
        assert_eq!(found.len(), 4, "{found:?}");
        for mutant in found {
            let now = broken(sql, &mutant);
            assert!(now.starts_with("SELECT 'WHERE x' -- WHERE y\nFROM t WHERE "), "{now}");
        }
    }
}
