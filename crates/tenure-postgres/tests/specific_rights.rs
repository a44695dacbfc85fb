//! Who can do what: with real roles, on a real server.

#![allow(clippy::unwrap_used)]

mod common;

use common::words::*;
use common::{Place, admin, connect, url};
use tenure_core::Beat;
use tenure_postgres::{PostgresOptions, PostgresStore};
use tenure_store::{Error, ErrorKind, Store};
use tokio_postgres::Client;

/// Roles of one test, named after it, in a database of its own.
struct Stage {
    name: String,
    server: String,
}

impl Stage {
    /// A database with these roles; what is given as text is done as superuser.
    async fn new(roles: &[&str], then: &str) -> Self {
        let name = Place::new().schema;
        let server = url().rsplit_once('/').unwrap().0.to_owned();
        let stage = Self { name, server };
        let all = admin().await;
        all.batch_execute(&format!("CREATE DATABASE {}", stage.name)).await.unwrap();
        for role in roles {
            all.batch_execute(&stage.put(&format!("CREATE ROLE {{{role}}} LOGIN"))).await.unwrap();
        }
        stage.as_superuser().await.batch_execute(&stage.put(then)).await.unwrap();
        stage
    }

    fn role(&self, role: &str) -> String {
        format!("{role}_{}", self.name)
    }

    /// Puts in the names: `{db}`, and `{x}` for a role.
    fn put(&self, text: &str) -> String {
        let mut text = text.replace("{db}", &self.name);
        for role in ["owner", "guest", "installer", "squatter", "tenant"] {
            text = text.replace(&format!("{{{role}}}"), &self.role(role));
        }
        text
    }

    fn url(&self, role: &str) -> String {
        let server = self.server.replace("postgres@", &format!("{}@", self.role(role)));
        format!("{server}/{}", self.name)
    }

    async fn as_superuser(&self) -> Client {
        connect(&format!("{}/{}", self.server, self.name)).await
    }

    async fn client(&self, role: &str) -> Client {
        connect(&self.url(role)).await
    }

    async fn open(&self, role: &str) -> Result<PostgresStore, Error> {
        PostgresStore::open(PostgresOptions::from_url(&self.url(role)).unwrap()).await
    }

    async fn open_as_superuser(&self, query: &str) -> Result<PostgresStore, Error> {
        let url = format!("{}/{}?{query}", self.server, self.name);
        PostgresStore::open(PostgresOptions::from_url(&url).unwrap()).await
    }

    async fn end(self, roles: &[&str]) {
        let all = admin().await;
        all.batch_execute(&format!("DROP DATABASE {} WITH (FORCE)", self.name)).await.unwrap();
        for role in roles {
            all.batch_execute(&format!("DROP ROLE {}", self.role(role))).await.unwrap();
        }
    }
}

fn denied(opened: Result<PostgresStore, Error>, whose: &str) -> String {
    let error = opened.expect_err("it is refused");
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(!error.may_have_applied(), "{error}");
    assert!(error.to_string().contains(whose), "{error}");
    error.to_string()
}

