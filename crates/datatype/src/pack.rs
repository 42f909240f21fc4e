//! Byte strings one after the other in one buffer: the form of small collections and of a [`Seq`](crate::seq)'s leaves.
//!
//! An entry is the length of its bytes as a varint (seven bits a byte, low bits first, the high bit says that another
//! byte follows) and then the bytes as they are, so that every read is a slice of the buffer:
//!
//! ```text
//! 03 'a' 'b' 'c' | 00 | ac 02 <300 bytes>
//! ```
//!
//! Whatever comes from outside goes through [`Pack::checked`]; everything else takes whole entries for granted. Bytes
//! that are no whole entries make reads end early; they never make them leave the buffer.

/// The longest entry whose length fits the five bytes that a varint may have.
pub const MAX_ENTRY: usize = if usize::BITS > 35 {
    (1 << 35) - 1
} else {
    usize::MAX
};

/// The most bytes that the length before an entry may take.
const MAX_HEADER: usize = 5;

/// Entries in a buffer that is borrowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pack<'a>(pub &'a [u8]);

impl<'a> Pack<'a> {
    /// The view of foreign bytes, if they are whole entries with lengths written the one short way.
    pub fn checked(bytes: &'a [u8]) -> Option<Self> {
        let pack = Self(bytes);
        let mut at = 0;
        while at < bytes.len() {
            at = pack.checked_entry(at)?.1;
        }
        Some(pack)
    }

    /// Of foreign bytes, the entry that begins at `offset`, and where the next one does, if it is whole and its length
    /// written the one short way.
    #[inline]
    pub fn checked_entry(self, offset: usize) -> Option<(&'a [u8], usize)> {
        let (start, end) = span(self.0, offset)?;
        let entry = self.0.get(start..end)?;
        (start - offset == header_size(entry.len())).then_some((entry, end))
    }

    /// Whether there is no entry.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// How many entries there are; this walks over all of them.
    pub fn count(self) -> usize {
        self.entries().count()
    }

    /// The entries in order.
    pub fn iter(self) -> Iter<'a> {
        Iter(self.entries())
    }

    /// The entries in order, each after the offset where it begins.
    pub fn entries(self) -> Entries<'a> {
        Entries {
            bytes: self.0,
            at: 0,
        }
    }

    /// The entries from the one that begins at `offset`, each after its own offset.
    pub fn entries_from(self, offset: usize) -> Entries<'a> {
        Entries {
            bytes: self.0,
            at: offset,
        }
    }

    /// The entry that begins at `offset`.
    #[inline]
    pub fn entry_at(self, offset: usize) -> Option<&'a [u8]> {
        let (start, end) = span(self.0, offset)?;
        self.0.get(start..end)
    }

    /// Where the entry after the one at `offset` begins; the end of the buffer after the last.
    #[inline]
    pub fn next_offset(self, offset: usize) -> Option<usize> {
        let (_, end) = span(self.0, offset)?;
        (end <= self.0.len()).then_some(end)
    }

    /// Where entry `index` begins. The end of the buffer is the offset of the entry that would come next.
    pub fn offset_of(self, index: usize) -> Option<usize> {
        self.skip(0, index)
    }

    /// Where the entry begins that comes `entries` after the one at `offset`.
    #[inline]
    pub fn skip(self, offset: usize, entries: usize) -> Option<usize> {
        let mut at = offset;
        for _ in 0..entries {
            at = span(self.0, at)?.1;
        }
        (at <= self.0.len()).then_some(at)
    }

    /// Entry `index`.
    pub fn get(self, index: usize) -> Option<&'a [u8]> {
        self.entry_at(self.offset_of(index)?)
    }

    /// The first entry that equals `needle`: its index and its offset.
    pub fn find(self, needle: &[u8]) -> Option<(usize, usize)> {
        self.search::<1>(needle).ok()
    }

    /// In field, value, field, value…: the first pair whose field equals `field`, as the number of the pair and the
    /// offset of its field.
    pub fn find_pair(self, field: &[u8]) -> Option<(usize, usize)> {
        self.search::<2>(field).ok()
    }

    /// In field, value, field, value…: the value that follows `field`.
    pub fn value_of(self, field: &[u8]) -> Option<&'a [u8]> {
        let (_, offset) = self.find_pair(field)?;
        self.entry_at(self.next_offset(offset)?)
    }

    /// Of the entries 0, `STRIDE`, 2·`STRIDE`…, the first that equals `needle`: its number among these, and its offset;
    /// or how many these are.
    #[inline]
    pub fn search<const STRIDE: usize>(self, needle: &[u8]) -> Result<(usize, usize), usize> {
        let bytes = self.0;
        let (mut at, mut index) = (0, 0);
        while let Some(&first) = bytes.get(at) {
            let end = if first < 0x80 && usize::from(first) == needle.len() {
                // Where the next entry begins is said by the needle's length rather than by what was read: the
                // processor need not wait for that to go on.
                let end = at + 1 + needle.len();
                let Some(entry) = bytes.get(at + 1..end) else {
                    break;
                };
                // Names in one collection mostly begin alike and differ at their end: a look at the last byte spares
                // most of the comparisons among entries of one length.
                if entry.last() == needle.last() && entry == needle {
                    return Ok((index, at));
                }
                end
            } else {
                let Some((start, end)) = span(bytes, at) else {
                    break;
                };
                if first >= 0x80 && bytes.get(start..end) == Some(needle) {
                    return Ok((index, at));
                }
                end
            };
            let Some(next) = (1..STRIDE).try_fold(end, |at, _| Some(span(bytes, at)?.1)) else {
                break;
            };
            at = next;
            index += 1;
        }
        Err(index)
    }
}

