//! Strings with causal order: a write replaces what its session has read or
//! written of the key, or what its token has seen, and nothing else. So what
//! such a write has replaced is never shown again, and what no write had seen
//! is there.

use super::act::{Act, Deed};
use super::session::Session;
use super::{Kind, Lattice, Thing, View};
use rufous_lattice::siblings::MAX_SIBLINGS;
use rufous_resp::Reply;
use std::collections::BTreeSet;

/// What a connection has seen of a key.
#[derive(Clone, Debug, Default)]
pub(super) struct Noted {
    read: BTreeSet<Thing>,
    /// Its last own write, if it has read nothing since.
    own: Option<Thing>,
    /// Earlier ones: known for seen only if nothing stood beside them.
    earlier: Vec<Thing>,
    /// The last that it was given, and what that has seen.
    token: Option<(Vec<u8>, Vec<Thing>)>,
}

impl Session {
    pub(super) fn read_note(&mut self, key: usize, view: &View) {
        let noted = self.notes.entry(key).or_default();
        noted.read.extend(&view.things);
    }

    /// A write was acknowledged.
    pub(super) fn learn_note(&mut self, deed: &mut Deed) {
        let Deed::Replace {
            key,
            value,
            over,
            perhaps,
            by_token,
        } = deed
        else {
            return;
        };
        let noted = self.notes.entry(*key).or_default();
        if !*by_token {
            let seen: Vec<_> = noted.read.iter().copied().chain(noted.own).collect();
            // A deletion by a client that has seen nothing removes all values shown.
            *over = (value.is_some() || !seen.is_empty()).then_some(seen);
            perhaps.clone_from(&noted.earlier);
        }
        self.gone.extend(over.iter().flatten());
        if let Some(thing) = *value {
            noted.earlier.extend(noted.own.replace(thing));
            self.known.entry(*key).or_default().insert(thing);
        }
    }
}

impl Lattice {
    /// A client was given a token with what it was shown.
    pub(super) fn note_token(&mut self, client: usize, key: usize, reply: &Reply, view: &View) {
        if let Reply::Array(all) = reply
            && let Some(Reply::Bulk(token)) = all.first()
            && self.keys[key].kind == Kind::Note
        {
            let noted = self.clients[client].session.notes.entry(key).or_default();
            noted.token = Some((token.to_vec(), view.things.iter().copied().collect()));
        }
    }

    pub(super) fn write_note(
        &mut self,
        client: usize,
        key: usize,
        name: &[u8],
    ) -> (Vec<Vec<u8>>, Vec<Deed>) {
        let new = self.next + 1;
        let me = &mut self.clients[client];
        let token = me.session.notes.get(&key).and_then(|n| n.token.clone());
        let (choice, text) = (me.random.below(10), super::ask::text(new));
        let (words, value, token): (Vec<&[u8]>, _, _) = match (choice, &token) {
            (0, _) => (vec![b"DEL", name], None, None),
            (1, Some((bytes, seen))) => (vec![b"CAUSAL.DEL", name, bytes], None, Some(seen)),
            (2..5, Some((bytes, seen))) => {
                let words = vec![b"CAUSAL.SET", name, bytes, &text];
                (words, Some(new), Some(seen))
            }
            _ => (vec![b"SET", name, &text], Some(new), None),
        };
        self.next = value.unwrap_or(self.next);
        let deed = Deed::Replace {
            key,
            value,
            over: token.cloned(),
            perhaps: Vec::new(),
            by_token: token.is_some(),
        };
        let words = words.into_iter().map(<[u8]>::to_vec).collect();
        (words, vec![deed])
    }

    /// Whether a writer that had seen this value may have replaced it.
    pub(super) fn may_be_replaced(&self, key: usize, thing: Thing, made: &Act) -> bool {
        let acts = self.of_key[key].iter().map(|act| &self.acts[*act]);
        let acts: Vec<_> = acts.filter(|act| !act.refused).collect();
        // A write leaves but so many values.
        acts.len() >= MAX_SIBLINGS
            || acts.iter().any(|act| {
                act.deeds.iter().any(|deed| match deed {
                    Deed::Replace {
                        over: Some(over),
                        perhaps,
                        ..
                    } => over.contains(&thing) || perhaps.contains(&thing),
                    Deed::Replace { over: None, .. } => !act.is_before(made),
                    _ => false,
                })
            })
    }
}
