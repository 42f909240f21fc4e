//! Pairs of writes of which one must be before the other.

use super::Value;
use std::fmt::Write;

/// See the module's description.
#[derive(Debug)]
pub(super) struct Order {
    /// By the earlier one, with the reason.
    after: Vec<Vec<(Value, &'static str)>>,
}

impl Order {
    pub(super) fn new(values: usize) -> Self {
        Self {
            after: vec![Vec::new(); values],
        }
    }

    /// `a` must be before `b`, unless they are the same.
    pub(super) fn before(&mut self, a: Value, b: Value, why: &'static str) {
        if a != b {
            self.after[a as usize].push((b, why));
        }
    }

    /// An error says which pairs contradict one another.
    pub(super) fn check(&self) -> Result<(), String> {
        // 0: not seen, 1: on the path, 2: done.
        let mut marks = vec![0u8; self.after.len()];
        for start in 0..self.after.len() {
            let mut path = vec![(start, 0)];
            while let Some((at, next)) = path.last_mut() {
                let (here, edge) = (*at, self.after[*at].get(*next));
                *next += 1;
                marks[here] = 1;
                match edge {
                    None => {
                        marks[here] = 2;
                        path.pop();
                    }
                    Some(&(to, _)) if marks[to as usize] == 0 => path.push((to as usize, 0)),
                    Some(&(to, _)) if marks[to as usize] == 1 => {
                        return Err(self.tell(&path, to as usize));
                    }
                    Some(_) => {}
                }
            }
        }
        Ok(())
    }

    fn tell(&self, path: &[(usize, usize)], from: usize) -> String {
        let mut text = String::from("there is no order of these writes:");
        for &(at, next) in path.iter().skip_while(|(at, _)| *at != from) {
            let (to, why) = self.after[at][next - 1];
            // Writing to a string does not fail.
            let _ = write!(text, " v{at} must be before v{to} ({why});");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_found_and_nothing_else() {
        let mut order = Order::new(6);
        for (a, b) in [(0, 1), (1, 2), (0, 2), (3, 2), (2, 4), (4, 4)] {
            order.before(a, b, "so it is");
        }
        assert_eq!(order.check(), Ok(()));
        order.before(4, 1, "says somebody");
        let told = order.check().unwrap_err();
        assert!(
            told.contains("v4 must be before v1 (says somebody)"),
            "{told}"
        );
        assert!(!told.contains("v0") && !told.contains("v3"), "{told}");
    }
}
