//! `tenure evict`: ends a member.

use std::time::{Duration, Instant};

use tenure::views::{Amended, MemberRef};
use tenure::{MemberId, Operator};
use tenure_api::{Evicted, millis, span};

use crate::args::EvictArgs;
use crate::context::{Context, no_such_member};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::say;

pub(crate) async fn run(context: &Context, args: &EvictArgs) -> Outcome {
    let id = MemberId::new(&args.member)?;
    let operator = context.operate().await?;
    let amended =
        if args.now { operator.evict_now(&id).await? } else { operator.evict(&id).await? };
    let (member, remaining) = match amended {
        Amended::Done { member: Some(member), remaining, .. } => (member, remaining),
        Amended::Unchanged => {
            say(&format!("{id} was evicted already"));
            return Ok(Exit::Ok);
        }
        _ => return Err(no_such_member(&operator, id.as_str()).await?),
    };
    let left = span::roughly(remaining);
    let out = context.output;
    if args.now {
        say(&format!(
            "{id} may still believe for up to {left} that it leads what it held: until then two \
             may lead at once, and only the fence tells them apart"
        ));
    } else {
        say(&format!(
            "{id} may still trust its terms for up to {left}; they become free after that"
        ));
    }
    let waited = if args.now || args.no_wait {
        Duration::ZERO
    } else {
        let waiting = Instant::now();
        gone(&operator, &member, remaining).await?;
        waiting.elapsed()
    };
    let free = args.now || !args.no_wait;
    if out.json {
        out.value(&Evicted {
            member: id.to_string(),
            incarnation: member.incarnation.to_string(),
            trusts_itself_for_ms: if free && !args.now { 0 } else { millis(remaining) },
            free,
        })?;
    } else if args.now {
        out.line(&format!("{id} is ended, and what it held is free"))?;
    } else if args.no_wait {
        out.line(&format!("{id} is evicted; what it holds becomes free within {left}"))?;
    } else {
        let waited = span::roughly(waited);
        out.line(&format!("{id} is evicted, and what it held is free (waited {waited})"))?;
    }
    Ok(Exit::Ok)
}

/// Waits until this life of the member is no longer there. A little longer than
/// it should take, since the store's clock counts and not ours.
async fn gone(operator: &Operator, member: &MemberRef, remaining: Duration) -> Outcome<()> {
    let limit = remaining + remaining / 10 + Duration::from_secs(2);
    let began = Instant::now();
    loop {
        let members = operator.members().await?;
        let Some(view) = members.iter().find(|view| view.member == *member) else {
            return Ok(());
        };
        if began.elapsed() > limit {
            let what = format!("{} is still there after {}", member.id, span::roughly(limit));
            let remedy = "look at the store's clock with `tenure doctor`";
            return Err(Failure::new(Exit::NotInTime, format!("{what}; {remedy}")));
        }
        let pause = view.remaining.clamp(Duration::from_millis(20), Duration::from_millis(500));
        tokio::time::sleep(pause).await;
    }
}
