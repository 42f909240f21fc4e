//! Metrics and health over HTTP, on a port of its own, served by the control
//! thread: no worker ever sees a request of it.
//!
//! - [`metrics`]: figures as Prometheus text
//! - [`tables`]: their names, help texts and values
//! - [`text`]: the Prometheus text format
//!
//! `/healthz` tells whether every worker still takes turns, `/readyz` whether
//! clients are served (in a cluster also whether all slots have had all their copies
//! since the node has started), `/metrics` what the node counts. Connections, their
//! requests and their lives are bounded.

mod metrics;
mod tables;
mod text;

use crate::node::Node;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rufous::runtime::Handle;
use rufous_server::front::shared::Shared;
use rufous_server::identity;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::{Instant, sleep, timeout};

/// Connections at a time; more are closed at once.
const MOST_CONNECTIONS: usize = 64;

/// Bytes of a request's head, and with it of all that is kept of a request.
const MOST_REQUEST: usize = 16 * 1024;

/// How long the head of a request may take, and a connection may be silent.
const HEAD_LIMIT: Duration = Duration::from_secs(30);

/// After this, whoever is connected has to connect anew.
const LIFE_LIMIT: Duration = Duration::from_secs(600);

/// How long workers have to answer. They look at the board ten times a second,
/// and a command that keeps one busy for longer than this is no good health.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// How often it is looked whether they have.
const LOOK: Duration = Duration::from_millis(10);

/// For so long the same figures are shown, however many ask.
const FRESH: Duration = Duration::from_secs(1);

/// After accepting failed, for want of files.
const REST: Duration = Duration::from_millis(200);

struct Admin {
    node: Handle,
    shared: Arc<Shared>,
    /// Holds back who asks while figures are collected, so that they are
    /// collected once for all of them.
    collected: Mutex<Option<Collected>>,
}

#[derive(Clone, Copy)]
struct Collected {
    at: Instant,
    round: u64,
}

/// Serves on `listener` until the node has stopped.
pub fn serve(listener: std::net::TcpListener, node: &Node) -> std::io::Result<SocketAddr> {
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let admin = Arc::new(Admin {
        node: node.handle(),
        shared: Arc::clone(&node.shared),
        collected: Mutex::new(None),
    });
    let routes = Router::new()
        .route("/", get(index))
        .route("/metrics", get(show_metrics))
        .route("/healthz", get(show_health))
        .route("/readyz", get(show_readiness))
        .with_state(admin);
    node.handle().spawn(async move {
        match TcpListener::from_std(listener) {
            Ok(listener) => accept(listener, routes).await,
            Err(error) => tracing::error!(%error, "cannot serve metrics and health"),
        }
    });
    Ok(address)
}

async fn accept(listener: TcpListener, routes: Router) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "cannot accept on the admin port");
                sleep(REST).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            continue;
        };
        let routes = routes.clone();
        tokio::spawn(async move {
            let _ = timeout(LIFE_LIMIT, converse(stream, routes)).await;
            drop(place);
        });
    }
}

async fn converse(stream: TcpStream, routes: Router) {
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_buf_size(MOST_REQUEST)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes))
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection to the admin port ended early");
    }
}

impl Admin {
    /// Has the workers put their figures on the board, unless they just did.
    /// Returns the round in which they did, or did not in time.
    async fn collect(&self) -> u64 {
        let mut collected = self.collected.lock().await;
        if let Some(last) = *collected
            && last.at.elapsed() < FRESH
        {
            return last.round;
        }
        let round = self.shared.board.ask();
        let deadline = Instant::now() + ANSWER_LIMIT;
        // Workers of a node that stops end one by one: nothing to wait for.
        while !self.shared.board.all_have_answered(round)
            && !self.node.is_stopping()
            && Instant::now() < deadline
        {
            sleep(LOOK).await;
        }
        *collected = Some(Collected {
            at: Instant::now(),
            round,
        });
        round
    }

    /// The workers that do not answer, if there are any.
    async fn silent(&self) -> Option<String> {
        let round = self.collect().await;
        let silent: Vec<_> = (0..self.shared.workers)
            .filter(|worker| !self.shared.board.has_answered(*worker, round))
            .collect();
        let answer = !silent.is_empty() && !self.node.is_stopping();
        let limit = ANSWER_LIMIT.as_secs();
        answer.then(|| format!("no answer from workers {silent:?} within {limit} s\n"))
    }
}

/// The metrics of a node, for the reference: name, type, labels and help.
#[cfg(test)]
pub(crate) fn declared(
    node: &Node,
) -> Vec<(String, &'static str, &'static [&'static str], String)> {
    let families = metrics::collect(&node.handle(), &node.shared, 0).families;
    families
        .into_iter()
        .map(|of| (of.name.clone(), text::kind(&of.name), of.labels, of.help))
        .collect()
}

async fn index() -> Html<String> {
    Html(format!(
        "<!doctype html><title>Rufous</title><h1>Rufous {}</h1><ul>\
         <li><a href=\"/metrics\">/metrics</a>: figures for Prometheus\
         <li><a href=\"/healthz\">/healthz</a>: whether every worker answers\
         <li><a href=\"/readyz\">/readyz</a>: whether clients are served</ul>\n",
        identity::VERSION
    ))
}

async fn show_metrics(State(admin): State<Arc<Admin>>) -> Response {
    let round = admin.collect().await;
    let text = metrics::render(&admin.node, &admin.shared, round);
    ([(header::CONTENT_TYPE, text::CONTENT_TYPE)], text).into_response()
}

async fn show_health(State(admin): State<Arc<Admin>>) -> Response {
    if admin.node.is_stopping() {
        return (StatusCode::OK, "stopping\n").into_response();
    }
    match admin.silent().await {
        Some(text) => (StatusCode::SERVICE_UNAVAILABLE, text).into_response(),
        None => (StatusCode::OK, "ok\n").into_response(),
    }
}

async fn show_readiness(State(admin): State<Arc<Admin>>) -> Response {
    if admin.node.is_stopping() {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response();
    }
    let loading = &admin.shared.loading;
    if loading.is_loading() {
        let text = format!("loading, {} % done\n", loading.percent());
        return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    }
    let cluster = admin.shared.cluster.as_ref();
    if let Some(why) = cluster.and_then(|cluster| cluster.about.not_ready()) {
        return (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response();
    }
    if let Some(text) = admin.silent().await {
        return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    }
    (StatusCode::OK, "ready\n").into_response()
}
