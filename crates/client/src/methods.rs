//! What people use most, as methods. Everything else is [`crate::cmd`].

use crate::client::Client;
use crate::command::{ToArg, cmd};
use crate::error::Result;
use crate::pipeline::Pipeline;
use crate::value::FromValue;
use rufous_base::slot::slot_of;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

impl Client {
    pub async fn get<T: FromValue>(&self, key: impl ToArg) -> Result<T> {
        cmd("GET").arg(key).query(self).await
    }

    pub async fn set(&self, key: impl ToArg, value: impl ToArg) -> Result<()> {
        cmd("SET").arg(key).arg(value).query(self).await
    }

    pub async fn set_for(&self, key: impl ToArg, value: impl ToArg, ttl: Duration) -> Result<()> {
        let ttl = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let set = cmd("SET").arg(key).arg(value);
        set.arg("PX").arg(ttl).query(self).await
    }

    /// Whether there was such a key.
    pub async fn del(&self, key: impl ToArg) -> Result<bool> {
        cmd("DEL").arg(key).query(self).await
    }

    pub async fn exists(&self, key: impl ToArg) -> Result<bool> {
        cmd("EXISTS").arg(key).query(self).await
    }

    /// Whether there is such a key.
    pub async fn expire(&self, key: impl ToArg, ttl: Duration) -> Result<bool> {
        let ttl = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        cmd("PEXPIRE").arg(key).arg(ttl).query(self).await
    }

    /// The number after the addition.
    pub async fn incr_by(&self, key: impl ToArg, by: i64) -> Result<i64> {
        cmd("INCRBY").arg(key).arg(by).query(self).await
    }

    pub async fn hget<T: FromValue>(&self, key: impl ToArg, field: impl ToArg) -> Result<T> {
        cmd("HGET").arg(key).arg(field).query(self).await
    }

    /// Whether the field is new.
    pub async fn hset(
        &self,
        key: impl ToArg,
        field: impl ToArg,
        value: impl ToArg,
    ) -> Result<bool> {
        cmd("HSET").arg(key).arg(field).arg(value).query(self).await
    }

    pub async fn hgetall<V: FromValue>(&self, key: impl ToArg) -> Result<HashMap<String, V>> {
        cmd("HGETALL").arg(key).query(self).await
    }

    /// Whether the member is new.
    pub async fn sadd(&self, key: impl ToArg, member: impl ToArg) -> Result<bool> {
        cmd("SADD").arg(key).arg(member).query(self).await
    }

    pub async fn smembers<T: FromValue>(&self, key: impl ToArg) -> Result<Vec<T>> {
        cmd("SMEMBERS").arg(key).query(self).await
    }

    /// One `MGET` per slot, values in the order of the keys. Not of one instant: another's write may
    /// fall between two of its parts, which is why it is not done unless it is called by this name.
    pub async fn mget_split<T: FromValue, K: ToArg>(&self, keys: &[K]) -> Result<Vec<Option<T>>> {
        let parts = by_slot(keys.iter().map(ToArg::to_arg));
        let mut pipeline = Pipeline::new();
        for part in &parts {
            let keys = part.iter().map(|(_, key)| key);
            pipeline = pipeline.push(cmd("MGET").args(keys));
        }
        let replies: Vec<Vec<Option<T>>> = pipeline.query(self).await?;
        let places = parts.iter().flatten().map(|(at, _)| *at);
        let mut values: Vec<_> = places.zip(replies.into_iter().flatten()).collect();
        values.sort_unstable_by_key(|(at, _)| *at);
        Ok(values.into_iter().map(|(_, value)| value).collect())
    }

    /// One `MSET` per slot. On an error some parts may be done, and others see them one by one.
    pub async fn mset_split<K: ToArg, V: ToArg>(&self, pairs: &[(K, V)]) -> Result<()> {
        let parts = by_slot(pairs.iter().map(|(key, _)| key.to_arg()));
        let mut pipeline = Pipeline::new();
        for part in parts {
            let mut set = cmd("MSET");
            for (at, key) in part {
                set = set.arg(key).arg(&pairs[at].1);
            }
            pipeline = pipeline.push(set);
        }
        pipeline.query::<()>(self).await.map(drop)
    }

    /// One `DEL` per slot; how many keys there were. On an error some parts may be done.
    pub async fn del_split<K: ToArg>(&self, keys: &[K]) -> Result<u64> {
        let mut pipeline = Pipeline::new();
        for part in by_slot(keys.iter().map(ToArg::to_arg)) {
            pipeline = pipeline.push(cmd("DEL").args(part.into_iter().map(|(_, key)| key)));
        }
        let counts: Vec<u64> = pipeline.query(self).await?;
        Ok(counts.into_iter().fold(0, u64::saturating_add))
    }
}

/// The keys of each slot, with their places among all.
fn by_slot(keys: impl Iterator<Item = Vec<u8>>) -> Vec<Vec<(usize, Vec<u8>)>> {
    let mut parts: BTreeMap<u16, Vec<(usize, Vec<u8>)>> = BTreeMap::new();
    for (at, key) in keys.enumerate() {
        parts.entry(slot_of(&key)).or_default().push((at, key));
    }
    parts.into_values().collect()
}
