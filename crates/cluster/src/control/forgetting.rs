//! Members that leave for good although they cannot announce it: an operator wants it, or they were away for too long.

use super::{Action, Continues, Control, View, propose};
use rufous_mapping::planner::{self, Limits};
use rufous_mapping::{Mapping, NodeNo};
use std::collections::BTreeMap;

impl Control {
    /// Proposes that a member leaves, at whichever node an operator has asked for it. True if it does.
    pub(super) fn forget(&self, view: &View<'_>, actions: &mut Vec<Action>) -> bool {
        let (Some(mapping), Some(stored)) = (&self.mapping, &view.stored) else {
            return false;
        };
        if !view.is_current || !view.is_member || mapping.epoch != stored.epoch {
            return false;
        }
        for &id in &view.forgets {
            let no = mapping.number_of(id);
            let kept = match no.map(|no| planner::forget(mapping, no)) {
                _ if view.alive.contains_key(&id) => Some("it is alive".to_owned()),
                Some(Ok(Some(next))) => {
                    propose(mapping, next, Continues::default(), actions);
                    return true;
                }
                // It leaves, or has left.
                Some(Ok(None)) | None => None,
                Some(Err(kept)) => Some(kept.to_string()),
            };
            actions.push(Action::Forgotten { id, kept });
        }
        false
    }
}

/// The epoch in which the first member begins to leave that has been away for so long. Until then deleted lattice keys are kept
/// for it.
pub(super) fn outstayed(
    mapping: &Mapping,
    away_ms: &BTreeMap<NodeNo, u64>,
    limits: &Limits,
    actions: &mut Vec<Action>,
) -> Option<Mapping> {
    let absence_ms = limits.absence_ms?;
    let long = away_ms.iter().filter(|(_, ms)| **ms >= absence_ms);
    let mut leaving = long.filter_map(|(&no, _)| {
        let id = mapping.members.get(&no)?.id;
        let next = planner::outstayed(mapping, no)?;
        actions.push(Action::Outstayed { no, id });
        Some(next)
    });
    leaving.next()
}
