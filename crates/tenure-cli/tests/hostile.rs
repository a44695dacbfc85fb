//! The guardian in a hostile house: namespaces, freezers, and those who kill or
//! stop more than one process at once. Every cell that promises something in the
//! table of `docs/cli.md` is one of these, or a test of `guard.rs`.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use common::boottime;
use common::house::{NO_CGROUP, Own, inside, own_cgroup, unshare};
use common::{Running, World, children, code, is_alive, parent, pids, stderr, stdout, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use tenure_testkit::cannot_test_here;

/// A command of three processes, one of them in a session of its own.
const FAMILY: &str = "echo $$; sh -c 'echo $$; exec sleep 1000' & \
                      setsid sh -c 'echo $$; exec sleep 1000' & wait";

/// A leader with a family, and a standby whose command says if it sees any of them.
struct Scene {
    world: World,
    leader: Running,
    guardian: i32,
    watchman: Option<i32>,
    family: Vec<i32>,
    standby: Running,
}

const TTL: Duration = Duration::from_secs(1);

impl Scene {
    fn new(world: World) -> Self {
        Self::with(world, |world| {
            world.run("a", &["-e", "x", "--ttl", "1s", "--", "sh", "-c", FAMILY])
        })
    }

    fn with(world: World, start: impl FnOnce(&World) -> Running) -> Self {
        let leader = start(&world);
        let family =
            wait_for("the family", || Some(pids(&leader.printed())).filter(|pids| pids.len() == 3));
        let guardian = parent(family[0]).unwrap();
        let program = parent(guardian).unwrap();
        let watchman = children(program).into_iter().find(|pid| *pid != guardian);
        let seen = format!(
            "for p in {} {} {}; do grep -qs '^State:.[RSDT]' /proc/$p/status && echo overlap; \
             done; echo up; exec sleep 1000",
            family[0], family[1], family[2]
        );
        let standby = world.run("b", &["-e", "x", "--ttl", "1s", "--", "sh", "-c", &seen]);
        let standing = || world.json(&["status", "x"])["candidates"].as_array().unwrap().len();
        wait_for("b to stand", || (standing() == 2).then_some(()));
        Self { world, leader, guardian, watchman, family, standby }
    }

    /// None but the first leads, for as long as it takes to lose a term twice.
    fn no_other_leads(&self) {
        let until = boottime() + u64::try_from((TTL * 5 / 2).as_nanos()).unwrap();
        while boottime() < until {
            assert_eq!(self.world.leader("x").1, 1, "its command still runs");
        }
        assert!(self.family.iter().any(|pid| is_alive(*pid)), "nothing was shown");
    }

    /// The second leads, and its command saw nothing of the first.
    fn followed_without_overlap(&self) {
        self.standby.until_printed("up");
        assert!(!self.standby.printed().contains("overlap"), "{}", self.standby.printed());
    }

    /// Everything of ours. The program is stopped first: it would do its duty when
    /// it sees the guardian die.
    fn kill_all_but_the_family(&self) {
        let program = self.program();
        signal(program, Signal::STOP);
        for pid in self.watchman.into_iter().chain([self.guardian, program]) {
            signal(pid, Signal::KILL);
        }
        wait_for("the program to be gone", || (!is_alive(program)).then_some(()));
    }

    fn program(&self) -> i32 {
        parent(self.guardian).unwrap()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for pid in &self.family {
            signal(*pid, Signal::KILL);
        }
    }
}

fn signal(pid: i32, signal: Signal) {
    // Gone is fine.
    let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
}

/// R1: where /proc shows another PID namespace nothing is started, since nothing
/// could be ended; where it shows its own, everything works.
#[test]
fn a_pid_namespace_without_its_own_proc_is_refused() {
    let world = World::new();
    let tenure = env!("CARGO_BIN_EXE_tenure");
    let run = ["run", "-q", "-e", "x", "--", "sh", "-c", "echo ran"];
    let Some(foreign) = unshare(&["--pid", "--fork"]) else { return };
    let output = inside(foreign, &world).arg(tenure).args(run).output().unwrap();
    assert_eq!(code(&output), 70, "{}", stderr(&output));
    assert!(stderr(&output).contains("/proc is that of another PID namespace"));
    assert!(stderr(&output).contains("--mount-proc"), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
    let own = unshare(&["--pid", "--fork", "--mount-proc"]).unwrap();
    let output = inside(own, &world).arg(tenure).args(run).output().unwrap();
    assert_eq!((code(&output), stdout(&output).as_str()), (0, "ran\n"), "{}", stderr(&output));
}

/// R2: whatever ends `tenure` by its name does not mean the guardian or the
/// watchman, so that they can do their work.
#[test]
fn ending_tenure_by_name_spares_the_guardian() {
    let scene = Scene::new(World::new());
    let named = |program: &str, args: &[&str]| -> Option<Vec<i32>> {
        let output = Command::new(program).args(args).output().ok()?;
        let text = stdout(&output);
        Some(text.split_whitespace().map(|pid| pid.parse().unwrap()).collect())
    };
    let found = [
        named("pidof", &["tenure"]),
        named("pgrep", &["-x", "tenure"]),
        named("pgrep", &["tenure"]),
        named("pgrep", &["-f", "(^|/)tenure"]),
    ];
    for pids in found.into_iter().flatten() {
        assert!(pids.contains(&scene.program()), "{pids:?}");
        assert!(!pids.contains(&scene.guardian), "{pids:?}");
        assert!(scene.watchman.is_none_or(|watchman| !pids.contains(&watchman)), "{pids:?}");
    }
    let arguments = std::fs::read(format!("/proc/{}/cmdline", scene.guardian)).unwrap();
    assert!(arguments.starts_with(b"guardian\0"), "{}", String::from_utf8_lossy(&arguments));
    let name = std::fs::read_to_string(format!("/proc/{}/comm", scene.guardian)).unwrap();
    assert_eq!(name.trim(), "guardian");
}

/// R2: program, guardian and watchman are killed together. What is left of the
/// command keeps the lock: no member leads before the last of it is gone, also when
/// the ttl has run out long ago.
#[test]
fn a_successor_waits_for_the_last_process_whatever_was_killed() {
    let scene = Scene::new(World::new());
    scene.kill_all_but_the_family();
    scene.no_other_leads();
    for pid in &scene.family {
        signal(*pid, Signal::KILL);
    }
    scene.followed_without_overlap();
}

/// R2: any of program, guardian and watchman are killed, in any order and at once.
/// The rest do their duty, or the lock does.
#[test]
fn whichever_of_ours_are_killed_no_two_commands_overlap() {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for (order, count) in orders.into_iter().flat_map(|order| [(order, 2), (order, 3)]) {
        let mut scene = Scene::new(World::new());
        let ours = [Some(scene.program()), Some(scene.guardian), scene.watchman];
        for pid in order.into_iter().take(count).filter_map(|at| ours[at]) {
            signal(pid, Signal::KILL);
        }
        // Long enough for a successor that does not wait.
        let until = boottime() + 300_000_000;
        let up = || scene.standby.printed().contains("up");
        wait_for("a while", || (up() || boottime() > until).then_some(()));
        // What no process is left to end.
        for pid in &scene.family {
            signal(*pid, Signal::KILL);
        }
        if !order[..count].contains(&0) && scene.leader.child.try_wait().unwrap().is_none() {
            scene.leader.signal(Signal::TERM);
        }
        scene.followed_without_overlap();
    }
}

/// R2: where a control group can be made, nothing is left when program and
/// guardian are killed together, on any store.
fn nothing_is_left(world: World) {
    let scene = Scene::new(world);
    if scene.watchman.is_none() {
        return cannot_test_here(NO_CGROUP);
    }
    let groups = std::fs::read_to_string(format!("/proc/{}/cgroup", scene.family[2])).unwrap();
    assert!(groups.contains("/tenure-"), "{groups}");
    let program = scene.program();
    signal(scene.guardian, Signal::KILL);
    signal(program, Signal::KILL);
    wait_for("the family to be gone", || {
        scene.family.iter().all(|pid| !is_alive(*pid)).then_some(())
    });
    scene.followed_without_overlap();
}

/// R2 on SQLite.
#[test]
fn a_control_group_ends_with_program_and_guardian_on_sqlite() {
    nothing_is_left(World::new());
}

/// R2 on a store without proof of death.
#[test]
fn a_control_group_ends_with_program_and_guardian_on_postgres() {
    let url = std::env::var("TENURE_TEST_POSTGRES_URL")
        .expect("run the tests by `cargo xtask test`, or start a server by `cargo xtask serve`");
    nothing_is_left(World::on(url));
}

/// The control group goes with its command, whether that ends by itself or not.
#[test]
fn control_groups_are_removed() {
    let world = World::new();
    let group = |text: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix("0::")).map(str::to_owned);
        line.filter(|path| path.contains("/tenure-"))
    };
    let printed = world.text(&["run", "-q", "-e", "x", "--", "cat", "/proc/self/cgroup"]);
    let Some(path) = group(&printed) else {
        return cannot_test_here(NO_CGROUP);
    };
    let name = Path::new(&path).file_name().unwrap();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 ")).unwrap();
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let own = own.lines().find_map(|line| line.strip_prefix("0::")).unwrap();
    let place = format!("{}/{}", mount.split(' ').nth(4).unwrap(), own.trim_matches('/'));
    assert!(Path::new(&place).exists());
    assert!(!Path::new(&place).join(name).exists(), "{}", name.display());
}

