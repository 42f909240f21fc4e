//! The two shapes of a register, and merging into them.

use crate::algebra::{Corrupt, MAX_PACKED};
use crate::float::LongDouble;
use crate::integer::parse_i64;
use rufous_lattice::code::{Reader, put_varint};
use rufous_lattice::register::form;
use rufous_lattice::{Coded, Lattice, Register, Stamp};
use std::borrow::Cow;
use std::sync::Arc;

/// The form of packed bytes with the text of an incremented register.
const SHOWN: u8 = 4;
/// Likewise, of a register whose deadline has a stamp of its own.
const SHOWN_DATED: u8 = 8;
/// Form and stamp.
const HEAD: usize = 1 + Stamp::SIZE;
const DEADLINE: usize = 8;

/// See the description of [`super`].
#[derive(Clone, Debug)]
pub enum State {
    Packed(Vec<u8>),
    Large(Box<Large>),
}

/// A register that does not fit a record. Copies share its text.
#[derive(Clone, Debug)]
pub struct Large {
    stamp: Stamp,
    deadline: u64,
    /// None is read if the deadline has passed.
    text: Option<Arc<Vec<u8>>>,
    /// The whole register, if it is more than one write.
    whole: Option<Arc<Register>>,
}

#[derive(Clone, Copy, Debug)]
pub enum View<'a> {
    Packed(&'a [u8]),
    Large(&'a Large),
}

impl Default for State {
    fn default() -> Self {
        State::Packed(Vec::new())
    }
}

/// The stamp of a packed or encoded register.
#[inline]
pub fn packed_stamp(bytes: &[u8]) -> Stamp {
    let stamp = bytes.get(1..).and_then(<[u8]>::first_chunk);
    stamp.map_or(Stamp::ZERO, |&stamp| Stamp::from_bytes(stamp))
}

/// No stamp in a packed or encoded register is newer.
#[inline]
pub fn packed_newest(bytes: &[u8]) -> Stamp {
    let stamp = packed_stamp(bytes);
    match dated_part(bytes).and_then(<[u8]>::first_chunk) {
        Some(&dated) => stamp.max(Stamp::from_bytes(dated)),
        None => stamp,
    }
}

/// A write with an older stamp changes neither the value of a packed or encoded register nor its deadline.
#[inline]
pub fn packed_oldest(bytes: &[u8]) -> Stamp {
    let stamp = packed_stamp(bytes);
    match dated_part(bytes).and_then(<[u8]>::first_chunk) {
        Some(&dated) => stamp.min(Stamp::from_bytes(dated)),
        None => stamp,
    }
}

/// What begins with the stamp of the deadline, if that is not the stamp of the write.
fn dated_part(bytes: &[u8]) -> Option<&[u8]> {
    match bytes.first() {
        Some(&form::DATED) => bytes.get(HEAD..),
        Some(&SHOWN_DATED) => shown(bytes).map(|(_, rest)| rest),
        _ => None,
    }
}

/// Unix milliseconds from which on a packed register is hidden; 0 for none.
#[inline]
pub fn packed_deadline(bytes: &[u8]) -> u64 {
    let at = match bytes.first() {
        Some(&form::TIMED) => bytes.get(HEAD..),
        Some(&SHOWN) => shown(bytes).map(|(_, rest)| rest),
        Some(&(form::DATED | SHOWN_DATED)) => return decoded(bytes).deadline(),
        _ => None,
    };
    let deadline = at.and_then(<[u8]>::first_chunk);
    deadline.map_or(0, |&deadline| u64::from_be_bytes(deadline))
}

/// The text of a packed register, as it is read.
#[inline]
pub fn packed_text(bytes: &[u8]) -> Option<&[u8]> {
    match *bytes.first()? {
        form::PLAIN => bytes.get(HEAD..),
        form::TIMED => bytes.get(HEAD + DEADLINE..),
        SHOWN | SHOWN_DATED => shown(bytes).map(|(text, _)| text),
        form::DATED => dated_text(bytes),
        _ => None,
    }
}

/// The value of a register with a deadline of its own stamp, unless that has passed. Incremented ones have another form.
fn dated_text(bytes: &[u8]) -> Option<&[u8]> {
    let dated = dated_part(bytes)?;
    let stamp = Stamp::from_bytes(*dated.first_chunk()?);
    if stamp == stamp.expired() {
        return None;
    }
    let mut reader = Reader(dated.get(Stamp::SIZE + DEADLINE..)?);
    let len = reader.varint().ok()?.checked_sub(1)?;
    reader.bytes(len).ok()
}

/// Stamp and value of an encoded register, if that is a plain write. Accepts any bytes.
#[inline]
pub fn plain(bytes: &[u8]) -> Option<(Stamp, &[u8])> {
    let (value, stamp) = (bytes.get(HEAD..)?, packed_stamp(bytes));
    (bytes[0] == form::PLAIN && stamp > Stamp::ZERO).then_some((stamp, value))
}

/// Replaces a plain write by a later plain write of the same length: only stamp and value bytes change. Otherwise
/// changes nothing and returns false.
#[inline]
pub fn overwrite_in_place(bytes: &mut [u8], stamp: Stamp, value: &[u8]) -> bool {
    let fits =
        bytes.len() == HEAD + value.len() && bytes[0] == form::PLAIN && packed_stamp(bytes) < stamp;
    if fits {
        bytes[1..HEAD].copy_from_slice(&stamp.to_bytes());
        bytes[HEAD..].copy_from_slice(value);
    }
    fits
}

/// The text of an incremented register, and the bytes after it.
fn shown(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut reader = Reader(bytes.get(HEAD..)?);
    let len = reader.varint().ok()?;
    let text = reader.bytes(len).ok()?;
    Some((text, reader.rest()))
}

/// Checks that these bytes are an encoded register.
pub(super) fn check(delta: &[u8]) -> Result<(), Corrupt> {
    let is_written = packed_stamp(delta) > Stamp::ZERO;
    let is_sound = match delta.first() {
        Some(&form::PLAIN) => delta.len() >= HEAD && is_written,
        Some(&form::GONE) => delta.len() == HEAD,
        Some(&form::TIMED) => {
            delta.len() >= HEAD + DEADLINE && is_written && packed_deadline(delta) > 0
        }
        _ => Register::decode(delta).is_ok(),
    };
    is_sound.then_some(()).ok_or(Corrupt)
}

/// The text of a register as it is read: the written value plus increments. A sum beyond 64 bits saturates; if the
/// value or the sum is not a number, the written value is read.
pub(in crate::replicated) fn text_of(register: &Register) -> Option<Cow<'_, [u8]>> {
    if !register.is_there() {
        return None;
    }
    let written = register.value();
    if !register.is_counted() {
        return written.map(Cow::Borrowed);
    }
    let base = written.unwrap_or(b"0");
    let sum = register.counter.sum();
    if register.floats.is_empty()
        && let Some(base) = parse_i64(base)
    {
        let sum = (i128::from(base) + sum).clamp(i64::MIN.into(), i64::MAX.into());
        return Some(sum.to_string().into_bytes().into());
    }
    let text = real_sum(base, sum, register.floats.totals());
    Some(text.map_or(Cow::Borrowed(base), |sum| sum.to_text().into()))
}

