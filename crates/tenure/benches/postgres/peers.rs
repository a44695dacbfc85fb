//! What the peers do, written afresh from what they document.
//!
//! - **River**: one row for a leader, in an unlogged table. A candidate tries
//!   every 5 s and up to 1 s of jitter: begin, delete what is expired, insert
//!   unless there is a row, commit. The leader renews its row; its ttl is the
//!   interval and 10 s. A resignation deletes the row and notifies, upon which a
//!   follower sleeps 0 to 50 ms and tries.
//! - **gemstone_utils.election**: `elect` touches the candidate's row, locks the
//!   leader's row, and renews the lease, in a transaction.
//! - **The recipe**: `try_become_leader`, `leader_heartbeat` and `step_down` in
//!   plpgsql over a row for each service.

use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_postgres::{AsyncMessage, Client, NoTls, Statement};

use crate::Outcome;

/// The peers' tables and functions, and the floor's.
pub(crate) const TABLES: &str = "
    CREATE TABLE floor (id bigint PRIMARY KEY, at timestamptz, note text) WITH (fillfactor = 50);
    INSERT INTO floor VALUES (1, now(), 'x');

    CREATE UNLOGGED TABLE river (name text PRIMARY KEY, leader_id text NOT NULL,
        elected_at timestamptz NOT NULL, expires_at timestamptz NOT NULL);
    -- What it renews, with the constraints that its migrations put on it.
    CREATE UNLOGGED TABLE river_leader (elected_at timestamptz NOT NULL,
        expires_at timestamptz NOT NULL, leader_id text NOT NULL,
        name text PRIMARY KEY DEFAULT 'default' CHECK (name = 'default'),
        CONSTRAINT name_length CHECK (name = 'default'),
        CONSTRAINT leader_id_length
            CHECK (char_length(leader_id) > 0 AND char_length(leader_id) < 128));
    CREATE TABLE river_leader_durable (LIKE river_leader INCLUDING ALL);
    INSERT INTO river_leader VALUES ('2026-01-01', now() + interval '1 day', 'me');
    INSERT INTO river_leader_durable SELECT * FROM river_leader;

    CREATE TABLE gemstone_candidate (ns text, candidate_id text, last_heartbeat_at timestamptz,
        expires_at timestamptz, PRIMARY KEY (ns, candidate_id));
    CREATE TABLE gemstone_leader (ns text PRIMARY KEY, leader_id text,
        lease_expires_at timestamptz, updated_at timestamptz);
    INSERT INTO gemstone_candidate VALUES ('default', 'me', now(), now());
    INSERT INTO gemstone_leader VALUES ('default', 'me', now() + interval '1 day', now());

    CREATE TABLE recipe (service text PRIMARY KEY, leader text NOT NULL, term integer NOT NULL,
        last_heartbeat timestamptz NOT NULL);
    CREATE FUNCTION try_become_leader(who text, me text, timeout_s integer) RETURNS boolean
    LANGUAGE plpgsql AS $$
    DECLARE
        present recipe%ROWTYPE;
    BEGIN
        SELECT * INTO present FROM recipe WHERE service = who FOR UPDATE;
        IF NOT FOUND THEN
            INSERT INTO recipe VALUES (who, me, 1, now());
            RETURN true;
        END IF;
        IF present.leader <> me
           AND present.last_heartbeat >= now() - timeout_s * interval '1 second' THEN
            RETURN false;
        END IF;
        UPDATE recipe SET leader = me, last_heartbeat = now(),
            term = term + CASE WHEN present.leader = me THEN 0 ELSE 1 END WHERE service = who;
        RETURN true;
    END $$;
    CREATE FUNCTION leader_heartbeat(who text, me text) RETURNS boolean LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE recipe SET last_heartbeat = now() WHERE service = who AND leader = me;
        RETURN FOUND;
    END $$;
    CREATE FUNCTION step_down(who text, me text) RETURNS boolean LANGUAGE plpgsql AS $$
    BEGIN
        DELETE FROM recipe WHERE service = who AND leader = me;
        RETURN FOUND;
    END $$;
";

/// The bare update that everything durable is measured against.
pub(crate) const FLOOR: &str = "UPDATE floor SET at = clock_timestamp() WHERE id = $1";

/// River's renewal in one statement, of a table by name. The table has one row,
/// and the statement does not name its key.
pub(crate) fn river_renewal(table: &str) -> String {
    format!(
        "UPDATE {table} SET expires_at = now() + make_interval(secs => 15) \
         WHERE elected_at = $1::text::timestamptz AND expires_at >= now() AND leader_id = $2 \
         RETURNING elected_at, expires_at, leader_id, name"
    )
}

/// gemstone's `elect` by the present leader.
pub(crate) struct Gemstone {
    touch: Statement,
    lock: Statement,
    renew: Statement,
}

