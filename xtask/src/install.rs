//! Gets what tests need, each piece only where it is missing: Debian packages through apt, the
//! source package of Redis through a private apt configuration, Python packages into an environment
//! of their own, cargo tools through cargo.

use crate::process::{output, run, which};
use crate::project::third_party;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs that tests start, and the Debian packages that bring them.
const PROGRAMS: [(&str, &str); 12] = [
    ("redis-cli", "redis-tools"),
    ("redis-benchmark", "redis-tools"),
    ("redis-server", "redis-server"),
    ("tclsh", "tcl"),
    ("python3", "python3"),
    ("tar", "tar"),
    ("etcd", "etcd-server"),
    ("openssl", "openssl"),
    ("ip", "iproute2"),
    ("iptables", "iptables"),
    ("mkfs.ext4", "e2fsprogs"),
    ("faketime", "faketime"),
];

/// The release of Debian whose source package holds the suite, whatever this machine runs: the list
/// of skipped tests is written for this version.
const SUITE_RELEASE: &str = "bookworm";
const REDIS_VERSION: &str = "7.0.15";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// redis-py's release whose suite is run.
const REDIS_PY_VERSION: &str = "8.1.0";
const PYTHON_PACKAGES: [&str; 9] = [
    "pytest>=8.2",
    "pytest-asyncio",
    "pytest-timeout",
    "pytest-forked",
    "numpy",
    "pybreaker",
    "aiohttp",
    "xxhash",
    "cryptography",
];

/// The applications that do a real job, as pip names them.
const APPLICATIONS: [&str; 4] = [
    "redis==8.1.0",
    "rq==1.16.2",
    "celery[redis]==5.7.0",
    "Django==5.2.19",
];

/// Whether [`programs`] installs this one.
pub(crate) fn installs(program: &str) -> bool {
    PROGRAMS.iter().any(|(name, _)| *name == program)
}

/// Debian packages for the programs that tests start. Answers what was installed.
pub(crate) fn programs() -> Result<Vec<&'static str>> {
    let mut missing: Vec<&str> = PROGRAMS
        .iter()
        .filter(|(program, _)| which(program).is_none())
        .map(|(_, package)| *package)
        .collect();
    if which("python3").is_some_and(|python| !makes_environments(&python))
        || missing.contains(&"python3")
    {
        missing.push("python3-venv");
    }
    missing.dedup();
    if missing.is_empty() {
        return Ok(missing);
    }
    if apt(&["install", "-y", "--no-install-recommends"], &missing).is_err() {
        // A fresh machine has no package lists yet, and an old one has stale ones.
        apt(&["update"], &[])?;
        apt(&["install", "-y", "--no-install-recommends"], &missing)?;
    }
    Ok(missing)
}

fn makes_environments(python: &Path) -> bool {
    let check = Command::new(python)
        .args(["-c", "import venv, ensurepip"])
        .output();
    check.is_ok_and(|output| output.status.success())
}

/// Runs apt-get as root, through sudo where we are not.
fn apt(arguments: &[&str], packages: &[&str]) -> Result<()> {
    let by_hand = format!(
        "run it as root: apt-get {} {}",
        arguments.join(" "),
        packages.join(" ")
    );
    ensure!(
        which("apt-get").is_some(),
        "packages are missing and this is no Debian: {}",
        packages.join(" ")
    );
    let is_root = output(Command::new("id").arg("-u"))?.trim() == "0";
    let mut command = if is_root {
        Command::new("env")
    } else if which("sudo").is_some() {
        let mut command = Command::new("sudo");
        command.arg("env");
        command
    } else {
        bail!("cannot install packages without root or sudo; {by_hand}");
    };
    // RUNLEVEL keeps init scripts from starting a Redis of its own where init is asked at all.
    command.args([
        "DEBIAN_FRONTEND=noninteractive",
        "RUNLEVEL=1",
        "apt-get",
        "-q",
    ]);
    run(command.args(arguments).args(packages)).context(by_hand)
}

/// The directory of Redis's unpacked source package, which holds its test suite.
pub(crate) fn redis_source() -> Result<PathBuf> {
    let home = third_party().join("redis-source");
    let unpacked = home.join(format!("redis-{REDIS_VERSION}"));
    if unpacked.join("runtest").is_file() {
        return Ok(unpacked);
    }
    ensure!(
        which("apt-get").is_some(),
        "the suite comes as a Debian source package, and there is no apt-get"
    );
    fs::create_dir_all(&home)?;
    let configuration = private_apt(&third_party().join("apt"))?;
    let apt = |arguments: &[&str]| {
        run(Command::new("apt-get")
            .current_dir(&home)
            .env("APT_CONFIG", &configuration)
            .arg("-q")
            .args(arguments))
    };
    apt(&["update"])?;
    apt(&["source", "--download-only", "redis"])?;
    let archive = format!("redis_{REDIS_VERSION}.orig.tar.gz");
    ensure!(
        home.join(&archive).is_file(),
        "the source package does not hold {archive}"
    );
    run(Command::new("tar")
        .current_dir(&home)
        .args(["-xzf", &archive]))?;
    ensure!(
        unpacked.join("runtest").is_file(),
        "{archive} does not hold the test suite"
    );
    Ok(unpacked)
}

