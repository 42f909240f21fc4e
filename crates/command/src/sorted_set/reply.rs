//! Scores and elements in replies.

use crate::Reply;
use crate::made::{self, Span};
use rufous_datatype::float::format_double;
use rufous_datatype::sorted_set::{SortedSet, View};
use rufous_resp::encode::Proto;
use std::ops::Range;

/// A score: a double, in RESP2 its text.
#[inline]
pub(crate) fn score(reply: &mut Reply<'_>, score: f64) {
    let out = &mut reply.out.bytes;
    if reply.proto == Proto::Resp3 {
        out.push(b',');
        format_double(out, score);
        out.extend_from_slice(b"\r\n");
    } else {
        bulk_score(reply, score);
    }
}

/// The text of a score as a bulk.
#[inline]
pub(crate) fn bulk_score(reply: &mut Reply<'_>, score: f64) {
    // The length goes before the text, and is known after it: scores are so
    // short that their length has one digit or two.
    let out = &mut reply.out.bytes;
    let start = out.len();
    out.extend_from_slice(b"$0\r\n");
    format_double(out, score);
    let len = out.len() - start - 4;
    if len < 10 {
        out[start + 1] = b'0' + len as u8;
    } else {
        out.insert(start + 1, b'0' + (len / 10) as u8);
        out[start + 2] = b'0' + (len % 10) as u8;
    }
    out.extend_from_slice(b"\r\n");
}

/// The head of a list of elements: with scores, RESP3 nests pairs.
pub(crate) fn head(reply: &mut Reply<'_>, count: usize, scores: bool) {
    let flat = scores && reply.proto == Proto::Resp2;
    reply.array(count * (1 + usize::from(flat)));
}

/// An element of such a list.
#[inline]
pub(crate) fn element(reply: &mut Reply<'_>, member: &[u8], of: f64, scores: bool) {
    if scores && reply.proto == Proto::Resp3 {
        reply.array(2);
    }
    reply.bulk(member);
    if scores {
        score(reply, of);
    }
}

/// The elements at these positions as a whole reply.
pub(crate) fn elements(
    reply: &mut Reply<'_>,
    view: View<'_>,
    span: Range<usize>,
    back: bool,
    scores: bool,
) {
    head(reply, span.len(), scores);
    let span = Span { span, back, scores };
    made::write::<SortedSet>(view, span, reply);
}
