//! Whether a key is right after quiet, where all replicas say the same: nothing lost,
//! nothing back.
//!
//! What was done at a node that is no member any more may be lost, unless one that is
//! has shown it.

use super::{Account, Deed, Told};
use std::collections::BTreeSet;

impl Account {
    /// A key's value in the end, and the numbers of the nodes that are members then.
    pub fn judge(&self, key: usize, told: &Told, members: &BTreeSet<u16>) -> Result<(), String> {
        match told {
            Told::Number(sum) => self.judge_sum(key, *sum, members),
            Told::All(all) => self.judge_set(key, all, members),
        }
    }

    /// The sum of what is sure, and of some of what is in doubt.
    fn judge_sum(&self, key: usize, sum: u64, members: &BTreeSet<u16>) -> Result<(), String> {
        let (mut sure, mut shown, mut doubtful) = (0, 0, Vec::new());
        for done in self.done.iter().filter(|done| done.key == key) {
            let stays = done.number.is_some_and(|of| members.contains(&of));
            match (&done.deed, &done.told) {
                (Deed::Count(by), Some(_)) if stays => sure += by,
                (Deed::Count(by), _) => doubtful.push(*by),
                _ => {}
            }
            if let (Some(Told::Number(told)), true) = (&done.told, stays) {
                shown = shown.max(*told);
            }
        }
        if sum < shown {
            return Err(format!("it is {sum}, and a member has shown {shown}"));
        }
        let is_some = |rest| is_sum_of_some(rest, &doubtful);
        match sum.checked_sub(sure).is_some_and(is_some) {
            true => Ok(()),
            false => Err(format!(
                "it is {sum}, not {sure} and some of {doubtful:?} that are in doubt"
            )),
        }
    }

    fn judge_set(
        &self,
        key: usize,
        shown: &BTreeSet<u64>,
        members: &BTreeSet<u16>,
    ) -> Result<(), String> {
        let stays = |number: &Option<u16>| number.is_some_and(|of| members.contains(&of));
        let (mut made, mut kept) = (BTreeSet::new(), BTreeSet::new());
        let (mut touched, mut gone) = (BTreeSet::new(), BTreeSet::new());
        for done in self.done.iter().filter(|done| done.key == key) {
            match (&done.deed, &done.told) {
                (Deed::Add(element), told) => {
                    made.insert(*element);
                    kept.extend((told.is_some() && stays(&done.number)).then_some(*element));
                }
                (Deed::Members, Some(Told::All(all))) if stays(&done.number) => kept.extend(all),
                (Deed::Remove(_), Some(Told::Number(0))) => {}
                (Deed::Remove(element), told) => {
                    touched.insert(*element);
                    gone.extend((told.is_some() && stays(&done.number)).then_some(*element));
                }
                _ => {}
            }
        }
        let of_key = self.gone.iter().filter(|(of, ..)| *of == key);
        let by_members = of_key.filter(|(.., number)| stays(number));
        gone.extend(by_members.map(|(_, element, _)| *element));
        if let Some(element) = shown.difference(&made).next() {
            return Err(format!("{element} is there, which nobody added"));
        }
        if let Some(element) = shown.intersection(&gone).next() {
            return Err(format!("{element} is there again, which was removed"));
        }
        let mut lost = kept.difference(shown);
        match lost.find(|element| !touched.contains(element)) {
            Some(element) => Err(format!("{element} is lost, which nobody removed")),
            None => Ok(()),
        }
    }
}

/// Whether it is the sum of some of these, of none or of all.
fn is_sum_of_some(sum: u64, of: &[u64]) -> bool {
    let most = of.iter().sum::<u64>();
    if sum > most {
        return false;
    }
    let mut reached = vec![false; most as usize + 1];
    reached[0] = true;
    for by in of {
        let by = *by as usize;
        for at in (by..reached.len()).rev() {
            reached[at] |= reached[at - by];
        }
    }
    reached[sum as usize]
}

#[cfg(test)]
mod tests {
    use super::super::Done;
    use super::*;

    #[test]
    fn sums_of_some_are_found() {
        for (sum, of, is) in [
            (0, &[][..], true),
            (1, &[], false),
            (0, &[3, 5], true),
            (3, &[3, 5], true),
            (8, &[3, 5], true),
            (6, &[3, 5], false),
            (6, &[3, 3], true),
            (9, &[3, 5], false),
        ] {
            assert_eq!(is_sum_of_some(sum, of), is, "{sum} of {of:?}");
        }
    }

    fn done(deed: Deed, number: u16, told: Option<Told>) -> Done {
        Done {
            key: 2,
            deed,
            number: Some(number),
            told,
        }
    }

    #[test]
    fn what_only_who_has_left_knew_may_be_lost() {
        let yes = || Some(Told::Number(1));
        let members = BTreeSet::from([1]);
        let judge = |all: Vec<Done>, shown: &[u64]| {
            let account = Account {
                done: all,
                ..Account::default()
            };
            let shown = Told::All(shown.iter().copied().collect());
            account.judge(2, &shown, &members).is_ok()
        };
        let add = |number| done(Deed::Add(7), number, yes());
        assert!(judge(vec![add(1)], &[7]));
        assert!(!judge(vec![add(1)], &[]));
        assert!(judge(vec![add(0)], &[]));
        assert!(!judge(vec![add(1)], &[7, 8]));
        // A member has shown it.
        let seen = done(Deed::Members, 1, Some(Told::All(BTreeSet::from([7]))));
        assert!(!judge(vec![add(0), seen], &[]));
        // It is removed, perhaps, or for sure.
        let remove = |number, told| done(Deed::Remove(7), number, told);
        assert!(judge(vec![add(1), remove(1, None)], &[]));
        assert!(judge(vec![add(1), remove(1, None)], &[7]));
        assert!(judge(vec![add(1), remove(0, yes())], &[7]));
        assert!(!judge(vec![add(1), remove(1, yes())], &[7]));
        let nothing = Some(Told::Number(0));
        assert!(!judge(vec![add(1), remove(1, nothing)], &[]));
    }
}
