//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use tenure_api::span;

pub(crate) use self::run::{OnLost, PresetName, RegisterArgs, Restart, RunArgs, WorkArgs};
pub(crate) use self::serve::ServeArgs;

mod run;
mod serve;

/// Leader election on the store you already run.
#[derive(Debug, Parser)]
#[command(name = "tenure", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "Exit codes, the environment and the config file: tenure codes")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every verb takes.
#[derive(Args, Debug)]
pub(crate) struct Global {
    /// The store, as a URL: sqlite:/path/to/file.db, postgres://user@host/db,
    /// s3://bucket/prefix, gs://bucket/prefix, az://container/prefix.
    /// Without one, an SQLite file in the user's state directory
    #[arg(long, global = true, env = "TENURE_STORE", hide_env_values = true, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// The isolated world of members and elections to look at
    #[arg(long, short, global = true, env = "TENURE_NAMESPACE", value_name = "NS")]
    pub(crate) namespace: Option<String>,
    /// Defaults for what is not said here; without it, tenure/config.toml in
    /// $XDG_CONFIG_HOME or ~/.config
    #[arg(long, global = true, env = "TENURE_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Answer in JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Colour the answer
    #[arg(long, global = true, value_enum, value_name = "WHEN")]
    pub(crate) color: Option<Color>,
}

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    Always,
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command only while leading an election
    Run(Box<RunArgs>),
    /// Run a command only while owning a name
    Register(Box<RegisterArgs>),
    /// Serve HTTP: who leads, events, campaigns for any language, metrics, a dashboard
    Serve(Box<ServeArgs>),
    /// Show who leads, since when, and who waits
    Status(StatusArgs),
    /// Print every change as it happens
    Watch(WatchArgs),
    /// Show past terms: who, how long, why they ended
    History(HistoryArgs),
    /// List the live members
    Members,
    /// List the elections
    Elections,
    /// List the names that are owned, and by whom
    Names(NamesArgs),
    /// Show who owns a name
    Lookup(LookupArgs),
    /// Ask the leader to step down, or to hand over
    Resign(ResignArgs),
    /// Elect no member anew; the leader goes on
    Pause(PauseArgs),
    /// Lift a pause
    Resume(OneName),
    /// End a member
    Evict(EvictArgs),
    /// Drop a name that has no owner
    Release(ReleaseArgs),
    /// Forget what is no longer used; no number and no token comes back
    Purge(PurgeArgs),
    /// After a restore from a backup: let no number that was forgotten come again
    Restored,
    /// Say by exit code whether a member leads
    Check(CheckArgs),
    /// Say by exit code whether a term is still the newest
    Fence(FenceArgs),
    /// Watch and steer everything on one screen
    Top(TopArgs),
    /// Look for what is wrong with the store, the clocks and the timings
    Doctor(DoctorArgs),
    /// Find timings for what you need, and what they cost
    Timing(TimingArgs),
    /// Print the SQL that makes a store's tables
    Schema(SchemaArgs),
    /// Show an election, a crash and a hand-over, explained
    Demo,
    /// Print the completions for a shell
    #[command(hide = true)]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the man page
    #[command(hide = true)]
    Man,
    /// Print the exit codes, the environment and the config file
    #[command(hide = true)]
    Codes,
}

/// `tenure names`
#[derive(Debug, Args)]
pub(crate) struct NamesArgs {
    /// Only names that begin with this
    pub(crate) prefix: Option<String>,
    /// Only names whose index has this pair; may be given several times
    #[arg(long = "where", value_name = "KEY=TEXT", value_parser = pair)]
    pub(crate) pairs: Vec<(String, String)>,
    /// Only names of this member
    #[arg(long, value_name = "ID")]
    pub(crate) owner: Option<String>,
}

/// `tenure lookup`. It always asks the store and has no copy, so that there is nothing that a
/// flag for a consistent answer could change.
#[derive(Debug, Args)]
#[command(after_help = "The answer is the store's own at this moment, never a copy's.")]
pub(crate) struct LookupArgs {
    /// The name, with its scope: orders:user/42
    pub(crate) name: String,
}

/// `tenure release`
#[derive(Debug, Args)]
#[command(
    after_help = "A name that a member owns is its own to give back: end the process, or use \
                        `tenure evict`."
)]
pub(crate) struct ReleaseArgs {
    /// The name, with its scope: orders:notice
    pub(crate) name: String,
    /// The token under which it is bound, as `tenure lookup` shows it
    #[arg(long, value_name = "N")]
    pub(crate) token: u64,
}

/// `tenure purge`
#[derive(Debug, Args)]
#[command(after_help = "Nothing that is led, stood for or paused is touched, nor what its last \
                        winner could still ask for. It goes in small steps, and may be ended at any \
                        time.")]
pub(crate) struct PurgeArgs {
    /// Only elections of which no term began or ended for so long; else what the config file
    /// says, else 90d
    #[arg(long, value_parser = span::parse, value_name = "DURATION")]
    pub(crate) older_than: Option<Duration>,
    /// Only say what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write it as KEY=TEXT")?;
    Ok((key.to_owned(), value.to_owned()))
}

