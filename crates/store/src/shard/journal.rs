//! The journal: the effects of all changes since it was last emptied, encoded.

use super::noted::Note;
use super::types::Key;
use crate::effect::{Effect, repeated};
use rufous_base::limits::BOOKS;
use rufous_lattice::Stamp;
use std::ops::Range;

#[derive(Debug, Default)]
pub(super) struct Journal {
    is_on: bool,
    /// Whether it omits the elements of collections that are put whole.
    is_brief: bool,
    bytes: Vec<u8>,
    /// Number of the bytes that no reply waits for: they only record expiries or what was forgotten.
    asides: usize,
    /// Where the value of the last entry of a book stands that was written whole.
    entry: Range<usize>,
}

impl Journal {
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    pub(super) fn is_brief(&self) -> bool {
        self.is_brief
    }

    pub(super) fn turn(&mut self, on: bool) {
        self.is_on = on;
    }

    pub(super) fn set_brief(&mut self, brief: bool) {
        self.is_brief = brief;
    }

    #[inline]
    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Whether it holds more than expiries and what was forgotten.
    #[inline]
    pub(super) fn tells(&self) -> bool {
        self.bytes.len() > self.asides
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.asides = 0;
    }

    #[inline]
    pub(super) fn write(&mut self, effect: &Effect<'_>) {
        if self.is_on {
            effect.encode(&mut self.bytes);
        }
    }

    /// Writes that an entry of a book has this value: once in a frame, if entries of other slots have it, too.
    pub(super) fn write_entry(&mut self, name: &[u8], value: &[u8]) {
        // Whatever has happened to the bytes meanwhile: they are here, or they are not.
        let is_here = self.bytes.get(self.entry.clone()) == Some(value);
        if is_here && value.len() >= repeated::LEAST && self.is_on {
            return repeated::encode(&mut self.bytes, name, self.entry.clone());
        }
        self.write(&Effect::Set {
            db: BOOKS as u8,
            key: name,
            value,
            expire_at: None,
        });
        // A value is the last part of such an effect.
        let end = self.bytes.len();
        self.entry = end.saturating_sub(value.len())..end;
    }

    /// Writes an effect from another worker or node, which has these bytes.
    #[inline]
    pub(super) fn carry(&mut self, effect: &Effect<'_>, bytes: &[u8]) {
        match effect {
            Effect::Set { db, key, value, .. } if usize::from(*db) == BOOKS => {
                self.write_entry(key, value);
            }
            _ => self.bytes.extend_from_slice(bytes),
        }
    }

    /// Writes an effect that no reply waits for: what depends on it follows in the log.
    pub(super) fn write_aside(&mut self, effect: &Effect<'_>) {
        let before = self.bytes.len();
        self.write(effect);
        self.set_aside(before);
    }

    /// Writes that something of a key is forgotten here from now on: writes below a cut, or a grave. Counts that began
    /// on a removal have its stamp, and stay.
    pub(super) fn write_notes(
        &mut self,
        (db, key): (u8, Key<'_>),
        notes: impl IntoIterator<Item = Note>,
    ) {
        let key = key.bytes;
        for note in notes {
            let (Note::Gone(_, stamp) | Note::Ended(_, stamp)) = note;
            if stamp != Stamp::ZERO {
                self.write_aside(&match note {
                    Note::Gone(tag, cut) => Effect::Gone { db, key, tag, cut },
                    Note::Ended(tag, end) => Effect::Ended { db, key, tag, end },
                });
            }
        }
    }

    /// No reply waits for what was written after these bytes.
    pub(super) fn set_aside(&mut self, before: usize) {
        self.asides += self.bytes.len() - before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::books::name_of_entry;
    use crate::effect::NotAnEffect;

    fn read(frame: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let (mut rest, mut all) = (frame, Vec::new());
        while !rest.is_empty() {
            let effect = match rest[0] {
                repeated::REPEATED => repeated::decode(frame, &mut rest),
                _ => Effect::decode(&mut rest),
            };
            match effect.expect("an effect") {
                Effect::Set { key, value, .. } => all.push((key.to_vec(), value.to_vec())),
                effect => panic!("{effect:?}"),
            }
        }
        all
    }

    #[test]
    fn an_entry_that_many_slots_have_is_written_once_in_a_frame() {
        let (mut journal, mut expected) = (Journal::default(), Vec::new());
        journal.turn(true);
        for slot in 0..40 {
            let (name, value) = (name_of_entry(slot, &[7; 18]), vec![slot as u8 / 20; 1000]);
            journal.write_entry(&name, &value);
            expected.push((name.to_vec(), value));
        }
        assert_eq!(read(journal.bytes()), expected);
        assert!(journal.bytes().len() < 2 * 1100 + 40 * 32);
        // The next frame has it again.
        journal.clear();
        let (name, value) = expected.pop().expect("40 of them");
        journal.write_entry(&name, &value);
        assert_eq!(read(journal.bytes()), [(name, value)]);
    }

    #[test]
    fn short_ones_and_other_ones_are_written_whole() {
        let mut journal = Journal::default();
        journal.turn(true);
        let name = name_of_entry(1, &[7; 18]);
        for value in [&[1; 10][..], &[1; 10], &[2; 70], &[3; 70], &[3; 71]] {
            journal.write_entry(&name, value);
        }
        let all = read(journal.bytes());
        assert_eq!(all.len(), 5);
        assert!(!journal.bytes().contains(&repeated::REPEATED));
    }

    #[test]
    fn places_outside_of_the_frame_are_refused() {
        let name = name_of_entry(1, &[7; 18]);
        let of = |before: usize, back: u64, len: u64, name: &[u8]| {
            let mut frame = vec![9; before];
            frame.push(repeated::REPEATED);
            let mut put = |number| crate::effect::put_varint(&mut frame, number);
            [back, len, name.len() as u64]
                .into_iter()
                .for_each(&mut put);
            frame.extend_from_slice(name);
            let mut rest = &frame[before..];
            let found = repeated::decode(&frame, &mut rest);
            found.map(|effect| effect.keys().count())
        };
        assert_eq!(of(100, 100, 100, &name), Ok(1));
        assert_eq!(of(100, 50, 50, &name), Ok(1));
        for (before, back, len) in [
            (100, 101, 10),
            (100, 100, 101),
            (100, 50, 51),
            (0, 1, 1),
            (100, u64::MAX, 1),
            (100, 1, u64::MAX),
        ] {
            assert_eq!(of(before, back, len, &name), Err(NotAnEffect));
        }
        assert_eq!(of(100, 100, 100, b"{ab}other"), Err(NotAnEffect));
    }

    #[test]
    fn effects_that_no_reply_waits_for_are_told_apart() {
        let mut journal = Journal::default();
        let effect = Effect::Horizon { time: 7 };
        journal.write(&effect);
        assert!(journal.bytes().is_empty(), "it is off at first");
        journal.turn(true);
        journal.write_aside(&effect);
        assert!(!journal.tells() && !journal.bytes().is_empty());
        journal.write(&effect);
        assert!(journal.tells());
        journal.clear();
        assert!(!journal.tells() && journal.bytes().is_empty());
        journal.write_aside(&effect);
        assert!(!journal.tells());
    }
}
