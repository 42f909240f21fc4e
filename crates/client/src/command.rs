//! Commands as applications write them.

use crate::client::Client;
use crate::error::Result;
use crate::shape::{self, Shape};
use crate::value::{FromValue, Value};
use rufous_resp::encode;
use std::time::Duration;

/// What an argument can be.
pub trait ToArg {
    fn to_arg(&self) -> Vec<u8>;
}

impl<T: ToArg + ?Sized> ToArg for &T {
    fn to_arg(&self) -> Vec<u8> {
        (**self).to_arg()
    }
}

macro_rules! bytes_args {
    ($($type:ty),*) => {$(
        impl ToArg for $type {
            fn to_arg(&self) -> Vec<u8> {
                <$type as AsRef<[u8]>>::as_ref(self).to_vec()
            }
        }
    )*};
}
bytes_args!(str, String, [u8], Vec<u8>);

impl<const N: usize> ToArg for [u8; N] {
    fn to_arg(&self) -> Vec<u8> {
        self.to_vec()
    }
}

macro_rules! number_args {
    ($($type:ty),*) => {$(
        impl ToArg for $type {
            fn to_arg(&self) -> Vec<u8> {
                self.to_string().into_bytes()
            }
        }
    )*};
}
number_args!(i32, i64, u32, u64, usize, f64);

/// A command with its arguments; [`cmd`] begins one.
///
/// ```
/// let set = rufous_client::cmd("SET").arg("cart:7").arg("apple").arg("EX").arg(60);
/// assert_eq!(set.args_len(), 5);
/// ```
#[derive(Clone, Debug)]
pub struct Cmd {
    args: Vec<Vec<u8>>,
    key: Option<Vec<u8>>,
    idempotent: bool,
    timeout: Option<Duration>,
}

/// Begins a command. A name of two words may be written as one text: `cmd("CONFIG GET")`.
pub fn cmd(name: &str) -> Cmd {
    Cmd {
        args: name
            .split_whitespace()
            .map(|w| w.as_bytes().to_vec())
            .collect(),
        key: None,
        idempotent: false,
        timeout: None,
    }
}

impl Cmd {
    pub fn arg(mut self, arg: impl ToArg) -> Self {
        self.args.push(arg.to_arg());
        self
    }

    pub fn args<A: ToArg>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.to_arg()));
        self
    }

    /// Names the key that decides which node of a cluster gets the command, for commands whose key
    /// the client would not find by itself: those it does not know, with the key not in front.
    pub fn for_key(mut self, key: impl ToArg) -> Self {
        self.key = Some(key.to_arg());
        self
    }

    /// Says that doing the command twice does no harm: it is sent again where it may have been done
    /// already, which makes it at-least-once instead of at-most-once. Commands that only read need
    /// not say so. Note that a `SET` that is repeated late overwrites what others wrote meanwhile.
    pub fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// A time-out of its own, with everything that the client tries meanwhile.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Words of the command, its name included.
    pub fn args_len(&self) -> usize {
        self.args.len()
    }

    /// Sends the command and converts its reply.
    pub async fn query<T: FromValue>(self, client: &Client) -> Result<T> {
        client.run(self).await?.to()
    }

    /// Sends the command. An error reply is an error.
    pub async fn run(self, client: &Client) -> Result<Value> {
        client.run(self).await
    }

    /// Whether it is the command of this name, given in upper case.
    pub(crate) fn is(&self, name: &str) -> bool {
        let first = self.args.first();
        first.is_some_and(|first| first.eq_ignore_ascii_case(name.as_bytes()))
    }

    pub(crate) fn own_timeout(&self) -> Option<Duration> {
        self.timeout
    }

    pub(crate) fn shape(&self) -> Shape<'_> {
        let mut shape = shape::of(&self.args);
        shape.key = self.key.as_deref().or(shape.key);
        shape.repeatable |= self.idempotent;
        shape
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        encode::request(out, &self.args);
    }

    pub(crate) fn encoded(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }
}