/// P4: a role that may create in the database makes the schema first. Neither a
/// superuser nor a role that would install puts anything in it, or calls anything there.
#[tokio::test(flavor = "multi_thread")]
async fn a_squatted_schema_is_neither_called_nor_installed_into() {
    let roles = ["squatter", "installer"];
    let grant = "GRANT CREATE ON DATABASE {db} TO {squatter}, {installer}";
    let stage = Stage::new(&roles, grant).await;
    let squatter = stage.client("squatter").await;
    squatter
        .batch_execute("CREATE SCHEMA tenure; GRANT ALL ON SCHEMA tenure TO PUBLIC")
        .await
        .unwrap();
    let said = denied(stage.open_as_superuser("").await, &stage.role("squatter"));
    assert!(said.contains("nothing was called") && said.contains("owner="), "{said}");
    denied(stage.open("installer").await, &stage.role("squatter"));
    let inside = "SELECT count(*) FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace \
                  WHERE n.nspname = 'tenure'";
    let installed: i64 = squatter.query_one(inside, &[]).await.unwrap().get(0);
    assert_eq!(installed, 0);

    // One that answers like ours, and takes the caller's rights.
    let trap = "CREATE TABLE public.caught (who text)";
    stage.as_superuser().await.batch_execute(trap).await.unwrap();
    let trap = stage.put(
        "CREATE FUNCTION tenure.version() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN \
         ALTER ROLE {squatter} SUPERUSER; RETURN 1; END $$",
    );
    squatter.batch_execute(&trap).await.unwrap();
    denied(stage.open_as_superuser("").await, &stage.role("squatter"));
    denied(stage.open("installer").await, &stage.role("squatter"));
    let role = stage.role("squatter");
    let all = admin().await;
    let taken = all.query_one("SELECT rolsuper FROM pg_roles WHERE rolname = $1", &[&role]).await;
    assert!(!taken.unwrap().get::<_, bool>(0), "the squatter is no superuser");
    stage.end(&roles).await;
}

/// P4: and so is one whose owner is trusted, if something in it is a stranger's, or a
/// stranger may put something in it.
#[tokio::test(flavor = "multi_thread")]
async fn a_strangers_function_in_a_trusted_schema_is_not_called() {
    let roles = ["squatter", "installer"];
    let stage = Stage::new(&roles, "GRANT CREATE ON DATABASE {db} TO {installer}").await;
    drop(stage.open("installer").await.unwrap());
    let its_own = stage.client("installer").await;
    let may = stage.put("GRANT USAGE, CREATE ON SCHEMA tenure TO {squatter}");
    its_own.batch_execute(&may).await.unwrap();
    let said = denied(stage.open("installer").await, &stage.role("squatter"));
    assert!(said.contains("the right to create"), "{said}");
    let trap = "CREATE FUNCTION tenure.version(integer DEFAULT 1) RETURNS integer LANGUAGE sql \
                AS 'SELECT 1'";
    stage.client("squatter").await.batch_execute(trap).await.unwrap();
    let no_more = stage.put("REVOKE CREATE ON SCHEMA tenure FROM {squatter}");
    its_own.batch_execute(&no_more).await.unwrap();
    let said = denied(stage.open("installer").await, &stage.role("squatter"));
    assert!(said.contains("the function version"), "{said}");
    its_own.batch_execute("DROP FUNCTION tenure.version(integer)").await.unwrap();
    leader(&stage.open("installer").await.unwrap(), "a", 1, "e").await;
    stage.end(&roles).await;
}

/// P4: the set-up that is recommended: a role that owns the schema and does nothing else,
/// and members that may call the verbs. Who has rights worth taking names the owner.
#[tokio::test(flavor = "multi_thread")]
async fn an_owner_lets_members_in_and_the_mighty_name_it() {
    let roles = ["owner", "guest", "installer", "tenant"];
    let then = "GRANT CREATE ON DATABASE {db} TO {owner}, {installer}; GRANT {owner} TO {tenant}";
    let stage = Stage::new(&roles, then).await;
    let first = stage.open("owner").await.unwrap();
    let let_in = stage.put("SELECT tenure.grant_to('{guest}'), tenure.grant_to('{installer}')");
    stage.client("owner").await.batch_execute(&let_in).await.unwrap();
    let guest = stage.open("guest").await.unwrap();
    assert_eq!(leader(&guest, "a", 1, "e").await.number, view(&first, "e").await.number);
    // A member of the owner's role has its rights already.
    joined(&stage.open("tenant").await.unwrap(), "b", 2).await;

    for refused in [stage.open("installer").await, stage.open_as_superuser("").await] {
        denied(refused, &stage.role("owner"));
    }
    let named = format!("owner={}", stage.role("owner"));
    assert_eq!(view(&stage.open_as_superuser(&named).await.unwrap(), "e").await.number.get(), 1);
    let its_url = format!("{}?{named}", stage.url("installer"));
    let installer = PostgresStore::open(PostgresOptions::from_url(&its_url).unwrap()).await;
    joined(&installer.unwrap(), "c", 3).await;
    // A role that has nothing to lose may still say whose it is to be.
    let its_url = format!("{}?owner={}", stage.url("guest"), stage.role("tenant"));
    let guest = PostgresStore::open(PostgresOptions::from_url(&its_url).unwrap()).await;
    denied(guest, &stage.role("owner"));
    // A role that was only put on protects no session.
    let its_url = format!("{}?options=-c%20role%3D{}", stage.url("tenant"), stage.role("owner"));
    drop(PostgresStore::open(PostgresOptions::from_url(&its_url).unwrap()).await.unwrap());
    let put_on = format!("options=-c%20role%3D{}", stage.role("guest"));
    denied(stage.open_as_superuser(&put_on).await, &stage.role("owner"));
    stage.end(&roles).await;
}

