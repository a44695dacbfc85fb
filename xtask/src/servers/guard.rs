//! The guard: the process that outlives us by as long as it takes to stop a
//! server.

use std::io::{Read, Write};

use super::{READY, Scratch, Server, find};
use crate::failure::{Doing, Failure, Outcome};

/// Keeps the server named until standard input ends.
pub(crate) fn guard(args: &[String]) -> Outcome {
    let [name] = args else {
        return Err(Failure::new("a guard is started by this program itself; use `serve`"));
    };
    keep(find(name)?, &mut std::io::stdin(), &mut std::io::stdout())
}

/// Starts the server, says how to reach it, waits for `input` to end, and stops
/// it. The scratch folder goes last, also when the start failed.
fn keep(server: &dyn Server, input: &mut impl Read, output: &mut impl Write) -> Outcome {
    let scratch = Scratch::new(server.name())?;
    let mut running = server.start(&scratch)?;
    let said = say(output, running.environment());
    // The process that started us may be gone by now; then the input has ended too.
    if said.is_ok() {
        let mut sink = Vec::new();
        input.read_to_end(&mut sink).doing(|| "wait for the end of standard input".into())?;
    }
    let ended = running.ended_by_itself();
    drop(running);
    match ended {
        None => Ok(()),
        Some(why) => Err(Failure::new(format!("{} ended during the run: {why}", server.name()))),
    }
}

fn say(output: &mut impl Write, environment: &[(String, String)]) -> std::io::Result<()> {
    for (key, value) in environment {
        writeln!(output, "{key}={value}")?;
    }
    writeln!(output, "{READY}")?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::process::Command;
    use std::sync::Mutex;

    use rustix::process::{Pid, WaitId, WaitIdOptions, test_kill_process, waitid};

    use super::super::Running;
    use super::*;

    /// A server that serves nothing; it notes where it ran.
    struct StandIn {
        program: &'static [&'static str],
        seen: Mutex<Option<(u32, PathBuf)>>,
    }

    impl StandIn {
        fn new(program: &'static [&'static str]) -> Self {
            Self { program, seen: Mutex::new(None) }
        }

        fn seen(&self) -> (u32, PathBuf) {
            self.seen.lock().unwrap().clone().expect("it was started")
        }
    }

    impl Server for StandIn {
        fn name(&self) -> &'static str {
            "stand-in"
        }

        fn variable(&self) -> &'static str {
            "STAND_IN_URL"
        }

        fn provide(&self) -> Outcome {
            Ok(())
        }

        fn start(&self, scratch: &Scratch) -> Outcome<Running> {
            let mut command = Command::new(self.program[0]);
            command.args(&self.program[1..]);
            let running = Running::spawn(command, &scratch.path().join("log"))?
                .with_environment(self.variable(), "nowhere");
            *self.seen.lock().unwrap() = Some((running.id(), scratch.path().to_path_buf()));
            Ok(running)
        }
    }

    fn pid(id: u32) -> Pid {
        Pid::from_raw(id.try_into().unwrap()).unwrap()
    }

    fn alive(id: u32) -> bool {
        test_kill_process(pid(id)).is_ok()
    }

    /// Reads as the end of input, and looks at the server at that moment.
    struct EndOfInput<'a>(&'a StandIn, bool);

    impl Read for EndOfInput<'_> {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            self.1 = alive(self.0.seen().0);
            Ok(0)
        }
    }

    /// The server lives until the input ends, and not longer; nothing is left
    /// on the disk.
    #[test]
    fn the_end_of_input_stops_the_server_and_removes_its_folder() {
        let server = StandIn::new(&["sleep", "600"]);
        let mut said = Vec::new();
        let mut input = EndOfInput(&server, false);
        keep(&server, &mut input, &mut said).unwrap();
        assert!(input.1, "the server must live while the input is open");
        assert_eq!(String::from_utf8(said).unwrap(), "STAND_IN_URL=nowhere\nready\n");
        let (id, folder) = server.seen();
        assert!(!alive(id), "the server must be gone");
        assert!(!folder.exists(), "{} must be gone", folder.display());
    }

    /// A reader that vanished before it heard that the server is up is the end.
    #[test]
    fn a_run_whose_output_is_closed_stops_the_server() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        struct Never;
        impl Read for Never {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                panic!("must not wait for a reader that is gone")
            }
        }
        let server = StandIn::new(&["sleep", "600"]);
        keep(&server, &mut Never, &mut Closed).unwrap();
        assert!(!alive(server.seen().0));
    }

    /// A server that dies in the middle explains the failures of the tests: it
    /// is told, with the end of its log.
    #[test]
    fn a_server_that_dies_by_itself_is_reported_with_its_log() {
        struct UntilGone<'a>(&'a StandIn);
        impl Read for UntilGone<'_> {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                // Wait for its end and leave it to be waited for again.
                let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                waitid(WaitId::Pid(pid(self.0.seen().0)), how)?;
                Ok(0)
            }
        }
        let server = StandIn::new(&["sh", "-c", "echo out of paper; exit 3"]);
        let failure = keep(&server, &mut UntilGone(&server), &mut Vec::new())
            .expect_err("it died")
            .to_string();
        assert!(failure.contains("stand-in ended during the run"), "{failure}");
        assert!(
            failure.contains("exit status: 3") && failure.contains("out of paper"),
            "{failure}"
        );
    }
}
