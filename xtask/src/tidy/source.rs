//! A reading of Rust source by its tokens: which part is code, which is comment, which lines belong to
//! tests, and where functions begin and end.
//!
//! It looks at tokens and not at the grammar, so that a rule can read samples that are no whole file.

use proc_macro2::{Delimiter, Literal, Span, TokenStream, TokenTree};

/// A source file split into what the rules look at. All vectors have one element per line.
#[derive(Default)]
pub(crate) struct Source {
    /// The line with comments removed and the contents of strings and characters blanked.
    pub(crate) code: Vec<String>,
    /// The text of comments on the line, with their markers.
    pub(crate) comments: Vec<String>,
    /// Whether the line belongs to an item that only tests see.
    pub(crate) in_test: Vec<bool>,
    functions: Vec<Function>,
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Line of the `fn`, counted from zero.
    pub(crate) first: usize,
    /// Line of the closing brace.
    pub(crate) last: usize,
}

impl Function {
    /// Lines from `fn` to the closing brace, both included.
    pub(crate) fn lines(&self) -> usize {
        self.last - self.first + 1
    }
}

impl Source {
    /// Reads `text`; `path` tells whether the whole file is a test.
    pub(crate) fn read(path: &str, text: &str) -> Self {
        let mut reader = Reader {
            text,
            at: 0,
            code: String::new(),
            comments: String::new(),
            tests: Vec::new(),
            functions: Vec::new(),
        };
        if let Ok(tokens) = text.parse::<TokenStream>() {
            reader.walk(tokens);
            reader.advance(text.len());
        } else {
            reader.code.push_str(text);
        }
        let lines = text.lines().count().max(1);
        let split = |all: &str| {
            let lines_of = all.split('\n').map(str::to_owned);
            let padded = lines_of.chain(std::iter::repeat(String::new()));
            padded.take(lines).collect()
        };
        let mut in_test = vec![is_test_file(path); lines];
        for (first, last) in reader.tests {
            in_test[first..=last.min(lines - 1)].fill(true);
        }
        Self {
            code: split(&reader.code),
            comments: split(&reader.comments),
            in_test,
            functions: reader.functions,
        }
    }

    /// Line numbers (from zero) and code of the lines that are not tests.
    pub(crate) fn shipped(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code
            .iter()
            .enumerate()
            .filter(|(line, _)| !self.in_test[*line])
            .map(|(line, code)| (line, code.as_str()))
    }

    /// All functions that have a body, in order of their first line.
    pub(crate) fn functions(&self) -> &[Function] {
        &self.functions
    }
}

/// Whether every line of the file at `path` is test code (or a benchmark or example: not shipped).
pub(crate) fn is_test_file(path: &str) -> bool {
    let stem = path
        .rsplit('/')
        .next()
        .unwrap_or(path)
        .trim_end_matches(".rs");
    let directories = ["tests", "benches", "examples"];
    path.split('/').any(|part| directories.contains(&part))
        || stem == "tests"
        || stem.ends_with("_tests")
}

pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Byte offsets at which `word` stands in `text` as a whole word.
pub(crate) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |at| {
            let before = text[..*at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            !before.is_some_and(is_word) && !after.is_some_and(is_word)
        })
}

/// Goes through the tokens of one file in their order.
struct Reader<'a> {
    text: &'a str,
    /// Up to where the text is read.
    at: usize,
    code: String,
    comments: String,
    /// First and last lines of items that only tests see.
    tests: Vec<(usize, usize)>,
    functions: Vec<Function>,
}

