//! TLS between nodes: both sides show a certificate of the cluster's authority.

use crate::node::{Node, connect_all, number, remember_sessions, settings};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rufous_coordinator::meeting::Meeting;
use rufous_node::node::{Node as Server, NodeError};
use rufous_resp::reply::Reply;
use rufous_server::cluster::Settings;
use rufous_server::cluster::settings::PeerTls;
use std::net::TcpStream;

/// Who signs, and the files of what was signed.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: tempfile::TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut about = CertificateParams::default();
        about.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(about, key).expect("signed");
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).expect("written");
        Self { issuer, folder }
    }

    /// A node's settings, with a certificate of its own.
    fn settings(&self, meeting: &Meeting) -> Settings {
        let key = KeyPair::generate().expect("a key");
        let about = CertificateParams::new(vec!["127.0.0.1".into()]).expect("a name");
        let signed = about.signed_by(&key, &self.issuer).expect("signed");
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let mut tls = PeerTls {
            cert_file: path("cert.pem"),
            key_file: path("key.pem"),
            ca_cert_file: path("ca.pem"),
        };
        std::fs::write(&tls.cert_file, signed.pem()).expect("written");
        std::fs::write(&tls.key_file, key.serialize_pem()).expect("written");
        let settings = Settings {
            tls: Some(tls.clone()),
            ..settings(meeting)
        };
        tls.cert_file.clear();
        assert!(
            matches!(
                Server::start(&crate::node::config(
                    1,
                    Settings {
                        tls: Some(tls),
                        ..settings.clone()
                    }
                )),
                Err(NodeError::Cluster(_))
            ),
            "without a certificate no node starts"
        );
        settings
    }
}

#[test]
fn nodes_of_one_authority_talk_and_others_are_not_let_in() {
    // Those who dial are refused, and those who are dialled.
    for foreign_first in [false, true] {
        let (own, foreign) = (Authority::new(), Authority::new());
        let meeting = Meeting::default();
        let mut nodes = Vec::new();
        let mut stranger = None;
        if foreign_first {
            stranger = Some(Node::start(1, foreign.settings(&meeting)));
            // It is a member before the others come, and has the lowest number.
            let stranger = stranger.as_mut().expect("there");
            stranger.until("a mapping", |info| number(info, "cluster_epoch") == 1);
        }
        nodes.extend((0..2).map(|_| Node::start(2, own.settings(&meeting))));
        if !foreign_first {
            // The stranger is to get the highest number.
            connect_all(&mut nodes);
        }
        let mut stranger = stranger.unwrap_or_else(|| Node::start(1, foreign.settings(&meeting)));
        let connected = |node: &mut Node| {
            node.until("the two are connected", |info| {
                number(info, "cluster_members") == 3 && number(info, "cluster_connected_nodes") == 1
            })
        };
        remember_sessions(&mut nodes, |node| {
            connected(node);
        });
        // In the clear nobody gets a word in.
        let mut plain = TcpStream::connect(nodes[0].peer_address()).expect("accepted");
        std::io::Write::write_all(&mut plain, b"hello, here is a node").expect("sent");
        let mut rest = Vec::new();
        let _gone = std::io::Read::read_to_end(&mut plain, &mut rest);
        match foreign_first {
            true => {
                stranger.until("it fails again and again", |info| {
                    number(info, "cluster_dial_errors") >= 4
                });
            }
            false => {
                for node in &mut nodes {
                    node.until("they fail to reach it", |info| {
                        number(info, "cluster_dial_errors") >= 2
                    });
                }
            }
        }
        assert!(nodes[0].handshake_errors() > 0);
        assert_eq!(number(&stranger.info(), "cluster_sessions"), 0);
        for node in &mut nodes {
            connected(node);
            node.has_the_same_sessions();
        }
        if !foreign_first {
            // It gets no slots, and takes none out of service.
            assert_eq!(number(&stranger.info(), "cluster_slots_served"), 0);
            for n in 0..100 {
                let key = format!("key:{n}");
                let reply = nodes[n % 2].call(&["SET", &key, "v"]);
                assert_eq!(reply, Reply::Simple(b"OK".to_vec()), "{key}");
            }
        }
    }
}

#[test]
fn certificates_are_replaced_while_nodes_run() {
    let first = Authority::new();
    let meeting = Meeting::default();
    let settings = first.settings(&meeting);
    let tls = settings.tls.clone().expect("with TLS");
    let mut nodes = vec![
        Node::start(1, settings.clone()),
        Node::start(1, settings.clone()),
    ];
    connect_all(&mut nodes);
    // All that there will be is signed by another authority.
    let second = Authority::new();
    let _files = second.settings(&meeting);
    for (name, to) in [
        ("ca.pem", &tls.ca_cert_file),
        ("cert.pem", &tls.cert_file),
        ("key.pem", &tls.key_file),
    ] {
        let bytes = std::fs::read(second.folder.path().join(name)).expect("read");
        std::fs::write(to, bytes).expect("written");
    }
    // Who comes now has the new ones; sooner or later the others have, too.
    nodes.push(Node::start(1, settings));
    connect_all(&mut nodes);
    let info = nodes[0].info();
    assert_eq!(number(&info, "cluster_sessions"), 2, "the first one stays");
}
