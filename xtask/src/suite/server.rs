//! The server under test: the release build, a Redis cut down to the same commands, any command
//! line, or one that runs already.

use crate::process::{answers_ping, output, stop};
use crate::project;
use anyhow::{Context, Result, bail};
use rufous_ports::free_port;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take until it answers.
const START_LIMIT: Duration = Duration::from_secs(20);

/// The commands that exist so far, one per line; the reference keeps only these.
const COMMANDS: &str = "docs/compatibility/commands.txt";

pub(crate) enum Target {
    /// The release build of the server.
    Rufous,
    /// redis-server without the commands that Rufous does not have.
    Reference,
    /// A command line with `{port}` and `{dir}` in it.
    Command(String),
    /// A server that runs already.
    Running { host: String, port: u16 },
}

impl Target {
    /// A running server, from `HOST:PORT`.
    pub(crate) fn running(address: &str) -> Result<Self> {
        let (host, port) = address
            .rsplit_once(':')
            .context("the address must be HOST:PORT")?;
        Ok(Self::Running {
            host: host.to_owned(),
            port: port.parse().context("the port must be a number")?,
        })
    }

    /// Starts a fresh server with an empty directory, or uses the one that runs. What it prints
    /// goes to `log`.
    pub(crate) fn start(&self, log: &Path) -> Result<Server> {
        if let Self::Running { host, port } = self {
            return Ok(Server {
                child: None,
                host: host.clone(),
                port: *port,
                directory: None,
            });
        }
        let port = free_port()?;
        let directory = scratch(port)?;
        let mut words = self.words(port, &directory)?;
        let program = words.remove(0);
        let output = fs::File::create(log)?;
        let mut command = Command::new(&program);
        command
            .args(&words)
            .current_dir(&directory)
            .stdin(Stdio::null());
        command.stdout(output.try_clone()?).stderr(output);
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {program}"))?;
        let mut server = Server {
            child: Some(child),
            host: "127.0.0.1".to_owned(),
            port,
            directory: Some(directory),
        };
        server.wait_until_it_answers(log)?;
        Ok(server)
    }

    fn words(&self, port: u16, directory: &Path) -> Result<Vec<String>> {
        let line = match self {
            Self::Rufous => format!(
                "{} server --port {{port}} --dir {{dir}} --appendonly no --save= --enable-debug-command local",
                project::server_binary().display()
            ),
            Self::Reference => format!(
                "redis-server {} --port {{port}} --dir {{dir}}",
                reference()?.display()
            ),
            Self::Command(line) => line.clone(),
            Self::Running { .. } => bail!("a running server is not started"),
        };
        let filled = |word: &str| {
            word.replace("{port}", &port.to_string())
                .replace("{dir}", &directory.to_string_lossy())
        };
        let words: Vec<String> = line.split_whitespace().map(filled).collect();
        if words.is_empty() {
            bail!("the server's command line is empty");
        }
        Ok(words)
    }
}

/// A server that is stopped, with its directory removed, when this goes away.
pub(crate) struct Server {
    child: Option<Child>,
    pub(crate) host: String,
    pub(crate) port: u16,
    directory: Option<PathBuf>,
}

impl Server {
    fn wait_until_it_answers(&mut self, log: &Path) -> Result<()> {
        let deadline = Instant::now() + START_LIMIT;
        while !answers_ping(&self.host, self.port) {
            if let Some(end) = self.ended() {
                bail!("the server {end} at once: see {}", log.display());
            }
            if Instant::now() > deadline {
                bail!("the server does not answer PING: see {}", log.display());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// How the server ended, when it did so by itself.
    pub(crate) fn ended(&mut self) -> Option<String> {
        let status = self.child.as_mut()?.try_wait().ok()??;
        Some(format!("ended with {status}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = stop(child);
        }
        if let Some(directory) = &self.directory {
            let _ = fs::remove_dir_all(directory);
        }
    }
}

fn scratch(port: u16) -> Result<PathBuf> {
    let directory = project::target()
        .join("suite-scratch")
        .join(port.to_string());
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    fs::create_dir_all(&directory)?;
    Ok(directory)
}

/// Writes a configuration that removes every command of redis-server that is not in our list.
fn reference() -> Result<PathBuf> {
    let list = fs::read_to_string(project::root().join(COMMANDS)).context(COMMANDS)?;
    let kept: Vec<&str> = words_of(&list).collect();
    let all = commands_of_redis()?;
    let mut configuration = String::from("save \"\"\nenable-debug-command yes\n");
    for name in all
        .iter()
        .filter(|name| !name.contains('|') && !kept.contains(&name.as_str()))
    {
        configuration.push_str(&format!("rename-command {name} \"\"\n"));
    }
    let file = project::target().join("suite-scratch/reference.conf");
    fs::write(&file, configuration)?;
    Ok(file)
}

/// The words of a list in which `#` begins a comment.
fn words_of(list: &str) -> impl Iterator<Item = &str> {
    list.lines().flat_map(|line| {
        line.split('#')
            .next()
            .unwrap_or_default()
            .split_whitespace()
    })
}

fn commands_of_redis() -> Result<Vec<String>> {
    let log = project::target().join("suite-scratch/reference.log");
    fs::create_dir_all(project::target().join("suite-scratch"))?;
    let plain =
        Target::Command("redis-server --port {port} --dir {dir} --appendonly no".to_owned());
    let server = plain.start(&log)?;
    let reply = output(Command::new("redis-cli").args([
        "-p",
        &server.port.to_string(),
        "command",
        "list",
    ]))?;
    Ok(reply.lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_get_port_and_directory() {
        let target = Target::Command("some-server --port {port} --dir {dir}".to_owned());
        let words = target.words(7, Path::new("/data")).unwrap();
        assert_eq!(words, ["some-server", "--port", "7", "--dir", "/data"]);
        assert!(
            Target::Command("  ".to_owned())
                .words(7, Path::new("/"))
                .is_err()
        );
    }

    #[test]
    fn addresses_need_host_and_port() {
        assert!(matches!(
            Target::running("localhost:77").unwrap(),
            Target::Running { port: 77, .. }
        ));
        assert!(Target::running("localhost").is_err());
        assert!(Target::running("localhost:x").is_err());
    }

    #[test]
    fn comments_are_no_commands() {
        assert_eq!(
            words_of("get set # both\n# none\nping\n").collect::<Vec<_>>(),
            ["get", "set", "ping"]
        );
    }
}
