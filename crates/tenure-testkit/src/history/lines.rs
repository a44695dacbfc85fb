//! A history as lines of text, so that processes that are killed leave theirs behind.

use std::collections::BTreeMap;

use super::{Call, Told};

impl Call {
    /// The line for a call of this name. The name and who made it have no spaces.
    #[must_use]
    pub fn line(&self, name: &str) -> String {
        let told = match &self.told {
            Told::Took(token) => format!("took {token}"),
            Told::TookPerhaps => "perhaps".to_owned(),
            Told::Dropped(token) => format!("dropped {token}"),
            Told::Held(token) => format!("held {token}"),
            Told::Found(token, owner) => format!("found {token} {owner}"),
            Told::Refused(token, owner) => format!("refused {token} {owner}"),
            Told::FoundNothing => "nothing".to_owned(),
        };
        format!("{name} {} {} {} {told}\n", self.by, self.from, self.until)
    }
}

/// The line that is written before a take is sent. Until the same caller's answer to it
/// follows, [`parse`] counts it as a take that was not answered: a process that is killed meanwhile
/// writes nothing more.
#[must_use]
pub fn unanswered(name: &str, by: &str, from: u64) -> String {
    Call { by: by.to_owned(), from, until: u64::MAX, told: Told::TookPerhaps }.line(name)
}

/// Adds the calls in these lines, by name. A line that was cut short is left out. An answer
/// to a take, which begins at the same moment, takes the place of the line before it.
pub fn parse(text: &str, into: &mut BTreeMap<String, Vec<Call>>) {
    for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        let Some((name, call)) = read(line) else { continue };
        let calls = into.entry(name.to_owned()).or_default();
        let asked = |other: &Call| {
            other.told == Told::TookPerhaps && other.by == call.by && other.from == call.from
        };
        match calls.iter().rposition(asked) {
            Some(place) => calls[place] = call,
            None => calls.push(call),
        }
    }
}

fn read(line: &str) -> Option<(&str, Call)> {
    let words: Vec<_> = line.split(' ').collect();
    let [name, by, from, until, told @ ..] = &words[..] else { return None };
    let told = match told {
        ["took", token] => Told::Took(token.parse().ok()?),
        ["perhaps"] => Told::TookPerhaps,
        ["dropped", token] => Told::Dropped(token.parse().ok()?),
        ["held", token] => Told::Held(token.parse().ok()?),
        ["found", token, owner] => Told::Found(token.parse().ok()?, (*owner).to_owned()),
        ["refused", token, owner] => Told::Refused(token.parse().ok()?, (*owner).to_owned()),
        ["nothing"] => Told::FoundNothing,
        _ => return None,
    };
    let from = from.parse().ok()?;
    let until = until.parse().ok()?;
    Some((*name, Call { by: (*by).to_owned(), from, until, told }))
}
