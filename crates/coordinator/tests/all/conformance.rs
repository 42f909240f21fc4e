//! What every coordinator promises, tried with each of them.
//!
//! For etcd it starts a real one (Debian: etcd-server).

use rufous_coordinator::local::Local;
use rufous_coordinator::loopback::{Client, Secret, Server};
use rufous_coordinator::meeting::{Attendee, Meeting};
use rufous_coordinator::{
    AgreedMapping, Coordinator, Error, MAX_ABOUT, MAX_MAPPING, Member, NodeId, Proposed, View,
};

/// A place in which coordinators agree.
trait Ground {
    type Coordinator: Coordinator + Send + Sync + 'static;
    /// One for a node, which is a member when it comes back.
    async fn open(&self, id: u8, incarnation: u64) -> Self::Coordinator;
}

fn member(id: u8, incarnation: u64) -> Member {
    Member {
        id: NodeId([id; 20]),
        incarnation,
        after: incarnation - 1,
        about: vec![id, 0xff],
    }
}

fn state(epoch: u64, mapping: &[u8]) -> Option<AgreedMapping> {
    let mapping = mapping.to_vec();
    Some(AgreedMapping { epoch, mapping })
}

async fn sees(coordinator: &impl Coordinator, wanted: impl FnMut(&View) -> bool) -> View {
    let mut view = coordinator.view();
    let seen = view.wait_for(wanted).await.expect("it goes on");
    seen.clone()
}

async fn conforms(ground: impl Ground) {
    let one = ground.open(1, 7).await;
    let view = sees(&one, |view| view.is_member).await;
    assert!(view.is_current);
    assert_eq!(view.state, None);
    assert_eq!(view.members.get(&NodeId([1; 20])), Some(&member(1, 7)));
    assert_eq!(
        (view.members.len(), view.leader),
        (1, Some(NodeId([1; 20])))
    );
    assert_eq!(one.read().await.expect("read"), None);

    // Epochs rise by one, each is given once, and everybody hears of them.
    let proposed = one.propose(1, vec![0]).await.expect("asked");
    assert_eq!(proposed, Proposed::Behind(None));
    let proposed = one.propose(0, b"first".to_vec()).await.expect("asked");
    assert_eq!(proposed, Proposed::Taken);
    let view = sees(&one, |view| view.epoch() > 0).await;
    assert_eq!(view.state, state(1, b"first"));
    for late in [0, 2] {
        let proposed = one.propose(late, b"other".to_vec()).await.expect("asked");
        assert_eq!(proposed, Proposed::Behind(state(1, b"first")));
    }
    let largest = vec![7; MAX_MAPPING];
    let proposed = one.propose(1, largest.clone()).await.expect("asked");
    assert_eq!(proposed, Proposed::Taken);
    assert_eq!(one.read().await.expect("read"), state(2, &largest));
    let proposed = one.propose(2, vec![7; MAX_MAPPING + 1]).await;
    assert!(matches!(proposed, Err(Error::TooLarge(_))), "{proposed:?}");

    // Of many at once one is taken.
    let one = std::sync::Arc::new(one);
    let mut asked = tokio::task::JoinSet::new();
    for number in 0..8 {
        let one = one.clone();
        asked.spawn(async move { (number, one.propose(2, vec![number]).await) });
    }
    let mut taken = Vec::new();
    while let Some(done) = asked.join_next().await {
        match done.expect("no panic") {
            (number, Ok(Proposed::Taken)) => taken.push(number),
            (_, Ok(Proposed::Behind(Some(state)))) => assert_eq!(state.epoch, 3),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(taken.len(), 1, "{taken:?}");
    assert_eq!(one.read().await.expect("read"), state(3, &taken));

    // It can say something else of itself, and is the same member.
    one.announce(b"else".to_vec()).await.expect("said");
    let says = |view: &View| view.members[&NodeId([1; 20])].about == b"else";
    let view = sees(&*one, |view| view.is_member && says(view)).await;
    assert_eq!((view.leader, view.epoch()), (Some(NodeId([1; 20])), 3));
    let long = one.announce(vec![0; MAX_ABOUT + 1]).await;
    assert!(matches!(long, Err(Error::AboutTooLarge(_))), "{long:?}");

    // It is there for the next start of the node.
    let one = std::sync::Arc::into_inner(one).expect("the last");
    one.leave().await;
    let again = ground.open(1, 8).await;
    let view = sees(&again, |view| view.is_member).await;
    assert_eq!(view.state, state(3, &taken));
    assert_eq!(view.members.get(&NodeId([1; 20])), Some(&member(1, 8)));
}

struct Folder(tempfile::TempDir);

impl Ground for Folder {
    type Coordinator = Local;

    async fn open(&self, id: u8, incarnation: u64) -> Local {
        Local::open(self.0.path(), member(id, incarnation)).expect("a folder")
    }
}

#[tokio::test]
async fn a_file_conforms() {
    conforms(Folder(tempfile::tempdir().expect("a folder"))).await;
}

impl Ground for Meeting {
    type Coordinator = Attendee;

    async fn open(&self, id: u8, incarnation: u64) -> Attendee {
        self.join(member(id, incarnation)).expect("let in")
    }
}

#[tokio::test]
async fn a_meeting_conforms() {
    conforms(Meeting::default()).await;
}

impl Ground for Server {
    type Coordinator = Client;

    async fn open(&self, id: u8, incarnation: u64) -> Client {
        let address = self.address().to_string();
        Client::open(&address, "birds", None, member(id, incarnation)).expect("a client")
    }
}

/// Whose nodes prove that they know a secret.
struct Guarded(Server);

impl Ground for Guarded {
    type Coordinator = Client;

    async fn open(&self, id: u8, incarnation: u64) -> Client {
        let (address, secret) = (self.0.address().to_string(), Secret::new(b"secret"));
        let me = member(id, incarnation);
        Client::open(&address, "birds", Some(secret), me).expect("a client")
    }
}

#[tokio::test]
async fn a_process_on_this_machine_conforms() {
    let any = ([127, 0, 0, 1], 0).into();
    conforms(
        Server::start(any, "birds", None, None)
            .await
            .expect("started"),
    )
    .await;
    let folder = tempfile::tempdir().expect("a folder");
    let kept = Server::start(any, "birds", None, Some(folder.path())).await;
    conforms(kept.expect("started")).await;
    let guarded = Server::start(any, "birds", Some(Secret::new(b"secret")), None).await;
    conforms(Guarded(guarded.expect("started"))).await;
}

mod with_etcd {
    use super::*;
    use rufous_coordinator::etcd::Etcd;

    impl Ground for crate::common::Server {
        type Coordinator = Etcd;

        async fn open(&self, id: u8, incarnation: u64) -> Etcd {
            let settings = self.settings("birds");
            let etcd = Etcd::open(&settings, member(id, incarnation)).await;
            etcd.expect("settings")
        }
    }

    #[tokio::test]
    async fn etcd_conforms() {
        if !rufous_skip::has_program("etcd") {
            return;
        }
        conforms(crate::common::Server::start()).await;
    }
}
