//! The table of decisions has each page once, in order, under its title.

use super::Finding;
use super::files::Files;

const FOLDER: &str = "docs/decisions/";
const TABLE: &str = "docs/decisions/README.md";

pub(crate) fn check(files: &Files) -> Vec<Finding> {
    let pages = files.ending(".md").filter(|(path, _)| path.starts_with(FOLDER) && *path != TABLE);
    let mut rows: Vec<String> = pages.filter_map(|(path, text)| row(path, text)).collect();
    rows.sort();
    let table = files.get(TABLE).unwrap_or_default();
    let listed: Vec<&str> = table.lines().filter(|line| line.starts_with("| [")).collect();
    let wrong = rows.iter().zip(&listed).find(|(row, listed)| row != *listed);
    let missing = rows.get(listed.len()).or(wrong.map(|(row, _)| row));
    let text = match missing {
        Some(row) => format!("each page has one line, in order; write {row}"),
        None if listed.len() > rows.len() => "a line has no page of its own; remove it".to_owned(),
        None => return Vec::new(),
    };
    vec![Finding::of_file(TABLE, text)]
}

/// The line that a page has in the table; `None` for a text that has no title.
fn row(path: &str, text: &str) -> Option<String> {
    let file = path.strip_prefix(FOLDER)?;
    let title = text.lines().next()?.strip_prefix("# ")?;
    let (number, title) = title.split_once(": ")?;
    Some(format!("| [{number}]({file}) | {title} |"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(table: &str) -> Vec<Finding> {
        check(&Files::from_texts(&[
            ("docs/decisions/0001-one.md", "# 0001: One\n"),
            ("docs/decisions/0003-three.md", "# 0003: Three\n"),
            (TABLE, table),
        ]))
    }

    #[test]
    fn each_page_is_listed_once_and_in_order() {
        let one = "| [0001](0001-one.md) | One |\n";
        let three = "| [0003](0003-three.md) | Three |\n";
        assert_eq!(found(&format!("| page |\n|---|\n{one}{three}")), []);
        let renamed = three.replace("Three", "Four");
        for table in [
            one.to_owned(),
            format!("{three}{one}"),
            format!("{one}{one}{three}"),
            format!("{one}{three}{three}"),
            format!("{one}{renamed}"),
        ] {
            assert_eq!(found(&table).len(), 1, "{table}");
        }
    }
}
