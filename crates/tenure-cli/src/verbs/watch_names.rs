//! `tenure watch --names`: one line for each name that changed.
//!
//! The store is asked what changed since the last revision. Where it notifies, it could be
//! followed; a person who looks at lines is served as well by a look four times a second.

use std::time::Duration;

use tenure::naming::Rev;
use tenure::views::MemberRef;
use tenure_api::{BoundName, NameChange, NameNews, NameOwners};
use tenure_registry::{Change, Found, NameLooks};

use crate::args::WatchArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::{Output, Tone, say};

/// How often the store is asked.
const LOOK: Duration = Duration::from_millis(250);

pub(crate) async fn run(context: &Context, prefix: &str, args: &WatchArgs) -> Outcome {
    let operator = context.watch().await?;
    let capabilities = operator.capabilities();
    if !capabilities.keeps_names().map_err(tenure::Error::from)?.since {
        let what = format!("the store {} cannot tell which names changed", capabilities.name);
        return Err(Failure::usage(format!("{what}; repeat `tenure names --json` instead")));
    }
    let mut looks = NameLooks::new(&operator, prefix)?;
    if let Some(from) = args.from {
        looks = looks.from(Rev::new(from));
    }
    let mut lines = Lines { out: context.output.streaming(), from: args.from, left: args.count };
    // A store that cannot be asked at all is an error at once.
    let first = looks.look().await?;
    lines.tell(&looks, first)?;
    let mut away = false;
    while lines.left != Some(0) {
        tokio::time::sleep(LOOK).await;
        match looks.look().await {
            Ok(changes) => {
                if std::mem::take(&mut away) {
                    say("the store answers again");
                }
                lines.tell(&looks, changes)?;
            }
            Err(error) if error.may_pass() => {
                if !std::mem::replace(&mut away, true) {
                    say(&format!("the store does not answer; trying again: {error}"));
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Exit::Ok)
}

/// What is printed.
struct Lines {
    out: Output,
    /// Where it was to begin.
    from: Option<u64>,
    left: Option<u64>,
}

impl Lines {
    fn tell(&mut self, looks: &NameLooks, changes: Vec<Change>) -> Outcome<()> {
        for change in changes {
            match change {
                Change::Resynced { names, rev } => self.begin(looks, &names, rev)?,
                Change::Lives { lives, rev } => self.owners(rev, &lives)?,
                Change::Registered(found) => self.bound(looks, NameNews::Bound, &found)?,
                Change::Changed(found) => self.bound(looks, NameNews::Changed, &found)?,
                Change::Released { name, rev, .. } => self.free(&name, rev)?,
                // A kind of change that this program does not know.
                _ => {}
            }
        }
        Ok(())
    }

    /// All names: what there is at the beginning, unless changes after a revision were asked
    /// for that the store cannot tell any more.
    fn begin(&mut self, looks: &NameLooks, names: &[Found], rev: Rev) -> Outcome<()> {
        if let Some(from) = self.from {
            say(&format!(
                "the store can no longer tell what changed since revision {from}; it goes on from \
                 the present, which is {rev}"
            ));
            return Ok(());
        }
        names.iter().try_for_each(|found| self.bound(looks, NameNews::Bound, found))
    }

    /// The store does not tell which names ended with their owners.
    fn owners(&self, rev: Rev, lives: &[MemberRef]) -> Outcome<()> {
        if self.out.json {
            return self.out.value_line(&NameOwners::new(rev, lives));
        }
        let ids: Vec<_> = lives.iter().map(|life| life.id.to_string()).collect();
        let text = match ids.is_empty() {
            true => "no member owns a name: what members owned before is free".into(),
            false => format!("a name that is owned by none of these is free: {}", ids.join(", ")),
        };
        let rev = format!("{:>6}", rev.get());
        self.out.line(&self.out.paint(Tone::Faint, &format!("{rev}  {text}")))
    }

    fn bound(&mut self, looks: &NameLooks, what: NameNews, found: &Found) -> Outcome<()> {
        if !self.counts() {
            return Ok(());
        }
        let rev = found.rev();
        let name = found.as_str();
        if self.out.json {
            let binding = Some(BoundName::from(&looks.binding(found)));
            let change = NameChange { rev: rev.get(), name: name.to_owned(), what, binding };
            return self.out.value_line(&change);
        }
        let verb = match (what, found.owner()) {
            (NameNews::Changed, Some(owner)) => format!("changed, of {}", owner.id),
            (NameNews::Changed, None) => "changed, without an owner,".into(),
            (_, Some(owner)) => format!("bound to {}", owner.id),
            (_, None) => "bound without an owner".into(),
        };
        let at = found.value().endpoint().map(|at| format!(" at {at}")).unwrap_or_default();
        let text = format!("{verb} under token {}{at}", found.token());
        self.line(rev, name, Tone::Good, &text)
    }

    fn free(&mut self, name: &str, rev: Rev) -> Outcome<()> {
        if !self.counts() {
            return Ok(());
        }
        if self.out.json {
            let rev = rev.get();
            let name = name.to_owned();
            return self.out.value_line(&NameChange {
                rev,
                name,
                what: NameNews::Free,
                binding: None,
            });
        }
        self.line(rev, name, Tone::Faint, "is free")
    }

    /// Whether another line is wanted.
    fn counts(&mut self) -> bool {
        match &mut self.left {
            Some(0) => return false,
            Some(left) => *left -= 1,
            None => {}
        }
        true
    }

    fn line(&self, rev: Rev, name: &str, tone: Tone, text: &str) -> Outcome<()> {
        let rev = self.out.paint(Tone::Faint, &format!("{:>6}", rev.get()));
        let text = self.out.paint(tone, text);
        self.out.line(&format!("{rev}  {name}  {text}"))
    }
}
