//! What goes wrong with etcd, and between nodes that use it. A real etcd is
//! started for each test (Debian: etcd-server). Nothing here depends on how long
//! anything takes; what never happens makes a test hang until [`LIMIT`].

use crate::common::{Server, base64, certificate};
use rufous_coordinator::etcd::{Etcd, Settings, Tls};
use rufous_coordinator::{AgreedMapping, Coordinator, Error, Member, NodeId, Proposed, View};
use serde_json::json;
use std::future::Future;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);

fn id(id: u8) -> NodeId {
    NodeId([id; 20])
}

fn member(name: u8, incarnation: u64) -> Member {
    Member {
        id: id(name),
        incarnation,
        after: incarnation - 1,
        about: Vec::new(),
    }
}

async fn open(settings: &Settings, name: u8, incarnation: u64) -> Etcd {
    let opened = Etcd::open(settings, member(name, incarnation)).await;
    opened.expect("settings")
}

async fn sees(etcd: &Etcd, wanted: impl FnMut(&View) -> bool) -> View {
    let mut view = etcd.view();
    let seen = view.wait_for(wanted).await.expect("it goes on");
    seen.clone()
}

/// A member, as soon as it is one.
async fn enter(server: &Server, name: u8, incarnation: u64) -> Etcd {
    let etcd = open(&server.settings("birds"), name, incarnation).await;
    sees(&etcd, |view| view.is_member).await;
    etcd
}

async fn limited(test: impl Future<Output = ()>) {
    tokio::time::timeout(LIMIT, test).await.expect("it hangs");
}

