//! How `top` looks.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table, TableState};
use tenure::ElectionView;
use tenure::views::shown;

use super::app::{App, Mode, Wish};
use tenure_api::span;

use crate::show::{leader_cell, states};

/// How wide the bar of remaining trust is.
const BAR: usize = 12;

/// A screen with less room than this shows the elections alone.
const ROOM: (u16, u16) = (60, 16);

pub(super) fn draw(frame: &mut Frame<'_>, app: &App) {
    if frame.area().width < ROOM.0 || frame.area().height < ROOM.1 {
        return draw_small(frame, app);
    }
    let elections = u16::try_from(app.elections().count()).unwrap_or(u16::MAX).saturating_add(3);
    let members = u16::try_from(app.members().count()).unwrap_or(u16::MAX).saturating_add(3);
    let most = frame.area().height / 3;
    let rows = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(elections.min(most.max(5))),
        Constraint::Length(members.min(most.max(5))),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .split(frame.area());
    header(frame, app, rows[0]);
    draw_elections(frame, app, rows[1]);
    draw_members(frame, app, rows[2]);
    draw_journal(frame, app, rows[3]);
    footer(frame, app, rows[4]);
}

/// One line for each election: what it is called, who leads, and for how long.
fn draw_small(frame: &mut Frame<'_>, app: &App) {
    let rows = Layout::vertical([Constraint::Min(1), Constraint::Length(1)]).split(frame.area());
    let room = usize::from(rows[0].height);
    let from = app.selected.saturating_sub(room.saturating_sub(1));
    let line = |(at, view): (usize, &ElectionView)| {
        let (_, leader) = leader_cell(view);
        let left = view.holder.as_ref().map(|h| span::roughly(app.left(h.remaining)));
        let left = left.map(|left| format!(" {left}")).unwrap_or_default();
        let text = format!("{}: {leader}{left}", view.election);
        let style = match at == app.selected {
            true => Style::new().add_modifier(Modifier::REVERSED),
            false => Style::new(),
        };
        Line::styled(shown(&text).into_owned(), style)
    };
    let mut lines: Vec<Line<'_>> =
        app.elections().enumerate().skip(from).take(room).map(line).collect();
    if lines.is_empty() {
        lines.push(Line::raw("no elections"));
    }
    frame.render_widget(Paragraph::new(lines), rows[0]);
    footer(frame, app, rows[1]);
}

fn header(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let filter = match (&app.mode, app.filter.is_empty()) {
        (Mode::Filtering, _) => format!("  filter: {}_", app.filter),
        (_, false) => format!("  filter: {}", app.filter),
        _ => String::new(),
    };
    let names = app.names.map(|count| format!("  {count} names")).unwrap_or_default();
    let rest = format!("  {}  namespace {}{names}{filter}", app.store, app.namespace);
    let rest = shown(&rest).into_owned();
    let line = Line::from(vec![Span::styled("tenure top", bold), Span::raw(rest)]);
    frame.render_widget(Paragraph::new(line), area);
}

fn headings<const N: usize>(names: [&'static str; N]) -> Row<'static> {
    Row::new(names).style(Style::new().add_modifier(Modifier::DIM))
}

fn draw_elections(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let rows = app.elections().map(|view| election_row(app, view));
    let widths = [
        Constraint::Fill(2),
        Constraint::Fill(2),
        Constraint::Length(8),
        Constraint::Length(22),
        Constraint::Length(7),
        Constraint::Fill(1),
    ];
    let table = Table::new(rows, widths)
        .header(headings(["ELECTION", "LEADER", "TERM", "REMAINING", "WAITING", "STATE"]))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .block(Block::bordered().title(" elections "));
    let mut state = TableState::new().with_selected(Some(app.selected));
    frame.render_stateful_widget(table, area, &mut state);
}

fn election_row<'a>(app: &App, view: &'a ElectionView) -> Row<'a> {
    let (_, leader) = leader_cell(view);
    let color = if view.holder.is_some() { Color::Green } else { Color::Yellow };
    let remaining = match &view.holder {
        Some(holder) => bar(app.left(holder.remaining), holder.ttl),
        None => Line::default(),
    };
    let held = usize::from(
        view.holder.as_ref().is_some_and(|h| view.candidates.iter().any(|c| c.member == h.member)),
    );
    let waiting = view.candidates.len() - held;
    Row::new([
        Cell::from(shown(view.election.as_str())),
        Cell::from(shown(&leader).into_owned()).style(Style::new().fg(color)),
        Cell::from(view.number.to_string()),
        Cell::from(remaining),
        Cell::from(waiting.to_string()),
        Cell::from(states(view)).style(Style::new().fg(Color::Yellow)),
    ])
}

