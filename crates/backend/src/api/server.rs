//! The HTTP server: a limited number of connections, and a shutdown that does not wait for slow clients.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use viaduct_node::listen::{self, Gate, Hosts, HttpListener};

use super::{Api, router};

/// Largest number of connections at the same time.
pub(crate) const CONNECTIONS_MAX: usize = 1024;

/// Time after which a connection without traffic in either direction is closed. A live stream sends at least one line every
/// [`super::KEEP_ALIVE`].
const IDLE_MAX: Duration = Duration::from_secs(60);

/// Time that answers in progress may take at shutdown.
const GRACE: Duration = Duration::from_secs(2);

/// Serves the API until `shutdown` completes. Then live streams end, and other answers may finish within two seconds.
pub async fn serve(
    listener: TcpListener,
    hosts: Hosts,
    gate: Gate,
    api: Arc<Api>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) {
    let (ended, mut end) = tokio::sync::watch::channel(false);
    let live = api.backend.live().clone();
    let graceful = async move {
        shutdown.await;
        live.close();
        // Fails only if the server has ended already.
        let _ = ended.send(true);
    };
    let listener = HttpListener { listener, hosts, gate, idle_max: IDLE_MAX };
    let server = listen::serve(listener, router(api), graceful);
    tokio::select! {
        () = server => {}
        () = async {
            let _ = end.wait_for(|ended| *ended).await;
            tokio::time::sleep(GRACE).await;
        } => {}
    }
}
