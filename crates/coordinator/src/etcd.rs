//! The coordinator for several nodes: etcd.
//!
//! One task keeps the lease, the member's key and the view. After any failure it starts again by
//! reading all keys: so a broken connection, a restart of etcd, and a compaction of the history
//! that a watch needs are handled alike. Meanwhile the last view stays, marked as not current.
//!
//! - [`client`]: calls to an etcd of several members
//! - [`grpc`]: one connection
//! - [`messages`]: what is sent over it

mod client;
mod grpc;
mod messages;

use crate::book::{Book, Keys, decode_member, decode_state, encode_member, encode_state};
use crate::{AgreedMapping, Coordinator, Error, Member, Proposed, View, check_about, check_size};
use client::Client;
use grpc::Stream;
use messages::{
    Compare, Done, KeyValue, News, OfLease, Operation, Range, Renewed, Transacted, Transaction,
};
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior, interval, sleep, timeout};

/// A node that does not renew its lease for this long counts as dead. It is the minimum that etcd
/// allows with its default settings.
const LEASE_S: i64 = 2;
const KEEP_ALIVE: Duration = Duration::from_millis(500);
/// Timeout of a request.
const PATIENCE: Duration = Duration::from_secs(2);
/// Delay before starting again.
const PAUSE: Duration = Duration::from_millis(250);

/// The addresses of etcd, and how to connect to them.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// `http://host:port` or `https://host:port`, of some or all members.
    pub endpoints: Vec<String>,
    /// The cluster's name: several can use one etcd.
    pub cluster: String,
    pub user: Option<(String, String)>,
    pub tls: Option<Tls>,
}

/// PEM texts.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// The authorities of etcd's certificate.
    pub authority: String,
    /// Our certificate and its key, if etcd requires one.
    pub identity: Option<(String, String)>,
}

/// See the module's description. While it exists, its node counts as alive.
pub struct Etcd {
    client: Client,
    keys: Keys,
    me: Arc<Mutex<Member>>,
    /// The lease under which this node is a member; 0 for none.
    lease: watch::Receiver<i64>,
    view: watch::Receiver<View>,
    task: JoinHandle<()>,
}

impl Etcd {
    /// Registers a node as alive until the value is dropped. etcd may be unavailable: then the view
    /// stays empty until it can be reached.
    pub async fn open(settings: &Settings, me: Member) -> Result<Self, Error> {
        check_about(&me.about)?;
        let name = &settings.cluster;
        if name.is_empty() || name.len() > 255 || name.contains(['/', '\0']) {
            let what = "a cluster's name has 1 to 255 bytes and no slash";
            return Err(Error::Settings(what.to_owned()));
        }
        let client = Client::new(settings)?;
        within(client.log_in()).await?;
        let keys = Keys::new(name);
        let me = Arc::new(Mutex::new(me));
        let (shown, view) = watch::channel(View::default());
        let (leased, lease) = watch::channel(0);
        let keeper = Keeper {
            client: client.clone(),
            keys: keys.clone(),
            me: Arc::clone(&me),
            view: shown,
            lease: leased,
        };
        let task = tokio::spawn(keeper.run());
        Ok(Self {
            client,
            keys,
            me,
            lease,
            view,
            task,
        })
    }
}

