//! Durability at the worker that coordinates saves, driven by hand.

use super::*;
use rufous_kernel::placement::Placement;

struct Rig {
    durability: Durability,
    kernel: Kernel,
    shared: Shared,
    gathers: u64,
}

impl Rig {
    /// The worker that coordinates saves, while it loads.
    fn new(config: &Config) -> Self {
        let commands = crate::command::table().len();
        let mut rig = Self {
            durability: Durability::new(COORDINATOR),
            kernel: Worker::new(COORDINATOR, Placement::new(1), commands, 1),
            shared: Shared::new(1, 1, "0".repeat(40), 0, 0),
            gathers: 0,
        };
        rig.durability.configure(config, &mut rig.kernel);
        let begun = rig.durability.begin(at(10), config, &mut rig.kernel);
        assert_eq!(begun == Loaded::All, !config.folder);
        rig
    }

    /// Orders a save; returns the answers that there are.
    fn order(&mut self, order: SaveOrder) -> Vec<SaveAnswer> {
        self.gathers += 1;
        let asked = Asked::new(order, COORDINATOR, Some(self.gathers));
        self.durability.orders.on_order(asked);
        self.durability.take_orders(at(20), &mut self.kernel);
        self.answers()
    }

    fn answers(&mut self) -> Vec<SaveAnswer> {
        let answers = self.durability.orders.take_answers();
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    fn event(&mut self, event: Event) -> Loaded {
        let (kernel, shared) = (&mut self.kernel, &self.shared);
        self.durability.on_event(at(30), event, kernel, shared)
    }
}

fn at(mono_us: u64) -> Now {
    Now {
        mono_us,
        ..Now::default()
    }
}

fn with_folder() -> Config {
    Config {
        folder: true,
        appendonly: true,
        ..Config::in_memory()
    }
}

#[test]
fn without_a_folder_there_is_nothing_to_load_and_no_save() {
    let mut rig = Rig::new(&Config::in_memory());
    assert!(rig.durability.has_begun() && !rig.durability.is_loading());
    assert_eq!(rig.order(SaveOrder::Save), [SaveAnswer::NoFolder]);
    let (kernel, shared) = (&mut rig.kernel, &rig.shared);
    assert!(rig.durability.all_quiet(at(40), kernel));
    assert!(rig.durability.close_logs(at(40), kernel, shared));
    assert!(rig.durability.close_log(at(40), kernel, shared));
}

#[test]
fn nothing_is_saved_while_data_is_loaded() {
    let mut rig = Rig::new(&with_folder());
    assert!(rig.durability.is_loading());
    let [SaveAnswer::Failed(why)] = &rig.order(SaveOrder::Save)[..] else {
        panic!("one answer");
    };
    assert_eq!(why, "the node is still loading");
    // What is not loaded yet is on disk.
    let order = SaveOrder::BeforeStopUnlessLogged;
    assert_eq!(rig.order(order), [SaveAnswer::Saved]);
    assert_eq!(
        rig.order(SaveOrder::Unpin(5)),
        [SaveAnswer::Unpinned(false)]
    );
}

#[test]
fn a_worker_is_served_when_it_has_loaded() {
    let mut rig = Rig::new(&with_folder());
    let planned = Event::LoadPlanned { bytes: 7 };
    assert_eq!(rig.event(planned), Loaded::Nothing);
    assert_eq!(rig.shared.loading.total_bytes(), 7);
    assert_eq!(rig.event(Event::Serving), Loaded::All);
    assert!(!rig.durability.is_loading());
    let lost = Event::Uncommitted(Until::Logged);
    assert_eq!(rig.event(lost), Loaded::Lost(Until::Logged));
}

#[test]
fn a_save_that_fails_answers_those_that_wait_for_it() {
    let mut rig = Rig::new(&with_folder());
    rig.event(Event::Serving);
    let asked = |order| Asked::new(order, COORDINATOR, Some(9));
    rig.durability.waiting.push(asked(SaveOrder::Save));
    rig.durability.switching.push(asked(SaveOrder::SwitchLog));
    rig.durability.stop_save = StopSave::UnderWay;
    let (kernel, shared) = (&mut rig.kernel, &rig.shared);
    let ended = Err("no room".to_owned());
    rig.durability.on_save_ended(at(40), ended, kernel, shared);
    let failed = || SaveAnswer::Failed("no room".into());
    assert_eq!(rig.answers(), [failed(), failed()]);
    assert_eq!(rig.durability.stop_save, StopSave::Over);
    assert_eq!(rig.shared.loss(), Some("no room"));
    assert!(rig.durability.info.node.last_save_failed);
}

#[test]
fn a_save_that_ends_is_counted() {
    let mut rig = Rig::new(&with_folder());
    rig.event(Event::Serving);
    let asked = Asked::new(SaveOrder::Save, COORDINATOR, Some(9));
    rig.durability.waiting.push(asked);
    let (kernel, shared) = (&mut rig.kernel, &rig.shared);
    rig.durability.on_save_ended(at(40), Ok(3), kernel, shared);
    assert_eq!(rig.answers(), [SaveAnswer::Saved]);
    let node = &rig.durability.info.node;
    assert_eq!((node.saves, node.generation, node.failures), (1, 3, 0));
}
