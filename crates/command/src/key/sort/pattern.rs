//! Patterns of SORT: other keys, which an element names in place of a `*`.

use crate::Ctx;
use rufous_datatype::hash::Hash;
use rufous_kernel::lock::KeyName;

/// `before*after`, or `before*after->field` for a field of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pattern<'a> {
    before: &'a [u8],
    after: &'a [u8],
    field: Option<&'a [u8]>,
}

impl<'a> Pattern<'a> {
    /// Nothing where it has no `*`, and so names no key.
    pub(super) fn parse(text: &'a [u8]) -> Option<Self> {
        let star = text.iter().position(|&byte| byte == b'*')?;
        let (before, rest) = (&text[..star], &text[star + 1..]);
        let arrow = rest.windows(2).position(|two| two == b"->");
        // An arrow at the end is part of the name.
        let arrow = arrow.filter(|at| at + 2 < rest.len());
        Some(Self {
            before,
            after: &rest[..arrow.unwrap_or(rest.len())],
            field: arrow.map(|at| &rest[at + 2..]),
        })
    }

    fn write(&self, element: &[u8], key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(self.before);
        key.extend_from_slice(element);
        key.extend_from_slice(self.after);
    }

    pub(super) fn key(&self, db: u8, element: &[u8]) -> KeyName {
        let mut key = Vec::with_capacity(self.before.len() + element.len() + self.after.len());
        self.write(element, &mut key);
        (db, key.into())
    }

    /// What the key, or its field, has. One of another type has nothing. `name` is for its name.
    pub(super) fn value<'c>(
        &self,
        ctx: &'c mut Ctx<'_>,
        element: &[u8],
        name: &mut Vec<u8>,
    ) -> Option<&'c [u8]> {
        self.write(element, name);
        let key = ctx.shard.key(name);
        let value = ctx.shard.read(ctx.db, key, ctx.now)?;
        match self.field {
            Some(field) => value.of::<Hash>().ok()?.get(field),
            None => value.string().ok().map(|value| value.bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_star_and_the_first_arrow_after_it() {
        let is = |text: &'static str, before: &str, after: &str, field: Option<&str>| {
            let pattern = Pattern::parse(text.as_bytes()).expect("a pattern");
            let expected = Pattern {
                before: before.as_bytes(),
                after: after.as_bytes(),
                field: field.map(str::as_bytes),
            };
            assert_eq!(pattern, expected, "{text}");
        };
        is("*", "", "", None);
        is("w_*", "w_", "", None);
        is("a*b*c", "a", "b*c", None);
        is("a*->f", "a", "", Some("f"));
        is("a*b->f->g", "a", "b", Some("f->g"));
        is("a->b*", "a->b", "", None);
        is("a->*->f", "a->", "", Some("f"));
        is("a*->", "a", "->", None);
        is("a*-", "a", "-", None);
        assert_eq!(Pattern::parse(b"nosort"), None);
        assert_eq!(Pattern::parse(b"#"), None);
    }

    #[test]
    fn an_element_takes_the_place_of_the_star() {
        let pattern = Pattern::parse(b"a*b->f").expect("a pattern");
        assert_eq!(pattern.key(3, b"*x"), (3, b"a*xb"[..].into()));
    }
}
