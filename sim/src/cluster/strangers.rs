//! Processes that know no secret, reach the port for nodes, and claim to be members that have started
//! again. A node tells them a nonce and why it refuses them, and nothing else.

use crate::engine::random::Random;
use rufous_mapping::NodeId;
use rufous_wire::frame::{self, Frames, MAX_FRAME};
use rufous_wire::message::{Ack, Challenge, Hello, Proof, Sealed};
use rufous_wire::proof::{Auth, Demand, MAC, NONCE, Secret};
use rufous_wire::version::{NEWEST, OLDEST};
use rufous_wire::{Body, Class, Envelope};

/// The secret of the nodes.
const SECRET: &[u8] = b"the secret of the world";

/// What a node's sessions need. `start` is random and new with every start of the node.
pub(super) fn auth(start: u64) -> Option<Auth> {
    let mut entropy = [0; NONCE];
    entropy[..8].copy_from_slice(&start.to_le_bytes());
    Secret::new(SECRET).map(|secret| Auth::new(secret, Demand::Required, entropy))
}

/// All of them.
pub(super) struct Strangers {
    random: Random,
    /// What each has received.
    heard: Vec<Frames>,
}

impl Strangers {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed, "strangers"),
            heard: Vec::new(),
        }
    }

    /// Until the next one connects.
    pub(super) fn pause_us(&mut self) -> u64 {
        self.random.skewed(200_000, 2_000_000)
    }

    pub(super) fn index(&mut self, count: usize) -> usize {
        self.random.index(count)
    }

    /// One more, and what it sends: as if it was this node after many starts.
    pub(super) fn next(&mut self, id: NodeId, incarnation: u64, cluster: &str) -> (usize, Vec<u8>) {
        self.heard.push(Frames::default());
        let hello = Hello {
            cluster: cluster.into(),
            node: id.0.to_vec(),
            incarnation: incarnation + 1_000,
            start: self.random.below(u64::MAX),
            oldest: OLDEST.into(),
            newest: NEWEST.into(),
            program: String::new(),
            nonce: Vec::new(),
        };
        let sealed = Sealed::new(&hello, vec![0; MAC]);
        let ack = Ack {
            slot: self.random.index(16_384) as u32,
            since: 1,
            seq: 1 << 40,
        };
        let bodies = if self.random.chance(0.2) {
            vec![Body::Hello(hello)]
        } else {
            let nonce = vec![7; NONCE];
            let mac = vec![0; MAC];
            vec![
                Body::Challenge(Challenge { nonce }),
                Body::Proof(Proof { mac }),
                Body::Sealed(sealed),
            ]
        };
        let mut bytes = Vec::new();
        for body in bodies {
            seal(0, Class::Control, body, &mut bytes);
        }
        seal(NEWEST, Class::Chain, Body::Ack(ack), &mut bytes);
        (self.heard.len() - 1, bytes)
    }

    /// Whether it was refused by these bytes, or what it should not have been told.
    pub(super) fn hear(&mut self, stranger: usize, bytes: &[u8]) -> Result<bool, String> {
        let frames = &mut self.heard[stranger];
        frames.push(bytes);
        let mut is_refused = false;
        loop {
            let frame = match frames.next(MAX_FRAME) {
                Ok(Some(frame)) => frame,
                Ok(None) => return Ok(is_refused),
                Err(error) => return Err(format!("a node sends a stranger garbage: {error}")),
            };
            match frame.envelope.body {
                Some(Body::Challenge(_) | Body::Refuse(_)) if frame.envelope.epoch > 0 => {
                    return Err("a node tells a stranger the epoch".into());
                }
                Some(Body::Challenge(_)) => {}
                Some(Body::Refuse(refuse)) => is_refused |= refuse.reason == 17,
                other => return Err(format!("a node tells a stranger {other:?}")),
            }
        }
    }
}

fn seal(version: u16, class: Class, body: Body, out: &mut Vec<u8>) {
    let envelope = Envelope {
        epoch: 1,
        body: Some(body),
        ..Envelope::default()
    };
    // Both are far from the limits.
    let _fits = frame::encode(version, class, &envelope, out);
}
