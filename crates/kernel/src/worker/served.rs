//! Reports of waits that began or were served, for the workers of their clients.

use super::{Message, Worker};
use crate::batch::Header;
use crate::program::Program;
use crate::wait::{Client, Told};
use rufous_base::{Now, Until};

impl<P: Program> Worker<P> {
    /// Reports waits that began or were served to the workers of their clients.
    pub(super) fn tell_clients(&mut self, now: Now) {
        while let Some((to, told)) = self.waits.told.pop_front() {
            match told {
                Told::Served(batch) => self.answer(now, to, batch),
                Told::Waits(note) if to == self.id => self.on_waits(*note),
                Told::Waits(note) => {
                    let waits = (Until::Passed, Message::Waits(note));
                    self.send_committed(now, to, waits);
                }
            }
        }
    }

    /// Replies to waiters that the current message served and that had waited before it: their
    /// replies leave before those to the requests in the message.
    #[inline]
    pub(super) fn answer_served(&mut self, now: Now) {
        if !self.waits.told.is_empty() {
            self.answer_all_served(now);
        }
    }

    #[cold]
    fn answer_all_served(&mut self, now: Now) {
        let mut begun = Vec::new();
        for (to, told) in std::mem::take(&mut self.waits.told) {
            let client = |header: &Header| Client::new(to, header.conn);
            match told {
                Told::Waits(note) => {
                    begun.push(client(&note.header));
                    self.waits.told.push_back((to, Told::Waits(note)));
                }
                // The client's worker must receive the report of the wait first.
                Told::Served(batch)
                    if batch
                        .requests
                        .iter()
                        .any(|r| begun.contains(&client(&r.header))) =>
                {
                    self.waits.told.push_back((to, Told::Served(batch)));
                }
                Told::Served(batch) => self.answer(now, to, batch),
            }
        }
    }
}
