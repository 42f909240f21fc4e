//! Inline commands: one line of text, split into words at blanks.
//!
//! A word may contain or be a quoted part. In double quotes, `\n \r \t \b \a` and `\xHH` stand for
//! control bytes and `\` before any other byte for that byte; in single quotes only `\'` is
//! special. A closing quote ends its word, so a blank or the line's end must follow it.

use super::Span;
use crate::error::ProtocolError;

/// Splits `line` (without its end). A word whose bytes stand in the line as they are becomes a
/// span of it, also when quoted; one that had to be unescaped or joined goes to `unescaped`.
pub(super) fn split(
    line: &[u8],
    spans: &mut Vec<Span>,
    unescaped: &mut Vec<(u32, Vec<u8>)>,
) -> Result<(), ProtocolError> {
    let mut at = 0;
    loop {
        at += line[at..].iter().take_while(|b| is_blank(**b)).count();
        if at == line.len() {
            return Ok(());
        }
        let plain = bare_len(&line[at..]);
        let Some(&quote) = line[at + plain..].first().filter(|b| is_quote(**b)) else {
            spans.push((at as u32, plain as u32));
            at += plain;
            continue;
        };
        let open = at + plain + 1;
        let inside = quoted_len(&line[open..], quote).ok_or(ProtocolError::UnbalancedQuotes)?;
        let text = &line[open..open + inside];
        if plain == 0 && !text.contains(&b'\\') {
            spans.push((open as u32, inside as u32));
        } else {
            let mut word = line[at..at + plain].to_vec();
            unescape(text, quote, &mut word);
            unescaped.push((spans.len() as u32, word));
            spans.push((0, 0));
        }
        at = open + inside + 1;
        if line.get(at).is_some_and(|b| !is_blank(*b)) {
            return Err(ProtocolError::UnbalancedQuotes);
        }
    }
}

/// Bytes up to the word's end or its first quote.
fn bare_len(text: &[u8]) -> usize {
    text.iter()
        .take_while(|b| !is_blank(**b) && !is_quote(**b))
        .count()
}

/// Bytes up to the closing quote; `None` if it is missing.
fn quoted_len(text: &[u8], quote: u8) -> Option<usize> {
    let mut at = 0;
    loop {
        match *text.get(at)? {
            b'\\' if quote == b'"' || text.get(at + 1) == Some(&b'\'') => at += 2,
            byte if byte == quote => return Some(at),
            _ => at += 1,
        }
    }
}

fn unescape(mut text: &[u8], quote: u8, word: &mut Vec<u8>) {
    while let Some((&first, rest)) = text.split_first() {
        let (byte, behind) = match (first, rest) {
            (b'\\', [b'\'', behind @ ..]) if quote == b'\'' => (b'\'', behind),
            (b'\\', [escape, behind @ ..]) if quote == b'"' => unescape_one(*escape, behind),
            _ => (first, rest),
        };
        word.push(byte);
        text = behind;
    }
}

/// The byte that `\` and `escape` stand for, and the text behind it.
fn unescape_one(escape: u8, rest: &[u8]) -> (u8, &[u8]) {
    let byte = match (escape, rest) {
        (b'x', [high, low, behind @ ..]) => match (hex(*high), hex(*low)) {
            (Some(high), Some(low)) => return (high << 4 | low, behind),
            _ => b'x',
        },
        (b'n', _) => b'\n',
        (b'r', _) => b'\r',
        (b't', _) => b'\t',
        (b'b', _) => 0x08,
        (b'a', _) => 0x07,
        (other, _) => other,
    };
    (byte, rest)
}

fn hex(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).map(|value| value as u8)
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'')
}

/// Blanks as C's `isspace` counts them.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}
