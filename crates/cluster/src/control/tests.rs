//! Observation in, expected actions out.

mod leaders;

use super::*;
use rufous_base::limits::{CAUGHT_UP_US, EPOCHS_APART_US};
use rufous_wire::mapping::{encode, encode_member};

const ME: NodeId = NodeId([1; 20]);
const OTHER: NodeId = NodeId([2; 20]);

fn member(id: NodeId) -> Member {
    Member {
        id,
        incarnation: 1,
        peer: "127.0.0.1:1".into(),
        plain: String::new(),
        cluster: String::new(),
        zone: String::new(),
        weight: 100,
        workers: 1,
        drains: false,
        folder: Default::default(),
    }
}

fn alive(ids: &[NodeId]) -> BTreeMap<NodeId, Member> {
    ids.iter().map(|id| (*id, member(*id))).collect()
}

/// The epoch that follows if these nodes are alive.
fn next(before: &Mapping, ids: &[NodeId]) -> Mapping {
    let seen = Seen {
        alive: alive(ids),
        ..Seen::default()
    };
    planner::next(before, &seen, &Limits::default()).expect("a change")
}

fn settings() -> Settings {
    Settings {
        me: ME,
        incarnation: 1,
        copies: 1,
        workers: 2,
        apart_us: EPOCHS_APART_US,
        limits: Limits::default(),
        kept: Kept::default(),
    }
}

fn control() -> Control {
    Control::new(settings())
}

/// A view of the leader or of another node.
fn view<'a>(leader: NodeId, stored: Option<(u64, &'a [u8])>, ids: &[NodeId]) -> View<'a> {
    View {
        is_current: true,
        is_member: true,
        leader: Some(leader),
        stored: stored.map(|(epoch, mapping)| Stored { epoch, mapping }),
        alive: alive(ids),
        ..View::default()
    }
}

/// An action in short form.
fn brief(action: &Action) -> String {
    match action {
        Action::Stop => "stop".into(),
        Action::Claim => "claim".into(),
        Action::Adopted { mapping, numbered } => {
            let numbered = numbered.map_or(String::new(), |no| format!(" as {}", no.0));
            format!("adopted {}{numbered}", mapping.epoch)
        }
        Action::WentBack { found, known } => format!("went back from {known} to {found}"),
        Action::CaughtUp { epoch } => format!("caught up with {epoch}"),
        Action::Refused { epoch, .. } => format!("refused {epoch}"),
        Action::Tell { worker, mapping } => format!("tell {worker} of {}", mapping.epoch),
        Action::Report { to } => format!("report to {}", to.0),
        Action::ForgetReports => "forget".into(),
        Action::Unfit { now, .. } => {
            let all: Vec<u16> = now.keys().map(|no| no.0).collect();
            format!("unfit {all:?}")
        }
        Action::Forgotten { kept, .. } => format!("forgotten {kept:?}"),
        Action::Outstayed { no, .. } => format!("outstayed {}", no.0),
        Action::Halted(halted) => format!("{} wait for the operator", halted.without_copy),
        Action::Propose { expected, next, .. } => {
            format!("propose {} after {expected}", next.epoch)
        }
    }
}

/// Has the control decide, and compares its actions.
#[track_caller]
fn check(control: &mut Control, now_us: u64, view: &View<'_>, expected: &[&str]) {
    let actions = control.decide(now_us, view);
    let actions: Vec<String> = actions.iter().map(brief).collect();
    assert_eq!(actions, expected);
}

#[test]
fn the_leader_of_a_new_cluster_proposes_its_first_epoch() {
    let mut control = control();
    let empty = view(ME, None, &[ME]);
    check(&mut control, 0, &empty, &["propose 1 after 0"]);
    // Until the outcome of that is known, it is proposed again.
    check(&mut control, 1, &empty, &["propose 1 after 0"]);
    assert_eq!(control.on_proposed(1, Outcome::Taken), None);
    check(&mut control, 2, &empty, &[]);
    // Nor without the coordinator, nor if another node leads.
    let away = View {
        is_current: false,
        ..empty.clone()
    };
    check(&mut control, EPOCHS_APART_US + 1, &away, &["forget"]);
    check(
        &mut control,
        EPOCHS_APART_US + 1,
        &view(OTHER, None, &[ME]),
        &["forget"],
    );
}