impl fmt::Debug for Etcd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} at etcd, {:?}",
            lock(&self.me).id,
            self.view.borrow()
        )
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Coordinator for Etcd {
    fn view(&self) -> watch::Receiver<View> {
        self.view.clone()
    }

    async fn read(&self) -> Result<Option<AgreedMapping>, Error> {
        let range = Range::of(&self.keys.mapping);
        let found = within(self.client.range(&range)).await?;
        found.kvs.first().map(state_of).transpose()
    }

    async fn propose(&self, expected: u64, mapping: Vec<u8>) -> Result<Proposed, Error> {
        check_size(&mapping)?;
        let lease = *self.lease.borrow();
        if lease == 0 {
            return Ok(Proposed::NotAlive);
        }
        let key = self.keys.mapping.as_str();
        let found = within(self.client.range(&Range::of(key))).await?;
        let found = found.kvs.into_iter().next();
        let current = found.as_ref().map(state_of).transpose()?;
        if current.as_ref().map_or(0, |state| state.epoch) != expected {
            return Ok(Proposed::Behind(current));
        }
        let next = AgreedMapping {
            epoch: expected + 1,
            mapping,
        };
        let revision = found.map_or(0, |kv| kv.mod_revision);
        let own = self.keys.member(lock(&self.me).id);
        let txn = Transaction {
            compare: vec![
                Compare::modified(key, revision),
                Compare::lease(&own, lease),
            ],
            success: vec![Operation::put(key, encode_state(&next), 0)],
            failure: vec![Operation::get(key)],
        };
        let answer = within(self.client.transact(&txn)).await?;
        if answer.succeeded {
            return Ok(Proposed::Taken);
        }
        let state = found_by(&answer).map(state_of).transpose()?;
        Ok(if state == current {
            Proposed::NotAlive
        } else {
            Proposed::Behind(state)
        })
    }

    async fn announce(&self, about: Vec<u8>) -> Result<(), Error> {
        check_about(&about)?;
        // If etcd is unavailable, or we are no member, the next `enter` writes it; but one that is under way may have
        // taken the one before, so the caller has to try again.
        let not_written = || Error::Away("this node is no member".to_owned());
        let me = {
            let mut me = lock(&self.me);
            me.about = about;
            me.clone()
        };
        let lease = *self.lease.borrow();
        if lease == 0 {
            return Err(not_written());
        }
        // A key that is overwritten keeps its creation revision, and so its rank.
        let own = self.keys.member(me.id);
        let txn = Transaction {
            compare: vec![Compare::lease(&own, lease)],
            success: vec![Operation::put(&own, encode_member(&me), lease)],
            failure: Vec::new(),
        };
        let answer = within(self.client.transact(&txn)).await?;
        if answer.succeeded {
            Ok(())
        } else {
            Err(not_written())
        }
    }

    async fn leave(self) {
        self.task.abort();
        let lease = *self.lease.borrow();
        if lease != 0 {
            // If this fails, the lease expires.
            let _gone = within(self.client.revoke(lease)).await;
        }
    }
}

fn lock(me: &Mutex<Member>) -> MutexGuard<'_, Member> {
    me.lock().unwrap_or_else(PoisonError::into_inner)
}

fn state_of(kv: &KeyValue) -> Result<AgreedMapping, Error> {
    let state = decode_state(&kv.value);
    state.ok_or_else(|| Error::Damaged("the mapping in etcd is none".to_owned()))
}

/// The key that the alternative of a transaction has read.
fn found_by(answer: &Transacted) -> Option<&KeyValue> {
    let Some(Done::Ranged(found)) = answer.responses.first()?.done.as_ref() else {
        return None;
    };
    found.kvs.first()
}

async fn within<T>(question: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let late = || Error::Away("no answer in time".to_owned());
    timeout(PATIENCE, question)
        .await
        .unwrap_or_else(|_| Err(late()))
}

/// The task of one node.
struct Keeper {
    client: Client,
    keys: Keys,
    me: Arc<Mutex<Member>>,
    view: watch::Sender<View>,
    lease: watch::Sender<i64>,
}

impl Keeper {
    async fn run(mut self) {
        let mut said = String::new();
        loop {
            let Err(error) = self.follow().await;
            let error = error.to_string();
            if said != error {
                tracing::warn!(%error, "the coordinator is unreachable: membership cannot change");
                said = error;
            }
            self.view.send_modify(|view| {
                view.is_current = false;
                view.is_member = false;
            });
            // Another member of etcd may be better off.
            self.client.give_up().await;
            sleep(PAUSE).await;
        }
    }

    /// Follows etcd until an error.
    async fn follow(&mut self) -> Result<std::convert::Infallible, Error> {
        let (lease, alive) = self.renew().await?;
        self.enter(lease).await?;
        let (book, watch) = self.list().await?;
        self.show(&book, lease);
        if !self.view.borrow().is_member {
            return Err(Error::Away("another node took this node's key".to_owned()));
        }
        tracing::info!(
            lease,
            epoch = self.view.borrow().epoch(),
            "the coordinator is there"
        );
        let mut beat = interval(KEEP_ALIVE);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let streams = Streams {
            lease,
            alive,
            watch,
            beat,
        };
        self.serve(streams, book).await
    }

    /// Our lease, if etcd still has it, or a new one; and the stream that renews it.
    async fn renew(&mut self) -> Result<(i64, Stream<Renewed>), Error> {
        let lease = *self.lease.borrow();
        if lease != 0 {
            let (alive, left) = within(renewed(&self.client, lease)).await?;
            if left > 0 {
                return Ok((lease, alive));
            }
            // It has expired, and our key with it. While etcd cannot be reached the lease may
            // still exist: giving it up would make others plan without us for no reason.
            self.lease.send_replace(0);
        }
        let lease = within(self.client.grant(LEASE_S)).await?;
        let (alive, left) = within(renewed(&self.client, lease)).await?;
        if left <= 0 {
            return Err(Error::Away("the lease has expired".to_owned()));
        }
        Ok((lease, alive))
    }

