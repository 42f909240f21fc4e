//! The coordinator for several nodes: etcd.
//!
//! One task keeps the lease, the member's key and the view. After any failure it starts again by
//! reading all keys: so a broken connection, a restart of etcd, and a compaction of the history
//! that a watch needs are handled alike. Meanwhile the last view stays, marked as not current.

use crate::book::{Book, Keys, decode_member, decode_state, encode_member, encode_state};
use crate::{AgreedMapping, Coordinator, Error, Member, Proposed, View, check_about, check_size};
use etcd_client::{
    Certificate, Client, Compare, CompareOp, ConnectOptions, EventType, GetOptions, Identity,
    KeyValue, LeaseKeepAliveStream, LeaseKeeper, PutOptions, TlsOptions, Txn, TxnOp, TxnOpResponse,
    WatchOptions, WatchStream,
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
/// Codes of gRPC.
const INVALID_ARGUMENT: i32 = 3;
const PERMISSION_DENIED: i32 = 7;
const FAILED_PRECONDITION: i32 = 9;
const UNAUTHENTICATED: i32 = 16;
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
    /// The authority of etcd's certificate.
    pub authority: Option<String>,
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
        let options = options(settings);
        let client = Client::connect(&settings.endpoints, Some(options)).await;
        let client = client.map_err(not_in)?;
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
        let mut client = self.client.clone();
        let mut found = within(client.get(self.keys.mapping.as_str(), None)).await?;
        found.take_kvs().first().map(state_of).transpose()
    }

    async fn propose(&self, expected: u64, mapping: Vec<u8>) -> Result<Proposed, Error> {
        check_size(&mapping)?;
        let lease = *self.lease.borrow();
        if lease == 0 {
            return Ok(Proposed::NotAlive);
        }
        let mut client = self.client.clone();
        let key = self.keys.mapping.as_str();
        let mut found = within(client.get(key, None)).await?;
        let found = found.take_kvs().into_iter().next();
        let current = found.as_ref().map(state_of).transpose()?;
        if current.as_ref().map_or(0, |state| state.epoch) != expected {
            return Ok(Proposed::Behind(current));
        }
        let next = AgreedMapping {
            epoch: expected + 1,
            mapping,
        };
        let revision = found.map_or(0, |kv| kv.mod_revision());
        let own = self.keys.member(lock(&self.me).id);
        let unchanged = [
            Compare::mod_revision(key, CompareOp::Equal, revision),
            Compare::lease(own.as_str(), CompareOp::Equal, lease),
        ];
        let txn = Txn::new()
            .when(unchanged)
            .and_then([TxnOp::put(key, encode_state(&next), None)])
            .or_else([TxnOp::get(key, None)]);
        let answer = within(client.txn(txn)).await?;
        if answer.succeeded() {
            return Ok(Proposed::Taken);
        }
        let state = match answer.op_responses().first() {
            Some(TxnOpResponse::Get(found)) => found.kvs().first().map(state_of).transpose()?,
            _ => None,
        };
        Ok(if state == current {
            Proposed::NotAlive
        } else {
            Proposed::Behind(state)
        })
    }

    async fn announce(&self, about: Vec<u8>) -> Result<(), Error> {
        check_about(&about)?;
        // If etcd is unavailable, or we are no member, the next `enter` writes it.
        let me = {
            let mut me = lock(&self.me);
            me.about = about;
            me.clone()
        };
        let lease = *self.lease.borrow();
        if lease == 0 {
            return Ok(());
        }
        // A key that is overwritten keeps its creation revision, and so its rank.
        let own = self.keys.member(me.id);
        let ours = Compare::lease(own.as_str(), CompareOp::Equal, lease);
        let options = PutOptions::new().with_lease(lease);
        let put = TxnOp::put(own.as_str(), encode_member(&me), Some(options));
        let txn = Txn::new().when([ours]).and_then([put]);
        within(self.client.clone().txn(txn)).await.map(|_| ())
    }

    async fn leave(self) {
        self.task.abort();
        let lease = *self.lease.borrow();
        if lease != 0 {
            // If this fails, the lease expires.
            let _gone = within(self.client.clone().lease_revoke(lease)).await;
        }
    }
}

