//! Keys taken for what a command wants them to hold.

use super::value::{Counter, Ids, Name, Ranking, Summary, Value};
use super::{Entry, Expect, State};
use std::collections::{BTreeMap, BTreeSet};

/// A key holds something of another type.
pub(super) struct Wrong;

pub(super) type Ran = Result<Expect, Wrong>;

macro_rules! at {
    ($read:ident, $write:ident, $kind:ident, $inner:ty) => {
        pub(super) fn $read(state: &State, key: usize) -> Result<Option<&$inner>, Wrong> {
            match state[key].as_ref().map(|entry| &entry.value) {
                None => Ok(None),
                Some(Value::$kind(all)) => Ok(Some(all)),
                Some(_) => Err(Wrong),
            }
        }

        pub(super) fn $write(state: &mut State, key: usize) -> Result<&mut $inner, Wrong> {
            let empty = || Entry {
                value: Value::$kind(Default::default()),
                expiry: None,
            };
            match &mut state[key].get_or_insert_with(empty).value {
                Value::$kind(all) => Ok(all),
                _ => Err(Wrong),
            }
        }
    };
}

at!(hash, hash_mut, Hash, BTreeMap<Name, Name>);
at!(list, list_mut, List, Vec<Name>);
at!(set, set_mut, Set, BTreeSet<Name>);
at!(sorted, sorted_mut, Sorted, BTreeMap<Name, i64>);
at!(ids, ids_mut, Ids, Ids);
at!(ranking, ranking_mut, Ranking, Ranking);
at!(summary, summary_mut, Summary, Summary);
at!(counter, counter_mut, Counter, Counter);