/// See [`Pack::entries`].
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Entries<'a> {
    /// Where the next entry begins.
    pub fn offset(&self) -> usize {
        self.at
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = (usize, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (start, end) = span(self.bytes, self.at)?;
        let entry = self.bytes.get(start..end)?;
        let at = std::mem::replace(&mut self.at, end);
        Some((at, entry))
    }
}

/// See [`Pack::iter`].
#[derive(Clone, Debug)]
pub struct Iter<'a>(Entries<'a>);

impl<'a> Iterator for Iter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.0.next().map(|(_, entry)| entry)
    }
}

impl<'a> IntoIterator for Pack<'a> {
    type Item = &'a [u8];
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Where the bytes of the entry at `at` begin and end; the end may lie behind the buffer's.
#[inline]
fn span(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let first = *bytes.get(at)?;
    if first < 0x80 {
        Some((at + 1, at + 1 + usize::from(first)))
    } else {
        long_span(bytes, at)
    }
}

#[cold]
#[inline(never)]
fn long_span(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let mut length = 0_u64;
    for (index, &byte) in bytes.get(at..)?.iter().take(MAX_HEADER).enumerate() {
        length |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            let start = at + index + 1;
            return Some((start, start.checked_add(usize::try_from(length).ok()?)?));
        }
    }
    None
}

/// How many bytes the length before an entry of `length` bytes takes.
#[inline]
fn header_size(length: usize) -> usize {
    if length < 0x80 {
        1
    } else {
        (length.ilog2() as usize) / 7 + 1
    }
}

/// How many bytes an entry of `length` bytes takes with its header.
#[inline]
pub fn entry_size(length: usize) -> usize {
    header_size(length) + length
}

/// Appends an entry.
pub fn push(buf: &mut Vec<u8>, bytes: &[u8]) {
    splice(buf, buf.len(), 0, bytes);
}

/// Appends an entry that consists of two parts.
#[inline]
pub fn push_parts(buf: &mut Vec<u8>, head: &[u8], tail: &[u8]) {
    let length = head.len() + tail.len();
    assert!(length <= MAX_ENTRY, "an entry of {length} bytes");
    let mut header = [0; MAX_HEADER];
    let size = put_header(&mut header, length);
    buf.extend_from_slice(&header[..size]);
    buf.extend_from_slice(head);
    buf.extend_from_slice(tail);
}

