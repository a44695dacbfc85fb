use super::*;

fn fixture() -> (tempfile::TempDir, Lives) {
    let dir = tempfile::tempdir().unwrap();
    let lives = Lives::open(&dir.path().join("t.db")).unwrap();
    (dir, lives)
}

const A: Incarnation = Incarnation::from_u128(0xa);
const B: Incarnation = Incarnation::from_u128(0xb);
const TTL: Duration = Duration::from_secs(1);

/// M4: only a lock that exists and is free proves anything.
#[test]
fn a_lock_is_held_until_it_is_let_go_and_a_missing_one_proves_nothing() {
    let (_dir, lives) = fixture();
    assert_eq!(lives.probe(A), Probe::Missing);
    assert!(lives.hold(A, TTL).unwrap());
    assert!(!lives.hold(A, TTL).unwrap(), "a repeated join takes no second lock");
    assert_eq!(lives.probe(A), Probe::Held);
    lives.bury(A);
    assert_eq!(lives.probe(A), Probe::Held, "what is held is not buried");
    lives.let_go(A);
    assert_eq!(lives.probe(A), Probe::Missing);
}

/// R2: the dead are not taken for dead while a process works for them.
#[test]
fn a_life_is_not_proven_dead_while_a_process_works_under_it() {
    let (_dir, lives) = fixture();
    lives.hold(A, TTL).unwrap();
    assert!(!lives.at_work(A));
    let work = lives.work(A).unwrap();
    let descendant = work.try_clone().unwrap();
    let lock = locked(&lives.held).remove(&A).unwrap();
    drop((lock, work));
    assert!(lives.at_work(A));
    assert_eq!(lives.probe(A), Probe::Held);
    lives.bury(A);
    lives.sweep(|life| life == A);
    assert!(lives.at_work(A), "what is held is neither buried nor swept");
    drop(descendant);
    assert!(!lives.at_work(A));
    assert_eq!(lives.probe(A), Probe::Free);
    lives.bury(A);
    assert_eq!(
        fs::read_dir(lives.directory()).unwrap().count(),
        2,
        "only the bell and the line are left"
    );
    assert!(lives.work(B).is_none());
}

/// A life that ends in order takes the file of its work along, or leaves it to
/// the next sweep if a process that is left behind still holds it.
#[test]
fn the_file_of_a_work_goes_with_its_life() {
    let (_dir, lives) = fixture();
    lives.hold(A, TTL).unwrap();
    drop(lives.work(A).unwrap());
    lives.let_go(A);
    assert_eq!(files_of_work(&lives), 0);
    lives.hold(B, TTL).unwrap();
    let left_behind = lives.work(B).unwrap();
    lives.let_go(B);
    assert_eq!(lives.probe(B), Probe::Missing);
    assert!(lives.at_work(B));
    drop(left_behind);
    lives.sweep(|_| false);
    assert_eq!(files_of_work(&lives), 0);
}

fn files_of_work(lives: &Lives) -> usize {
    let names = fs::read_dir(lives.directory()).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| work_of(name.to_str().unwrap()).is_some()).count()
}

/// R2: one member works by several processes, each with a lock of its own, and they end
/// in any order. The member keeps none: what is free again is given out again.
#[test]
fn every_process_that_works_under_a_life_has_a_lock_of_its_own() {
    let (_dir, lives) = fixture();
    lives.hold(A, TTL).unwrap();
    let [first, second, third] = [(); 3].map(|()| lives.work(A).unwrap());
    assert_eq!(files_of_work(&lives), 3);
    drop(second);
    let again = lives.work(A).unwrap();
    assert_eq!(files_of_work(&lives), 3, "the one that is free is taken first");
    lives.check(A).unwrap();
    drop(locked(&lives.held).remove(&A).unwrap());
    for ended in [first, again] {
        drop(ended);
        assert!(lives.at_work(A), "another process still works");
        assert_eq!(lives.probe(A), Probe::Held);
        lives.bury(A);
        lives.sweep(|life| life == A);
        assert_eq!(files_of_work(&lives), 3, "none is removed before all are free");
    }
    drop(third);
    assert!(!lives.at_work(A));
    assert_eq!(lives.probe(A), Probe::Free);
    lives.bury(A);
    assert_eq!(
        fs::read_dir(lives.directory()).unwrap().count(),
        2,
        "only the bell and the line are left"
    );
}

/// R2, R5: each of them proves that a process works, so each must be where others look for it.
#[test]
fn a_lock_of_a_work_that_is_removed_is_missed_whichever_it_is() {
    let (_dir, lives) = fixture();
    for life in [A, B] {
        lives.hold(life, TTL).unwrap();
    }
    let _works = [lives.work(A).unwrap(), lives.work(A).unwrap(), lives.work(B).unwrap()];
    fs::remove_file(lives.directory().join(format!("{A}.work.2"))).unwrap();
    let error = lives.check(A).unwrap_err();
    assert!(error.to_string().contains(".work.2"), "{error}");
    lives.check(B).unwrap();
}