impl Command {
    /// Whether it may write to the store, and so make one that is not there yet.
    pub(crate) fn writes(&self) -> bool {
        match self {
            Command::Run(_)
            | Command::Register(_)
            | Command::Serve(_)
            | Command::Resign(_)
            | Command::Pause(_)
            | Command::Resume(_)
            | Command::Evict(_)
            | Command::Release(_)
            | Command::Purge(_)
            | Command::Restored
            | Command::Doctor(_) => true,
            Command::Status(_)
            | Command::Watch(_)
            | Command::History(_)
            | Command::Members
            | Command::Elections
            | Command::Names(_)
            | Command::Lookup(_)
            | Command::Check(_)
            | Command::Fence(_)
            | Command::Top(_)
            | Command::Timing(_)
            | Command::Schema(_)
            | Command::Demo
            | Command::Completions { .. }
            | Command::Man
            | Command::Codes => false,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    /// The election; all if none is named
    pub(crate) name: Option<String>,
    /// Count the names that are bound, too: every one of them is read
    #[arg(long, conflicts_with = "name")]
    pub(crate) names: bool,
}

/// A verb about one election.
#[derive(Args, Debug)]
pub(crate) struct OneName {
    /// The election
    pub(crate) name: String,
}

#[derive(Args, Debug)]
pub(crate) struct WatchArgs {
    /// The elections; all if none is named
    pub(crate) elections: Vec<String>,
    /// Watch names that begin with this, instead of elections; all if it is empty
    #[arg(long, value_name = "PREFIX", conflicts_with = "elections")]
    pub(crate) names: Option<String>,
    /// Begin after this place in the journal, or this revision of names, as printed at the
    /// start of a line
    #[arg(long, value_name = "SEQ")]
    pub(crate) from: Option<u64>,
    /// End after so many lines
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct HistoryArgs {
    /// The election; all if none is named
    pub(crate) name: Option<String>,
    /// Only terms that stood within this time before now
    #[arg(long, value_parser = span::parse, value_name = "DURATION")]
    pub(crate) since: Option<Duration>,
    /// At most so many terms of each election, the newest
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = at_least_one())]
    pub(crate) limit: usize,
}

#[derive(Args, Debug)]
pub(crate) struct ResignArgs {
    /// The election
    pub(crate) name: String,
    /// Why; the leader and the journal are told
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub(crate) reason: String,
    /// Hand over to this candidate
    #[arg(long, value_name = "MEMBER")]
    pub(crate) to: Option<String>,
    /// Wait until it has happened, for so long [default: 30s]
    #[arg(
        long, value_parser = span::parse, value_name = "DURATION",
        num_args = 0..=1, require_equals = true, default_missing_value = "30s"
    )]
    pub(crate) wait: Option<Duration>,
}

#[derive(Args, Debug)]
pub(crate) struct PauseArgs {
    /// The election
    pub(crate) name: String,
    /// Why; status and the journal show it
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub(crate) reason: String,
}

#[derive(Args, Debug)]
pub(crate) struct EvictArgs {
    /// The member's id
    pub(crate) member: String,
    /// Return at once instead of waiting until its ttl has run out
    #[arg(long, conflicts_with = "now")]
    pub(crate) no_wait: bool,
    /// Give away what it holds at once, although it may still believe that it
    /// leads: only the fence keeps such a leader harmless
    #[arg(long)]
    pub(crate) now: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// The election
    pub(crate) name: String,
    /// Answer yes only if this member leads
    #[arg(long, value_name = "ID")]
    pub(crate) leader_is: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct FenceArgs {
    /// The election
    pub(crate) name: String,
    /// The number of the term
    pub(crate) term: u64,
}

#[derive(Args, Debug)]
pub(crate) struct TopArgs {
    /// Show only elections and members whose name has this in it
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub(crate) filter: String,
    /// How often to look, besides when something happens
    #[arg(long, value_parser = span::parse, default_value = "1s", value_name = "DURATION")]
    pub(crate) every: Duration,
}

#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Judge the timings of this preset against what is measured
    #[arg(long, value_enum, default_value_t = PresetName::Normal)]
    pub(crate) preset: PresetName,
    /// How long to compare the store's clock with this host's
    #[arg(long, value_parser = span::parse, default_value = "1s", value_name = "DURATION")]
    pub(crate) clock_for: Duration,
}

#[derive(Args, Debug)]
pub(crate) struct TimingArgs {
    /// After a crash another member must lead within this time
    #[arg(long, value_parser = span::parse, value_name = "DURATION")]
    pub(crate) recover_in: Duration,
    /// An outage of the store of this length must not cost the leadership
    #[arg(long, value_parser = span::parse, value_name = "DURATION")]
    pub(crate) tolerate: Duration,
    /// How many members there are
    #[arg(long, default_value_t = 3, value_name = "N")]
    pub(crate) members: u32,
    /// How many elections there are
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) elections: u32,
}

#[derive(Args, Debug)]
pub(crate) struct SchemaArgs {
    /// The store's name, as in a URL: sqlite, postgres
    #[arg(value_name = "STORE")]
    pub(crate) kind: String,
    /// Only what brings tables of this version up to date
    #[arg(long, value_name = "VERSION")]
    pub(crate) from: Option<u32>,
}

/// The variable among those that stand for options which is no text, if there is one. What
/// clap says of it does not name it.
pub(crate) fn unreadable() -> Option<&'static str> {
    let variables = ["TENURE_STORE", "TENURE_NAMESPACE"];
    variables.into_iter().find(|name| std::env::var_os(name).is_some_and(|v| v.to_str().is_none()))
}

fn at_least_one() -> clap::builder::RangedU64ValueParser<usize> {
    clap::builder::RangedU64ValueParser::new().range(1..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn resign_waits_for_half_a_minute_unless_told_otherwise() {
        let wait = |args: &[&str]| match Cli::try_parse_from(args).unwrap().command {
            Command::Resign(resign) => resign.wait,
            _ => panic!("it is resign"),
        };
        assert_eq!(wait(&["tenure", "resign", "x"]), None);
        assert_eq!(wait(&["tenure", "resign", "x", "--wait"]), Some(Duration::from_secs(30)));
        assert_eq!(wait(&["tenure", "resign", "--wait=2s", "x"]), Some(Duration::from_secs(2)));
    }
}