/// P4: the owner of the database is trusted by every role that may create in it.
#[tokio::test(flavor = "multi_thread")]
async fn the_owner_of_the_database_is_trusted_in_it() {
    let roles = ["owner", "installer"];
    let then = "ALTER DATABASE {db} OWNER TO {owner}; GRANT CREATE ON DATABASE {db} TO {installer}";
    let stage = Stage::new(&roles, then).await;
    drop(stage.open("owner").await.unwrap());
    let let_in = stage.put("SELECT tenure.grant_to('{installer}')");
    stage.client("owner").await.batch_execute(&let_in).await.unwrap();
    joined(&stage.open("installer").await.unwrap(), "a", 1).await;
    denied(stage.open_as_superuser("").await, &stage.role("owner"));
    stage.end(&roles).await;
}

/// P14: a role that may not create a schema that is not there is told so, and not of a
/// function that is not there either.
#[tokio::test]
async fn who_may_not_create_the_schema_is_told_who_may() {
    let roles = ["guest"];
    let stage = Stage::new(&roles, "").await;
    let error = stage.open("guest").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    let said = error.to_string();
    assert!(said.contains("GRANT CREATE ON DATABASE") && !said.contains("grant_to"), "{said}");
    stage.end(&roles).await;
}

/// P13: a role that may only call the verbs beats by a function with one statement in it,
/// from its second heartbeat on, and M1 holds there too.
#[tokio::test(flavor = "multi_thread")]
async fn a_guests_heartbeat_is_one_lean_call_and_revives_no_member() {
    let roles = ["guest"];
    let stage = Stage::new(&roles, "").await;
    let owner = stage.open_as_superuser("").await.unwrap();
    let all = stage.as_superuser().await;
    all.batch_execute(&stage.put("SELECT tenure.grant_to('{guest}')")).await.unwrap();
    let guest = stage.open("guest").await.unwrap();
    let me = joined(&guest, "a", 1).await;
    for _ in 0..3 {
        let alive = guest.heartbeat(&ns(), &beat(&me)).await.unwrap();
        assert!(matches!(alive, Beat::Alive { .. }), "{alive:?}");
    }
    let asked = "SELECT query FROM pg_stat_activity WHERE usename = $1 AND query LIKE '%_beat%'";
    let role = stage.role("guest");
    assert_eq!(all.query(asked, &[&role]).await.unwrap().len(), 1, "it beats by the function");

    // A ttl that has run out is not begun anew, and what changed is told.
    let gone = "UPDATE tenure.members SET expires_at = clock_timestamp() - interval '1 second'";
    all.batch_execute(gone).await.unwrap();
    let ended = guest.heartbeat(&ns(), &beat(&me)).await.unwrap();
    assert!(matches!(ended, Beat::Ended { superseded: false }), "{ended:?}");
    let me = joined(&guest, "b", 2).await;
    guest.heartbeat(&ns(), &beat(&me)).await.unwrap();
    all.batch_execute("UPDATE tenure.members SET condemned = true WHERE id = 'b'").await.unwrap();
    let ended = guest.heartbeat(&ns(), &beat(&me)).await.unwrap();
    assert!(matches!(ended, Beat::Ended { superseded: false }), "{ended:?}");
    let me = joined(&guest, "c", 3).await;
    guest.heartbeat(&ns(), &beat(&me)).await.unwrap();
    won(guest.claim(&ns(), &claim(&me, "e", 1)).await.unwrap());
    let held = guest.heartbeat(&ns(), &beat(&me)).await.unwrap();
    assert!(matches!(held, Beat::Alive { holds: Some(1), .. }), "{held:?}");
    drop(owner);
    stage.end(&roles).await;
}

