//! The workers of a node that have a replica of one lattice key.

use rufous_base::WorkerId;
use rufous_base::slot::worker_of_slot;

/// See the module's description. The first is the primary; the others follow it in the order of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owners {
    primary: WorkerId,
    spread: usize,
    workers: usize,
}

impl Owners {
    /// Of a node with one worker.
    pub const ALONE: Self = Self {
        primary: WorkerId(0),
        spread: 1,
        workers: 1,
    };

    #[inline]
    pub(super) fn new(primary: WorkerId, spread: usize, workers: usize) -> Self {
        Self {
            primary,
            spread,
            workers,
        }
    }

    /// Of the keys of a slot whose keyspaces have this many replicas.
    pub(crate) fn of_slot(slot: u16, spread: usize, workers: usize) -> Self {
        Self::new(worker_of_slot(slot, workers), spread, workers)
    }

    #[inline]
    pub fn primary(self) -> WorkerId {
        self.primary
    }

    /// Number of replicas.
    pub(crate) fn spread(self) -> usize {
        self.spread
    }

    /// All of them.
    pub fn all(self) -> impl Iterator<Item = WorkerId> + use<> {
        (0..self.spread).map(move |replica| self.at(replica))
    }

    /// The worker whose replica the connections of worker `of` read and write.
    #[inline]
    pub fn serving(self, of: WorkerId) -> WorkerId {
        let away = (of.index() + self.workers - self.primary.index()) % self.workers;
        if away < self.spread {
            return of;
        }
        self.at(of.index() % self.spread)
    }

    /// The workers whose connections read and write the replica of worker `at`; none if it has no replica.
    pub(crate) fn served_at(self, at: WorkerId) -> impl Iterator<Item = WorkerId> + use<> {
        // Where all have a replica, each serves its own connections alone.
        let own = at.index();
        let all = if self.spread == self.workers {
            own..own + 1
        } else {
            0..self.workers
        };
        let all = all.map(|worker| WorkerId(worker as u16));
        all.filter(move |of| self.serving(*of) == at)
    }

    #[inline]
    fn at(self, replica: usize) -> WorkerId {
        WorkerId(((self.primary.index() + replica) % self.workers) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_connection_is_served_by_one_replica() {
        for workers in 1..=5 {
            for (spread, primary) in
                (1..=workers).flat_map(|s| (0..workers).map(move |first| (s, first)))
            {
                let owners = Owners::new(WorkerId(primary as u16), spread, workers);
                let all: Vec<_> = owners.all().collect();
                assert_eq!(all.len(), spread);
                let mut served = vec![0; workers];
                for at in (0..workers).map(|worker| WorkerId(worker as u16)) {
                    for of in owners.served_at(at) {
                        assert_eq!(owners.serving(of), at);
                        served[of.index()] += 1;
                    }
                    let is_served = owners.served_at(at).any(|of| of == at);
                    assert_eq!(is_served, all.contains(&at), "{owners:?} {at:?}");
                }
                assert_eq!(served, vec![1; workers], "{owners:?}");
            }
        }
    }
}
