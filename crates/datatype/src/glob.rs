//! Redis's patterns, as `KEYS`, `SCAN MATCH`, `PSUBSCRIBE` and `CONFIG GET` use them.
//!
//! `*` stands for any bytes, `?` for one, `[a-z]` for one of a class, `[^a]` for one outside it; a backslash takes
//! the next byte literally. A pattern of n bytes on a text of m takes at most n × m steps and no memory: since every
//! part other than `*` takes exactly one byte, only the last `*` ever has to be tried again.
//!
//! Oddities of Redis that are kept, because patterns in use may rely on them:
//! - a class that is never closed ends with the pattern; a lone backslash at the end is itself;
//! - `[]` matches nothing, `[^]` everything, and `[a-]` is the range from `a` to `]`;
//! - ranges compare bytes as signed numbers, as Redis does on x86, so bytes from 0x80 come before ASCII;
//! - an escaped byte in a class ignores `nocase`;
//! - the empty text matches the empty pattern alone, not even `*` (commands that list keys treat a lone `*` as
//!   "all" without asking, see [`Glob::is_all`]).

use memchr::memmem;

/// Whether a text matches a pattern.
pub fn glob_match(pattern: &[u8], text: &[u8], nocase: bool) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    let (mut p, mut t) = (0, 0);
    // Where the pattern continues after the last star, and where in the text that was last tried.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        if t == text.len() {
            return pattern[p..].iter().all(|&byte| byte == b'*');
        }
        let next = match pattern.get(p) {
            Some(b'*') => {
                p += pattern[p..]
                    .iter()
                    .take_while(|&&byte| byte == b'*')
                    .count();
                if p == pattern.len() {
                    return true;
                }
                retry = Some((p, t));
                continue;
            }
            Some(_) => match_one(pattern, p, text[t], nocase),
            None => None,
        };
        match (next, &mut retry) {
            (Some(next), _) => (p, t) = (next, t + 1),
            (None, None) => return false,
            (None, Some((after_star, tried))) => {
                *tried += 1;
                *tried += skip(pattern[*after_star], &text[*tried..], nocase);
                (p, t) = (*after_star, *tried);
            }
        }
    }
}

/// How many bytes of the text cannot begin a match of a part that begins with `first`.
fn skip(first: u8, text: &[u8], nocase: bool) -> usize {
    if nocase || matches!(first, b'?' | b'[' | b'\\') {
        return 0;
    }
    memchr::memchr(first, text).unwrap_or(text.len())
}

/// Matches one byte against the part of the pattern at `p` (no star); returns where the next part begins.
fn match_one(pattern: &[u8], p: usize, byte: u8, nocase: bool) -> Option<usize> {
    let (matched, next) = match &pattern[p..] {
        [b'?', ..] => (true, p + 1),
        [b'[', ..] => match_class(pattern, p + 1, byte, nocase),
        [b'\\', literal, ..] => (same(*literal, byte, nocase), p + 2),
        [literal, ..] => (same(*literal, byte, nocase), p + 1),
        [] => (false, p),
    };
    matched.then_some(next)
}

fn same(a: u8, b: u8, nocase: bool) -> bool {
    a == b || nocase && a.eq_ignore_ascii_case(&b)
}

/// Matches one byte against the class whose `[` precedes `p`; returns also where the class ends.
fn match_class(pattern: &[u8], mut p: usize, byte: u8, nocase: bool) -> (bool, usize) {
    let negated = pattern.get(p) == Some(&b'^');
    p += usize::from(negated);
    let mut matched = false;
    loop {
        match &pattern[p..] {
            [b'\\', escaped, ..] => {
                matched |= *escaped == byte;
                p += 2;
            }
            [b']', ..] => {
                p += 1;
                break;
            }
            [start, b'-', end, ..] => {
                matched |= in_range(*start, *end, byte, nocase);
                p += 3;
            }
            [single, ..] => {
                matched |= same(*single, byte, nocase);
                p += 1;
            }
            [] => break,
        }
    }
    (matched != negated, p)
}

