//! What is done to a program that runs a command under guard, and what `docs/cli.md`
//! promises of it.

/// Who of those that stand between the store and a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whom {
    /// `tenure run`.
    Program,
    /// Its guardian.
    Guardian,
    /// Both, before either can do its duty.
    Both,
    /// Both, and the watchman of the control group, if there is one.
    All,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blow {
    /// `kill -9`.
    Kill(Whom),
    /// SIGSTOP, and SIGCONT a while later.
    Stop(Whom),
    /// Nothing passes between the program and the store.
    Silence,
}

impl Blow {
    /// How it is called in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kill(Whom::Program) => "program killed",
            Self::Kill(Whom::Guardian) => "guardian killed",
            Self::Kill(Whom::Both) => "both killed",
            Self::Kill(Whom::All) => "all three killed",
            Self::Stop(Whom::Program) => "program stopped",
            Self::Stop(Whom::Guardian) => "guardian stopped",
            Self::Stop(Whom::Both | Whom::All) => "both stopped",
            Self::Silence => "program cut off",
        }
    }

    /// Whether it is meant for a guardian: a program that waits has none. To hit such a
    /// program instead, again and again, would keep all of them from leading.
    pub(crate) fn needs_a_guardian(self) -> bool {
        match self {
            Self::Kill(whom) | Self::Stop(whom) => whom != Whom::Program,
            Self::Silence => false,
        }
    }

    /// Whether no two commands overlap although the store cannot prove a death. Where it
    /// can, on SQLite, none ever do.
    pub(super) fn is_promised(self, watchman: bool) -> bool {
        match self {
            Self::Kill(Whom::Both) => watchman,
            Self::Kill(Whom::All) | Self::Stop(Whom::Both | Whom::All) => false,
            Self::Kill(Whom::Program | Whom::Guardian)
            | Self::Stop(Whom::Program | Whom::Guardian)
            | Self::Silence => true,
        }
    }

    /// One of them, from a number below a hundred. A file cannot be silenced: that is the
    /// lock that is held.
    pub(crate) fn of(roll: u64, with_network: bool) -> Self {
        match roll {
            0..20 => Self::Kill(Whom::Both),
            20..34 => Self::Kill(Whom::All),
            34..48 => Self::Kill(Whom::Program),
            48..60 => Self::Kill(Whom::Guardian),
            60..74 => Self::Stop(Whom::Both),
            74..86 => Self::Stop(Whom::Program),
            86..92 => Self::Stop(Whom::Guardian),
            _ if with_network => Self::Silence,
            _ => Self::Kill(Whom::Both),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of `docs/cli.md`, for other stores than SQLite: each row that has a
    /// bold cell is one that excuses, and no other.
    #[test]
    fn what_is_not_promised_is_what_the_page_says() {
        let page = include_str!("../../../../docs/cli.md");
        let rows = [
            ("| `tenure` is killed |", Blow::Kill(Whom::Program)),
            ("| the guardian is killed |", Blow::Kill(Whom::Guardian)),
            ("| `tenure` and the guardian are killed |", Blow::Kill(Whom::Both)),
            ("| these two and the watchman are killed |", Blow::Kill(Whom::All)),
            ("| `tenure` is stopped", Blow::Stop(Whom::Program)),
            ("| the guardian is stopped |", Blow::Stop(Whom::Guardian)),
            ("| `tenure` and the guardian are stopped |", Blow::Stop(Whom::Both)),
        ];
        for (row, blow) in rows {
            let line = page.lines().find(|line| line.starts_with(row)).unwrap_or_default();
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
            let [_, sqlite, with, without] = cells[..] else { panic!("{row}: {line:?}") };
            let bold = |cell: &str| cell.contains("**");
            assert!(!bold(sqlite), "{row}");
            assert_eq!(blow.is_promised(true), !bold(with), "{row}");
            // Without a group there is no watchman to be killed.
            assert!(blow.is_promised(false) != bold(without) || without.contains('–'), "{row}");
        }
    }

    /// A program that waits can be killed, stopped and cut off, and no more.
    #[test]
    fn what_is_meant_for_a_guardian_needs_one() {
        for whom in [Whom::Guardian, Whom::Both, Whom::All] {
            assert!(Blow::Kill(whom).needs_a_guardian() && Blow::Stop(whom).needs_a_guardian());
        }
        for blow in [Blow::Kill(Whom::Program), Blow::Stop(Whom::Program), Blow::Silence] {
            assert!(!blow.needs_a_guardian());
        }
    }
}
