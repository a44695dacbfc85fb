//! The arguments of verbs that run a command.

use std::time::Duration;

use clap::{Args, ValueEnum};
use tenure_api::span;

use super::pair;

/// `tenure run`.
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// The election to stand for
    #[arg(long, short, value_name = "NAME")]
    pub(crate) election: String,
    /// Preferred candidates have a higher one; 0 never leads [default: 100]
    #[arg(long, value_name = "N")]
    pub(crate) priority: Option<u16>,
    /// Where this member can be reached; may be repeated
    #[arg(long = "endpoint", value_name = "HOST:PORT")]
    pub(crate) endpoints: Vec<String>,
    /// Published beside the endpoints, as a JSON object; may be repeated
    #[arg(long = "meta", value_name = "KEY=VALUE")]
    pub(crate) meta: Vec<String>,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

/// `tenure register`.
#[derive(Args, Debug)]
pub(crate) struct RegisterArgs {
    /// The name, with its scope: orders:user/42
    pub(crate) name: String,
    /// Where the name is served
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) endpoint: Option<String>,
    /// A pair to find it by; may be given several times
    #[arg(long = "index", value_name = "KEY=TEXT", value_parser = pair)]
    pub(crate) pairs: Vec<(String, String)>,
    /// Published with it, at most 4096 bytes
    #[arg(long, value_name = "TEXT")]
    pub(crate) data: Option<String>,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

/// What a verb takes that runs a command.
#[derive(Args, Debug)]
pub(crate) struct WorkArgs {
    /// This member's id; without one, host, process and a random part
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// How long a term or a name outlives its last renewal
    #[arg(long, value_parser = span::parse, value_name = "DURATION", conflicts_with = "preset")]
    pub(crate) ttl: Option<Duration>,
    /// Named timings
    #[arg(long, value_enum)]
    pub(crate) preset: Option<PresetName>,
    /// How long the command may take to stop after TERM before it is killed
    /// [default: three tenths of the ttl, at most 10s]
    #[arg(long, value_parser = span::parse, value_name = "DURATION")]
    pub(crate) grace: Option<Duration>,
    /// Give up if not elected, or the name not free, within this time
    #[arg(long, value_parser = span::parse, value_name = "DURATION", conflicts_with = "no_wait")]
    pub(crate) wait: Option<Duration>,
    /// Give up unless elected, or the name free, at once
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Start the command again when it ends, while still leading or owning
    #[arg(long, value_enum, default_value_t = Restart::Never)]
    pub(crate) restart: Restart,
    /// What to do after the term or the name was lost and the command stopped
    #[arg(long, value_enum, default_value_t = OnLost::Exit)]
    pub(crate) on_lost: OnLost,
    /// Say nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// The command, after --
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<std::ffi::OsString>,
}

/// A set of timings by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PresetName {
    /// ttl 3s: one data centre
    Fast,
    /// ttl 10s: most deployments
    Normal,
    /// ttl 60s: unreliable networks
    Patient,
}

impl From<PresetName> for tenure::Preset {
    fn from(name: PresetName) -> Self {
        match name {
            PresetName::Fast => Self::Fast,
            PresetName::Normal => Self::Normal,
            PresetName::Patient => Self::Patient,
        }
    }
}

/// Whether to start the command again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Restart {
    Never,
    /// If it ended with another code than 0
    OnFailure,
    Always,
}

/// What follows a lost term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnLost {
    /// End, with the documented code
    Exit,
    /// Stand again
    Standby,
}
