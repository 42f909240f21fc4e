//! From a command's syntax, as people write it, to the tree of arguments that
//! clients draw it from.
//!
//! Capitals are literal words. Inside brackets a literal word owns the words
//! that follow it (`[LIMIT offset count]`), outside of them just the next one.
//! `key [key ...]` is one argument that may come several times.

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    String,
    Integer,
    Double,
    Key,
    Pattern,
    UnixTime,
    PureToken,
    /// One of several.
    OneOf,
    /// All of several, in order.
    Block,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::String => "string",
            Kind::Integer => "integer",
            Kind::Double => "double",
            Kind::Key => "key",
            Kind::Pattern => "pattern",
            Kind::UnixTime => "unix-time",
            Kind::PureToken => "pure-token",
            Kind::OneOf => "oneof",
            Kind::Block => "block",
        }
    }

    /// The kind that the name of a placeholder speaks of.
    fn of(name: &str) -> Kind {
        const INTEGERS: [&str; 24] = [
            "seconds",
            "milliseconds",
            "microseconds",
            "count",
            "offset",
            "start",
            "end",
            "stop",
            "index",
            "index1",
            "index2",
            "db",
            "destination-db",
            "increment",
            "decrement",
            "bit",
            "cursor",
            "numkeys",
            "timeout",
            "client-id",
            "protover",
            "min-match-len",
            "len",
            "samples",
        ];
        match name {
            "key" | "key1" | "key2" | "newkey" | "destkey" | "source" | "destination" => Kind::Key,
            "pattern" => Kind::Pattern,
            _ if name.starts_with("unix-time") => Kind::UnixTime,
            _ if INTEGERS.contains(&name) => Kind::Integer,
            _ => Kind::String,
        }
    }
}

/// An argument of a command, or a group of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    pub name: String,
    pub kind: Kind,
    /// The literal word before it, or that it is.
    pub token: Option<String>,
    pub optional: bool,
    pub multiple: bool,
    /// Of a block or a choice.
    pub arguments: Vec<Argument>,
}

impl Argument {
    fn leaf(name: &str) -> Argument {
        Argument {
            name: name.into(),
            kind: Kind::of(name),
            token: None,
            optional: false,
            multiple: false,
            arguments: Vec::new(),
        }
    }

    fn group(kind: Kind, name: &str, arguments: Vec<Argument>) -> Argument {
        Argument {
            kind,
            arguments,
            ..Argument::leaf(name)
        }
    }

    /// Several arguments as one.
    fn block(mut arguments: Vec<Argument>) -> Option<Argument> {
        if arguments.len() > 1 {
            let name = arguments[0].name.clone();
            return Some(Argument::group(Kind::Block, &name, arguments));
        }
        arguments.pop()
    }

    /// Whether `other` stands for the same thing, here or again.
    fn is_again(&self, other: &Argument) -> bool {
        self.name == other.name && self.kind == other.kind && self.arguments == other.arguments
    }
}

/// A syntax as it is bracketed.
#[derive(Debug)]
enum Node<'a> {
    Word(&'a str),
    Group {
        optional: bool,
        choices: Vec<Vec<Node<'a>>>,
    },
    /// `...`
    Again,
}

/// The arguments that `syntax` describes.
pub fn parse(syntax: &str) -> Vec<Argument> {
    let mut tokens = tokens(syntax).into_iter();
    let mut choices = nodes(&mut tokens);
    match choices.len() {
        1 => arguments(&choices.remove(0), false),
        _ => choice(&choices).into_iter().collect(),
    }
}

fn tokens(syntax: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for mut word in syntax.split_whitespace() {
        while let Some(at) = word.find(['[', ']', '<', '>', '|']) {
            if at > 0 {
                found.push(&word[..at]);
            }
            found.push(&word[at..=at]);
            word = &word[at + 1..];
        }
        if !word.is_empty() {
            found.push(word);
        }
    }
    found
}

/// Reads up to the bracket that closes, or the end.
fn nodes<'a>(tokens: &mut std::vec::IntoIter<&'a str>) -> Vec<Vec<Node<'a>>> {
    let mut choices = vec![Vec::new()];
    while let Some(token) = tokens.next() {
        let node = match token {
            "]" | ">" => break,
            "|" => {
                choices.push(Vec::new());
                continue;
            }
            "[" | "<" => Node::Group {
                optional: token == "[",
                choices: nodes(tokens),
            },
            "..." => Node::Again,
            word => Node::Word(word),
        };
        if let Some(last) = choices.last_mut() {
            last.push(node);
        }
    }
    choices
}

fn is_literal(word: &str) -> bool {
    !word.bytes().any(|b| b.is_ascii_lowercase())
}

