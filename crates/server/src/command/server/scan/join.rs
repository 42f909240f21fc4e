//! The parts of the workers as one reply.

use super::cursor::Cursor;
use super::part::{Part, Parts};
use rufous_command::Reply;

/// A step of the walk over a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) workers: u32,
    pub(super) cursor: Cursor,
    pub(super) count: usize,
    /// Whether lattice keys follow the strict ones.
    pub(super) then_lattice: bool,
}

/// Elements of the reply, and where the walk goes on; [`Cursor::default`] where it ended.
#[derive(Debug, Default)]
pub(super) struct Joined<'p> {
    matched: usize,
    elements: Vec<&'p [u8]>,
    next: Cursor,
}

impl Joined<'_> {
    pub(super) fn write(&self, reply: &mut Reply<'_>) {
        reply.array(2);
        reply.bulk(self.next.number().to_string().as_bytes());
        reply.array(self.matched);
        for elements in &self.elements {
            reply.out.bytes.extend_from_slice(elements);
        }
    }
}

impl Step {
    /// Of the parts of the workers from the cursor's on, as many as it takes for the wanted number of keys. `parts` are
    /// those of all workers, or of the cursor's alone.
    pub(super) fn join(self, parts: &[Parts]) -> Joined<'_> {
        let mut joined = Joined::default();
        if self.cursor.is_lattice() {
            joined.take_lattice(parts);
            return joined;
        }
        let (mut visited, mut next) = (0, self.cursor);
        let own = match parts {
            [alone] => std::slice::from_ref(alone),
            all => all.get(self.cursor.worker as usize..).unwrap_or_default(),
        };
        for (part, worker) in own.iter().map(|of| &of.strict).zip(self.cursor.worker..) {
            visited += part.visited;
            joined.matched += part.matched;
            joined.elements.push(&part.encoded);
            next = match part.next {
                Some(at) => Cursor { worker, at },
                None => Cursor::of_worker(worker + 1),
            };
            if part.next.is_some() || visited >= self.count {
                break;
            }
        }
        match (next.worker < self.workers, self.then_lattice) {
            (true, _) => joined.next = next,
            (false, true) if self.cursor.at == 0 && visited < self.count => {
                joined.take_lattice(parts);
            }
            (false, true) => joined.next = Cursor::of_lattice(0),
            (false, false) => {}
        }
        joined
    }
}

impl<'p> Joined<'p> {
    /// Keys of all workers up to the hash to which each of them has come. The place is one of all workers, so that a
    /// client may go on at any: replicas that serve its connections there have the same keys behind it.
    fn take_lattice(&mut self, parts: &'p [Parts]) {
        let parts = || parts.iter().map(|of| &of.lattice);
        let end = parts().filter_map(|part| part.next).min();
        for part in parts() {
            self.take_up_to(end, part);
        }
        self.next = end.map_or(Cursor::default(), Cursor::of_lattice);
    }

    fn take_up_to(&mut self, end: Option<u32>, part: &'p Part) {
        let mut from = 0;
        for &(hash, to) in &part.places {
            if end.is_none_or(|end| hash < end) {
                self.matched += 1;
                self.elements.push(&part.encoded[from..to]);
            }
            from = to;
        }
    }
}
