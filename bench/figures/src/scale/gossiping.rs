//! Many nodes with the same lattice keyspace, one worker each: the real state machines tell each other of
//! it, as bytes, in a time of their own.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::sync::Arc;

use anyhow::{Result, anyhow, ensure};
use rufous_base::{Now, WorkerId};
use rufous_datatype::object::Tag;
use rufous_datatype::replicated::Writer;
use rufous_kernel::keyspace::{Keyspace, Keyspaces, Regime};
use rufous_kernel::placement::Placement;
use rufous_kernel::replicate::gossip::{Gossip, Limits, Peer};
use rufous_kernel::replicate::replicas::{Replicas, To};
use rufous_kernel::shard::{ExpirySetting, Keyed, Keying, NewValue, Shard};

use crate::drive::thread_cpu_ns;

/// An epoch of lattice keyspaces, as they have it by themselves.
const EPOCH_MS: u64 = 100;
/// What is said within a millisecond arrives in the next.
const STEP_US: u64 = 1_000;
const START_US: u64 = 1_700_000_000_000_000;

/// What one node says and does in a second, where nobody writes, or every node writes a key in each
/// epoch.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(crate) struct Said {
    pub messages_s: f64,
    pub bytes_s: f64,
    /// Of its CPU time, with the messages' bytes, without sockets.
    pub cpu_us_s: f64,
}

#[derive(Debug)]
struct All;

impl Keying for All {
    fn of(&self, _: &[u8]) -> Option<Keyed> {
        Some(Keyed {
            strings: Tag::Register,
            is_shared: true,
        })
    }
}

struct Node {
    shard: Shard,
    replicas: Replicas,
    gossip: Gossip,
    placement: Placement,
    wake_us: u64,
}

struct World {
    nodes: Vec<Node>,
    us: u64,
    /// Who is due when.
    due: BinaryHeap<Reverse<(u64, usize)>>,
    messages: u64,
    bytes: u64,
    writes: bool,
}

impl World {
    fn new(count: usize) -> Result<Self> {
        let keyspace = Keyspace {
            regime: Regime::Lattice,
            threads: 0,
            gossip_ms: EPOCH_MS as u32,
            ..Keyspace::new("all", b"k")
        };
        let table = Keyspaces::default().with(keyspace);
        let table = Arc::new(table.map_err(|why| anyhow!("a keyspace: {why:?}"))?);
        let all: BTreeSet<u16> = (0..count as u16).collect();
        let own = WorkerId(0);
        let mut nodes = Vec::with_capacity(count);
        for number in 0..count as u16 {
            let mut placement = Placement::new(1).seen_by(own);
            placement.set_keyspaces(&table);
            let mut shard = Shard::new(u64::from(number));
            shard.lattice_mut().set_keying(Some(Arc::new(All)));
            let replicas = Replicas::of_node(own, 1, number);
            let mut node = Node {
                shard,
                replicas: replicas.ok_or_else(|| anyhow!("too many nodes"))?,
                gossip: Gossip::new(number, own, Limits::default()),
                placement,
                wake_us: 0,
            };
            node.replicas.act_by(1, &all, count as u16);
            node.gossip.act_by(&all, count as u16);
            node.replicas.start();
            all.iter()
                .filter(|no| **no != number)
                .for_each(|no| node.gossip.up(*no));
            nodes.push(node);
        }
        Ok(Self {
            due: (0..count).map(|at| Reverse((0, at))).collect(),
            nodes,
            us: 0,
            messages: 0,
            bytes: 0,
            writes: false,
        })
    }

    fn now(&self) -> Now {
        Now {
            mono_us: self.us,
            unix_us: START_US + self.us,
        }
    }

    fn write(&mut self, at: usize) {
        let now = self.now();
        let node = &mut self.nodes[at];
        let stamp = node.replicas.stamp(now);
        node.shard.begin_lattice(Writer { stamp });
        let name = format!("k{at}");
        let key = node.shard.key(name.as_bytes());
        let value = NewValue::Copy(b"a value of 18 byte");
        node.shard.set(0, key, value, ExpirySetting::Clear, now);
        if let Some(ended) = node.shard.end_lattice() {
            node.replicas.observe(ended.next);
        }
        node.replicas.wrote(now, node.shard.changeset());
        self.wake(at, self.us);
    }

