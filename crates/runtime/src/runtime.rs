//! Starting a node's threads, and the handles to them.

use crate::clock::Clock;
use crate::config::{Config, Listen};
use crate::control::Control;
use crate::dial::Dialling;
use crate::disk::{Disk, Folder};
use crate::fd_limit::{FdLimit, raise_fd_limit};
use crate::inbox::{Inbox, Incoming, Order};
use crate::listen::{self, Bound};
use crate::local::{LocalConnection, PIPE_BYTES};
use crate::mail::Teller;
use crate::reaper::Reaper;
use crate::ring::{Bell, Post, mesh};
use crate::shared::Shared;
use crate::sockets::{Bounds, Sockets};
use crate::stats::{Snapshot, WorkerStats};
use crate::thread;
use crate::worker::{Parts, Worker};
use rufous_base::limits::MAX_WORKERS;
use rufous_base::{Actor, ConnInfo, Origin, WorkerId};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;
use tokio::sync::mpsc::unbounded_channel;

/// The smallest turn buffer: room for a first read of several connections.
const LEAST_TURN: usize = 64 * 1024;

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("{workers} workers: choose 1 to {MAX_WORKERS}")]
    Workers { workers: usize },
    #[error("cannot listen on {at}: {source}")]
    Listen { at: String, source: io::Error },
    #[error("TLS needs a certificate")]
    NoCertificate,
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
}

/// A running node. Dropping it stops the node and waits for its threads.
pub struct Runtime<A: Actor> {
    handle: Handle,
    teller: Teller<A::Message>,
    threads: Vec<JoinHandle<()>>,
}

/// What other threads may do with a node; cheap to clone.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
    addresses: Arc<[Listen]>,
    redirected_addresses: Arc<[Listen]>,
    peer_addresses: Arc<[Listen]>,
    control: tokio::runtime::Handle,
    fd_limit: FdLimit,
}

/// Starts a node: `make` is called once per worker, on that worker's thread, so
/// that an actor's memory is near its core and the actor need not be `Send`.
pub fn start<A, F>(config: Config, make: F) -> Result<Runtime<A>, StartError>
where
    A: Actor + 'static,
    F: Fn(WorkerId) -> A + Send + Sync + 'static,
{
    let workers = config.workers;
    if !(1..=MAX_WORKERS).contains(&workers) {
        return Err(StartError::Workers { workers });
    }
    let fd_limit = raise_fd_limit(config.max_clients);
    let mut listeners = Vec::new();
    let addresses = bind_all(&config, &config.listen, Origin::Client, &mut listeners)?;
    let redirected_addresses = bind_all(
        &config,
        &config.listen_redirected,
        Origin::Redirected,
        &mut listeners,
    )?;
    let peer_addresses = bind_all(&config, &config.listen_peers, Origin::Peer, &mut listeners)?;
    let bells: Arc<[Bell]> = (0..workers).map(|_| Bell::new()).collect();
    let stats: Vec<Arc<WorkerStats>> = (0..workers).map(|_| Arc::default()).collect();
    let inboxes = (0..workers).map(|w| Arc::new(Inbox::new(Arc::clone(&bells), w)));
    let (report, reports) = unbounded_channel();
    let shared = Arc::new(Shared::new(
        inboxes.collect(),
        stats.clone(),
        config.max_clients,
        report,
    ));
    let (reaper, reaper_thread) = Reaper::start().map_err(StartError::Thread)?;
    let control_runtime = current_thread_runtime()?;
    let mut runtime = Runtime {
        handle: Handle {
            shared: Arc::clone(&shared),
            addresses,
            redirected_addresses,
            peer_addresses,
            control: control_runtime.handle().clone(),
            fd_limit,
        },
        teller: Teller::new(&shared.inboxes),
        threads: Vec::new(),
    };
    let control = Control {
        shared: Arc::clone(&shared),
        reports,
        listeners,
        dialling: Dialling {
            tls: config.dial_tls.clone(),
            keepalive: config.keepalive.map(listen::keepalive),
        },
        farewell: config.farewell,
        drain: config.drain,
    };
    let posts = mesh::<A::Message>(&bells, &stats, config.ring_messages);
    let started = start_workers(&mut runtime, &config, posts, reaper, make).and_then(|()| {
        runtime.spawn_thread("rufous-control".into(), move || {
            control_runtime.block_on(control.run());
            // Futures that the caller has spawned end here.
            control_runtime.shutdown_background();
        })
    });
    if let Err(error) = started {
        // Without a control thread nothing else would end the running workers.
        shared.order_all(|| Order::Finish(Instant::now()));
        return Err(error);
    }
    runtime.threads.push(reaper_thread);
    Ok(runtime)
}

/// Returns where these listeners listen.
fn bind_all(
    config: &Config,
    listen: &[Listen],
    origin: Origin,
    listeners: &mut Vec<Bound>,
) -> Result<Arc<[Listen]>, StartError> {
    let bind = |at| {
        let bound = listen::bind(at, config, origin)?;
        let address = bound.address().map_err(StartError::Thread)?;
        listeners.push(bound);
        Ok(address)
    };
    listen.iter().map(bind).collect()
}

