//! What is generated from the command line itself: completions, the man page,
//! and the table of codes.

use std::io::Write;

use clap::CommandFactory;

use crate::args::Cli;
use crate::exit::Exit;
use crate::failure::Outcome;

/// The part of the documentation that belongs to the program.
const GUIDE: &str = include_str!("../../../../docs/cli.md");

pub(crate) fn completions(shell: clap_complete::Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tenure", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(Exit::Ok)
}

/// One page with every verb on it.
pub(crate) fn man() -> Outcome {
    let command = Cli::command();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        let name = format!("tenure {}", verb.get_name());
        let verb = verb.clone().bin_name(name.clone()).display_name(name.clone());
        writeln!(page, ".SH {}", name.to_uppercase())?;
        let man = clap_mangen::Man::new(verb);
        man.render_synopsis_section(&mut page)?;
        man.render_description_section(&mut page)?;
        man.render_options_section(&mut page)?;
    }
    writeln!(page, ".SH EXIT CODES")?;
    for (code, meaning) in code_rows() {
        writeln!(page, ".TP\n{code}\n{meaning}")?;
    }
    std::io::stdout().lock().write_all(&page)?;
    Ok(Exit::Ok)
}

pub(crate) fn codes() -> Outcome {
    let mut out = std::io::stdout().lock();
    for heading in ["## Exit codes", "## Environment", "## Config file"] {
        writeln!(out, "{}\n", section(heading))?;
    }
    Ok(Exit::Ok)
}

/// A section of the guide, up to the next one.
fn section(heading: &str) -> &'static str {
    let Some(at) = GUIDE.find(heading) else { return "" };
    let rest = &GUIDE[at..];
    let end = rest[heading.len()..].find("\n## ").map_or(rest.len(), |end| heading.len() + end);
    rest[..end].trim_end()
}

/// The rows of the table of codes.
fn code_rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    section("## Exit codes").lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let code = cells.next().filter(|c| c.starts_with(|c: char| c.is_ascii_digit()))?;
        Some((code, cells.next()?.trim_end_matches(" |").trim_end_matches('|').trim_end()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_has_the_sections_that_are_printed() {
        for heading in ["## Exit codes", "## Environment", "## Config file"] {
            assert!(section(heading).lines().count() > 4, "{heading}");
        }
        assert!(code_rows().any(|(code, meaning)| code == "0" && !meaning.is_empty()));
    }
}
