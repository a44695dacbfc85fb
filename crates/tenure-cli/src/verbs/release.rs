//! `tenure release`: drops a name that has no owner.

use tenure::naming::{Binding, Name, Token};
use tenure_api::NameReleased;

use crate::args::ReleaseArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};

pub(crate) async fn run(context: &Context, args: &ReleaseArgs) -> Outcome {
    let name = Name::new(&args.name).map_err(tenure::Error::from)?;
    let operator = context.operate().await?;
    // A drop that finds nothing is answered as one that was done: look first.
    let which = tenure::naming::WhichNames::Named(vec![name.clone()]);
    if operator.names(which).await?.bindings.is_empty() {
        let namespace = &context.namespace;
        let what =
            format!("{name} is not bound in namespace {namespace}; `tenure names` lists all");
        return Err(Failure::new(Exit::NotFound, what));
    }
    let there = operator.drop_name(name.clone(), Token::new(args.token)).await?;
    if let Some(there) = there {
        return Err(Failure::new(Exit::No, refusal(&there, args.token)));
    }
    let out = context.output;
    if out.json {
        out.value(&NameReleased { name: name.to_string(), token: args.token, free: true })?;
    } else {
        out.line(&format!("{name} is free"))?;
    }
    Ok(Exit::Ok)
}

/// Why it was not dropped, and what to do.
fn refusal(there: &Binding, token: u64) -> String {
    let Binding { name, owner, token: bound, .. } = there;
    match owner {
        Some(owner) => {
            let id = &owner.id;
            format!(
                "{name} is owned by {id} (token {bound}), and only its owner gives it back: end that \
                 process in order, or let `tenure evict {id}` end all that it holds; nothing was \
                 changed"
            )
        }
        None => format!(
            "{name} is bound under token {bound}, not {token}: it changed hands since; look with \
             `tenure lookup {name}`; nothing was changed"
        ),
    }
}
