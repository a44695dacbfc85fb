//! `tenure members` and `tenure elections`.

use tenure_api::{Election, Elections, Member, Members, span};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Outcome;
use crate::output::{Table, Tone};
use crate::show::{leader_cell, moment, states};

pub(crate) async fn members(context: &Context) -> Outcome {
    let operator = context.look().await?;
    let mut members = operator.members().await?;
    members.sort_by(|a, b| a.member.cmp(&b.member));
    let out = context.output;
    if out.json {
        let members = members.iter().map(Member::from).collect();
        out.value(&Members { namespace: context.namespace.clone(), members })?;
        return Ok(Exit::Ok);
    }
    if members.is_empty() {
        out.line("no members")?;
        return Ok(Exit::Ok);
    }
    let mut table = Table::new(&["member", "holds", "joined", "left", "ttl", "endpoints"]);
    for view in &members {
        let tone = if view.holds > 0 { Tone::Good } else { Tone::Plain };
        table.row(vec![
            (Tone::Strong, view.member.id.to_string()),
            (tone, view.holds.to_string()),
            (Tone::Plain, moment(view.joined_at)),
            (Tone::Plain, span::roughly(view.remaining)),
            (Tone::Plain, span::show(view.ttl)),
            (Tone::Plain, view.profile.endpoints().join(", ")),
        ]);
    }
    out.table(&table)?;
    Ok(Exit::Ok)
}

pub(crate) async fn elections(context: &Context) -> Outcome {
    let operator = context.look().await?;
    let mut views = operator.elections().await?;
    views.sort_by(|a, b| a.election.cmp(&b.election));
    let out = context.output;
    if out.json {
        let elections = views.iter().map(|view| Election::new(&context.namespace, view)).collect();
        out.value(&Elections { namespace: context.namespace.clone(), elections })?;
        return Ok(Exit::Ok);
    }
    if views.is_empty() {
        out.line("no elections yet; `tenure run --election NAME -- CMD` begins one")?;
        return Ok(Exit::Ok);
    }
    let mut table = Table::new(&["election", "leader", "term", "candidates", "state"]);
    for view in &views {
        let (tone, leader) = leader_cell(view);
        table.row(vec![
            (Tone::Strong, view.election.to_string()),
            (tone, leader),
            (Tone::Plain, view.number.to_string()),
            (Tone::Plain, view.candidates.len().to_string()),
            (Tone::Warn, states(view)),
        ]);
    }
    out.table(&table)?;
    Ok(Exit::Ok)
}
