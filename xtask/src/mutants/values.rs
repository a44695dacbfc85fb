//! Boolean values: what a function answers, what a variable becomes, what is selected or
//! passed on, as in `SELECT a AND b`, `RETURN a > b` or `coalesce(a OR b, true)`.

use super::sql::Reader;
use super::tokens::Kind;

/// After these words a value begins.
const BEGINS: &[&str] = &["SELECT", "RETURN", "THEN", "ELSE"];

/// Lists whose items are no values: assignments, options, names of tables.
const OTHER_LISTS: &[&str] = &["SET", "USING", "FROM", "WITH"];

impl Reader<'_> {
    /// The boolean value that is led in by the token at `place`, from its first token to
    /// the one after its last.
    pub(super) fn value(&self, place: usize) -> Option<(usize, usize)> {
        let from = self.value_begins(place)?;
        if matches!(self.kind(from)?, Kind::End | Kind::Close) {
            return None;
        }
        let to = self.value_ends(from);
        // `THEN v_x := …` is a statement, and its value is found by itself.
        if (from..to).any(|place| self.text(place) == ":" && self.adjacent(place + 1, "=")) {
            return None;
        }
        let joined = ["OR", "AND"].iter().any(|word| !self.joints(from, to, word).is_empty());
        (from < to && (joined || self.compares(from, to))).then_some((from, to))
    }

    fn value_begins(&self, place: usize) -> Option<usize> {
        let next = place + 1;
        let begins = match self.kind(place)? {
            // `RETURN QUERY` and `RETURN;` are found to hold no value.
            Kind::Word => self.is_any(place, BEGINS) && !self.is(next, "QUERY"),
            // Storage options stand in parentheses after WITH.
            Kind::Open => !self.is(next, "SELECT") && !self.before(place, "WITH"),
            Kind::Symbol => match self.text(place) {
                "," => !OTHER_LISTS.iter().any(|word| self.list_of(place, word)),
                // `:=` is two tokens; its second begins the value.
                "=" => place > 0 && self.adjacent(place - 1, ":"),
                _ => false,
            },
            _ => false,
        };
        begins.then_some(next)
    }

    /// Like a condition, but it ends also where a name for it or its source is given.
    fn value_ends(&self, from: usize) -> usize {
        let to = self.end(from);
        let depth = self.tokens[from].depth;
        let stops = |place: &usize| {
            self.tokens[*place].depth == depth
                && (self.is_any(*place, &["AS", "USING"])
                    || self.is(*place, "FROM") && !self.before(*place, "DISTINCT"))
        };
        (from..to).find(stops).unwrap_or(to)
    }

    /// Whether the list that the comma at `place` is in began with this word.
    fn list_of(&self, place: usize, word: &str) -> bool {
        let depth = self.tokens[place].depth;
        let heads = ["SELECT", "SET", "USING", "FROM", "VALUES", "RETURNING", "WITH", "RETURN"];
        for before in (0..place).rev() {
            let token = &self.tokens[before];
            if token.depth < depth || token.depth == depth && token.kind == Kind::End {
                return false;
            }
            let distinct = self.is(before, "FROM") && self.before(before, "DISTINCT");
            if token.depth == depth && self.is_any(before, &heads) && !distinct {
                return self.is(before, word);
            }
        }
        false
    }

    /// Whether something is compared at the depth of the value itself.
    fn compares(&self, from: usize, to: usize) -> bool {
        let depth = self.tokens[from].depth;
        let mut cases = 0_usize;
        (from..to).filter(|place| self.tokens[*place].depth == depth).any(|place| {
            // What CASE asks is found by itself, and what it answers may be anything.
            cases += usize::from(self.is(place, "CASE"));
            cases = cases.saturating_sub(usize::from(self.is(place, "END")));
            match self.kind(place).filter(|_| cases == 0) {
                // A column that is NOT NULL compares nothing.
                Some(Kind::Word) => {
                    let column = self.is(place, "NOT") && self.is(place + 1, "NULL");
                    let sign = self.is_any(place, &["IS", "EXISTS", "NOT", "IN", "LIKE"]);
                    sign && !column && !self.is(place + 1, "SELECT")
                }
                Some(Kind::Symbol) => match self.text(place) {
                    "=" => !self.adjacent(place + 1, ">") && !self.adjacent(place - 1, ":"),
                    // Not `->`, `->>`, `<<`, nor `=>`, which names an argument.
                    sign @ ("<" | ">") => {
                        let around = [place.wrapping_sub(1), place + 1];
                        let part = |other: &str| around.iter().any(|p| self.adjacent(*p, other));
                        let names = sign == ">" && self.adjacent(around[0], "=");
                        !part(sign) && !part("-") && !part("#") && !names
                    }
                    "~" => true,
                    _ => false,
                },
                _ => false,
            }
        })
    }

    fn text(&self, place: usize) -> &str {
        self.tokens.get(place).map_or("", |token| &self.sql[token.at.clone()])
    }

    /// Whether this text stands at `place`, with no space to a symbol beside it.
    fn adjacent(&self, place: usize, text: &str) -> bool {
        let touches = |a: usize, b: usize| match (self.tokens.get(a), self.tokens.get(b)) {
            (Some(a), Some(b)) => a.at.end == b.at.start,
            _ => false,
        };
        self.text(place) == text
            && (touches(place, place + 1) || touches(place.wrapping_sub(1), place))
    }
}

