//! `tenure restored`: the store was restored, and numbers must not come again.

use tenure::views::Amended;
use tenure_api::Restored;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Outcome;
use crate::output::say;

pub(crate) async fn run(context: &Context) -> Outcome {
    let operator = context.operate().await?;
    let Amended::Restored { before, after } = operator.restored().await? else {
        say("the store does not say whether its era has risen; look at the next term's number");
        return Ok(Exit::No);
    };
    let out = context.output;
    if out.json {
        out.value(&Restored { era_before: before, era_after: after })?;
    } else {
        out.line(&format!(
            "the era of term numbers in {} has risen from {before} to {after}",
            context.shown_store()
        ))?;
        out.line(
            "the next number of every election jumps above what the store may have forgotten; \
             the present leaders go on leading",
        )?;
    }
    Ok(Exit::Ok)
}
