//! Starting, watching and stopping other programs.

use anyhow::{Context, Result, bail, ensure};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// How long a program may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(10);

/// Finds `name` on the search path.
pub(crate) fn which(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    // Not everybody has the administrator's programs in the path.
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|directory| directory.join(name))
        .find(|candidate| candidate.is_file())
}

/// Cargo, as the one that runs us. What that has told us of our own package is not passed on: some
/// dependencies would be built anew for it, and all that need them.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(crate::project::root());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Features that tests are built with: TLS of the client.
pub(crate) fn tested_features() -> [&'static str; 2] {
    ["--features", "rufous-client/tls"]
}

/// Builds all programs as the tests of the workspace do, in the same profile (assertions are on) and
/// with the same features, so that cargo compiles no package a second time.
pub(crate) fn build_tests() -> Result<()> {
    let mut build = cargo();
    build.args(["build", "--workspace", "--tests", "--bins", "--locked"]);
    run(build.args(tested_features()))
}

/// Runs to the end with our own input and output; anything but success is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", line(command)))?;
    ensure!(status.success(), "{} ended with {status}", line(command));
    Ok(())
}

/// Runs to the end and answers what it wrote to its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {}", line(command)))?;
    ensure!(
        output.status.success(),
        "{} ended with {}: {}",
        line(command),
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What a watched program did.
pub(crate) struct Finished {
    /// Nothing when it was stopped because its time was up.
    pub(crate) status: Option<ExitStatus>,
    /// Standard output and standard error as they came.
    pub(crate) text: String,
}

impl Finished {
    pub(crate) fn success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }
}

/// Whatever this thread starts from now on runs in the time that others leave.
pub(crate) fn yield_to_others() {
    let thread = std::fs::read_link("/proc/thread-self");
    let number = thread
        .ok()
        .and_then(|link| link.file_name().map(ToOwned::to_owned));
    if let Some(number) = number {
        let mut renice = Command::new("renice");
        // Without it, it takes its share.
        let _lower = renice.args(["-n", "10", "-p"]).arg(number).output();
    }
}

/// Runs at most for `limit`, keeps what is written, and shows it too when `echo` is set. The
/// program gets a process group of its own, so that its children end with it.
pub(crate) fn watch(command: &mut Command, limit: Duration, echo: bool) -> Result<Finished> {
    let (reader, writer) = std::io::pipe()?;
    command
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .stdin(std::process::Stdio::null())
        .process_group(0);
    let child = command
        .spawn()
        .with_context(|| format!("cannot run {}", line(command)));
    // The command holds the writing ends of the pipe: while they are open, reading would not end.
    command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    let mut child = child?;
    let collector = std::thread::spawn(move || collect(reader, echo));
    let deadline = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if Instant::now() >= deadline {
            break None;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    if status.is_none() {
        signal_group(child.id(), "KILL");
        child.wait()?;
    }
    let text = match collector.join() {
        Ok(text) => text,
        Err(_) => bail!("reading the output of {} failed", line(command)),
    };
    Ok(Finished { status, text })
}

fn collect(reader: impl Read, echo: bool) -> String {
    let mut reader = BufReader::new(reader);
    let mut text = String::new();
    let mut bytes = Vec::new();
    while matches!(reader.read_until(b'\n', &mut bytes), Ok(count) if count > 0) {
        let piece = String::from_utf8_lossy(&bytes);
        if echo {
            // A closed terminal must not stop the run.
            let _ = std::io::stdout().write_all(piece.as_bytes());
        }
        text.push_str(&piece);
        bytes.clear();
    }
    text
}

/// Sends `signal` to every process of the group that `leader` leads.
fn signal_group(leader: u32, signal: &str) {
    let _ = Command::new("kill")
        .arg(format!("-{signal}"))
        .arg("--")
        .arg(format!("-{leader}"))
        .status();
}

/// Asks the program to end, waits, and kills it when it does not.
pub(crate) fn stop(child: &mut Child) -> Result<ExitStatus> {
    if let Some(status) = child.try_wait()? {
        return Ok(status);
    }
    let _ = Command::new("kill")
        .arg("-TERM")
        .arg(child.id().to_string())
        .status();
    let deadline = Instant::now() + GRACE;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill()?;
    Ok(child.wait()?)
}

/// Whether a server at the address answers a PING.
pub(crate) fn answers_ping(host: &str, port: u16) -> bool {
    let ping = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect((host, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream.write_all(b"PING\r\n")?;
        let mut reply = [0_u8; 5];
        stream.read_exact(&mut reply)?;
        Ok(&reply == b"+PONG")
    };
    ping().unwrap_or(false)
}

/// The command as one would type it.
pub(crate) fn line(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(
        command
            .get_args()
            .map(|argument| argument.to_string_lossy().into_owned()),
    );
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watched_output_is_kept_in_order() {
        let finished = watch(
            Command::new("sh").args(["-c", "echo one; echo two >&2; exit 3"]),
            Duration::from_secs(60),
            false,
        );
        let finished = finished.unwrap();
        assert_eq!(finished.text, "one\ntwo\n");
        assert_eq!(finished.status.unwrap().code(), Some(3));
        assert!(!finished.success());
    }

    #[test]
    fn what_takes_too_long_is_stopped_with_its_children() {
        let finished = watch(
            Command::new("sh").args(["-c", "echo begun; sleep 600 & sleep 600"]),
            Duration::from_secs(1),
            false,
        );
        let finished = finished.unwrap();
        assert!(finished.status.is_none());
        assert_eq!(finished.text, "begun\n");
    }

    #[test]
    fn programs_are_found_on_the_path() {
        assert!(which("sh").is_some());
        assert!(which("no-such-program-anywhere").is_none());
    }
}
