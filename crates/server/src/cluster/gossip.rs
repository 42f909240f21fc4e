//! Lattice keyspaces and other nodes: gossip between workers, and what is refused while other nodes
//! have the same keys.

use super::links::Links;
use crate::front::Message;
use rufous_base::{Effects, Now};
use rufous_command::DataCommands;
use rufous_kernel::Worker;
use rufous_kernel::worker::{Awaited, Unserved};
use rufous_mapping::NodeNo;
use rufous_wire::message::Gossip;
use rufous_wire::{Body, Class};

/// Why no lattice key is served, for operators.
pub(super) fn why_unserved(unserved: &Unserved) -> String {
    let (up, away, awaited) = match unserved {
        Unserved::Awaits { up, away, awaited } => (up, away, awaited),
        Unserved::NoMember => return "no mapping in force names this node".to_owned(),
        Unserved::Workers(workers) => {
            let all: Vec<String> = workers.iter().map(|of| of.0.to_string()).collect();
            let all = all.join(" and ");
            return format!("receives what workers of this node have: {all}");
        }
        Unserved::OwnReport => return "has to tell other nodes what it has received".to_owned(),
        Unserved::Tombstones => {
            return "forgets tombstones that other nodes have forgotten".to_owned();
        }
        Unserved::Log => return "writes what it has received to its log".to_owned(),
        Unserved::OtherWorkers => return "is ready; other workers of this node are not".to_owned(),
    };
    let names = |nodes: &[u16]| {
        let all: Vec<String> = nodes.iter().map(|no| format!("n{no}")).collect();
        all.join(" and ")
    };
    let mut parts = Vec::new();
    if !up.is_empty() {
        parts.push(format!("receives the state of {}", names(up)));
    }
    if !away.is_empty() {
        let needs = match awaited {
            Awaited::Always => {
                "this node's log may lack what it had sent to them before it started; start them or \
                 remove them with `rufous cluster forget`"
            }
            Awaited::ForOneThatServes => {
                "this node is new and reaches none that serves lattice keys; start them or remove \
                 them with `rufous cluster forget`"
            }
            Awaited::ForAWhile => "it goes on without them in a few seconds",
        };
        parts.push(format!("{} cannot be reached: {needs}", names(away)));
    }
    parts.join("; ")
}

/// Gossip of a worker of another node. Returns why its session is to be ended, if it is.
pub(super) fn hear(
    now: Now,
    node: NodeNo,
    (from, bytes): (u32, &[u8]),
    kernel: &mut Worker<DataCommands>,
) -> Result<(), &'static str> {
    let worker = u16::try_from(from).map_err(|_| "gossip of no worker")?;
    kernel.on_gossip(now, (node, worker), bytes)
}

/// Sends this worker's gossip.
pub(super) fn send(
    now: Now,
    links: &mut Links,
    kernel: &mut Worker<DataCommands>,
    fx: &mut Effects<Message>,
) {
    for sent in kernel.take_gossip() {
        let batch = sent.peer.encode().into();
        let mut envelope = links.envelope(Body::Gossip(Gossip { batch }));
        envelope.to = sent.to.into();
        links.send(now, NodeNo(sent.node), Class::Gossip, envelope, fx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_awaited_is_named_with_what_to_do() {
        let why = |up: &[u16], away: &[u16], awaited| {
            why_unserved(&Unserved::Awaits {
                up: up.to_vec(),
                away: away.to_vec(),
                awaited,
            })
        };
        assert_eq!(
            why(&[1, 2], &[], Awaited::ForAWhile),
            "receives the state of n1 and n2"
        );
        let text = why(&[1], &[3], Awaited::Always);
        assert!(
            text.starts_with("receives the state of n1; n3 cannot be reached: "),
            "{text}"
        );
        assert!(text.ends_with("`rufous cluster forget`"), "{text}");
        assert!(why(&[], &[3], Awaited::ForAWhile).ends_with("in a few seconds"));
    }
}
