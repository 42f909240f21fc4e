//! The journal: the effects of all changes since it was last emptied, encoded.

use crate::effect::Effect;

#[derive(Debug, Default)]
pub(super) struct Journal {
    is_on: bool,
    /// Whether it omits the elements of collections that are put whole.
    is_brief: bool,
    bytes: Vec<u8>,
    /// Number of the bytes that no reply waits for: they only record expiries or what was forgotten.
    asides: usize,
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

    /// Writes an effect that no reply waits for: what depends on it follows in the log.
    pub(super) fn write_aside(&mut self, effect: &Effect<'_>) {
        let before = self.bytes.len();
        self.write(effect);
        self.set_aside(before);
    }

    /// No reply waits for what was written after these bytes.
    pub(super) fn set_aside(&mut self, before: usize) {
        self.asides += self.bytes.len() - before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
