//! The names of entries in the books of transactions.
//!
//! An entry of a slot's book is a string in the database [`BOOKS`](rufous_base::limits::BOOKS), which no client can
//! select. Its name is `{`, the tag of the slot, `}` and the transaction's identity. So it hashes to the slot, and is
//! copied, logged, handed over and dropped as the keys of the slot are. An entry has exactly one name.
//!
//! A prefix of a lattice keyspace may match such a name. Entries are strict all the same: the table of keyspaces is
//! about keys of clients, and is not asked about this database.

use rufous_base::limits::SLOTS;
use rufous_base::slot::slot_of;
use std::sync::LazyLock;

/// The identity of a transaction, big-endian: names of a slot sort by it.
pub type BookId = [u8; ID_BYTES];

const ID_BYTES: usize = 18;
const TAG_BYTES: usize = 2;
/// Braces around the tag.
const NAME_BYTES: usize = 1 + TAG_BYTES + 1 + ID_BYTES;

type Tag = [u8; TAG_BYTES];

/// The first two bytes without `}` that hash to the slot, of each slot.
static TAGS: LazyLock<Vec<Tag>> = LazyLock::new(|| {
    let mut tags = vec![Tag::default(); SLOTS];
    let mut found = [false; SLOTS];
    for tag in (0..=u16::MAX).map(u16::to_be_bytes) {
        let slot = usize::from(slot_of(&braced(tag)));
        if !tag.contains(&b'}') && !found[slot] {
            (tags[slot], found[slot]) = (tag, true);
        }
    }
    assert!(found.iter().all(|&found| found), "each slot has a tag");
    tags
});

fn braced([first, second]: Tag) -> [u8; TAG_BYTES + 2] {
    [b'{', first, second, b'}']
}

/// Two bytes that, in braces, make a name hash to this slot.
///
/// # Panics
/// If there is no such slot.
pub fn tag_of_slot(slot: u16) -> [u8; 2] {
    TAGS[usize::from(slot)]
}

/// The name of an entry.
pub(crate) fn name_of_entry(slot: u16, id: &BookId) -> [u8; NAME_BYTES] {
    let mut name = [0; NAME_BYTES];
    let (tag, rest) = name.split_at_mut(TAG_BYTES + 2);
    tag.copy_from_slice(&braced(tag_of_slot(slot)));
    rest.copy_from_slice(id);
    name
}

/// The slot and the transaction of an entry with this name; `None` if no entry has it.
pub(crate) fn entry_of_name(name: &[u8]) -> Option<(u16, BookId)> {
    let (tag, id) = name.split_at_checked(TAG_BYTES + 2)?;
    let slot = slot_of(name);
    let is_its = tag == braced(tag_of_slot(slot));
    Some((slot, id.try_into().ok()?)).filter(|_| is_its)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_slot_has_names_that_hash_to_it_and_sort_by_identity() {
        let ids = [[0; ID_BYTES], *b"}{}{identity}}}{{}", [0xFF; ID_BYTES]];
        let mut tags = BTreeSet::new();
        for slot in 0..SLOTS as u16 {
            assert!(tags.insert(tag_of_slot(slot)));
            let names = ids.map(|id| name_of_entry(slot, &id));
            assert!(names.is_sorted());
            for (name, id) in names.iter().zip(ids) {
                assert_eq!(slot_of(name), slot);
                assert_eq!(entry_of_name(name), Some((slot, id)));
            }
        }
    }

    /// Logs and other nodes have the names: a tag never changes.
    #[test]
    fn tags_stay() {
        let tags = [0, 1, 8191, 16_383].map(tag_of_slot);
        assert_eq!(tags, [[0, 0], [21, 97], [46, 219], [12, 223]]);
        // FNV-1a over all of them.
        let step = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let all = (0..SLOTS as u16).flat_map(tag_of_slot);
        assert_eq!(all.fold(0xcbf2_9ce4_8422_2325, step), 0x7fea_6e56_0ee0_9579);
    }

    #[test]
    fn other_names_are_of_no_entry() {
        let name = name_of_entry(7, &[1; ID_BYTES]);
        assert_eq!(entry_of_name(&name[..NAME_BYTES - 1]), None);
        assert_eq!(entry_of_name(&[&name[..], b"x"].concat()), None);
        for bytes in [&b""[..], b"{", b"{}", b"key", b"{}}{0123456789012345678"] {
            assert_eq!(entry_of_name(bytes), None);
        }
        // Other tags of the slot, and every other byte.
        for tag in (0..=u16::MAX).map(u16::to_be_bytes) {
            let mut other = name;
            other[1..3].copy_from_slice(&tag);
            let slot = slot_of(&other);
            let is_its = tag_of_slot(slot) == tag;
            assert_eq!(entry_of_name(&other).is_some(), is_its, "{tag:?}");
        }
        for at in [0, 3] {
            for byte in 0..=u8::MAX {
                let mut other = name;
                other[at] = byte;
                assert_eq!(entry_of_name(&other).is_some(), other == name);
            }
        }
    }
}
