//! Whether there is a sequential order of commands that
//! explains every reply, respects real-time order, and spans
//! restarts as far as the promise of durability goes.
//!
//! A search over configurations: which commands have run, and what the keys
//! hold. Each is visited once. A command whose outcome is unknown may run at
//! any later time before its node ends, or never.

use crate::history::{Epoch, History, Kept, Outcome, Record, Unit};
use crate::model::{State, Window, World};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, DefaultHasher};

/// A search that meets more configurations gives up.
const MOST_CONFIGURATIONS: usize = 60_000;

type Seedless = BuildHasherDefault<DefaultHasher>;

/// The outcome for a unit.
#[derive(Debug, Default)]
pub struct Verdict {
    pub failure: Option<String>,
    /// A search was given up.
    pub unsure: bool,
    /// A restart lost something, as it may.
    pub lost: bool,
}

/// Checks all that happened to one unit.
pub fn check(history: &History, unit: usize, world: &World<'_>, end_us: u64) -> Verdict {
    let mut verdict = Verdict::default();
    let what = &history.units[unit];
    let mut starts = vec![vec![None; what.keys.len()]];
    let mut starts_before = Vec::new();
    // What a restart would have found, had it lost nothing.
    let mut whole: Option<Vec<State>> = None;
    let lives = &history.records[unit];
    for (number, records) in lives.iter().enumerate() {
        let epoch = history.epochs.get(number).cloned().unwrap_or(Epoch {
            end_us,
            kept: Kept::All,
            trouble_us: None,
        });
        let search = Search::new(records, &epoch, world);
        // What the last life left is asked by none.
        let aim = if number + 1 == lives.len() {
            Aim::One
        } else {
            Aim::All
        };
        let Some(found) = search.run(&starts, aim) else {
            verdict.unsure = true;
            return verdict;
        };
        if !found.possible {
            verdict.failure = Some(search.report(what, number, &starts, &found));
            return verdict;
        }
        if let Some(whole) = whole.take() {
            let found = search.run(&whole, Aim::One);
            verdict.lost |= found.is_some_and(|found| !found.possible);
        }
        if matches!(epoch.kept, Kept::Prefix { .. }) {
            whole = Some(found.whole);
        }
        let older = match history.epochs.get(number.wrapping_sub(1)) {
            Some(before) => older_survivors(history, unit, world, (before, &epoch), &starts_before),
            None => Vec::new(),
        };
        starts_before = starts;
        starts = match epoch.kept {
            Kept::Nothing => vec![vec![None; what.keys.len()]],
            _ => found.survivors,
        };
        starts.extend(older);
    }
    verdict
}

/// What the power may take of the life before the last: a failed sync forgot
/// what reading still showed to the life that followed, or a bit flipped in
/// what nothing proves to have been there.
fn older_survivors(
    history: &History,
    unit: usize,
    world: &World<'_>,
    (before, last): (&Epoch, &Epoch),
    starts: &[State],
) -> Vec<State> {
    let (Kept::Prefix { up_to_us, .. }, Some(number)) =
        (&last.kept, history.epochs.iter().position(|e| e == before))
    else {
        return Vec::new();
    };
    if before.trouble_us.is_none() && *up_to_us > 0 {
        return Vec::new();
    }
    let epoch = Epoch {
        kept: last.kept.clone(),
        ..before.clone()
    };
    let search = Search::new(&history.records[unit][number], &epoch, world);
    search
        .run(starts, Aim::All)
        .map_or(Vec::new(), |found| found.survivors)
}

/// Records of one unit in one life of the node.
struct Search<'a> {
    records: Vec<(&'a Record, Window)>,
    epoch: &'a Epoch,
    world: &'a World<'a>,
}

/// What is looked for: an order that explains the replies, or all states that such orders lead to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Aim {
    One,
    All,
}

/// What a search came to.
struct Found {
    possible: bool,
    /// What the keys may hold after the restart.
    survivors: Vec<State>,
    /// What they may hold where nothing was lost.
    whole: Vec<State>,
    /// The most commands that could be explained, and the state then.
    furthest: (Vec<u64>, State),
}

