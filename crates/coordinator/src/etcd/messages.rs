//! The messages of etcd's protocol that a node uses, as Rust types: the numbers and types of fields
//! are those of `rpc.proto`, `kv.proto` in etcd's API, version 3. Fields that a node neither sets nor
//! reads are left out: the decoder skips them.
//!
//! They are written by hand, so that a build needs no compiler of schemas
//! ([record 48](../../../../docs/adr/0048-client-of-etcd.md)).

use bytes::Bytes;
use prost::{Message, Oneof};

/// Of every answer: which etcd it is, and the number of its last change.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Header {
    #[prost(uint64, tag = "1")]
    pub(super) cluster_id: u64,
    #[prost(int64, tag = "3")]
    pub(super) revision: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) key: Bytes,
    #[prost(int64, tag = "2")]
    pub(super) create_revision: i64,
    #[prost(int64, tag = "3")]
    pub(super) mod_revision: i64,
    #[prost(bytes = "bytes", tag = "5")]
    pub(super) value: Bytes,
    #[prost(int64, tag = "6")]
    pub(super) lease: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Range {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    /// The first key behind the range; empty: `key` alone.
    #[prost(bytes = "vec", tag = "2")]
    pub(super) range_end: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Ranged {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<Header>,
    #[prost(message, repeated, tag = "2")]
    pub(super) kvs: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Put {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) value: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(super) lease: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Delete {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Operation {
    #[prost(oneof = "What", tags = "1, 2, 3")]
    pub(super) what: Option<What>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum What {
    #[prost(message, tag = "1")]
    Range(Range),
    #[prost(message, tag = "2")]
    Put(Put),
    #[prost(message, tag = "3")]
    Delete(Delete),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Outcome {
    #[prost(oneof = "Done", tags = "1")]
    pub(super) done: Option<Done>,
}

/// The outcomes of puts and deletions have nothing that is read.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Done {
    #[prost(message, tag = "1")]
    Ranged(Ranged),
}

/// A condition on one key: that a property equals a value.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Compare {
    /// 0 is equality, the only one used.
    #[prost(int32, tag = "1")]
    pub(super) result: i32,
    /// The property: one of [`CREATED`], [`MODIFIED`], [`LEASE`].
    #[prost(int32, tag = "2")]
    pub(super) target: i32,
    #[prost(bytes = "vec", tag = "3")]
    pub(super) key: Vec<u8>,
    #[prost(oneof = "Property", tags = "5, 6, 8")]
    pub(super) property: Option<Property>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Property {
    #[prost(int64, tag = "5")]
    Created(i64),
    #[prost(int64, tag = "6")]
    Modified(i64),
    #[prost(int64, tag = "8")]
    Lease(i64),
}

const CREATED: i32 = 1;
const MODIFIED: i32 = 2;
const LEASE: i32 = 4;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Transaction {
    #[prost(message, repeated, tag = "1")]
    pub(super) compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub(super) success: Vec<Operation>,
    #[prost(message, repeated, tag = "3")]
    pub(super) failure: Vec<Operation>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Transacted {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<Header>,
    #[prost(bool, tag = "2")]
    pub(super) succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub(super) responses: Vec<Outcome>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Grant {
    /// Seconds.
    #[prost(int64, tag = "1")]
    pub(super) ttl: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Granted {
    #[prost(int64, tag = "2")]
    pub(super) id: i64,
    #[prost(string, tag = "4")]
    pub(super) error: String,
}

/// A request to revoke a lease or to renew it, by its number.
#[derive(Clone, PartialEq, Message)]
pub(super) struct OfLease {
    #[prost(int64, tag = "1")]
    pub(super) id: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Revoked {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Renewed {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<Header>,
    /// Seconds; 0: the lease has expired.
    #[prost(int64, tag = "3")]
    pub(super) ttl: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Watch {
    #[prost(message, optional, tag = "1")]
    pub(super) create: Option<Watched>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Watched {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) range_end: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(super) start_revision: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct News {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<Header>,
    #[prost(bool, tag = "4")]
    pub(super) canceled: bool,
    #[prost(string, tag = "6")]
    pub(super) cancel_reason: String,
    #[prost(message, repeated, tag = "11")]
    pub(super) events: Vec<Event>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Event {
    /// 0: put, 1: deleted.
    #[prost(int32, tag = "1")]
    pub(super) kind: i32,
    #[prost(message, optional, tag = "2")]
    pub(super) kv: Option<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Login {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) password: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LoggedIn {
    #[prost(string, tag = "2")]
    pub(super) token: String,
}

impl Range {
    pub(super) fn of(key: &str) -> Self {
        let key = key.as_bytes().to_vec();
        Self {
            key,
            range_end: Vec::new(),
        }
    }

    pub(super) fn below(prefix: &str) -> Self {
        Self {
            key: prefix.as_bytes().to_vec(),
            range_end: behind(prefix),
        }
    }
}

/// The first key behind all that have the prefix.
pub(super) fn behind(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    // To etcd, a zero byte means that the range has no end.
    vec![0]
}

impl Compare {
    pub(super) fn created(key: &str, revision: i64) -> Self {
        Self::equal(key, CREATED, Property::Created(revision))
    }

    pub(super) fn modified(key: &str, revision: i64) -> Self {
        Self::equal(key, MODIFIED, Property::Modified(revision))
    }

    pub(super) fn lease(key: &str, lease: i64) -> Self {
        Self::equal(key, LEASE, Property::Lease(lease))
    }

    fn equal(key: &str, target: i32, property: Property) -> Self {
        Self {
            result: 0,
            target,
            key: key.as_bytes().to_vec(),
            property: Some(property),
        }
    }
}

impl Operation {
    pub(super) fn get(key: &str) -> Self {
        Self {
            what: Some(What::Range(Range::of(key))),
        }
    }

    pub(super) fn put(key: &str, value: Vec<u8>, lease: i64) -> Self {
        let key = key.as_bytes().to_vec();
        let put = Put { key, value, lease };
        Self {
            what: Some(What::Put(put)),
        }
    }

    pub(super) fn delete(key: &str) -> Self {
        let key = key.as_bytes().to_vec();
        Self {
            what: Some(What::Delete(Delete { key })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes as `protoc` encodes them from etcd's schema.
    #[test]
    fn bytes_are_those_of_the_schema() {
        let txn = Transaction {
            compare: vec![Compare::lease("m", 7), Compare::modified("k", 0)],
            success: vec![Operation::put("k", b"v".to_vec(), 0)],
            failure: vec![Operation::get("k"), Operation::delete("k")],
        };
        let lease = [0x0a, 7, 0x10, 4, 0x1a, 1, b'm', 0x40, 7];
        // A member of a oneof is written also if it is 0.
        let modified = [0x0a, 7, 0x10, 2, 0x1a, 1, b'k', 0x30, 0];
        let put = [0x12, 8, 0x12, 6, 0x0a, 1, b'k', 0x12, 1, b'v'];
        let get = [0x1a, 5, 0x0a, 3, 0x0a, 1, b'k'];
        let delete = [0x1a, 5, 0x1a, 3, 0x0a, 1, b'k'];
        let all: [&[u8]; 5] = [&lease, &modified, &put, &get, &delete];
        assert_eq!(txn.encode_to_vec(), all.concat());
        // An answer with fields that are skipped: the number of keys.
        let kv = [
            0x0a, 1, b'k', 0x10, 2, 0x18, 3, 0x20, 4, 0x2a, 1, b'v', 0x30, 5,
        ];
        let header = [0x0a, 8, 0x08, 9, 0x10, 8, 0x18, 7, 0x20, 6];
        let bytes = [&header[..], &[0x12, kv.len() as u8], &kv, &[0x20, 1]].concat();
        let ranged = Ranged::decode(&bytes[..]).expect("an answer");
        let header = ranged.header.expect("a header");
        assert_eq!((header.cluster_id, header.revision), (9, 7));
        let kv = &ranged.kvs[0];
        assert_eq!((&kv.key[..], &kv.value[..]), (&b"k"[..], &b"v"[..]));
        assert_eq!((kv.create_revision, kv.mod_revision, kv.lease), (2, 3, 5));
    }

    #[test]
    fn a_prefix_ends_before_the_next_key_without_it() {
        assert_eq!(behind("/rufous/birds/"), b"/rufous/birds0");
        assert_eq!(behind(""), [0]);
    }
}
