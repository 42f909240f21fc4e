//! A map from slots, for what is looked up with every message: found by one access to an array.

use crate::limits::SLOTS;
use std::ops::Range;

/// Values by slot, in the order of slots. Slots come and go rarely: each time the values behind them move.
#[derive(Clone, Debug)]
pub struct SlotTable<T> {
    /// One more than the place of a slot's value; zero: there is none. Empty as long as the table is.
    places: Vec<u16>,
    values: Vec<(u16, Box<T>)>,
}

impl<T> Default for SlotTable<T> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            values: Vec::new(),
        }
    }
}

impl<T> SlotTable<T> {
    #[inline]
    fn place(&self, slot: u16) -> Option<usize> {
        let place = self.places.get(usize::from(slot)).copied()?;
        usize::from(place).checked_sub(1)
    }

    #[inline]
    pub fn get(&self, slot: u16) -> Option<&T> {
        let (_, value) = self.values.get(self.place(slot)?)?;
        Some(value)
    }

    #[inline]
    pub fn get_mut(&mut self, slot: u16) -> Option<&mut T> {
        let place = self.place(slot)?;
        let (_, value) = self.values.get_mut(place)?;
        Some(value)
    }

    /// The value of a slot below [`SLOTS`], made if there is none.
    pub fn get_or_insert_with(&mut self, slot: u16, make: impl FnOnce() -> T) -> &mut T {
        if self.places.is_empty() {
            self.places = vec![0; SLOTS];
        }
        let place = match self.place(slot) {
            Some(place) => place,
            None => {
                let place = self.first_from(slot);
                self.values.insert(place, (slot, Box::new(make())));
                self.number_from(place);
                place
            }
        };
        &mut self.values[place].1
    }

    pub fn remove(&mut self, slot: u16) -> Option<T> {
        let place = self.place(slot)?;
        let (_, value) = self.values.remove(place);
        self.places[usize::from(slot)] = 0;
        self.number_from(place);
        Some(*value)
    }

    fn first_from(&self, slot: u16) -> usize {
        self.values.partition_point(|(known, _)| *known < slot)
    }

    fn number_from(&mut self, first: usize) {
        for (place, (slot, _)) in self.values.iter().enumerate().skip(first) {
            self.places[usize::from(*slot)] = place as u16 + 1;
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (u16, &T)> {
        self.values.iter().map(|(slot, value)| (*slot, &**value))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u16, &mut T)> {
        let all = self.values.iter_mut();
        all.map(|(slot, value)| (*slot, &mut **value))
    }

    /// Those of these slots.
    pub fn range(&self, slots: Range<u16>) -> impl Iterator<Item = (u16, &T)> {
        let from = self.first_from(slots.start);
        let to = self.first_from(slots.end).max(from);
        let all = self.values[from..to].iter();
        all.map(|(slot, value)| (*slot, &**value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use std::collections::BTreeMap;

    fn same(table: &mut SlotTable<u32>, model: &mut BTreeMap<u16, u32>) {
        let all = |(slot, value): (&u16, &u32)| (*slot, *value);
        let of_model: Vec<(u16, u32)> = model.iter().map(all).collect();
        let listed: Vec<(u16, u32)> = table.iter().map(|(slot, value)| (slot, *value)).collect();
        assert_eq!(listed, of_model);
        for slot in (0..SLOTS as u16).step_by(97).chain(model.keys().copied()) {
            assert_eq!(table.get(slot), model.get(&slot));
            assert_eq!(table.get_mut(slot), model.clone().get_mut(&slot));
        }
        let range = 500..9_000;
        let some: Vec<(u16, u32)> = model.range(range.clone()).map(all).collect();
        let listed = table.range(range).map(|(slot, value)| (slot, *value));
        assert_eq!(listed.collect::<Vec<_>>(), some);
    }

    #[test]
    fn it_does_what_an_ordered_map_does() {
        let (mut table, mut model) = (SlotTable::default(), BTreeMap::new());
        let mut rng = Rng::new(5);
        same(&mut table, &mut model);
        for value in 0..2_000 {
            let slot = rng.below(SLOTS as u64) as u16;
            if rng.below(3) == 0 {
                let near = model.range(slot..).next().map(|(slot, _)| *slot);
                let slot = near.unwrap_or(slot);
                assert_eq!(table.remove(slot), model.remove(&slot));
            } else {
                let here = *table.get_or_insert_with(slot, || value);
                assert_eq!(here, *model.entry(slot).or_insert(value));
            }
            if value % 100 == 0 {
                same(&mut table, &mut model);
            }
        }
        for (slot, value) in table.iter_mut() {
            *value += u32::from(slot);
        }
        model
            .iter_mut()
            .for_each(|(slot, value)| *value += u32::from(*slot));
        same(&mut table, &mut model);
    }
}
