//! Every kind of answer, over a real connection through each cloud's client: a
//! proxy before a real server answers in its place when told to.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::line::{Act, Fate, start};
use common::{BUCKET, Server, fresh_prefix};
use tenure_cas::{Expect, Loaded, Register, Swapped, Version};
use tenure_object::BucketStore;
use tenure_store::{Error, ErrorKind, Result};

const TIMEOUT: Duration = Duration::from_millis(800);
const CLOUDS: [Server; 3] = [Server::Moto, Server::Azurite, Server::FakeGcs];

/// A line on which every request meets what is set, if anything is.
#[derive(Default)]
struct Line {
    act: Mutex<Option<Act>>,
    /// Requests that met an act.
    met: AtomicU32,
}

impl Fate for Line {
    fn of(&self, _: &str) -> (Duration, Act) {
        let act = *self.act.lock().unwrap();
        self.met.fetch_add(u32::from(act.is_some()), Ordering::SeqCst);
        (Duration::ZERO, act.unwrap_or(Act::Pass))
    }
}

impl Line {
    async fn during<T>(&self, act: Act, request: impl Future<Output = T>) -> T {
        self.met.store(0, Ordering::SeqCst);
        *self.act.lock().unwrap() = Some(act);
        let answer = request.await;
        *self.act.lock().unwrap() = None;
        assert_eq!(self.met.load(Ordering::SeqCst), 1, "{act:?}: sent once, and never again");
        answer
    }
}

/// A bucket behind a proxy, with one object in it.
struct Place {
    line: Arc<Line>,
    register: Arc<dyn Register>,
    key: String,
    version: Version,
}

impl Place {
    async fn on(server: Server) -> Self {
        server.make_bucket().await;
        let line = Arc::<Line>::default();
        let endpoint = start(&server.endpoint(), line.clone()).await;
        let prefix = fresh_prefix();
        let options = server.options_at(&endpoint, BUCKET, &prefix).request_timeout(TIMEOUT);
        let register = BucketStore::open(options).await.unwrap().register();
        let key = format!("{prefix}/k");
        let made = register.swap(&key, Expect::Absent, b"1".to_vec()).await.unwrap();
        let Swapped::Stored(version) = made else { panic!("{made:?}") };
        Self { line, register, key, version }
    }

    async fn load(&self, act: Act) -> Result<Loaded> {
        self.line.during(act, self.register.load(&self.key, Some(&self.version))).await
    }

    async fn update(&self, act: Act) -> Result<Swapped> {
        let expect = Expect::Version(self.version.clone());
        self.line.during(act, self.register.swap(&self.key, expect, b"2".to_vec())).await
    }

    async fn create(&self, act: Act) -> Result<Swapped> {
        let other = format!("{}-other", self.key);
        self.line.during(act, self.register.swap(&other, Expect::Absent, b"3".to_vec())).await
    }
}

fn is(error: Error, kind: ErrorKind, unclear: bool) {
    assert_eq!((error.kind(), error.may_have_applied()), (kind, unclear), "{error}");
}

#[tokio::test]
async fn a_lost_race_is_a_conflict_in_every_cloud() {
    for server in CLOUDS {
        let place = Place::on(server).await;
        // The emulator of Google's does not remove by version; there a creation
        // that conflicts looks whether it met an emptied object.
        let exists = match server {
            Server::Azurite => Some(Act::Say(409, "BlobAlreadyExists")),
            Server::Moto => Some(Act::Say(409, "ConditionalRequestConflict")),
            _ => None,
        };
        if let Some(exists) = exists {
            assert_eq!(place.create(exists).await.unwrap(), Swapped::Conflict, "{server:?}");
        }
        let changed = Act::Say(412, "ConditionNotMet");
        assert_eq!(place.update(changed).await.unwrap(), Swapped::Conflict, "{server:?}");
        let gone = Act::Say(404, "NoSuchKey");
        assert_eq!(place.update(gone).await.unwrap(), Swapped::Conflict, "{server:?}");
        assert_eq!(place.load(gone).await.unwrap(), Loaded::Absent, "{server:?}");
        assert_eq!(place.load(Act::Say(304, "")).await.unwrap(), Loaded::Unchanged);
    }
}

