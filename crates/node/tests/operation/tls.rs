//! The port for TLS as an operator meets it: certificates in files, of clients
//! too, that are replaced while the node runs; and settings that cannot work.

use crate::program::{Client, Node, PATIENCE, eventually, in_memory, run, simple, stderr};
use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use rufous_ports::free_port;
use rufous_resp::Reply;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, version};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Secret = Client<StreamOwned<ClientConnection, TcpStream>>;

/// An authority with the files that it makes.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    dir: tempfile::TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut about = CertificateParams::default();
        about.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let issuer =
            CertifiedIssuer::self_signed(about, KeyPair::generate().expect("a key")).expect("made");
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("ca.pem"), issuer.pem()).expect("written");
        Self { issuer, dir }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// Signs a certificate into `cert.pem` and `key.pem` of a folder. Files are
    /// put in the place of others as a whole.
    fn sign_into(&self, dir: &Path) {
        let key = KeyPair::generate().expect("a key");
        let about = CertificateParams::new(vec!["localhost".into()]).expect("a name");
        let signed = about.signed_by(&key, &self.issuer).expect("signed");
        put(&dir.join("key.pem"), key.serialize_pem().as_bytes());
        put(&dir.join("cert.pem"), signed.pem().as_bytes());
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).expect("a root");
        roots
    }
}

fn put(path: &Path, bytes: &[u8]) {
    let beside: PathBuf = path.with_extension("new");
    std::fs::write(&beside, bytes).expect("written");
    std::fs::rename(beside, path).expect("in its place");
}

/// A node with a certificate of `authority` in its own folder.
fn start(authority: &Authority, more: &[&str]) -> (Node, tempfile::TempDir, u16) {
    let dir = tempfile::tempdir().expect("a directory");
    authority.sign_into(dir.path());
    let path = |name: &str| dir.path().join(name).display().to_string();
    let port = free_port().expect("a free port");
    let (cert, key, tls_port) = (path("cert.pem"), path("key.pem"), port.to_string());
    let mut args = vec!["--tls-port", &tls_port, "--tls-cert-file", &cert];
    args.extend(["--tls-key-file", &key]);
    args.extend(more);
    (Node::start(&args), dir, port)
}

/// A client that trusts `authority`, with its own certificate from a folder.
fn try_client(authority: &Authority, port: u16, own: Option<&Path>) -> std::io::Result<Secret> {
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&version::TLS13, &version::TLS12])
        .expect("versions")
        .with_root_certificates(authority.roots());
    let config = match own {
        None => builder.with_no_client_auth(),
        Some(dir) => {
            let chain = CertificateDer::from_pem_file(dir.join("cert.pem")).expect("read");
            let key = PrivateKeyDer::from_pem_file(dir.join("key.pem")).expect("read");
            builder
                .with_client_auth_cert(vec![chain], key)
                .expect("valid")
        }
    };
    let mut socket = TcpStream::connect(("127.0.0.1", port))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let name = ServerName::try_from("localhost").expect("a name");
    let mut session = ClientConnection::new(Arc::new(config), name).expect("a session");
    while session.is_handshaking() {
        session.complete_io(&mut socket)?;
    }
    Ok(Client::new(StreamOwned::new(session, socket)))
}

fn client(authority: &Authority, port: u16) -> Secret {
    try_client(authority, port, None).expect("a connection")
}

