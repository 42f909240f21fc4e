//! What a key holds, and how elements of collections are written down: those of
//! many bytes by a short name, so that states stay small.

use rufous_resp::Reply;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// An element. What ends with `:N` stands for N bytes: it, and then `x` again
/// and again.
pub type Name = Vec<u8>;

/// A key's contents.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    Text(Vec<u8>),
    Hash(BTreeMap<Name, Name>),
    List(Vec<Name>),
    Set(BTreeSet<Name>),
    Sorted(BTreeMap<Name, i64>),
}

impl Value {
    pub fn text(&self) -> Option<&Vec<u8>> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn is_empty_collection(&self) -> bool {
        match self {
            Value::Text(_) => false,
            Value::Hash(all) => all.is_empty(),
            Value::List(all) => all.is_empty(),
            Value::Set(all) => all.is_empty(),
            Value::Sorted(all) => all.is_empty(),
        }
    }

    /// Members by rank.
    pub fn ranked(members: &BTreeMap<Name, i64>) -> Vec<(i64, &Name)> {
        let mut all: Vec<_> = members.iter().map(|(name, score)| (*score, name)).collect();
        all.sort();
        all
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |name: &Name| crate::trace::show(name);
        let all = match self {
            Value::Text(text) => return f.write_str(&crate::trace::show(text)),
            Value::Hash(all) => all
                .iter()
                .map(|(k, v)| format!("{}={}", show(k), show(v)))
                .collect(),
            Value::List(all) => all.iter().map(show).collect(),
            Value::Set(all) => all.iter().map(show).collect(),
            Value::Sorted(all) => all
                .iter()
                .map(|(k, v)| format!("{}={v}", show(k)))
                .collect::<Vec<_>>(),
        };
        write!(f, "[{}]", all.join(" "))
    }
}

/// The bytes that an element stands for.
pub fn written(name: &[u8]) -> Vec<u8> {
    let mut bytes = name.to_vec();
    let colon = name.iter().rposition(|b| *b == b':');
    let len = colon.and_then(|at| std::str::from_utf8(&name[at + 1..]).ok()?.parse().ok());
    bytes.resize(bytes.len().max(len.unwrap_or(0)), b'x');
    bytes
}

/// The element that these bytes are; what is none comes back as it is.
pub fn name_of(bytes: &[u8]) -> Name {
    let end = bytes
        .iter()
        .rposition(|b| *b != b'x')
        .map_or(0, |at| at + 1);
    let name = &bytes[..end];
    match written(name) == bytes {
        true => name.to_vec(),
        false => bytes.to_vec(),
    }
}

/// The elements of a reply, which has only such.
pub fn names(reply: &Reply) -> Option<Vec<Name>> {
    let Reply::Array(parts) = reply else {
        return None;
    };
    let name = |part: &Reply| match part {
        Reply::Bulk(bytes) => Some(name_of(bytes)),
        _ => None,
    };
    parts.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_its_bytes() {
        assert_eq!(written(b"m1"), b"m1");
        assert_eq!(written(b"m1:7"), b"m1:7xxx");
        for name in [&b"m1"[..], b"m1:7", b"m1:1000", b"12", b""] {
            assert_eq!(name_of(&written(name)), name);
        }
        assert_eq!(name_of(b"m1:7xx"), b"m1:7xx", "too short");
        assert_eq!(name_of(b"m1x"), b"m1x");
    }
}