impl Gemstone {
    pub(crate) async fn prepare(client: &Client) -> Outcome<Self> {
        let touch = "UPDATE gemstone_candidate SET last_heartbeat_at = now(), \
                     expires_at = now() + interval '60 s' \
                     WHERE ns = 'default' AND candidate_id = 'me'";
        let lock = "SELECT leader_id, lease_expires_at FROM gemstone_leader \
                    WHERE ns = 'default' FOR UPDATE";
        let renew = "UPDATE gemstone_leader SET lease_expires_at = now() + interval '60 s', \
                     updated_at = now() WHERE ns = 'default'";
        Ok(Self {
            touch: client.prepare(touch).await?,
            lock: client.prepare(lock).await?,
            renew: client.prepare(renew).await?,
        })
    }

    pub(crate) async fn elect(&self, client: &Client) -> Outcome {
        client.batch_execute("BEGIN").await?;
        client.execute(&self.touch, &[]).await?;
        client.query_one(&self.lock, &[]).await?;
        client.execute(&self.renew, &[]).await?;
        client.batch_execute("COMMIT").await?;
        Ok(())
    }
}

/// A candidate that follows River's protocol, with its times scaled to a ttl.
pub(crate) struct River {
    client: Client,
    _listener: Client,
    resignations: UnboundedReceiver<()>,
    name: String,
    me: String,
    ttl: Duration,
    expire: Statement,
    elect: Statement,
    renew: Statement,
    resign: Statement,
}

impl River {
    pub(crate) async fn connect(url: &str, name: &str, ttl: Duration) -> Outcome<Self> {
        let client = crate::server::connect(url).await?;
        let (listener, resignations) = listen(url, "river_resigned").await?;
        let expire = "DELETE FROM river WHERE name = $1 AND expires_at < now()";
        let elect = "INSERT INTO river (name, leader_id, elected_at, expires_at) \
                     VALUES ($1, $2, now(), now() + $3 * interval '1 microsecond') \
                     ON CONFLICT (name) DO NOTHING";
        let renew = "UPDATE river SET expires_at = now() + $3 * interval '1 microsecond' \
                     WHERE name = $1 AND leader_id = $2 AND expires_at >= now()";
        let resign = "WITH held AS (SELECT name FROM river WHERE name = $1 AND leader_id = $2 \
                          FOR UPDATE), \
                      told AS (SELECT name, pg_notify('river_resigned', name) FROM held) \
                      DELETE FROM river USING told WHERE river.name = told.name";
        Ok(Self {
            expire: client.prepare(expire).await?,
            elect: client.prepare(elect).await?,
            renew: client.prepare(renew).await?,
            resign: client.prepare(resign).await?,
            me: format!("p{}", std::process::id()),
            name: name.to_owned(),
            client,
            _listener: listener,
            resignations,
            ttl,
        })
    }

    /// A third of the ttl, as 5 s are of 15 s.
    pub(crate) fn interval(&self) -> Duration {
        self.ttl / 3
    }

    fn micros(&self) -> f64 {
        self.ttl.as_secs_f64() * 1e6
    }

    /// One attempt: four round trips.
    pub(crate) async fn attempt(&self) -> Outcome<bool> {
        self.client.batch_execute("BEGIN").await?;
        self.client.execute(&self.expire, &[&self.name]).await?;
        let params: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [&self.name, &self.me, &self.micros()];
        let won = self.client.execute(&self.elect, &params).await?;
        self.client.batch_execute("COMMIT").await?;
        Ok(won == 1)
    }

    /// Waits for the next attempt: the interval and its jitter, or a resignation
    /// and its.
    pub(crate) async fn pause(&mut self) -> Outcome {
        let interval = self.interval() + (self.ttl / 15).mul_f64(dice()?);
        tokio::select! {
            _ = self.resignations.recv() => {
                tokio::time::sleep(Duration::from_millis(50).mul_f64(dice()?)).await;
            }
            () = tokio::time::sleep(interval) => {}
        }
        Ok(())
    }

    pub(crate) async fn renew(&self) -> Outcome<bool> {
        let params: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [&self.name, &self.me, &self.micros()];
        Ok(self.client.execute(&self.renew, &params).await? == 1)
    }

    pub(crate) async fn resign(&mut self) -> Outcome {
        self.client.execute(&self.resign, &[&self.name, &self.me]).await?;
        // Its own resignation is none of its business.
        let own = tokio::time::timeout(Duration::from_secs(1), self.resignations.recv());
        own.await.map(drop).map_err(|_| "River's own notification did not arrive".into())
    }
}

/// A connection that listens, and what arrives on it.
pub(crate) async fn listen(url: &str, channel: &str) -> Outcome<(Client, UnboundedReceiver<()>)> {
    let (client, mut connection) = tokio_postgres::connect(url, NoTls).await?;
    let (heard, hears) = unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = std::future::poll_fn(|cx| connection.poll_message(cx)).await {
            if matches!(message, AsyncMessage::Notification(_)) && heard.send(()).is_err() {
                return;
            }
        }
    });
    client.batch_execute(&format!("LISTEN {channel}")).await?;
    Ok((client, hears))
}

/// The first so many numbers, in any order.
pub(crate) fn shuffled(count: usize) -> Outcome<Vec<usize>> {
    let mut all: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        all.swap(last, ((dice()? * (last + 1) as f64) as usize).min(last));
    }
    Ok(all)
}

/// From zero to one.
pub(crate) fn dice() -> Outcome<f64> {
    Ok(f64::from(getrandom::u32()?) / f64::from(u32::MAX))
}
