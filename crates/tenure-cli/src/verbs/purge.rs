//! `tenure purge`: forgets what is no longer used, step by step.

use std::time::{Duration, Instant};

use tenure::Operator;
use tenure::store::{Purge, Purged};

use crate::args::PurgeArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Outcome;
use crate::output::say;

/// The age, where neither the command line nor the config file says one.
const AGE: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// For how long steps may find nothing to count before the rest is left to another purge:
/// an open transaction holds it.
const PATIENCE: Duration = Duration::from_secs(10);
/// Before a step that follows one which found nothing to count.
const PAUSE: Duration = Duration::from_millis(5);

pub(crate) async fn run(context: &Context, args: &PurgeArgs) -> Outcome {
    let operator = context.operate().await?;
    let age = args.older_than.or(context.older_than).unwrap_or(AGE);
    let first = Purge { dry_run: args.dry_run, ..Purge::older_than(age) };
    let purged = steps(&operator, first).await?;
    let out = context.output;
    if out.json {
        out.value(&tenure_api::Purged {
            namespace: context.namespace.clone(),
            dry_run: args.dry_run,
            elections: purged.elections,
            members: purged.members,
            names: purged.names,
            drops: purged.drops,
            journal: purged.journal,
            complete: !purged.more,
        })?;
    } else {
        let did = if args.dry_run { "would be removed" } else { "removed" };
        let Purged { elections, members, names, drops, .. } = purged;
        let namespace = &context.namespace;
        out.line(&format!(
            "{did} from the namespace {namespace}: {elections} elections, {members} members, \
             {names} names, {drops} drops of names"
        ))?;
        if purged.journal {
            out.line("nothing else was left, and the journal was emptied")?;
        }
    }
    if purged.more {
        say("an open transaction holds what is left; run it again later");
    }
    Ok(Exit::Ok)
}

/// All steps, each a transaction of its own.
async fn steps(operator: &Operator, first: Purge) -> Outcome<Purged> {
    let mut all = Purged::default();
    let mut next = Some(first);
    let mut counted = Instant::now();
    while let Some(step) = next {
        let purged = operator.purge(&step).await?;
        let Purged { elections, members, names, drops, .. } = purged;
        let went_on = purged.upto != step.after || elections + members + names + drops > 0;
        next = step.following(&purged);
        all = all.and(purged);
        if went_on {
            counted = Instant::now();
        } else if counted.elapsed() > PATIENCE {
            return Ok(all);
        } else {
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(all)
}