fn lock(me: &Mutex<Member>) -> MutexGuard<'_, Member> {
    me.lock().unwrap_or_else(PoisonError::into_inner)
}

fn state_of(kv: &KeyValue) -> Result<AgreedMapping, Error> {
    let state = decode_state(kv.value());
    state.ok_or_else(|| Error::Damaged("the mapping in etcd is none".to_owned()))
}

fn options(settings: &Settings) -> ConnectOptions {
    let mut options = ConnectOptions::new()
        .with_connect_timeout(PATIENCE)
        .with_keep_alive(PATIENCE, PATIENCE)
        // A member of etcd without a leader reports no stale state.
        .with_require_leader(true)
        .with_auto_token_refresh(true);
    if let Some((name, password)) = &settings.user {
        options = options.with_user(name, password);
    }
    if let Some(tls) = &settings.tls {
        let mut with = TlsOptions::new();
        if let Some(authority) = &tls.authority {
            with = with.ca_certificate(Certificate::from_pem(authority));
        }
        if let Some((certificate, key)) = &tls.identity {
            with = with.identity(Identity::from_pem(certificate, key));
        }
        options = options.with_tls(with);
    }
    options
}

fn away(error: etcd_client::Error) -> Error {
    Error::Away(error.to_string())
}

/// An error of connecting, which contacts etcd only to log in with a name and a password.
fn not_in(error: etcd_client::Error) -> Error {
    match &error {
        etcd_client::Error::GRpcStatus(status) => match status.code() as i32 {
            INVALID_ARGUMENT | PERMISSION_DENIED | FAILED_PRECONDITION | UNAUTHENTICATED => {
                Error::Settings(format!(
                    "etcd does not let the node in: {}",
                    status.message()
                ))
            }
            _ => away(error),
        },
        _ => Error::Settings(error.to_string()),
    }
}

