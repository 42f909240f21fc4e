//! Whether a history of appends and reads of one list is linearizable: one
//! order of them explains all replies and keeps to what was over before what.
//!
//! Values are appended once, so the list after quiet gives the order of all
//! appends; a read of so many values comes after the last of them and before
//! the next. What is left to check is time, exactly and in one pass: of two
//! requests with different places in the order, the later one must not have
//! been over before the earlier one began.

/// A request and its reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Append(u32),
    Read(Vec<u32>),
}

#[derive(Clone, Debug)]
pub struct Operation {
    pub what: What,
    /// Of a count of all that clients did.
    pub began: u64,
    /// Nothing where no reply came: it may have been done, and may be done at
    /// any later time.
    pub ended: Option<u64>,
}

/// What is wrong, if anything is.
pub fn judge(operations: &[Operation], list: &[u32]) -> Result<(), String> {
    let mut once = list.to_vec();
    once.sort_unstable();
    once.dedup();
    if once.len() != list.len() {
        return Err(format!("a value is twice in {list:?}"));
    }
    let mut order: Vec<(usize, &Operation)> = Vec::new();
    for operation in operations {
        let rank = match (&operation.what, operation.ended) {
            (What::Append(value), ended) => {
                match (list.iter().position(|had| had == value), ended) {
                    (Some(at), _) => 2 * at + 1,
                    (None, None) => continue,
                    (None, Some(_)) => {
                        return Err(format!("{value} is acknowledged and lost: {list:?}"));
                    }
                }
            }
            (What::Read(_), None) => continue,
            (What::Read(read), Some(_)) if list.starts_with(read) => 2 * read.len(),
            (What::Read(read), Some(_)) => {
                return Err(format!("{read:?} was read of what is {list:?}"));
            }
        };
        order.push((rank, operation));
    }
    let known = order.iter().filter(|(rank, _)| rank % 2 == 1).count();
    if known != list.len() {
        return Err(format!("something is in {list:?} that nobody has appended"));
    }
    order.sort_by_key(|(rank, _)| *rank);
    let mut latest: Option<&Operation> = None;
    for same in order.chunk_by(|a, b| a.0 == b.0) {
        for (_, operation) in same {
            if let (Some(before), Some(ended)) = (latest, operation.ended)
                && ended < before.began
            {
                return Err(format!(
                    "{operation:?} was over before {before:?} began, and comes after it"
                ));
            }
        }
        let began = same
            .iter()
            .map(|(_, operation)| *operation)
            .max_by_key(|o| o.began);
        latest = latest.into_iter().chain(began).max_by_key(|o| o.began);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn append(value: u32, began: u64, ended: u64) -> Operation {
        let ended = (ended > 0).then_some(ended);
        Operation {
            what: What::Append(value),
            began,
            ended,
        }
    }

    fn read(values: &[u32], began: u64, ended: u64) -> Operation {
        Operation {
            what: What::Read(values.to_vec()),
            began,
            ended: Some(ended),
        }
    }

    #[test]
    fn orders_are_found_where_there_are_some() {
        let fine = |operations: &[Operation], list: &[u32]| {
            assert_eq!(judge(operations, list), Ok(()));
        };
        fine(&[], &[]);
        fine(&[append(1, 1, 2), read(&[1], 3, 4)], &[1]);
        fine(&[append(1, 1, 4), append(2, 2, 3)], &[2, 1]);
        fine(&[append(1, 1, 5), read(&[], 2, 3), read(&[1], 2, 3)], &[1]);
        // It came late, or never.
        fine(&[append(1, 1, 0), read(&[], 7, 8)], &[]);
        fine(&[append(1, 1, 0), read(&[], 7, 8)], &[1]);
    }

    #[test]
    fn what_no_order_explains_is_found() {
        let wrong = |operations: &[Operation], list: &[u32]| {
            assert!(judge(operations, list).is_err(), "{operations:?}");
        };
        wrong(&[append(1, 1, 2)], &[]);
        wrong(&[append(1, 1, 2)], &[1, 1]);
        wrong(&[], &[1]);
        wrong(&[append(1, 1, 2), append(2, 3, 4)], &[2, 1]);
        wrong(&[append(1, 1, 2), read(&[], 3, 4)], &[1]);
        wrong(&[append(1, 3, 0), read(&[1], 1, 2)], &[1]);
        wrong(&[append(1, 1, 9), read(&[1], 2, 3), read(&[], 4, 5)], &[1]);
        wrong(
            &[append(1, 1, 9), append(2, 1, 9), read(&[2], 2, 3)],
            &[1, 2],
        );
        // Between these two another one lies.
        wrong(
            &[append(1, 5, 6), append(2, 1, 9), append(3, 1, 4)],
            &[1, 2, 3],
        );
    }
}
