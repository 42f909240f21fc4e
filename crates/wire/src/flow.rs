//! Frames that wait to be sent, and how many bytes may be in transit: credit, and fair shares of
//! the connection.

use crate::class::{Class, FLOWS};
use crate::refused::Refused;
use std::collections::VecDeque;

/// Limit on the bytes of control messages that wait.
const MAX_CONTROL: usize = 4 * 1024 * 1024;

/// Waiting frames: at most `limit` bytes, but at least those of one message.
#[derive(Debug, Default)]
struct Queue {
    frames: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl Queue {
    fn has_room(&self, len: usize, limit: usize) -> bool {
        self.bytes == 0 || self.bytes + len <= limit
    }

    fn push(&mut self, frame: Vec<u8>, limit: usize) -> bool {
        let fits = self.has_room(frame.len(), limit);
        if fits {
            self.bytes += frame.len();
            self.frames.push_back(frame);
        }
        fits
    }

    fn push_all(&mut self, frames: Vec<Vec<u8>>, limit: usize) -> bool {
        let len: usize = frames.iter().map(Vec::len).sum();
        let fits = self.has_room(len, limit);
        if fits {
            self.bytes += len;
            self.frames.extend(frames);
        }
        fits
    }

    fn pop(&mut self) -> Option<Vec<u8>> {
        let frame = self.frames.pop_front()?;
        self.bytes -= frame.len();
        Some(frame)
    }
}

/// One class in both directions.
#[derive(Debug)]
struct Flow {
    class: Class,
    queue: Queue,
    /// Bytes of the window that are not in transit. Negative if the last frame exceeded it.
    credit: i64,
    /// When its next frame is due, in bytes that a class of full weight could have sent.
    due: u64,
    /// Bytes that were received and not returned as credit, and the part of these that was taken.
    held: usize,
    taken: usize,
}

/// All classes of a session.
#[derive(Debug)]
pub(crate) struct Flows {
    control: Queue,
    flows: [Flow; FLOWS.len()],
    /// When the last sent frame was due: an idle class does not get its unused share back.
    clock: u64,
}

impl Flows {
    pub(crate) fn new() -> Self {
        let flow = |class: Class| Flow {
            class,
            queue: Queue::default(),
            credit: class.window() as i64,
            due: 0,
            held: 0,
            taken: 0,
        };
        Self {
            control: Queue::default(),
            flows: FLOWS.map(flow),
            clock: 0,
        }
    }

    /// Queues a frame, unless too many bytes wait already.
    pub(crate) fn push(&mut self, class: Class, frame: Vec<u8>) -> bool {
        match class.flow() {
            Some(flow) => self.flows[flow].queue.push(frame, class.window()),
            None => self.control.push(frame, MAX_CONTROL),
        }
    }

    /// Queues all frames of a message, or none.
    pub(crate) fn push_all(&mut self, class: Class, frames: Vec<Vec<u8>>) -> bool {
        match class.flow() {
            Some(flow) => self.flows[flow].queue.push_all(frames, class.window()),
            None => self.control.push_all(frames, MAX_CONTROL),
        }
    }

    /// Whether a message of so many bytes, without its frames, may be queued. What is not is not worth encoding: a sender
    /// tries a long message again and again.
    pub(crate) fn may_fit(&self, class: Class, len: usize) -> bool {
        match class.flow() {
            Some(flow) => self.flows[flow].queue.has_room(len, class.window()),
            None => self.control.has_room(len, MAX_CONTROL),
        }
    }

    /// Whether nothing of a class waits: the next frame is queued, whatever its size.
    pub(crate) fn has_room(&self, class: Class) -> bool {
        self.queued(class) == 0
    }

    /// Bytes of a class that wait.
    pub(crate) fn queued(&self, class: Class) -> usize {
        match class.flow() {
            Some(flow) => self.flows[flow].queue.bytes,
            None => self.control.bytes,
        }
    }

    /// Drops all waiting frames: the connection ends.
    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }

    /// The next frame that may be sent.
    pub(crate) fn pop(&mut self) -> Option<Vec<u8>> {
        if let Some(frame) = self.control.pop() {
            return Some(frame);
        }
        let clock = self.clock;
        let flow = self
            .flows
            .iter_mut()
            .filter(|flow| flow.credit > 0 && flow.queue.bytes > 0)
            .min_by_key(|flow| flow.due.max(clock))?;
        let frame = flow.queue.pop()?;
        flow.credit -= frame.len() as i64;
        self.clock = flow.due.max(clock);
        let share = Class::Chain.weight() / flow.class.weight();
        flow.due = self.clock + frame.len() as u64 * share;
        Some(frame)
    }

    /// Whether a frame may be sent.
    pub(crate) fn can_pop(&self) -> bool {
        let goes = |flow: &Flow| flow.credit > 0 && flow.queue.bytes > 0;
        self.control.bytes > 0 || self.flows.iter().any(goes)
    }

