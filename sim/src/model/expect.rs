//! What a command replies, as far as the model knows.

use super::value::{Name, names, written};
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
    /// It cannot have run.
    Never,
}

impl Expect {
    pub(super) fn allows(&self, reply: Option<&Reply>) -> bool {
        match (self, reply) {
            (Expect::Never, _) => false,
            (_, None) => true,
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
