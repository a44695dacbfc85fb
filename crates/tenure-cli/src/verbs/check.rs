//! `tenure check` and `tenure fence`: answers by exit code, for scripts and
//! health probes.

use tenure::MemberId;
use tenure_api::{Checked, FenceChecked};

use crate::args::{CheckArgs, FenceArgs};
use crate::context::{Context, election_name};
use crate::exit::Exit;
use crate::failure::Outcome;

/// An election that never had a candidate is a vacant one: a probe may well
/// start before the first candidate.
pub(crate) async fn check(context: &Context, args: &CheckArgs) -> Outcome {
    election_name(&args.name)?;
    let wanted = args.leader_is.as_deref().map(MemberId::new).transpose()?;
    let operator = context.look().await?;
    let leader = operator.election(&args.name).leader().await?.map(|holder| holder.member.id);
    let exit = match (&leader, &wanted) {
        (None, _) => Exit::Vacant,
        (Some(leader), Some(wanted)) if leader != wanted => Exit::No,
        (Some(_), _) => Exit::Ok,
    };
    let out = context.output;
    if out.json {
        let leader = leader.map(|id| id.to_string());
        out.value(&Checked { election: args.name.clone(), leader, ok: exit == Exit::Ok })?;
    } else {
        match &leader {
            Some(leader) => out.line(&format!("{leader} leads {}", args.name))?,
            None => out.line(&format!("{} has no leader", args.name))?,
        }
    }
    Ok(exit)
}

pub(crate) async fn fence(context: &Context, args: &FenceArgs) -> Outcome {
    election_name(&args.name)?;
    let operator = context.look().await?;
    let newest = operator.election(&args.name).view().await?.number.get();
    let asked = args.term;
    let name = &args.name;
    let (exit, text) = match asked.cmp(&newest) {
        std::cmp::Ordering::Equal if asked == 0 => {
            (Exit::NotFound, format!("{name} has had no term yet; numbers begin with 1"))
        }
        std::cmp::Ordering::Equal => (Exit::Ok, format!("term {asked} is the newest of {name}")),
        std::cmp::Ordering::Less => {
            (Exit::No, format!("term {asked} of {name} is over: the newest is {newest}"))
        }
        std::cmp::Ordering::Greater => {
            let what = format!("{name} has had no term {asked} yet: the newest is {newest}");
            (Exit::NotFound, format!("{what}; is this the right store and namespace?"))
        }
    };
    let out = context.output;
    if out.json {
        let ok = exit == Exit::Ok;
        out.value(&FenceChecked { election: name.clone(), term: asked, newest, ok })?;
    } else {
        out.line(&text)?;
    }
    Ok(exit)
}