impl Reader<'_> {
    fn walk(&mut self, tokens: TokenStream) {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, tree) in trees.iter().enumerate() {
            let first = match tree {
                TokenTree::Group(group) => group.span_open(),
                other => other.span(),
            };
            let text = &self.text[first.byte_range().start..];
            // The tokens that a documentation comment stands for lie where it does.
            if text.starts_with("//") || text.starts_with("/*") {
                continue;
            }
            self.note(&trees[at..]);
            match tree {
                TokenTree::Group(group) => {
                    self.copy(group.span_open());
                    self.walk(group.stream());
                    self.copy(group.span_close());
                }
                TokenTree::Literal(literal) => self.blank(literal),
                other => self.copy(other.span()),
            }
        }
    }

    /// Notes the function or the item for tests that begins with the first of `trees`.
    fn note(&mut self, trees: &[TokenTree]) {
        match trees {
            [TokenTree::Ident(word), TokenTree::Ident(name), rest @ ..] if word == "fn" => {
                if let Some(TokenTree::Group(body)) = end_of_item(rest) {
                    self.functions.push(Function {
                        name: name.to_string(),
                        first: line(word.span()),
                        last: line(body.span_close()),
                    });
                }
            }
            [
                TokenTree::Punct(hash),
                TokenTree::Punct(inner),
                TokenTree::Group(attribute),
                ..,
            ] if hash.as_char() == '#'
                && inner.as_char() == '!'
                && for_tests(attribute.stream()) =>
            {
                self.tests.push((0, usize::MAX));
            }
            [
                TokenTree::Punct(hash),
                TokenTree::Group(attribute),
                rest @ ..,
            ] if hash.as_char() == '#' && for_tests(attribute.stream()) => {
                if let Some(end) = end_of_item(rest) {
                    let last = end.span().end().line - 1;
                    self.tests.push((line(hash.span()), last));
                }
            }
            _ => {}
        }
    }

    /// Reads what is between tokens: white space is code, the rest are comments.
    fn advance(&mut self, to: usize) {
        let gap = &self.text[self.at.min(to)..to];
        for (number, piece) in gap.split('\n').enumerate() {
            if number > 0 {
                self.code.push('\n');
                self.comments.push('\n');
            }
            let comment = piece.trim();
            self.comments.push_str(comment);
            self.code.push_str(&piece.replacen(comment, "", 1));
        }
        self.at = to;
    }

    fn copy(&mut self, span: Span) {
        let range = span.byte_range();
        self.advance(range.start);
        self.code.push_str(&self.text[range.clone()]);
        self.at = range.end;
    }

    /// Writes a literal without the contents of strings and characters.
    fn blank(&mut self, literal: &Literal) {
        let range = literal.span().byte_range();
        let text = &self.text[range.clone()];
        let Some(quote) = text.find(['"', '\'']) else {
            return self.copy(literal.span());
        };
        self.advance(range.start);
        self.code.push_str(&text[..=quote]);
        for _ in text.matches('\n') {
            self.code.push('\n');
            self.comments.push('\n');
        }
        self.code.push_str(&text[quote..=quote]);
        self.at = range.end;
    }
}

/// The line, from zero, on which a token begins.
fn line(span: Span) -> usize {
    span.start().line - 1
}

/// The body of an item, or the semicolon of one that has none.
fn end_of_item(trees: &[TokenTree]) -> Option<&TokenTree> {
    trees.iter().find(|tree| match tree {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => punct.as_char() == ';',
        _ => false,
    })
}

/// Whether an attribute is `test` or `cfg(test)`.
fn for_tests(attribute: TokenStream) -> bool {
    let text: String = attribute.to_string().split_whitespace().collect();
    let begins = |start: &str| text.starts_with(start);
    text == "test" || text == "cfg(test)" || begins("cfg(all(test") || begins("cfg(any(test")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_comments_leave_the_code() {
        let text = "let a = \"unsafe {\"; // dbg!\nlet b = r#\"x \" y\"#; /* { /* nested */ */ let c = '{';\nfn f<'a>(x: &'a str) {}";
        let source = Source::read("src/a.rs", text);
        assert_eq!(source.code[0].trim_end(), "let a = \"\";");
        assert_eq!(source.comments[0], "// dbg!");
        assert_eq!(source.code[1], "let b = r#\"\";  let c = '';");
        assert_eq!(source.code[2], "fn f<'a>(x: &'a str) {}");
    }

    #[test]
    fn multi_line_strings_keep_the_line_count() {
        let source = Source::read(
            "src/a.rs",
            "let a = \"one\n  fn two() {\n\";\nlet q = '\\'';\nlet n = '\\u{41}';",
        );
        assert_eq!(source.code.len(), 5);
        assert_eq!(source.code[1], "");
        assert_eq!(source.code[3], "let q = '';");
        assert_eq!(source.code[4], "let n = '';");
    }

    #[test]
    fn test_items_are_marked_and_nothing_after_them() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() {}\n}\n#[cfg(test)]\nmod more;\nfn c() {}";
        let source = Source::read("src/a.rs", text);
        assert_eq!(
            source.in_test,
            [false, true, true, true, true, true, true, false]
        );
        assert!(Source::read("tests/a.rs", "fn a() {}").in_test[0]);
        assert!(Source::read("src/ring/tests.rs", "fn a() {}").in_test[0]);
    }

    #[test]
    fn functions_have_their_lines() {
        let text = "trait T {\n  fn none(&self) -> [u8; 4];\n}\nfn long(\n  a: u8,\n) -> u8 {\n  if a > 1 { 2 } else { 3 }\n}\ntype F = fn(u8) -> u8;";
        let source = Source::read("src/a.rs", text);
        let functions = source.functions();
        assert_eq!(
            functions,
            [Function {
                name: "long".to_owned(),
                first: 3,
                last: 7
            }]
        );
        assert_eq!(functions[0].lines(), 5);
    }
}