    /// The peer has returned this much credit.
    pub(crate) fn grant(&mut self, class: u32, bytes: u64) -> Result<(), Refused> {
        let class = u8::try_from(class).ok().and_then(Class::from_byte);
        let flow = class
            .and_then(Class::flow)
            .ok_or(Refused::Misplaced("credit of a class without a window"))?;
        let flow = &mut self.flows[flow];
        let on_its_way = flow.class.window() as i64 - flow.credit;
        match i64::try_from(bytes) {
            Ok(bytes) if bytes <= on_its_way => flow.credit += bytes,
            _ => return Err(Refused::Misplaced("credit for bytes that were not sent")),
        }
        Ok(())
    }

    /// A frame has been received.
    pub(crate) fn hold(&mut self, class: Class, bytes: usize) -> Result<(), Refused> {
        let Some(flow) = class.flow() else {
            return Ok(());
        };
        let flow = &mut self.flows[flow];
        if flow.held >= class.window() {
            return Err(Refused::Credit);
        }
        flow.held += bytes;
        Ok(())
    }

    /// The owner is done with this number of bytes of frames of this class.
    pub(crate) fn take(&mut self, class: Class, bytes: usize) {
        if let Some(flow) = class.flow() {
            let flow = &mut self.flows[flow];
            flow.taken = flow.held.min(flow.taken + bytes);
        }
    }

    /// Credit that is worth a message: the class and its bytes.
    pub(crate) fn give_back(&mut self) -> Option<(Class, usize)> {
        let flow = self
            .flows
            .iter_mut()
            .find(|flow| flow.taken >= flow.class.window() / 4)?;
        let bytes = std::mem::take(&mut flow.taken);
        flow.held -= bytes;
        Some((flow.class, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: usize = 4096;

    fn filled() -> Flows {
        let mut flows = Flows::new();
        for class in FLOWS {
            while flows.push(class, vec![class as u8; FRAME]) {}
        }
        flows
    }

    fn counts(flows: &mut Flows, frames: usize) -> [usize; 6] {
        let mut counts = [0; 6];
        for _ in 0..frames {
            match flows.pop() {
                Some(frame) => counts[frame[0] as usize] += 1,
                None => break,
            }
        }
        counts
    }

    #[test]
    fn all_get_their_shares_of_a_full_connection() {
        let counts = counts(&mut filled(), 530);
        assert_eq!(counts, [0, 160, 40, 10, 160, 160]);
    }

    #[test]
    fn who_had_nothing_to_send_neither_waits_nor_catches_up() {
        let mut flows = Flows::new();
        for _ in 0..100 {
            assert!(flows.push(Class::Gossip, vec![3; FRAME]));
        }
        counts(&mut flows, 50);
        while flows.push(Class::Chain, vec![1; FRAME]) {}
        // At once, and then according to its share.
        assert_eq!(counts(&mut flows, 1), [0, 1, 0, 0, 0, 0]);
        assert!(counts(&mut flows, 170)[3] >= 10);
    }

    #[test]
    fn a_class_without_credit_holds_nobody_up() {
        let mut flows = filled();
        let gone = counts(&mut flows, usize::MAX);
        let expected = FLOWS.map(|class| class.window() / FRAME);
        assert_eq!(gone[1..], expected);
        for _ in 0..10 {
            assert!(flows.push(Class::Gossip, vec![3; FRAME]));
        }
        assert!(!flows.can_pop());
        assert!(flows.push(Class::Chain, vec![1; FRAME]));
        flows.grant(1, 1).expect("so much is on its way");
        assert_eq!(counts(&mut flows, 9), [0, 1, 0, 0, 0, 0]);
        flows
            .grant(3, FRAME as u64 + 1)
            .expect("so much is on its way");
        assert_eq!(counts(&mut flows, 9), [0, 0, 0, 2, 0, 0]);
    }

    #[test]
    fn credit_is_only_given_for_what_was_sent() {
        let mut flows = filled();
        assert!(flows.grant(1, 1).is_err());
        assert!(flows.grant(0, 0).is_err());
        assert!(flows.grant(6, 0).is_err());
        let frame = flows.pop().expect("a frame");
        assert!(flows.grant(1, u64::MAX).is_err());
        assert!(flows.grant(1, frame.len() as u64).is_ok());
    }

    #[test]
    fn who_sends_more_than_the_window_is_found() {
        let mut flows = Flows::new();
        let window = Class::Gossip.window();
        flows
            .hold(Class::Gossip, window - 1)
            .expect("in the window");
        // The last frame may exceed the window.
        flows.hold(Class::Gossip, FRAME).expect("the last");
        assert_eq!(flows.hold(Class::Gossip, 1), Err(Refused::Credit));
        flows.hold(Class::Chain, 1).expect("another window");
        flows.take(Class::Gossip, window / 4 - 1);
        assert_eq!(flows.give_back(), None);
        flows.take(Class::Gossip, usize::MAX / 2);
        let all = window - 1 + FRAME;
        assert_eq!(flows.give_back(), Some((Class::Gossip, all)));
        flows.hold(Class::Gossip, 1).expect("all was given back");
    }
}
