//! `tenure run` and `tenure register`: a command that runs only while its election is led
//! here, or its name is owned here.

mod command;
mod hold;
mod lead;
mod stand;
mod take;
mod timings;
mod told;

use std::sync::Arc;
use std::time::Duration;

use tenure::measures::{Metric, Metrics};
use tenure::naming::{Name, Value};
use tenure::{Left, Namespace, Preset, Tenure};
use tenure_guard::{AuxiliaryEnd, Signals};
use tokio::sync::Notify;

use crate::args::{OnLost, RegisterArgs, RunArgs, WorkArgs};
use crate::context::{Context, election_name};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::say;

use hold::Wanted;
use lead::{Ended, Job};
use stand::Stood;
use timings::Timings;

/// The code that an auxiliary process of `tenure run` ends with.
pub(crate) fn auxiliary_exit(end: AuxiliaryEnd) -> Exit {
    match end {
        AuxiliaryEnd::Done => Exit::Ok,
        AuxiliaryEnd::Failed => Exit::System,
        AuxiliaryEnd::NotExecuted { program, error } => {
            let (exit, why) = command::explain(&program, &error);
            say(&why);
            exit
        }
    }
}

/// Tells that the term was renewed.
#[derive(Debug, Default)]
struct Renewals(Notify);

impl Metrics for Renewals {
    fn record(&self, _: &Namespace, metric: &Metric) {
        if let Metric::Renewed { .. } = metric {
            self.0.notify_one();
        }
    }
}

pub(crate) async fn run(context: &Context, args: &RunArgs) -> Outcome {
    election_name(&args.election)?;
    let election = args.election.clone();
    let priority = args.priority.or(context.run.priority);
    let metadata = command::metadata(&args.meta)?;
    let endpoints = args.endpoints.iter().chain(&context.run.endpoints).cloned().collect();
    let published = Published { metadata, endpoints };
    work(context, &args.work, Wanted::Election { election, priority }, published).await
}

/// The most bytes that are published with a name that a member owns.
const DATA_MOST: usize = 4096;

pub(crate) async fn register(context: &Context, args: &RegisterArgs) -> Outcome {
    let name = Name::new(&args.name).map_err(tenure::Error::from)?;
    let unusable = |bad| Failure::usage(format!("the value of {name}: {bad}"));
    let mut value = Value::empty();
    if let Some(endpoint) = &args.endpoint {
        value = value.with_endpoint(endpoint).map_err(unusable)?;
    }
    let pairs = args.pairs.iter().map(|(key, text)| (key.as_str(), text.as_str()));
    value = value.with_index(pairs).map_err(unusable)?;
    if let Some(data) = &args.data {
        // The store would refuse it each time it is asked.
        if data.len() > DATA_MOST {
            let bytes = data.len();
            let what = format!("--data has {bytes} bytes, and the limit is {DATA_MOST}");
            return Err(Failure::usage(format!("{what}; publish where to find the rest")));
        }
        value = value.with_data(data.clone().into_bytes()).map_err(unusable)?;
    }
    let published = Published { metadata: Vec::new(), endpoints: context.run.endpoints.clone() };
    work(context, &args.work, Wanted::Name { name, value }, published).await
}

/// What the member publishes.
struct Published {
    metadata: Vec<u8>,
    endpoints: Vec<String>,
}