    /// Puts our key under the lease. If another process has the key, that one has to leave first,
    /// unless it is an earlier run of this node.
    async fn enter(&mut self, lease: i64) -> Result<(), Error> {
        let me = lock(&self.me).clone();
        let key = self.keys.member(me.id);
        let found = within(self.client.range(&Range::of(&key))).await?;
        let (revision, other) = match found.kvs.first() {
            Some(kv) if kv.lease == lease => {
                self.lease.send_replace(lease);
                return Ok(());
            }
            Some(kv) => (kv.mod_revision, decode_member(me.id, &kv.value)),
            None => (0, None),
        };
        if other.is_some_and(|other| !other.gives_way_to(&me)) {
            self.lease.send_replace(0);
            let _gone = within(self.client.revoke(lease)).await;
            let what = "another node with our id is a member: was a data directory copied?";
            return Err(Error::Away(what.to_owned()));
        }
        if revision != 0 {
            // An overwritten key keeps its creation revision, but a restarted node has to be the
            // youngest: so the old key is deleted first.
            let txn = Transaction {
                compare: vec![Compare::modified(&key, revision)],
                success: vec![Operation::delete(&key)],
                failure: Vec::new(),
            };
            within(self.client.transact(&txn)).await?;
        }
        let txn = Transaction {
            compare: vec![Compare::created(&key, 0)],
            success: vec![Operation::put(&key, encode_member(&me), lease)],
            failure: Vec::new(),
        };
        if !within(self.client.transact(&txn)).await?.succeeded {
            return Err(Error::Away(
                "another node with this id registered meanwhile".to_owned(),
            ));
        }
        self.lease.send_replace(lease);
        Ok(())
    }

    /// Reads all keys, and watches later changes.
    async fn list(&mut self) -> Result<(Book, Stream<News>), Error> {
        let prefix = self.keys.prefix.as_str();
        let found = within(self.client.range(&Range::below(prefix))).await?;
        let revision = found.header.map_or(0, |header| header.revision);
        let mut book = Book::new(self.keys.clone());
        for kv in &found.kvs {
            note(&mut book, kv);
        }
        let watch = within(self.client.watch(prefix, revision + 1)).await?;
        Ok((book, watch))
    }

    fn show(&self, book: &Book, lease: i64) {
        self.view
            .send_modify(|view| book.show(lock(&self.me).id, lease, view));
    }

    async fn serve(
        &mut self,
        mut streams: Streams,
        mut book: Book,
    ) -> Result<std::convert::Infallible, Error> {
        let lease = streams.lease;
        let mut unanswered = 0;
        loop {
            tokio::select! {
                _ = streams.beat.tick() => {
                    unanswered += 1;
                    if unanswered > LEASE_S * 1000 / KEEP_ALIVE.as_millis() as i64 {
                        return Err(Error::Away("it does not answer".to_owned()));
                    }
                    streams.alive.say(&OfLease { id: lease })?;
                }
                kept = streams.alive.next() => match kept? {
                    Some(kept) if kept.ttl > 0 => unanswered = 0,
                    Some(_) => return Err(Error::Away("the lease has expired".to_owned())),
                    None => return Err(Error::Away("it has closed the connection".to_owned())),
                },
                news = streams.watch.next() => {
                    let Some(news) = news? else {
                        return Err(Error::Away("it has closed the connection".to_owned()));
                    };
                    if news.canceled {
                        return Err(Error::Away(format!("no watch: {}", news.cancel_reason)));
                    }
                    for event in &news.events {
                        match (event.kind, &event.kv) {
                            (0, Some(kv)) => note(&mut book, kv),
                            (_, Some(kv)) => book.delete(&kv.key),
                            (_, None) => {}
                        }
                    }
                    self.show(&book, lease);
                    if !self.view.borrow().is_member {
                        return Err(Error::Away("another node took this node's key".to_owned()));
                    }
                }
            }
        }
    }
}

struct Streams {
    lease: i64,
    alive: Stream<Renewed>,
    watch: Stream<News>,
    beat: Interval,
}

/// Begins to renew a lease, and tells how many seconds are left; 0: it has expired.
async fn renewed(client: &Client, lease: i64) -> Result<(Stream<Renewed>, i64), Error> {
    let mut alive = client.renewing().await?;
    alive.say(&OfLease { id: lease })?;
    let left = alive.next().await?.map_or(0, |renewed| renewed.ttl);
    Ok((alive, left))
}

fn note(book: &mut Book, kv: &KeyValue) {
    if let Err(what) = book.put(&kv.key, &kv.value, kv.create_revision, kv.lease) {
        tracing::warn!(what, "invalid key in etcd");
    }
}
