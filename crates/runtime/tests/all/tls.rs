//! Connections by TLS: everything that holds of plain ones, and strangers who
//! do not get through the handshake.

use crate::common::*;
use rcgen::{CertifiedIssuer, KeyPair};
use rufous_base::{Dial, Input};
use rufous_runtime::{Config, DialTls, Handle, Listen, Runtime, StartError, Tls, start};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

type Secret = StreamOwned<ClientConnection, TcpStream>;

/// Who signs certificates.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut about = rcgen::CertificateParams::default();
        about.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(about, key).expect("signed"))
    }

    fn sign(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let key = KeyPair::generate().expect("a key");
        let about = rcgen::CertificateParams::new(vec!["localhost".into()]).expect("a name");
        let signed = about.signed_by(&key, &self.0).expect("signed");
        let secret = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        (vec![signed.der().clone()], secret)
    }

    fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).expect("a root");
        Arc::new(roots)
    }

    /// For a node that asks its clients for certificates of `clients`.
    fn server(&self, clients: Option<&Authority>) -> ServerConfig {
        let (chain, key) = self.sign();
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions");
        let verifier = clients.map(|clients| {
            let roots = clients.roots();
            WebPkiClientVerifier::builder_with_provider(roots, Arc::new(default_provider()))
                .build()
                .expect("a verifier")
        });
        let builder = match verifier {
            Some(verifier) => builder.with_client_cert_verifier(verifier),
            None => builder.with_no_client_auth(),
        };
        builder.with_single_cert(chain, key).expect("a certificate")
    }

    /// For a client that trusts this authority, and may have a certificate.
    fn client(&self, own: Option<&Authority>) -> Arc<ClientConfig> {
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(self.roots());
        Arc::new(match own.map(Authority::sign) {
            Some((chain, key)) => builder.with_client_auth_cert(chain, key).expect("valid"),
            None => builder.with_no_client_auth(),
        })
    }
}

fn secret_config(tls: &Tls) -> Config {
    Config {
        listen: vec![Listen::Tls(([127, 0, 0, 1], 0).into())],
        tls: Some(tls.clone()),
        ..config(1)
    }
}

fn secret_address(handle: &Handle) -> SocketAddr {
    match handle.addresses() {
        [Listen::Tls(address), ..] => *address,
        other => panic!("no TLS listener: {other:?}"),
    }
}

fn secret<A: rufous_base::Actor>(node: &Runtime<A>, config: &Arc<ClientConfig>) -> Secret {
    let socket = TcpStream::connect(secret_address(node)).expect("the node accepts");
    let name = ServerName::try_from("localhost").expect("a name");
    let session = ClientConnection::new(Arc::clone(config), name).expect("a session");
    StreamOwned::new(session, socket)
}

#[test]
fn an_echo_comes_back_and_the_node_stops() {
    let authority = Authority::new();
    let tls = Tls::new(authority.server(None));
    let config = Config {
        workers: 2,
        ..secret_config(&tls)
    };
    let node = echo(config);
    let trusting = authority.client(None);
    let mut clients: Vec<_> = (0..10).map(|_| secret(&node, &trusting)).collect();
    for round in 0..10 {
        for (n, stream) in clients.iter_mut().enumerate() {
            let line = format!("client {n} round {round}\n");
            assert_eq!(ask(stream, line.as_bytes()), line.as_bytes());
        }
    }
    let stats = node.stats();
    assert_eq!((stats.handshakes, stats.handshake_errors), (10, 0));
    assert_eq!(stats.workers[0].connections, 5, "dealt evenly");
    node.stop();
    for stream in &mut clients {
        assert_eq!(read_to_end(stream), b"", "closed in order");
    }
    node.join();
}

