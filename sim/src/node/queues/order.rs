//! Whether the waiters of a key are served in their order while other requests
//! run.
//!
//! When a wait begins is not visible from outside, and of two clients of different
//! workers it is unknown which came first: their requests reach the owner of the
//! key by different rings. Two clients of one worker are another matter. If
//! that worker took the whole request of one in a turn before that of the other,
//! the requests went to the owner by the same ring, one after the other; and their
//! replies come back by the same ring and leave in the order of turns, whatever
//! they wait for. So if the later one's element leaves in a turn, and by then
//! nothing at all has left for the earlier one, the later one was served first.
//!
//! Judged are pops from one key each. A waiter for several keys may be passed over
//! while one of them is held, and a move between workers takes time:
//! waiters behind it wait for its outcome, and a client that arrives meanwhile may get
//! their element (docs/adr/0013). So no waiter is judged for a key from which another
//! client waits to move. If the client of a wait leaves, the end of the wait is not
//! visible: it counts for as long as the node lives.

/// A client's wait.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wait {
    number: u64,
    client: usize,
    link: usize,
    key: usize,
    worker: usize,
    /// The worker has taken the request.
    is_taken: bool,
    /// The numbers of those that came before.
    before: Vec<u64>,
    /// Another client waited to move from the key meanwhile.
    is_beside_move: bool,
}

/// All waits of a life of the node that can be judged.
#[derive(Debug, Default)]
pub struct Order {
    waits: Vec<Wait>,
    /// Links and keys of the clients that wait to move.
    moves: Vec<(usize, usize)>,
    last: u64,
}

impl Order {
    /// A request is on its way.
    pub fn ask(&mut self, client: usize, link: usize, worker: usize, key: usize) {
        self.last += 1;
        self.waits.push(Wait {
            number: self.last,
            client,
            link,
            key,
            worker,
            is_taken: false,
            before: Vec::new(),
            is_beside_move: self.moves.iter().any(|&(_, from)| from == key),
        });
    }

    /// A request to move from a key is on its way.
    pub fn ask_to_move(&mut self, link: usize, from: usize) {
        self.moves.push((link, from));
        let beside = self.waits.iter_mut().filter(|wait| wait.key == from);
        beside.for_each(|wait| wait.is_beside_move = true);
    }

    /// After a turn of a worker: `has_come` returns whether all that a link's
    /// client sent was taken.
    pub fn turn(&mut self, worker: usize, has_come: impl Fn(usize) -> bool) {
        let new: Vec<_> = (0..self.waits.len())
            .filter(|&at| {
                let wait = &self.waits[at];
                wait.worker == worker && !wait.is_taken && has_come(wait.link)
            })
            .collect();
        for &at in &new {
            let key = self.waits[at].key;
            let earlier = |w: &&Wait| w.is_taken && w.worker == worker && w.key == key;
            self.waits[at].before = self
                .waits
                .iter()
                .filter(earlier)
                .map(|w| w.number)
                .collect();
        }
        // Requests of one turn have no order among them.
        new.into_iter()
            .for_each(|at| self.waits[at].is_taken = true);
    }

    /// What leaves a worker at once: links, and whether they get elements. Returns
    /// how many were judged.
    pub fn leave(&mut self, left: &[(usize, bool)]) -> Result<usize, String> {
        let mut judged = 0;
        for (link, _) in left.iter().filter(|(_, served)| *served) {
            let Some(wait) = self.waits.iter().find(|w| w.link == *link) else {
                continue;
            };
            if wait.is_beside_move {
                continue;
            }
            judged += usize::from(!wait.before.is_empty());
            let waits = |w: &&Wait| {
                wait.before.contains(&w.number) && left.iter().all(|(other, _)| *other != w.link)
            };
            if let Some(passed) = self.waits.iter().find(waits) {
                return Err(format!(
                    "queue client {} was served, and client {} began to wait before it for key {} at worker {}",
                    wait.client, passed.client, wait.key, wait.worker
                ));
            }
        }
        for (link, _) in left {
            self.forget(*link);
            self.moves.retain(|(other, _)| other != link);
        }
        Ok(judged)
    }

    /// The client of this link waits no more, or its state is unknown.
    pub fn forget(&mut self, link: usize) {
        self.waits.retain(|w| w.link != link);
    }

    /// The node is gone.
    pub fn clear(&mut self) {
        self.waits.clear();
        self.moves.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Order {
        let mut order = Order::default();
        order.ask(1, 11, 0, 0);
        order.ask(2, 12, 0, 0);
        order.turn(0, |link| link == 11);
        order.turn(0, |_| true);
        order
    }

    #[test]
    fn the_later_one_is_not_served_alone() {
        assert!(two().leave(&[(12, true)]).is_err());
        assert_eq!(two().leave(&[(11, true), (12, true)]), Ok(1));
        let mut order = two();
        assert_eq!(order.leave(&[(11, true)]), Ok(0));
        assert_eq!(order.leave(&[(12, true)]), Ok(1));
    }

    #[test]
    fn whose_wait_has_ended_is_not_before_anybody() {
        let mut order = two();
        order.forget(11);
        assert_eq!(order.leave(&[(12, true)]), Ok(1));
        // Its time was over.
        assert_eq!(two().leave(&[(11, false), (12, true)]), Ok(1));
    }

    #[test]
    fn nothing_is_known_of_other_workers_keys_and_the_same_turn() {
        for (worker, key) in [(1, 0), (0, 1)] {
            let mut order = Order::default();
            order.ask(1, 11, 0, 0);
            order.ask(2, 12, worker, key);
            order.turn(0, |link| link == 11);
            order.turn(worker, |_| true);
            assert_eq!(order.leave(&[(12, true)]), Ok(0));
        }
        let mut order = Order::default();
        order.ask(1, 11, 0, 0);
        order.ask(2, 12, 0, 0);
        order.turn(0, |_| true);
        assert_eq!(order.leave(&[(12, true)]), Ok(0));
    }

    #[test]
    fn nobody_is_judged_beside_a_move() {
        let mut before = Order::default();
        before.ask_to_move(13, 0);
        before.ask(1, 11, 0, 0);
        before.ask(2, 12, 0, 0);
        before.turn(0, |link| link == 11);
        before.turn(0, |_| true);
        let mut after = two();
        after.ask_to_move(13, 0);
        for mut order in [before, after] {
            order.forget(13);
            assert_eq!(order.leave(&[(12, true)]), Ok(0));
        }
        let mut over = Order::default();
        over.ask_to_move(13, 0);
        assert_eq!(over.leave(&[(13, true)]), Ok(0));
        over.ask(1, 11, 0, 0);
        over.ask(2, 12, 0, 0);
        over.turn(0, |link| link == 11);
        over.turn(0, |_| true);
        assert!(over.leave(&[(12, true)]).is_err());
    }
}
