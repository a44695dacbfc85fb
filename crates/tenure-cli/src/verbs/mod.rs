//! One verb, one file; and which arguments ask for which.

pub(crate) mod check;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod evict;
pub(crate) mod history;
pub(crate) mod lists;
pub(crate) mod names;
pub(crate) mod pause;
pub(crate) mod purge;
pub(crate) mod reference;
pub(crate) mod release;
pub(crate) mod resign;
pub(crate) mod restored;
pub(crate) mod schema;
pub(crate) mod serve;
pub(crate) mod status;
pub(crate) mod timing;
pub(crate) mod watch;
pub(crate) mod watch_names;

use crate::args::Command;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Outcome;
use crate::{run, top};

/// A verb that may ask the store. Those that need none are done before.
pub(crate) async fn carry_out(context: &Context, command: Command) -> Outcome {
    match command {
        Command::Run(args) => run::run(context, &args).await,
        Command::Register(args) => run::register(context, &args).await,
        Command::Serve(args) => serve::run(context, &args).await,
        Command::Status(args) => status::run(context, &args).await,
        Command::Watch(args) => watch::run(context, &args).await,
        Command::History(args) => history::run(context, &args).await,
        Command::Members => lists::members(context).await,
        Command::Elections => lists::elections(context).await,
        Command::Names(args) => names::names(context, &args).await,
        Command::Lookup(args) => names::lookup(context, &args).await,
        Command::Resign(args) => resign::run(context, &args).await,
        Command::Pause(args) => pause::pause(context, &args).await,
        Command::Resume(args) => pause::resume(context, &args).await,
        Command::Evict(args) => evict::run(context, &args).await,
        Command::Release(args) => release::run(context, &args).await,
        Command::Purge(args) => purge::run(context, &args).await,
        Command::Restored => restored::run(context).await,
        Command::Check(args) => check::check(context, &args).await,
        Command::Fence(args) => check::fence(context, &args).await,
        Command::Top(args) => top::run(context, &args).await,
        Command::Doctor(args) => doctor::run(context, &args).await,
        Command::Demo => demo::run(context).await,
        Command::Completions { .. }
        | Command::Man
        | Command::Codes
        | Command::Timing(_)
        | Command::Schema(_) => Ok(Exit::Ok),
    }
}
