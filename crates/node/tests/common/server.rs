//! The real program, started for one test and killed at its end.

use super::{Client, Reply, wait_until};
use rufous_ports::free_port;
use std::process::{Child, Command, Stdio};

pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    /// Data directory and log; removed with the server.
    dir: tempfile::TempDir,
    password: Option<String>,
}

impl Server {
    /// Two workers on a free port of the loopback interface.
    pub(crate) fn start(more: &[&str]) -> Self {
        Self::start_with("", more)
    }

    /// As [`Server::start`], after a line of shell such as `ulimit -n 64`.
    pub(crate) fn start_with(prelude: &str, more: &[&str]) -> Self {
        let port = free_port().expect("a free port");
        let dir = tempfile::tempdir().expect("a directory");
        let log = std::fs::File::create(dir.path().join("log")).expect("a file");
        let mut command = Command::new("bash");
        command
            .arg("-c")
            .arg(format!("{prelude}\nexec \"$@\""))
            .arg("bash");
        command.arg(env!("CARGO_BIN_EXE_rufous")).arg("server");
        command.args(["--bind", "127.0.0.1", "--workers", "2", "--admin-port", "0"]);
        // What these tests are about; those on durability say otherwise.
        command.args(["--appendonly", "no", "--save", ""]);
        command
            .args(["--port", &port.to_string(), "--pin", "no"])
            .arg("--dir")
            .arg(dir.path());
        command
            .args(more)
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let child = command.spawn().expect("started");
        let password = more
            .windows(2)
            .find(|w| w[0] == "--requirepass")
            .map(|w| w[1].to_owned());
        let mut server = Self {
            child,
            port,
            dir,
            password,
        };
        server.wait_until_ready();
        server
    }

    fn wait_until_ready(&mut self) {
        wait_until("the server listens", || {
            let ended = self.child.try_wait().expect("asked");
            assert!(ended.is_none(), "the server ends: {}", self.log());
            std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok()
        });
        wait_until("the server has looked for data", || {
            self.client().info("loading") == 0
        });
    }

    /// A client that may do everything.
    #[track_caller]
    pub(crate) fn client(&self) -> Client {
        let mut client = self.stranger();
        if let Some(password) = &self.password {
            client.ok(&["AUTH", password]);
        }
        client
    }

    /// A client that has said nothing yet.
    #[track_caller]
    pub(crate) fn stranger(&self) -> Client {
        Client::connect(self.port)
    }

    /// One client at each of the two workers.
    #[track_caller]
    pub(crate) fn one_at_each_worker(&self) -> [Client; 2] {
        let (mut found, mut others) = ([None, None], Vec::new());
        while found.iter().any(Option::is_none) {
            let mut client = self.client();
            let worker = client.worker(2);
            // One too many is kept open, so that the next is given to the other worker.
            others.extend(found[worker].replace(client));
            assert!(others.len() < 1000, "connections are spread over workers");
        }
        found.map(|client| client.expect("found"))
    }

    /// Bytes of memory of the process (`VmRSS`), or the most it ever had (`VmHWM`).
    fn memory(&self, field: &str) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("the server lives");
        let line = status
            .lines()
            .find_map(|l| l.strip_prefix(field)?.strip_prefix(':'));
        let kib = line.and_then(|l| l.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kib.expect("a number") * 1024
    }

    pub(crate) fn rss(&self) -> u64 {
        self.memory("VmRSS")
    }

    /// Bytes of address space, touched or not (`VmPeak`).
    pub(crate) fn reserved(&self) -> u64 {
        self.memory("VmPeak")
    }

    pub(crate) fn peak(&self) -> u64 {
        self.memory("VmHWM")
    }

    /// The most memory there ever was must not be above what there was before by more.
    #[track_caller]
    pub(crate) fn assert_grew_less(&self, before: u64, most: u64) {
        let grew = self.peak().saturating_sub(before);
        println!(
            "memory grew by {} KiB of at most {}",
            grew / 1024,
            most / 1024
        );
        assert!(
            grew < most,
            "memory grew by {} KiB, more than {}",
            grew / 1024,
            most / 1024
        );
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// Waits until so many clients are connected, the one that asks included.
    #[track_caller]
    pub(crate) fn wait_for_clients(&self, count: u64) {
        let mut client = self.client();
        wait_until("clients are gone", || {
            client.info("connected_clients") == count + 1
        });
    }

    /// Nothing is left over that would grow from one offender to the next.
    #[track_caller]
    pub(crate) fn ping(&self) {
        assert_eq!(self.client().run(&["PING"]), Reply::Status("PONG".into()));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- log of the server\n{}", self.log());
        }
    }
}
