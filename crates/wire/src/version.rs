//! Versions of the messages between nodes: which messages each version has, and which version two
//! nodes use.
//!
//! | version | messages |
//! |---|---|
//! | 0 | the messages by which nodes agree on a version: the same in all versions |
//! | 1 | leases, mappings, chains, learning, gossip, requests and their replies |
//! | 2 | those of version 1, and wall clocks |
//! | 3 | those of version 2, and the ends of waits: requests of blocking commands are forwarded; transactions over slots |
//! | 4 | those of version 3, and writes of several slots in one message |
//! | 5 | those of version 4; transactions over slots may be undone by an error |
//! | 6 | those of version 5; transactions that only read take no keys |
//!
//! Callers need not check what the other node knows: a session neither sends nor accepts a message
//! that its version does not have.

use crate::message::Body;
use std::ops::RangeInclusive;

/// The versions of this program: the newest, the one before it, and the first.
pub const OLDEST: u16 = 1;
pub const NEWEST: u16 = 6;

/// The first version in which requests of blocking commands are forwarded.
pub const WAITS: u16 = 3;
/// The first version that has transactions over slots.
pub const LETTERS: u16 = 3;
/// The first version that has writes of several slots in one message.
pub const ALIKE: u16 = 4;
/// The first version in which an error may undo a transaction over slots.
pub const UNDOES: u16 = 5;
/// The first version in which transactions that only read take no keys.
pub const READS: u16 = 6;

const _: () = assert!(0 < OLDEST && OLDEST <= NEWEST, "0 is of all versions");

/// The first version that has a message of this kind.
pub fn since(body: &Body) -> u16 {
    match body {
        Body::Hello(_)
        | Body::Refuse(_)
        | Body::Challenge(_)
        | Body::Proof(_)
        | Body::Sealed(_) => 0,
        Body::Credit(_)
        | Body::Heartbeat(_)
        | Body::Mapping(_)
        | Body::Ask(_)
        | Body::Grant(_)
        | Body::Learned(_)
        | Body::Piece(_)
        | Body::Items(_)
        | Body::Ack(_)
        | Body::State(_)
        | Body::Behind(_)
        | Body::Learn(_)
        | Body::Copy(_)
        | Body::Copied(_)
        | Body::Gossip(_)
        | Body::Digest(_)
        | Body::Requests(_) => 1,
        Body::Replies(replies) if replies.replies.iter().any(|reply| reply.waits) => WAITS,
        Body::Replies(_) => 1,
        Body::AskClock(_) | Body::Clock(_) => 2,
        Body::EndWaits(_) => WAITS,
        Body::Letter(_) => LETTERS,
        Body::Alike(_) => ALIKE,
    }
}

/// The newest version that both nodes know.
pub fn agree(ours: RangeInclusive<u16>, theirs: RangeInclusive<u16>) -> Option<u16> {
    let newest = *ours.end().min(theirs.end());
    (ours.contains(&newest) && theirs.contains(&newest)).then_some(newest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges() -> impl Iterator<Item = RangeInclusive<u16>> {
        (1..=6).flat_map(|oldest| (oldest..=6).map(move |newest| oldest..=newest))
    }

    #[test]
    fn of_all_that_both_know_it_is_the_newest() {
        for ours in ranges() {
            for theirs in ranges() {
                let both = ours.clone().filter(|version| theirs.contains(version));
                let agreed = agree(ours.clone(), theirs.clone());
                assert_eq!(agreed, both.max(), "{ours:?} {theirs:?}");
                assert_eq!(agreed, agree(theirs.clone(), ours.clone()));
            }
        }
    }
}