fn real_sum(base: &[u8], sum: i128, totals: impl Iterator<Item = f64>) -> Option<LongDouble> {
    let base = LongDouble::parse(base)?;
    let mut all = base.checked_add(LongDouble::parse(sum.to_string().as_bytes())?)?;
    for total in totals {
        all = all.checked_add(long(total)?)?;
    }
    Some(all)
}

/// The number that a double is written as: 0.1 rather than its exact value.
pub(in crate::replicated) fn long(number: f64) -> Option<LongDouble> {
    let mut buffer = ryu::Buffer::new();
    LongDouble::parse(buffer.format(number).as_bytes())
}

impl Large {
    pub(super) fn heap_bytes(&self) -> usize {
        let whole = self.whole.as_ref().map_or(0, |register| {
            let entries = register.counter.entries().count() + register.floats.totals().count();
            let value = register.value().map_or(0, <[u8]>::len);
            size_of::<Register>() + value + 24 * entries
        });
        let text = self.text.as_ref().map_or(0, |text| text.len());
        size_of::<Large>() + size_of::<Vec<u8>>() + text + whole
    }
}

impl<'a> View<'a> {
    /// The text that is read, if there is any.
    #[inline]
    pub fn text(self) -> Option<&'a [u8]> {
        match self {
            View::Packed(bytes) => packed_text(bytes),
            View::Large(large) => large.text.as_ref().map(|text| text.as_slice()),
        }
    }

    /// The text, if it is kept by reference.
    pub fn shared_text(self) -> Option<&'a Arc<Vec<u8>>> {
        match self {
            View::Packed(_) => None,
            View::Large(large) => large.text.as_ref(),
        }
    }

    /// The stamp of the last write.
    #[inline]
    pub fn stamp(self) -> Stamp {
        match self {
            View::Packed(bytes) => packed_stamp(bytes),
            View::Large(large) => large.stamp,
        }
    }

    /// No stamp in it is newer.
    #[inline]
    pub fn newest(self) -> Stamp {
        match self {
            View::Packed(bytes) => packed_newest(bytes),
            View::Large(large) => match &large.whole {
                Some(register) => register.newest(),
                None => large.stamp,
            },
        }
    }

    /// See [`Register::until`].
    pub(super) fn until(self) -> u64 {
        match self {
            View::Packed(bytes) if bytes.first() == Some(&form::DATED) => decoded(bytes).until(),
            View::Large(Large {
                text: None,
                whole: Some(register),
                ..
            }) => register.until(),
            _ => self.newest().time,
        }
    }

    /// See [`Register::gone`].
    pub(super) fn gone(self, horizon: u64) -> Stamp {
        match self {
            View::Packed(bytes) if bytes.first() == Some(&form::DATED) => {
                decoded(bytes).gone(horizon)
            }
            // What shows no text is small, unless it is one value that has expired.
            _ => Stamp::ZERO,
        }
    }

    /// See [`packed_deadline`].
    pub fn deadline(self) -> u64 {
        match self {
            View::Packed(bytes) => packed_deadline(bytes),
            View::Large(large) => large.deadline,
        }
    }

    /// The whole state, encoded; nothing if the register was never written.
    pub fn delta(self) -> Option<Cow<'a, [u8]>> {
        match self {
            View::Packed([]) => None,
            View::Packed(bytes) => Some(encoded(bytes)),
            View::Large(_) => Some(self.register().encoded().into()),
        }
    }

    /// See [`Register::only_counts`].
    pub fn only_counts(self) -> bool {
        self.register().only_counts()
    }

    pub(super) fn register(self) -> Register {
        match self {
            View::Packed(bytes) => decoded(bytes),
            View::Large(large) => match &large.whole {
                Some(register) => Register::clone(register),
                None => {
                    let text = self.text().unwrap_or_default().to_vec();
                    Register::written(large.stamp, text, large.deadline)
                }
            },
        }
    }
}