/// R3: program and guardian are stopped together. Their command runs on, and keeps
/// the lock, so that no member leads beside it although the ttl has run out. When
/// they go on, the guardian ends it, and another one leads.
#[test]
fn no_other_leads_beside_the_command_of_a_stopped_program_and_guardian() {
    let scene = Scene::new(World::new());
    let program = scene.program();
    signal(program, Signal::STOP);
    signal(scene.guardian, Signal::STOP);
    scene.no_other_leads();
    signal(scene.guardian, Signal::CONT);
    scene.followed_without_overlap();
    signal(program, Signal::CONT);
}

/// R3: everything of the leader is frozen past its ttl, as `docker pause` does it.
#[test]
fn no_other_leads_before_the_command_of_a_frozen_leader_is_gone() {
    let Some(group) = own_cgroup("frozen") else { return };
    let scene = Scene::with(World::new(), |world| {
        let tenure = env!("CARGO_BIN_EXE_tenure");
        let enter = format!("echo $$ >{}/cgroup.procs; exec \"$0\" \"$@\"", group.0.display());
        let run = ["run", "--id", "a", "-e", "x", "--ttl", "1s", "--", "sh", "-c", FAMILY];
        let mut command = Command::new("sh");
        command.args(["-c", &enter, tenure]).args(run);
        world.start("a", inside(command, world))
    });
    group.write("cgroup.freeze", "1");
    scene.no_other_leads();
    group.write("cgroup.freeze", "0");
    scene.followed_without_overlap();
}