/// Operators ask any node, and the member may be the last one with some slots, or be back.
#[test]
fn any_node_proposes_that_a_member_is_forgotten() {
    let mut first = Mapping::new(2);
    // With two copies each has all slots.
    for _ in 0..2 {
        first = next(&first, &[ME, OTHER]);
        if first
            .chains
            .ranges()
            .all(|(_, chain)| chain.members.len() == 2)
        {
            break;
        }
    }
    let bytes = encode(&first);
    let epoch = first.epoch;
    let mut control = control();
    let stored = view(OTHER, Some((epoch, &bytes)), &[ME, OTHER]);
    control.decide(0, &stored);
    (0..2).for_each(|worker| control.on_told(worker, epoch));
    let asked = |ids: &[NodeId]| View {
        forgets: [OTHER].into(),
        ..view(ME, Some((epoch, &bytes)), ids)
    };
    let propose = format!("propose {} after {epoch}", epoch + 1);
    let of = |control: &mut Control, view: &View<'_>| -> Vec<String> {
        control.decide(1, view).iter().map(brief).collect()
    };
    let all = of(&mut control, &asked(&[ME, OTHER]));
    assert!(
        all.contains(&"forgotten Some(\"it is alive\")".to_owned()),
        "{all:?}"
    );
    assert!(!all.contains(&propose), "{all:?}");
    let follower = View {
        leader: None,
        ..asked(&[ME])
    };
    assert!(of(&mut control, &follower).contains(&propose));
    let away = View {
        is_current: false,
        ..asked(&[ME])
    };
    assert_eq!(
        of(&mut control, &away),
        ["forget"],
        "it is asked again later"
    );
}

#[test]
fn the_leader_lets_a_member_go_that_is_away_for_too_long() {
    let mut mapping = next(&Mapping::new(1), &[ME]);
    // A member without slots.
    let no = NodeNo(mapping.next);
    mapping.next += 1;
    mapping.members.insert(no, member(OTHER));
    mapping.epoch += 1;
    let (bytes, epoch) = (encode(&mapping), mapping.epoch);
    let mut control = Control::new(Settings {
        limits: Limits {
            absence_ms: Some(60_000),
            ..Limits::default()
        },
        ..settings()
    });
    let gone = view(ME, Some((epoch, &bytes)), &[ME]);
    let mut of = |at_ms: u64| -> Vec<String> {
        let all = control.decide(at_ms * 1_000, &gone);
        all.iter().map(brief).collect()
    };
    let propose = format!("propose {} after {epoch}", epoch + 1);
    for at_ms in [0, 30_000, 59_999] {
        assert!(!of(at_ms).contains(&propose), "at {at_ms}");
    }
    let all = of(60_001);
    let expected = ["outstayed 1".to_owned(), propose];
    assert!(all.ends_with(&expected), "{all:?}");
}

#[test]
fn workers_are_told_until_they_know() {
    let first = next(&Mapping::new(1), &[ME, OTHER]);
    let bytes = encode(&first);
    let own = first.number_of(ME).expect("a member").0;
    let leader = first.number_of(OTHER).expect("a member").0;
    let (adopted, report) = (format!("adopted 1 as {own}"), format!("report to {leader}"));
    let stored = view(OTHER, Some((1, &bytes)), &[ME, OTHER]);
    let mut control = control();
    let tell = ["tell 0 of 1", "tell 1 of 1"];
    let expected = [&adopted, tell[0], tell[1], &report, "forget"];
    check(&mut control, 0, &stored, &expected);
    control.on_told(1, 1);
    check(&mut control, 1, &stored, &[tell[0], &report, "forget"]);
    control.on_told(0, 1);
    check(&mut control, 2, &stored, &[&report, "forget"]);
    assert_eq!(control.told(), [1, 1]);
}