/// The encoding of a packed register.
fn encoded(bytes: &[u8]) -> Cow<'_, [u8]> {
    let form = match bytes.first() {
        Some(&SHOWN) => form::COUNTED,
        Some(&SHOWN_DATED) => form::DATED,
        _ => return bytes.into(),
    };
    let rest = shown(bytes).map_or(&[][..], |(_, rest)| rest);
    [&[form], &bytes[1..HEAD], rest].concat().into()
}

/// The kept bytes were encoded here; no bytes are a register that was never written.
fn decoded(bytes: &[u8]) -> Register {
    Register::decode(&encoded(bytes)).unwrap_or_default()
}

impl State {
    #[inline]
    pub(super) fn view(&self) -> View<'_> {
        match self {
            State::Packed(bytes) => View::Packed(bytes),
            State::Large(large) => View::Large(large),
        }
    }

    /// Merges an encoded register; returns whether that changed anything.
    #[inline]
    pub(super) fn merge(&mut self, delta: &[u8]) -> bool {
        let form = delta.first();
        let is_one_write = matches!(form, Some(&(form::PLAIN | form::GONE | form::TIMED)));
        if !is_one_write || delta.len() > MAX_PACKED {
            return self.join(delta);
        }
        // A write replaces everything that is older, the deadline included.
        let theirs = packed_stamp(delta);
        if theirs < self.oldest() {
            return false;
        }
        if theirs <= self.view().newest() {
            return self.join(delta);
        }
        match self {
            State::Packed(bytes) => {
                bytes.clear();
                bytes.extend_from_slice(delta);
            }
            State::Large(_) => *self = State::Packed(delta.to_vec()),
        }
        true
    }

    /// See [`packed_oldest`].
    fn oldest(&self) -> Stamp {
        match self {
            State::Packed(bytes) => packed_oldest(bytes),
            State::Large(large) => match &large.whole {
                Some(register) => register.dated().min(large.stamp),
                None => large.stamp,
            },
        }
    }

    /// Whether it may show increments.
    pub(super) fn is_counted(&self) -> bool {
        match self {
            State::Packed(bytes) => matches!(bytes.first(), Some(&(SHOWN | SHOWN_DATED))),
            State::Large(large) => match &large.whole {
                Some(register) => register.is_counted(),
                None => false,
            },
        }
    }

    /// Whether it shows nothing, and everything in it can be forgotten with this horizon.
    pub(super) fn is_over(&self, horizon: u64) -> bool {
        let view = self.view();
        let is_bottom = matches!(view, View::Packed([]));
        !is_bottom && view.text().is_none() && view.until() <= horizon
    }

    /// See [`Register::meet`].
    pub(super) fn meet(&mut self, sent: View<'_>, horizon: u64) {
        if self.view().stamp() == sent.stamp() {
            return;
        }
        let mut register = self.view().register();
        if register.meet(&sent.register(), horizon) {
            *self = State::of(register);
        }
    }

    #[inline(never)]
    fn join(&mut self, delta: &[u8]) -> bool {
        if let State::Packed(bytes) = self
            && bytes == delta
        {
            return false;
        }
        let Ok(theirs) = Register::decode(delta) else {
            return false;
        };
        let mut register = self.view().register();
        let changed = register.merge(&theirs);
        if changed {
            *self = State::of(register);
        }
        changed
    }

    fn of(register: Register) -> State {
        if register == Register::default() {
            return State::default();
        }
        let text = text_of(&register);
        let is_one_write = !register.is_counted() && register.dated() == register.stamp();
        let bytes = match &text {
            Some(text) if register.is_counted() => {
                let encoded = register.encoded();
                let form = match encoded[0] {
                    form::DATED => SHOWN_DATED,
                    _ => SHOWN,
                };
                let mut bytes = vec![form];
                bytes.extend_from_slice(&encoded[1..HEAD]);
                put_varint(&mut bytes, text.len() as u64);
                bytes.extend_from_slice(text);
                bytes.extend_from_slice(&encoded[HEAD..]);
                bytes
            }
            _ => register.encoded(),
        };
        if bytes.len() <= MAX_PACKED {
            return State::Packed(bytes);
        }
        State::Large(Box::new(Large {
            stamp: register.stamp(),
            deadline: register.deadline(),
            text: text.map(|text| Arc::new(text.into_owned())),
            whole: (!is_one_write).then(|| Arc::new(register)),
        }))
    }
}
