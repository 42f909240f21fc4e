//! Servers under test: started from a command line, pinned, made ready, stopped when dropped.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rufous_ports::free_ports;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::client::{Client, Reply};
use crate::procfs;

/// How to start a server. `{port}`, `{admin}` (a second free port), `{dir}` (an empty directory)
/// and `{workers}` in the words are replaced at start.
#[derive(Clone, Debug)]
pub struct ServerSpec {
    pub name: String,
    pub words: Vec<String>,
    pub workers: usize,
    /// The processors it may use, as `taskset -c` takes them; anywhere if absent.
    pub cores: Option<String>,
    /// How long it may take to answer its first PING.
    pub patience: Duration,
    /// Where its directory is made; among the temporary files if absent.
    pub data: Option<PathBuf>,
}

impl ServerSpec {
    pub fn new(name: &str, command: &str) -> Self {
        Self {
            name: name.to_owned(),
            words: command.split_whitespace().map(str::to_owned).collect(),
            workers: 1,
            cores: None,
            patience: Duration::from_secs(30),
            data: None,
        }
    }

    /// With further words; of an option given twice, the last counts.
    pub fn with(&self, words: &[&str]) -> Self {
        let mut spec = self.clone();
        spec.words
            .extend(words.iter().map(|word| (*word).to_owned()));
        spec
    }

    /// An empty directory for it, which goes when nobody holds it any more.
    pub fn folder(&self) -> Result<Arc<TempDir>> {
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix("rufous-bench-");
        Ok(Arc::new(match &self.data {
            Some(place) => builder.tempdir_in(place)?,
            None => builder.tempdir()?,
        }))
    }

    pub fn on_cores(&self, cores: &str) -> Self {
        Self {
            cores: Some(cores.to_owned()),
            ..self.clone()
        }
    }

    pub fn with_workers(&self, workers: usize) -> Self {
        Self {
            workers,
            ..self.clone()
        }
    }

    fn command(&self, port: u16, admin: u16, dir: &Path) -> Vec<String> {
        let mut words = Vec::new();
        // The server must not outlive this process, however it ends.
        if on_path("setpriv").is_some() {
            words.extend(["setpriv", "--pdeathsig", "KILL"].map(str::to_owned));
        }
        if let Some(cores) = &self.cores {
            words.extend(["taskset", "-c", cores].map(str::to_owned));
        }
        words.extend(self.words.iter().map(|word| {
            word.replace("{port}", &port.to_string())
                .replace("{admin}", &admin.to_string())
                .replace("{workers}", &self.workers.to_string())
                .replace("{dir}", &dir.to_string_lossy())
        }));
        words
    }
}

/// A running server.
pub struct Server {
    pub name: String,
    pub addr: SocketAddr,
    child: Child,
    dir: Arc<TempDir>,
}

impl Server {
    pub fn start(spec: &ServerSpec) -> Result<Self> {
        Self::start_in(spec, spec.folder()?)
    }

    /// In a directory that another server may have left its data in.
    pub fn start_in(spec: &ServerSpec, dir: Arc<TempDir>) -> Result<Self> {
        let [port, admin] = free_ports()?;
        let words = spec.command(port, admin, dir.path());
        let Some((program, args)) = words.split_first() else {
            bail!("an empty command line")
        };
        let log = File::create(dir.path().join("log"))?;
        let child = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("starting {}: {}", spec.name, words.join(" ")))?;
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut server = Self {
            name: spec.name.clone(),
            addr,
            child,
            dir,
        };
        server
            .wait_ready(spec.patience)
            .with_context(|| format!("starting {}", words.join(" ")))?;
        Ok(server)
    }

    fn wait_ready(&mut self, patience: Duration) -> Result<()> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!(
                    "{} ended with {status}; its last words:\n{}",
                    self.name,
                    self.last_words()
                );
            }
            if self.answers()? {
                return Ok(());
            }
            if Instant::now() > deadline {
                let words = self.last_words();
                bail!(
                    "{} did not answer PING in {patience:?}; its last words:\n{words}",
                    self.name
                );
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether the port answers, and it is this process that does: another server may have taken the
    /// port in the meantime, and what follows overwrites and flushes.
    fn answers(&self) -> Result<bool> {
        let Ok(mut client) = Client::connect(self.addr) else {
            return Ok(false);
        };
        if client.call(&["PING"]).ok() != Some(Reply::Simple("PONG".into())) {
            return Ok(false);
        }
        match client.local_pid() {
            Some(pid) if pid == self.pid() => Ok(true),
            Some(pid) => bail!(
                "{} is process {}, but process {pid} answers at {}",
                self.name,
                self.pid(),
                self.addr
            ),
            None => bail!(
                "what answers at {} does not tell its process_id in INFO",
                self.addr
            ),
        }
    }

    fn last_words(&self) -> String {
        let log = std::fs::read(self.dir.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&log[log.len().saturating_sub(2_000)..]).into_owned()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn cpu_time(&self) -> Result<Duration> {
        procfs::cpu_time(self.pid())
    }

    pub fn client(&self) -> Result<Client> {
        Client::connect(self.addr)
    }

    /// Its `{dir}`, which goes when this value does.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Asks the server to end and waits until it has.
    pub fn stop(&mut self, patience: Duration) -> Result<()> {
        self.terminate();
        if self.wait(patience)? {
            return Ok(());
        }
        bail!("{} did not end within {patience:?} of SIGTERM", self.name)
    }

    fn terminate(&self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // Fails only when the process has ended already, which is what is wanted.
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    fn wait(&mut self, patience: Duration) -> Result<bool> {
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            if self.child.try_wait()?.is_some() {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(false)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.terminate();
        if !matches!(self.wait(Duration::from_secs(3)), Ok(true)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Where the program `name` is found by a shell.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}

/// Binds the calling thread, which generates the load, to one processor.
pub fn pin_this_thread(core: usize) -> Result<()> {
    set_affinity(&[core])
}

/// Lets the calling thread use these processors.
pub fn set_affinity(cores: &[usize]) -> Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    for core in cores {
        set.set(*core);
    }
    rustix::thread::sched_setaffinity(None, &set)
        .with_context(|| format!("binding the load generator to cores {cores:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled() {
        let spec = ServerSpec::new(
            "x",
            "srv --port {port} --admin {admin} -w {workers} --d={dir}/a",
        )
        .on_cores("0")
        .with_workers(3);
        let words = spec.command(7_001, 7_002, Path::new("/d"));
        let text = words.join(" ");
        assert!(
            text.ends_with("taskset -c 0 srv --port 7001 --admin 7002 -w 3 --d=/d/a"),
            "{text}"
        );
    }

    #[test]
    fn a_server_that_ends_at_once_is_reported_with_its_words() {
        let spec = ServerSpec::new("echo", "echo good bye {port}");
        let error = Server::start(&spec)
            .err()
            .map(|e| format!("{e:#}"))
            .unwrap_or_default();
        assert!(error.contains("good bye"), "{error}");
    }

    #[test]
    fn programs_are_found() {
        assert!(on_path("sh").is_some());
        assert!(on_path("no-such-program-anywhere").is_none());
    }
}