#[test]
fn only_valid_mappings_are_adopted() {
    let first = next(&Mapping::new(1), &[ME]);
    let second = next(&first, &[ME, OTHER]);
    // All slots are another node's at once.
    let mut taken = next(&Mapping::new(1), &[OTHER]);
    taken.epoch = 2;
    // An epoch that was not seen may lie between.
    let mut third = second.clone();
    third.epoch = 3;
    let cases = [
        (2, encode(&second), "adopted 2"),
        (3, encode(&third), "adopted 3"),
        (2, encode(&first), "refused 2"),
        (2, encode(&taken), "refused 2"),
        (2, vec![0xff; 40], "refused 2"),
    ];
    for (epoch, bytes, expected) in &cases {
        let mut control = control();
        control.decide(0, &view(OTHER, Some((1, &encode(&first))), &[ME]));
        let stored = view(OTHER, Some((*epoch, bytes)), &[ME]);
        let actions = control.decide(1, &stored);
        assert_eq!(actions.first().map(brief).as_deref(), Some(*expected));
        // A refusal is reported once.
        let again = control.decide(2, &stored);
        assert!(again.iter().all(|action| brief(action) != *expected));
        // An older mapping is ignored.
        let adopted = control.mapping().map(|mapping| mapping.epoch);
        control.decide(3, &view(OTHER, Some((1, &encode(&first))), &[ME]));
        assert_eq!(control.mapping().map(|mapping| mapping.epoch), adopted);
    }
}

#[test]
fn nobody_builds_on_a_mapping_that_is_not_valid() {
    let bytes = encode(&next(&Mapping::new(1), &[ME]));
    let garbage = [0xff; 40];
    let mut control = control();
    control.decide(0, &view(OTHER, Some((1, &bytes)), &[ME]));
    control.on_told(0, 1);
    control.on_told(1, 1);
    let leads = view(ME, Some((2, &garbage)), &[ME, OTHER]);
    check(&mut control, 1, &leads, &["refused 2"]);
    let leads = view(ME, Some((1, &bytes)), &[ME, OTHER]);
    check(&mut control, 2, &leads, &["propose 2 after 1"]);
}

#[test]
fn unclaimed_data_joins_only_a_cluster_in_which_its_node_has_all_slots() {
    let alone = encode(&next(&Mapping::new(1), &[ME]));
    let others = encode(&next(&Mapping::new(1), &[OTHER]));
    let cases = [(&alone, "claim"), (&others, "stop")];
    for (bytes, expected) in cases {
        let mut control = control();
        let mut stored = view(OTHER, Some((1, bytes)), &[]);
        stored.data = Data::Unclaimed;
        let actions = control.decide(0, &stored);
        assert_eq!(brief(&actions[0]), expected);
        assert_eq!(actions.len() == 1, expected == "stop", "{actions:?}");
        // A later mapping makes no difference.
        assert_eq!(control.mapping().is_some(), expected == "claim");
    }
}

#[test]
fn data_of_a_lost_mapping_is_not_dropped_by_a_cluster_that_begins_anew() {
    let both = next(&Mapping::new(1), &[ME, OTHER]);
    let mut restored = both.clone();
    let no = restored.number_of(ME).expect("a member");
    restored.members.get_mut(&no).expect("a member").incarnation = 0;
    let cases = [
        (next(&Mapping::new(1), &[ME]), "claim"),
        (next(&Mapping::new(1), &[OTHER]), "stop"),
        (both, "stop"),
        (restored, "claim"),
    ];
    for (mapping, expected) in cases {
        let bytes = encode(&mapping);
        let mut stored = view(OTHER, Some((1, &bytes)), &[]);
        stored.data = Data::OfLostMapping;
        assert_eq!(brief(&control().decide(0, &stored)[0]), expected);
    }
}