#[test]
fn what_is_sent_at_once_comes_back_whole() {
    let authority = Authority::new();
    let tls = Tls::new(authority.server(None));
    let node = echo(secret_config(&tls));
    let mut stream = secret(&node, &authority.client(None));
    for len in [1, 4_095, 16_384, 16_385, 70_000, 400_000] {
        let sent: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
        assert!(ask(&mut stream, &sent) == sent, "{len} bytes");
    }
    // Requests and replies that are under way in both directions all the time.
    let (mut sent, mut got) = (0usize, 0usize);
    let mut buf = vec![0; 30_000];
    while got < 5_000_000 {
        while sent < got + 200_000 {
            let part: Vec<u8> = (sent..sent + 10_000).map(|i| (i % 253) as u8).collect();
            stream.write_all(&part).expect("sent");
            sent += part.len();
        }
        let n = stream.read(&mut buf).expect("answered");
        let is_next = |(i, byte): (usize, &u8)| *byte == ((got + i) % 253) as u8;
        assert!(buf[..n].iter().enumerate().all(is_next), "after {got}");
        got += n;
    }
}

#[test]
fn a_reader_who_is_slow_gets_all_before_the_close() {
    const REPLY: usize = 8_000_000;
    let authority = Authority::new();
    let tls = Tls::new(authority.server(None));
    let value = Arc::new(vec![b'V'; REPLY]);
    let node = start(secret_config(&tls), move |_| {
        let value = Arc::clone(&value);
        by::<(), _>(move |_, input, fx| {
            let Input::Received { reads, .. } = input else {
                return;
            };
            for read in reads {
                let begin = fx.output.mark();
                fx.output.share(Arc::clone(&value));
                fx.write(read.conn, begin);
                fx.closes
                    .push((read.conn, rufous_base::Close::AfterReplies));
            }
        })
    })
    .expect("starts");
    let mut stream = secret(&node, &authority.client(None));
    stream.write_all(b"?").expect("sent");
    // Nothing is read before the node has sent what the socket takes.
    wait_until(&node, |stats| stats.workers[0].bytes_out > 0);
    let all = read_to_end(&mut stream);
    assert!(all.len() == REPLY && all.iter().all(|byte| *byte == b'V'));
    wait_until(&node, |stats| stats.workers[0].connections == 0);
}

#[test]
fn strangers_leave_their_room_to_others() {
    let authority = Authority::new();
    let tls = Tls::new(authority.server(None));
    let config = Config {
        max_clients: 1,
        ..secret_config(&tls)
    };
    let node = echo(config);
    let trusting = authority.client(None);
    let garbage: [&[u8]; 4] = [b"PING\r\n", b"", &[0x16, 3, 1, 0, 1, 0], &[0x17; 70_000]];
    for (n, bytes) in garbage.iter().enumerate() {
        let mut stranger = TcpStream::connect(secret_address(&node)).expect("accepted");
        // It may be refused before all of it is sent.
        let _ = stranger.write_all(bytes);
        let _ = stranger.shutdown(Shutdown::Write);
        let _ = stranger.read_to_end(&mut Vec::new());
        wait_until(&node, |stats| stats.handshake_errors == n as u64 + 1);
    }
    // Somebody who does not say anything has the only place.
    let silent = TcpStream::connect(secret_address(&node)).expect("accepted");
    let mut refused = secret(&node, &trusting);
    assert!(refused.write_all(b"hello").is_err() || refused.read(&mut [0]).is_err());
    wait_until(&node, |stats| stats.rejected == 1);
    drop(silent);
    wait_until(&node, |stats| stats.handshake_errors == 5);
    let mut served = secret(&node, &trusting);
    assert_eq!(ask(&mut served, b"hello"), b"hello");
    // A second one is turned away while the first goes on.
    let mut refused = secret(&node, &trusting);
    assert!(refused.write_all(b"hello").is_err() || refused.read(&mut [0]).is_err());
    assert_eq!(ask(&mut served, b"still"), b"still");
    // Bytes that are no record end it, and nobody else.
    served.sock.write_all(&[0xff; 100]).expect("sent");
    assert!(served.read(&mut [0]).is_err());
    wait_until(&node, |stats| stats.workers[0].connections == 0);
    // Its room is free a little after it is no longer counted.
    let is_served = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        let mut next = secret(&node, &trusting);
        next.write_all(b"next").is_ok() && next.read_exact(&mut [0; 4]).is_ok()
    });
    assert!(is_served, "the room of a connection that ended is not free");
}