/// The ends are put in order before case is ignored, so that with `nocase` `[_-Z]` is the range from `z` to `_`.
fn in_range(start: u8, end: u8, byte: u8, nocase: bool) -> bool {
    let (low, high) = if start as i8 <= end as i8 {
        (start, end)
    } else {
        (end, start)
    };
    let fold = |byte: u8| {
        if nocase {
            byte.to_ascii_lowercase() as i8
        } else {
            byte as i8
        }
    };
    (fold(low)..=fold(high)).contains(&fold(byte))
}

/// A pattern prepared for many texts; matches exactly as [`glob_match`] does.
#[derive(Clone, Debug)]
pub struct Glob {
    pattern: Vec<u8>,
    nocase: bool,
    shape: Shape,
}

/// The shapes that need no general matching. They hold literals without escapes.
#[derive(Clone, Debug)]
enum Shape {
    /// Stars only.
    All,
    /// `abc`
    Exact(Vec<u8>),
    /// `abc*`
    Prefix(Vec<u8>),
    /// `*abc`
    Suffix(Vec<u8>),
    /// `*abc*`
    Contains(Box<memmem::Finder<'static>>),
    General,
}

impl Glob {
    pub fn new(pattern: &[u8], nocase: bool) -> Self {
        let shape = if nocase {
            Shape::General
        } else {
            Shape::of(pattern)
        };
        Self {
            pattern: pattern.to_vec(),
            nocase,
            shape,
        }
    }

    pub fn matches(&self, text: &[u8]) -> bool {
        if text.is_empty() {
            return self.pattern.is_empty();
        }
        match &self.shape {
            Shape::All => true,
            Shape::Exact(literal) => text == literal,
            Shape::Prefix(literal) => text.starts_with(literal),
            Shape::Suffix(literal) => text.ends_with(literal),
            Shape::Contains(finder) => finder.find(text).is_some(),
            Shape::General => glob_match(&self.pattern, text, self.nocase),
        }
    }

    /// Whether this is `*` alone, for which `KEYS` and `SCAN` list every key, the empty one included.
    pub fn is_all(&self) -> bool {
        self.pattern == b"*"
    }

    /// The only text that can match, if the pattern has no wildcard: a lookup then replaces a scan.
    pub fn as_exact(&self) -> Option<&[u8]> {
        match &self.shape {
            Shape::Exact(literal) => Some(literal),
            _ => None,
        }
    }

