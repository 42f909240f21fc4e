//! Errors as clients see them: a prefix in capitals and a sentence.

use rufous_datatype::ValueError;
use rufous_kernel::shard::WrongType;
use std::borrow::Cow;

/// An error reply, without the leading `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(pub Cow<'static, str>);

impl Failure {
    pub const SYNTAX: Failure = Failure(Cow::Borrowed("ERR syntax error"));
    pub const NOT_AN_INTEGER: Failure =
        Failure(Cow::Borrowed("ERR value is not an integer or out of range"));
    pub const NOT_A_FLOAT: Failure = Failure(Cow::Borrowed("ERR value is not a valid float"));
    pub const WRONG_TYPE: Failure = Failure(Cow::Borrowed(
        "WRONGTYPE Operation against a key holding the wrong kind of value",
    ));
    pub const NO_SUCH_KEY: Failure = Failure(Cow::Borrowed("ERR no such key"));
    pub const OUT_OF_RANGE: Failure = Failure(Cow::Borrowed("ERR value is out of range"));
    pub const DB_OUT_OF_RANGE: Failure = Failure(Cow::Borrowed("ERR DB index is out of range"));
    pub const INVALID_CURSOR: Failure = Failure(Cow::Borrowed("ERR invalid cursor"));

    pub fn wrong_arity(name: &str) -> Failure {
        Failure(format!("ERR wrong number of arguments for '{name}' command").into())
    }

    pub fn text(&self) -> &str {
        &self.0
    }
}

impl From<&'static str> for Failure {
    fn from(text: &'static str) -> Self {
        Failure(Cow::Borrowed(text))
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Failure(Cow::Owned(text))
    }
}

impl From<WrongType> for Failure {
    fn from(_: WrongType) -> Self {
        Failure::WRONG_TYPE
    }
}

impl From<ValueError> for Failure {
    fn from(error: ValueError) -> Self {
        Failure(format!("ERR {error}").into())
    }
}