#[cfg(test)]
mod tests {
    use super::super::sql::{What, broken, mutants};

    fn removed(sql: &str) -> Vec<String> {
        let found = mutants(sql);
        found.iter().filter(|m| m.what == What::Removed).map(|m| broken(sql, m)).collect()
    }

    #[test]
    fn what_a_function_answers_is_broken() {
        assert_eq!(
            removed("AS $$ SELECT a AND b $$;"),
            ["AS $$ SELECT true AND b $$;", "AS $$ SELECT a AND true $$;"]
        );
        assert_eq!(removed("RETURN a > 1 OR b;"), ["RETURN false OR b;", "RETURN a > 1 OR false;"]);
        assert_eq!(removed("RETURN a > 1;"), ["RETURN true;"]);
        assert_eq!(removed("v_x boolean := a.b > c;"), ["v_x boolean := true;"]);
        assert_eq!(removed("SELECT x, a IS NOT NULL AS y FROM t"), ["SELECT x, true AS y FROM t"]);
        assert_eq!(removed("SELECT a IS DISTINCT FROM b FROM t"), ["SELECT true FROM t"]);
    }

    /// A statement after THEN, and a CASE, are no values, but may hold one.
    #[test]
    fn the_innermost_value_is_broken() {
        assert_eq!(
            removed("IF a THEN v := b > c; END IF;"),
            ["IF true THEN v := b > c; END IF;", "IF a THEN v := true; END IF;"]
        );
        assert_eq!(
            removed("SELECT CASE WHEN a > b THEN 1 END"),
            ["SELECT CASE WHEN true THEN 1 END"]
        );
    }

    #[test]
    fn what_is_passed_on_is_broken() {
        assert_eq!(removed("SELECT coalesce(a > 0, false)"), ["SELECT coalesce(true, false)"]);
        assert_eq!(
            removed("WHERE (a OR b) IS TRUE"),
            ["WHERE true", "WHERE (false OR b) IS TRUE", "WHERE (a OR false) IS TRUE"]
        );
    }

    #[test]
    fn what_is_no_boolean_is_left_alone() {
        for sql in [
            "RETURN v_terms;",
            "RETURN QUERY SELECT 1;",
            "UPDATE t SET a = 1, b = 2",
            "RAISE EXCEPTION 'x' USING ERRCODE = 'y', HINT = 'z'",
            "SELECT a || b, (c << 20), d->>'e' FROM f",
            "v_given := v_given + 1;",
            "v_given := f();",
            "SELECT DISTINCT ON (a) b",
            "CREATE TABLE t (a int NOT NULL, b int NOT NULL DEFAULT 0) WITH (fillfactor = 50)",
            "CREATE INDEX i ON t (a)",
            "RAISE EXCEPTION '%', a USING ERRCODE = 'y'",
            "BEGIN FOR a IN SELECT b LOOP c(); END LOOP;",
            "FROM a, b",
            "PERFORM f('x', life => p_life, cause => 'y');",
        ] {
            assert_eq!(removed(sql), [""; 0], "{sql}");
        }
    }
}
