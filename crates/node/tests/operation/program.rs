//! The real program under test: started on free ports, spoken to, stopped.

use rufous_ports::free_ports;
use rufous_resp::{Reply, ReplyParser};
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// Far more than anything takes, on any machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The program, without settings from the environment of the tests.
pub(crate) fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rufous"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("RUFOUS_") {
            command.env_remove(name);
        }
    }
    command.args(args).stdin(Stdio::null());
    command
}

/// A node without a data folder: it leaves the working directory alone.
pub(crate) fn in_memory(args: &[&str]) -> Command {
    let mut command = program(args);
    command
        .env("RUFOUS_APPENDONLY", "no")
        .env("RUFOUS_SAVE", "");
    command
}

/// Runs the program to its end.
pub(crate) fn run(command: &mut Command) -> Output {
    command.output().expect("the program runs")
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Waits until `done` gives something.
pub(crate) fn eventually<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = done() {
            return found;
        }
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A node in a process of its own, which ends with this value.
pub(crate) struct Node {
    pub(crate) child: Child,
    pub(crate) port: u16,
    pub(crate) admin: u16,
    pub(crate) dir: tempfile::TempDir,
}

impl Node {
    /// Starts a node with two workers that logs to a file.
    pub(crate) fn start(more: &[&str]) -> Node {
        let [port, admin] = free_ports().expect("free ports");
        let dir = tempfile::tempdir().expect("a directory");
        let mut command = in_memory(&["server", "--workers", "2", "--pin", "no"]);
        command.args([
            "--port",
            &port.to_string(),
            "--admin-port",
            &admin.to_string(),
        ]);
        command
            .arg("--dir")
            .arg(dir.path())
            .arg("--logfile")
            .arg(dir.path().join("log"));
        let child = command
            .args(more)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("spawn");
        let mut node = Node {
            child,
            port,
            admin,
            dir,
        };
        eventually("the node starts", || {
            let ended = node.child.try_wait().expect("the state of the child");
            assert!(ended.is_none(), "the node ends: {}", node.log());
            node.log().contains("ready").then_some(())
        });
        node
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    pub(crate) fn log_path(&self) -> std::path::PathBuf {
        self.dir.path().join("log")
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(("127.0.0.1", self.port))
    }

    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        http_get(self.admin, path).expect("an answer")
    }

    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args(["-s", name, &self.child.id().to_string()])
            .status();
        assert!(status.expect("kill").success());
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        eventually("the node ends", || {
            self.child.try_wait().expect("the state of the child")
        })
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn http_get(port: u16, path: &str) -> std::io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    Ok((
        status.ok_or(std::io::ErrorKind::InvalidData)?,
        body.to_owned(),
    ))
}

/// A client that sends a request and waits for its reply.
pub(crate) struct Client<S = TcpStream> {
    pub(crate) stream: S,
    parser: ReplyParser,
    received: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(to: impl ToSocketAddrs) -> Client {
        let stream = TcpStream::connect(to).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Client::new(stream)
    }
}

impl<S: Read + Write> Client<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            parser: ReplyParser::default(),
            received: Vec::new(),
        }
    }

    pub(crate) fn send(&mut self, line: &str) {
        let args: Vec<&str> = line.split(' ').collect();
        let mut request = Vec::new();
        rufous_resp::encode::request(&mut request, &args);
        self.stream.write_all(&request).expect("sent");
    }

    pub(crate) fn call(&mut self, line: &str) -> Reply {
        self.send(line);
        self.reply().expect("a reply")
    }

    /// `None`: the node has closed the connection.
    pub(crate) fn reply(&mut self) -> Option<Reply> {
        loop {
            let (done, reply) = self.parser.parse(&self.received).expect("a valid reply");
            self.received.drain(..done);
            if reply.is_some() {
                return reply;
            }
            let mut chunk = [0; 16 * 1024];
            match self.stream.read(&mut chunk) {
                Ok(0) | Err(_) => return None,
                Ok(got) => self.received.extend_from_slice(&chunk[..got]),
            }
        }
    }
}

pub(crate) fn simple(text: &str) -> Reply {
    Reply::Simple(text.into())
}

pub(crate) fn bulk(text: &str) -> Reply {
    Reply::Bulk(text.into())
}
