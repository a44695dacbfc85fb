//! `tenure schema`: the SQL to apply by hand.

use tenure_api::Schema;

use crate::args::SchemaArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::say;

/// The version of the tables that this program makes.
const VERSION: u32 = 1;

pub(crate) fn run(context: &Context, args: &SchemaArgs) -> Outcome {
    // A whole URL stands for its scheme.
    let kind = args.kind.split(':').next().unwrap_or_default();
    let Some(sql) = tenure::store::schema(kind)? else {
        return Err(Failure::usage(format!("the store {kind} has no tables to make")));
    };
    let sql = match args.from {
        None | Some(0) => sql.as_ref(),
        Some(VERSION) => "",
        Some(other) => {
            let what = format!("there are no tables of version {other}");
            return Err(Failure::usage(format!("{what}; this program makes version {VERSION}")));
        }
    };
    if context.output.json {
        let schema = Schema { store: kind.to_owned(), version: VERSION, sql: sql.to_owned() };
        context.output.value(&schema)?;
    } else if sql.is_empty() {
        say(&format!("tables of version {VERSION} are up to date: there is nothing to apply"));
    } else {
        context.output.line(sql.trim_end())?;
    }
    Ok(Exit::Ok)
}