#[tokio::test]
async fn a_vanished_bucket_is_never_an_absent_object() {
    for (server, code) in [
        (Server::Moto, "NoSuchBucket"),
        (Server::Azurite, "ContainerNotFound"),
        (Server::FakeGcs, "json:The specified bucket does not exist."),
    ] {
        let place = Place::on(server).await;
        is(place.load(Act::Say(404, code)).await.unwrap_err(), ErrorKind::Denied, false);
        is(place.update(Act::Say(404, code)).await.unwrap_err(), ErrorKind::Denied, false);
    }
}

#[tokio::test]
async fn refusals_changed_nothing_and_say_what_to_do() {
    for server in CLOUDS {
        let place = Place::on(server).await;
        for (status, code, kind) in [
            (503, "SlowDown", ErrorKind::Busy),
            (429, "json:rateLimitExceeded", ErrorKind::Busy),
            (403, "AccessDenied", ErrorKind::Denied),
            (401, "json:authError", ErrorKind::Denied),
            (400, "ExpiredToken", ErrorKind::Denied),
            (307, "TemporaryRedirect", ErrorKind::Invalid),
            (501, "NotImplemented", ErrorKind::Invalid),
        ] {
            is(place.update(Act::Say(status, code)).await.unwrap_err(), kind, false);
            is(place.load(Act::Say(status, code)).await.unwrap_err(), kind, false);
        }
        // Nothing of all that was applied.
        let found = place.register.load(&place.key, None).await.unwrap();
        assert!(matches!(found, Loaded::Found { bytes, .. } if bytes == b"1"), "{server:?}");
    }
}

/// E2: a doubt is told as one; and it is not tried a second time below.
#[tokio::test]
async fn an_unclear_write_says_that_it_may_have_been_applied() {
    for server in CLOUDS {
        for (act, kind) in [
            (Act::Say(500, "InternalError"), ErrorKind::Unreachable),
            (Act::Say(503, ""), ErrorKind::Unreachable),
            (Act::CutBefore, ErrorKind::Unreachable),
            (Act::CutAfter, ErrorKind::Unreachable),
            (Act::Hang, ErrorKind::Timeout),
        ] {
            let place = Place::on(server).await;
            is(place.load(act).await.unwrap_err(), kind, false);
            is(place.update(act).await.unwrap_err(), kind, true);
            is(place.create(act).await.unwrap_err(), kind, true);
            // And so it was, or was not.
            let found = place.register.load(&place.key, None).await.unwrap();
            let Loaded::Found { bytes, .. } = found else { panic!("{server:?}: {found:?}") };
            let applied = matches!(act, Act::CutAfter | Act::Hang);
            assert_eq!(bytes == b"2", applied, "{server:?} {act:?}");
        }
    }
}

#[tokio::test]
async fn a_removal_and_a_listing_are_read_as_carefully() {
    for server in CLOUDS {
        let place = Place::on(server).await;
        let remove =
            |act| place.line.during(act, place.register.remove(&place.key, &place.version));
        let slow = Act::Say(503, "SlowDown");
        is(remove(slow).await.unwrap_err(), ErrorKind::Busy, false);
        is(remove(Act::CutBefore).await.unwrap_err(), ErrorKind::Unreachable, true);
        let list = |act| place.line.during(act, place.register.list("t"));
        is(list(slow).await.unwrap_err(), ErrorKind::Busy, false);
        is(list(Act::Hang).await.unwrap_err(), ErrorKind::Timeout, false);
        is(list(Act::Say(403, "AccessDenied")).await.unwrap_err(), ErrorKind::Denied, false);
    }
}