/// What is left of a ttl, as a bar and as a number.
fn bar(left: Duration, ttl: Duration) -> Line<'static> {
    let part = left.as_secs_f64() / ttl.as_secs_f64().max(f64::MIN_POSITIVE);
    let eighths = (0..=BAR * 8).rev().find(|n| *n as f64 <= part * (BAR * 8) as f64).unwrap_or(0);
    let full = eighths / 8;
    let rest = eighths % 8;
    let mut text: String = "█".repeat(full);
    text.extend([' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'].get(rest).filter(|_| rest > 0));
    let pad = BAR.saturating_sub(text.chars().count());
    text.extend(std::iter::repeat_n('░', pad));
    let color = match part {
        p if p > 0.5 => Color::Green,
        p if p > 0.25 => Color::Yellow,
        _ => Color::Red,
    };
    let number = format!(" {}", span::roughly(left));
    Line::from(vec![Span::styled(text, Style::new().fg(color)), Span::raw(number)])
}

fn draw_members(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let rows = app.members().map(|view| {
        Row::new([
            Cell::from(shown(view.member.id.as_str())),
            Cell::from(view.holds.to_string()),
            Cell::from(bar(app.left(view.remaining), view.ttl)),
            Cell::from(shown(&view.profile.endpoints().join(", ")).into_owned()),
        ])
    });
    let widths =
        [Constraint::Fill(2), Constraint::Length(6), Constraint::Length(22), Constraint::Fill(2)];
    let table = Table::new(rows, widths)
        .header(headings(["MEMBER", "HOLDS", "REMAINING", "ENDPOINTS"]))
        .block(Block::bordered().title(" members "));
    frame.render_widget(table, area);
}

fn draw_journal(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let room = usize::from(area.height.saturating_sub(2));
    let end = app.journal.len().saturating_sub(app.scrolled);
    let from = end.saturating_sub(room);
    let lines = app.journal.iter().skip(from).take(end - from);
    let lines: Vec<Line<'_>> = lines.map(|line| Line::raw(shown(line))).collect();
    let block = Block::bordered().title(" journal ");
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn footer(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let warn = Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD);
    let line = match &app.mode {
        Mode::Filtering => Line::raw("type to filter   enter keep   esc clear"),
        Mode::Confirming(wish) => {
            Line::styled(shown(&format!("{} (y/n)", question(wish))).into_owned(), warn)
        }
        Mode::Looking if !app.message.is_empty() => Line::raw(shown(&app.message)),
        Mode::Looking => Line::raw(
            "↑↓ select  / filter  p pause/resume  r resign  n names  PgUp/PgDn journal  q quit",
        ),
    };
    frame.render_widget(Paragraph::new(line), area);
}

fn question(wish: &Wish) -> String {
    match wish {
        Wish::Pause(name) => format!("pause {name}, so that no member is newly elected?"),
        Wish::Resume(name) => format!("resume {name}?"),
        Wish::Resign(name, number, id) => {
            format!("ask {id} to give up term {number} of {name}?")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_as_full_as_the_ttl() {
        let text = |left| bar(Duration::from_secs(left), Duration::from_secs(10)).to_string();
        assert_eq!(text(10), "████████████ 10s");
        assert_eq!(text(5), "██████░░░░░░ 5s");
        assert_eq!(text(0), "░░░░░░░░░░░░ 0s");
        assert_eq!(bar(Duration::ZERO, Duration::ZERO).to_string(), "░░░░░░░░░░░░ 0s");
    }
}
