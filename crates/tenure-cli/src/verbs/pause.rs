//! `tenure pause` and `tenure resume`.

use tenure::views::Amended;
use tenure_api::Changed;

use crate::args::{OneName, PauseArgs};
use crate::context::{Context, known_view};
use crate::exit::Exit;
use crate::failure::Outcome;

pub(crate) async fn pause(context: &Context, args: &PauseArgs) -> Outcome {
    let operator = context.operate().await?;
    // Pausing a misspelt name would look like success.
    let view = known_view(&operator, &args.name).await?;
    let amended = operator.election(&args.name).pause(&args.reason).await?;
    let goes_on = match &view.holder {
        Some(holder) => format!("; {} goes on leading", holder.member.id),
        None => "; it has no leader".to_owned(),
    };
    let text = match amended {
        Amended::Unchanged => format!("{} was paused already", args.name),
        _ => format!("{} is paused: no member is newly elected{goes_on}", args.name),
    };
    say(context, &args.name, &amended, &text)
}

pub(crate) async fn resume(context: &Context, args: &OneName) -> Outcome {
    let operator = context.operate().await?;
    known_view(&operator, &args.name).await?;
    let amended = operator.election(&args.name).resume().await?;
    let text = match amended {
        Amended::Unchanged => format!("{} was not paused", args.name),
        _ => format!("{} is no longer paused", args.name),
    };
    say(context, &args.name, &amended, &text)
}

fn say(context: &Context, name: &str, amended: &Amended, text: &str) -> Outcome {
    let changed = !matches!(amended, Amended::Unchanged);
    let out = context.output;
    if out.json {
        out.value(&Changed { election: name.to_owned(), changed })?;
    } else {
        out.line(text)?;
    }
    Ok(Exit::Ok)
}
