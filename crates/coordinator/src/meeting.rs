//! The coordinator for several nodes in one process: for programs that embed nodes, and for tests.
//!
//! It is a lock around the state. Without a folder nothing is stored: the cluster ends with the
//! process. It can be made unavailable, as etcd can be.

use crate::{
    AgreedMapping, Coordinator, Error, Member, NodeId, Proposed, View, check_about, check_size,
    local,
};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The shared state. Clones share it.
#[derive(Clone, Default)]
pub struct Meeting(Arc<Mutex<Room>>);

#[derive(Default)]
struct Room {
    state: Option<AgreedMapping>,
    present: BTreeMap<NodeId, Present>,
    /// The number of joins so far.
    came: u64,
    is_away: bool,
    /// Where a mapping is written before it takes effect.
    folder: Option<PathBuf>,
}

struct Present {
    member: Member,
    /// The member with the lowest number leads.
    came: u64,
    view: watch::Sender<View>,
}

/// One node in a meeting. While it exists, its node counts as alive.
#[derive(Debug)]
pub struct Attendee {
    meeting: Meeting,
    id: NodeId,
    came: u64,
    view: watch::Receiver<View>,
}

impl Meeting {
    /// A meeting that continues with the mapping in this folder.
    pub fn kept_in(folder: &Path) -> Result<Self, Error> {
        let failed = |error| Error::Away(format!("{}: {error}", folder.display()));
        std::fs::create_dir_all(folder).map_err(failed)?;
        let room = Room {
            state: local::read(&folder.join(local::NAME))?,
            folder: Some(folder.to_owned()),
            ..Room::default()
        };
        Ok(Self(Arc::new(Mutex::new(room))))
    }

    /// Adds a node. A member with its id is removed if it is an earlier start with the same folder;
    /// otherwise the new one is refused.
    pub fn join(&self, me: Member) -> Result<Attendee, Error> {
        check_about(&me.about)?;
        let mut room = self.lock();
        let there = room.present.get(&me.id);
        if there.is_some_and(|there| !there.member.gives_way_to(&me)) {
            let what = "another node with our id is a member: was a data directory copied?";
            return Err(Error::Settings(what.to_owned()));
        }
        room.came += 1;
        let (id, came) = (me.id, room.came);
        let (shown, view) = watch::channel(View::default());
        let present = Present {
            member: me,
            came,
            view: shown,
        };
        if let Some(earlier) = room.present.insert(id, present) {
            earlier.view.send_modify(|view| view.is_member = false);
        }
        room.show();
        drop(room);
        Ok(Attendee {
            meeting: self.clone(),
            id,
            came,
            view,
        })
    }

    /// Makes the coordinator unavailable, or available again.
    pub fn set_away(&self, is_away: bool) {
        let mut room = self.lock();
        room.is_away = is_away;
        room.show();
    }

    fn lock(&self) -> MutexGuard<'_, Room> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Meeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a meeting of {}", self.lock().present.len())
    }
}

impl PartialEq for Meeting {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Meeting {}

impl Room {
    /// Sends the state to all members; while it is unavailable they keep their view.
    fn show(&self) {
        if self.is_away {
            let shown = self.present.values();
            return shown.for_each(|present| {
                present.view.send_modify(|view| {
                    view.is_current = false;
                    view.is_member = false;
                })
            });
        }
        let oldest = self.present.values().min_by_key(|present| present.came);
        let leader = oldest.map(|present| present.member.id);
        let members = self.present.values().map(|present| &present.member);
        let members: BTreeMap<NodeId, Member> =
            members.map(|member| (member.id, member.clone())).collect();
        for present in self.present.values() {
            present.view.send_modify(|view| {
                view.is_current = true;
                view.is_member = true;
                if let Some(state) = &self.state {
                    view.advance(state.clone());
                }
                view.members = members.clone();
                view.leader = leader;
            });
        }
    }

    fn has(&self, attendee: &Attendee) -> bool {
        let there = self.present.get(&attendee.id);
        there.is_some_and(|there| there.came == attendee.came)
    }
}

impl Coordinator for Attendee {
    fn view(&self) -> watch::Receiver<View> {
        self.view.clone()
    }

    async fn read(&self) -> Result<Option<AgreedMapping>, Error> {
        let room = self.meeting.lock();
        match room.is_away {
            true => Err(away()),
            false => Ok(room.state.clone()),
        }
    }

    async fn propose(&self, expected: u64, mapping: Vec<u8>) -> Result<Proposed, Error> {
        check_size(&mapping)?;
        let mut room = self.meeting.lock();
        if room.is_away {
            return Err(away());
        }
        if !room.has(self) {
            return Ok(Proposed::NotAlive);
        }
        if room.state.as_ref().map_or(0, |state| state.epoch) != expected {
            return Ok(Proposed::Behind(room.state.clone()));
        }
        let next = AgreedMapping {
            epoch: expected + 1,
            mapping,
        };
        if let Some(folder) = &room.folder {
            local::write(folder, &next).map_err(|error| Error::Away(error.to_string()))?;
        }
        room.state = Some(next);
        room.show();
        Ok(Proposed::Taken)
    }

    async fn announce(&self, about: Vec<u8>) -> Result<(), Error> {
        check_about(&about)?;
        let mut room = self.meeting.lock();
        match room.present.get_mut(&self.id) {
            Some(there) if there.came == self.came => there.member.about = about,
            _ => return Ok(()),
        }
        room.show();
        Ok(())
    }

    async fn leave(self) {}
}

impl Drop for Attendee {
    fn drop(&mut self) {
        let mut room = self.meeting.lock();
        if room.has(self) {
            room.present.remove(&self.id);
            room.show();
        }
    }
}

fn away() -> Error {
    Error::Away("it was told to be".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: u8, incarnation: u64) -> Member {
        Member {
            id: NodeId([id; 20]),
            incarnation,
            after: incarnation - 1,
            about: Vec::new(),
        }
    }

    #[tokio::test]
    async fn it_is_away_and_comes_back() {
        let meeting = Meeting::default();
        let one = meeting.join(member(1, 1)).expect("let in");
        let two = meeting.join(member(2, 1)).expect("let in");
        assert_eq!(one.propose(0, vec![1]).await.ok(), Some(Proposed::Taken));
        meeting.set_away(true);
        assert!(one.read().await.is_err());
        assert!(one.propose(1, vec![2]).await.is_err());
        let view = two.view().borrow().clone();
        assert!(!view.is_current && !view.is_member);
        assert_eq!((view.epoch(), view.members.len()), (1, 2));
        // A member that leaves meanwhile is missing in later views.
        drop(one);
        assert_eq!(two.view().borrow().members.len(), 2);
        meeting.set_away(false);
        let view = two.view().borrow().clone();
        assert!(view.is_current && view.is_member);
        assert_eq!(
            (view.members.len(), view.leader),
            (1, Some(NodeId([2; 20])))
        );
    }

    #[tokio::test]
    async fn of_two_nodes_with_one_id_one_is_a_member() {
        let meeting = Meeting::default();
        let one = meeting.join(member(1, 2)).expect("let in");
        assert!(meeting.join(member(1, 2)).is_err());
        let again = meeting.join(member(1, 3)).expect("let in");
        assert_eq!(one.propose(0, vec![]).await.ok(), Some(Proposed::NotAlive));
        assert!(!one.view().borrow().is_member);
        drop(one);
        assert_eq!(again.view().borrow().members.len(), 1);
        assert_eq!(again.propose(0, vec![]).await.ok(), Some(Proposed::Taken));
    }
}