#[test]
fn certificates_are_replaced_for_new_connections() {
    let (old, new) = (Authority::new(), Authority::new());
    let tls = Tls::new(old.server(None));
    let node = echo(secret_config(&tls));
    let mut before = secret(&node, &old.client(None));
    assert_eq!(ask(&mut before, b"old"), b"old");
    tls.replace(new.server(None));
    let mut after = secret(&node, &new.client(None));
    assert_eq!(ask(&mut after, b"new"), b"new");
    assert_eq!(ask(&mut before, b"still"), b"still");
    let mut trusts_the_old = secret(&node, &old.client(None));
    let error = trusts_the_old.write_all(b"old").expect_err("not trusted");
    assert_eq!(error.kind(), ErrorKind::InvalidData);
}

#[test]
fn clients_show_certificates_where_they_are_asked_to() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let tls = Tls::new(authority.server(Some(&clients)));
    let node = echo(secret_config(&tls));
    let mut known = secret(&node, &authority.client(Some(&clients)));
    assert_eq!(ask(&mut known, b"known"), b"known");
    for own in [None, Some(&authority)] {
        let mut stranger = secret(&node, &authority.client(own));
        // The client has finished its part before it hears of the refusal.
        let _ = stranger.write_all(b"hello");
        let error = stranger.read(&mut [0]).expect_err("refused");
        assert_ne!(error.kind(), ErrorKind::WouldBlock);
    }
    wait_until(&node, |stats| stats.handshake_errors == 2);
    assert_eq!(node.stats().workers[0].connections_total, 1);
}

/// What the dialling node hears, or why it could not dial.
fn dialled(dials_with: Option<ClientConfig>, accepts_with: &Tls) -> Result<Vec<u8>, String> {
    let other = echo(Config {
        listen_peers: vec![Listen::Tls(([127, 0, 0, 1], 0).into())],
        peer_tls: Some(accepts_with.clone()),
        ..config(1)
    });
    let [Listen::Tls(at)] = *other.peer_addresses() else {
        panic!("no address for peers");
    };
    let dials = vec![Dial {
        token: 1,
        to: format!("localhost:{}", at.port()),
        within_us: 60_000_000,
    }];
    let (tell, told) = std::sync::mpsc::channel();
    let dialling = Config {
        dial_tls: dials_with.map(DialTls::new),
        ..config(1)
    };
    let node = start(dialling, move |_| {
        let (tell, mut dials, mut reached) = (tell.clone(), dials.clone(), None);
        by::<(), _>(move |_, input, fx| {
            fx.dials.append(&mut dials);
            let heard = match input {
                Input::Opened { conn, info } if !info.is_internal() => {
                    reached = Some(conn);
                    return say(fx, conn, b"hello");
                }
                Input::Received { bytes, .. } => Ok(bytes.to_vec()),
                Input::Undialled { error, .. } => Err(error.why),
                Input::Closed { conn } if reached == Some(conn) => Err("closed".into()),
                _ => return,
            };
            let _ = tell.send(heard);
        })
    })
    .expect("starts");
    drop(node.connect().expect("connected"));
    told.recv().expect("told")
}

#[test]
fn nodes_know_one_another_by_their_certificates() {
    let (nodes, strangers) = (Authority::new(), Authority::new());
    let accepts = Tls::new(nodes.server(Some(&nodes)));
    let client = |trusts: &Authority, own| Some(Arc::unwrap_or_clone(trusts.client(own)));
    assert_eq!(
        dialled(client(&nodes, Some(&nodes)), &accepts),
        Ok(b"hello".to_vec())
    );
    // Somebody else's certificate, none, or no TLS at all.
    for dials in [
        client(&nodes, Some(&strangers)),
        client(&nodes, None),
        client(&strangers, Some(&nodes)),
        None,
    ] {
        assert_ne!(dialled(dials, &accepts), Ok(b"hello".to_vec()));
    }
}

#[test]
fn there_is_no_listening_without_a_certificate() {
    let without = Config {
        listen: vec![Listen::Tls(([127, 0, 0, 1], 0).into())],
        ..config(1)
    };
    let error = start(without, |_| Echo).err().expect("refused");
    assert!(matches!(error, StartError::NoCertificate), "{error}");
}
