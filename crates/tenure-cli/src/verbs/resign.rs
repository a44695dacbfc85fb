//! `tenure resign`: asks the leader to step down, or to hand over.

use std::time::{Duration, Instant};

use tenure::journal::{Happening, JournalStream, Journalled, ReleaseCause};
use tenure::views::Amended;
use tenure::{ElectionName, MemberId, Operator, TermNumber};
use tenure_api::{Cause, Resigned, Successor, millis, span};

use crate::args::ResignArgs;
use crate::context::{Context, election_name, known_view};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome, did_you_mean};

pub(crate) async fn run(context: &Context, args: &ResignArgs) -> Outcome {
    let name = election_name(&args.name)?;
    let to = args.to.as_deref().map(MemberId::new).transpose()?;
    let operator = context.operate().await?;
    let view = known_view(&operator, &args.name).await?;
    let Some(holder) = &view.holder else {
        let what = format!("{name} has no leader that could step down");
        return Err(Failure::new(Exit::Vacant, what));
    };
    let leader = holder.member.id.clone();
    // Before the request, so that nothing of what follows is missed.
    let mut journal = match args.wait {
        Some(_) => Some(operator.follow(Some(operator.journal(1).await?.0))?),
        None => None,
    };
    let election = operator.election(&args.name);
    let number = view.number;
    let asked = Instant::now();
    let amended = election.ask_term_to_step_down(number, to.clone(), &args.reason).await?;
    match amended {
        Amended::Done { .. } | Amended::Unchanged => {}
        Amended::NoSuchCandidate if to.as_ref() == Some(&leader) => {
            let what = format!("{leader} leads {name} already, with term {number}");
            return Err(Failure::new(Exit::No, format!("{what}; it was not asked to step down")));
        }
        Amended::NoSuchCandidate => {
            let near = did_you_mean(
                args.to.as_deref().unwrap_or_default(),
                view.candidates.iter().map(|c| c.member.id.as_str()),
            );
            let near = near.unwrap_or_else(|| format!("; `tenure status {name}` lists them"));
            let to = args.to.as_deref().unwrap_or_default();
            let what = format!("{to:?} is not a live candidate of {name} that may lead{near}");
            return Err(Failure::new(Exit::NotFound, what));
        }
        Amended::Vacant | Amended::Superseded { .. } => {
            let what = format!("{leader} no longer leads {name}: term {number} has just ended");
            return Err(Failure::new(
                Exit::No,
                format!("{what}; look with `tenure status {name}`"),
            ));
        }
        _ => return Err(Failure::new(Exit::System, "the store gave an answer that is not one")),
    }
    let outcome = match (&mut journal, args.wait) {
        (Some(journal), Some(limit)) => {
            let waiting = follow(&operator, journal, &name, &leader, number);
            let Ok(outcome) = tokio::time::timeout(limit, waiting).await else {
                let limit = span::show(limit);
                let what = format!("{leader} was asked, and has not stepped down within {limit}");
                let remedy = "it may still be draining; `tenure evict` ends one that hangs";
                return Err(Failure::new(Exit::NotInTime, format!("{what}; {remedy}")));
            };
            Some(outcome?)
        }
        _ => None,
    };
    report(context, &name, &leader, number, outcome.as_ref(), asked.elapsed())
}

/// How the term ended, and who leads now.
struct Ended {
    cause: ReleaseCause,
    next: Option<(MemberId, TermNumber)>,
}

/// Waits until the term has ended and, if there is a candidate, a member leads again.
async fn follow(
    operator: &Operator,
    journal: &mut JournalStream,
    name: &ElectionName,
    leader: &MemberId,
    number: TermNumber,
) -> Outcome<Ended> {
    let mut ended = None;
    while let Some(news) = journal.next().await {
        let Journalled::Entries(entries) = news else { continue };
        for entry in entries {
            match entry.what {
                Happening::Released { election, number: n, cause, .. }
                    if election == *name && n == number =>
                {
                    ended = Some(cause);
                }
                // If it was not given up, its term is over with its leader's life.
                Happening::Left { member, .. } if member.id == *leader => {
                    ended.get_or_insert(ReleaseCause::Left);
                }
                Happening::Ended { member, cause, .. } if member.id == *leader => {
                    ended.get_or_insert(ReleaseCause::Ended(cause));
                }
                Happening::Elected { term, .. }
                    if term.election == *name && term.number > number =>
                {
                    let cause = ended.unwrap_or(ReleaseCause::SteppedDown);
                    return Ok(Ended { cause, next: Some((term.member.id, term.number)) });
                }
                _ => {}
            }
        }
        if let Some(cause) = ended {
            let view = operator.election(name).view().await?;
            let has_candidate = view.candidates.iter().any(|c| c.priority.may_lead());
            if view.holder.is_none() && (!has_candidate || view.paused.is_some()) {
                return Ok(Ended { cause, next: None });
            }
        }
    }
    Err(Failure::new(Exit::System, "the connection to the store was shut down"))
}

fn report(
    context: &Context,
    name: &ElectionName,
    leader: &MemberId,
    number: TermNumber,
    ended: Option<&Ended>,
    took: Duration,
) -> Outcome {
    let out = context.output;
    if out.json {
        let successor = ended.and_then(|ended| ended.next.as_ref());
        let successor =
            successor.map(|(id, number)| Successor { id: id.to_string(), term: number.get() });
        out.value(&Resigned {
            election: name.to_string(),
            term: number.get(),
            leader: leader.to_string(),
            asked: true,
            ended: ended.map(|ended| ended.cause.into()),
            successor,
            took_ms: ended.map(|_| millis(took)),
        })?;
        return Ok(Exit::Ok);
    }
    let Some(ended) = ended else {
        let what = format!("{leader} is asked to give up term {number} of {name}");
        out.line(&format!("{what}; `tenure watch {name}` shows what happens"))?;
        return Ok(Exit::Ok);
    };
    let how = Cause::from(ended.cause);
    out.line(&format!("term {number} of {name}, held by {leader}, is over ({how})"))?;
    match &ended.next {
        Some((id, number)) => {
            let took = span::show(took);
            out.line(&format!("{id} leads with term {number}, {took} after the request"))?;
        }
        None => out.line("it has no candidate now")?,
    }
    Ok(Exit::Ok)
}
