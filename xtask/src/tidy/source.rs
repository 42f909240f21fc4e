//! A light reading of Rust source, line by line: which part is code, which is comment, which lines
//! belong to tests, and where functions begin and end.
//!
//! It knows strings, raw strings, characters, lifetimes and nested comments, and counts braces. It
//! does not know the grammar: that is enough for the rules here and keeps the compile time of this
//! package small, which is why no parser library is used.

/// A source file split into what the rules look at. All vectors have one element per line.
pub(crate) struct Source {
    /// The line with comments removed and the contents of strings and characters blanked.
    pub(crate) code: Vec<String>,
    /// The text of comments on the line, with their markers.
    pub(crate) comments: Vec<String>,
    /// Whether the line belongs to an item that only tests see.
    pub(crate) in_test: Vec<bool>,
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
        let (code, comments) = split(text);
        let mut in_test = vec![is_test_file(path); code.len()];
        for (first, last) in test_items(&code) {
            in_test[first..=last].fill(true);
        }
        Self {
            code,
            comments,
            in_test,
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
    pub(crate) fn functions(&self) -> Vec<Function> {
        let joined = Joined::new(&self.code);
        let mut found = Vec::new();
        for start in words(&joined.text, "fn") {
            let name: String = joined.text[start + 2..]
                .trim_start()
                .chars()
                .take_while(|c| is_word(*c))
                .collect();
            if name.is_empty() {
                continue; // a function pointer type
            }
            if let Some(end) = joined.end_of_item(start, false) {
                found.push(Function {
                    name,
                    first: joined.line(start),
                    last: joined.line(end),
                });
            }
        }
        found
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

/// The code as one string, with the way back to line numbers.
struct Joined {
    text: String,
    starts: Vec<usize>,
}

impl Joined {
    fn new(code: &[String]) -> Self {
        let mut text = String::new();
        let mut starts = Vec::with_capacity(code.len());
        for line in code {
            starts.push(text.len());
            text.push_str(line);
            text.push('\n');
        }
        Self { text, starts }
    }

    fn line(&self, offset: usize) -> usize {
        self.starts
            .partition_point(|start| *start <= offset)
            .saturating_sub(1)
    }

    /// The offset of the brace that closes the item starting at `start`. An item that ends with a
    /// semicolon has no body: its semicolon when `bodiless` items count, else nothing.
    fn end_of_item(&self, start: usize, bodiless: bool) -> Option<usize> {
        let mut round = 0_i32;
        let mut curly = 0_i32;
        for (at, byte) in self.text.bytes().enumerate().skip(start) {
            match byte {
                b'(' | b'[' => round += 1,
                b')' | b']' => round -= 1,
                b'{' => curly += 1,
                b'}' => {
                    curly -= 1;
                    if curly == 0 && round == 0 {
                        return Some(at);
                    }
                }
                b';' if curly == 0 && round == 0 => return bodiless.then_some(at),
                _ => {}
            }
        }
        None
    }
}

/// First and last lines of items behind an attribute such as `#[cfg(test)]` or `#[test]`.
fn test_items(code: &[String]) -> Vec<(usize, usize)> {
    let joined = Joined::new(code);
    let mut found = Vec::new();
    for attribute in [
        "#[cfg(test)]",
        "#[cfg(all(test",
        "#[cfg(any(test",
        "#[test]",
        "#![cfg(test)]",
    ] {
        for (at, _) in joined.text.match_indices(attribute) {
            if attribute.starts_with("#!") {
                found.push((0, code.len() - 1));
            } else if let Some(end) = joined.end_of_item(at, true) {
                found.push((joined.line(at), joined.line(end)));
            }
        }
    }
    found
}

/// What the splitter is inside of.
enum Inside {
    Code,
    LineComment,
    BlockComment(u32),
    String,
    RawString(usize),
}

/// Splits `text` into code and comments, line by line.
fn split(text: &str) -> (Vec<String>, Vec<String>) {
    let (mut code, mut comments) = (Vec::new(), Vec::new());
    let mut inside = Inside::Code;
    for line in text.lines() {
        let (line_code, line_comment) = split_line(line, &mut inside);
        code.push(line_code);
        comments.push(line_comment);
        if matches!(inside, Inside::LineComment) {
            inside = Inside::Code;
        }
    }
    if code.is_empty() {
        code.push(String::new());
        comments.push(String::new());
    }
    (code, comments)
}

fn split_line(line: &str, inside: &mut Inside) -> (String, String) {
    let chars: Vec<char> = line.chars().collect();
    let (mut code, mut comment) = (String::new(), String::new());
    let mut at = 0;
    while at < chars.len() {
        let pair = (chars[at], chars.get(at + 1).copied());
        let mut taken = 1;
        match inside {
            Inside::Code => taken = step_code(&chars, at, inside, &mut code, &mut comment),
            Inside::LineComment => comment.push(pair.0),
            Inside::BlockComment(depth) => {
                comment.push(pair.0);
                if pair == ('*', Some('/')) || pair == ('/', Some('*')) {
                    comment.extend(pair.1);
                    taken = 2;
                    *depth = if pair.0 == '*' {
                        *depth - 1
                    } else {
                        *depth + 1
                    };
                    if *depth == 0 {
                        *inside = Inside::Code;
                    }
                }
            }
            Inside::String => match pair.0 {
                '\\' => taken = 2,
                '"' => {
                    code.push('"');
                    *inside = Inside::Code;
                }
                _ => {}
            },
            Inside::RawString(hashes) => {
                let closing = chars[at + 1..]
                    .iter()
                    .take(*hashes)
                    .filter(|c| **c == '#')
                    .count();
                if pair.0 == '"' && closing == *hashes {
                    code.push('"');
                    taken = 1 + closing;
                    *inside = Inside::Code;
                }
            }
        }
        at += taken;
    }
    (code, comment)
}

/// Handles one position in code and answers how many characters it took.
fn step_code(
    chars: &[char],
    at: usize,
    inside: &mut Inside,
    code: &mut String,
    comment: &mut String,
) -> usize {
    let here = chars[at];
    let next = chars.get(at + 1).copied();
    match (here, next) {
        ('/', Some('/')) => {
            *inside = Inside::LineComment;
            comment.push_str("//");
            return 2;
        }
        ('/', Some('*')) => {
            *inside = Inside::BlockComment(1);
            comment.push_str("/*");
            return 2;
        }
        ('"', _) => {
            code.push('"');
            let before: Vec<char> = code
                .chars()
                .rev()
                .skip(1)
                .take_while(|c| *c == '#' || *c == 'r')
                .collect();
            let hashes = before.iter().take_while(|c| **c == '#').count();
            *inside = if before.get(hashes) == Some(&'r') {
                Inside::RawString(hashes)
            } else {
                Inside::String
            };
            return 1;
        }
        ('\'', Some('\\')) => {
            // An escaped character: skip to its closing quote.
            let length = chars
                .iter()
                .skip(at + 3)
                .position(|c| *c == '\'')
                .unwrap_or(0);
            code.push_str("''");
            return length + 4;
        }
        ('\'', Some(_)) if chars.get(at + 2) == Some(&'\'') => {
            code.push_str("''");
            return 3;
        }
        _ => {}
    }
    code.push(here);
    1
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
        let functions = Source::read("src/a.rs", text).functions();
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