/// An operator can free what is kept by processes that no process can end, and is told
/// what that means.
#[test]
fn evicting_at_once_frees_what_is_left_behind() {
    let scene = Scene::new(World::new());
    scene.kill_all_but_the_family();
    scene.no_other_leads();
    let output = scene.world.ask(&["evict", "a", "--now"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    scene.standby.until_printed("up");
}

/// R2: what is left behind is named, with what frees it, to those who ask and those who
/// wait.
#[test]
fn a_vacancy_kept_by_leftover_processes_says_so() {
    let scene = Scene::new(World::new());
    scene.kill_all_but_the_family();
    let why = "processes of the last leader, a, still run";
    wait_for("a message of the standby", || scene.standby.said().contains(why).then_some(()));
    let seen = scene.world.json(&["status", "x"]);
    assert_eq!(seen["leader"], serde_json::Value::Null, "{seen}");
    assert_eq!(seen["held_up"]["member"], "a", "{seen}");
    let text = scene.world.text(&["status", "x"]);
    assert!(text.contains(why) && text.contains("tenure evict --now a"), "{text}");
    assert!(scene.world.text(&["status"]).contains("held up"));
    let refused = scene.world.ask(&["run", "-e", "x", "--no-wait", "--", "true"]);
    assert!(stderr(&refused).contains(why), "{}", stderr(&refused));
    for pid in &scene.family {
        signal(*pid, Signal::KILL);
    }
    scene.followed_without_overlap();
    let seen = scene.world.json(&["status", "x"]);
    assert_eq!(seen["held_up"], serde_json::Value::Null, "{seen}");
}

/// R1: a guardian that is stopped does not keep the command from being ended.
#[test]
fn a_stopped_guardian_is_ended_with_its_command() {
    let mut scene = Scene::new(World::new());
    signal(scene.guardian, Signal::STOP);
    scene.leader.signal(Signal::TERM);
    assert_eq!(scene.leader.code(), 137, "{}", scene.leader.said());
    assert!(scene.family.iter().all(|pid| !is_alive(*pid)), "and then the term is given up");
    scene.followed_without_overlap();
}

/// What a command that only root may end runs as, made from `setpriv` with the
/// set-user-id bit; `None` where that cannot be had.
fn of_another_user(world: &World) -> Option<(PathBuf, PathBuf)> {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    mode(world.dir(), 0o777);
    let tenure = world.path("tenure");
    std::fs::copy(env!("CARGO_BIN_EXE_tenure"), &tenure).unwrap();
    let rootly = world.path("rootly");
    std::fs::copy("/usr/bin/setpriv", &rootly).ok()?;
    mode(&rootly, 0o4755);
    let mut try_it = Command::new("setpriv");
    try_it.args(POWERLESS).arg(&rootly).args(["--reuid=0", "--clear-groups", "id", "-ru"]);
    (stdout(&try_it.output().ok()?) == "0\n").then_some((tenure, rootly))
}

/// What makes `setpriv` run something as a user without rights.
const POWERLESS: [&str; 3] = ["--reuid=65534", "--regid=65534", "--clear-groups"];

/// R1: a process that cannot be killed is never taken for dead. That is said, and
/// the term is kept as long as it can be; where it is lost, the program ends with
/// an error, and starts nothing beside it. With a control group the kernel ends it.
#[test]
fn a_process_that_cannot_be_killed_is_never_taken_for_dead() {
    let world = World::new();
    let Some((tenure, rootly)) = of_another_user(&world) else {
        return cannot_test_here("this machine has no root or no set-user-id programs");
    };
    let script = format!("echo $$; exec {} --reuid=0 --clear-groups sleep 1000", rootly.display());
    let start = |name: &str, group: Option<&Own>| {
        let group = group.map_or("/dev/null".into(), |group| group.0.join("cgroup.procs"));
        let mut command = inside(Command::new("sh"), &world);
        let enter = format!("echo $$ >{}; exec \"$0\" \"$@\"", group.display());
        command.args(["-c", &enter, "setpriv"]).args(POWERLESS).arg(&tenure);
        command.args(["run", "--id", name, "-e", name, "--ttl", "1s", "--grace", "100ms"]);
        command.args(["--on-lost", "standby", "--", "sh", "-c", &script]);
        let run = world.start(name, command);
        let pid = wait_for("the command", || pids(&run.printed()).first().copied());
        let comm = || std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        wait_for("it to be root's", || (comm().trim() == "sleep").then_some(()));
        (run, pid)
    };
    let still = "was killed and still runs (it belongs to another user)";

    let (mut kept, pid) = start("kept", None);
    kept.signal(Signal::TERM);
    wait_for("a word about it", || kept.said().contains(still).then_some(()));
    assert!(is_alive(pid) && kept.child.try_wait().unwrap().is_none());
    assert_eq!(world.leader("kept").0.as_deref(), Some("kept"), "{}", kept.said());
    signal(pid, Signal::KILL);
    assert_eq!(kept.code(), 137, "{}", kept.said());
    assert_eq!(world.leader("kept").0, None);

    let (mut lost, pid) = start("lost", None);
    assert_eq!(code(&world.ask(&["evict", "lost", "--now"])), 0);
    assert_eq!(lost.code(), 70, "{}", lost.said());
    assert!(is_alive(pid));
    assert!(lost.said().contains("it is left behind"), "{}", lost.said());
    signal(pid, Signal::KILL);

    let Some(group) = own_cgroup("delegated") else { return };
    for path in [group.0.clone(), group.0.join("cgroup.procs")] {
        std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap();
    }
    let (mut ended, pid) = start("ended", Some(&group));
    ended.signal(Signal::TERM);
    assert_eq!(ended.code(), 137, "{}", ended.said());
    assert!(!is_alive(pid) && !ended.said().contains(still), "{}", ended.said());
}
