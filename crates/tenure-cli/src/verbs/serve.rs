//! `tenure serve`: HTTP, events, metrics and a dashboard.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sd_notify::NotifyState;
use tenure::SettingsBuilder;
use tenure_guard::Signals;
use tenure_server::{Address, Bind, Options, Server, ServerTls};

use crate::args::ServeArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::say;

/// Where the server listens if nothing is said.
const DEFAULT: &str = "127.0.0.1:7117";
/// How many connections there may be at most.
const CONNECTIONS: usize = 20_000;
/// How many files are left to the store, to tokens and to what else the process opens.
const OTHER_FILES: usize = 128;
/// As good as for ever, and no overflow.
const FOR_EVER: Duration = Duration::from_secs(365 * 86_400);

/// The server has a runtime of its own: what a slow client costs must not hold the others up.
pub(crate) async fn run(context: &Context, args: &ServeArgs) -> Outcome {
    let options = options(args)?;
    let builder = builder(context, args);
    let mut signals = Signals::new().map_err(|error| Failure::system("taking signals", error))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::system("starting a runtime", error))?;
    tell_systemd(&[NotifyState::Status("waiting for the store")]);
    let starting = runtime.spawn(Server::start(builder, options));
    let server = tokio::select! {
        started = starting => match started {
            Ok(Ok(server)) => server,
            Ok(Err(error)) => return Err(failure(context, error)),
            Err(error) => return Err(Failure::system("starting the server", error)),
        },
        signal = signals.ending() => return Ok(Exit::signal(signal)),
    };
    report(context, &server)?;
    tell_systemd(&[NotifyState::Status("waiting for the member to join")]);
    let ended = tokio::select! {
        () = server.joined() => None,
        signal = signals.ending() => Some(signal),
    };
    if ended.is_none() {
        let status = format!("serving {} as {}", context.shown_store(), server.member().id());
        tell_systemd(&[NotifyState::Ready, NotifyState::Status(&status)]);
    }
    let watched = runtime.spawn(keep_watchdog(server.member().clone()));
    if ended.is_none() {
        signals.ending().await;
    }
    say("asking the clients to stop; another signal ends the server at once");
    tell_systemd(&[NotifyState::Stopping, NotifyState::Status("the clients are asked to stop")]);
    let stopping = runtime.spawn(server.stop());
    let outcome = tokio::select! {
        stopped = stopping => match stopped {
            Ok(Ok(_)) => Ok(Exit::Ok),
            Ok(Err(error)) => Err(failure(context, error)),
            Err(error) => Err(Failure::system("stopping the server", error)),
        },
        signal = signals.ending() => Ok(Exit::signal(signal)),
    };
    watched.abort();
    runtime.shutdown_background();
    outcome
}

fn options(args: &ServeArgs) -> Outcome<Options> {
    let mut options = Options::new().max_connections(connections());
    let anywhere = [DEFAULT.to_owned()];
    let listen = if args.listen.is_empty() { &anywhere[..] } else { &args.listen };
    for address in listen {
        options = options.bind(bind(address)?);
    }
    if let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) {
        options = options.tls(ServerTls {
            certificate: certificate.clone(),
            key: key.clone(),
            client_ca: args.client_ca.clone(),
        });
    }
    options = args.viewer_tokens.iter().fold(options, Options::viewer_tokens);
    options = args.candidate_tokens.iter().fold(options, Options::candidate_tokens);
    options = args.operator_tokens.iter().fold(options, Options::operator_tokens);
    options = args.host.iter().fold(options, Options::host);
    options = args.stand.iter().fold(options, Options::stand_for);
    if let Some(most) = args.max_sessions {
        options = options.max_sessions(most);
    }
    Ok(match args.compat {
        Some(address) => options.compat(address),
        None => options,
    })
}

/// How many connections there may be: as many as the process may open files, but for those of
/// its store and what it reads.
fn connections() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    // The soft limit is for programs that go through all descriptors one by one.
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if setrlimit(Resource::Nofile, raised).is_ok() {
        limit.current = limit.maximum;
    }
    // None is no limit.
    let files =
        limit.current.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX));
    files.saturating_sub(OTHER_FILES).max(files / 2).min(CONNECTIONS)
}

fn bind(text: &str) -> Outcome<Bind> {
    if let Some(path) = text.strip_prefix("unix:") {
        return Ok(Bind::Unix(path.into()));
    }
    let bad = |_| {
        let what = format!("--listen {text:?} is neither an address with a port nor unix:/path");
        Failure::usage(format!("{what}; for example 127.0.0.1:7117, [::1]:7117, 0.0.0.0:7117"))
    };
    text.parse().map(Bind::Tcp).map_err(bad)
}

fn builder(context: &Context, args: &ServeArgs) -> tenure::Builder {
    let preset = args.preset.map(tenure::Preset::from);
    let timings = match (args.ttl, preset) {
        (Some(ttl), _) => SettingsBuilder::ttl(ttl),
        (None, preset) => SettingsBuilder::preset(preset.unwrap_or_default()),
    };
    let mut builder = context.builder().settings(timings);
    if let Some(id) = &args.id {
        builder = builder.id(id);
    }
    for endpoint in &args.endpoints {
        builder = builder.endpoint(endpoint);
    }
    builder.wait_for_store(args.wait.unwrap_or(FOR_EVER))
}

fn failure(context: &Context, error: tenure_server::Error) -> Failure {
    match error {
        tenure_server::Error::Tenure(error) => Failure::connecting(error, &context.shown_store()),
        tenure_server::Error::Bind { .. } => Failure::new(Exit::System, error.to_string()),
        other => Failure::usage(other.to_string()),
    }
}

/// Says where it listens.
fn report(context: &Context, server: &Server) -> Outcome<()> {
    let addresses: Vec<String> = server.addresses().iter().map(Address::to_string).collect();
    let out = context.output;
    if out.json {
        return out.value_line(&tenure_api::Serving {
            member: server.member().id().to_string(),
            namespace: context.namespace.clone(),
            store: context.shown_store(),
            addresses,
            compat: server.compat_address().map(Address::to_string),
        });
    }
    let id = server.member().id();
    out.line(&format!("{id} serves {} (namespace {})", context.shown_store(), context.namespace))?;
    for address in &addresses {
        out.line(&format!("  {address}/"))?;
    }
    if let Some(address) = server.compat_address() {
        out.line(&format!("  {address}/ (as older sidecars answered)"))?;
    }
    Ok(())
}

/// Without systemd there is no supervisor to tell.
fn tell_systemd(states: &[NotifyState<'_>]) {
    drop(sd_notify::notify(states));
}

/// Tells systemd that the member's own loop goes on: nothing else knows whether it does.
async fn keep_watchdog(member: tenure::Tenure) {
    let Some(within) = sd_notify::watchdog_enabled() else { return };
    let mut pause = tokio::time::interval(within / 3);
    loop {
        pause.tick().await;
        if member.answers().await {
            tell_systemd(&[NotifyState::Watchdog]);
        }
    }
}
