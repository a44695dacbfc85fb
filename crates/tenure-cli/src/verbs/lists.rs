//! `tenure members` and `tenure elections`.

use serde_json::json;

use crate::context::{Context, millis};
use crate::exit::Exit;
use crate::failure::Outcome;
use crate::output::{Table, Tone};
use crate::span;
use crate::verbs::status::{leader_cell, metadata, states, view_json};

pub(crate) async fn members(context: &Context) -> Outcome {
    let tenure = context.look().await?;
    let mut members = tenure.members().await?;
    members.sort_by(|a, b| a.member.cmp(&b.member));
    let out = context.output;
    if out.json {
        let all = members.iter().map(|view| {
            json!({
                "id": view.member.id.as_str(),
                "incarnation": view.member.incarnation.to_string(),
                "endpoints": view.profile.endpoints(),
                "metadata": metadata(&view.profile),
                "joined_at": span::moment(view.joined_at),
                "ttl_ms": millis(view.ttl),
                "expires_in_ms": millis(view.remaining),
                "holds": view.holds,
            })
        });
        out.value(&json!({ "namespace": context.namespace, "members": all.collect::<Vec<_>>() }))?;
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
            (Tone::Plain, span::moment_short(view.joined_at)),
            (Tone::Plain, span::roughly(view.remaining)),
            (Tone::Plain, span::show(view.ttl)),
            (Tone::Plain, view.profile.endpoints().join(", ")),
        ]);
    }
    out.table(&table)?;
    Ok(Exit::Ok)
}

pub(crate) async fn elections(context: &Context) -> Outcome {
    let tenure = context.look().await?;
    let mut views = tenure.elections().await?;
    views.sort_by(|a, b| a.election.cmp(&b.election));
    let out = context.output;
    if out.json {
        let all = views.iter().map(|view| view_json(&context.namespace, view));
        let all: Vec<_> = all.collect();
        out.value(&json!({ "namespace": context.namespace, "elections": all }))?;
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
