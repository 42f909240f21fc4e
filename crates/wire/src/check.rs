//! Validation of messages.

use crate::message::*;
use crate::proof::{MAC, NONCE};
use rufous_base::limits::{DATABASES, MAX_WORKERS, SLOTS};

impl Envelope {
    /// Its encoded size, without that of the frame around it.
    pub fn size(&self) -> usize {
        prost::Message::encoded_len(self)
    }

    /// Whether the message is valid: numbers in their ranges, sizes in their limits, consecutive
    /// ranges of slots. Both sides check, the sender before it sends. An error says what is wrong.
    pub fn check(&self) -> Result<(), &'static str> {
        let workers = MAX_WORKERS as u32;
        ensure(
            self.from < workers && self.to < workers,
            "there is no such worker",
        )?;
        match self.body.as_ref().ok_or("a message of an unknown kind")? {
            Body::Hello(hello) => hello.check(),
            Body::Refuse(refuse) => name(&refuse.text),
            Body::Challenge(challenge) => is_of(&challenge.nonce, NONCE),
            Body::Proof(proof) => is_of(&proof.mac, MAC),
            Body::Sealed(sealed) => is_of(&sealed.mac, MAC),
            Body::Mapping(mapping) => mapping.check().map_err(|invalid| invalid.0),
            Body::Items(Items { slot, items, .. }) | Body::State(State { slot, items, .. }) => {
                is_slot(*slot)?;
                ensure(items.len() <= MAX_ITEMS, "too many writes at once")?;
                let rise = items.windows(2).all(|pair| pair[0].seq < pair[1].seq);
                ensure(rise, "writes of a slot that are not in order")
            }
            Body::Ack(Ack { slot, .. })
            | Body::Behind(Behind { slot, .. })
            | Body::Learn(Learn { slot, .. })
            | Body::Copied(Copied { slot, .. }) => is_slot(*slot),
            Body::Piece(piece) => ensure(!piece.bytes.is_empty(), "a piece of nothing"),
            Body::Copy(copy) => is_slot(copy.slot),
            Body::Gossip(gossip) => ensure(gossip.batch.len() <= MAX_CHUNK, "too large a batch"),
            Body::Digest(digest) => {
                is_slot(digest.first)?;
                let room = SLOTS - digest.first as usize;
                ensure(digest.hashes.len() <= room, "hashes of too many slots")
            }
            Body::Requests(requests) => requests.check(),
            Body::Replies(replies) => replies.check(),
            Body::Letter(letter) => letter.check(),
            Body::Alike(alike) => alike.check(),
            Body::EndWaits(ends) => ends.check(),
            Body::Learned(learned) => learned.check(),
            Body::Clock(clock) => ensure(clock.unix_us <= MAX_UNIX_US, "a time that cannot be"),
            Body::Credit(_)
            | Body::Heartbeat(_)
            | Body::Ask(_)
            | Body::Grant(_)
            | Body::AskClock(_) => Ok(()),
        }
    }
}

impl Hello {
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        name(&self.cluster)?;
        name(&self.program)?;
        ensure(self.node.len() == ID, "a node's id of the wrong length")?;
        ensure(
            self.nonce.is_empty() || self.nonce.len() == NONCE,
            "a challenge of the wrong length",
        )?;
        ensure(
            0 < self.oldest && self.oldest <= self.newest && self.newest <= u32::from(u16::MAX),
            "versions that cannot be",
        )
    }
}

impl Letter {
    fn check(&self) -> Result<(), &'static str> {
        let slots = [
            (self.from_slot, self.from_since),
            (self.to_slot, self.to_since),
        ];
        slots.into_iter().try_for_each(|(slot, since)| {
            ensure(slot as usize <= SLOTS, "there is no such slot")?;
            ensure(slot > 0 || since == 0, "an epoch without a slot")
        })?;
        ensure(
            self.from_slot > 0 || self.to_slot > 0,
            "a message without a slot",
        )?;
        ensure(!self.message.is_empty(), "a message of nothing")
    }
}

impl Alike {
    fn check(&self) -> Result<(), &'static str> {
        let count = self.writes.len();
        ensure((1..=MAX_ALIKE).contains(&count), "no writes, or too many")?;
        ensure(self.is_bounded(), "too many bytes of writes at once")?;
        let mut writes = self.writes.iter();
        writes.try_for_each(|write| is_slot(write.slot))
    }
}

impl Learned {
    fn check(&self) -> Result<(), &'static str> {
        let mut end = 0;
        for slots in &self.held {
            ensure(
                end <= slots.first && slots.first < slots.until && slots.until as usize <= SLOTS,
                "ranges of copies that are not in order",
            )?;
            end = slots.until;
        }
        self.all.iter().try_for_each(|slots| {
            ensure(
                slots.first < slots.until && slots.until as usize <= SLOTS,
                "a range of slots that cannot be",
            )?;
            ensure(
                slots.learner <= u32::from(u16::MAX),
                "a number that no node has",
            )
        })
    }
}

impl Requests {
    fn check(&self) -> Result<(), &'static str> {
        let count = self.requests.len();
        ensure(
            (1..=MAX_REQUESTS).contains(&count),
            "no requests, or too many",
        )?;
        let last = self.first.checked_add(count as u64);
        ensure(last.is_some(), "requests without numbers")?;
        self.requests.iter().try_for_each(|request| {
            let is_db = (request.db as usize) < DATABASES;
            ensure(is_db, "no such database")?;
            ensure(!request.words.is_empty(), "a request without words")
        })
    }
}

impl Replies {
    fn check(&self) -> Result<(), &'static str> {
        let count = self.replies.len();
        ensure(
            (1..=MAX_REQUESTS).contains(&count),
            "no replies, or too many",
        )?;
        let same = |pair: &[Reply]| !pair[0].more || pair[0].number == pair[1].number;
        let in_order = self.replies.windows(2).all(same);
        ensure(in_order, "a reply within another one")?;
        let is_bare = |reply: &Reply| !reply.not_here || reply.bytes.is_empty() && !reply.more;
        let bare = self.replies.iter().all(is_bare);
        ensure(bare, "a reply to what was not done")?;
        let is_early = |reply: &Reply| {
            !reply.waits || reply.bytes.is_empty() && !reply.more && !reply.not_here
        };
        let early = self.replies.iter().all(is_early);
        ensure(early, "a reply to what still waits")
    }
}

impl EndWaits {
    fn check(&self) -> Result<(), &'static str> {
        let count = self.ends.len();
        ensure((1..=MAX_REQUESTS).contains(&count), "no ends, or too many")?;
        let known = |end: &EndWait| How::from_number(end.how).is_some();
        ensure(self.ends.iter().all(known), "an end of an unknown kind")
    }
}

fn is_slot(slot: u32) -> Result<(), &'static str> {
    ensure((slot as usize) < SLOTS, "there is no such slot")
}

fn is_of(bytes: &[u8], len: usize) -> Result<(), &'static str> {
    ensure(
        bytes.len() == len,
        "a challenge or a code of the wrong length",
    )
}

fn name(text: &str) -> Result<(), &'static str> {
    ensure(text.len() <= MAX_NAME, "too long a name")
}

fn ensure(holds: bool, what: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(what) }
}
