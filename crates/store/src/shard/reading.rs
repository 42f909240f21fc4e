//! Reading values.

use super::Shard;
use super::types::{Any, Key, Value, WrongType};
use rufous_base::Now;
use rufous_datatype::object::Registered;

impl Shard {
    /// The value, as an access to the key; counted as a hit or a miss.
    #[inline]
    pub fn read(&mut self, db: usize, key: Key<'_>, now: Now) -> Option<Any<'_>> {
        let touch = self.env.touch;
        let value = self.dbs[db].get(key, touch, now, &mut self.env);
        match value {
            Some(_) => self.env.counters.hits += 1,
            None => self.env.counters.misses += 1,
        }
        value
    }

    /// The value, without changing the access stamp.
    #[inline]
    pub fn look(&mut self, db: usize, key: Key<'_>, now: Now) -> Option<Any<'_>> {
        self.dbs[db].get(key, false, now, &mut self.env)
    }

    /// The string at the key; counts as an access.
    #[inline]
    pub fn get(
        &mut self,
        db: usize,
        key: Key<'_>,
        now: Now,
    ) -> Result<Option<Value<'_>>, WrongType> {
        if self.env.session.is_some() {
            self.note_read(db, key, now);
        }
        self.read(db, key, now).map(Any::string).transpose()
    }

    /// The string at the key, without changing the access stamp.
    #[inline]
    pub fn peek(
        &mut self,
        db: usize,
        key: Key<'_>,
        now: Now,
    ) -> Result<Option<Value<'_>>, WrongType> {
        if self.env.session.is_some() {
            self.note_read(db, key, now);
        }
        self.look(db, key, now).map(Any::string).transpose()
    }

    /// The collection at the key; counts as an access.
    #[inline]
    pub fn collection<T: Registered>(
        &mut self,
        db: usize,
        key: Key<'_>,
        now: Now,
    ) -> Result<Option<T::View<'_>>, WrongType> {
        self.read(db, key, now).map(Any::of::<T>).transpose()
    }
}
