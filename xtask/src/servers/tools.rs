//! Programs that tests start themselves: what makes requests from an OpenAPI document, and what
//! reads the rules of Prometheus.

use std::process::Command;

use super::cache::{Published, Registry};
use super::{Running, Scratch, Server};
use crate::failure::Outcome;

/// A program that is there while the tests run.
pub(crate) struct Tool {
    name: &'static str,
    /// Where tests find it.
    variable: &'static str,
    published: Published,
}

pub(crate) const ALL: [&dyn Server; 2] = [&SCHEMATHESIS, &PROMTOOL];

const SCHEMATHESIS: Tool = Tool {
    name: "schemathesis",
    variable: "TENURE_TEST_SCHEMATHESIS",
    published: Published {
        registry: Registry::Python,
        name: "schemathesis",
        extra: "",
        version: "4.32.5",
        program: "bin/st",
    },
};

const PROMTOOL: Tool = Tool {
    name: "promtool",
    variable: "TENURE_TEST_PROMTOOL",
    published: Published {
        registry: Registry::Debian,
        name: "prometheus",
        extra: "",
        version: "debian",
        program: "usr/bin/promtool",
    },
};

impl Server for Tool {
    fn name(&self) -> &'static str {
        self.name
    }

    fn variable(&self) -> &'static str {
        self.variable
    }

    fn may_lack(&self) -> bool {
        true
    }

    fn provide(&self) -> Outcome {
        self.published.provide()
    }

    /// A guard keeps a process; this one only waits.
    fn start(&self, scratch: &Scratch) -> Outcome<Running> {
        let mut waits = Command::new("sleep");
        waits.arg("infinity");
        let running = Running::spawn(waits, &scratch.path().join("log"))?;
        Ok(running.with_environment(self.variable, &self.published.path().display().to_string()))
    }
}