    fn wake(&mut self, at: usize, us: u64) {
        let node = &mut self.nodes[at];
        if us < node.wake_us || node.wake_us < self.us {
            node.wake_us = us;
            self.due.push(Reverse((us, at)));
        }
    }

    /// Goes on for so long.
    fn run(&mut self, us: u64) -> Result<()> {
        let end = self.us + us;
        while self.us < end {
            if self.writes && self.us.is_multiple_of(EPOCH_MS * 1_000) {
                (0..self.nodes.len()).for_each(|at| self.write(at));
            }
            while let Some(Reverse((due, at))) = self.due.peek().copied()
                && due <= self.us
            {
                self.due.pop();
                if self.nodes[at].wake_us == due {
                    self.speak(at)?;
                }
            }
            self.us += STEP_US;
        }
        Ok(())
    }

    fn speak(&mut self, at: usize) -> Result<()> {
        let (now, next) = (self.now(), self.us + STEP_US);
        let node = &mut self.nodes[at];
        let (mut out, none) = (Vec::new(), |_: u8, _: &[u8]| false);
        let period = node.placement.gossip_us();
        let parts = (&mut node.shard, &node.placement);
        let mut more = node.replicas.poll(now, period, parts, &none, &mut out);
        for (to, bytes) in out {
            let To::Nodes { is_report } = to else {
                return Err(anyhow!("there is one worker"));
            };
            node.gossip.tell(&bytes, is_report);
        }
        let parts = (&mut node.shard, &node.placement);
        more |= node.gossip.poll(now, parts, &mut node.replicas);
        let sent = node.gossip.take_sent();
        let wake = match more {
            true => Some(next),
            false => {
                let wake = node.replicas.wake_us(period);
                wake.into_iter().chain(node.gossip.wake_us()).min()
            }
        };
        // Whoever has nothing to do is woken by what comes.
        node.wake_us = u64::MAX;
        if let Some(wake) = wake {
            self.wake(at, wake.max(next));
        }
        for sent in sent {
            let bytes = sent.peer.encode();
            self.messages += 1;
            self.bytes += bytes.len() as u64;
            self.hear(at, usize::from(sent.node), &bytes)?;
        }
        Ok(())
    }

    fn hear(&mut self, from: usize, to: usize, bytes: &[u8]) -> Result<()> {
        let now = self.now();
        let node = &mut self.nodes[to];
        let peer = Peer::decode(bytes).map_err(|_| anyhow!("what was encoded"))?;
        let all = node.gossip.take(now, (from as u16, 0), peer);
        for bytes in all.map_err(|_| anyhow!("a message that makes sense"))? {
            let parts = (&mut node.shard, &node.placement);
            let done = node.replicas.receive(now, parts, bytes);
            ensure!(done.is_ok(), "a message that can be taken");
        }
        self.wake(to, self.us + STEP_US);
        Ok(())
    }

    /// What a node does in a second, from now on.
    fn measured(&mut self, us: u64) -> Result<Said> {
        let (messages, bytes, cpu) = (self.messages, self.bytes, thread_cpu_ns());
        self.run(us)?;
        let each = |sum: f64| sum / self.nodes.len() as f64 / (us as f64 / 1e6);
        Ok(Said {
            messages_s: each((self.messages - messages) as f64),
            bytes_s: each((self.bytes - bytes) as f64),
            cpu_us_s: each((thread_cpu_ns() - cpu) / 1e3),
        })
    }
}

/// Of a cluster of so many nodes: where nobody writes, and where all do; and the bytes of a comparison
/// of two of them.
pub(crate) fn measure(nodes: usize, us: u64) -> Result<[Said; 2]> {
    let mut world = World::new(nodes)?;
    // Streams begin, and everything is compared; and a little later nobody has anything to say.
    world.run(2_000_000)?;
    let idle = world.measured(us)?;
    world.writes = true;
    world.run(us / 2)?;
    let busy = world.measured(us)?;
    for node in &mut world.nodes {
        ensure!(node.gossip.figures().behind == 0, "a stream is behind");
    }
    Ok([idle, busy])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_writes_is_heard_by_all() {
        let [idle, busy] = measure(4, 1_000_000).expect("a cluster");
        assert!(busy.messages_s > idle.messages_s, "{idle:?} {busy:?}");
        // Each epoch goes to three others.
        assert!(
            busy.messages_s >= 30.0 && busy.bytes_s > 1_000.0,
            "{busy:?}"
        );
    }
}