#[test]
fn epochs_are_apart_unless_a_node_has_just_gone() {
    let gone = |ms: u64| BTreeMap::from([(NodeNo(3), ms * 1_000)]);
    let none = BTreeMap::new();
    let is_time = |proposed: Option<u64>, away: &BTreeMap<NodeNo, u64>, ms: u64| {
        is_time(
            proposed.map(|ms| ms * 1_000),
            away,
            EPOCHS_APART_US,
            ms * 1_000,
        )
    };
    assert!(is_time(None, &none, 0));
    assert!(!is_time(Some(0), &none, 199));
    assert!(is_time(Some(0), &none, 200));
    assert!(is_time(Some(0), &gone(50), 60));
    // A member that has been away for long does not speed up the next epoch.
    assert!(!is_time(Some(500), &gone(0), 510));
}

#[test]
fn members_count_as_away_from_when_the_leader_misses_them() {
    let bytes = encode(&next(&Mapping::new(1), &[ME, OTHER]));
    let mut control = control();
    let no = {
        control.decide(0, &view(ME, Some((1, &bytes)), &[ME, OTHER]));
        assert!(control.away().is_empty());
        let mapping = control.mapping().expect("adopted");
        mapping.number_of(OTHER).expect("a member")
    };
    control.decide(5, &view(ME, Some((1, &bytes)), &[ME]));
    control.decide(9, &view(ME, Some((1, &bytes)), &[ME]));
    assert_eq!(control.away(), &BTreeMap::from([(no, 5)]));
    control.decide(10, &view(OTHER, Some((1, &bytes)), &[ME]));
    assert!(control.away().is_empty(), "another node leads");
}

#[test]
fn a_failure_to_propose_is_logged_once() {
    let mut control = control();
    let failed = |text: &str| Outcome::Failed(text.into());
    assert_eq!(control.on_proposed(0, failed("x")).as_deref(), Some("x"));
    assert_eq!(control.on_proposed(1, failed("x")), None);
    assert_eq!(control.on_proposed(2, Outcome::Passed), None);
    assert_eq!(control.on_proposed(3, failed("y")).as_deref(), Some("y"));
}

#[test]
fn removed_members_and_those_that_announce_it_drain() {
    let mapping = next(&Mapping::new(1), &[ME, OTHER]);
    let number = |id| BTreeSet::from([mapping.number_of(id).expect("a member")]);
    let mut seen = view(ME, None, &[ME]);
    seen.removed.insert(OTHER);
    assert_eq!(draining(&mapping, &seen), number(OTHER));
    seen.removed.clear();
    seen.alive.get_mut(&ME).expect("alive").drains = true;
    assert_eq!(draining(&mapping, &seen), number(ME));
}

#[test]
fn other_members_that_announce_that_they_serve_are_named_by_their_numbers() {
    let first = next(&Mapping::new(1), &[ME, OTHER]);
    let bytes = encode(&first);
    let serves = |serves| Health {
        serves,
        ..Health::default()
    };
    let stranger = NodeId([9; 20]);
    let mut seen = view(OTHER, Some((first.epoch, &bytes)), &[ME, OTHER]);
    seen.health = [ME, OTHER, stranger].map(|id| (id, serves(true))).into();
    let mut control = control();
    assert!(
        control.serving(&seen).is_empty(),
        "no mapping has numbers yet"
    );
    control.decide(0, &seen);
    let other = first.number_of(OTHER).expect("a member");
    assert_eq!(control.serving(&seen), [other].into());
    seen.health.insert(OTHER, serves(false));
    assert!(control.serving(&seen).is_empty());
}

#[test]
fn announcements_are_of_the_node_and_start_that_they_say() {
    let about = encode_member(&member(ME));
    assert_eq!(announced(ME, 1, &about), Some(member(ME)));
    assert_eq!(announced(OTHER, 1, &about), None);
    assert_eq!(announced(ME, 2, &about), None);
    assert_eq!(announced(ME, 1, &[0xff; 5]), None);
}

