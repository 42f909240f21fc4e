//! Commits of one worker, driven by hand: frames, replies of the disk, and the messages that wait.

use super::super::out::{Call, LogStart, Out};
use super::super::store::Store;
use super::{Commit, FRAME_BYTES, FrameEnd, Quiet, Settings};
use crate::durable::note::Trouble;
use crate::durable::{Event, Note};
use crate::placement::Placement;
use crate::shard::{ExpirySetting, NewValue, Shard};
use crate::worker::{CutOf, Message};
use rufous_base::disk::{DiskDone, DiskError, DiskErrorKind, DiskOp, DiskReply};
use rufous_base::{Now, Until, WorkerId};

const OWN: WorkerId = WorkerId(0);
const OTHER: WorkerId = WorkerId(1);

struct Rig {
    commit: Commit,
    shard: Shard,
    placement: Placement,
    out: Out,
    now: Now,
    /// Reports that there is no log any more.
    ended: usize,
    /// Messages sent, in order.
    sent: Vec<(WorkerId, Message)>,
}

impl Rig {
    fn new() -> Self {
        Self {
            commit: Commit::new(OWN, 7),
            shard: Shard::new(7),
            placement: Placement::new(2).seen_by(OWN),
            out: Out::default(),
            now: Now::default(),
            ended: 0,
            sent: Vec::new(),
        }
    }

    fn logging() -> Self {
        let mut rig = Self::new();
        rig.begin_log();
        rig
    }

    fn begin_log(&mut self) {
        let settings = Settings {
            log: true,
            ..Settings::default()
        };
        self.commit.on_begin(settings);
        self.start(1);
    }

    /// Logging is switched off.
    fn end_log(&mut self) {
        self.with(|commit, store, out| commit.on_end(store, out));
        self.progress();
    }

    fn cut(&mut self, generation: u64, cut: CutOf) {
        self.with(|commit, store, _| commit.on_cut((generation, cut), store));
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut Commit, &mut Store<'_>, &mut Out) -> R) -> R {
        let mut store = Store {
            id: OWN,
            shard: &mut self.shard,
            placement: &self.placement,
        };
        act(&mut self.commit, &mut store, &mut self.out)
    }

    fn start(&mut self, generation: u64) {
        self.with(|commit, store, _| commit.on_start(LogStart::of(generation), store));
    }

    fn write(&mut self) {
        let key = self.shard.key(b"key");
        let (value, clear) = (NewValue::Copy(b"value"), ExpirySetting::Clear);
        self.shard.set(0, key, value, clear, self.now);
    }

    /// Ends a frame in which this is the last write of chains.
    fn end_frame(&mut self, written: Option<u64>) {
        let end = FrameEnd {
            tells: self.shard.observers().journal_tells(),
            written,
            settled: 0,
        };
        self.commit.on_frame(end, &mut self.shard);
    }

    fn end_turn(&mut self) -> Option<u64> {
        let gate = self.commit.on_turn(self.now, &mut self.out);
        self.carry_out();
        gate
    }

    /// Answers all requests to the disk: writes with this error.
    fn answer_disk(&mut self, error: Option<DiskErrorKind>) {
        for _ in 0..20 {
            for request in std::mem::take(&mut self.out.disk) {
                let result = match (request.op, error) {
                    (DiskOp::Write { bytes, .. }, Some(kind)) => Err(DiskError {
                        kind,
                        text: "no space".into(),
                        bytes,
                    }),
                    _ => Ok(DiskReply::Done),
                };
                let (now, id) = (self.now, request.id);
                let done = DiskDone { id, result };
                self.commit.on_disk(now, done, &mut self.out);
                self.progress();
            }
        }
    }

    fn progress(&mut self) {
        self.with(|commit, store, out| commit.on_progress(store, out));
        self.carry_out();
    }

    fn carry_out(&mut self) {
        while let Some(call) = self.out.next_call() {
            match call {
                Call::Send(to, message) => self.sent.push((to, message)),
                Call::Tell(OWN, Note::Trouble(trouble)) => self.commit.on_trouble(OWN, trouble),
                Call::Tell(OWN, Note::LogEnded) => self.ended += 1,
                Call::Tell(..) => {}
                call => panic!("{call:?}"),
            }
        }
    }

    /// Sends a message as soon as it may be.
    fn send(&mut self, to: WorkerId, until: Until, message: Message) {
        let free = self.commit.on_message(to, (until, message), &self.shard);
        self.sent.extend(free.map(|message| (to, message)));
    }

