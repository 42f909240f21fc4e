//! Typed replies, written as RESP2 or RESP3 into the worker's output.

use crate::Failure;
use rufous_base::Output;
use rufous_kernel::shard::Value;
use rufous_resp::encode::{self, Proto};
use std::sync::Arc;

/// Where a command writes its reply.
pub struct Reply<'a> {
    pub out: &'a mut Output,
    pub proto: Proto,
}

impl<'a> Reply<'a> {
    pub fn new(out: &'a mut Output, resp3: bool) -> Self {
        Self {
            out,
            proto: if resp3 { Proto::Resp3 } else { Proto::Resp2 },
        }
    }

    #[inline]
    pub fn ok(&mut self) {
        encode::ok(&mut self.out.bytes);
    }

    pub fn simple(&mut self, text: &str) {
        encode::simple(&mut self.out.bytes, text);
    }

    pub fn error(&mut self, failure: &Failure) {
        self.out.begin_error();
        encode::error(&mut self.out.bytes, failure.text());
    }

    #[inline]
    pub fn integer(&mut self, value: i64) {
        encode::integer(&mut self.out.bytes, value);
    }

    /// A length or count.
    #[inline]
    pub fn count(&mut self, value: usize) {
        encode::integer(&mut self.out.bytes, value as i64);
    }

    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        encode::bulk(&mut self.out.bytes, bytes);
    }

    /// A stored value; a large one is sent by reference.
    #[inline]
    pub fn value(&mut self, value: Value<'_>) {
        match value {
            Value::Small(bytes) => self.bulk(bytes),
            Value::Big(shared) => self.shared(shared),
        }
    }

    /// A large value, by reference.
    pub fn shared(&mut self, value: &Arc<Vec<u8>>) {
        encode::bulk_header(&mut self.out.bytes, value.len());
        self.out.share(Arc::clone(value));
        encode::bulk_end(&mut self.out.bytes);
    }

    #[inline]
    pub fn null(&mut self) {
        encode::null(&mut self.out.bytes, self.proto);
    }

    /// An absent array: `*-1` in RESP2.
    pub fn null_array(&mut self) {
        encode::null_array(&mut self.out.bytes, self.proto);
    }

    pub fn array(&mut self, len: usize) {
        encode::array(&mut self.out.bytes, len);
    }

    pub fn map(&mut self, pairs: usize) {
        encode::map(&mut self.out.bytes, self.proto, pairs);
    }

    pub fn set(&mut self, len: usize) {
        encode::set(&mut self.out.bytes, self.proto, len);
    }

    pub fn double(&mut self, value: f64) {
        encode::double(&mut self.out.bytes, self.proto, value);
    }

    /// Text with a format of three letters (`txt`, `mkd`).
    pub fn verbatim(&mut self, format: [u8; 3], text: &str) {
        encode::verbatim(&mut self.out.bytes, self.proto, format, text.as_bytes());
    }
}