/// P13: what that function is made of cannot be replaced by its caller, although it pins
/// no search_path.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_puts_nothing_of_its_own_into_the_lean_heartbeat() {
    let roles = ["guest"];
    let stage = Stage::new(&roles, "GRANT CREATE ON DATABASE {db} TO {guest}").await;
    let owner = stage.open_as_superuser("").await.unwrap();
    let me = joined(&owner, "a", 1).await;
    owner.heartbeat(&ns(), &beat(&me)).await.unwrap();
    let all = stage.as_superuser().await;
    all.batch_execute(&stage.put("SELECT tenure.grant_to('{guest}')")).await.unwrap();
    let handle = all.query_one("SELECT handle FROM tenure.members", &[]).await.unwrap();
    let handle: i64 = handle.get(0);
    let guest = stage.client("guest").await;
    // Every operator and function of those names, for the very types.
    guest
        .batch_execute(
            "CREATE SCHEMA evil; SET search_path = evil, pg_catalog, pg_temp; \
             CREATE FUNCTION evil.no(bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS \
                 $$ BEGIN RAISE 'caught %', current_user; END $$; \
             CREATE FUNCTION evil.no(integer, integer) RETURNS boolean LANGUAGE plpgsql AS \
                 $$ BEGIN RAISE 'caught %', current_user; END $$; \
             CREATE FUNCTION evil.no(text, text) RETURNS boolean LANGUAGE plpgsql AS \
                 $$ BEGIN RAISE 'caught %', current_user; END $$; \
             CREATE FUNCTION evil.no(timestamptz, timestamptz) RETURNS boolean LANGUAGE plpgsql AS \
                 $$ BEGIN RAISE 'caught %', current_user; END $$; \
             CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS \
                 $$ BEGIN RAISE 'caught %', current_user; END $$; \
             CREATE FUNCTION evil.current_setting(text) RETURNS text LANGUAGE plpgsql AS \
                 $$ BEGIN RAISE 'caught %', current_user; END $$; \
             CREATE OPERATOR evil.= (FUNCTION = evil.no, LEFTARG = bigint, RIGHTARG = bigint); \
             CREATE OPERATOR evil.= (FUNCTION = evil.no, LEFTARG = integer, RIGHTARG = integer); \
             CREATE OPERATOR evil.<> (FUNCTION = evil.no, LEFTARG = text, RIGHTARG = text); \
             CREATE OPERATOR evil.> (FUNCTION = evil.no, LEFTARG = bigint, RIGHTARG = bigint); \
             CREATE OPERATOR evil.> \
                 (FUNCTION = evil.no, LEFTARG = timestamptz, RIGHTARG = timestamptz)",
        )
        .await
        .unwrap();
    let caught = guest.query_one("SELECT 1::bigint = 1::bigint", &[]).await.unwrap_err();
    assert!(caught.to_string().contains("db error"), "the trap works: {caught}");
    let renewed = guest.query_one("SELECT tenure._beat($1, 60000000, 0, 0)", &[&handle]).await;
    assert!(renewed.unwrap().get::<_, bool>(0), "it is renewed by the owner's own statement");
    drop(owner);
    stage.end(&roles).await;
}

