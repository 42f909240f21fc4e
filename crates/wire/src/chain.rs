//! Messages of chain replication, to and from their wire form.

use crate::message::*;
use rufous_chain::{Message, Peer};
use rufous_mapping::NodeNo;
use std::sync::Arc;

impl From<Message> for Body {
    fn from(message: Message) -> Self {
        match message {
            Message::Items {
                slot,
                since,
                all,
                items,
            } => Self::Items(Items {
                slot: slot.into(),
                since,
                all,
                items: to_wire(items),
            }),
            Message::Ack { slot, since, seq } => Self::Ack(Ack {
                slot: slot.into(),
                since,
                seq,
            }),
            Message::State {
                slot,
                since,
                seq,
                items,
            } => Self::State(State {
                slot: slot.into(),
                since,
                seq,
                items: to_wire(items),
            }),
            Message::Behind { slot, since } => Self::Behind(Behind {
                slot: slot.into(),
                since,
            }),
            Message::Learn { slot, since } => Self::Learn(Learn {
                slot: slot.into(),
                since,
            }),
            Message::Copy {
                slot,
                since,
                part,
                chunk,
            } => Self::Copy(Copy {
                slot: slot.into(),
                since,
                part,
                chunk: chunk.into(),
            }),
            Message::Copied {
                slot,
                since,
                parts,
                all,
                seq,
            } => Self::Copied(Copied {
                slot: slot.into(),
                since,
                parts,
                all,
                seq,
            }),
            Message::Ask { asked_us } => Self::Ask(Ask { asked_us }),
            Message::Grant { asked_us } => Self::Grant(Grant { asked_us }),
        }
    }
}

impl Envelope {
    /// A message of a worker to a worker of another node.
    pub fn of_chain(from: u16, to: Peer, said: rufous_chain::Envelope) -> Self {
        Self {
            epoch: said.epoch,
            from: from.into(),
            to: to.worker.into(),
            body: Some(said.message.into()),
        }
    }

    /// The sending worker and its message about chains. `None` if the message is about something
    /// else.
    pub fn into_chain(self, from: NodeNo) -> Option<(Peer, rufous_chain::Envelope)> {
        let (epoch, message) = (self.epoch, Message::try_from(self.body?).ok()?);
        let worker = u16::try_from(self.from).ok()?;
        let peer = Peer { node: from, worker };
        Some((peer, rufous_chain::Envelope { epoch, message }))
    }
}

/// Fails for a message about something else, or one that [`Envelope::check`] would refuse.
impl TryFrom<Body> for Message {
    type Error = Body;

    fn try_from(body: Body) -> Result<Self, Body> {
        let slot = match &body {
            Body::Items(Items { slot, .. })
            | Body::Ack(Ack { slot, .. })
            | Body::State(State { slot, .. })
            | Body::Behind(Behind { slot, .. })
            | Body::Learn(Learn { slot, .. })
            | Body::Copy(Copy { slot, .. })
            | Body::Copied(Copied { slot, .. }) => *slot,
            Body::Ask(_) | Body::Grant(_) => 0,
            _ => return Err(body),
        };
        let Ok(slot) = u16::try_from(slot) else {
            return Err(body);
        };
        Ok(match body {
            Body::Items(m) => Self::Items {
                slot,
                since: m.since,
                all: m.all,
                items: from_wire(m.items),
            },
            Body::Ack(m) => Self::Ack {
                slot,
                since: m.since,
                seq: m.seq,
            },
            Body::State(m) => Self::State {
                slot,
                since: m.since,
                seq: m.seq,
                items: from_wire(m.items),
            },
            Body::Behind(Behind { since, .. }) => Self::Behind { slot, since },
            Body::Learn(Learn { since, .. }) => Self::Learn { slot, since },
            Body::Copy(m) => Self::Copy {
                slot,
                since: m.since,
                part: m.part,
                chunk: m.chunk.into(),
            },
            Body::Copied(m) => Self::Copied {
                slot,
                since: m.since,
                parts: m.parts,
                all: m.all,
                seq: m.seq,
            },
            Body::Ask(Ask { asked_us }) => Self::Ask { asked_us },
            Body::Grant(Grant { asked_us }) => Self::Grant { asked_us },
            other => return Err(other),
        })
    }
}

fn to_wire(items: Vec<rufous_chain::Item>) -> Vec<Item> {
    let item = |item: rufous_chain::Item| Item {
        seq: item.seq,
        effect: bytes::Bytes::from_owner(item.effect),
    };
    items.into_iter().map(item).collect()
}

fn from_wire(items: Vec<Item>) -> Vec<rufous_chain::Item> {
    let item = |item: Item| rufous_chain::Item {
        seq: item.seq,
        effect: Arc::from(&item.effect[..]),
    };
    items.into_iter().map(item).collect()
}