/// Three epochs of a cluster, and another one with the number of the last.
fn history() -> (Vec<Mapping>, Mapping) {
    let third = NodeId([3; 20]);
    let first = next(&Mapping::new(1), &[ME]);
    let second = next(&first, &[ME, OTHER]);
    let other = next(&second, &[ME, OTHER, third]);
    let last = next(&second, &[ME, OTHER]);
    assert_ne!(last, other);
    (vec![first, second, last], other)
}

#[test]
fn a_coordinator_that_went_back_changes_nothing() {
    let (all, other) = history();
    let bytes: Vec<Vec<u8>> = all.iter().map(encode).collect();
    let last = view(ME, Some((3, &bytes[2])), &[ME, OTHER]);
    let mut control = control();
    let first = control.decide(0, &last);
    assert!(matches!(first[0], Action::Adopted { .. }), "{first:?}");
    (0..2).for_each(|worker| control.on_told(worker, 3));
    // It was restored: this process has seen the later one.
    let back = View {
        behind: Some(2),
        ..last.clone()
    };
    let went = ["went back from 3 to 2", "forget"];
    check(&mut control, 1_000_000, &back, &went);
    check(&mut control, 2_000_000, &back, &["forget"]);
    // Others have gone on from there: neither the same number nor a later one is what followed.
    let encoded = encode(&other);
    let wrong = view(ME, Some((3, &encoded)), &[ME, OTHER]);
    check(&mut control, 3_000_000, &wrong, &["forget"]);
    let later = encode(&next(&other, &[ME]));
    let later = view(ME, Some((4, &later)), &[ME, OTHER]);
    check(&mut control, 4_000_000, &later, &["forget"]);
    let again = control.decide(5_000_000, &last);
    assert_eq!(brief(&again[0]), "caught up with 3");
}

/// Another node that has not looked meanwhile would not know a later mapping for what follows its own.
#[test]
fn a_leader_plans_nothing_until_other_nodes_have_caught_up() {
    let (all, _) = history();
    let bytes: Vec<Vec<u8>> = all.iter().map(encode).collect();
    let mut control = control();
    control.settings.kept.mapping = Some(Arc::new(all[1].clone()));
    control.is_behind = true;
    // Slots are to move to the other member.
    let seen = view(ME, Some((2, &bytes[1])), &[ME, OTHER]);
    let proposes = |actions: Vec<Action>| {
        let mut all = actions.iter();
        all.any(|action| matches!(action, Action::Propose { .. }))
    };
    let mut at = |us| proposes(control.decide(us, &seen));
    let later = [0, 5_000_000, CAUGHT_UP_US - 1].map(&mut at);
    assert_eq!(later, [false; 3]);
    assert!(at(CAUGHT_UP_US));
}

#[test]
fn a_node_that_starts_knows_the_last_mapping_of_its_earlier_run() {
    let (all, _) = history();
    let bytes: Vec<Vec<u8>> = all.iter().map(encode).collect();
    let start = |is_behind| {
        let mut control = control();
        control.settings.kept.mapping = Some(Arc::new(all[1].clone()));
        control.is_behind = is_behind;
        control
    };
    let stored = |epoch: u64| view(ME, Some((epoch, &bytes[epoch as usize - 1])), &[ME, OTHER]);
    let begins = |is_behind, view: &View<'_>| {
        let actions = start(is_behind).decide(0, view);
        actions.iter().map(brief).next().unwrap_or_default()
    };
    assert_eq!(begins(false, &stored(1)), "went back from 2 to 1");
    // Nor does it begin a new cluster where the coordinator has nothing.
    assert_eq!(
        begins(false, &view(ME, None, &[ME])),
        "went back from 2 to 0"
    );
    assert!(begins(false, &stored(2)).starts_with("adopted 2"));
    assert!(begins(false, &stored(3)).starts_with("adopted 3"));
    // What it noticed in its earlier run holds.
    assert_eq!(begins(true, &stored(1)), "forget");
    assert_eq!(begins(true, &stored(3)), "forget");
    assert_eq!(begins(true, &stored(2)), "caught up with 2");
    let away = View {
        is_current: false,
        ..stored(1)
    };
    assert_eq!(begins(false, &away), "forget");
}
