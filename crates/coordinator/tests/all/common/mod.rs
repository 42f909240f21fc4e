//! A real etcd of one member, in a folder of its own.

use rufous_coordinator::etcd::Settings;
use rufous_ports::free_ports;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub(crate) struct Server {
    folder: tempfile::TempDir,
    arguments: Vec<String>,
    pub(crate) endpoint: String,
    child: Option<Child>,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with("http", &[])
    }

    pub(crate) fn start_with(scheme: &str, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let [client, peer] = free_ports().expect("free ports");
        let endpoint = format!("{scheme}://127.0.0.1:{client}");
        let peer = format!("http://127.0.0.1:{peer}");
        let data = folder.path().join("data").display().to_string();
        let cluster = format!("one={peer}");
        let all = [
            ["--name", "one"],
            ["--data-dir", &data],
            ["--listen-client-urls", &endpoint],
            ["--advertise-client-urls", &endpoint],
            ["--listen-peer-urls", &peer],
            ["--initial-advertise-peer-urls", &peer],
            ["--initial-cluster", &cluster],
        ];
        let own = all.iter().flatten().copied();
        let arguments = own.chain(arguments.iter().copied());
        let mut server = Self {
            arguments: arguments.map(str::to_owned).collect(),
            folder,
            endpoint,
            child: None,
        };
        server.begin();
        server
    }

    /// Talks by TLS and only to who shows a certificate. In the folder are then those of the
    /// authority (`birds`), of the server and of a `node`: see [`certificate`].
    pub(crate) fn that_wants_certificates(folder: &Path) -> Self {
        certificate(folder, "birds", None);
        certificate(folder, "server", Some("birds"));
        certificate(folder, "node", Some("birds"));
        let file = |name: &str| folder.join(name).display().to_string();
        Self::start_with(
            "https",
            &[
                "--cert-file",
                &file("server.pem"),
                "--key-file",
                &file("server.key"),
                "--trusted-ca-file",
                &file("birds.pem"),
                "--client-cert-auth",
            ],
        )
    }

    /// Starts it, or starts it again with what it had.
    pub(crate) fn begin(&mut self) {
        let log = self.folder.path().join("log");
        let log = std::fs::File::options().create(true).append(true).open(log);
        let child = Command::new("etcd")
            .args(&self.arguments)
            .env("ETCD_UNSUPPORTED_ARCH", std::env::consts::ARCH)
            .stdout(Stdio::null())
            .stderr(log.expect("a log"))
            .spawn();
        self.child = Some(child.expect("etcd (Debian: apt-get install etcd-server)"));
    }

    /// A copy of what it has, while it does not run.
    pub(crate) fn save(&self) -> tempfile::TempDir {
        let copy = tempfile::tempdir().expect("a folder");
        copy_to(&self.folder.path().join("data"), copy.path());
        copy
    }

    /// Puts a copy in place of what it has, while it does not run.
    pub(crate) fn restore(&self, copy: &tempfile::TempDir) {
        let data = self.folder.path().join("data");
        std::fs::remove_dir_all(&data).expect("removed");
        copy_to(&copy.path().join("data"), self.folder.path());
    }

    /// As by `kill -9`.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _gone = child.kill();
            let _gone = child.wait();
        }
    }

    /// A call to etcd's interface for JSON over HTTP, which owes nothing to the client under test.
    pub(crate) fn ask(&self, what: &str, with: &Value) -> Result<Value, String> {
        let (_, host) = self.endpoint.split_once("://").expect("an address");
        let body = with.to_string();
        let request = format!(
            "POST /v3/{what} HTTP/1.0\r\nHost: {host}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut answer = String::new();
        TcpStream::connect(host)
            .and_then(|mut stream| {
                stream.write_all(request.as_bytes())?;
                stream.read_to_string(&mut answer)
            })
            .map_err(|error| error.to_string())?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
        let is_ok = head
            .lines()
            .next()
            .is_some_and(|line| line.ends_with("200 OK"));
        let value = serde_json::from_str(body).map_err(|error| error.to_string())?;
        if is_ok { Ok(value) } else { Err(answer) }
    }

    pub(crate) fn put(&self, key: &str, value: &[u8]) -> Result<Value, String> {
        let put = json!({ "key": base64(key.as_bytes()), "value": base64(value) });
        self.ask("kv/put", &put)
    }

    pub(crate) fn settings(&self, cluster: &str) -> Settings {
        Settings {
            endpoints: vec![self.endpoint.clone()],
            cluster: cluster.to_owned(),
            ..Settings::default()
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Makes a certificate that an authority has signed: the files are `<name>.pem`
/// and `<name>.key`. Without an authority it is one itself.
pub(crate) fn certificate(folder: &Path, name: &str, authority: Option<&str>) {
    let file = |name: &str, ending: &str| folder.join(format!("{name}.{ending}"));
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt"]);
    command.args(["ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj"]);
    command.arg(format!("/CN={name}"));
    command.arg("-keyout").arg(file(name, "key"));
    command.arg("-out").arg(file(name, "pem"));
    if let Some(authority) = authority {
        command.args(["-addext", "subjectAltName=IP:127.0.0.1"]);
        command.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
        command.arg("-CA").arg(file(authority, "pem"));
        command.arg("-CAkey").arg(file(authority, "key"));
    }
    let done = command.output().expect("openssl");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
}

/// Copies a folder into another one.
fn copy_to(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.expect("cp").success());
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let mut all = [0; 4];
        all[1..=three.len()].copy_from_slice(three);
        let all = u32::from_be_bytes(all);
        for place in 0..4 {
            let digit = DIGITS[(all >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= three.len() {
                digit.into()
            } else {
                '='
            });
        }
    }
    text
}