fn metric(node: &Node, name: &str) -> f64 {
    let (_, text) = node.get("/metrics");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let value = line.and_then(|rest| rest.trim().parse().ok());
    value.unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn plain_and_secret_clients_share_the_data() {
    let authority = Authority::new();
    let (node, _files, port) = start(&authority, &["--tls-auth-clients", "no"]);
    let (mut plain, mut secret) = (node.client(), client(&authority, port));
    assert_eq!(plain.call("SET key value"), simple("OK"));
    assert_eq!(secret.call("GET key"), crate::program::bulk("value"));
    // Both know where the other door is.
    let info = secret.call("INFO server");
    let shown = matches!(&info, Reply::Bulk(text)
        if String::from_utf8_lossy(text).contains(&format!("tls_port:{port}\r\n")));
    assert!(shown, "{info:?}");
    // No request and no garbage on this port reaches a worker.
    let mut stranger = Client::connect(("127.0.0.1", port));
    stranger.send("GET key");
    assert!(stranger.reply().is_none());
    eventually("the stranger is counted", || {
        (metric(&node, "rufous_tls_handshake_errors_total") == 1.0).then_some(())
    });
    assert_eq!(metric(&node, "rufous_tls_handshakes_total"), 1.0);
}

#[test]
fn without_a_plain_port_there_is_no_other_way_in() {
    let authority = Authority::new();
    let (node, _files, port) = start(&authority, &["--port", "0", "--tls-auth-clients", "no"]);
    assert!(TcpStream::connect(("127.0.0.1", node.port)).is_err());
    assert_eq!(client(&authority, port).call("PING"), simple("PONG"));
}

#[test]
fn certificates_are_read_again_when_their_files_change() {
    let (old, new) = (Authority::new(), Authority::new());
    let (node, files, port) = start(&old, &["--tls-auth-clients", "no"]);
    let mut before = client(&old, port);
    assert_eq!(before.call("PING"), simple("PONG"));
    // A file that is no certificate changes nothing, and says so.
    put(&files.path().join("cert.pem"), b"not a certificate");
    eventually("the node says so", || {
        (metric(&node, "rufous_tls_certificates_stale") == 1.0).then_some(())
    });
    assert_eq!(client(&old, port).call("PING"), simple("PONG"));
    assert!(node.log().contains("new connections keep the old ones"));
    new.sign_into(files.path());
    eventually("new clients see the new certificate", || {
        try_client(&new, port, None).ok()
    });
    assert!(try_client(&old, port, None).is_err());
    assert_eq!(before.call("PING"), simple("PONG"));
    eventually("all is well again", || {
        (metric(&node, "rufous_tls_certificates_stale") == 0.0).then_some(())
    });
    // Also where nothing has changed.
    let loads = metric(&node, "rufous_tls_certificate_loads_total");
    node.signal("HUP");
    eventually("they are loaded once more", || {
        (metric(&node, "rufous_tls_certificate_loads_total") > loads).then_some(())
    });
}

#[test]
fn clients_show_certificates_unless_they_need_not() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (own, foreign) = (tempfile::tempdir(), tempfile::tempdir());
    let (own, foreign) = (own.expect("made"), foreign.expect("made"));
    authority.sign_into(own.path());
    stranger.sign_into(foreign.path());
    let ca = authority.path("ca.pem");
    for (setting, welcome) in [
        ("yes", [true, false, false]),
        ("optional", [true, true, false]),
    ] {
        let more = ["--tls-auth-clients", setting, "--tls-ca-cert-file", &ca];
        let (_node, _files, port) = start(&authority, &more);
        let shown = [Some(own.path()), None, Some(foreign.path())];
        let served = shown.map(|own| {
            // The client has finished its part before it hears of a refusal.
            let client = try_client(&authority, port, own);
            client.is_ok_and(|mut client| {
                let _ = std::io::Write::write_all(&mut client.stream, b"PING\r\n");
                client.reply() == Some(simple("PONG"))
            })
        });
        assert_eq!(served, welcome, "{setting}");
    }
}

#[test]
fn settings_that_cannot_work_say_what_to_do() {
    let authority = Authority::new();
    let dir = tempfile::tempdir().expect("a directory");
    authority.sign_into(dir.path());
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (cert, key, none) = (path("cert.pem"), path("key.pem"), path("none.pem"));
    let other = Authority::new();
    let elsewhere = tempfile::tempdir().expect("a directory");
    other.sign_into(elsewhere.path());
    let other_key = elsewhere.path().join("key.pem").display().to_string();
    let check = |files: [&str; 3], auth: &str, why: &str| {
        for command in ["server", "check-config"] {
            let port = free_port().expect("a free port").to_string();
            let mut args = vec![command, "--port", "0", "--tls-port", &port];
            args.extend(["--tls-auth-clients", auth, "--admin-port", "0"]);
            let names = ["--tls-cert-file", "--tls-key-file", "--tls-ca-cert-file"];
            for (name, file) in names.iter().zip(files) {
                if !file.is_empty() {
                    args.extend([name, file]);
                }
            }
            let output = run(&mut in_memory(&args));
            assert_eq!(output.status.code(), Some(1), "{command} {why}");
            assert!(stderr(&output).contains(why), "{}", stderr(&output));
        }
    };
    check(["", &key, ""], "no", "tls-port needs tls-cert-file");
    check([&cert, "", ""], "no", "tls-port needs tls-key-file");
    check([&none, &key, ""], "no", "cannot read tls-cert-file");
    check([&key, &key, ""], "no", "has no certificate");
    check([&cert, &cert, ""], "no", "has no private key");
    check([&cert, &other_key, ""], "no", "cannot be used");
    check([&cert, &key, ""], "yes", "tls-auth-clients no");
    check([&cert, &key, &key], "yes", "has no certificate");
}
