//! The libraries whose cluster clients are tried, the programs that use them
//! (`xtask/clients`), and what brings them here: pip, npm, Go's modules and Maven, each with the
//! versions that the files beside the programs pin.

use crate::process::{run, which};
use crate::{install, project};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One library, by the name under which its results are kept.
pub(super) struct Library {
    pub(super) name: &'static str,
    /// What has to be on the machine, and the Debian packages that bring it.
    needs: &'static [(&'static str, &'static str)],
    /// Installs it, and answers how its program is started.
    install: fn(&Path) -> Result<Command>,
}

const JAVA: &[(&str, &str)] = &[("javac", "default-jdk-headless"), ("mvn", "maven")];

pub(super) const LIBRARIES: [Library; 5] = [
    Library {
        name: "redis-py",
        needs: &[("python3", "python3-venv")],
        install: redis_py,
    },
    Library {
        name: "ioredis",
        needs: &[("node", "nodejs"), ("npm", "npm")],
        install: ioredis,
    },
    Library {
        name: "go-redis",
        needs: &[("go", "golang")],
        install: go_redis,
    },
    Library {
        name: "jedis",
        needs: JAVA,
        install: |home| java(home, "jedis"),
    },
    Library {
        name: "lettuce",
        needs: JAVA,
        install: |home| java(home, "lettuce"),
    },
];

impl Library {
    /// How its program is started; an error tells why it cannot be.
    pub(super) fn ready(&self) -> Result<Command> {
        let missing = self
            .needs
            .iter()
            .find(|(program, _)| which(program).is_none());
        if let Some((program, package)) = missing {
            bail!("no {program}: apt-get install {package}");
        }
        let home = project::third_party().join("cluster-clients");
        fs::create_dir_all(&home)?;
        (self.install)(&home).with_context(|| format!("{} cannot be installed", self.name))
    }
}

fn sources(language: &str) -> PathBuf {
    project::root().join("xtask/clients").join(language)
}

fn redis_py(_home: &Path) -> Result<Command> {
    let mut command = Command::new(install::applications()?);
    command
        .arg(sources("python").join("redis_py.py"))
        .env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(command)
}

/// Programs of Node look for packages in the folders above them: it is copied to its own.
fn ioredis(home: &Path) -> Result<Command> {
    let home = home.join("node");
    fs::create_dir_all(&home)?;
    for name in ["package.json", "package-lock.json", "ioredis.mjs"] {
        fs::copy(sources("node").join(name), home.join(name))?;
    }
    run(Command::new("npm").current_dir(&home).args([
        "ci",
        "--silent",
        "--no-audit",
        "--no-fund",
    ]))?;
    let mut command = Command::new("node");
    command.arg(home.join("ioredis.mjs"));
    Ok(command)
}

fn go_redis(home: &Path) -> Result<Command> {
    let program = home.join("go-redis");
    run(Command::new("go")
        .current_dir(sources("go"))
        .args(["build", "-mod=readonly", "-o"])
        .arg(&program)
        .arg("."))?;
    Ok(Command::new(program))
}

fn java(home: &Path, library: &str) -> Result<Command> {
    let home = home.join("java");
    let pom = sources("java").join("pom.xml");
    run(Command::new("mvn")
        .args(["-q", "-B", "-f"])
        .arg(pom)
        .arg(format!("-Dplace={}", home.display()))
        .arg("compile"))?;
    let mut command = Command::new("java");
    let (classes, jars) = (home.join("classes"), home.join("jars"));
    command
        .args(["-Xmx256m", "-cp"])
        .arg(format!("{}:{}/*", classes.display(), jars.display()))
        .args(["clients.Main", library]);
    Ok(command)
}