fn start_workers<A, F>(
    runtime: &mut Runtime<A>,
    config: &Config,
    posts: Vec<Post<A::Message>>,
    reaper: Reaper,
    make: F,
) -> Result<(), StartError>
where
    A: Actor + 'static,
    F: Fn(WorkerId) -> A + Send + Sync + 'static,
{
    let shared = Arc::clone(&runtime.handle.shared);
    let make = Arc::new(make);
    let cores = cores(config);
    let clock = Clock::new();
    // A thread starts where its parent may run: disk threads shall not share
    // the core that their worker is pinned to.
    let cpus = rustix::thread::sched_getaffinity(None).ok();
    let cpus = cpus.filter(|_| !cores.is_empty());
    let folder = Arc::new(Folder::new(config.data_dir.clone(), cpus));
    let bounds = Bounds {
        read_bytes: config.read_bytes.max(1),
        output_high_water: config.output_high_water,
        output_hard_limit: config.output_hard_limit,
        output_total_limit: config.output_total_limit,
    };
    for (n, post) in posts.into_iter().enumerate() {
        let tokio = current_thread_runtime()?;
        let inbox = Arc::clone(&shared.inboxes[n]);
        let stats = Arc::clone(&shared.stats[n]);
        let parts = Parts {
            id: WorkerId(n as u16),
            shared: Arc::clone(&shared),
            sockets: Sockets::new(bounds, Arc::clone(&inbox), Arc::clone(&stats)),
            disk: Disk::new(
                n,
                Arc::clone(&folder),
                Arc::clone(&inbox),
                Arc::clone(&stats),
            ),
            stats,
            inbox,
            post,
            teller: runtime.teller.clone(),
            reaper: reaper.clone(),
            clock,
            turn_bytes: config.turn_bytes.max(LEAST_TURN),
        };
        let core = cores.get(n).copied();
        let make = Arc::clone(&make);
        runtime.spawn_thread(format!("rufous-{n}"), move || {
            if let Some(core) = core
                && !core_affinity::set_for_current(core)
            {
                tracing::warn!(worker = n, core = core.id, "cannot pin a worker");
            }
            let actor = make(parts.id);
            tokio.block_on(Worker::new(actor, parts).run());
        })?;
    }
    Ok(())
}

fn current_thread_runtime() -> Result<tokio::runtime::Runtime, StartError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(StartError::Thread)
}

/// A core for each worker, or none at all: two workers on one core would be
/// worse than what the kernel decides.
fn cores(config: &Config) -> Vec<core_affinity::CoreId> {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    if config.pin && config.workers <= cores.len() {
        cores
    } else {
        Vec::new()
    }
}

impl<A: Actor> Runtime<A> {
    fn spawn_thread(
        &mut self,
        name: String,
        run: impl FnOnce() + Send + 'static,
    ) -> Result<(), StartError> {
        let thread = thread::spawn(name, run).map_err(StartError::Thread)?;
        self.threads.push(thread);
        Ok(())
    }

    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Sends messages to workers from other threads.
    pub fn teller(&self) -> Teller<A::Message> {
        self.teller.clone()
    }

    /// Waits until the node has stopped, for whatever reason.
    pub fn join(mut self) {
        self.join_threads();
    }

    fn join_threads(&mut self) {
        for thread in self.threads.drain(..) {
            // A panic has aborted the process before it could get here.
            let _ = thread.join();
        }
    }
}

impl<A: Actor> Drop for Runtime<A> {
    fn drop(&mut self) {
        self.handle.stop();
        self.join_threads();
    }
}

impl<A: Actor> std::ops::Deref for Runtime<A> {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}

impl Handle {
    /// Connects from inside the process, without a socket.
    pub fn connect(&self) -> io::Result<LocalConnection> {
        if self.shared.is_stopping() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let info = ConnInfo {
            peer: "internal".into(),
            local: "internal".into(),
            is_local: true,
            origin: Origin::Internal,
            certificate: None,
        };
        self.shared.deal(Incoming::Local(theirs), info);
        Ok(LocalConnection::new(ours))
    }

    /// Runs a future on the control thread; it is dropped when the node has stopped.
    pub fn spawn<F>(&self, future: F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.control.spawn(future)
    }

    /// The same for what has something left to do once the node stops (see
    /// [`Handle::stopping`]): the end of the node waits for it, for as long as
    /// stopping may take.
    pub fn spawn_to_end<F>(&self, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.shared.wait_for(self.control.spawn(future));
    }

    /// Is ready when a stop of the node was requested.
    pub fn stopping(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stopping = self.shared.stopping();
        async move {
            // Without a sender the node is gone.
            let _ = stopping.wait_for(|stopping| *stopping).await;
        }
    }

    /// Is ready when the node stops and serves no client any more: see
    /// [`farewell`](crate::Config::farewell).
    pub fn is_left(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut left = self.shared.left_by_all();
        async move {
            // Without a sender the node is gone.
            let _ = left.wait_for(|left| *left).await;
        }
    }

    /// Requests the stop of the node: it accepts no more connections, actors finish
    /// pending work, replies leave. Returns at once; see [`Runtime::join`].
    pub fn stop(&self) {
        self.shared.stop();
    }

    pub fn is_stopping(&self) -> bool {
        self.shared.is_stopping()
    }

    /// Where the node listens, with the ports it was given.
    pub fn addresses(&self) -> &[Listen] {
        &self.addresses
    }

    /// The addresses for clients that follow redirections to other nodes.
    pub fn redirected_addresses(&self) -> &[Listen] {
        &self.redirected_addresses
    }

    /// Likewise for other nodes.
    pub fn peer_addresses(&self) -> &[Listen] {
        &self.peer_addresses
    }

    /// The file descriptors that this process may have.
    pub fn fd_limit(&self) -> FdLimit {
        self.fd_limit
    }

    pub fn set_max_clients(&self, most: usize) {
        self.shared.set_max_clients(most);
    }

    pub fn stats(&self) -> Snapshot {
        self.shared.snapshot()
    }
}