type Done = Vec<u64>;

fn has(done: &Done, index: usize) -> bool {
    done[index / 64] >> (index % 64) & 1 == 1
}

impl<'a> Search<'a> {
    fn new(records: &'a [Record], epoch: &'a Epoch, world: &'a World<'a>) -> Self {
        let matters = |r: &&Record| match r.outcome {
            Outcome::Refused => false,
            Outcome::Open => r.op.writes(),
            Outcome::Seen(_) => true,
        };
        let mut all: Vec<_> = records
            .iter()
            .filter(matters)
            .map(|r| {
                let to = r.answered_us.min(epoch.end_us);
                (r, Window::new(r.asked_us, to, world.clock))
            })
            .collect();
        all.sort_by_key(|(r, _)| (r.asked_us, r.connection, r.order));
        Self {
            records: all,
            epoch,
            world,
        }
    }

    fn is_open(&self, index: usize) -> bool {
        self.records[index].0.outcome == Outcome::Open
    }

    /// Commands that may run next.
    fn candidates(&self, done: &Done) -> Vec<usize> {
        let mut earliest_end = u64::MAX;
        let mut found: Vec<usize> = Vec::new();
        for (index, (record, _)) in self.records.iter().enumerate() {
            if has(done, index) {
                continue;
            }
            if record.asked_us > earliest_end {
                break;
            }
            earliest_end = earliest_end.min(record.answered_us);
            // Requests of a connection run in their order, except those of a
            // pipeline on other keys. One whose outcome is unknown may have been
            // refused, and then others follow it.
            let same = |i: &usize| {
                let other = self.records[*i].0;
                other.connection == record.connection
                    && !(other.order < record.order && other.op.may_be_overtaken_by(&record.op))
            };
            let earlier = found.iter().any(|i| same(i) && !self.is_open(*i));
            let too_late = self.is_open(index)
                && (index + 1..self.records.len()).any(|i| has(done, i) && same(&i));
            if !earlier && !too_late {
                found.push(index);
            }
        }
        // One asked for after another was answered does not come before it.
        found.retain(|i| self.records[*i].0.asked_us <= earliest_end);
        found
    }

    fn run(&self, starts: &[State], aim: Aim) -> Option<Found> {
        let words = self.records.len() / 64 + 1;
        let mut nodes: Vec<(Done, State)> = Vec::new();
        let mut known: HashMap<(Done, State), usize, Seedless> = HashMap::default();
        let mut parents: Vec<Vec<u32>> = Vec::new();
        let mut todo = Vec::new();
        let mut furthest = (0, 0);
        for start in starts {
            let node = (vec![0; words], start.clone());
            if !known.contains_key(&node) {
                known.insert(node.clone(), nodes.len());
                todo.push(nodes.len());
                nodes.push(node);
                parents.push(Vec::new());
            }
        }
        while let Some(at) = todo.pop() {
            let count = nodes[at].0.iter().map(|w| w.count_ones()).sum();
            if count > furthest.1 {
                furthest = (at, count);
            }
            if aim == Aim::One && self.is_complete(&nodes[at].0) {
                break;
            }
            for next in self.successors(&nodes[at]) {
                let place = *known.entry(next.clone()).or_insert_with(|| {
                    todo.push(nodes.len());
                    nodes.push(next);
                    parents.push(Vec::new());
                    nodes.len() - 1
                });
                parents[place].push(at as u32);
            }
            if nodes.len() > MOST_CONFIGURATIONS {
                return None;
            }
        }
        let leads = self.leads_to_the_end(&nodes, &parents);
        let survivors = self.survivors(&nodes, &leads);
        let complete = nodes.iter().filter(|(done, _)| self.is_complete(done));
        let whole = complete.map(|(_, state)| state.clone()).collect();
        Some(Found {
            possible: leads.contains(&true),
            survivors,
            whole,
            furthest: nodes[furthest.0].clone(),
        })
    }