/// Runs the command while what is wanted is held.
async fn work(context: &Context, args: &WorkArgs, wanted: Wanted, published: Published) -> Outcome {
    let Some(program) = args.command.first() else {
        return Err(Failure::usage("there is no command after --; name one"));
    };
    command::check(program)?;
    tenure_guard::check_processes()
        .map_err(|unsupported| Failure::new(Exit::System, unsupported.to_string()))?;
    let timings = timings_of(context, args)?;
    let mut signals = Signals::new().map_err(|error| Failure::system("taking signals", error))?;
    tenure_guard::adopt_orphans().map_err(|e| Failure::system("adopting orphaned processes", e))?;

    let renewals = Arc::new(Renewals::default());
    let connect = async |patience| {
        let mut builder = context
            .builder()
            .settings(timings.builder())
            .metadata(published.metadata.clone())
            .metrics(renewals.clone())
            .wait_for_store(patience);
        if let Some(id) = args.id.as_ref().or(context.run.id.as_ref()) {
            builder = builder.id(id);
        }
        for endpoint in &published.endpoints {
            builder = builder.endpoint(endpoint);
        }
        builder.connect().await
    };
    let began = tenure_guard::now();
    let tenure = tokio::select! {
        connected = patiently(connect, context, args) => connected?,
        signal = signals.ending() => return Ok(Exit::signal(signal)),
        () = stand::no_longer(args.no_wait) => {
            let store = context.shown_store();
            return Err(stand::no_answer(&format!("{store} could not be opened")));
        }
    };
    let waited = tenure_guard::now().since(began);
    let job = Job { context, args, wanted: &wanted, timings: &timings, renewals: &renewals.0 };
    let ended = stand_and_lead(&tenure, &job, &mut signals, waited).await;
    // The command is gone: leave in order. What cannot be confirmed ends with
    // the ttl.
    let hurry = args.no_wait && ended.is_err();
    let left = tokio::select! {
        left = tenure.shutdown() => left,
        () = stand::no_longer(hurry) => Ok(Left::Unconfirmed),
    };
    if !args.quiet && !matches!(left, Ok(Left::Confirmed | Left::Already)) {
        say("the store has not confirmed that this member left; it is gone after its ttl");
    }
    ended
}

/// Again and again if the user wants to stand by.
async fn stand_and_lead(
    tenure: &Tenure,
    job: &Job<'_>,
    signals: &mut Signals,
    mut waited: Duration,
) -> Outcome {
    loop {
        let hold = match stand::stand(tenure, job, signals, waited).await? {
            Stood::Holds(hold) => hold,
            Stood::Signalled(signal) => return Ok(Exit::signal(signal)),
        };
        match lead::lead(tenure, job, signals, hold).await? {
            Ended::Done(exit) => return Ok(exit),
            Ended::Lost if job.args.on_lost == OnLost::Exit => return Ok(Exit::Lost),
            Ended::Lost => waited = Duration::ZERO,
        }
    }
}

fn timings_of(context: &Context, args: &WorkArgs) -> Outcome<Timings> {
    let from_file = match &context.run.preset {
        Some(name) => {
            Some(<crate::args::PresetName as clap::ValueEnum>::from_str(name, false).map_err(
                |_| Failure::usage("run.preset in the config file: fast, normal or patient"),
            )?)
        }
        None => None,
    };
    let by_preset = |name| Preset::from(name).ttl();
    let ttl = args.ttl.or(args.preset.map(by_preset)).or(context.run.ttl);
    let ttl = ttl.or(from_file.map(by_preset)).unwrap_or(Preset::Normal.ttl());
    Timings::new(ttl, args.grace.or(context.run.grace))
}

/// Connects; a store that is away is waited for, for as long as the user will and no less.
async fn patiently(
    connect: impl AsyncFn(Duration) -> tenure::Result<Tenure>,
    context: &Context,
    args: &WorkArgs,
) -> Outcome<Tenure> {
    let began = tenure_guard::now();
    let failed = |error| match error {
        tenure::Error::StoreAway { last, .. } => Failure::connecting(*last, &context.shown_store()),
        error => Failure::connecting(error, &context.shown_store()),
    };
    let error = match connect(Duration::ZERO).await {
        Ok(tenure) => return Ok(tenure),
        Err(error) => error,
    };
    let waited = tenure_guard::now().since(began);
    let left = args.wait.map_or(Duration::MAX, |limit| limit.saturating_sub(waited));
    let is_final = args.no_wait || left.is_zero() || !error.may_pass();
    let failure = failed(error);
    if is_final {
        return Err(failure);
    }
    if !args.quiet {
        say(&format!("the store does not answer; trying again: {failure}"));
    }
    connect(left).await.map_err(failed)
}
