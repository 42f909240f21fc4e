//! Replies as values, and values as what the application works with.

use crate::error::{Error, Result, ServerError};
use rufous_resp::Reply;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;

/// A reply of either protocol. Attributes are left out.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing is there.
    Nil,
    /// A status such as `OK`.
    Status(String),
    Int(i64),
    Bytes(Vec<u8>),
    Double(f64),
    Bool(bool),
    /// Decimal digits of a number that may pass 64 bits.
    BigNumber(String),
    Array(Vec<Value>),
    Map(Vec<(Value, Value)>),
    Set(Vec<Value>),
    /// An error among the elements of a reply, as `EXEC` has them. A reply that is an error
    /// itself is an [`Error::Server`].
    Error(ServerError),
}

impl Value {
    pub(crate) fn new(reply: Reply) -> Self {
        let values = |items: Vec<Reply>| items.into_iter().map(Self::new).collect();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        match reply {
            Reply::Simple(line) => Self::Status(text(line)),
            Reply::Error(line) => Self::Error(ServerError::new(&line)),
            Reply::Integer(number) => Self::Int(number),
            Reply::Bulk(bytes) | Reply::Verbatim { text: bytes, .. } => Self::Bytes(bytes),
            Reply::Null | Reply::NullArray => Self::Nil,
            Reply::Array(items) | Reply::Push(items) => Self::Array(values(items)),
            Reply::Set(items) => Self::Set(values(items)),
            Reply::Map(pairs) => Self::Map(
                pairs
                    .into_iter()
                    .map(|(key, value)| (Self::new(key), Self::new(value)))
                    .collect(),
            ),
            Reply::Double(number) => Self::Double(number),
            Reply::Boolean(flag) => Self::Bool(flag),
            Reply::BigNumber(digits) => Self::BigNumber(text(digits)),
            Reply::Attributed { reply, .. } => Self::new(*reply),
        }
    }

    /// The error, where the value is one.
    pub(crate) fn check(self) -> Result<Self> {
        match self {
            Self::Error(error) => Err(error.into()),
            value => Ok(value),
        }
    }

    /// Converts; see [`FromValue`].
    pub fn to<T: FromValue>(self) -> Result<T> {
        T::from_value(self)
    }

    /// Text of what is bytes or a status.
    pub(crate) fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Status(text) | Self::BigNumber(text) => Some(text.as_bytes()),
            _ => None,
        }
    }

    /// What the value is, for messages: its type, and of short ones what they hold.
    fn describe(&self) -> String {
        match self {
            Self::Nil => "nil".into(),
            Self::Status(text) => format!("the status {text:.40}"),
            Self::Int(number) => format!("the integer {number}"),
            Self::Bytes(bytes) if bytes.len() <= 40 => format!("'{}'", bytes.escape_ascii()),
            Self::Bytes(bytes) => format!("a string of {} bytes", bytes.len()),
            Self::Double(number) => format!("the double {number}"),
            Self::Bool(flag) => format!("the boolean {flag}"),
            Self::BigNumber(_) => "a big number".into(),
            Self::Array(items) => format!("an array of {}", items.len()),
            Self::Map(pairs) => format!("a map of {}", pairs.len()),
            Self::Set(items) => format!("a set of {}", items.len()),
            Self::Error(error) => format!("the error {error:.80}"),
        }
    }

    fn unfit<T>(self, wanted: &'static str) -> Result<T> {
        match self {
            Self::Error(error) => Err(error.into()),
            other => Err(Error::Convert {
                wanted,
                got: other.describe(),
            }),
        }
    }
}

/// What a reply can be taken for. Nothing is lost silently: a number that does not fit, bytes that
/// are no UTF-8 and a nil where something is wanted are errors; `Option` is for what may be nil.
pub trait FromValue: Sized {
    fn from_value(value: Value) -> Result<Self>;

    /// A list of these; bytes and pairs have forms of their own.
    #[doc(hidden)]
    fn vec_from_value(value: Value) -> Result<Vec<Self>> {
        match value {
            Value::Array(items) | Value::Set(items) => {
                items.into_iter().map(Self::from_value).collect()
            }
            other => other.unfit("an array"),
        }
    }
}

impl FromValue for Value {
    fn from_value(value: Value) -> Result<Self> {
        Ok(value)
    }
}

/// Any reply, unless an error.
impl FromValue for () {
    fn from_value(value: Value) -> Result<Self> {
        value.check().map(drop)
    }
}

impl FromValue for i64 {
    fn from_value(value: Value) -> Result<Self> {
        let number = match &value {
            Value::Int(number) => Some(*number),
            other => other.as_bytes().and_then(rufous_resp::parse_integer),
        };
        number.map_or_else(|| value.unfit("an integer"), Ok)
    }
}

macro_rules! integers {
    ($($type:ty, $wanted:literal;)*) => {$(
        impl FromValue for $type {
            fn from_value(value: Value) -> Result<Self> {
                let number = i64::from_value(value)?;
                number.try_into().or_else(|_| Value::Int(number).unfit($wanted))
            }
        }
    )*};
}
integers! {
    i32, "an integer of 32 bits"; u32, "an integer of 32 bits from 0";
    u64, "an integer from 0"; usize, "an integer from 0";
}

/// A byte alone is a number from 0 to 255; several are bytes.
impl FromValue for u8 {
    fn from_value(value: Value) -> Result<Self> {
        let number = i64::from_value(value)?;
        number
            .try_into()
            .or_else(|_| Value::Int(number).unfit("an integer from 0 to 255"))
    }

