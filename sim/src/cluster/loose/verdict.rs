//! Whether lattice keys are right after quiet: alike everywhere, nothing lost, nothing
//! back.
//!
//! What was done at a node that is no member any more may be lost, unless one that is
//! has shown it.

use super::LOOSE;
use crate::cluster::world::World;
use crate::oracle::lattice::{Done, Shape, Told};
use std::collections::BTreeSet;

impl World {
    pub(in crate::cluster) fn judge_loose(&mut self) -> Result<(), String> {
        if self.plan.loose.is_none() {
            return Ok(());
        }
        let members = &self.coordinator.mapping.members;
        let members: BTreeSet<u16> = members.keys().map(|no| no.0).collect();
        let lost = |done: &Done| done.number.is_none_or(|of| !members.contains(&of));
        if self.loose.account.done().iter().any(lost) {
            self.reach("something was done with lattice keys at a node that has left");
        }
        let places = self.all_workers();
        for (key, (name, shape)) in LOOSE.into_iter().enumerate() {
            let told = self.loose.last.get(&key).map_or(&[][..], Vec::as_slice);
            let read: Vec<_> = told.iter().map(|(place, _)| *place).collect();
            if read != places {
                return Err(format!("{name} was read at {read:?}, not at {places:?}"));
            }
            let differs = told.iter().find(|(_, of)| *of != told[0].1);
            if let Some((place, of)) = differs {
                let (first, expected) = &told[0];
                return Err(format!(
                    "after quiet {name} is {expected:?} at {first:?} and {of:?} at {place:?}"
                ));
            }
            let all = &told[0].1;
            let verdict = match (shape, all) {
                (Shape::Counter, Told::Number(_)) | (Shape::Set, Told::All(_)) => {
                    self.loose.account.judge(key, all, &members)
                }
                _ => Err(format!("it is {all:?}")),
            };
            verdict.map_err(|wrong| format!("{name}: {wrong}"))?;
        }
        Ok(())
    }
}