/// Inserts an entry before the one that begins at `offset`.
pub fn insert(buf: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    splice(buf, offset, 0, bytes);
}

/// Puts other bytes in place of the entry at `offset`. Nothing else moves if the size stays the same.
pub fn replace(buf: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let old = Pack(buf).next_offset(offset).map_or(0, |end| end - offset);
    splice(buf, offset, old, bytes);
}

/// Removes `entries` entries from the one at `offset` on, and says how many bytes went.
pub fn remove(buf: &mut Vec<u8>, offset: usize, entries: usize) -> usize {
    let offset = offset.min(buf.len());
    let end = Pack(buf).skip(offset, entries).unwrap_or(buf.len());
    buf.copy_within(end.., offset);
    buf.truncate(buf.len() - (end - offset));
    end - offset
}

/// Puts the entry `bytes` in place of the `old` bytes at `offset`.
fn splice(buf: &mut Vec<u8>, offset: usize, old: usize, bytes: &[u8]) {
    assert!(
        bytes.len() <= MAX_ENTRY,
        "an entry of {} bytes",
        bytes.len()
    );
    let (offset, new, length) = (offset.min(buf.len()), entry_size(bytes.len()), buf.len());
    if new > old {
        grow(buf, new - old);
        buf.resize(length + new - old, 0);
        buf.copy_within(offset + old..length, offset + new);
    } else if new < old {
        buf.copy_within(offset + old.., offset + new);
        buf.truncate(length - (old - new));
    }
    write(&mut buf[offset..], bytes);
}

/// Writes an entry to the start of `to`, which has room for it.
#[inline]
pub(crate) fn write(to: &mut [u8], bytes: &[u8]) {
    let start = put_header(to, bytes.len());
    to[start..start + bytes.len()].copy_from_slice(bytes);
}

#[inline]
fn put_header(to: &mut [u8], length: usize) -> usize {
    let (mut rest, mut at) = (length, 0);
    while rest >= 0x80 {
        to[at] = (rest & 0x7f) as u8 | 0x80;
        rest >>= 7;
        at += 1;
    }
    to[at] = rest as u8;
    at + 1
}

/// Makes room for `extra` more bytes. Steps of an eighth keep what is unused small where doubling would waste half; they
/// are also how allocators space their sizes, so that finer steps would save nothing.
pub(crate) fn grow(buf: &mut Vec<u8>, extra: usize) {
    let needed = buf.len() + extra;
    if needed > buf.capacity() {
        buf.reserve_exact(roomy(needed) - buf.len());
    }
}

