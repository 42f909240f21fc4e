//! What a command replies, as far as the model knows.

use super::claret::Part;
use super::pops::{self, How};
use super::value::{Name, Summary, names, written};
use rufous_resp::Reply;

/// The replies that a command may give.
#[derive(Clone, Debug)]
pub enum Expect {
    Exactly(Reply),
    Between(i64, i64),
    Error(&'static str),
    /// An element, or that there is none.
    Element(Option<Name>),
    Elements(Vec<Name>),
    /// Tuples of elements, in any order.
    Bag(Vec<Vec<Name>>),
    /// Of these numbers.
    Summary(Summary, Part),
    /// Elements that were waited for.
    Popped(How, Vec<Vec<Name>>),
    /// An element of an unknown value.
    Unseen,
    /// It cannot have run.
    Never,
}

impl Expect {
    pub(super) fn allows(&self, reply: Option<&Reply>) -> bool {
        match (self, reply) {
            (Expect::Never, _) => false,
            (_, None) => true,
            (Expect::Unseen, Some(_)) => false,
            (Expect::Popped(how, taken), Some(reply)) => pops::tells(*how, taken, reply),
            (Expect::Summary(all, part), Some(reply)) => tells(all, *part, reply),
            (Expect::Exactly(expected), Some(reply)) => expected == reply,
            (Expect::Between(low, high), Some(Reply::Integer(n))) => (low..=high).contains(&n),
            (Expect::Between(..), Some(_)) => false,
            (Expect::Error(prefix), Some(Reply::Error(text))) => {
                text.starts_with(prefix.as_bytes())
            }
            (Expect::Error(_), Some(_)) => false,
            (Expect::Element(None), Some(reply)) => *reply == Reply::Null,
            (Expect::Element(Some(name)), Some(Reply::Bulk(bytes))) => written(name) == *bytes,
            (Expect::Element(_), Some(_)) => false,
            (Expect::Elements(all), Some(reply)) => names(reply).as_ref() == Some(all),
            (Expect::Bag(all), Some(reply)) => is_bag(all, reply),
        }
    }
}

fn is_bag(expected: &[Vec<Name>], reply: &Reply) -> bool {
    let Some(seen) = names(reply) else {
        return false;
    };
    let size = expected.first().map_or(1, Vec::len);
    let mut seen: Vec<_> = seen.chunks(size).collect();
    let mut expected: Vec<_> = expected.iter().map(Vec::as_slice).collect();
    seen.sort();
    expected.sort();
    seen == expected
}

/// Whether a bag of these numbers answers so.
fn tells(all: &Summary, part: Part, reply: &Reply) -> bool {
    let some = |number: f64| (all.count > 0).then_some(number);
    let expected = match part {
        Part::Count => return *reply == Reply::Integer(all.count as i64),
        Part::Stats => {
            let Reply::Array(parts) = reply else {
                return false;
            };
            let names = ["count", "sum", "mean", "min", "max"];
            let order = [Part::Count, Part::Sum, Part::Mean, Part::Min, Part::Max];
            let fits = |((pair, name), part): ((&[Reply], &str), Part)| {
                pair[0] == Reply::Bulk(name.into()) && tells(all, part, &pair[1])
            };
            let pairs = parts.chunks_exact(2).zip(names).zip(order);
            return parts.len() == 10 && pairs.into_iter().all(fits);
        }
        Part::Sum => Some(all.sum as f64),
        // Rounded twice here, where the sum has too many digits.
        Part::Mean => some(all.sum as f64 / all.count as f64),
        Part::Min => some(all.min as f64),
        Part::Max => some(all.max as f64),
    };
    match (expected, reply) {
        (None, reply) => *reply == Reply::Null,
        (Some(expected), Reply::Bulk(text)) => {
            let told = std::str::from_utf8(text).ok();
            let told = told.and_then(|text| text.parse::<f64>().ok());
            let rounded = part == Part::Mean && all.sum.unsigned_abs() > 1 << 53;
            let slack = if rounded { expected.abs() * 1e-15 } else { 0.0 };
            told.is_some_and(|told| (told - expected).abs() <= slack)
        }
        _ => false,
    }
}
