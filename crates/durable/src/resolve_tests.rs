//! `resolve` against all possible outcomes: histories of commands over several workers, of which
//! each log keeps any prefix.

use super::*;
use rufous_base::rng::Rng;

const KEYS: usize = 3;

/// One frame of a log.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A command of one worker, on this key.
    Single(usize),
    /// Command, key.
    Piece(usize, usize),
    Done(usize),
}

#[derive(Debug)]
struct Command {
    /// Partition and key, one each.
    parts: Vec<(usize, usize)>,
    logged: Vec<bool>,
    done: Vec<bool>,
}

/// A possible history of logs, with locks held as workers hold them.
struct History {
    logs: Vec<Vec<Event>>,
    commands: Vec<Command>,
}

impl History {
    fn random(rng: &mut Rng, workers: usize, steps: usize) -> Self {
        let mut history = History {
            logs: vec![Vec::new(); workers],
            commands: Vec::new(),
        };
        for _ in 0..steps {
            match rng.below(4) {
                0 => history.single(rng),
                1 => history.start(rng),
                _ => history.go_on(rng),
            }
        }
        history
    }

    fn locked(&self, worker: usize, key: usize) -> bool {
        self.commands.iter().any(|command| {
            let part = command.parts.iter().position(|p| *p == (worker, key));
            part.is_some_and(|part| !command.done[part])
        })
    }

    fn single(&mut self, rng: &mut Rng) {
        let (worker, key) = (below(rng, self.logs.len()), below(rng, KEYS));
        if !self.locked(worker, key) {
            self.logs[worker].push(Event::Single(key));
        }
    }

    fn start(&mut self, rng: &mut Rng) {
        let mut parts = Vec::new();
        for worker in 0..self.logs.len() {
            let key = below(rng, KEYS);
            if rng.below(2) == 0 && !self.locked(worker, key) {
                parts.push((worker, key));
            }
        }
        if parts.len() > 1 {
            self.commands.push(Command {
                logged: vec![false; parts.len()],
                done: vec![false; parts.len()],
                parts,
            });
        }
    }

    fn go_on(&mut self, rng: &mut Rng) {
        if self.commands.is_empty() {
            return;
        }
        let id = below(rng, self.commands.len());
        let command = &mut self.commands[id];
        let part = below(rng, command.parts.len());
        let (worker, key) = command.parts[part];
        if !command.logged[part] {
            command.logged[part] = true;
            self.logs[worker].push(Event::Piece(id, key));
        } else if command.logged.iter().all(|logged| *logged) && !command.done[part] {
            command.done[part] = true;
            self.logs[worker].push(Event::Done(id));
        }
    }

    fn parts(&self, kept: &[usize]) -> Vec<Parts> {
        let logs = self.logs.iter().zip(kept);
        logs.map(|(log, kept)| {
            let mut parts = Parts::default();
            for (at, event) in log[..*kept].iter().enumerate() {
                match *event {
                    Event::Single(_) => {}
                    Event::Piece(id, _) => {
                        let workers = self.commands[id].parts.iter().map(|part| part.0 as u16);
                        parts.piece(txn(id), workers, at as u64);
                    }
                    Event::Done(id) => parts.done(txn(id), at as u64),
                }
            }
            parts
        })
        .collect()
    }

    /// Whether a command is complete if logs end at `cuts`.
    fn is_whole(&self, id: usize, cuts: &[usize]) -> bool {
        self.commands[id].parts.iter().all(|(worker, _)| {
            let log = &self.logs[*worker][..cuts[*worker]];
            log.iter()
                .any(|e| matches!(e, Event::Piece(i, _) if *i == id))
        })
    }

    /// Whether no frame is left that follows an incomplete command.
    fn is_consistent(&self, cuts: &[usize]) -> bool {
        self.logs.iter().zip(cuts).all(|(log, cut)| {
            let mut spoiled = [false; KEYS];
            log[..*cut].iter().all(|event| match *event {
                Event::Single(key) => !spoiled[key],
                Event::Piece(id, key) => {
                    let fine = !spoiled[key];
                    spoiled[key] |= !self.is_whole(id, cuts);
                    fine || !self.is_whole(id, cuts)
                }
                Event::Done(id) => self.is_whole(id, cuts),
            })
        })
    }
}

fn below(rng: &mut Rng, n: usize) -> usize {
    rng.below(n as u64) as usize
}

fn txn(id: usize) -> TxnId {
    TxnId {
        run: 1 + id as u64 % 2,
        worker: (id % 3) as u16,
        n: id as u64,
    }
}

/// Every vector below `most`, in each place.
fn each_cut(most: &[usize], f: &mut dyn FnMut(&[usize])) {
    let mut cuts = vec![0; most.len()];
    loop {
        f(&cuts);
        let Some(place) = (0..most.len()).find(|i| cuts[*i] < most[*i]) else {
            return;
        };
        cuts[place] += 1;
        cuts[..place].fill(0);
    }
}