/// The capacity that a buffer of `needed` bytes is given.
pub(crate) fn roomy(needed: usize) -> usize {
    let step = (needed.next_power_of_two() / 8).max(16);
    needed.next_multiple_of(step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packed(items: &[Vec<u8>]) -> Vec<u8> {
        let mut buf = Vec::new();
        items.iter().for_each(|item| push(&mut buf, item));
        buf
    }

    fn items() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let item = prop_oneof![
            4 => prop::collection::vec(0_u8..3, 0..6),
            1 => prop::collection::vec(any::<u8>(), 120..140),
            1 => prop::collection::vec(any::<u8>(), 16_380..16_390),
        ];
        prop::collection::vec(item, 0..20)
    }

    #[test]
    fn the_format_is_what_the_documentation_says() {
        let mut buf = packed(&[b"abc".to_vec(), Vec::new(), vec![7; 300]]);
        assert_eq!(&buf[..7], &[3, b'a', b'b', b'c', 0, 0xac, 2]);
        assert_eq!(buf.len(), 7 + 300);
        assert_eq!(Pack(&buf).get(2), Some(&[7; 300][..]));
        replace(&mut buf, 5, b"x");
        assert_eq!(buf, [3, b'a', b'b', b'c', 0, 1, b'x']);
    }

    #[test]
    fn a_replacement_of_the_same_size_moves_nothing() {
        let mut buf = packed(&[b"one".to_vec(), b"two".to_vec(), b"six".to_vec()]);
        let (pointer, length) = (buf.as_ptr(), buf.len());
        replace(&mut buf, 4, b"ten");
        assert_eq!((buf.as_ptr(), buf.len()), (pointer, length));
        assert_eq!(
            Pack(&buf).iter().collect::<Vec<_>>(),
            [b"one", b"ten", b"six"]
        );
    }

    #[test]
    fn foreign_bytes_are_whole_entries_or_refused() {
        assert!(Pack::checked(&[]).is_some());
        assert!(Pack::checked(&[2, 1, 1, 0]).is_some());
        for bad in [
            &[1][..],
            &[2, 0],
            &[0x80],
            &[0x80, 0],
            &[0x81, 0, 9],
            &[0xff; 9],
            &[0xff, 0xff, 0xff, 0xff, 0x7f],
        ] {
            assert_eq!(Pack::checked(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn fields_are_found_where_fields_are_and_not_among_values() {
        let buf = packed(&[
            b"a".to_vec(),
            b"b".to_vec(),
            b"b".to_vec(),
            b"c".to_vec(),
            Vec::new(),
            b"e".to_vec(),
        ]);
        let pack = Pack(&buf);
        assert_eq!(pack.find(b"b"), Some((1, 2)));
        assert_eq!(pack.find_pair(b"b"), Some((1, 4)));
        assert_eq!(pack.value_of(b"b"), Some(&b"c"[..]));
        assert_eq!(pack.value_of(b""), Some(&b"e"[..]));
        assert_eq!(pack.find_pair(b"c"), None);
    }

    proptest! {
        #[test]
        fn editing_does_what_it_does_to_a_list(start in items(), edits in prop::collection::vec((0_u8..4, any::<prop::sample::Index>(), items()), 0..12)) {
            let mut model = start;
            let mut buf = packed(&model);
            for (kind, index, new) in edits {
                let new = new.into_iter().next().unwrap_or_default();
                let at = index.index(model.len() + 1);
                let offset = Pack(&buf).offset_of(at).unwrap();
                match kind {
                    0 => { push(&mut buf, &new); model.push(new); }
                    1 => { insert(&mut buf, offset, &new); model.insert(at, new); }
                    2 if at < model.len() => { replace(&mut buf, offset, &new); model[at] = new; }
                    _ => {
                        let n = 2.min(model.len() - at);
                        remove(&mut buf, offset, 2);
                        model.drain(at..at + n);
                    }
                }
                prop_assert_eq!(&buf, &packed(&model));
            }
            let pack = Pack::checked(&buf).unwrap();
            prop_assert_eq!(pack.count(), model.len());
            prop_assert!(pack.iter().eq(model.iter().map(Vec::as_slice)));
            for (index, item) in model.iter().enumerate() {
                let (found, offset) = pack.find(item).unwrap();
                prop_assert_eq!(found, model.iter().position(|other| other == item).unwrap());
                prop_assert_eq!(pack.entry_at(offset), Some(&item[..]));
                prop_assert_eq!(pack.get(index), Some(&item[..]));
            }
            prop_assert_eq!(pack.get(model.len()), None);
        }

        #[test]
        fn no_bytes_make_a_read_leave_the_buffer(mut bytes in prop::collection::vec(any::<u8>(), 0..64), needle in prop::collection::vec(any::<u8>(), 0..3), at in 0_usize..80) {
            let pack = Pack(&bytes);
            let _ = (pack.count(), pack.find(&needle), pack.find_pair(&needle), pack.get(at), pack.entry_at(at), pack.next_offset(at));
            if let Some(pack) = Pack::checked(&bytes) {
                prop_assert_eq!(&packed(&pack.iter().map(<[u8]>::to_vec).collect::<Vec<_>>()), &bytes);
            }
            remove(&mut bytes, at, 2);
            replace(&mut bytes, at, &needle);
            insert(&mut bytes, at, &needle);
        }
    }
}
