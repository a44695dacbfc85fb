//! A file that is too long is two files.

use super::Finding;

/// The most lines a Rust file may have.
pub(crate) const LIMIT: usize = 500;

pub(crate) fn check(path: &str, text: &str) -> Option<Finding> {
    let lines = text.lines().count();
    (lines > LIMIT).then(|| {
        let text = format!("{lines} lines, the limit is {LIMIT}; split it by what it is about");
        Finding::of_file(path, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At the limit is fine, one over is not.
    #[test]
    fn the_limit_is_the_last_length_allowed() {
        assert_eq!(check("a.rs", &"x\n".repeat(LIMIT)), None);
        let found = check("a.rs", &"x\n".repeat(LIMIT + 1)).expect("too long");
        assert!(found.to_string().contains("a.rs: 501 lines"), "{found}");
    }
}
