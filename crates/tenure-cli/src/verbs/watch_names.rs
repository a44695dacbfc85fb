//! `tenure watch --names`: one line for each name that changed.
//!
//! The store is asked what changed since the last revision. Where it notifies, it could be
//! followed; a person who looks at lines is served as well by a look four times a second.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure::{Binding, Name, NamesView, Operator, Rev, WhichNames};
use tenure_api::{BoundName, NameChange, NameNews};

use crate::args::WatchArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::{Output, Tone, say};

/// How often the store is asked.
const LOOK: Duration = Duration::from_millis(250);

pub(crate) async fn run(context: &Context, prefix: &str, args: &WatchArgs) -> Outcome {
    let operator = context.watch().await?;
    let traits = operator.capabilities().names;
    if traits.is_some_and(|traits| !traits.since) {
        let kind = operator.capabilities().name;
        let what = format!("the store {kind} cannot tell which names changed");
        return Err(Failure::usage(format!("{what}; repeat `tenure names --json` instead")));
    }
    let mut lines = Lines {
        out: context.output,
        prefix: prefix.to_owned(),
        known: BTreeMap::new(),
        left: args.count,
    };
    let mut rev = lines.begin(&operator, args.from).await?;
    let mut away = false;
    while lines.left != Some(0) {
        tokio::time::sleep(LOOK).await;
        match operator.names(WhichNames::Since(rev)).await {
            Ok(view) => {
                if std::mem::take(&mut away) {
                    say("the store answers again");
                }
                rev = view.rev;
                lines.tell(view)?;
            }
            Err(error) if error.may_pass() => {
                if !std::mem::replace(&mut away, true) {
                    say(&format!("the store is away, and is asked again: {error}"));
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Exit::Ok)
}

/// What is printed, and what is known of the names.
struct Lines {
    out: Output,
    prefix: String,
    known: BTreeMap<Name, Binding>,
    left: Option<u64>,
}

impl Lines {
    /// Tells what is bound, or what changed since a revision; and says from where to go on.
    async fn begin(&mut self, operator: &Operator, from: Option<u64>) -> Outcome<Rev> {
        let Some(from) = from else {
            let view = operator.names(WhichNames::Since(Rev::START)).await?;
            let rev = view.rev;
            self.tell(view)?;
            return Ok(rev);
        };
        let view = operator.names(WhichNames::Since(Rev::new(from))).await?;
        let rev = view.rev;
        if view.whole {
            say(&format!(
                "the store can no longer tell what changed since revision {from}; it goes on from \
                 the present, which is {rev}"
            ));
            self.know(view.bindings);
            return Ok(rev);
        }
        // What did not change since is known, and is no news.
        let changed: Vec<Name> = view.bindings.iter().map(|one| one.name.clone()).collect();
        let mut all = operator.names(WhichNames::Prefix(self.prefix.clone())).await?.bindings;
        all.retain(|binding| !changed.contains(&binding.name));
        self.know(all);
        self.tell(view)?;
        Ok(rev)
    }

    fn know(&mut self, bindings: Vec<Binding>) {
        let wanted = bindings.into_iter().filter(|one| one.name.as_str().starts_with(&self.prefix));
        self.known.extend(wanted.map(|one| (one.name.clone(), one)));
    }

    /// Tells what differs from what is known.
    fn tell(&mut self, view: NamesView) -> Outcome<()> {
        let NamesView { rev, bindings, gone, owners, whole } = view;
        let is_there = |name: &Name| bindings.iter().any(|one| one.name == *name);
        let lives = |one: &Binding| match &one.owner {
            Some(owner) => owners.iter().any(|(life, _)| life == owner),
            None => true,
        };
        let free: Vec<Name> = self
            .known
            .values()
            .filter(|one| !is_there(&one.name))
            .filter(|one| whole || gone.contains(&one.name) || !lives(one))
            .map(|one| one.name.clone())
            .collect();
        for name in free {
            self.known.remove(&name);
            self.print(rev, &name, NameNews::Free, None)?;
        }
        for binding in bindings {
            if !binding.name.as_str().starts_with(&self.prefix) {
                continue;
            }
            let what = match self.known.get(&binding.name) {
                Some(known) if known.rev == binding.rev => continue,
                Some(known) if known.token == binding.token => NameNews::Changed,
                _ => NameNews::Bound,
            };
            self.print(rev, &binding.name.clone(), what, Some(&binding))?;
            self.known.insert(binding.name.clone(), binding);
        }
        Ok(())
    }

    fn print(
        &mut self,
        rev: Rev,
        name: &Name,
        what: NameNews,
        binding: Option<&Binding>,
    ) -> Outcome<()> {
        match &mut self.left {
            Some(0) => return Ok(()),
            Some(left) => *left -= 1,
            None => {}
        }
        if self.out.json {
            let binding = binding.map(BoundName::from);
            let (rev, name) = (rev.get(), name.to_string());
            return self.out.value_line(&NameChange { rev, name, what, binding });
        }
        let rev = self.out.paint(Tone::Faint, &format!("{rev:>6}"));
        let text = match (what, binding) {
            (NameNews::Free, _) | (_, None) => self.out.paint(Tone::Faint, "is free"),
            (_, Some(binding)) => {
                let owner = binding.owner.as_ref();
                let owner = owner.map_or_else(|| "nobody".into(), |owner| owner.id.to_string());
                let verb = if what == NameNews::Changed { "changed, of" } else { "bound to" };
                let at = binding.value.endpoint().map(|at| format!(" at {at}")).unwrap_or_default();
                let text = format!("{verb} {owner} under token {}{at}", binding.token);
                self.out.paint(Tone::Good, &text)
            }
        };
        self.out.line(&format!("{rev}  {name}  {text}"))
    }
}