/// A role that may connect, and nothing else: it can hold up elections and learn of them,
/// which is said in `docs/security.md`, and decides nothing.
#[tokio::test(flavor = "multi_thread")]
async fn who_may_only_connect_delays_and_decides_nothing() {
    let roles = ["guest"];
    let stage = Stage::new(&roles, "").await;
    let owner = stage.open_as_superuser("request_timeout_ms=4000").await.unwrap();
    let term = leader(&owner, "a", 1, "e").await;
    owner.heartbeat(&ns(), &beat(&term.member)).await.unwrap();
    let guest = stage.client("guest").await;
    for denied in [
        "SELECT FROM tenure.members",
        "SELECT tenure.read('default')",
        "SELECT tenure.evict('default', 'a', true)",
        "SELECT tenure._beat(1, 1, 1, 1)",
        "CREATE SCHEMA other",
    ] {
        let refused = guest.batch_execute(denied).await.expect_err(denied);
        assert_eq!(refused.code().unwrap().code(), "42501", "{denied}");
    }
    let forged = "LISTEN tenure; SELECT pg_notify('tenure', E'default\\n9\\nv\\te')";
    guest.batch_execute(forged).await.unwrap();
    let hold = "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended(E'tenure\\tdefault', 0))";
    guest.batch_execute(hold).await.unwrap();
    let other = member("b", 2);
    let busy = owner.join(&ns(), &join(&other)).await.unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Busy, "{busy}");
    assert!(busy.to_string().contains("namespace"), "{busy}");
    let alive = owner.heartbeat(&ns(), &beat(&term.member)).await.unwrap();
    assert!(matches!(alive, Beat::Alive { .. }), "{alive:?}");
    guest.batch_execute("ROLLBACK").await.unwrap();
    owner.join(&ns(), &join(&other)).await.unwrap();
    assert_eq!(view(&owner, "e").await.number, term.number);
    stage.end(&roles).await;
}

/// A role that was let in reads everything and may steer all members: there are no rights
/// inside a schema.
#[tokio::test(flavor = "multi_thread")]
async fn who_may_call_the_verbs_may_steer_all_members() {
    let roles = ["guest"];
    let stage = Stage::new(&roles, "").await;
    let owner = stage.open_as_superuser("").await.unwrap();
    let term = leader(&owner, "a", 1, "e").await;
    let all = stage.as_superuser().await;
    all.batch_execute(&stage.put("SELECT tenure.grant_to('{guest}')")).await.unwrap();
    let guest = stage.client("guest").await;
    let life = "SELECT tenure.read('default')->'members'->0->>'life'";
    let life: String = guest.query_one(life, &[]).await.unwrap().get(0);
    let renew = format!("SELECT outcome FROM tenure.heartbeat('default', 'a', '{life}', 60000000)");
    let renewed: String = guest.query_one(&renew, &[]).await.unwrap().get(0);
    assert_eq!(renewed, "alive");
    let evict = "SELECT outcome FROM tenure.evict('default', 'a', true)";
    let evicted: String = guest.query_one(evict, &[]).await.unwrap().get(0);
    assert_eq!(evicted, "done");
    let ended = owner.heartbeat(&ns(), &beat(&term.member)).await.unwrap();
    assert!(matches!(ended, Beat::Ended { .. }), "{ended:?}");
    let letting_in = stage.put("SELECT tenure.grant_to('{guest}')");
    let refused = guest.batch_execute(&letting_in).await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "42501");
    stage.end(&roles).await;
}

/// P14: a member's row that another transaction holds is not told as the namespace, which is free.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_is_held_is_not_told_as_the_namespace() {
    let place = Place::new();
    let options = place.options().request_timeout(std::time::Duration::from_secs(4));
    let store = place.open_with(options).await;
    let me = joined(&store, "a", 1).await;
    let holder = admin().await;
    let hold = format!("BEGIN; UPDATE {}.members SET attention = attention", place.schema);
    holder.batch_execute(&hold).await.unwrap();
    let busy = store.heartbeat(&ns(), &beat(&me)).await.unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Busy, "{busy}");
    let said = busy.to_string();
    assert!(said.contains("the row") && !said.contains("namespace"), "{said}");
}