/// Proposes until it is known to be in force; etcd may be away meanwhile.
async fn insist(etcd: &Etcd, mapping: &[u8]) -> u64 {
    loop {
        let epoch = match etcd.read().await {
            Ok(state) => state.map_or(0, |state| state.epoch),
            Err(_) => continue,
        };
        match etcd.propose(epoch, mapping.to_vec()).await {
            Ok(Proposed::Taken) => return epoch + 1,
            Ok(Proposed::NotAlive) => {
                sees(etcd, |view| view.is_member).await;
            }
            Ok(Proposed::Behind(_)) | Err(Error::Away(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn etcd_is_killed_and_comes_back() {
    if !rufous_skip::has_program("etcd") {
        return;
    }
    limited(async {
        let mut server = Server::start();
        let one = enter(&server, 1, 1).await;
        let two = enter(&server, 2, 1).await;
        insist(&one, b"before").await;
        for node in [&one, &two] {
            sees(node, |view| view.epoch() == 1).await;
        }
        server.kill();
        // What was known stays known, and nothing can be changed.
        let view = sees(&one, |view| !view.is_current).await;
        assert_eq!((view.epoch(), view.members.len()), (1, 2));
        assert!(!view.is_member);
        let proposed = one.propose(1, b"meanwhile".to_vec()).await;
        assert!(matches!(proposed, Err(Error::Away(_))), "{proposed:?}");
        assert!(matches!(one.read().await, Err(Error::Away(_))));
        server.begin();
        let view = sees(&one, |view| view.is_current).await;
        assert_eq!(view.epoch(), 1);
        sees(&one, |view| view.is_member && view.members.len() == 2).await;
        let epoch = insist(&two, b"after").await;
        let view = sees(&one, |view| view.epoch() == epoch).await;
        assert_eq!(view.state.expect("a state").mapping, b"after");
    })
    .await;
}

#[tokio::test]
async fn etcd_comes_after_the_nodes() {
    if !rufous_skip::has_program("etcd") {
        return;
    }
    limited(async {
        let mut server = Server::start();
        server.kill();
        let one = open(&server.settings("birds"), 1, 1).await;
        assert!(matches!(one.read().await, Err(Error::Away(_))));
        let proposed = one.propose(0, Vec::new()).await.expect("not asked");
        assert_eq!(proposed, Proposed::NotAlive);
        assert!(one.announce(b"later".to_vec()).await.is_err());
        server.begin();
        sees(&one, |view| view.is_member).await;
        assert_eq!(insist(&one, b"first").await, 1);
    })
    .await;
}

#[tokio::test]
async fn who_says_nothing_more_is_gone_and_another_leads() {
    if !rufous_skip::has_program("etcd") {
        return;
    }
    limited(async {
        let server = Server::start();
        let one = enter(&server, 1, 1).await;
        let two = enter(&server, 2, 1).await;
        let three = enter(&server, 3, 1).await;
        let view = sees(&three, |view| view.members.len() == 3).await;
        assert_eq!(view.leader, Some(id(1)));
        // Nobody says goodbye: the lease runs out.
        drop(one);
        let view = sees(&three, |view| view.members.len() == 2).await;
        assert_eq!(view.leader, Some(id(2)));
        // One that starts again is the youngest, whatever it was before.
        drop(two);
        let two = enter(&server, 2, 2).await;
        let again = |view: &View| {
            view.members
                .get(&id(2))
                .is_some_and(|two| two.incarnation == 2)
        };
        let view = sees(&three, again).await;
        assert_eq!(view.leader, Some(id(3)));
        two.leave().await;
        sees(&three, |view| view.members.len() == 1).await;
    })
    .await;
}

#[tokio::test]
async fn of_two_nodes_with_one_id_one_is_a_member() {
    if !rufous_skip::has_program("etcd") {
        return;
    }
    limited(async {
        let server = Server::start();
        let one = enter(&server, 1, 7).await;
        let watcher = enter(&server, 9, 1).await;
        let copy = open(&server.settings("birds"), 1, 7).await;
        let proposed = copy.propose(0, Vec::new()).await.expect("not asked");
        assert_eq!(proposed, Proposed::NotAlive);
        // Ours is renewed all the while, until it ends.
        assert!(one.view().borrow().is_member);
        drop(one);
        sees(&copy, |view| view.is_member).await;
        // A later start takes its place at once, and the earlier one, which
        // still runs, can change nothing any more.
        let later = enter(&server, 1, 8).await;
        let view = sees(&copy, |view| !view.is_member).await;
        let proposed = copy.propose(view.epoch(), Vec::new()).await;
        assert_eq!(proposed.expect("asked"), Proposed::NotAlive);
        sees(&watcher, |view| {
            view.members
                .get(&id(1))
                .is_some_and(|one| one.incarnation == 8)
        })
        .await;
        assert_eq!(insist(&later, b"mine").await, 1);
    })
    .await;
}

#[tokio::test]
async fn who_was_replaced_decides_nothing() {
    if !rufous_skip::has_program("etcd") {
        return;
    }
    limited(async {
        let server = Server::start();
        let one = enter(&server, 1, 1).await;
        // A later start, of which this one has not heard yet.
        let key = format!("/rufous/birds/members/{:?}", id(1));
        server.put(&key, &[0xff; 8]).expect("put");
        let proposed = one.propose(0, Vec::new()).await.expect("asked");
        assert_eq!(proposed, Proposed::NotAlive);
        // What is not written is not said to be: the node would not try again.
        let said = one.announce(b"later".to_vec()).await;
        assert!(matches!(said, Err(Error::Away(_))), "{said:?}");
        assert_eq!(one.read().await.expect("read"), None);
    })
    .await;
}

#[tokio::test]
async fn two_that_think_they_lead_never_both_decide() {
    if !rufous_skip::has_program("etcd") {
        return;
    }
    limited(async {
        let server = Server::start();
        let one = enter(&server, 1, 1).await;
        let two = enter(&server, 2, 1).await;
        let campaign = |etcd, name: u8| async move {
            let mut taken = Vec::new();
            for epoch in 0..40 {
                let mapping = [name, epoch as u8];
                match Etcd::propose(etcd, epoch, mapping.to_vec()).await {
                    Ok(Proposed::Taken) => taken.push((epoch + 1, mapping)),
                    Ok(Proposed::Behind(Some(state))) => assert!(state.epoch > epoch),
                    other => panic!("{other:?}"),
                }
            }
            taken
        };
        let (mut taken, others) = tokio::join!(campaign(&one, 1), campaign(&two, 2));
        taken.extend(others);
        taken.sort_unstable();
        let epochs: Vec<u64> = taken.iter().map(|(epoch, _)| *epoch).collect();
        assert_eq!(epochs, (1..=40).collect::<Vec<_>>());
        let (epoch, mapping) = taken.pop().expect("the last");
        let mapping = mapping.to_vec();
        let last = Some(AgreedMapping { epoch, mapping });
        assert_eq!(one.read().await.expect("read"), last);
        for etcd in [&one, &two] {
            let view = sees(etcd, |view| view.epoch() == 40).await;
            assert_eq!(view.state, last);
        }
    })
    .await;
}

#[tokio::test]
async fn history_that_a_watch_needs_is_compacted_away() {
    if !rufous_skip::has_program("etcd") {
        return;
    }
    limited(async {
        let mut server = Server::start();
        let one = enter(&server, 1, 1).await;
        insist(&one, b"first").await;
        for round in 0..3 {
            server.kill();
            sees(&one, |view| !view.is_current).await;
            server.begin();
            // Changes and a compaction that the watch has not seen.
            let revision = loop {
                match server.put("noise", &[round]) {
                    Ok(put) => break put["header"]["revision"].clone(),
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            };
            let compact = json!({ "revision": revision, "physical": true });
            server.ask("kv/compaction", &compact).expect("compacted");
            let epoch = insist(&one, &[round]).await;
            let view = sees(&one, |view| view.epoch() == epoch).await;
            assert_eq!(view.state.expect("a state").mapping, [round]);
        }
    })
    .await;
}

#[tokio::test]
async fn etcd_is_restored_to_an_earlier_state() {
    if !rufous_skip::has_program("etcd") {
        return;
    }
    limited(async {
        let mut server = Server::start();
        let one = enter(&server, 1, 1).await;
        insist(&one, b"first").await;
        server.kill();
        let backup = server.save();
        server.begin();
        sees(&one, |view| view.is_member).await;
        insist(&one, b"second").await;
        sees(&one, |view| view.epoch() == 2).await;
        server.kill();
        server.restore(&backup);
        server.begin();
        let view = sees(&one, |view| view.behind.is_some()).await;
        assert_eq!((view.behind, view.epoch()), (Some(1), 2));
        assert_eq!(view.state.expect("a state").mapping, b"second");
    })
    .await;
}

#[tokio::test]
async fn what_others_write_harms_nobody() {
    if !rufous_skip::has_program("etcd") {
        return;
    }
    limited(async {
        let server = Server::start();
        let one = enter(&server, 1, 1).await;
        let fish = open(&server.settings("fish"), 2, 1).await;
        sees(&fish, |view| view.is_member).await;
        for (key, value) in [
            ("/rufous/birds/members/zz", "garbage"),
            ("/rufous/birds/members/\u{1b}[2J", "garbage"),
            ("/rufous/birds/other", "garbage"),
        ] {
            server.put(key, value.as_bytes()).expect("put");
        }
        assert_eq!(insist(&one, b"mine").await, 1);
        let view = sees(&one, |view| view.epoch() == 1).await;
        assert_eq!(view.members.len(), 1);
        assert_eq!(fish.read().await.expect("read"), None);
        server.put("/rufous/birds/mapping", b"short").expect("put");
        assert!(matches!(one.read().await, Err(Error::Damaged(_))));
        let proposed = one.propose(1, Vec::new()).await;
        assert!(matches!(proposed, Err(Error::Damaged(_))));
        // Nobody takes an epoch back.
        let key = base64(b"/rufous/birds/mapping");
        let deleted = server.ask("kv/deleterange", &json!({ "key": key }));
        assert_eq!(deleted.expect("deleted")["deleted"], "1");
        assert_eq!(one.view().borrow().epoch(), 1);
    })
    .await;
}

#[tokio::test]
async fn settings_that_cannot_be_are_refused() {
    let settings = Settings {
        endpoints: vec!["http://127.0.0.1:1".to_owned()],
        cluster: "birds".to_owned(),
        ..Settings::default()
    };
    let me = || member(1, 1);
    for cluster in ["", "a/b", &"x".repeat(256)] {
        let settings = Settings {
            cluster: cluster.to_owned(),
            ..settings.clone()
        };
        let opened = Etcd::open(&settings, me()).await;
        assert!(matches!(opened, Err(Error::Settings(_))), "{cluster}");
    }
    for endpoints in [vec![], vec!["http://a b".to_owned()]] {
        let settings = Settings {
            endpoints,
            ..settings.clone()
        };
        let opened = Etcd::open(&settings, me()).await;
        assert!(matches!(opened, Err(Error::Settings(_))));
    }
}

#[tokio::test]
async fn etcd_wants_certificates() {
    if !rufous_skip::has_program("etcd") || !rufous_skip::has_program("openssl") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let server = Server::that_wants_certificates(folder);
    certificate(folder, "foreign", None);
    certificate(folder, "stranger", Some("foreign"));
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a file");
    let settings = |authority: &str, node: Option<&str>| Settings {
        tls: Some(Tls {
            authority: text(&format!("{authority}.pem")),
            identity: node.map(|node| {
                let (certificate, key) = (format!("{node}.pem"), format!("{node}.key"));
                (text(&certificate), text(&key))
            }),
        }),
        ..server.settings("birds")
    };
    limited(async {
        let one = open(&settings("birds", Some("node")), 1, 1).await;
        sees(&one, |view| view.is_member).await;
        assert_eq!(insist(&one, b"mine").await, 1);
        // It is there, so who does not get in was refused.
        for (authority, node) in [
            ("birds", None),
            ("birds", Some("stranger")),
            ("foreign", Some("node")),
        ] {
            let other = open(&settings(authority, node), 2, 1).await;
            assert!(other.read().await.is_err(), "{authority} {node:?}");
            assert!(!other.view().borrow().is_member);
        }
    })
    .await;
}

#[tokio::test]
async fn etcd_wants_a_name_and_a_password() {
    if !rufous_skip::has_program("etcd") {
        return;
    }
    let mut server = Server::start();
    let settings = |name: &str, password: &str| Settings {
        user: Some((name.to_owned(), password.to_owned())),
        ..server.settings("birds")
    };
    let (wren, stranger) = (settings("wren", "s3cret"), settings("wren", "secret"));
    limited(async {
        // It takes its time to start.
        let anybody = open(&server.settings("birds"), 4, 1).await;
        sees(&anybody, |view| view.is_member).await;
        drop(anybody);
        let opened = Etcd::open(&wren, member(1, 1)).await;
        let why = opened.expect_err("nobody asked for a name").to_string();
        assert!(why.contains("refuses the login"), "{why}");
        let ask = |what: &str, with| server.ask(&format!("auth/{what}"), &with).expect("done");
        for (name, password) in [("root", "r00t"), ("wren", "s3cret")] {
            ask("user/add", json!({ "name": name, "password": password }));
        }
        ask("role/add", json!({ "name": "birds" }));
        // All keys: a zero byte as both ends of the range.
        let zero = base64(&[0]);
        let all = json!({ "permType": "READWRITE", "key": zero, "range_end": zero });
        ask("role/grant", json!({ "name": "birds", "perm": all }));
        ask("user/grant", json!({ "user": "root", "role": "root" }));
        ask("user/grant", json!({ "user": "wren", "role": "birds" }));
        ask("enable", json!({}));
        let one = open(&wren, 1, 1).await;
        sees(&one, |view| view.is_member).await;
        assert_eq!(insist(&one, b"mine").await, 1);
        for settings in [&stranger, &settings("owl", "s3cret")] {
            let opened = Etcd::open(settings, member(2, 1)).await;
            assert!(matches!(opened, Err(Error::Settings(_))), "{opened:?}");
        }
        // Who says no name is not let in, but may be before long.
        let nobody = open(&server.settings("birds"), 3, 1).await;
        assert!(nobody.read().await.is_err());
        assert!(!nobody.view().borrow().is_member);
    })
    .await;
    server.kill();
    limited(async {
        let opened = Etcd::open(&wren, member(1, 2)).await;
        assert!(matches!(opened, Err(Error::Away(_))), "{opened:?}");
    })
    .await;
}
