//! That settings of clusters go together, and what is said where they do not.

use super::sources::{Given, load};
use rufous_kernel::keyspace::{Keyspace, Regime};
use rufous_server::cluster::Settings;
use rufous_server::cluster::settings::{ClusterSecret, CoordinatorAddress, EtcdAccess, PeerTls};
use rufous_server::config::Config;
use rufous_server::config::cluster::{Clustering, ENABLED};
use rufous_wire::proof::Demand;
use rufous_wire::version::{NEWEST, OLDEST};

fn given(settings: &[(&str, &str)]) -> Given {
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Given {
        command_line: settings.iter().map(pair).collect(),
        ..Given::default()
    }
}

fn told(settings: &[(&str, &str)]) -> Settings {
    let loaded = load(&given(settings)).unwrap_or_else(|why| panic!("{settings:?}: {why:?}"));
    loaded.config.cluster.expect("in a cluster")
}

#[test]
fn a_name_makes_a_cluster_of_one() {
    assert!(load(&given(&[])).is_ok_and(|all| all.config.cluster.is_none()));
    let one = told(&[("cluster-name", "birds")]);
    let expected = Settings {
        listen: ([127, 0, 0, 1], 16379).into(),
        ..Settings::new("birds")
    };
    assert_eq!(one, expected);
}

#[test]
fn all_that_is_given_is_told() {
    let id = "0A".repeat(20);
    let all = told(&[
        ("cluster-name", "birds"),
        ("cluster-id", &id),
        ("cluster-listen", "127.0.0.1:7501"),
        ("cluster-clients", "[::1]:7502"),
        ("cluster-advertise", "db-1.example.org"),
        ("cluster-copies", "3"),
        ("cluster-weight", "50"),
        ("cluster-move-rate", "2mb"),
        ("cluster-zone", "west"),
        ("cluster-wire-version", "1"),
        ("cluster-tls-cert-file", "a.pem"),
        ("cluster-tls-key-file", "b.pem"),
        ("cluster-tls-ca-cert-file", "c.pem"),
        ("cluster-secret", "the secret of the birds"),
        ("cluster-auth", "optional"),
    ]);
    let expected = Settings {
        name: "birds".into(),
        id: Some([10; 20]),
        listen: ([127, 0, 0, 1], 7501).into(),
        clients: "[::1]:7502".parse().ok(),
        advertise: Some("db-1.example.org".into()),
        coordinator: CoordinatorAddress::Local,
        etcd: EtcdAccess::default(),
        tls: Some(PeerTls {
            cert_file: "a.pem".into(),
            key_file: "b.pem".into(),
            ca_cert_file: "c.pem".into(),
        }),
        secret: Some(ClusterSecret::new("the secret of the birds")),
        demand: Demand::Optional,
        copies: 3,
        weight: 50,
        move_rate: 2 << 20,
        zone: "west".into(),
        wire_version: 1,
        accept_loss: false,
        forget_after_s: 864_000,
    };
    assert_eq!(all, expected);
}

#[test]
fn where_other_nodes_connect() {
    let check = |settings: &[(&str, &str)], expected: &str| {
        let all = [&[("cluster-name", "birds")], settings].concat();
        assert_eq!(told(&all).listen.to_string(), expected, "{settings:?}");
    };
    check(&[("port", "7001")], "127.0.0.1:17001");
    check(&[("port", "7001"), ("bind", "-::1")], "[::1]:17001");
    check(&[("port", "0"), ("tls-port", "7002")], "127.0.0.1:17002");
    let everywhere = [
        ("bind", "*"),
        ("cluster-listen", "*:9"),
        ("cluster-advertise", "db"),
        ("cluster-secret", "the secret of the birds"),
    ];
    check(&everywhere, "0.0.0.0:9");
    check(&[("cluster-listen", "127.0.0.1:0")], "127.0.0.1:0");
}

/// That there is one thing wrong, of which this is said.
#[track_caller]
fn refused(settings: &[(&str, &str)], expected: &str) {
    let problems = load(&given(settings)).err().unwrap_or_default();
    let text: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(text.len(), 1, "{settings:?}: {text:?}");
    assert!(text[0].contains(expected), "{settings:?}: {text:?}");
}

#[test]
fn what_etcd_wants_to_see_goes_together() {
    let (check, name) = (refused, ("cluster-name", "birds"));
    let (ca, user) = (
        ("cluster-etcd-ca-cert-file", "a"),
        ("cluster-etcd-user", "b"),
    );
    check(&[name, ca], "cluster-etcd-ca-cert-file: this needs an etcd");
    check(&[user], "without cluster-name");
    let etcd = ("cluster-coordinator", "etcd://a:1");
    let certificate = ("cluster-etcd-cert-file", "c");
    check(&[name, etcd, user], "cluster-etcd-password: etcd wants");
    check(
        &[name, etcd, ("cluster-etcd-password", "p")],
        "cluster-etcd-user: etcd wants",
    );
    let password = ("cluster-etcd-password", "p");
    check(&[name, etcd, user, password], "would be sent without TLS");
    check(
        &[
            name,
            etcd,
            user,
            password,
            ("cluster-etcd-password-file", "f"),
        ],
        "cluster-etcd-password is set as well",
    );
    check(
        &[name, etcd, ca, certificate],
        "cluster-etcd-key-file: the key of",
    );
    check(
        &[name, etcd, ca, ("cluster-etcd-key-file", "k")],
        "cluster-etcd-cert-file: the certificate of",
    );
    check(
        &[name, etcd, certificate, ("cluster-etcd-key-file", "k")],
        "cluster-etcd-ca-cert-file: client certificates need TLS",
    );
}

