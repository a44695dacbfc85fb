//! `tenure top`: everything on one screen.

mod app;
mod draw;

use std::io::IsTerminal;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{Event, KeyEvent, KeyEventKind, read};
use tenure::Operator;
use tenure::journal::{Entry, JournalStream, Journalled, Seq};
use tenure::views::Amended;
use tenure_registry::NameLooks;
use tokio::sync::mpsc;

use crate::args::TopArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::show::moment;

use app::{App, Asked, Wish};

/// How often the bars move.
const FRAME: Duration = Duration::from_millis(250);
/// How much of the past the journal begins with.
const PAST: usize = 100;

pub(crate) async fn run(context: &Context, args: &TopArgs) -> Outcome {
    if context.output.json {
        let what = "top is for people and has no JSON";
        return Err(Failure::usage(format!("{what}; use `tenure watch --json`")));
    }
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        let what = "top needs a terminal on stdin and stdout";
        return Err(Failure::usage(format!("{what}; use `tenure status` or `tenure watch`")));
    }
    let mut seen = Seen { operator: context.watch().await?, names: None };
    let mut app = App::new(context.shown_store(), context.namespace.clone(), args.filter.clone());
    // The first look before the screen changes: an error is then said plainly.
    seen.look(&mut app).await?;
    let from = past(&seen.operator, &mut app).await?;
    let journal = seen.operator.follow(Some(from))?;
    let mut terminal =
        ratatui::try_init().map_err(|error| Failure::system("taking the terminal", error))?;
    let ended = watch(context, &mut seen, &mut app, &mut terminal, journal, args.every).await;
    ratatui::restore();
    ended
}

async fn watch(
    context: &Context,
    seen: &mut Seen,
    app: &mut App,
    terminal: &mut DefaultTerminal,
    mut journal: JournalStream,
    every: Duration,
) -> Outcome {
    let mut events = terminal_events();
    let mut frame = tokio::time::interval(FRAME);
    let mut tick = tokio::time::interval(every.max(FRAME));
    loop {
        let drawn = terminal.draw(|frame| draw::draw(frame, app));
        drawn.map_err(|error| Failure::system("drawing the screen", error))?;
        tokio::select! {
            key = events.recv() => match key {
                None => return Ok(Exit::Ok),
                Some(None) => {}
                Some(Some(key)) => match app.key(key) {
                    Asked::Quit => return Ok(Exit::Ok),
                    Asked::Do(wish) => {
                        app.message = fulfil(context, &wish).await;
                        seen.refresh(app).await;
                    }
                    Asked::Names => {
                        seen.count_names(app);
                        seen.refresh(app).await;
                    }
                    Asked::Nothing => {}
                },
            },
            news = journal.next() => {
                match news {
                    Some(Journalled::Entries(entries)) => {
                        entries.iter().for_each(|entry| app.log(line(entry)));
                    }
                    Some(Journalled::Interrupted(error)) => app.message = error,
                    Some(Journalled::Restored) => app.message = "the store answers again".into(),
                    Some(_) => {}
                    None => return Err(Failure::new(Exit::Store, "the watch was shut down")),
                }
                seen.refresh(app).await;
            }
            _ = tick.tick() => seen.refresh(app).await,
            _ = frame.tick() => {}
        }
    }
}

/// What is looked at.
struct Seen {
    operator: Operator,
    /// Names are counted once it is asked for: all are read at first, and after that what
    /// changed.
    names: Option<NameLooks>,
}

impl Seen {
    async fn look(&mut self, app: &mut App) -> Outcome<()> {
        let elections = self.operator.elections().await?;
        app.take(elections, self.operator.members().await?);
        if let Some(names) = &mut self.names {
            names.look().await?;
            app.names = Some(names.count());
        }
        Ok(())
    }

    /// Looks again; a store that is away is said so, and what was known stays.
    async fn refresh(&mut self, app: &mut App) {
        if let Err(failure) = self.look(app).await {
            app.message = failure.to_string();
        }
    }

    /// Begins or ends to count names.
    fn count_names(&mut self, app: &mut App) {
        app.names = None;
        if self.names.take().is_none() {
            match NameLooks::new(&self.operator, "") {
                Ok(names) => self.names = Some(names),
                Err(error) => app.message = error.to_string(),
            }
        }
    }
}

async fn past(operator: &Operator, app: &mut App) -> Outcome<Seq> {
    let (seq, entries) = operator.journal(PAST).await?;
    entries.iter().for_each(|entry| app.log(line(entry)));
    Ok(seq)
}

fn line(entry: &Entry) -> String {
    let election = entry.what.election().map(|e| format!("{e}: ")).unwrap_or_default();
    let what = tenure_api::Happening::from(&entry.what);
    format!("{:>6} {} {election}{what}", entry.seq, moment(entry.at))
}

/// Does what was confirmed, and says what came of it.
async fn fulfil(context: &Context, wish: &Wish) -> String {
    // Looking needs no right to write, and steering does.
    let operator = match context.operate().await {
        Ok(tenure) => tenure,
        Err(failure) => return failure.to_string(),
    };
    let (name, done) = match wish {
        Wish::Pause(name) => (name, operator.election(name).pause("from tenure top").await),
        Wish::Resume(name) => (name, operator.election(name).resume().await),
        Wish::Resign(name, number, _) => {
            let election = operator.election(name);
            (name, election.ask_term_to_step_down(*number, None, "from tenure top").await)
        }
    };
    match (done, wish) {
        (Ok(Amended::Done { .. }), Wish::Pause(_)) => format!("{name} is paused"),
        (Ok(Amended::Done { .. }), Wish::Resume(_)) => format!("{name} is no longer paused"),
        (Ok(Amended::Done { .. }), Wish::Resign(_, _, id)) => {
            format!("{id} is asked to step down from {name}")
        }
        (Ok(Amended::Unchanged), _) => format!("{name} was so already"),
        (Ok(_), _) => format!("{name} has changed meanwhile: look again"),
        (Err(error), _) => error.to_string(),
    }
}

/// Keys, and `None` for anything else that needs a new picture. The thread ends
/// with the process: reading a terminal cannot be interrupted.
fn terminal_events() -> mpsc::UnboundedReceiver<Option<KeyEvent>> {
    let (give, take) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        while let Ok(event) = read() {
            let event = match event {
                Event::Key(key) if key.kind != KeyEventKind::Release => Some(key),
                Event::Key(_) => continue,
                _ => None,
            };
            if give.send(event).is_err() {
                return;
            }
        }
    });
    take
}
