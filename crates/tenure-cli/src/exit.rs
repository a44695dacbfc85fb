//! Exit codes: the one table. `docs/cli.md` shows it to users, and a test
//! compares the two.

/// How the program ends when nothing else says so. `run` passes its command's
/// own code on instead, so ours stay out of the way of the usual ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done, or the answer is yes.
    Ok,
    /// The answer is no.
    No,
    /// The command line, a setting or the config file cannot be used.
    Usage,
    /// No member leads.
    Vacant,
    /// There is no such election, member, candidate or term.
    NotFound,
    /// The store cannot be reached, or failed.
    Store,
    /// The operating system refused something, or a defect.
    System,
    /// The term was lost or given up, and the command was stopped.
    Lost,
    /// Waited, and it did not happen in time.
    NotInTime,
    /// The command exists and cannot be executed.
    NotExecutable,
    /// The command does not exist.
    NoCommand,
    /// The code of the command that ran, or 128 + the signal that ended it.
    Passed(u8),
}

impl Exit {
    /// The code, as the shell sees it.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Exit::Ok => 0,
            Exit::No => 1,
            Exit::Usage => 2,
            Exit::Vacant => 3,
            Exit::NotFound => 4,
            Exit::Store => 69,
            Exit::System => 70,
            Exit::Lost => 73,
            Exit::NotInTime => 75,
            Exit::NotExecutable => 126,
            Exit::NoCommand => 127,
            Exit::Passed(code) => code,
        }
    }

    /// Ended by a signal.
    pub(crate) fn signal(number: i32) -> Self {
        Exit::Passed(u8::try_from(128 + number).unwrap_or(u8::MAX))
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documented table and the one that is compiled in are the same.
    #[test]
    fn the_documented_table_is_this_one() {
        let doc = include_str!("../../../docs/cli.md");
        let all = [
            Exit::Ok,
            Exit::No,
            Exit::Usage,
            Exit::Vacant,
            Exit::NotFound,
            Exit::Store,
            Exit::System,
            Exit::Lost,
            Exit::NotInTime,
            Exit::NotExecutable,
            Exit::NoCommand,
        ];
        for exit in all {
            let row = format!("| {} |", exit.code());
            assert!(doc.contains(&row), "docs/cli.md has no row {row:?} for {exit:?}");
        }
        let rows = doc.lines().filter(|line| {
            line.strip_prefix("| ").is_some_and(|l| l.starts_with(|c: char| c.is_ascii_digit()))
        });
        // One more row than ours: 128 + n.
        assert_eq!(rows.count(), all.len() + 1);
        assert!(doc.contains("| 128 + n |"));
        assert_eq!(Exit::signal(9).code(), 137);
        assert_eq!(Exit::signal(300).code(), 255);
    }
}
