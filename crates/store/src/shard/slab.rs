//! Keys and values too large for a record, by number.

use super::table::Table;

/// A numbered store of `T` that reuses numbers.
#[derive(Debug)]
pub(super) struct Slab<T> {
    items: Table<Option<T>>,
    free: Vec<u32>,
    len: usize,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            items: Table::default(),
            free: Vec::new(),
            len: 0,
        }
    }
}

impl<T> Slab<T> {
    pub(super) fn insert(&mut self, item: T) -> u32 {
        self.len += 1;
        if let Some(number) = self.free.pop() {
            *self.place(number) = Some(item);
            return number;
        }
        self.items.push(Some(item)) as u32
    }

    /// Numbers come from records of the same database, so they are valid.
    pub(super) fn get(&self, number: u32) -> &T {
        self.items[number as usize]
            .as_ref()
            // invariant: a number lives as long as the record that has it
            .expect("a record's number is in use")
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut T {
        self.place(number)
            .as_mut()
            // invariant: a number lives as long as the record that has it
            .expect("a record's number is in use")
    }

    pub(super) fn remove(&mut self, number: u32) -> T {
        let item = self
            .place(number)
            .take()
            // invariant: a number lives as long as the record that has it
            .expect("a record's number is in use");
        self.len -= 1;
        if self.len == 0 {
            *self = Self::default();
        } else {
            self.free.push(number);
        }
        item
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter().flatten()
    }

    pub(super) fn numbered(&self) -> impl Iterator<Item = (u32, &T)> {
        let all = (0..).zip(self.items.iter());
        all.filter_map(|(number, item)| Some((number, item.as_ref()?)))
    }

    /// Bytes of the slab itself, without memory that its items own.
    pub(super) fn bytes(&self) -> usize {
        self.items.bytes() + self.free.capacity() * 4
    }

    fn place(&mut self, number: u32) -> &mut Option<T> {
        &mut self.items[number as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again() {
        let mut slab = Slab::default();
        let numbers: Vec<_> = (0..1500).map(|i| slab.insert(i)).collect();
        assert!(numbers.iter().enumerate().all(|(i, &n)| *slab.get(n) == i));
        assert_eq!(slab.remove(numbers[700]), 700);
        assert_eq!(slab.len(), 1499);
        assert_eq!(slab.insert(9), numbers[700]);
        *slab.get_mut(numbers[700]) += 1;
        assert_eq!(slab.iter().filter(|&&i| i == 10).count(), 2);
        for n in numbers {
            slab.remove(n);
        }
        assert_eq!(slab.bytes(), 0);
    }
}
