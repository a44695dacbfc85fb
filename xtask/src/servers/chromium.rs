//! Chromium, by which the dashboard's pages are tested, and what finds out how accessible they
//! are.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::cache::{Published, Registry};
use super::ports::free_port;
use super::{Running, Scratch, Server, install};
use crate::failure::{Doing, Outcome};

/// From start to the first answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Where the tests find the driver, and the script that looks at a page.
const URL: &str = "TENURE_TEST_CHROMEDRIVER_URL";
const AXE: &str = "TENURE_TEST_AXE";

const AXE_CORE: Published = Published {
    registry: Registry::Node,
    name: "axe-core",
    extra: "",
    version: "4.14.0",
    program: "node_modules/axe-core/axe.min.js",
};

/// What a page without a font of its own is set in, where it is installed: pictures of pages then
/// look as they do on people's machines.
const FONTS: &str = r#"<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>
<alias binding="strong"><family>system-ui</family><prefer><family>Inter</family></prefer></alias>
<alias binding="strong"><family>sans-serif</family><prefer><family>Inter</family></prefer></alias>
</fontconfig>"#;

/// The driver, which starts a browser for each test.
pub(crate) struct Chromium;

impl Server for Chromium {
    fn name(&self) -> &'static str {
        "chromium"
    }

    fn variable(&self) -> &'static str {
        URL
    }

    fn may_lack(&self) -> bool {
        true
    }

    fn provide(&self) -> Outcome {
        if !is_here("chromedriver") {
            install(&["chromium", "chromium-driver", "fonts-inter"])?;
        }
        AXE_CORE.provide()
    }

    fn start(&self, scratch: &Scratch) -> Outcome<Running> {
        let fonts = scratch.path().join(".config/fontconfig");
        fs::create_dir_all(&fonts).doing(|| format!("create {}", fonts.display()))?;
        fs::write(fonts.join("fonts.conf"), FONTS).doing(|| "choose the font of pages".into())?;
        let port = free_port()?;
        let mut command = Command::new("chromedriver");
        command.arg(format!("--port={port}")).current_dir(scratch.path());
        // What a browser leaves behind goes with the folder.
        command.env("TMPDIR", scratch.path()).env("HOME", scratch.path());
        let running = Running::spawn(command, &scratch.path().join("log"))?;
        let mut running = running
            .with_environment(URL, &format!("http://127.0.0.1:{port}"))
            .with_environment(AXE, &AXE_CORE.path().display().to_string());
        running.wait_until(PATIENCE, || is_ready(port))?;
        Ok(running)
    }
}

fn is_here(program: &str) -> bool {
    let mut asked = Command::new(program);
    asked.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    asked.status().is_ok_and(|status| status.success())
}

fn is_ready(port: u16) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        let line =
            format!("GET /status HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
        stream.write_all(line.as_bytes())?;
        // It leaves the connection open, whatever it is told.
        let mut said = [0; 1_000];
        let mut read = 0;
        while !said.contains(&b'{') || !said[..read].ends_with(b"}") {
            match stream.read(&mut said[read..])? {
                0 => break,
                some => read += some,
            }
        }
        Ok(String::from_utf8_lossy(&said[..read]).into_owned())
    };
    ask().is_ok_and(|said| said.contains("\"ready\":true"))
}