/// Writes an apt configuration that sees source packages and keeps its state below `home`, so that
/// the machine's own configuration stays as it is. No root is needed.
fn private_apt(home: &Path) -> Result<PathBuf> {
    for directory in ["lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(home.join(directory))?;
    }
    let signed = if Path::new(KEYRING).is_file() {
        format!("[signed-by={KEYRING}] ")
    } else {
        String::new()
    };
    let sources = format!(
        "deb-src {signed}http://deb.debian.org/debian {SUITE_RELEASE} main\n\
         deb-src {signed}http://deb.debian.org/debian-security {SUITE_RELEASE}-security main\n"
    );
    fs::write(home.join("sources.list"), sources)?;
    let place = home.display();
    let configuration = format!(
        "Dir::Etc::SourceList \"{place}/sources.list\";\nDir::Etc::SourceParts \"/dev/null\";\n\
         Dir::State::Lists \"{place}/lists\";\nDir::Cache \"{place}/cache\";\nAPT::Sandbox::User \"\";\n"
    );
    let file = home.join("apt.conf");
    fs::write(&file, configuration)?;
    Ok(file)
}

/// Where redis-py's suite and a Python that can run it are.
pub(crate) struct RedisPy {
    pub(crate) python: PathBuf,
    pub(crate) source: PathBuf,
}

/// redis-py's source distribution, unpacked and installed with what its tests import.
pub(crate) fn redis_py() -> Result<RedisPy> {
    let home = third_party().join("redis-py");
    let source = home.join(format!("redis-{REDIS_PY_VERSION}"));
    let python = home.join("venv/bin/python");
    let ready = home.join(format!("ready-{REDIS_PY_VERSION}"));
    if ready.is_file() && source.join("tests").is_dir() && python.is_file() {
        return Ok(RedisPy { python, source });
    }
    fs::create_dir_all(&home)?;
    run(Command::new("python3")
        .args(["-m", "venv", "--clear"])
        .arg(home.join("venv")))?;
    let pip = |arguments: &[&str]| {
        let mut command = Command::new(&python);
        run(command
            .current_dir(&home)
            .args(["-m", "pip", "--disable-pip-version-check", "-q"])
            .args(arguments))
    };
    let release = format!("redis=={REDIS_PY_VERSION}");
    pip(&["download", "--no-deps", "--no-binary", "redis", &release])?;
    run(Command::new("tar")
        .current_dir(&home)
        .arg("-xzf")
        .arg(format!("redis-{REDIS_PY_VERSION}.tar.gz")))?;
    let mut install = vec!["install", &release];
    install.extend(PYTHON_PACKAGES);
    pip(&install)?;
    fs::write(ready, "")?;
    Ok(RedisPy { python, source })
}

/// A Python that has the applications which do a real job against the server.
pub(crate) fn applications() -> Result<PathBuf> {
    let home = third_party().join("applications");
    let python = home.join("venv/bin/python");
    let ready = home.join("ready");
    let wanted = APPLICATIONS.join("\n");
    if python.is_file() && fs::read_to_string(&ready).is_ok_and(|made| made == wanted) {
        return Ok(python);
    }
    fs::create_dir_all(&home)?;
    run(Command::new("python3")
        .args(["-m", "venv", "--clear"])
        .arg(home.join("venv")))?;
    run(Command::new(&python)
        .args(["-m", "pip", "--disable-pip-version-check", "-q", "install"])
        .args(APPLICATIONS))?;
    fs::write(ready, wanted)?;
    Ok(python)
}

/// Whether `cargo <name>` exists.
pub(crate) fn has_cargo_tool(name: &str) -> bool {
    Command::new(env!("CARGO"))
        .args([name, "--version"])
        .output()
        .is_ok_and(|output| output.status.success())
}

/// Builds and installs a cargo tool: minutes of work, so only on request.
pub(crate) fn cargo_tool(package: &str) -> Result<()> {
    run(Command::new(env!("CARGO")).args(["install", "--locked", package]))
}

/// Whether rustup has a nightly toolchain, which fuzzing needs.
pub(crate) fn has_nightly() -> bool {
    let list = Command::new("rustup").args(["toolchain", "list"]).output();
    list.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("nightly"))
}

/// Helm's release that charts are tried with.
const HELM: &str = "helm.sh/helm/v3/cmd/helm@v3.19.0";

/// Where programs of Go are put that nothing else brings.
pub(crate) fn go_tools() -> PathBuf {
    third_party().join("go")
}

/// Builds Helm with Go, as no Debian package has it: minutes of work, so only on request.
pub(crate) fn helm() -> Result<()> {
    ensure!(
        which("go").is_some(),
        "Helm is built with Go: apt-get install golang, or see helm.sh"
    );
    let mut command = Command::new("go");
    run(command
        .args(["install", HELM])
        .env("GOBIN", go_tools())
        .env_remove("GOFLAGS"))
}
