//! What the pages show is run: each command in a block of `console`, by the built program, as
//! a reader would who copies it. A block that is not run here says above it which test runs
//! it, or why none does:
//!
//! `<!-- run by the_name_of_a_test -->`, `<!-- not run: why -->`.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{World, bare, stderr};

const NOT_RUN: &str = "<!-- not run: ";
const RUN_BY: &str = "<!-- run by ";

/// A block of `console`.
#[derive(Debug)]
struct Block {
    /// The page and the line, for messages.
    at: String,
    above: String,
    lines: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The texts of the repository whose names end so, with their paths in it.
fn texts(end: &str) -> Vec<(String, String)> {
    let root = root();
    let mut folders = vec![root.clone()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type().unwrap().is_dir() {
                let is_ours = !["target", "node_modules"].contains(&name.as_str());
                folders.extend(Some(entry.path()).filter(|_| is_ours && !name.starts_with('.')));
            } else if name.ends_with(end) {
                let path = entry.path().strip_prefix(&root).unwrap().display().to_string();
                found.push((path, std::fs::read_to_string(entry.path()).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn blocks(page: &str, text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut above = String::new();
    let mut fence: Option<bool> = None;
    for (number, line) in text.lines().enumerate() {
        match (fence, line.trim().strip_prefix("```")) {
            (None, Some(language)) => {
                let is_console = ["console", "sh", "shell", "bash"].contains(&language);
                fence = Some(is_console);
                let at = format!("{page}:{}", number + 1);
                let block = Block { at, above: std::mem::take(&mut above), lines: Vec::new() };
                found.extend(Some(block).filter(|_| is_console));
            }
            (Some(_), Some(_)) => fence = None,
            (Some(true), None) => found.last_mut().unwrap().lines.push(line.to_owned()),
            (None, None) if !line.trim().is_empty() => line.trim().clone_into(&mut above),
            _ => {}
        }
    }
    found
}

/// The commands of a block, without prompt and comment.
fn commands(block: &Block) -> Vec<String> {
    let command = |line: &String| {
        let shown = line.strip_prefix("$ ");
        let line = shown.unwrap_or_else(|| panic!("{}: no command: {line:?}", block.at));
        line.split("  #").next().unwrap().trim().to_owned()
    };
    block.lines.iter().filter(|line| !line.trim().is_empty()).map(command).collect()
}

/// A folder with what a page's commands name: the program, and the reader's own commands,
/// which say that they were run.
fn prepare(world: &World, commands: &[String]) -> Vec<PathBuf> {
    let programs = world.path("bin");
    std::fs::create_dir_all(&programs).unwrap();
    drop(symlink(env!("CARGO_BIN_EXE_tenure"), programs.join("tenure")));
    let words = commands.iter().flat_map(|command| command.split_whitespace());
    let own: BTreeSet<&str> = words.filter_map(|word| word.strip_prefix("./")).collect();
    let made = own.into_iter().map(|name| {
        let script = world.path(name);
        std::fs::write(&script, "#!/bin/sh\ntouch \"$0.ran\"\n").unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        world.path(&format!("{name}.ran"))
    });
    made.collect()
}

/// Runs a command in a shell, as it stands on the page.
fn run(world: &World, at: &str, command: &str) {
    let path = std::env::var("PATH").unwrap();
    let ran = Command::new("sh")
        .args(["-c", command])
        .current_dir(world.dir())
        .env_clear()
        .env("PATH", format!("{}:{path}", world.path("bin").display()))
        .env("USER", "tester")
        .env("HOME", world.dir())
        .output()
        .unwrap();
    assert!(ran.status.success(), "{at}: {command}: {}", stderr(&ran));
}

/// Every page's blocks of commands, each run or said why not.
#[test]
fn every_command_that_a_page_shows_is_run() {
    let sources = texts(".rs");
    let mut count = 0;
    for (page, text) in texts(".md") {
        let world = World::new();
        for block in blocks(&page, &text) {
            let at = &block.at;
            if let Some(why) = block.above.strip_prefix(NOT_RUN) {
                assert!(why.trim_end_matches("-->").trim().len() > 5, "{at}: why is it not run?");
                continue;
            }
            if let Some(test) = block.above.strip_prefix(RUN_BY) {
                let test = format!("fn {}(", test.trim_end_matches("-->").trim());
                assert!(sources.iter().any(|(_, text)| text.contains(&test)), "{at}: no {test}");
                continue;
            }
            let commands = commands(&block);
            let own = prepare(&world, &commands);
            commands.iter().for_each(|command| run(&world, at, command));
            for ran in own {
                assert!(ran.exists(), "{at}: {} is not there", ran.display());
            }
            count += commands.len();
        }
    }
    assert!(count >= 2, "only {count} commands were found");
}

/// Each verb that a page names in its sentences is one.
#[test]
fn every_verb_that_a_page_names_is_one() {
    let mut verbs = BTreeSet::new();
    for (page, text) in texts(".md").into_iter().filter(|(page, _)| page != "CHANGELOG.md") {
        for span in text.split('`').filter_map(|span| span.strip_prefix("tenure ")) {
            let verb = span.split_whitespace().next().unwrap_or_default();
            if verb.chars().all(|c| c.is_ascii_lowercase()) && !span.contains('\n') {
                verbs.insert((verb.to_owned(), page.clone()));
            }
        }
    }
    let named: BTreeSet<&str> = verbs.iter().map(|(verb, _)| verb.as_str()).collect();
    assert!(named.len() > 8, "{named:?}");
    for verb in named {
        let asked = bare(&[verb, "--help"]).output().unwrap();
        let at = verbs.iter().find(|(named, _)| named == verb);
        assert!(asked.status.success(), "{at:?}: {}", stderr(&asked));
    }
}
