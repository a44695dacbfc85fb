//! Standing for the election until it is won, or until the user has waited
//! enough.

use std::time::Duration;

use tenure::{Leadership, Tenure};

use super::lead::Job;
use super::signals::Signals;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::say;
use crate::span;

/// After how long a user who waits is told for whom.
const PATIENCE: Duration = Duration::from_millis(400);
/// How often to look whether there is trouble to tell of.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) enum Stood {
    Elected(Leadership),
    Signalled(i32),
}

pub(crate) async fn stand(
    tenure: &Tenure,
    job: &Job<'_>,
    signals: &mut Signals,
    waited: Duration,
) -> Outcome<Stood> {
    tokio::select! {
        elected = elected(tenure, job, waited) => elected.map(Stood::Elected),
        signal = signals.ending() => Ok(Stood::Signalled(signal)),
        never = notices(tenure, job) => never,
    }
}

async fn elected(tenure: &Tenure, job: &Job<'_>, waited: Duration) -> Outcome<Leadership> {
    let args = job.args;
    let mut election = tenure.election(&args.election);
    if let Some(priority) = args.priority.or(job.context.run.priority) {
        election = election.priority(priority);
    }
    if args.no_wait {
        return match election.try_campaign().await? {
            Some(leadership) => Ok(leadership),
            None => Err(not_now(&election, &args.election).await),
        };
    }
    match args.wait {
        Some(limit) => match election.campaign_timeout(limit.saturating_sub(waited)).await {
            Err(tenure::Error::NotElected { because, .. }) => {
                let held = not_now(&election, &args.election).await;
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

/// Who holds it, or why else it cannot be had.
async fn not_now(election: &tenure::Election, name: &str) -> Failure {
    let why = match election.view().await {
        Ok(view) => match (&view.holder, &view.paused, &view.reserved) {
            (Some(holder), ..) => {
                format!("{name} is led by {} (term {})", holder.member.id, view.number)
            }
            (None, Some(_), _) => format!("{name} is paused; `tenure resume {name}` lifts it"),
            (None, None, Some(kept)) => format!("{name} is kept for {}", kept.member),
            (None, None, None) => format!("{name} was not free"),
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
    loop {
        let status = tenure.status();
        let failing = (status.failures > 0).then_some(status.last_error).flatten();
        let trouble = status.conflict.or(failing);
        let news = match trouble {
            Some(trouble) => format!("waiting for {}: {trouble}", job.args.election),
            None if told.is_none() => standing(tenure, &job.args.election).await,
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
        Ok(None) => "nobody leads yet".into(),
        Err(error) => error.to_string(),
    };
    format!("{} stands for {name}: {leader}", tenure.id())
}
