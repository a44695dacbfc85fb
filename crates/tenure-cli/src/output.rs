//! How answers are written: for people, aligned and perhaps coloured, or as
//! JSON.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use serde::Serialize;
use tenure::views::{is_hidden, shown};
use unicode_width::UnicodeWidthStr;

use crate::args::Color;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};

/// Where and how to write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) json: bool,
    color: bool,
    streams: bool,
}

/// How long standard error may take no more, before what is said on the side is dropped.
const STUCK: Duration = Duration::from_millis(100);

/// What a piece of text means, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    /// Headings, and what matters less.
    Faint,
    Strong,
    Good,
    Warn,
    Bad,
}

impl Tone {
    const fn code(self) -> &'static str {
        match self {
            Tone::Plain => "",
            Tone::Faint => "\x1b[2m",
            Tone::Strong => "\x1b[1m",
            Tone::Good => "\x1b[32m",
            Tone::Warn => "\x1b[33m",
            Tone::Bad => "\x1b[31m",
        }
    }
}

impl Output {
    pub(crate) fn new(json: bool, color: Color) -> Self {
        // https://no-color.org: present and not empty.
        let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let color = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => !refused && !dumb && std::io::stdout().is_terminal(),
        };
        Self { json, color, streams: false }
    }

    /// The same for lines that come for as long as there is a reader.
    pub(crate) fn streaming(self) -> Self {
        Self { streams: true, ..self }
    }

    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        if !self.color || tone == Tone::Plain || text.is_empty() {
            return text.to_owned();
        }
        format!("{}{text}\x1b[0m", tone.code())
    }

    /// One line. What strangers chose to be called is in it: see [`visible`].
    ///
    /// A reader that is gone ends a stream, and changes no answer: of many verbs the exit
    /// code is the answer, read or not.
    pub(crate) fn line(self, text: &str) -> Outcome<()> {
        let mut out = std::io::stdout().lock();
        let written = writeln!(out, "{}", visible(text)).and_then(|()| out.flush());
        match written {
            Err(error) if self.streams => Err(error.into()),
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(unwritten(&error)),
            _ => Ok(()),
        }
    }

    /// One JSON value: indented for itself, on one line in a stream.
    pub(crate) fn value(self, value: &impl Serialize) -> Outcome<()> {
        let text = serde_json::to_string_pretty(value);
        self.line(&in_json(&text.map_err(std::io::Error::from)?))
    }

    pub(crate) fn value_line(self, value: &impl Serialize) -> Outcome<()> {
        let text = serde_json::to_string(value);
        self.line(&in_json(&text.map_err(std::io::Error::from)?))
    }

    pub(crate) fn table(self, table: &Table) -> Outcome<()> {
        for line in table.lines(self) {
            self.line(&line)?;
        }
        Ok(())
    }
}

/// A line with everything written out in it that cannot be seen or would change
/// how the rest is shown. Control characters stay: of these, a line has only our
/// own colours, since names may not have any.
fn visible(line: &str) -> Cow<'_, str> {
    let hidden = |c: char| is_hidden(c) && !c.is_control();
    if !line.contains(hidden) {
        return line.into();
    }
    let write = |c: char| match hidden(c) {
        true => c.escape_unicode().to_string(),
        false => c.to_string(),
    };
    line.chars().map(write).collect::<String>().into()
}

/// The same for JSON, in JSON's own way: a parser gives the text back as
/// it was. Outside of texts JSON has none of these characters.
fn in_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if is_hidden(c) && !c.is_control() {
            for unit in c.encode_utf16(&mut [0; 2]) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            text.push(c);
        }
    }
    text
}

