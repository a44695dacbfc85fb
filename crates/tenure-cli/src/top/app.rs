//! What `top` shows and what its keys mean. Pure: fed snapshots, journal lines
//! and keys, it says what is to be done.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tenure::{ElectionName, ElectionView, MemberView, TermNumber};

/// How many journal lines are kept to scroll through.
const KEPT: usize = 500;

/// Everything on the screen.
#[derive(Debug)]
pub(super) struct App {
    pub(super) store: String,
    pub(super) namespace: String,
    pub(super) filter: String,
    pub(super) mode: Mode,
    /// What the last request came to, or what is wrong.
    pub(super) message: String,
    pub(super) selected: usize,
    /// How many journal lines back the view is.
    pub(super) scrolled: usize,
    pub(super) journal: VecDeque<String>,
    /// How many names are bound, once that was asked for.
    pub(super) names: Option<usize>,
    elections: Vec<ElectionView>,
    members: Vec<MemberView>,
    taken: Instant,
}

/// What the keys go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Looking,
    /// Typing a filter.
    Filtering,
    /// Asking whether it is meant.
    Confirming(Wish),
}

/// What the user wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Pause(ElectionName),
    Resume(ElectionName),
    /// Of exactly the term that was on the screen.
    Resign(ElectionName, TermNumber, String),
}

/// What a key came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Nothing,
    Quit,
    Do(Wish),
    /// To count names from now on, or no more.
    Names,
}

impl App {
    pub(super) fn new(store: String, namespace: String, filter: String) -> Self {
        Self {
            store,
            namespace,
            filter,
            mode: Mode::Looking,
            message: String::new(),
            selected: 0,
            scrolled: 0,
            journal: VecDeque::new(),
            names: None,
            elections: Vec::new(),
            members: Vec::new(),
            taken: Instant::now(),
        }
    }

    pub(super) fn take(&mut self, mut elections: Vec<ElectionView>, mut members: Vec<MemberView>) {
        // The selection stays with its election, wherever that moves.
        let name = self.chosen().map(|view| view.election.clone());
        elections.sort_by(|a, b| a.election.cmp(&b.election));
        members.sort_by(|a, b| a.member.cmp(&b.member));
        (self.elections, self.members, self.taken) = (elections, members, Instant::now());
        let at = name.and_then(|name| self.elections().position(|view| view.election == name));
        let last = self.elections().count().saturating_sub(1);
        self.selected = at.unwrap_or(self.selected).min(last);
    }

    pub(super) fn log(&mut self, line: String) {
        self.journal.push_back(line);
        if self.journal.len() > KEPT {
            self.journal.pop_front();
        }
    }

    fn wanted(&self, name: &str) -> bool {
        name.to_lowercase().contains(&self.filter.to_lowercase())
    }

    /// The elections that the filter lets through: by name or by leader.
    pub(super) fn elections(&self) -> impl Iterator<Item = &ElectionView> {
        self.elections.iter().filter(|view| {
            let leader = view.holder.as_ref().map(|holder| holder.member.id.as_str());
            self.wanted(view.election.as_str()) || leader.is_some_and(|id| self.wanted(id))
        })
    }

    pub(super) fn members(&self) -> impl Iterator<Item = &MemberView> {
        self.members
            .iter()
            .filter(|view| self.filter.is_empty() || self.wanted(view.member.id.as_str()))
    }

    /// What is left now of something that was `then` when it was looked at.
    pub(super) fn left(&self, then: Duration) -> Duration {
        then.saturating_sub(self.taken.elapsed())
    }

