//! Names of files: what was made, renamed and removed outlives the power only
//! after names were synced.

use super::file::File;
use crate::engine::random::Random;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Change {
    Create(String, usize),
    Rename(String, String),
    Remove(String),
}

impl Change {
    /// What cannot be done without an earlier change that was lost is lost too.
    fn apply(self, to: &mut BTreeMap<String, usize>) {
        match self {
            Change::Create(name, file) => {
                to.insert(name, file);
            }
            Change::Rename(from, name) => {
                if let Some(file) = to.remove(&from) {
                    to.insert(name, file);
                }
            }
            Change::Remove(name) => {
                to.remove(&name);
            }
        }
    }
}

/// All names and files.
#[derive(Debug, Default)]
pub(super) struct Names {
    live: BTreeMap<String, usize>,
    durable: BTreeMap<String, usize>,
    pending: Vec<Change>,
    files: Vec<File>,
}

impl Names {
    pub(super) fn file(&self, name: &str) -> Option<&File> {
        Some(&self.files[*self.live.get(name)?])
    }

    pub(super) fn file_mut(&mut self, name: &str) -> Option<&mut File> {
        Some(&mut self.files[*self.live.get(name)?])
    }

    pub(super) fn files_mut(&mut self) -> impl Iterator<Item = &mut File> {
        self.files.iter_mut()
    }

    /// Whether the contents of all files are.
    pub(super) fn are_synced(&self) -> bool {
        let mut files = self.live.values();
        files.all(|file| self.files[*file].is_synced())
    }

    pub(super) fn list(&self) -> impl Iterator<Item = (&str, usize)> {
        self.contents().map(|(name, bytes)| (name, bytes.len()))
    }

    pub(super) fn contents(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.live
            .iter()
            .map(|(name, file)| (name.as_str(), self.files[*file].live()))
    }

    /// As `open` with truncation: a file of that name is emptied.
    pub(super) fn create(&mut self, name: &str, len: usize) {
        if !self.live.contains_key(name) {
            self.files.push(File::default());
            self.change(Change::Create(name.to_owned(), self.files.len() - 1));
        }
        if let Some(file) = self.file_mut(name) {
            file.resize(0);
            file.resize(len);
        }
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> bool {
        let found = self.live.contains_key(from);
        if found {
            self.change(Change::Rename(from.to_owned(), to.to_owned()));
        }
        found
    }

    pub(super) fn remove(&mut self, name: &str) {
        if self.live.contains_key(name) {
            self.change(Change::Remove(name.to_owned()));
        }
    }

    fn change(&mut self, change: Change) {
        change.clone().apply(&mut self.live);
        self.pending.push(change);
    }

    pub(super) fn sync(&mut self) {
        for change in self.pending.drain(..) {
            change.apply(&mut self.durable);
        }
    }

    /// The power went. True where names were lost.
    pub(super) fn lose_power(&mut self, random: &mut Random, unordered: bool) -> bool {
        let pending = std::mem::take(&mut self.pending);
        let kept = random.index(pending.len() + 1);
        for (index, change) in pending.into_iter().enumerate() {
            let survives = if unordered {
                random.chance(0.5)
            } else {
                index < kept
            };
            if survives {
                change.apply(&mut self.durable);
            }
        }
        let lost = self.durable != self.live;
        self.live.clone_from(&self.durable);
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_outlive_the_power_after_a_sync() {
        let mut names = Names::default();
        names.create("a", 4);
        names.sync();
        names.create("b", 0);
        assert!(names.rename("b", "a"));
        assert!(!names.rename("b", "a"));
        let (mut old, mut new) = (0, 0);
        for seed in 0..100 {
            let mut names = Names {
                live: names.live.clone(),
                durable: names.durable.clone(),
                pending: names.pending.clone(),
                files: names.files.clone(),
            };
            names.lose_power(&mut Random::new(seed, "names"), seed % 2 == 0);
            match names.live.get("a") {
                Some(0) => old += 1,
                Some(1) => new += 1,
                other => panic!("{other:?}"),
            }
        }
        assert!(old > 0 && new > 0);
    }
}
