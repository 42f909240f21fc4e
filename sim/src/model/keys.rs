//! Commands on keys of any type: moves, and deadlines.

use super::{Entry, Expect, State, Step, Window, expiry, integer, ok};
use rufous_resp::Reply;

impl Step {
    pub(super) fn moves(&self, state: &mut State) -> Expect {
        match self {
            Step::Rename(from, to) => {
                let Some(entry) = state[*from].take() else {
                    return Expect::Error("ERR no such key");
                };
                state[*to] = Some(entry);
                ok()
            }
            Step::Copy(from, to, replace) => {
                let copies = state[*from].is_some() && (*replace || state[*to].is_none());
                if copies {
                    state[*to] = state[*from].clone();
                }
                integer(usize::from(copies))
            }
            _ => Expect::Error("not a move"),
        }
    }

    pub(super) fn times(&self, state: &mut State, window: &Window) -> Expect {
        match self {
            Step::Expire(k, ms) => {
                let entry = state[*k].as_mut();
                let found = entry.map(|e| e.expiry = Some(expiry(*ms, window)));
                integer(usize::from(found.is_some()))
            }
            Step::Persist(k) => {
                let had = state[*k].as_mut().and_then(|e| e.expiry.take());
                integer(usize::from(had.is_some()))
            }
            Step::Pttl(k) => match &state[*k] {
                None => Expect::Exactly(Reply::Integer(-2)),
                Some(Entry { expiry: None, .. }) => Expect::Exactly(Reply::Integer(-1)),
                Some(Entry {
                    expiry: Some(e), ..
                }) => Expect::Between(
                    (e.earliest - window.max_ms - 1).max(0),
                    (e.latest - window.min_ms + 1).max(0),
                ),
            },
            _ => Expect::Error("not about time"),
        }
    }
}
