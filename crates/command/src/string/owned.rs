//! Values taken out of the shard, for commands that look at several at once.

use rufous_kernel::shard::{OwnedValue, Value};
use std::sync::Arc;

/// Copies a small value and shares a large one; a missing one is empty.
pub(crate) fn owned(value: Option<Value<'_>>) -> OwnedValue {
    match value {
        Some(Value::Small(bytes)) => OwnedValue::Small(bytes.into()),
        Some(Value::Big(shared)) => OwnedValue::Big(Arc::clone(shared)),
        None => OwnedValue::Small(Box::default()),
    }
}

/// The bytes of what [`owned`] gave.
pub(crate) fn bytes(value: &OwnedValue) -> &[u8] {
    match value {
        OwnedValue::Small(bytes) => bytes,
        OwnedValue::Big(shared) => shared,
        OwnedValue::Object(_) => b"",
    }
}
