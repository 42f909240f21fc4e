//! The notes of a file about a key of which something has gone, and the key's state behind such a note: see `gone`.
//!
//! A note of what has *gone*, with a deadline or with a type without counts, covers all writes below its stamp. A
//! note that all was removed, and has *ended*, covers the writes up to its stamp, but not the counts, as a removal
//! removes only the counts that it names. So the state behind it keeps its removals until they were applied to the
//! counts. For other types than its own it has the same effect as the former note: the writer of a value of another
//! type has no earlier counts.

use super::remains::since;
use super::types::Any;
use crate::effect::NotAnEffect;
use rufous_datatype::algebra::Tuning;
use rufous_datatype::object::{Object, Tag};
use rufous_lattice::Stamp;
use std::collections::BTreeMap;

/// See the module's description; one key's.
#[derive(Debug, Default)]
pub(super) struct Noted {
    /// With the type that the note is about.
    gone: Option<(Tag, Stamp)>,
    ended: BTreeMap<Tag, Stamp>,
    /// The state behind these notes, by type.
    others: BTreeMap<Tag, Object>,
}

/// One note.
#[derive(Clone, Copy, Debug)]
pub(super) enum Note {
    Gone(Tag, Stamp),
    Ended(Tag, Stamp),
}

/// Approximate size of a map's entry, without what it points to.
pub(super) const ENTRY_BYTES: usize = 96;

fn bytes_of(object: &Object) -> usize {
    let packed = object.packed().map_or(0, <[u8]>::len);
    ENTRY_BYTES + size_of::<Object>() + object.heap_bytes() + packed
}

impl Noted {
    /// The stamp below which everything in values of this type has gone.
    pub(super) fn cut(&self, tag: Tag) -> Stamp {
        let others = self.ended.iter().filter(|(of, _)| **of != tag);
        let gone = self.gone.map(|(_, cut)| cut);
        let cuts = others.map(|(_, end)| *end).chain(gone);
        cuts.max().unwrap_or_default()
    }

    /// The stamp up to which a value of this type was removed.
    pub(super) fn end(&self, tag: Tag) -> Stamp {
        self.ended.get(&tag).copied().unwrap_or_default()
    }

    pub(super) fn notes(&self) -> impl Iterator<Item = Note> {
        let gone = self.gone.map(|(tag, cut)| Note::Gone(tag, cut));
        let ended = self.ended.iter().map(|(tag, end)| Note::Ended(*tag, *end));
        gone.into_iter().chain(ended)
    }

    /// Whether a note is already covered.
    pub(super) fn says(&self, note: Note) -> bool {
        match note {
            Note::Gone(_, cut) => self.gone.is_some_and(|(_, of)| of >= cut),
            Note::Ended(tag, end) => self.end(tag) >= end,
        }
    }

    pub(super) fn hear(&mut self, note: Note) {
        if self.says(note) {
            return;
        }
        match note {
            Note::Gone(tag, cut) => self.gone = Some((tag, cut)),
            Note::Ended(tag, end) => drop(self.ended.insert(tag, end)),
        }
    }

    /// Takes a note, and drops from the state behind other notes what has gone according to this one.
    pub(super) fn note(&mut self, note: Note, tuning: &Tuning) {
        let cuts = self.others.keys().map(|&tag| (tag, self.cut(tag)));
        let before: Vec<_> = cuts.collect();
        self.hear(note);
        for (tag, before) in before {
            let cut = self.cut(tag);
            // A log may have many notes of one type, which drop nothing of that type's value.
            if cut > before
                && let Some(object) = self.others.remove(&tag)
            {
                let left = since(Any::of_object(&object), cut, tuning);
                self.others.extend(left.map(|left| (tag, left)));
            }
        }
    }

    /// Takes what was done to the key behind a note, on a value of any type.
    pub(super) fn take(
        &mut self,
        tag: Tag,
        ops: &[u8],
        tuning: &Tuning,
    ) -> Result<(), NotAnEffect> {
        let object = self.others.entry(tag).or_insert_with(|| tag.empty());
        object.commit_encoded(ops, tuning).map_err(|_| NotAnEffect)
    }

    pub(super) fn others(&self) -> &BTreeMap<Tag, Object> {
        &self.others
    }

    /// The time of the last stamp in it.
    pub(super) fn latest(&self) -> u64 {
        let others = self.others.values().map(Object::newest);
        let ends = self.ended.values().copied();
        let gone = self.gone.map(|(_, cut)| cut);
        let all = others.chain(ends).chain(gone);
        all.max().map_or(0, |stamp| stamp.time)
    }

    /// Approximate memory, without its key.
    pub(super) fn bytes(&self) -> usize {
        let others = self.others.values().map(bytes_of).sum::<usize>();
        ENTRY_BYTES + size_of::<Self>() + self.ended.len() * ENTRY_BYTES + others
    }
}
