//! `tenure names` and `tenure lookup`.

use tenure::naming::{Binding, Name, WhichNames};
use tenure_api::{BoundName, BoundNames, span};

use crate::args::{LookupArgs, NamesArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Outcome;
use crate::output::{Table, Tone};
use crate::show::moment;

pub(crate) async fn names(context: &Context, args: &NamesArgs) -> Outcome {
    let operator = context.look().await?;
    let prefix = args.prefix.clone().unwrap_or_default();
    let mut view = operator.names(WhichNames::Prefix(prefix)).await?;
    view.bindings.retain(|binding| wanted(args, binding));
    let out = context.output;
    if out.json {
        let names = view.bindings.iter().map(BoundName::from).collect();
        let namespace = context.namespace.clone();
        out.value(&BoundNames { namespace, rev: view.rev.get(), names })?;
        return Ok(Exit::Ok);
    }
    if view.bindings.is_empty() {
        out.line("no names")?;
        return Ok(Exit::Ok);
    }
    show(context, &view.bindings)
}

pub(crate) async fn lookup(context: &Context, args: &LookupArgs) -> Outcome {
    let operator = context.look().await?;
    let name = Name::new(&args.name).map_err(tenure::Error::from)?;
    let mut view = operator.names(WhichNames::Named(vec![name])).await?;
    let out = context.output;
    let Some(binding) = view.bindings.pop() else {
        if out.json {
            out.value(&Option::<BoundName>::None)?;
        } else {
            let namespace = &context.namespace;
            out.line(&format!(
                "{} has no owner in namespace {namespace}",
                tenure::views::shown(&args.name)
            ))?;
        }
        return Ok(Exit::NotFound);
    };
    if out.json {
        out.value(&BoundName::from(&binding))?;
        return Ok(Exit::Ok);
    }
    show(context, &[binding])
}

fn wanted(args: &NamesArgs, binding: &Binding) -> bool {
    let owner = binding.owner.as_ref().map(|owner| owner.id.as_str());
    let by_owner = args.owner.as_deref().is_none_or(|id| owner == Some(id));
    by_owner && args.pairs.iter().all(|(key, text)| binding.value.has(key, text))
}

fn show(context: &Context, bindings: &[Binding]) -> Outcome {
    let mut table = Table::new(&["name", "owner", "token", "endpoint", "since", "left"]);
    for binding in bindings {
        let owner = binding.owner.as_ref();
        let left = owner.map_or_else(String::new, |_| span::roughly(binding.remaining));
        table.row(vec![
            (Tone::Strong, binding.name.to_string()),
            (Tone::Good, owner.map_or_else(|| "(none)".into(), |owner| owner.id.to_string())),
            (Tone::Plain, binding.token.to_string()),
            (Tone::Plain, binding.value.endpoint().unwrap_or_default().into()),
            (Tone::Plain, moment(binding.bound_at)),
            (Tone::Plain, left),
        ]);
    }
    context.output.table(&table)?;
    Ok(Exit::Ok)
}