    fn successors(&self, (done, state): &(Done, State)) -> Vec<(Done, State)> {
        let mut all = Vec::new();
        // The last one is tried first: that which was answered first.
        let mut candidates = self.candidates(done);
        candidates.sort_by_key(|index| std::cmp::Reverse(self.records[*index].0.answered_us));
        for index in candidates {
            let (record, window) = &self.records[index];
            let reply = match &record.outcome {
                Outcome::Seen(reply) => Some(reply),
                _ => None,
            };
            let mut after = done.clone();
            after[index / 64] |= 1 << (index % 64);
            let states = record.op.outcomes(state, reply, window, self.world);
            // A read that fits loses nothing by going first.
            if reply.is_some() && !record.op.writes() && states.contains(state) {
                return vec![(after, state.clone())];
            }
            all.extend(states.into_iter().map(|s| (after.clone(), s)));
        }
        all
    }

    fn is_complete(&self, done: &Done) -> bool {
        (0..self.records.len()).all(|i| self.is_open(i) || has(done, i))
    }

    /// Which configurations can go on until every reply is explained.
    fn leads_to_the_end(&self, nodes: &[(Done, State)], parents: &[Vec<u32>]) -> Vec<bool> {
        let mut leads: Vec<bool> = nodes.iter().map(|(d, _)| self.is_complete(d)).collect();
        let mut todo: Vec<usize> = (0..nodes.len()).filter(|i| leads[*i]).collect();
        while let Some(at) = todo.pop() {
            for &parent in &parents[at] {
                if !std::mem::replace(&mut leads[parent as usize], true) {
                    todo.push(parent as usize);
                }
            }
        }
        leads
    }

    fn survivors(&self, nodes: &[(Done, State)], leads: &[bool]) -> Vec<State> {
        let kept: Vec<usize> = (0..self.records.len())
            .filter(|i| self.epoch.holds(self.records[*i].0))
            .collect();
        let mut seen: HashSet<&State, Seedless> = HashSet::default();
        let mut all = Vec::new();
        for ((done, state), _) in nodes.iter().zip(leads).filter(|(_, leads)| **leads) {
            if kept.iter().all(|i| has(done, *i)) && seen.insert(state) {
                all.push(state.clone());
            }
        }
        all
    }

    /// What a person needs to see why no order explains the replies.
    fn report(&self, unit: &Unit, epoch: usize, starts: &[State], found: &Found) -> String {
        use std::fmt::Write;
        let mut text = format!(
            "{} (life {epoch} of the node): no order of the commands explains the replies\n",
            unit.name()
        );
        let _ = writeln!(text, "  could hold at the start: {}", show_states(starts));
        let (done, state) = &found.furthest;
        for (index, (record, _)) in self.records.iter().enumerate() {
            let mark = if has(done, index) { ' ' } else { '*' };
            let _ = writeln!(text, "  {mark} {}", show_record(record));
        }
        let _ = write!(
            text,
            "  those marked * were not explained; after the others: {}",
            show_states(std::slice::from_ref(state))
        );
        text
    }
}

fn show_states(states: &[State]) -> String {
    let entry = |e: &Option<crate::model::Entry>| match e {
        None => "-".to_owned(),
        Some(e) => {
            let expiry = e
                .expiry
                .as_ref()
                .map_or(String::new(), |x| format!(" until {}", x.earliest));
            format!("{}{expiry}", e.value)
        }
    };
    let state = |s: &State| s.iter().map(entry).collect::<Vec<_>>().join(", ");
    let shown: Vec<_> = states.iter().take(8).map(state).collect();
    format!("{} ({} in all)", shown.join(" | "), states.len())
}

fn show_record(record: &Record) -> String {
    let answered = match record.answered_us {
        u64::MAX => "never".to_owned(),
        us => us.to_string(),
    };
    let mut text = format!(
        "{}..{answered} c{}#{} {:?} -> {:?}",
        record.asked_us, record.connection, record.order, record.op, record.outcome
    );
    if text.len() > 400 {
        let end = (0..=400).rev().find(|i| text.is_char_boundary(*i));
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
    text
}