    /// The messages sent since the last call.
    fn sent(&mut self) -> Vec<(WorkerId, Sent)> {
        let of = |message| match message {
            Message::Committed { multi } => Sent::Committed(multi),
            Message::Doubtful { multi } => Sent::Doubtful(multi),
            Message::Replies(_) => Sent::Replies,
            Message::Lost(_) => Sent::Lost,
            other => panic!("{other:?}"),
        };
        let sent = self.sent.drain(..);
        sent.map(|(to, message)| (to, of(message))).collect()
    }

    fn uncommitted(&mut self) -> usize {
        let events = std::mem::take(&mut self.out.events);
        self.commit.on_events_taken();
        let is = |event: &&Event| matches!(event, Event::Uncommitted(_));
        events.iter().filter(is).count()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    Committed(u64),
    Doubtful(u64),
    Replies,
    Lost,
}

fn committed(multi: u64) -> Message {
    Message::Committed { multi }
}

fn replies() -> Message {
    Message::Replies(Box::default())
}

#[test]
fn a_message_waits_until_its_frame_is_committed() {
    let mut rig = Rig::logging();
    rig.send(OTHER, Until::Passed, replies());
    assert_eq!(rig.sent(), [(OTHER, Sent::Replies)], "nothing to commit");
    rig.write();
    rig.send(OTHER, Until::Passed, replies());
    rig.send(OWN, Until::Passed, committed(5));
    rig.end_frame(None);
    let gate = rig.end_turn();
    assert_eq!(gate, Some(1), "replies of own connections wait, too");
    rig.progress();
    assert_eq!(rig.sent(), []);
    rig.answer_disk(None);
    let both = [(OTHER, Sent::Replies), (OWN, Sent::Committed(5))];
    assert_eq!(rig.sent(), both);
    assert_eq!((rig.commit.committed(), rig.end_turn()), (1, None));
}

#[test]
fn messages_on_lattice_keys_do_not_wait_for_chains() {
    let mut rig = Rig::new();
    rig.commit.on_join();
    rig.begin_log();
    rig.write();
    rig.send(OTHER, Until::Passed, committed(1));
    rig.send(OTHER, Until::Logged, committed(2));
    rig.end_frame(Some(9));
    rig.end_turn();
    rig.answer_disk(None);
    assert_eq!(rig.sent(), [(OTHER, Sent::Committed(2))]);
    assert_eq!((rig.commit.logged(), rig.commit.committed()), (1, 0));
    rig.commit.on_settled(8);
    rig.progress();
    assert_eq!(rig.sent(), [], "an earlier write is committed");
    rig.commit.on_settled(9);
    assert!(rig.commit.has_passed());
    rig.progress();
    assert_eq!(rig.sent(), [(OTHER, Sent::Committed(1))]);
}

#[test]
fn without_a_log_a_frame_without_a_chain_is_committed_when_it_ends() {
    let mut rig = Rig::new();
    rig.commit.on_join();
    rig.shard.observers_mut().set_journaling(true);
    rig.write();
    rig.send(OTHER, Until::Passed, committed(1));
    rig.send(OWN, Until::Passed, committed(2));
    rig.end_turn();
    assert_eq!(rig.sent(), []);
    rig.end_frame(None);
    rig.end_turn();
    // Handling a message may change data, which a turn that ends no longer logs.
    assert_eq!(rig.sent(), [(OTHER, Sent::Committed(1))]);
    rig.progress();
    assert_eq!(rig.sent(), [(OWN, Sent::Committed(2))]);
}

#[test]
fn while_chains_lose_writes_no_gate_opens_before_clients_are_told() {
    let mut rig = Rig::new();
    rig.commit.on_join();
    rig.shard.observers_mut().set_journaling(true);
    rig.write();
    rig.send(OTHER, Until::Passed, replies());
    rig.send(OTHER, Until::Passed, committed(3));
    rig.end_frame(Some(9));
    let out = &mut rig.out;
    rig.commit.on_chains_lost(out);
    rig.carry_out();
    let told = [(OTHER, Sent::Lost), (OTHER, Sent::Doubtful(3))];
    assert_eq!(rig.sent(), told);
    rig.commit.on_settled(9);
    assert_eq!(rig.commit.gates(), 1);
    rig.progress();
    assert_eq!(rig.sent(), []);
    assert_eq!(rig.uncommitted(), 1);
    rig.commit.on_settled(9);
    rig.progress();
    assert_eq!(rig.sent(), [(OTHER, Sent::Committed(3))]);
}

#[test]
fn a_failed_log_refuses_writes_and_loses_what_waits() {
    let mut rig = Rig::logging();
    rig.end_turn();
    rig.answer_disk(None);
    rig.write();
    rig.send(OTHER, Until::Passed, replies());
    rig.send(OTHER, Until::Logged, replies());
    rig.send(OTHER, Until::Passed, committed(4));
    rig.end_frame(None);
    rig.end_turn();
    rig.answer_disk(Some(DiskErrorKind::Full));
    let mut told = vec![(OTHER, Sent::Lost); 2];
    told.push((OTHER, Sent::Doubtful(4)));
    assert_eq!(rig.sent(), told);
    assert!(rig.commit.trouble().is_some() && rig.commit.is_stuck());
    assert_eq!(
        rig.end_turn(),
        Some(1),
        "the writes of this turn are in doubt"
    );
    assert_eq!(rig.uncommitted(), 1);
    assert_eq!(rig.end_turn(), None, "reads do not wait");
    // Data is sent at once; the report of a commit waits.
    rig.send(OTHER, Until::Passed, replies());
    rig.send(OTHER, Until::Passed, committed(5));
    assert_eq!(rig.sent(), [(OTHER, Sent::Replies)]);
    // A second failure is no news.
    rig.now.mono_us += 10_000_000;
    rig.end_turn();
    rig.answer_disk(Some(DiskErrorKind::Full));
    assert_eq!(rig.uncommitted(), 0);
    rig.sent();
    rig.now.mono_us += 10_000_000;
    rig.end_turn();
    rig.answer_disk(None);
    let both = [4, 5].map(|multi| (OTHER, Sent::Committed(multi)));
    assert_eq!(rig.sent(), both);
    assert!(rig.commit.trouble().is_none() && !rig.commit.is_in_trouble());
}

#[test]
fn what_waits_for_a_disk_that_does_not_answer_is_given_up_once_no_chain_names_the_node() {
    let mut rig = Rig::logging();
    rig.end_turn();
    rig.answer_disk(None);
    rig.write();
    rig.send(OTHER, Until::Logged, replies());
    rig.send(OTHER, Until::Logged, committed(4));
    rig.end_frame(None);
    rig.end_turn();
    let left = |rig: &mut Rig, us: u64| {
        rig.now.mono_us += us;
        rig.commit.look_at_stall(rig.now);
        if rig.commit.hangs() {
            rig.commit.on_left(&mut rig.out);
        }
        rig.carry_out();
    };
    left(&mut rig, 0);
    left(&mut rig, 900_000);
    assert_eq!(
        (rig.sent(), rig.uncommitted()),
        (vec![], 0),
        "it may answer soon"
    );
    left(&mut rig, 100_000);
    let told = vec![(OTHER, Sent::Lost), (OTHER, Sent::Doubtful(4))];
    assert_eq!((rig.sent(), rig.uncommitted()), (told, 1));
    left(&mut rig, 100_000);
    assert_eq!(rig.uncommitted(), 0, "once");
    // It answers after all.
    rig.answer_disk(None);
    assert_eq!(rig.sent().last(), Some(&(OTHER, Sent::Committed(4))));
}

#[test]
fn a_log_elsewhere_that_fails_stops_writes_here() {
    let mut rig = Rig::logging();
    let trouble = Trouble {
        text: "no space".into(),
        lost: true,
    };
    rig.commit.on_trouble(OTHER, Some(trouble));
    assert!(rig.commit.trouble().is_some() && !rig.commit.is_in_trouble());
    assert!(!rig.commit.is_stuck(), "what is lost does not delay a cut");
    rig.commit.on_trouble(OTHER, None);
    assert!(rig.commit.trouble().is_none());
}

#[test]
fn a_frame_ends_between_commands() {
    let mut rig = Rig::logging();
    assert!(!Commit::is_long(&mut rig.shard));
    while rig.shard.journal().len() <= FRAME_BYTES {
        assert!(!Commit::is_long(&mut rig.shard));
        rig.write();
    }
    assert!(Commit::is_long(&mut rig.shard));
    rig.end_frame(None);
    rig.write();
    rig.end_frame(None);
    assert!(rig.shard.journal().is_empty());
    let log = rig.commit.log();
    assert_eq!(log.map(|log| log.appended()), Some(2));
}

#[test]
fn logging_is_switched_off_and_on_again() {
    let mut rig = Rig::logging();
    rig.write();
    rig.end_frame(None);
    rig.end_log();
    assert!(!rig.commit.logs() && rig.commit.log().is_some());
    rig.write();
    assert!(rig.shard.journal().is_empty(), "nothing more is journaled");
    for _ in 0..5 {
        assert_eq!(rig.ended, usize::from(rig.commit.log().is_none()));
        rig.end_turn();
        rig.answer_disk(None);
    }
    assert!(rig.commit.log().is_none() && rig.ended == 1);
    assert_eq!(rig.end_turn(), None);
    // A save alone begins no log.
    rig.cut(2, CutOf::Save);
    assert!(!rig.commit.logs());
    rig.cut(3, CutOf::Begin);
    assert!(rig.commit.logs());
    let before = rig.commit.logged();
    assert!(before > 0, "positions never decrease");
    rig.write();
    rig.send(OTHER, Until::Passed, committed(1));
    rig.end_frame(None);
    assert_eq!(rig.end_turn(), Some(before + 1));
    rig.answer_disk(None);
    assert_eq!(rig.sent(), [(OTHER, Sent::Committed(1))]);
}

/// The log ends although it cannot be written: what waits for it goes on.
#[test]
fn a_log_that_is_stuck_is_given_up_when_it_ends() {
    for ends_first in [false, true] {
        let mut rig = Rig::logging();
        rig.end_turn();
        rig.answer_disk(None);
        rig.write();
        rig.end_frame(None);
        rig.send(OTHER, Until::Passed, committed(1));
        if ends_first {
            rig.end_log();
        }
        rig.end_turn();
        rig.answer_disk(Some(DiskErrorKind::Full));
        if !ends_first {
            assert!(rig.commit.is_stuck() && rig.commit.log().is_some());
            rig.end_log();
        }
        assert!(rig.commit.log().is_none() && rig.ended == 1, "{ends_first}");
        assert!(rig.commit.trouble().is_none(), "writes are taken again");
        assert_eq!(rig.end_turn(), None);
        assert_eq!(rig.sent().last(), Some(&(OTHER, Sent::Committed(1))));
        // An answer for the old log means nothing to a new one.
        let before = rig.commit.logged();
        rig.cut(2, CutOf::Begin);
        rig.answer_disk(None);
        rig.write();
        rig.end_frame(None);
        assert_eq!(rig.end_turn(), Some(before + 1));
    }
}

#[test]
fn the_end_of_a_log_that_never_began_is_reported() {
    let mut rig = Rig::new();
    rig.end_log();
    assert_eq!(rig.ended, 1);
}

#[test]
fn a_stopping_log_is_closed_once_it_is_on_disk_and_stays() {
    let mut rig = Rig::new();
    assert!(rig.with(|commit, _, out| commit.on_stop(Now::default(), out)));
    let mut rig = Rig::logging();
    rig.write();
    rig.end_frame(None);
    let stop = |rig: &mut Rig| rig.with(|commit, _, out| commit.on_stop(Now::default(), out));
    assert!(!stop(&mut rig));
    for _ in 0..5 {
        rig.answer_disk(None);
        rig.end_turn();
    }
    assert!(stop(&mut rig) && rig.commit.log().is_some());
    assert!(!rig.commit.logs(), "nothing is logged any more");
}

#[test]
fn logs_are_closed_once_all_workers_are_quiet() {
    let mut rig = Rig::new();
    let mut quiet = Quiet::default();
    assert!(!quiet.say(&mut rig.out) && quiet.say(&mut rig.out));
    let told = rig.out.next_call();
    assert!(matches!(told, Some(Call::Tell(OWN, Note::Quiet))));
    assert!(rig.out.next_call().is_none(), "it is reported once");
    quiet.on_quiet();
    assert!(!quiet.is_everywhere(2));
    quiet.on_quiet();
    assert!(quiet.is_everywhere(2) && !quiet.may_close());
    let close = |rig: &mut Rig, quiet: &Quiet| {
        rig.with(|_, store, out| quiet.close_logs(store, out));
        std::iter::from_fn(|| rig.out.next_call()).count()
    };
    assert_eq!(close(&mut rig, &quiet), 2);
    quiet.on_close_logs();
    assert!(quiet.may_close());
    assert_eq!(close(&mut rig, &quiet), 0, "once is enough");
}
