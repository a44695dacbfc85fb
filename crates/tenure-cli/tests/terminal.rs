//! On a terminal: `top`, and a command that has the terminal to itself.

#![allow(clippy::unwrap_used)]

mod common;

use std::process::Command;

use common::pty::Pty;
use common::{World, wait_for};

/// On a terminal that the program controls, as from a login shell.
fn on_terminal(world: &World, args: &[&str]) -> Pty {
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait", env!("CARGO_BIN_EXE_tenure")]).args(args);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command.env("TENURE_STORE", world.store()).env("HOME", world.dir()).env("USER", "tester");
    Pty::start(command)
}

/// Elections, leaders, members and the journal; keys steer, with confirmation.
#[test]
fn top_shows_everything_and_its_keys_steer() {
    let world = World::new();
    let mut leader = world.run("ann", &["-e", "jobs", "--endpoint", "h:1", "--", "sleep", "1000"]);
    world.next_leader("jobs", 0);
    world.text(&["run", "-q", "-e", "other", "--id", "bob", "--", "true"]);
    let mut top = on_terminal(&world, &["top"]);
    // The footer is drawn last.
    let screen = top.until_shows("q quit");
    for shown in ["elections", "members", "journal", "ann", "other", "h:1", "█"] {
        assert!(screen.contains(shown), "{shown:?} is missing:\n{screen}");
    }
    assert!(screen.contains("ann leads with term 1"), "{screen}");

    top.press("/jo\r");
    top.until("the filter", |s| !s.contains(" other ") && s.contains("filter: jo"));

    top.press("n");
    top.until_shows("0 names");
    top.press("n");
    top.until("no count of names", |s| !s.contains("0 names"));

    top.press("p");
    top.until_shows("pause jobs, so that no member is newly elected? (y/n)");
    top.press("n");
    top.until_shows("not done");
    assert!(world.json(&["status", "jobs"])["paused"].is_null());
    top.press("p");
    top.until_shows("(y/n)");
    top.press("y");
    top.until_shows("jobs is paused");
    assert_eq!(world.json(&["status", "jobs"])["paused"]["reason"], "from tenure top");

    top.press("r");
    top.until_shows("ask ann to give up term 1 of jobs? (y/n)");
    top.press("y");
    assert_eq!(leader.code(), 73);
    top.until_shows("(vacant)");
    top.press("q");
    assert_eq!(top.code(), 0);
}

/// Without a terminal there is nothing to draw on.
#[test]
fn top_in_a_pipe_says_what_to_use_instead() {
    let world = World::new();
    let output = world.ask(&["top"]);
    assert_eq!(common::code(&output), 2);
    assert!(common::stderr(&output).contains("tenure watch"));
}

/// The command reads the terminal, and Ctrl-C is its own.
#[test]
fn the_command_has_the_terminal() {
    let world = World::new();
    let script = "trap 'echo interrupted; exit 9' INT; echo ready; read line; echo got $line; \
                  while :; do sleep 0.02; done";
    let mut run = on_terminal(&world, &["run", "-q", "-e", "x", "--", "sh", "-c", script]);
    run.until_shows("ready");
    run.press("hello\r");
    run.until_shows("got hello");
    run.press("\x03");
    run.until_shows("interrupted");
    assert_eq!(run.code(), 9);
}

/// Colour on a terminal, unless NO_COLOR is set.
#[test]
fn a_terminal_gets_colour_unless_it_is_refused() {
    let world = World::new();
    world.text(&["run", "-q", "-e", "jobs", "--", "true"]);
    let coloured = |refuse: bool| {
        let mut command = world.tenure(&["status"]);
        command.env("TERM", "xterm");
        if refuse {
            command.env("NO_COLOR", "1");
        }
        let mut pty = Pty::start(command);
        pty.until_shows("(vacant)");
        assert_eq!(pty.code(), 0);
        pty.has_colour()
    };
    assert!(coloured(false));
    assert!(!coloured(true));
}

/// Ctrl-Z stops the whole job as the shell expects; `fg` goes on with it, and it
/// reads the terminal again.
///
/// The command starts nothing after `ready`: a shell that is stopped between
/// vfork and exec of a child waits for it where no signal reaches, and a program that
/// waits for that shell to stop waits for ever, `tenure` or not.
#[test]
fn ctrl_z_suspends_the_job_and_it_can_go_on() {
    let world = World::new();
    let script = "echo ready; read line; echo got $line; read line";
    let shell = format!(
        "set -m; {} run -q -e x --ttl 60s -- sh -c '{script}'; echo job $?; fg; echo over $?",
        env!("CARGO_BIN_EXE_tenure")
    );
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait", "bash", "-c", &shell]);
    command.env("TENURE_STORE", world.store());
    let mut run = Pty::start(command);
    run.until_shows("ready");
    run.press("\x1a");
    run.until_shows("job 147");
    wait_for("it to lead still", || (world.leader("x").1 == 1).then_some(()));
    // Only once it is back does Ctrl-C reach it, and not the shell.
    run.press("hello\r");
    run.until_shows("got hello");
    run.press("\x03");
    run.until_shows("over 130");
}
