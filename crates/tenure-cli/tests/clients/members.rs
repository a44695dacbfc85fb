//! Four members in Node, four in Python and two in Rust on one PostgreSQL, under faults. Half of
//! those in Node and in Python lead through a server, the others by SQL functions.
//!
//! A fault kills a member, stops it for shorter or longer than its trust, asks it to end, cuts its
//! connections, asks the leader to step down, or kills or stops the server. While a member leads
//! it adds to a counter: it reads the number, and writes the next, under the fence. At the end no
//! two members have led at one moment, and every write that was confirmed is counted once.
//!
//! `TENURE_CLIENT_FAULTS` says how many faults; `cargo xtask chaos --clients` runs two hundred.
//! `TENURE_CLIENT_SEED` runs the faults of another seed.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};
use tenure::Tenure;
use tenure_testkit::{Dice, Process, fresh_name, let_pass, until};
use tokio_postgres::{Client, NoTls};

use crate::checked::{Logs, lost};
use crate::packages::Packages;
use crate::{clients, database, tenure};

const TTL: Duration = Duration::from_millis(1_500);
const ROLE: &str = "TENURE_TEST_MEMBER";
/// How many faults a run of all tests has.
const FAULTS: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Node,
    Python,
    Rust,
}

/// Which members there are, and whether each leads through the server.
const CREW: [(Kind, bool); 10] = [
    (Kind::Node, false),
    (Kind::Node, false),
    (Kind::Node, true),
    (Kind::Node, true),
    (Kind::Python, false),
    (Kind::Python, false),
    (Kind::Python, true),
    (Kind::Python, true),
    (Kind::Rust, false),
    (Kind::Rust, false),
];

/// How a member is called; what stands behind a `#` is of its life.
fn name(slot: usize) -> String {
    format!("{:?}-{slot}", CREW[slot].0).to_lowercase()
}

/// A process that is gone with its run.
struct Life {
    child: Child,
    /// Until when it is stopped.
    stopped: Option<Instant>,
}

impl Life {
    fn start(mut command: Command) -> Self {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
        Self { child: child.spawn().unwrap(), stopped: None }
    }

    fn signal(&self, signal: Signal) {
        let id = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        kill_process(id, signal).unwrap();
    }

    fn stop_for(&mut self, time: Duration) {
        self.signal(Signal::STOP);
        self.stopped = Some(Instant::now() + time);
    }