fn arguments(nodes: &[Node<'_>], in_brackets: bool) -> Vec<Argument> {
    let mut found: Vec<Argument> = Vec::new();
    let mut at = 0;
    while at < nodes.len() {
        match &nodes[at] {
            Node::Again => {}
            Node::Word(word) if is_literal(word) => {
                let most = if in_brackets { usize::MAX } else { 1 };
                let owned = nodes[at + 1..]
                    .iter()
                    .take(most)
                    .take_while(|node| match node {
                        Node::Word(word) => !is_literal(word),
                        Node::Group { optional, .. } => !optional,
                        Node::Again => false,
                    });
                let owned = owned.count();
                found.push(with_token(word, &nodes[at + 1..at + 1 + owned]));
                at += owned;
            }
            Node::Word(word) => found.push(Argument::leaf(word)),
            Node::Group { optional, choices } => add_group(&mut found, *optional, choices),
        }
        at += 1;
    }
    found
}

fn with_token(word: &str, owned: &[Node<'_>]) -> Argument {
    let mut argument = match Argument::block(arguments(owned, true)) {
        Some(argument) => argument,
        None => Argument {
            kind: Kind::PureToken,
            ..Argument::leaf(&word.to_lowercase())
        },
    };
    argument.token = Some(word.into());
    argument
}

fn add_group(found: &mut Vec<Argument>, optional: bool, choices: &[Vec<Node<'_>>]) {
    let repeats = choices
        .last()
        .is_some_and(|last| matches!(last.last(), Some(Node::Again)));
    let group = match choices {
        [one] => Argument::block(arguments(one, true)),
        _ => choice(choices),
    };
    let Some(mut group) = group else { return };
    if repeats {
        let parts = if group.kind == Kind::Block {
            &group.arguments[..]
        } else {
            std::slice::from_ref(&group)
        };
        let before = found.len().wrapping_sub(parts.len());
        let same = found
            .get(before..)
            .is_some_and(|last| last.iter().zip(parts).all(|(a, b)| a.is_again(b)));
        if same {
            if let Some(mut all) = Argument::block(found.drain(before..).collect()) {
                all.multiple = true;
                found.push(all);
            }
            return;
        }
        group.multiple = true;
    }
    group.optional |= optional;
    found.push(group);
}

fn choice(choices: &[Vec<Node<'_>>]) -> Option<Argument> {
    let all: Vec<_> = choices
        .iter()
        .filter_map(|one| Argument::block(arguments(one, true)))
        .collect();
    match all.len() {
        0 => None,
        _ => Some(Argument::group(Kind::OneOf, "option", all)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws the tree again, with every group and mark shown.
    fn draw(arguments: &[Argument]) -> String {
        let one = |a: &Argument| {
            let mut text = match (&a.token, a.kind) {
                (Some(token), Kind::PureToken) => token.clone(),
                (Some(token), _) => format!("{token}={}", inner(a)),
                (None, _) => inner(a),
            };
            text.push_str(if a.multiple { "+" } else { "" });
            text.push_str(if a.optional { "?" } else { "" });
            text
        };
        arguments.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    fn inner(a: &Argument) -> String {
        match a.kind {
            Kind::Block => format!("({})", draw(&a.arguments)),
            Kind::OneOf => format!("{{{}}}", draw(&a.arguments)),
            kind => format!("{}:{}", a.name, kind.name()),
        }
    }

    #[track_caller]
    fn check(syntax: &str, drawn: &str) {
        assert_eq!(draw(&parse(syntax)), drawn, "{syntax}");
    }

    #[test]
    fn plain_and_repeated_arguments() {
        check("", "");
        check("key", "key:key");
        check("key [key ...]", "key:key+");
        check("key value [key value ...]", "(key:key value:string)+");
        check(
            "operation destkey key [key ...]",
            "operation:string destkey:key key:key+",
        );
        check("[section [section ...]]", "section:string+?");
        check("[message]", "message:string?");
    }

    #[test]
    fn literal_words() {
        check(
            "key value [NX | XX] [GET] [EX seconds | EXAT unix-time-seconds | KEEPTTL]",
            "key:key value:string {NX XX}? GET? {EX=seconds:integer EXAT=unix-time-seconds:unix-time KEEPTTL}?",
        );
        check(
            "cursor [MATCH pattern] [COUNT count]",
            "cursor:integer MATCH=pattern:pattern? COUNT=count:integer?",
        );
        check(
            "key [LIMIT offset count]",
            "key:key LIMIT=(offset:integer count:integer)?",
        );
        check("[ID client-id [client-id ...]]", "ID=client-id:integer+?");
        check("[TYPE <NORMAL | PUBSUB>]", "TYPE={NORMAL PUBSUB}?");
        check("<ON | OFF>", "{ON OFF}");
        check("A | B b", "{A B=b:string}");
        check("key FOO a b", "key:key FOO=a:string b:string");
    }

    #[test]
    fn nothing_breaks_it() {
        for bad in [
            "[",
            "]",
            "[[[",
            "<a",
            "...",
            "[...]",
            "| |",
            "a [b ...",
            "<>",
            "[a ...] [a ...]",
        ] {
            parse(bad);
        }
    }
}
