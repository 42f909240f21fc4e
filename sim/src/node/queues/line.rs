//! Whether the waiters of a key are served in their order.
//!
//! Judged when it is visible from outside: the clients of a line began to
//! wait one after the other, each when no other request was pending.

use std::collections::BTreeSet;

/// A client that waits for one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    client: usize,
    key: usize,
    is_served: bool,
}

/// The clients that wait for one key each, the first one first.
#[derive(Debug, Default)]
pub(super) struct Line(Vec<Place>);

impl Line {
    pub(super) fn join(&mut self, client: usize, key: usize) {
        self.0.push(Place {
            client,
            key,
            is_served: false,
        });
    }

    /// The client got something.
    pub(super) fn serve(&mut self, client: usize) {
        let mine = self.0.iter_mut().filter(|p| p.client == client);
        mine.for_each(|p| p.is_served = true);
    }

    /// The client waits no more, and got nothing.
    pub(super) fn leave(&mut self, client: usize) {
        self.0.retain(|p| p.client != client);
    }

    /// To be called when all replies have arrived. Removes the served waiters.
    pub(super) fn judge(&mut self) -> Result<(), String> {
        let mut waiting = BTreeSet::new();
        for place in &self.0 {
            if !place.is_served {
                waiting.insert(place.key);
            } else if waiting.contains(&place.key) {
                return Err(format!(
                    "queue client {} was served before others that waited longer for key {}: {:?}",
                    place.client, place.key, self.0
                ));
            }
        }
        self.0.retain(|p| !p.is_served);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_served_first() {
        let mut line = Line::default();
        for (client, key) in [(0, 0), (1, 1), (2, 0), (3, 0)] {
            line.join(client, key);
        }
        line.serve(0);
        line.serve(1);
        assert_eq!(line.judge(), Ok(()));
        line.serve(3);
        assert!(line.judge().is_err(), "2 still waits");
        line.leave(2);
        assert_eq!(line.judge(), Ok(()));
    }
}