    fn chosen(&self) -> Option<&ElectionView> {
        self.elections().nth(self.selected)
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Asked {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('c') {
            return Asked::Quit;
        }
        match self.mode.clone() {
            Mode::Looking => self.look(key.code),
            Mode::Filtering => {
                self.type_filter(key.code);
                Asked::Nothing
            }
            Mode::Confirming(wish) => {
                self.mode = Mode::Looking;
                if matches!(key.code, KeyCode::Char('y' | 'Y')) {
                    return Asked::Do(wish);
                }
                self.message = "not done".into();
                Asked::Nothing
            }
        }
    }

    fn look(&mut self, code: KeyCode) -> Asked {
        let last = self.elections().count().saturating_sub(1);
        match code {
            KeyCode::Char('q') | KeyCode::Esc => return Asked::Quit,
            KeyCode::Down | KeyCode::Char('j') => self.selected = (self.selected + 1).min(last),
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::PageUp => {
                self.scrolled = (self.scrolled + 5).min(self.journal.len().saturating_sub(1));
            }
            KeyCode::PageDown => self.scrolled = self.scrolled.saturating_sub(5),
            KeyCode::Char('/') => self.mode = Mode::Filtering,
            KeyCode::Char('p') => {
                if let Some(view) = self.chosen() {
                    let name = view.election.clone();
                    let paused = view.paused.is_some();
                    let wish = if paused { Wish::Resume(name) } else { Wish::Pause(name) };
                    self.mode = Mode::Confirming(wish);
                }
            }
            KeyCode::Char('r') => self.ask_to_resign(),
            KeyCode::Char('n') => return Asked::Names,
            _ => {}
        }
        Asked::Nothing
    }

    fn ask_to_resign(&mut self) {
        let Some(view) = self.chosen() else { return };
        match &view.holder {
            Some(holder) => {
                let id = holder.member.id.to_string();
                let wish = Wish::Resign(view.election.clone(), view.number, id);
                self.mode = Mode::Confirming(wish);
            }
            None => self.message = format!("{} has no leader", view.election),
        }
    }

    fn type_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.mode = Mode::Looking,
            KeyCode::Esc => {
                self.filter.clear();
                self.mode = Mode::Looking;
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(c) if !c.is_control() => self.filter.push(c),
            _ => {}
        }
        self.selected = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(names: &[&str]) -> App {
        let mut app = App::new("memory:".into(), "default".into(), String::new());
        let views = names.iter().map(|n| ElectionView::vacant(ElectionName::new(n).unwrap()));
        app.take(views.collect(), Vec::new());
        app
    }

    fn press(app: &mut App, keys: &str) -> Asked {
        let mut asked = Asked::Nothing;
        for c in keys.chars() {
            let code = match c {
                '\n' => KeyCode::Enter,
                '\u{1b}' => KeyCode::Esc,
                c => KeyCode::Char(c),
            };
            asked = app.key(KeyEvent::new(code, KeyModifiers::NONE));
        }
        asked
    }

    #[test]
    fn the_selection_stays_with_its_election() {
        let mut app = app(&["b", "c"]);
        press(&mut app, "j");
        let views = ["a", "b", "c"].map(|n| ElectionView::vacant(ElectionName::new(n).unwrap()));
        app.take(views.to_vec(), Vec::new());
        assert_eq!(app.chosen().unwrap().election.as_str(), "c");
        press(&mut app, "jjjj");
        assert_eq!(app.selected, 2);
        app.take(Vec::new(), Vec::new());
        assert!(app.chosen().is_none());
    }

    #[test]
    fn filtering_types_letters_that_are_keys_elsewhere() {
        let mut app = app(&["queue", "nightly"]);
        assert_eq!(press(&mut app, "/q"), Asked::Nothing);
        assert_eq!(app.elections().count(), 1);
        press(&mut app, "\n");
        assert_eq!(press(&mut app, "q"), Asked::Quit);
    }

    /// Nothing is steered without a yes.
    #[test]
    fn steering_is_confirmed() {
        let mut app = app(&["nightly"]);
        assert_eq!(press(&mut app, "p"), Asked::Nothing);
        assert_eq!(press(&mut app, "n"), Asked::Nothing);
        assert_eq!(app.mode, Mode::Looking);
        let name = ElectionName::new("nightly").unwrap();
        assert_eq!(press(&mut app, "py"), Asked::Do(Wish::Pause(name)));
        press(&mut app, "r");
        assert!(app.message.contains("nightly has no leader"));
    }
}