fn check(history: &History, kept: &[usize]) -> (usize, usize) {
    let parts = history.parts(kept);
    let verdicts = resolve(&parts.iter().collect::<Vec<_>>());
    let cuts: Vec<usize> = (verdicts.iter().zip(kept))
        .map(|(verdict, kept)| verdict.cut.map_or(*kept, |cut| cut as usize))
        .collect();
    assert!(history.is_consistent(&cuts), "{:?} {cuts:?}", history.logs);
    let mut skipped = 0;
    for (worker, verdict) in verdicts.iter().enumerate() {
        let log = &history.logs[worker][..cuts[worker]];
        let half = log.iter().filter_map(|event| match event {
            Event::Piece(id, _) if !history.is_whole(*id, &cuts) => Some(txn(*id)),
            _ => None,
        });
        let half: HashSet<TxnId> = half.collect();
        assert_eq!(half, verdict.skip, "{:?} {cuts:?}", history.logs);
        skipped += half.len();
    }
    // No more was cut than necessary: no consistent outcome has more of any log.
    each_cut(kept, &mut |other| {
        if other.iter().zip(&cuts).any(|(other, cut)| other > cut) {
            let ends = (other.iter().zip(&history.logs)).all(|(cut, log)| {
                let dones = log[..*cut].iter().filter_map(|event| match event {
                    Event::Done(id) => Some(*id),
                    _ => None,
                });
                dones.into_iter().all(|id| history.is_whole(id, other))
            });
            assert!(!ends, "{:?}: {cuts:?} rather than {other:?}", history.logs);
        }
    });
    let cut = cuts
        .iter()
        .zip(kept)
        .filter(|(cut, kept)| cut < kept)
        .count();
    (skipped, cut)
}

#[test]
fn short_histories_with_every_loss() {
    let mut rng = Rng::new(7);
    let (mut skipped, mut cut) = (0, 0);
    for round in 0..400 {
        let history = History::random(&mut rng, 2 + round % 2, 16);
        let lens: Vec<usize> = history.logs.iter().map(Vec::len).collect();
        each_cut(&lens, &mut |kept| {
            let found = check(&history, kept);
            skipped += found.0;
            cut += found.1;
        });
    }
    assert!(skipped > 1000 && cut > 1000, "{skipped} {cut}");
}

#[test]
fn longer_histories_with_some_losses() {
    let mut rng = Rng::new(8);
    let mut cut = 0;
    for round in 0..300 {
        let history = History::random(&mut rng, 2 + round % 3, 60);
        for _ in 0..3 {
            let lens = history.logs.iter().map(Vec::len);
            let kept: Vec<usize> = lens
                .map(|len| len - below(&mut rng, len.min(9) + 1))
                .collect();
            cut += check(&history, &kept).1;
        }
    }
    assert!(cut > 100, "{cut}");
}

#[test]
fn a_loss_takes_others_with_it() {
    let id = |n| TxnId {
        run: 1,
        worker: 0,
        n,
    };
    // Log 0 lost its piece of command 1, whose end log 1 has. Behind that end, log 1 has a piece of
    // command 2, whose end log 2 has; before it, a piece of command 3.
    let lost = Parts::default();
    let mut second = Parts::default();
    second.piece(id(1), [0, 1].into_iter(), 3);
    second.piece(id(3), [1, 2].into_iter(), 4);
    second.done(id(1), 5);
    second.piece(id(2), [2, 1].into_iter(), 6);
    let mut third = Parts::default();
    third.piece(id(3), [1, 2].into_iter(), 0);
    third.piece(id(2), [1, 2].into_iter(), 1);
    third.done(id(3), 2);
    third.done(id(2), 9);
    let verdicts = resolve(&[&lost, &second, &third]);
    assert_eq!(verdicts[0], Verdict::default());
    let of = |n, cut| Verdict {
        skip: [id(n)].into(),
        cut: Some(cut),
    };
    assert_eq!(verdicts[1], of(1, 5));
    assert_eq!(verdicts[2], of(2, 9));
}

#[test]
fn participants_that_do_not_exist_never_have_their_piece() {
    let txn = txn(1);
    let mut only = Parts::default();
    only.piece(txn, [0, 9].into_iter(), 1);
    assert_eq!(resolve(&[&only])[0].skip, [txn].into());
    // The end of a command alone is consistent.
    let mut end = Parts::default();
    end.done(txn, 1);
    assert_eq!(resolve(&[&end])[0], Verdict::default());
}

#[test]
fn what_is_cut_is_forgotten() {
    let mut parts = Parts::default();
    for at in 0..4 {
        parts.piece(txn(at), [0].into_iter(), at as u64);
        parts.done(txn(at), at as u64);
    }
    parts.cut(2);
    assert_eq!((parts.pieces.len(), parts.dones.len()), (2, 2));
    assert_eq!((parts.group_of.len(), parts.groups.len()), (2, 1));
}