/// Something on the side: progress, warnings. It goes to stderr, so that a pipe
/// gets the answer alone.
pub(crate) fn say(text: &str) {
    let lines: Vec<_> = text.lines().map(shown).collect();
    let said = format!("tenure: {}\n", lines.join("\n"));
    let mut left = said.as_bytes();
    // A pipe whose reader has stopped takes nothing, for as long as it likes. To wait for it
    // would keep a leader from hearing that it has to stop. Of a pipe that is ready there is
    // room for a part at least, and a part does not block.
    while !left.is_empty() && takes_more() {
        let part = left.len().min(PART);
        match std::io::stderr().lock().write(&left[..part]) {
            Ok(written) if written > 0 => left = &left[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // If even stderr is gone no reader is left.
            _ => return,
        }
    }
}

/// The most that a pipe which is ready takes at once, whatever is in it (`PIPE_BUF` is more).
const PART: usize = 512;

/// Whether standard error takes more, perhaps after a short while.
fn takes_more() -> bool {
    let stderr = rustix::stdio::stderr();
    let mut fds = [PollFd::new(&stderr, PollFlags::OUT)];
    let limit = Timespec::try_from(STUCK).ok();
    !matches!(poll(&mut fds, limit.as_ref()), Ok(0))
}

/// What could not be told was done all the same.
fn unwritten(error: &std::io::Error) -> Failure {
    let what = format!("the answer could not be written: {error}");
    Failure::new(Exit::System, format!("{what}; a change that was asked for has been made"))
}

/// Rows under headings, aligned by what they look like, not by bytes.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<(Tone, String)>>,
}

impl Table {
    pub(crate) fn new(headings: &[&str]) -> Self {
        let head = headings.iter().map(|h| (Tone::Faint, h.to_uppercase())).collect();
        Self { rows: vec![head] }
    }

    /// Names on the left, values on the right, no headings.
    pub(crate) fn facts() -> Self {
        Self::default()
    }

    pub(crate) fn fact(&mut self, name: &str, tone: Tone, value: impl Into<String>) {
        self.row(vec![(Tone::Faint, name.to_owned()), (tone, value.into())]);
    }

    pub(crate) fn row(&mut self, cells: Vec<(Tone, String)>) {
        let cells = cells.into_iter().map(|(tone, text)| (tone, shown(&text).into_owned()));
        self.rows.push(cells.collect());
    }

    fn lines(&self, output: Output) -> Vec<String> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let wide = |at: usize| {
            self.rows.iter().filter_map(|row| row.get(at)).map(|(_, text)| text.width()).max()
        };
        let widths: Vec<usize> = (0..columns).map(|at| wide(at).unwrap_or_default()).collect();
        self.rows.iter().map(|row| line(row, &widths, output)).collect()
    }
}

fn line(row: &[(Tone, String)], widths: &[usize], output: Output) -> String {
    let mut line = String::new();
    for (at, (tone, text)) in row.iter().enumerate() {
        line.push_str(&output.paint(*tone, text));
        if at + 1 < row.len() {
            let gap = widths[at].saturating_sub(text.width()) + 2;
            line.extend(std::iter::repeat_n(' ', gap));
        }
    }
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Output = Output { json: false, color: false, streams: false };
    const COLOURED: Output = Output { json: false, color: true, streams: false };

    fn sample() -> Table {
        let mut table = Table::new(&["name", "term"]);
        table.row(vec![(Tone::Plain, "選挙".into()), (Tone::Good, "7".into())]);
        table.row(vec![(Tone::Plain, "nightly".into()), (Tone::Plain, "12".into())]);
        table
    }

    #[test]
    fn columns_line_up_by_what_they_look_like() {
        assert_eq!(sample().lines(PLAIN), ["NAME     TERM", "選挙     7", "nightly  12"]);
    }

    /// R18: nothing of a stranger's name steers the terminal, the columns are
    /// those of what is seen, and JSON gives the name back as it was.
    #[test]
    fn what_cannot_be_seen_is_written_out_in_lines_tables_and_json() {
        let name = "a\u{202e}b\u{200b}\u{e0041}";
        let written = "a\\u{202e}b\\u{200b}\\u{e0041}";
        assert_eq!(visible(&COLOURED.paint(Tone::Good, name)), format!("\x1b[32m{written}\x1b[0m"));
        let mut table = Table::facts();
        table.fact("name", Tone::Plain, name);
        assert_eq!(table.lines(PLAIN), [format!("name  {written}")]);
        let json = in_json(&serde_json::json!({ "name": name }).to_string());
        assert_eq!(json, r#"{"name":"a\u202eb\u200b\udb40\udc41"}"#);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["name"], name);
    }

    #[test]
    fn colour_changes_no_column() {
        let strip = |line: &String| {
            let mut plain = line.clone();
            for code in ["\x1b[0m", "\x1b[2m", "\x1b[32m"] {
                plain = plain.replace(code, "");
            }
            plain
        };
        let coloured = sample().lines(COLOURED);
        assert_ne!(coloured, sample().lines(PLAIN));
        assert_eq!(coloured.iter().map(strip).collect::<Vec<_>>(), sample().lines(PLAIN));
    }
}
