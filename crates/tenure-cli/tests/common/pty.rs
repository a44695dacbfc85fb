//! A terminal, with a test that types and reads.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// A program on a terminal of its own.
pub struct Pty {
    pub child: Child,
    keys: File,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
}

impl Pty {
    /// Starts the command with the terminal as stdin, stdout and stderr.
    pub fn start(mut command: Command) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize { ws_row: 30, ws_col: 110, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let open = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let slave: OwnedFd = ioctl_tiocgptpeer(&master, open).unwrap();
        let end = || Stdio::from(slave.try_clone().unwrap());
        let child = command.env("TERM", "xterm-256color").stdin(end()).stdout(end()).stderr(end());
        let child = child.spawn().unwrap();
        drop(command);
        drop(slave);
        let keys = File::from(master);
        let mut reader = keys.try_clone().unwrap();
        let (give, output) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The kernel gives an error once no process has the other end open.
            while let Ok(count) = reader.read(&mut bytes) {
                if count == 0 || give.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let rows = NonZero::new(30).unwrap();
        let columns = NonZero::new(110).unwrap();
        Self { child, keys, output, screen: vt100::Parser::new(rows, columns, 0) }
    }

    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// What is on the screen now.
    pub fn screen(&mut self) -> String {
        while let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(1)) {
            self.screen.process(&bytes);
        }
        self.screen.screen().contents()
    }

    /// Waits until the screen satisfies.
    pub fn until(&mut self, what: &str, mut seen: impl FnMut(&str) -> bool) -> String {
        let began = std::time::Instant::now();
        loop {
            let screen = self.screen();
            if seen(&screen) {
                return screen;
            }
            assert!(began.elapsed() < super::LIMIT, "waited in vain for {what}:\n{screen}");
        }
    }

    pub fn until_shows(&mut self, text: &str) -> String {
        self.until(&format!("{text:?}"), |screen| screen.contains(text))
    }

    /// Whether anything on the screen is not in the usual colours.
    pub fn has_colour(&mut self) -> bool {
        let _ = self.screen();
        let screen = self.screen.screen();
        (0..30).flat_map(|row| (0..110).map(move |column| (row, column))).any(|(row, column)| {
            screen.cell(row, column).is_some_and(|cell| cell.fgcolor() != vt100::Color::Default)
        })
    }

    pub fn code(&mut self) -> i32 {
        let status = super::wait_for("the end of the program on the terminal", || {
            let _ = self.screen();
            self.child.try_wait().unwrap()
        });
        status.code().unwrap_or(-1)
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