async fn within<T>(
    question: impl Future<Output = Result<T, etcd_client::Error>>,
) -> Result<T, Error> {
    match timeout(PATIENCE, question).await {
        Ok(answer) => answer.map_err(away),
        Err(_) => Err(Error::Away("no answer in time".to_owned())),
    }
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
            sleep(PAUSE).await;
        }
    }

    /// Follows etcd until an error.
    async fn follow(&mut self) -> Result<std::convert::Infallible, Error> {
        let (keeper, alive) = self.renew().await?;
        let lease = keeper.id();
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
            keeper,
            alive,
            watch,
            beat,
        };
        self.serve(streams, book).await
    }

    /// Our lease, if etcd still has it, or a new one.
    async fn renew(&mut self) -> Result<(LeaseKeeper, LeaseKeepAliveStream), Error> {
        let lease = *self.lease.borrow();
        if lease != 0 {
            let kept = timeout(PATIENCE, self.client.lease_keep_alive(lease)).await;
            match kept.map_err(|_| Error::Away("no answer in time".to_owned()))? {
                Ok(kept) => return Ok(kept),
                // It has expired, and our key with it. While etcd cannot be reached the lease may
                // still exist: giving it up would make others plan without us for no reason.
                Err(etcd_client::Error::LeaseKeepAliveError(_)) => self.lease.send_replace(0),
                Err(error) => return Err(away(error)),
            };
        }
        let granted = within(self.client.lease_grant(LEASE_S, None)).await?;
        within(self.client.lease_keep_alive(granted.id())).await
    }

    /// Puts our key under the lease. If another process has the key, that one has to leave first,
    /// unless it is an earlier run of this node.
    async fn enter(&mut self, lease: i64) -> Result<(), Error> {
        let me = lock(&self.me).clone();
        let key = self.keys.member(me.id);
        let found = within(self.client.get(key.as_str(), None)).await?;
        let (revision, other) = match found.kvs().first() {
            Some(kv) if kv.lease() == lease => {
                self.lease.send_replace(lease);
                return Ok(());
            }
            Some(kv) => (kv.mod_revision(), decode_member(me.id, kv.value())),
            None => (0, None),
        };
        if other.is_some_and(|other| other.incarnation >= me.incarnation) {
            self.lease.send_replace(0);
            let _gone = within(self.client.lease_revoke(lease)).await;
            let what = "another node with our id is a member: was a data directory copied?";
            return Err(Error::Away(what.to_owned()));
        }
        if revision != 0 {
            // An overwritten key keeps its creation revision, but a restarted node has to be the
            // youngest: so the old key is deleted first.
            let unchanged = Compare::mod_revision(key.as_str(), CompareOp::Equal, revision);
            let gone = TxnOp::delete(key.as_str(), None);
            within(
                self.client
                    .txn(Txn::new().when([unchanged]).and_then([gone])),
            )
            .await?;
        }
        let options = PutOptions::new().with_lease(lease);
        let put = TxnOp::put(key.as_str(), encode_member(&me), Some(options));
        let nobody = Compare::create_revision(key.as_str(), CompareOp::Equal, 0);
        let txn = Txn::new().when([nobody]).and_then([put]);
        if !within(self.client.txn(txn)).await?.succeeded() {
            return Err(Error::Away(
                "another node with this id registered meanwhile".to_owned(),
            ));
        }
        self.lease.send_replace(lease);
        Ok(())
    }

    /// Reads all keys, and watches later changes.
    async fn list(&mut self) -> Result<(Book, WatchStream), Error> {
        let prefix = self.keys.prefix.as_str();
        let options = GetOptions::new().with_prefix();
        let found = within(self.client.get(prefix, Some(options))).await?;
        let revision = found.header().map_or(0, |header| header.revision());
        let mut book = Book::new(self.keys.clone());
        for kv in found.kvs() {
            note(&mut book, kv);
        }
        let options = WatchOptions::new()
            .with_prefix()
            .with_start_revision(revision + 1);
        let watch = within(self.client.watch(prefix, Some(options))).await?;
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
        let lease = streams.keeper.id();
        let mut unanswered = 0;
        loop {
            tokio::select! {
                _ = streams.beat.tick() => {
                    unanswered += 1;
                    if unanswered > LEASE_S * 1000 / KEEP_ALIVE.as_millis() as i64 {
                        return Err(Error::Away("it does not answer".to_owned()));
                    }
                    streams.keeper.keep_alive().await.map_err(away)?;
                }
                kept = streams.alive.message() => match kept.map_err(away)? {
                    Some(kept) if kept.ttl() > 0 => unanswered = 0,
                    Some(_) => return Err(Error::Away("the lease has expired".to_owned())),
                    None => return Err(Error::Away("it has closed the connection".to_owned())),
                },
                news = streams.watch.message() => {
                    let Some(news) = news.map_err(away)? else {
                        return Err(Error::Away("it has closed the connection".to_owned()));
                    };
                    if news.canceled() {
                        return Err(Error::Away(format!("no watch: {}", news.cancel_reason())));
                    }
                    for event in news.events() {
                        match (event.event_type(), event.kv()) {
                            (EventType::Put, Some(kv)) => note(&mut book, kv),
                            (EventType::Delete, Some(kv)) => book.delete(kv.key()),
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
    keeper: LeaseKeeper,
    alive: LeaseKeepAliveStream,
    watch: WatchStream,
    beat: Interval,
}

fn note(book: &mut Book, kv: &KeyValue) {
    if let Err(what) = book.put(kv.key(), kv.value(), kv.create_revision(), kv.lease()) {
        tracing::warn!(what, "invalid key in etcd");
    }
}
