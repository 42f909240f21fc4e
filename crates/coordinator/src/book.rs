//! The keys of a cluster in etcd, and the view that follows from them.
//!
//! ```text
//!   /rufous/<cluster>/mapping          epoch (8 bytes, big-endian), mapping
//!   /rufous/<cluster>/members/<id>     incarnation (8 bytes, big-endian), about; under a lease
//! ```
//!
//! Any client with write access to etcd could have written these values: an invalid one is ignored
//! and reported, and never ends the process.

use crate::{AgreedMapping, MAX_ABOUT, Member, NodeId, View, check_size};
use std::collections::BTreeMap;

/// Limit on the members that are kept.
const MAX_MEMBERS: usize = 4096;

#[derive(Clone, Debug)]
pub(crate) struct Keys {
    /// The common prefix of all keys of the cluster.
    pub(crate) prefix: String,
    pub(crate) mapping: String,
    members: String,
}

impl Keys {
    pub(crate) fn new(cluster: &str) -> Self {
        let prefix = format!("/rufous/{cluster}/");
        Self {
            mapping: format!("{prefix}mapping"),
            members: format!("{prefix}members/"),
            prefix,
        }
    }

    pub(crate) fn member(&self, id: NodeId) -> String {
        format!("{}{id:?}", self.members)
    }
}

/// A member's key in etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    member: Member,
    /// Its creation revision in etcd: the member with the lowest one leads.
    created: i64,
    lease: i64,
}

#[derive(Clone, Debug)]
pub(crate) struct Book {
    keys: Keys,
    state: Option<AgreedMapping>,
    members: BTreeMap<NodeId, Entry>,
}

impl Book {
    pub(crate) fn new(keys: Keys) -> Self {
        Self {
            keys,
            state: None,
            members: BTreeMap::new(),
        }
    }

    /// A key has this value now. An error says what is wrong with it.
    pub(crate) fn put(
        &mut self,
        key: &[u8],
        value: &[u8],
        created: i64,
        lease: i64,
    ) -> Result<(), String> {
        let wrong = |what| format!("{}: {what}", String::from_utf8_lossy(key).escape_debug());
        if key == self.keys.mapping.as_bytes() {
            self.state = Some(decode_state(value).ok_or_else(|| wrong("no mapping"))?);
            return Ok(());
        }
        let Some(id) = self.id(key) else {
            return Err(wrong("a key of another owner"));
        };
        let member = decode_member(id, value).ok_or_else(|| wrong("no member"))?;
        if !self.members.contains_key(&id) && self.members.len() >= MAX_MEMBERS {
            return Err(wrong("too many members"));
        }
        let entry = Entry {
            member,
            created,
            lease,
        };
        self.members.insert(id, entry);
        Ok(())
    }

    /// A key is deleted. The known mapping stays: epochs are never revoked.
    pub(crate) fn delete(&mut self, key: &[u8]) {
        if let Some(id) = self.id(key) {
            self.members.remove(&id);
        }
    }

    fn id(&self, key: &[u8]) -> Option<NodeId> {
        let hex = key.strip_prefix(self.keys.members.as_bytes())?;
        let mut id = [0; 20];
        if hex.len() != 2 * id.len() {
            return None;
        }
        for (byte, digits) in id.iter_mut().zip(hex.chunks(2)) {
            let digits = std::str::from_utf8(digits).ok()?;
            *byte = u8::from_str_radix(digits, 16).ok()?;
        }
        let id = NodeId(id);
        // One key for each node: no capitals, no signs.
        (key == self.keys.member(id).as_bytes()).then_some(id)
    }

    /// Updates a view with the present state.
    pub(crate) fn show(&self, me: NodeId, lease: i64, view: &mut View) {
        view.is_current = true;
        view.is_member = self.members.get(&me).is_some_and(|own| own.lease == lease);
        match &self.state {
            Some(state) => view.advance(state.clone()),
            None => view.has_none(),
        }
        let oldest = self.members.values().min_by_key(|entry| entry.created);
        view.leader = oldest.map(|entry| entry.member.id);
        let members = self.members.values().map(|entry| entry.member.clone());
        view.members = members.map(|member| (member.id, member)).collect();
    }
}

pub(crate) fn encode_state(state: &AgreedMapping) -> Vec<u8> {
    [&state.epoch.to_be_bytes(), &state.mapping[..]].concat()
}

pub(crate) fn decode_state(value: &[u8]) -> Option<AgreedMapping> {
    let (epoch, mapping) = value.split_first_chunk()?;
    check_size(mapping).ok()?;
    Some(AgreedMapping {
        epoch: u64::from_be_bytes(*epoch),
        mapping: mapping.to_vec(),
    })
}

pub(crate) fn encode_member(member: &Member) -> Vec<u8> {
    [&member.incarnation.to_be_bytes(), &member.about[..]].concat()
}