/// R2: a work whose file cannot be looked at may go on. The file is a link to itself, which
/// no process can open.
#[test]
fn a_work_that_cannot_be_looked_at_may_go_on() {
    let (dir, lives) = fixture();
    lives.hold(A, TTL).unwrap();
    let file = lives.directory().join(format!("{A}.work"));
    std::os::unix::fs::symlink(&file, &file).unwrap();
    drop(locked(&lives.held).remove(&A).unwrap());
    assert!(lives.at_work(A));
    assert_eq!(lives.probe(A), Probe::Held);
    let looking = Lives::look(&dir.path().join("t.db"));
    assert!(!looking.at_work(A), "a handle that decides nothing shows what it sees");
    fs::remove_file(file).unwrap();
    assert_eq!(lives.probe(A), Probe::Free);
}

/// R2, R16: who may write the database may look at the locks, whatever the file's first rights
/// were, and no other user where that is its owner alone.
#[test]
fn a_lock_is_opened_to_those_who_may_write_the_database() {
    let (dir, lives) = fixture();
    let database = dir.path().join("t.db");
    for (n, (rights, expected)) in
        [(0o600, 0o600), (0o644, 0o600), (0o664, 0o644), (0o666, 0o644)].into_iter().enumerate()
    {
        fs::write(&database, "").unwrap();
        fs::set_permissions(&database, fs::Permissions::from_mode(rights)).unwrap();
        let life = Incarnation::from_u128(n as u128 + 1);
        let narrow = lives.directory().join(format!("{life}.work"));
        File::create(&narrow).unwrap();
        fs::set_permissions(&narrow, fs::Permissions::from_mode(0o400 | rights)).unwrap();
        lives.hold(life, TTL).unwrap();
        let _works = [lives.work(life).unwrap(), lives.work(life).unwrap()];
        for ending in [".lock", ".work", ".work.2"] {
            let file = lives.directory().join(format!("{life}{ending}"));
            let mode = fs::metadata(file).unwrap().mode() & 0o777;
            assert_eq!(mode, expected, "{ending} beside a database of {rights:o}");
        }
    }
}

/// Two handles of one process that speak for one life: it lives as long as
/// either does.
#[test]
fn handles_of_one_process_share_the_lock_of_a_life() {
    let (dir, first) = fixture();
    let second = Lives::open(&dir.path().join("t.db")).unwrap();
    assert!(first.hold(A, TTL).unwrap());
    assert!(second.hold(A, TTL).unwrap());
    first.let_go(A);
    assert_eq!(second.probe(A), Probe::Held);
    second.let_go(A);
    assert_eq!(second.probe(A), Probe::Missing);
}

#[test]
fn a_life_that_another_process_leads_is_refused() {
    let (_dir, lives) = fixture();
    let other = File::create(lives.path(A)).unwrap();
    rustix::fs::flock(&other, FlockOperation::LockExclusive).unwrap();
    let error = lives.hold(A, TTL).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("fresh random incarnation"), "{error}");
}

#[test]
fn sweeping_removes_free_orphans_and_nothing_else() {
    let (_dir, lives) = fixture();
    lives.hold(A, TTL).unwrap();
    File::create(lives.path(B)).unwrap();
    let member = Incarnation::from_u128(0xc);
    File::create(lives.path(member)).unwrap();
    lives.sweep(|life| life == member);
    let mut left = lives.all();
    left.sort();
    assert_eq!(left, [A, member]);
}

/// A dropped handle is not a dead process: its locks stay for the ttl.
#[test]
fn a_dropped_handle_proves_nothing_until_its_ttl_is_over() {
    let (dir, lives) = fixture();
    lives.hold(A, Duration::from_secs(3600)).unwrap();
    lives.hold(B, Duration::ZERO).unwrap();
    drop(lives);
    let again = Lives::open(&dir.path().join("t.db")).unwrap();
    assert_eq!(again.probe(A), Probe::Held);
    assert_eq!(again.probe(B), Probe::Free);
}

#[test]
fn only_lock_files_are_taken_for_lives() {
    assert_eq!(life_of(&format!("{A}.lock")), Some(A));
    assert_eq!(life_of("bell"), None);
    assert_eq!(life_of("a.lock"), None);
    assert_eq!(life_of("zz000000000000000000000000000000.lock"), None);
    for ending in [".work", ".work.2", ".work.17"] {
        assert_eq!(work_of(&format!("{A}{ending}")), Some(A));
    }
    for ending in [".lock", ".work.", ".work.1", ".work.02", ".work.x", ".work.2.2", ".lock.2"] {
        assert_eq!(work_of(&format!("{A}{ending}")), None, "{ending}");
    }
}
