//! What a page shows is tried: each block of Rust is compiled by a documentation test, or is
//! a part of a file that is compiled, or says why it is neither. Blocks with commands are
//! written as such, so that the test of `tenure-cli` that runs them finds them.

use super::Finding;
use super::files::Files;

/// Says of the next block which file it is a part of.
const FROM: &str = "<!-- from ";
/// Says of the next block why it is not compiled.
const NOT_COMPILED: &str = "<!-- not compiled: ";

/// What a line of a block without a prompt begins with if it is a command.
const COMMANDS: [&str; 4] = ["cargo ", "tenure ", "psql ", "curl "];

/// A block between two fences.
#[derive(Debug)]
struct Block<'a> {
    /// The line of the first fence, from 1.
    line: usize,
    language: &'a str,
    lines: Vec<&'a str>,
    /// The line above it, apart from empty ones.
    above: &'a str,
}

pub(crate) fn check(files: &Files) -> Vec<Finding> {
    let compiled = compiled(files);
    let mut found = Vec::new();
    for (path, text) in files.ending(".md") {
        for block in blocks(text) {
            let text = match block.language.split(',').next().unwrap_or_default() {
                "rust" | "" => rust(&block, compiled.iter().any(|page| page == path), files),
                "text" if block.lines.iter().any(|line| is_command(line)) => {
                    Some("a command is shown in a block of text; write ```console and `$ `".into())
                }
                _ => None,
            };
            found.extend(text.map(|text| Finding::at(path, block.line, text)));
        }
    }
    found
}

fn is_command(line: &str) -> bool {
    line.starts_with("$ ") || COMMANDS.iter().any(|word| line.starts_with(word) && !is_usage(line))
}

/// `tenure [--store URL] VERB` tells what may be written, and is no command.
fn is_usage(line: &str) -> bool {
    line.contains(" [--")
}

/// What is wrong with a block of Rust on a page that documentation tests read, or do not.
fn rust(block: &Block<'_>, is_page_compiled: bool, files: &Files) -> Option<String> {
    if let Some(rest) = block.above.strip_prefix(FROM) {
        let file = rest.trim_end_matches("-->").trim();
        return match files.get(file) {
            Some(text) if is_part(&block.lines, text) => None,
            Some(_) => Some(format!("this block is not a part of `{file}` as it is now")),
            None => Some(format!("there is no `{file}`, of which this block would be a part")),
        };
    }
    let why = block.above.strip_prefix(NOT_COMPILED);
    if why.is_some_and(|why| !why.trim_end_matches("-->").trim().is_empty()) {
        return None;
    }
    let is_ignored = block.language.split(',').any(|word| word == "ignore");
    if is_page_compiled && !is_ignored {
        return None;
    }
    Some(format!(
        "no documentation test compiles this block: include the page in one, without `ignore`, or \
         write `{FROM}path -->` or `{NOT_COMPILED}why -->` above it"
    ))
}

/// Whether these lines stand one after the other in a text, however far they are indented.
fn is_part(lines: &[&str], text: &str) -> bool {
    let there: Vec<&str> = text.lines().map(str::trim).collect();
    let wanted: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    !wanted.is_empty() && there.windows(wanted.len()).any(|part| part == wanted)
}

/// The pages whose blocks are documentation tests of some crate.
fn compiled(files: &Files) -> Vec<String> {
    let pages = files.ending(".rs").flat_map(|(path, text)| {
        let named = text.lines().filter_map(|line| {
            let (_, rest) = line.trim().split_once("doc = include_str!(\"")?;
            rest.split_once('"').map(|(page, _)| page)
        });
        named.filter_map(|page| super::links::resolve(path, page))
    });
    pages.collect()
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut open: Option<Block<'_>> = None;
    let mut above = "";
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        match (&mut open, trimmed.strip_prefix("```")) {
            (None, Some(language)) => {
                open = Some(Block { line: number + 1, language, lines: Vec::new(), above });
            }
            (Some(_), Some(_)) => {
                found.extend(open.take());
                above = "";
            }
            (Some(block), None) => block.lines.push(line),
            (None, None) if !trimmed.is_empty() => above = trimmed,
            (None, None) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: (&str, &str) = (
        "crates/a/src/lib.rs",
        "#![doc = include_str!(\"../README.md\")]\nfn there() {\n    1;\n}",
    );

    fn found(page: &str, text: &str) -> Vec<String> {
        let files = Files::from_texts(&[LIB, (page, text)]);
        check(&files).iter().map(Finding::to_string).collect()
    }

    /// A page that no documentation test reads, a block that says `ignore`, and one that is no
    /// part of the file that it names any more.
    #[test]
    fn a_block_of_rust_that_is_not_compiled_is_found() {
        for (page, text) in [
            ("docs/a.md", "```rust\nlet a = 1;\n```"),
            ("docs/a.md", "```rust,no_run\nlet a = 1;\n```"),
            ("docs/a.md", "```\nlet a = 1;\n```"),
            ("crates/a/README.md", "```rust,ignore\nlet a = 1;\n```"),
            ("docs/a.md", "<!-- not compiled: -->\n```rust\nlet a = 1;\n```"),
            ("docs/a.md", "<!-- from crates/a/src/lib.rs -->\n```rust\nfn gone() {\n```"),
            ("docs/a.md", "<!-- from crates/a/src/gone.rs -->\n```rust\nfn there() {\n```"),
        ] {
            assert_eq!(found(page, text).len(), 1, "{page}: {text}");
        }
    }

    #[test]
    fn a_block_of_rust_that_is_compiled_or_says_why_not_passes() {
        for (page, text) in [
            ("crates/a/README.md", "```rust\nlet a = 1;\n```"),
            ("crates/a/README.md", "```rust,no_run\nlet a = 1;\n```"),
            ("docs/a.md", "<!-- not compiled: it is a sketch -->\n\n```rust\nlet a = 1;\n```"),
            ("docs/a.md", "<!-- from crates/a/src/lib.rs -->\n```rust\nfn there() {\n  1;\n```"),
            ("docs/a.md", "```json\n{}\n```\n\n```console\n$ cargo x\n```"),
        ] {
            assert_eq!(found(page, text), [""; 0], "{page}: {text}");
        }
        // What is said of one block is not said of the next.
        let two = "<!-- not compiled: why -->\n```rust\n1\n```\n```rust\n2\n```";
        assert_eq!(found("docs/a.md", two).len(), 1);
    }

    /// A block of text hides its commands from the test that runs them.
    #[test]
    fn a_command_in_a_block_of_text_is_found() {
        for line in ["cargo xtask test", "$ ls", "tenure run -- true"] {
            assert_eq!(found("a.md", &format!("```text\n{line}\n```")).len(), 1, "{line}");
        }
        for line in ["tenure [--store URL] VERB", "a tenure", "trust = ttl"] {
            assert_eq!(found("a.md", &format!("```text\n{line}\n```")), [""; 0], "{line}");
        }
    }
}
