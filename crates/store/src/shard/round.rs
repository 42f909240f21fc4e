//! Work that is done for one database after the other within a budget, so that each has its turn.

/// Where the work continues.
#[derive(Debug, Default)]
pub(super) struct Round {
    next: usize,
}

impl Round {
    /// Calls `work` for each of so many databases once, beginning with the one that it stopped at. `work` returns
    /// whether there may be more to do there: then this stops and returns true.
    pub(super) fn go_on(&mut self, databases: usize, mut work: impl FnMut(usize) -> bool) -> bool {
        for _ in 0..databases {
            if work(self.next) {
                return true;
            }
            self.next = (self.next + 1) % databases;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_database_has_its_turn() {
        let (mut round, mut left) = (Round::default(), [3, 0, 2]);
        let mut visited = Vec::new();
        let mut step = |round: &mut Round| {
            let mut budget = 2;
            round.go_on(3, |db| {
                visited.push(db);
                let done = budget.min(left[db]);
                (budget, left[db]) = (budget - done, left[db] - done);
                left[db] > 0
            })
        };
        assert!(step(&mut round), "two of three in the first");
        assert!(step(&mut round), "then one, and one in the last");
        assert!(!step(&mut round));
        assert_eq!(left, [0; 3]);
        assert_eq!(visited, [0, 0, 1, 2, 2, 0, 1]);
    }
}
