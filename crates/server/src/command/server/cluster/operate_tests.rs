//! What operators ask of a node, and what it says to the coordinator then.

use super::tests::{mapping, rig, text};
use crate::cluster::status::Status;
use rufous_base::limits::SLOTS;
use rufous_mapping::planner::Health;
use rufous_mapping::{Chain, Chains, Members, NodeNo, Phase};

#[test]
fn what_operators_ask_is_said_to_the_coordinator() {
    let mut rig = rig(&[1, 2], 2);
    let not_there = "-CLUSTERDOWN The node has not joined its cluster yet\r\n";
    rig.check("CLUSTER DRAIN", not_there);
    rig.check("CLUSTER WEIGHT 50", not_there);
    assert!(rig.run("CLUSTER STATUS").starts_with("-CLUSTERDOWN "));

    let cluster = rig.fronts[0].shared.cluster.clone().expect("a cluster");
    let two = mapping(&[1, 2], 2);
    let own = two.members[&NodeNo(0)].clone();
    cluster.about.begin(own.clone());
    let alive = two
        .members
        .values()
        .map(|member| (member.id, (1, Health::default())));
    cluster.about.see(&two, alive.collect(), true);
    let status = rig.run("CLUSTER STATUS");
    assert!(text(&status).contains("slots_whole:16384\r\n"), "{status}");
    assert!(
        text(&status).contains("\r\nnode:number=0,id=0101"),
        "{status}"
    );

    // Of itself it knows its versions, of who is not connected nothing.
    let status = Status::parse(text(&status)).expect("a status");
    let versions = |n: usize| {
        let node = &status.nodes[n];
        (node.wire_oldest, node.wire_newest, node.wire_used)
    };
    assert_eq!(versions(0), (Some(1), Some(1), None));
    assert_eq!(versions(1), (None, None, None));

    rig.check("CLUSTER DRAIN", "+OK\r\n");
    assert!(cluster.about.news().expect("news").0.drains);
    rig.check("CLUSTER DRAIN off", "+OK\r\n");
    rig.check("CLUSTER WEIGHT 50", "+OK\r\n");
    let news = cluster.about.news().expect("news");
    assert_eq!((news.0.drains, news.0.weight), (false, 50));
    for wrong in [
        "CLUSTER DRAIN maybe",
        "CLUSTER DRAIN ON now",
        "CLUSTER PREVIEW 0",
    ] {
        rig.check(wrong, "-ERR syntax error\r\n");
    }
    for wrong in ["0", "1001", "x", "-1", ""] {
        let refused = rig.run(&format!("CLUSTER WEIGHT \"{wrong}\""));
        assert!(
            refused.starts_with("-ERR a weight is"),
            "{wrong}: {refused}"
        );
    }
    let preview = rig.run("CLUSTER PREVIEW 0 50");
    assert!(
        text(&preview).starts_with("moving:0\r\n"),
        "two copies, two nodes: {preview}"
    );
    assert!(
        rig.run("CLUSTER PREVIEW a 50")
            .starts_with("-ERR nodes and weights")
    );
}

#[test]
fn a_member_that_is_gone_is_removed() {
    let mut rig = rig(&[1, 2], 2);
    let not_yet = "-CLUSTERDOWN The node has no mapping of its cluster yet\r\n";
    rig.check("CLUSTER FORGET n1", not_yet);
    let cluster = rig.fronts[0].shared.cluster.clone().expect("a cluster");
    let two = mapping(&[1, 2], 2);
    let see = |alive: &[u16], is_current| {
        let alive = alive.iter().map(|no| two.members[&NodeNo(*no)].id);
        let alive = alive.map(|id| (id, (1, Health::default())));
        cluster.about.see(&two, alive.collect(), is_current);
    };
    see(&[0, 1], true);
    let alive = rig.run("CLUSTER FORGET n1");
    assert!(alive.starts_with("-ERR node n1 is alive: "), "{alive}");
    let itself = rig.run("CLUSTER FORGET n0");
    assert!(
        itself.starts_with("-ERR the node does not remove"),
        "{itself}"
    );
    rig.check("CLUSTER FORGET n2", "-ERR Unknown node n2\r\n");
    see(&[0], false);
    let away = rig.run("CLUSTER FORGET n1");
    assert!(away.starts_with("-CLUSTERDOWN The coordinator"), "{away}");
    assert!(cluster.about.forgets().is_empty());
    see(&[0], true);
    rig.check("CLUSTER FORGET n1", "+OK\r\n");
    let id = two.members[&NodeNo(1)].id;
    assert_eq!(cluster.about.forgets(), [id].into());
    rig.check(&format!("CLUSTER FORGET {id}"), "+OK\r\n");
    cluster.about.has_forgotten(id);
    assert!(cluster.about.forgets().is_empty());
}

/// Until the members have confirmed, a node that they have lost may have what they lack: it has not drained.
#[test]
fn a_node_whose_copy_may_still_be_needed_has_copies() {
    let mut two = mapping(&[1, 2], 2);
    let (stays, leaves) = (NodeNo(0), NodeNo(1));
    let of = |no| Members::of(&[no]).expect("one");
    let chain = |phase| Chain {
        members: of(stays),
        phase,
        ..*two.chains.of(0)
    };
    let confirms = chain(Phase::Confirms {
        former: of(leaves),
        acted: 1,
    });
    let ranges = [(0..100, confirms), (100..SLOTS as u16, chain(Phase::Acts))];
    two.chains = Chains::of_ranges(ranges).expect("all slots");
    assert!(two.chains.need(leaves) && !two.chains.name(leaves));
    let members = two.members.values();
    let alive = members.map(|member| (member.id, (1, Health::default())));
    let status = Status::of(&two, &alive.collect(), true);
    let copies: Vec<usize> = status.nodes.iter().map(|node| node.copies).collect();
    assert_eq!(copies, [SLOTS, 100]);
    assert_eq!(status.slots_whole, 0);
}