    fn vec_from_value(value: Value) -> Result<Vec<Self>> {
        match value {
            Value::Bytes(bytes) => Ok(bytes),
            Value::Status(text) | Value::BigNumber(text) => Ok(text.into_bytes()),
            Value::Int(number) => Ok(number.to_string().into_bytes()),
            other => other.unfit("a string"),
        }
    }
}

impl FromValue for String {
    fn from_value(value: Value) -> Result<Self> {
        String::from_utf8(u8::vec_from_value(value)?).map_err(|error| Error::Convert {
            wanted: "UTF-8 text",
            got: format!("{} other bytes", error.as_bytes().len()),
        })
    }
}

impl FromValue for f64 {
    fn from_value(value: Value) -> Result<Self> {
        let number = match &value {
            Value::Double(number) => Some(*number),
            Value::Int(number) => Some(*number as f64),
            other => other
                .as_bytes()
                .and_then(|text| std::str::from_utf8(text).ok()?.parse().ok()),
        };
        number.map_or_else(|| value.unfit("a number"), Ok)
    }
}

/// 1 and 0 as many commands reply them, and `OK`.
impl FromValue for bool {
    fn from_value(value: Value) -> Result<Self> {
        match value {
            Value::Bool(flag) => Ok(flag),
            Value::Int(number @ 0..=1) => Ok(number == 1),
            Value::Status(text) if text == "OK" => Ok(true),
            other => other.unfit("a boolean, 0 or 1"),
        }
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value) -> Result<Self> {
        match value {
            Value::Nil => Ok(None),
            other => T::from_value(other).map(Some),
        }
    }
}

impl<T: FromValue> FromValue for Vec<T> {
    fn from_value(value: Value) -> Result<Self> {
        T::vec_from_value(value)
    }
}

/// An array of two. A list of pairs may be a map, an array of pairs, or flat as in RESP2.
impl<A: FromValue, B: FromValue> FromValue for (A, B) {
    fn from_value(value: Value) -> Result<Self> {
        match value {
            Value::Array(items) if items.len() == 2 => {
                let mut items = items.into_iter();
                let mut next = || items.next().unwrap_or(Value::Nil);
                Ok((A::from_value(next())?, B::from_value(next())?))
            }
            other => other.unfit("an array of two"),
        }
    }

    fn vec_from_value(value: Value) -> Result<Vec<Self>> {
        let pair = |(a, b)| Ok((A::from_value(a)?, B::from_value(b)?));
        let is_pair = |value: &Value| matches!(value, Value::Array(items) if items.len() == 2);
        match value {
            Value::Map(pairs) => pairs.into_iter().map(pair).collect(),
            Value::Array(items) if items.iter().all(is_pair) => {
                items.into_iter().map(Self::from_value).collect()
            }
            Value::Array(items) if items.len().is_multiple_of(2) => {
                let mut items = items.into_iter();
                let mut pairs = Vec::with_capacity(items.len() / 2);
                while let (Some(a), Some(b)) = (items.next(), items.next()) {
                    pairs.push(pair((a, b))?);
                }
                Ok(pairs)
            }
            other => other.unfit("a map or pairs"),
        }
    }
}

impl<K: FromValue + Eq + Hash, V: FromValue> FromValue for HashMap<K, V> {
    fn from_value(value: Value) -> Result<Self> {
        Ok(<(K, V)>::vec_from_value(value)?.into_iter().collect())
    }
}

impl<K: FromValue + Ord, V: FromValue> FromValue for BTreeMap<K, V> {
    fn from_value(value: Value) -> Result<Self> {
        Ok(<(K, V)>::vec_from_value(value)?.into_iter().collect())
    }
}

impl<T: FromValue + Eq + Hash> FromValue for HashSet<T> {
    fn from_value(value: Value) -> Result<Self> {
        Ok(T::vec_from_value(value)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Value {
        Value::Bytes(text.into())
    }

    #[test]
    fn replies_of_both_protocols_convert_alike() {
        let resp2 = Value::Array(vec![bytes("a"), bytes("1"), bytes("b"), bytes("2")]);
        let resp3 = Value::Map(vec![(bytes("a"), bytes("1")), (bytes("b"), bytes("2"))]);
        for value in [resp2, resp3] {
            let map: HashMap<String, i64> = value.to().unwrap();
            assert_eq!(map, HashMap::from([("a".into(), 1), ("b".into(), 2)]));
        }
        assert_eq!(bytes("1.5").to::<f64>(), Ok(1.5));
        assert_eq!(Value::Double(1.5).to::<f64>(), Ok(1.5));
        assert_eq!(Value::Nil.to::<Option<Vec<u8>>>(), Ok(None));
        assert_eq!(bytes("x").to::<Vec<u8>>(), Ok(b"x".to_vec()));
        let nested = Value::Array(vec![bytes("x"), Value::Nil]);
        assert_eq!(
            nested.to::<Vec<Option<String>>>(),
            Ok(vec![Some("x".into()), None])
        );
    }

    #[test]
    fn what_does_not_fit_is_an_error_that_says_what_came() {
        let check = |result: Result<()>, text: &str| {
            assert_eq!(result.unwrap_err().to_string(), text);
        };
        check(
            bytes("pear").to::<i64>().map(drop),
            "expected an integer, the reply is 'pear'",
        );
        check(
            Value::Int(-1).to::<u64>().map(drop),
            "expected an integer from 0, the reply is the integer -1",
        );
        check(
            Value::Nil.to::<String>().map(drop),
            "expected a string, the reply is nil",
        );
        check(
            Value::Bytes(vec![0xFF]).to::<String>().map(drop),
            "expected UTF-8 text, the reply is 1 other bytes",
        );
        let inner = Value::Array(vec![Value::Error(ServerError::new(b"WRONGTYPE no"))]);
        check(inner.to::<Vec<i64>>().map(drop), "WRONGTYPE no");
    }
}