pub(crate) fn decode_member(id: NodeId, value: &[u8]) -> Option<Member> {
    let (incarnation, about) = value.split_first_chunk()?;
    let incarnation = u64::from_be_bytes(*incarnation);
    (about.len() <= MAX_ABOUT).then(|| Member {
        id,
        incarnation,
        // Of interest only while it enters.
        after: incarnation.saturating_sub(1),
        about: about.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: u8, incarnation: u64) -> Member {
        Member {
            id: NodeId([id; 20]),
            incarnation,
            after: incarnation.saturating_sub(1),
            about: vec![id],
        }
    }

    fn view(book: &Book, view: &mut View) {
        book.show(NodeId([1; 20]), 77, view);
    }

    #[test]
    fn the_oldest_leads_and_a_lease_makes_a_member() {
        let keys = Keys::new("birds");
        let mut book = Book::new(keys.clone());
        for (id, created, lease) in [(1, 30, 77), (2, 20, 78), (3, 40, 79)] {
            let one = member(id, 5);
            let key = keys.member(one.id);
            let put = book.put(key.as_bytes(), &encode_member(&one), created, lease);
            assert_eq!(put, Ok(()));
        }
        let mut seen = View::default();
        view(&book, &mut seen);
        assert!(seen.is_member && seen.is_current);
        assert_eq!(seen.leader, Some(NodeId([2; 20])));
        assert_eq!(seen.members.len(), 3);
        book.delete(keys.member(NodeId([2; 20])).as_bytes());
        view(&book, &mut seen);
        assert_eq!(seen.leader, Some(NodeId([1; 20])));
        // Our key under a lease of another process: a copy of this node, or an earlier run.
        let own = keys.member(NodeId([1; 20]));
        let put = book.put(own.as_bytes(), &encode_member(&member(1, 6)), 30, 80);
        assert_eq!(put, Ok(()));
        view(&book, &mut seen);
        assert!(!seen.is_member);
    }

    #[test]
    fn an_epoch_is_not_taken_back() {
        let keys = Keys::new("birds");
        let mut seen = View::default();
        let mut put = |epoch| {
            let mut book = Book::new(keys.clone());
            let state = AgreedMapping {
                epoch,
                mapping: vec![epoch as u8],
            };
            let put = book.put(keys.mapping.as_bytes(), &encode_state(&state), 1, 0);
            assert_eq!(put, Ok(()));
            book.delete(keys.mapping.as_bytes());
            view(&book, &mut seen);
            seen.state.clone().map(|state| (state.epoch, state.mapping))
        };
        assert_eq!(put(5), Some((5, vec![5])));
        assert_eq!(put(4), Some((5, vec![5])));
        assert_eq!(put(6), Some((6, vec![6])));
    }

    #[test]
    fn an_etcd_that_went_back_is_noticed() {
        let keys = Keys::new("birds");
        let mut seen = View::default();
        let mut behind = |epoch: u64| {
            let mut book = Book::new(keys.clone());
            if epoch > 0 {
                let state = AgreedMapping {
                    epoch,
                    mapping: Vec::new(),
                };
                let put = book.put(keys.mapping.as_bytes(), &encode_state(&state), 1, 0);
                assert_eq!(put, Ok(()));
            }
            view(&book, &mut seen);
            (seen.epoch(), seen.behind)
        };
        assert_eq!(behind(0), (0, None));
        assert_eq!(behind(5), (5, None));
        assert_eq!(behind(4), (5, Some(4)));
        assert_eq!(behind(0), (5, Some(0)));
        assert_eq!(behind(5), (5, None));
        assert_eq!(behind(6), (6, None));
    }

    #[test]
    fn what_others_wrote_is_left_out() {
        let keys = Keys::new("birds");
        let own = keys.member(NodeId([0xab; 20]));
        let mut book = Book::new(keys.clone());
        let value = encode_member(&member(1, 1));
        let long = vec![0; 9 + MAX_ABOUT];
        for (key, value) in [
            ("/rufous/birds/members/", &value),
            ("/rufous/birds/members/abc", &value),
            ("/rufous/birds/else", &value),
            (
                &own.to_uppercase()
                    .replace("/RUFOUS/BIRDS/MEMBERS", "/rufous/birds/members"),
                &value,
            ),
            (&own.replace("ab", "+b"), &value),
            (&own, &vec![0; 7]),
            (&own, &long),
            (&keys.mapping, &vec![0; 7]),
        ] {
            assert!(book.put(key.as_bytes(), value, 1, 1).is_err(), "{key}");
        }
        assert!(book.members.is_empty() && book.state.is_none());
        for id in 0..5000_u32 {
            let mut name = [0; 20];
            name[..4].copy_from_slice(&id.to_be_bytes());
            let key = keys.member(NodeId(name));
            let put = book.put(key.as_bytes(), &value, 1, 1);
            assert_eq!(put.is_ok(), id < 4096);
        }
    }
}