    fn go_on(&mut self, now: Instant) {
        if self.stopped.is_some_and(|until| now >= until) {
            self.signal(Signal::CONT);
            self.stopped = None;
        }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// All that runs.
struct World {
    packages: Packages,
    database: String,
    namespace: String,
    logs: tempfile::TempDir,
    port: u16,
    server: Life,
    crew: Vec<Life>,
    lives: usize,
}

impl World {
    fn new(packages: Packages, database: String) -> Self {
        let namespace = fresh_name("clients");
        let port = tenure_testkit::free_port();
        let server = Life::start(serve(&database, &namespace, port));
        let logs = tempfile::tempdir().unwrap();
        let crew = Vec::new();
        let mut world = Self { packages, database, namespace, logs, port, server, crew, lives: 0 };
        for slot in 0..CREW.len() {
            let life = world.life(slot);
            world.crew.push(life);
        }
        world
    }

    /// A new life of a member.
    fn life(&mut self, slot: usize) -> Life {
        self.lives += 1;
        let (kind, served) = CREW[slot];
        let name = name(slot);
        let way = if served { "server" } else { "postgres" };
        let log = self.logs.path().join(format!("{name}-{way}-{}", self.lives));
        let server = format!("http://127.0.0.1:{}", self.port);
        let mut command = match kind {
            Kind::Node => self.packages.node(),
            Kind::Python => self.packages.python(),
            Kind::Rust => Process::again("members::a_member_in_rust"),
        };
        match kind {
            Kind::Node => drop(command.arg(clients().join("typescript/test/member.mjs"))),
            Kind::Python => drop(command.arg(clients().join("python/tests/member.py"))),
            Kind::Rust => {
                let role = [&self.database, &self.namespace, &name, log.to_str().unwrap()];
                command.env(ROLE, role.join("\n"));
                return Life::start(command);
            }
        }
        command.args([way, &server, &self.database, &self.namespace, &name]);
        command.arg(log).arg(TTL.as_millis().to_string());
        Life::start(command)
    }

    /// One fault, of which there may be several at a time. Says what it was.
    async fn hurt(&mut self, dice: &mut Dice, sql: &Client) -> String {
        let slot = self.slot(dice, sql).await;
        let longer = Duration::from_millis(dice.between(1_600, 3_000));
        let shorter = Duration::from_millis(dice.between(50, 900));
        let what = match dice.below(10) {
            0..=2 => {
                self.crew[slot].kill();
                self.crew[slot] = self.life(slot);
                "killed"
            }
            3..=4 => {
                self.crew[slot].stop_for(longer);
                "stopped for longer than its trust"
            }
            5 => {
                self.crew[slot].stop_for(shorter);
                "stopped for less than its trust"
            }
            6 => {
                self.end(slot).await;
                self.crew[slot] = self.life(slot);
                "asked to end"
            }
            7 => {
                let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                           WHERE application_name LIKE $1 || '%' AND pid <> pg_backend_pid()";
                sql.query(cut, &[&name(slot)]).await.unwrap();
                "cut off its connections"
            }
            8 => {
                let ask = "SELECT tenure.ask_step_down($1, 'jobs')";
                sql.query(ask, &[&self.namespace]).await.unwrap();
                return "the leader was asked to step down".into();
            }
            _ if dice.one_in(2) => {
                self.server.kill();
                self.server = Life::start(serve(&self.database, &self.namespace, self.port));
                return "the server was killed".into();
            }
            _ => {
                self.server.stop_for(longer);
                return "the server was stopped".into();
            }
        };
        format!("{:?} {slot} was {what}", CREW[slot].0)
    }

    /// The leader's place in the crew, as often as not.
    async fn slot(&self, dice: &mut Dice, sql: &Client) -> usize {
        let any = dice.below(CREW.len());
        match self.leader(sql).await {
            Some(leader) if dice.one_in(2) => leader,
            _ => any,
        }
    }

    /// Asks the leader to hand over to a member; whether that one leads.
    async fn hand_over(&self, slot: usize, sql: &Client) -> bool {
        if self.leader(sql).await == Some(slot) {
            return true;
        }
        let ask = "SELECT tenure.ask_step_down($1, 'jobs', p_to => c.member) FROM tenure.candidates c \
                   WHERE c.ns = $1 AND (c.member = $2 OR c.member LIKE $2 || '#%')";
        sql.query(ask, &[&self.namespace, &name(slot)]).await.unwrap();
        let_pass(Duration::from_millis(100), "until it is asked again").await;
        false
    }

    async fn leader(&self, sql: &Client) -> Option<usize> {
        let holder = "SELECT holder FROM tenure.elections WHERE ns = $1 AND holder IS NOT NULL";
        let row = sql.query_opt(holder, &[&self.namespace]).await.unwrap()?;
        let holder = row.get::<_, String>(0);
        (0..CREW.len()).find(|slot| holder.split('#').next() == Some(&name(*slot)))
    }

    async fn end(&mut self, slot: usize) {
        let life = &mut self.crew[slot];
        life.signal(Signal::CONT);
        life.stopped = None;
        life.signal(Signal::TERM);
        until("a member to end", async || life.child.try_wait().unwrap().is_some()).await;
    }

    fn go_on(&mut self, now: Instant) {
        let all = self.crew.iter_mut().chain([&mut self.server]);
        all.for_each(|life| life.go_on(now));
    }
}

fn serve(database: &str, namespace: &str, port: u16) -> Command {
    let mut command = tenure();
    command.args(["serve", "--store", database, "--namespace", namespace]);
    command.args(["--ttl", "1500ms", "--listen", &format!("127.0.0.1:{port}")]);
    command
}

async fn connect(database: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(database, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn count(sql: &Client, namespace: &str) -> u64 {
    let row = sql.query_one(&format!("SELECT n FROM \"{namespace}\".counter"), &[]).await.unwrap();
    row.get::<_, i64>(0).try_into().unwrap()
}

#[tokio::test]
async fn members_in_three_languages_never_lead_together_and_lose_no_write() {
    let Some(packages) = Packages::find() else { return };
    packages.build();
    let asked = |name: &str| std::env::var(name).ok().map(|text| text.parse::<usize>().unwrap());
    let faults = asked("TENURE_CLIENT_FAULTS").unwrap_or(FAULTS);
    let seed = asked("TENURE_CLIENT_SEED").unwrap_or(1);
    let mut dice = Dice::new(seed.try_into().unwrap());
    let database = database();
    let mut world = World::new(packages, database.clone());
    let sql = connect(&database).await;
    let schema = world.namespace.clone();
    let tables = format!(
        "CREATE SCHEMA \"{schema}\"; CREATE TABLE \"{schema}\".counter (n bigint NOT NULL); \
         INSERT INTO \"{schema}\".counter VALUES (0); \
         CREATE TABLE \"{schema}\".ledger (n bigint, token bigint, member text)"
    );
    sql.batch_execute(&tables).await.unwrap();
    until("the first write", async || count(&sql, &schema).await > 0).await;

    // One of each kind, and by each way, leads, and is stopped until another does.
    for slot in [0, 2, 4, 6, 8] {
        let what = format!("{} to lead", name(slot));
        until(&what, async || world.hand_over(slot, &sql).await).await;
        world.crew[slot].signal(Signal::STOP);
        until("another to lead", async || world.leader(&sql).await.is_some_and(|at| at != slot))
            .await;
        world.crew[slot].signal(Signal::CONT);
    }
    let began = Instant::now();
    for n in 1..=faults {
        println!("{n}: {}", world.hurt(&mut dice, &sql).await);
        let next = Instant::now() + Duration::from_millis(dice.between(200, 1_000));
        while Instant::now() < next {
            let_pass(Duration::from_millis(10), "the pace of the faults").await;
            world.go_on(Instant::now());
        }
    }
    // It heals: whatever was stopped goes on, and one of them leads and writes.
    let healed = Instant::now() + Duration::from_secs(3_600);
    world.go_on(healed);
    let before = count(&sql, &schema).await;
    until("a write after the faults", async || count(&sql, &schema).await > before + 5).await;
    for slot in 0..CREW.len() {
        world.end(slot).await;
    }

    let logs = Logs::read(world.logs.path());
    let all = format!("SELECT token, n FROM \"{schema}\".ledger ORDER BY n");
    let rows = sql.query(&all, &[]);
    let number = |row: &tokio_postgres::Row, at: usize| row.get::<_, i64>(at).try_into().unwrap();
    let ledger: Vec<(u64, u64)> =
        rows.await.unwrap().iter().map(|row| (number(row, 0), number(row, 1))).collect();
    let counter = count(&sql, &schema).await;
    println!(
        "seed {seed}: {faults} faults in {:?}, {} lives, {} reigns, {counter} writes, {} confirmed",
        began.elapsed(),
        world.lives,
        logs.led.len(),
        logs.confirmed.len()
    );
    for way in ["node-", "python-", "rust-", "-server-"] {
        println!(
            "  {way}: {} reigns",
            logs.led.iter().filter(|led| led.life.contains(way)).count()
        );
    }
    let mut wrong = logs.overlaps();
    wrong.extend(lost(&ledger, counter, &logs));
    assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}");
    assert!(logs.led.len() >= faults / 8, "too little happened");
    sql.batch_execute(&format!("DROP SCHEMA \"{schema}\" CASCADE")).await.unwrap();
}

/// Not a test by itself: a member of the run above.
#[tokio::test]
async fn a_member_in_rust() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let role: Vec<&str> = role.split('\n').collect();
    let [database, namespace, name, log] = role[..] else { panic!("{role:?}") };
    let mut ended =
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
    let member =
        Tenure::builder(database).namespace(namespace).id(format!("{name}#{}", std::process::id()));
    let member = member.ttl(TTL).wait_for_store(tenure_testkit::LIMIT).connect().await.unwrap();
    let log = PathBuf::from(log);
    tokio::select! {
        () = lead(&member, database, namespace, name, &log) => {}
        _ = ended.recv() => drop(member.shutdown().await),
    }
}

async fn lead(member: &Tenure, database: &str, namespace: &str, name: &str, log: &Path) {
    let election = member.election("jobs");
    let mut file = File::options().create(true).append(true).open(log).unwrap();
    loop {
        let Ok(leadership) = election.campaign().await else { return };
        let token = leadership.token();
        let config = format!("{database}?application_name={name}");
        let Ok((mut sql, connection)) = tokio_postgres::connect(&config, NoTls).await else {
            continue;
        };
        tokio::spawn(connection);
        loop {
            // The clock first: what is written down was so at that moment, or later.
            let at = clock_gettime(ClockId::Monotonic);
            let nanos = at.tv_sec * 1_000_000_000 + at.tv_nsec;
            if !leadership.is_current() || sql.is_closed() {
                break;
            }
            file.write_all(format!("L {token} {nanos}\n").as_bytes()).unwrap();
            tokio::select! {
                _ = leadership.stopping() => break,
                written = write(&mut sql, &leadership, namespace, name) => {
                    if let Ok(n) = written {
                        file.write_all(format!("C {token} {n}\n").as_bytes()).unwrap();
                    }
                }
            }
            let_pass(Duration::from_millis(4), "the pace of the samples").await;
        }
        drop(leadership.resign().await);
    }
}

async fn write(
    sql: &mut Client,
    leadership: &tenure::Leadership,
    namespace: &str,
    name: &str,
) -> Result<i64, Box<dyn std::error::Error>> {
    let mut tx = sql.transaction().await?;
    // A member that is stopped in here would keep all others from leading: its fence holds.
    tx.batch_execute("SET LOCAL idle_in_transaction_session_timeout = '1s'").await?;
    leadership.fence(&mut tx).await?;
    let row = tx.query_one(&format!("SELECT n FROM \"{namespace}\".counter"), &[]).await?;
    let n = row.get::<_, i64>(0) + 1;
    let_pass(Duration::from_millis(2), "a read and a write are apart").await;
    tx.execute(&format!("UPDATE \"{namespace}\".counter SET n = $1"), &[&n]).await?;
    let token = i64::try_from(leadership.token())?;
    let add = format!("INSERT INTO \"{namespace}\".ledger VALUES ($1, $2, $3)");
    tx.execute(&add, &[&n, &token, &name]).await?;
    tx.commit().await?;
    Ok(n)
}