    pub fn pattern(&self) -> &[u8] {
        &self.pattern
    }
}

impl Shape {
    fn of(pattern: &[u8]) -> Self {
        let leading = pattern.iter().take_while(|&&byte| byte == b'*').count();
        let mut literal = Vec::new();
        let mut rest = &pattern[leading..];
        loop {
            rest = match rest {
                [] | [b'*', ..] => break,
                [b'?' | b'[', ..] => return Self::General,
                [b'\\', escaped, tail @ ..] => {
                    literal.push(*escaped);
                    tail
                }
                [byte, tail @ ..] => {
                    literal.push(*byte);
                    tail
                }
            };
        }
        if rest.iter().any(|&byte| byte != b'*') {
            return Self::General;
        }
        match (leading > 0, !rest.is_empty()) {
            (true, _) if literal.is_empty() => Self::All,
            (true, true) => Self::Contains(Box::new(memmem::Finder::new(&literal).into_owned())),
            (true, false) => Self::Suffix(literal),
            (false, true) => Self::Prefix(literal),
            (false, false) => Self::Exact(literal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(pattern: &[u8], text: &[u8], expected: bool) {
        assert_eq!(
            glob_match(pattern, text, false),
            expected,
            "{pattern:?} {text:?}"
        );
        assert_eq!(
            Glob::new(pattern, false).matches(text),
            expected,
            "prepared {pattern:?} {text:?}"
        );
    }

    #[test]
    fn wildcards() {
        check(b"h?llo", b"hello", true);
        check(b"h?llo", b"hllo", false);
        check(b"h*llo", b"hllo", true);
        check(b"h*llo", b"heeeello", true);
        check(b"h*llo", b"heeeell", false);
        check(b"abc*", b"abc", true);
        check(b"abc*", b"ab", false);
        check(b"*abc", b"xabcabc", true);
        check(b"*abc*", b"xxabcx", true);
        check(b"**a**b**", b"ab", true);
        check(b"a*b*c", b"axbxbxc", true);
        check(b"a*b*c", b"axcxb", false);
        check(b"user:*:name", b"user:1:name", true);
    }

    #[test]
    fn classes() {
        check(b"h[ae]llo", b"hello", true);
        check(b"h[ae]llo", b"hillo", false);
        check(b"h[^e]llo", b"hello", false);
        check(b"h[^e]llo", b"hallo", true);
        check(b"h[a-c]llo", b"hbllo", true);
        check(b"h[c-a]llo", b"hbllo", true);
        check(b"[\\]]", b"]", true);
        check(b"[\\^a]", b"^", true);
        check(b"[a^]", b"^", true);
        check(b"*[0-9]", b"abc7", true);
    }

    #[test]
    fn oddities() {
        check(b"[", b"a", false);
        check(b"[^", b"a", true);
        check(b"[abc", b"b", true);
        check(b"[abc", b"[abc", false);
        check(b"[a-", b"-", true);
        check(b"[a-]", b"_", true);
        check(b"[a-]", b"-", false);
        check(b"[]a]", b"a", false);
        check(b"[]", b"]", false);
        check(b"[^]", b"x", true);
        check(b"[a\\", b"\\", true);
        check(b"a\\", b"a\\", true);
        check(b"\\*", b"*", true);
        check(b"\\*", b"x", false);
        check(b"\\", b"\\", true);
        check(b"[\x7f-\x80]", b"a", true);
        check(b"[\xd0-\xd1]", b"\xd0", true);
        check(b"*", b"", false);
        check(b"", b"", true);
        check(b"", b"a", false);
        check(b"[a]", b"", false);
    }

    #[test]
    fn case() {
        assert!(glob_match(b"MaxMem*", b"maxmemory", true));
        assert!(glob_match(b"[A-C]x", b"bX", true));
        assert!(!glob_match(b"[\\A]", b"a", true));
        assert!(!glob_match(b"ab", b"AB", false));
        assert!(Glob::new(b"AB*", true).matches(b"abc"));
    }

    #[test]
    fn what_a_prepared_pattern_knows() {
        assert!(Glob::new(b"*", false).is_all());
        assert!(!Glob::new(b"**", false).is_all());
        assert_eq!(Glob::new(b"a\\*b", false).as_exact(), Some(&b"a*b"[..]));
        assert_eq!(Glob::new(b"a*b", false).as_exact(), None);
        assert_eq!(Glob::new(b"a*b", false).pattern(), b"a*b");
    }

    /// Patterns on which naive backtracking would not end within the age of the universe.
    #[test]
    fn explosive_patterns_are_harmless() {
        let text = vec![b'a'; 20_000];
        let mut pattern = b"a*".repeat(100);
        pattern.push(b'b');
        check(&pattern, &text, false);
        let mut classes = b"*[a]?".repeat(100);
        classes.push(b'b');
        check(&classes, &text, false);
    }

    /// The textbook definition, without any regard to cost.
    fn naive(pattern: &[u8], text: &[u8], nocase: bool) -> bool {
        match (pattern, text) {
            ([], _) => text.is_empty(),
            ([b'*', rest @ ..], _) => {
                (0..=text.len()).any(|from| naive(rest, &text[from..], nocase))
            }
            (_, []) => false,
            (_, [byte, tail @ ..]) => match_one(pattern, 0, *byte, nocase)
                .is_some_and(|next| naive(&pattern[next..], tail, nocase)),
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(pattern in "[ab*?\\[\\]^\\\\A-]{0,9}", text in "[abA\\-\\]]{1,9}", nocase: bool) {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            let expected = naive(pattern, text, nocase);
            prop_assert_eq!(glob_match(pattern, text, nocase), expected);
            prop_assert_eq!(Glob::new(pattern, nocase).matches(text), expected);
        }
    }
}
