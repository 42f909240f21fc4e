//! Writes to a key that have gone with a deadline or with the key's type, and are forgotten.
//!
//! The expiry of a key at its deadline is not logged: every replica determines it by itself, and so does a startup.
//! But of two deadlines the one that was set last applies. If an earlier one was forgotten, with everything that
//! expired with it, the later one has no cut for it, and a startup would restore everything that had expired. So a
//! worker that forgets a passed deadline notes in its log the stamp up to which writes to the key have gone. They
//! have gone for good: all nodes had received everything up to there, so that no extension of the deadline can
//! restore it, and all later writes to the key have higher stamps.
//!
//! A startup keeps these notes apart (see `noted`), and drops what lies below them after it has merged the contents
//! of all files. Counts, which may have no stamp, are compared by the horizon of their file instead: the writer of a
//! count that has gone since cannot have had so late a horizon.
//!
//! A forgotten grave of a type other than string is noted likewise. Later the key may have a string, which the grave
//! would hide, as the type with the higher tag wins. But a removal removes only what it names: a count on a field
//! that the removal does not know, or on an earlier removal of it, stays if it is made while another replica forgets
//! the grave. So of hashes and sorted sets it is noted that they have *ended*: a startup merges the contents of all
//! files for such a key, type by type, applies the removals to the counts, and then drops the removals.
//!
//! A snapshot has no notes of what was forgotten before it. Another replica may not have forgotten it at its own cut;
//! but by then it has received everything, and so its snapshot omits what has gone, and graves that may hide another
//! type. What one file notes as gone, a startup notes in the logs of all workers whose files lack the note: their
//! files may have a value of another type, which would hide later writes. What a file has of a key behind such a note
//! is kept apart, whatever its type, and so are its counts on nothing.

use super::at::At;
use super::databases::Databases;
use super::held::{Count, Held, Place, restore};
use super::merging::merge_chunk;
use super::noted::{Note, Noted};
use super::remains::{left, since, without_end};
use super::types::Any;
use rufous_base::Now;
use rufous_datatype::algebra::Tuning;
use rufous_datatype::object::{Object, Tag};
use rufous_lattice::Stamp;
use std::collections::{BTreeMap, BTreeSet};

/// The notes of all files, by database and key.
type NotedAt<'a> = BTreeMap<(u8, &'a [u8]), Noted>;

/// Held counts of such keys, in the order of their horizons.
type CountsAt<'a> = BTreeMap<(u8, &'a [u8]), Vec<(Tag, &'a Count)>>;

/// The notes of all files, for keys that satisfy `is_here`.
pub(super) fn noted_in<'a>(
    files: &'a [impl AsRef<Held>],
    is_here: &impl Fn(&[u8]) -> bool,
) -> NotedAt<'a> {
    let mut all = NotedAt::new();
    let noted = files.iter().flat_map(|held| held.as_ref().noted());
    for ((db, key), noted) in noted.filter(|((_, key), _)| is_here(key)) {
        let heard = all.entry((*db, &**key)).or_default();
        noted.notes().for_each(|note| heard.hear(note));
    }
    all
}

/// Writes to the journal the notes that the file of this worker may lack: the file may still have what they cover,
/// and later writes follow them in the log.
pub(super) fn tell_all(data: &mut Databases, files: &[impl AsRef<Held>], all: &NotedAt<'_>) {
    for (&(db, bytes), noted) in all {
        let (at, key): (Place, _) = ((db, bytes.into()), data.key(bytes));
        for note in noted.notes() {
            let says = |held: &Held| held.noted().get(&at).is_some_and(|of| of.says(note));
            if !files.iter().all(|held| says(held.as_ref())) {
                let journal = &mut data.env.observers.journal;
                journal.write_notes((db, key), [note]);
            }
        }
    }
}

