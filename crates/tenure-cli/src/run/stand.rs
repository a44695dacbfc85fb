//! Standing for the election, or waiting for the name, until it is had or the user has waited
//! enough.

use std::time::Duration;

use tenure::{Leadership, Tenure};
use tenure_guard::Signals;

use super::hold::{Hold, Wanted};
use super::lead::Job;
use super::take;
use tenure_api::span;

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::say;

/// After how long a user who waits is told for whom.
const PATIENCE: Duration = Duration::from_millis(400);
/// How often to look whether there is trouble to tell of.
const LOOK: Duration = Duration::from_secs(1);
/// How long each of opening the store, standing and leaving may take with
/// `--no-wait`. `docs/cli.md` states the sum of the first two.
const NO_WAIT: Duration = Duration::from_millis(1_500);

/// Ends when a program that is not to wait has waited enough.
pub(crate) async fn no_longer(no_wait: bool) {
    if no_wait {
        return tokio::time::sleep(NO_WAIT).await;
    }
    std::future::pending().await
}

/// The store does not answer, and the program is not to wait.
pub(crate) fn no_answer(what: &str) -> Failure {
    let within = span::show(NO_WAIT);
    let remedy = "look at what keeps it (`tenure doctor`), or let --wait say how long to try";
    Failure::new(Exit::Store, format!("{what} within {within}; {remedy}"))
}

pub(crate) enum Stood {
    Holds(Hold),
    Signalled(i32),
}

pub(crate) async fn stand(
    tenure: &Tenure,
    job: &Job<'_>,
    signals: &mut Signals,
    waited: Duration,
) -> Outcome<Stood> {
    tokio::select! {
        held = held(tenure, job, waited) => held.map(Stood::Holds),
        signal = signals.ending() => Ok(Stood::Signalled(signal)),
        never = notices(tenure, job) => never,
    }
}

async fn held(tenure: &Tenure, job: &Job<'_>, waited: Duration) -> Outcome<Hold> {
    match job.wanted {
        Wanted::Election { election, priority } => {
            elected(tenure, job, election, *priority, waited).await.map(Hold::Term)
        }
        Wanted::Name { name, value } => {
            take::taken(tenure, job, name, value, waited).await.map(Hold::Name)
        }
    }
}

async fn elected(
    tenure: &Tenure,
    job: &Job<'_>,
    name: &str,
    priority: Option<u16>,
    waited: Duration,
) -> Outcome<Leadership> {
    let args = job.args;
    let mut election = tenure.election(name);
    if let Some(priority) = priority {
        election = election.priority(priority);
    }
    let never = priority == Some(0);
    if args.no_wait {
        let what = || format!("the store gave no answer about {name}");
        let answer = tokio::select! {
            answer = election.try_campaign() => answer,
            () = no_longer(true) => return Err(failing(tenure).unwrap_or_else(|| no_answer(&what()))),
        };
        return match answer {
            Ok(attempt) => match attempt.leadership() {
                Some(leadership) => Ok(leadership),
                None => Err(not_now(&election, name, never).await),
            },
            Err(error) => Err(failing(tenure).unwrap_or_else(|| error.into())),
        };
    }
    match args.wait {
        Some(limit) => match election.campaign_timeout(limit.saturating_sub(waited)).await {
            Err(tenure::Error::NotElected { because, .. }) => {
                if let Some(failure) = failing(tenure) {
                    return Err(failure);
                }
                let held = not_now(&election, name, never).await;
                let because = because.map(|b| format!(": {b}")).unwrap_or_default();
                let limit = span::show(limit);
                let what = format!("not elected within {limit}{because}; {held}");
                Err(Failure::new(Exit::NotInTime, what))
            }
            answer => Ok(answer?),
        },
        None => Ok(election.campaign().await?),
    }
}

/// What the store fails with, if it does: then that is why this member was not elected.
pub(crate) fn failing(tenure: &Tenure) -> Option<Failure> {
    let status = tenure.status();
    let error = (status.failures > 0 && status.conflict.is_none()).then_some(status.last_error);
    error.flatten().map(|error| Failure::new(Exit::Store, error))
}

/// Who holds it, or why else it cannot be had. With priority 0 it `never` can.
async fn not_now(election: &tenure::Election, name: &str, never: bool) -> Failure {
    let why = match election.view().await {
        Ok(view) => match (&view.holder, &view.paused, &view.reserved) {
            (Some(holder), ..) => {
                format!("{name} is led by {} (term {})", holder.member.id, view.number)
            }
            (None, Some(_), _) => format!("{name} is paused; `tenure resume {name}` lifts it"),
            (None, None, Some(kept)) => format!("{name} is kept for {}", kept.member),
            (None, None, None) => match &view.held_up {
                Some(held_up) => format!("{name} is held up: {held_up}"),
                None if never => "a candidate of priority 0 never leads".into(),
                None => format!("{name} was not free"),
            },
        },
        Err(error) => format!("{name} could not be looked at: {error}"),
    };
    Failure::new(Exit::NotInTime, why)
}

/// Says on the side what the user waits for, and what is wrong. Never returns.
async fn notices(tenure: &Tenure, job: &Job<'_>) -> Outcome<Stood> {
    if job.args.quiet {
        return std::future::pending().await;
    }
    tokio::time::sleep(PATIENCE).await;
    let mut told: Option<String> = None;
    let mut life = tenure.status().member;
    loop {
        let status = tenure.status();
        if let Some(ended) = life.filter(|life| status.member.as_ref() != Some(life)) {
            say(&format!("the store has ended this member ({}); it joins anew", ended.id));
        }
        life = status.member;
        let failing = (status.failures > 0).then_some(status.last_error).flatten();
        let held_up =
            status.held_up.into_iter().find(|(name, _)| name.as_str() == job.wanted.shown());
        let held_up = held_up.map(|(_, by)| by.to_string());
        let trouble = status.conflict.or(failing).or(held_up);
        let news = match trouble {
            Some(trouble) => format!("waiting for {}: {trouble}", job.wanted.shown()),
            None if told.is_none() => match job.wanted {
                Wanted::Election { election, .. } => standing(tenure, election).await,
                Wanted::Name { name, .. } => take::waiting(tenure, name).await,
            },
            None => told.clone().unwrap_or_default(),
        };
        if told.as_ref() != Some(&news) {
            say(&news);
            told = Some(news);
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn standing(tenure: &Tenure, name: &str) -> String {
    let leader = match tenure.election(name).leader().await {
        Ok(Some(holder)) => format!("{} leads", holder.member.id),
        Ok(None) => "no member leads yet".into(),
        Err(error) => error.to_string(),
    };
    format!("{} stands for {name}: {leader}", tenure.id())
}
