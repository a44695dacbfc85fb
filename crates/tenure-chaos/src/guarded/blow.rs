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

    /// What comes of it where there is or is no guardian: a program that waits has none.
    pub(super) fn on(self, guardian: bool) -> Option<Self> {
        match self {
            Self::Kill(_) | Self::Stop(_) if guardian => Some(self),
            Self::Kill(Whom::Guardian) | Self::Stop(Whom::Guardian) => None,
            Self::Kill(_) => Some(Self::Kill(Whom::Program)),
            Self::Stop(_) => Some(Self::Stop(Whom::Program)),
            Self::Silence => Some(self),
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

    /// A program that waits has no guardian.
    #[test]
    fn what_is_not_there_is_not_hit() {
        for whom in [Whom::Program, Whom::Both, Whom::All] {
            assert_eq!(Blow::Kill(whom).on(false), Some(Blow::Kill(Whom::Program)));
            assert_eq!(Blow::Kill(whom).on(true), Some(Blow::Kill(whom)));
        }
        assert_eq!(Blow::Stop(Whom::Both).on(false), Some(Blow::Stop(Whom::Program)));
        assert_eq!(Blow::Kill(Whom::Guardian).on(false), None);
        assert_eq!(Blow::Stop(Whom::Guardian).on(false), None);
    }
}