/// Merges the state of each of these keys: what was merged before, what files have behind notes, and held counts,
/// without what has gone. Changes are not reported.
pub(super) fn settle(
    data: &mut Databases,
    files: &[impl AsRef<Held>],
    (all, counts): (&NotedAt<'_>, &CountsAt<'_>),
    now: Now,
) {
    if all.is_empty() {
        return;
    }
    let mut bench = Box::new(Databases::new(0));
    bench.env.tuning = data.env.tuning;
    bench.env.horizons.raise(data.env.horizons.here());
    for (&(db, bytes), noted) in all {
        let at: Place = (db, bytes.into());
        let of_files = files
            .iter()
            .filter_map(|held| held.as_ref().noted().get(&at));
        let of_files: Vec<_> = of_files.map(Noted::others).collect();
        let counts = counts.get(&(db, bytes)).map_or(&[][..], Vec::as_slice);
        let (key, number) = (data.key(bytes), usize::from(db));
        let Ok(mine) = state(&data.at(number, key, now)) else {
            // The key has become a plain one.
            continue;
        };
        let tags = of_files.iter().flat_map(|others| others.keys().copied());
        let tags = tags.chain(counts.iter().map(|(tag, _)| *tag));
        let tags: BTreeSet<_> = tags.chain(mine.as_ref().map(Object::tag)).collect();
        let mut last = None;
        // Of the remaining values the one of the type with the highest tag wins.
        for tag in tags {
            let cut = noted.cut(tag);
            let key = bench.key(bytes);
            let mut apart = bench.at(number, key, now);
            let others = of_files.iter().filter_map(|others| others.get(&tag));
            let mine = mine.iter().filter(|mine| mine.tag() == tag);
            for object in mine.chain(others) {
                add_other(&mut apart, object, cut);
            }
            for (_, count) in counts.iter().filter(|(of, _)| *of == tag) {
                // Otherwise the count was made on a value that has gone, or has expired since.
                if count.horizon >= cut.time && !has_expired(tag, count, cut, &data.env.tuning) {
                    restore(&mut apart, tag, count);
                }
            }
            let object = take_state(&mut apart);
            let tuning = &data.env.tuning;
            let left = object.and_then(|object| without_end(object, noted.end(tag), tuning));
            last = left.or(last);
        }
        replace_state(&mut data.at(number, key, now), last);
    }
    data.env.horizons.forget(bench.env.horizons.forgotten());
}

/// Whether a count of a string has the deadline with which it has gone.
fn has_expired(tag: Tag, count: &Count, cut: Stamp, tuning: &Tuning) -> bool {
    let mut object = tag.empty();
    let is_whole = object.commit_encoded(&count.ops, tuning).is_ok();
    let is_stamped = object.newest() > Stamp::ZERO;
    tag == Tag::Register
        && is_whole
        && is_stamped
        && since(Any::of_object(&object), cut, tuning).is_none()
}

/// The key has a plain value.
struct Plain;

/// Merges what a startup has kept apart of a value, without what has gone below the cut according to another file.
fn add_other(at: &mut At<'_>, object: &Object, cut: Stamp) {
    let Some(object) = since(Any::of_object(object), cut, &at.env.tuning) else {
        return;
    };
    let any = Any::of_object(&object);
    let mut next = Some(0);
    while let Some(from) = next {
        let mut chunk = Vec::new();
        next = any.chunk(from, usize::MAX, &mut chunk);
        let done = merge_chunk(at, object.tag(), &chunk);
        debug_assert!(done.is_ok(), "a value's chunks are parts of it");
    }
}

/// The state of a key here, if it is replicated.
fn state(at: &At<'_>) -> Result<Option<Object>, Plain> {
    let Some(found) = at.db.records.find(at.key) else {
        return Ok(at.db.graves.get(at.key.bytes));
    };
    let any = at.db.records.value(found.handle);
    match any.tag() {
        Some(tag) if tag.is_replicated() => {
            Ok(left(any, &at.env.tuning, |_, ops| Ok(ops.to_vec())))
        }
        _ => Err(Plain),
    }
}

/// Takes that state out.
fn take_state(at: &mut At<'_>) -> Option<Object> {
    let object = state(at).ok().flatten();
    at.replica().drop_all();
    object
}

/// Gives a key this state instead of what it has. Changes are not reported.
fn replace_state(at: &mut At<'_>, object: Option<Object>) {
    at.replica().drop_all();
    if let Some(object) = object {
        let now = at.now;
        at.replica().put(object, now);
    }
}

/// Drops what has gone of a replica of any type: before the value that the note is about, the key may have had others.
/// Changes are not reported.
pub(super) fn drop_noted(at: &mut At<'_>, note: Note) {
    let Ok(Some(object)) = state(at) else {
        return;
    };
    let (mut noted, tag) = (Noted::default(), object.tag());
    noted.hear(note);
    let tuning = &at.env.tuning;
    let left = since(Any::of_object(&object), noted.cut(tag), tuning);
    let left = left.and_then(|object| without_end(object, noted.end(tag), tuning));
    replace_state(at, left);
}
