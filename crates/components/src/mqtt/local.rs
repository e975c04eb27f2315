//! Brokers of this process, which other components of it use without a socket.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::LazyLock;

use tokio::sync::watch;
use viaduct_mqtt::broker::Router;

/// The routers of the running brokers, by the address on which they listen.
static ROUTERS: LazyLock<watch::Sender<HashMap<SocketAddr, Router>>> =
    LazyLock::new(|| watch::Sender::new(HashMap::new()));

/// A router that others can find, until this is dropped.
pub(crate) struct Registration(SocketAddr);

/// Lets other components find a router.
pub(crate) fn register(listen: SocketAddr, router: Router) -> Registration {
    ROUTERS.send_modify(|routers| drop(routers.insert(listen, router)));
    Registration(listen)
}

/// Waits for the router of the broker that listens on an address. Cancelling the wait loses nothing.
pub(crate) async fn router(listen: SocketAddr) -> Router {
    let mut routers = ROUTERS.subscribe();
    loop {
        if let Some(router) = routers.borrow_and_update().get(&listen) {
            return router.clone();
        }
        // The sender is never dropped.
        if routers.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        ROUTERS.send_modify(|routers| drop(routers.remove(&self.0)));
    }
}