#[test]
fn what_does_not_go_together_says_what_to_do() {
    let check = refused;
    let name = ("cluster-name", "birds");
    check(
        &[("cluster-copies", "2")],
        "cluster-copies: without cluster-name",
    );
    check(
        &[("cluster-tls-key-file", "x")],
        "cluster-tls-cert-file: without cluster-name",
    );
    check(&[("cluster-name", "a/b")], "without a slash");
    check(&[name, ("cluster-id", "77")], "40 hexadecimal digits");
    check(&[name, ("bind", "*")], "say with cluster-advertise");
    check(
        &[name, ("cluster-clients", "0.0.0.0:1")],
        "say with cluster-advertise",
    );
    check(
        &[name, ("port", "60000")],
        "cluster-listen: 60000 and 10000 is no port",
    );
    check(
        &[name, ("cluster-listen", "127.0.0.1:6379")],
        "6379 is already the port for clients",
    );
    check(
        &[name, ("cluster-clients", "127.0.0.1:16379")],
        "16379 is already the port for other nodes",
    );
    check(
        &[name, ("cluster-listen", "here")],
        "not an address with a port",
    );
    check(
        &[name, ("cluster-tls-cert-file", "a")],
        "cluster-tls-key-file: nodes show certificates to each other",
    );
    check(
        &[name, ("cluster-coordinator", "zk://a:1")],
        "a coordinator is 'local'",
    );
    check(&[name, ("cluster-advertise", "db:1")], "without a port");
    check(&[name, ("cluster-zone", &"z".repeat(300))], "zone");
    check(&[name, ("cluster-copies", "9")], "between 1 and 5");
    check(
        &[name, ("cluster-move-rate", "1")],
        "minimum 65536 bytes/s; 0 means unlimited",
    );
    check(&[name, ("cluster-weight", "0")], "between 1 and 1000");
    let newer = (NEWEST + 1).to_string();
    check(
        &[name, ("cluster-wire-version", &newer)],
        &format!("between {OLDEST} and {NEWEST}"),
    );
    check(
        &[("cluster-wire-version", "1")],
        "cluster-wire-version: without cluster-name",
    );
}

#[test]
fn a_cluster_that_other_machines_reach_has_a_secret() {
    let (check, name) = (refused, ("cluster-name", "birds"));
    check(
        &[name, ("cluster-listen", "10.0.0.1:9")],
        "cluster-secret: other machines reach 10.0.0.1:9",
    );
    check(
        &[name, ("cluster-secret", "short")],
        "a cluster has 16 to 1024 bytes",
    );
    check(
        &[name, ("cluster-auth", "maybe")],
        "one of the following: required, optional",
    );
}

#[test]
fn it_is_shown_whether_there_is_a_cluster() {
    let shown = |settings: &[(&str, &str)]| {
        let loaded = load(&given(settings)).expect("valid");
        (ENABLED.get)(&loaded.config)
    };
    assert_eq!(shown(&[]), "no");
    assert_eq!(shown(&[("cluster-name", "birds")]), "yes");
}

#[test]
fn who_shares_lattice_keyspaces_has_as_many_workers_as_stamps_can_name() {
    let asked = |workers: usize, regime: Regime| {
        let keyspace = Keyspace {
            regime,
            ..Keyspace::new("likes", b"likes:")
        };
        let config = Config {
            workers,
            keyspaces: vec![keyspace],
            ..Config::default()
        };
        let clustering = Clustering {
            name: "birds".into(),
            ..Clustering::default()
        };
        clustering
            .settings(&config)
            .map(|settings| settings.is_some())
    };
    assert_eq!(asked(64, Regime::Lattice), Ok(true));
    assert_eq!(asked(65, Regime::Strict), Ok(true));
    let (setting, why) = asked(65, Regime::Lattice).expect_err("too many");
    assert!(
        setting == "workers" && why.contains("64 workers each"),
        "{why}"
    );
}

#[test]
fn what_etcd_wants_to_see_is_told_and_its_password_not_shown() {
    let settings = told(&[
        ("cluster-name", "birds"),
        ("cluster-coordinator", "etcd://a:1"),
        ("cluster-etcd-ca-cert-file", "ca.pem"),
        ("cluster-etcd-user", "wren"),
        ("cluster-etcd-password", "s3cret"),
        ("cluster-secret", "s3cret of the birds"),
    ]);
    let access = &settings.etcd;
    assert_eq!(
        (access.user.as_str(), access.password.as_str()),
        ("wren", "s3cret")
    );
    assert_eq!(access.ca_cert_file, "ca.pem");
    assert!(!format!("{settings:?}").contains("s3cret"));
}
