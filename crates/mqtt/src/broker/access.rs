//! Logins, and the topics on which clients may publish.

use std::collections::HashMap;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mqtt5::broker::auth::{AuthProvider, AuthResult, PasswordAuthProvider};
use mqtt5::broker::storage::{DynamicStorage, StorageBackend as _};
use mqtt5::packet::connect::ConnectPacket;
use mqtt5::protocol::v5::reason_codes::ReasonCode;
use tokio::sync::Semaphore;

use crate::MqttError;

/// Wrong passwords of an address within [`FAILURE_PERIOD`] after which it is refused for as long.
const FAILURES_MAX: u32 = 10;
const FAILURE_PERIOD: Duration = Duration::from_secs(60);

/// Addresses whose wrong passwords are counted. With more of them, the oldest is forgotten.
const ADDRESSES_MAX: usize = 4096;

/// Passwords that are verified at the same time. Each needs 19 MiB and 0.1 s of a CPU.
const VERIFICATIONS_MAX: usize = 2;

/// Rules for logins.
#[derive(Clone, Debug, Default)]
pub struct AccessRules {
    /// Hashes of passwords by user, in the PHC form of argon2.
    pub users: HashMap<String, String>,
    /// Accepts clients without a user name.
    pub anonymous: bool,
    /// Largest number of sessions, with those of disconnected clients, at which a client may have another one that outlives its
    /// connection.
    pub sessions_max: usize,
}

/// Reason for which a client is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedClient {
    /// The user or the password is wrong.
    Password,
    /// There were too many wrong passwords from its address.
    Address,
    /// There are too many sessions.
    Sessions,
}

/// Receives each refusal.
pub type OnRefused = Arc<dyn Fn(RefusedClient, SocketAddr) + Send + Sync>;

pub(super) struct Access {
    users: Arc<HashMap<String, String>>,
    /// A hash that is verified if the user is unknown, so that the time of the answer does not reveal that.
    unknown_user: Arc<str>,
    anonymous: bool,
    sessions_max: usize,
    storage: Option<Arc<DynamicStorage>>,
    failures: Mutex<HashMap<IpAddr, Failures>>,
    verifications: Semaphore,
    on_refused: OnRefused,
}

#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
}

impl Access {
    pub(super) fn new(rules: AccessRules, storage: Option<Arc<DynamicStorage>>, on_refused: OnRefused) -> Self {
        let hash = if rules.users.is_empty() { None } else { PasswordAuthProvider::hash_password("").ok() };
        Self {
            users: Arc::new(rules.users),
            unknown_user: hash.unwrap_or_default().into(),
            anonymous: rules.anonymous,
            sessions_max: rules.sessions_max,
            storage,
            failures: Mutex::default(),
            verifications: Semaphore::new(VERIFICATIONS_MAX),
            on_refused,
        }
    }

    async fn check(&self, connect: &ConnectPacket, address: SocketAddr) -> Result<Option<String>, RefusedClient> {
        let user = self.user(connect, address.ip()).await?;
        if ends_with_connection(connect) || self.has_room(&connect.client_id).await {
            Ok(user)
        } else {
            Err(RefusedClient::Sessions)
        }
    }

    /// Returns the user of a client, or `None` if the client is anonymous.
    async fn user(&self, connect: &ConnectPacket, address: IpAddr) -> Result<Option<String>, RefusedClient> {
        let (Some(name), Some(password)) = (&connect.username, &connect.password) else {
            return if self.anonymous { Ok(None) } else { Err(RefusedClient::Password) };
        };
        if self.users.is_empty() && self.anonymous {
            // Without users, names have no meaning.
            return Ok(None);
        }
        if self.is_refused(address) {
            return Err(RefusedClient::Address);
        }
        let _permit = self.verifications.acquire().await;
        let (users, unknown_user) = (Arc::clone(&self.users), Arc::clone(&self.unknown_user));
        let (name, password) = (name.clone(), password.clone());
        let verified = tokio::task::spawn_blocking(move || {
            let hash = users.get(&name).map_or(&*unknown_user, String::as_str);
            let is_right = PasswordAuthProvider::verify_password(&String::from_utf8_lossy(&password), hash);
            (is_right && users.contains_key(&name)).then_some(name)
        });
        match verified.await {
            Ok(Some(name)) => {
                self.failures().remove(&address);
                Ok(Some(name))
            }
            _ => {
                self.count_failure(address);
                Err(RefusedClient::Password)
            }
        }
    }

    /// Returns `true` if the client has a session, or if there may be another one.
    async fn has_room(&self, client_id: &str) -> bool {
        let Some(storage) = &self.storage else { return true };
        let known = storage.session_client_ids().await.unwrap_or_default();
        known.len() < self.sessions_max || known.iter().any(|known| known == client_id)
    }

    fn failures(&self) -> MutexGuard<'_, HashMap<IpAddr, Failures>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_refused(&self, address: IpAddr) -> bool {
        let mut failures = self.failures();
        let Some(found) = failures.get(&address).copied() else { return false };
        if found.last.elapsed() >= FAILURE_PERIOD {
            failures.remove(&address);
            return false;
        }
        found.count >= FAILURES_MAX
    }

    fn count_failure(&self, address: IpAddr) {
        let mut failures = self.failures();
        if failures.len() >= ADDRESSES_MAX && !failures.contains_key(&address) {
            let oldest = failures.iter().min_by_key(|(_, found)| found.last).map(|(address, _)| *address);
            oldest.and_then(|oldest| failures.remove(&oldest));
        }
        let found = failures.entry(address).or_insert(Failures { count: 0, last: Instant::now() });
        *found = Failures { count: found.count + 1, last: Instant::now() };
    }
}

/// Returns `true` if a client leaves no session behind. The number of such clients is limited as that of connections.
fn ends_with_connection(connect: &ConnectPacket) -> bool {
    match connect.protocol_version {
        5 => connect.properties.get_session_expiry_interval().unwrap_or(0) == 0,
        _ => connect.clean_start,
    }
}

impl AuthProvider for Access {
    fn authenticate<'a>(
        &'a self,
        connect: &'a ConnectPacket,
        client_addr: SocketAddr,
    ) -> Pin<Box<dyn Future<Output = Result<AuthResult, MqttError>> + Send + 'a>> {
        Box::pin(async move {
            Ok(match self.check(connect, client_addr).await {
                Ok(Some(user)) => AuthResult::success_with_user(user),
                Ok(None) => AuthResult::success(),
                Err(refused) => {
                    (self.on_refused)(refused, client_addr);
                    AuthResult::fail(match refused {
                        RefusedClient::Password | RefusedClient::Address => ReasonCode::BadUsernameOrPassword,
                        RefusedClient::Sessions => ReasonCode::QuotaExceeded,
                    })
                }
            })
        })
    }

    /// Topics that start with `$` belong to the broker (MQTT 5, 4.7.2).
    fn authorize_publish<'a>(
        &'a self,
        _client_id: &str,
        _user_id: Option<&'a str>,
        topic: &'a str,
    ) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        Box::pin(std::future::ready(!topic.starts_with('$')))
    }

    fn authorize_subscribe<'a>(
        &'a self,
        _client_id: &str,
        _user_id: Option<&'a str>,
        _topic_filter: &'a str,
    ) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        Box::pin(std::future::ready(true))
    }
}

#[cfg(test)]
mod tests {
    use mqtt5::ConnectOptions;

    use super::*;

    fn access(users: &[(&str, &str)]) -> (Access, Arc<Mutex<Vec<RefusedClient>>>) {
        let refused = Arc::<Mutex<Vec<RefusedClient>>>::default();
        let seen = Arc::clone(&refused);
        let hashed = |(name, password): &(&str, &str)| {
            ((*name).to_owned(), PasswordAuthProvider::hash_password(password).unwrap())
        };
        let rules = AccessRules { users: users.iter().map(hashed).collect(), anonymous: false, sessions_max: 2 };
        (Access::new(rules, None, Arc::new(move |why, _| seen.lock().unwrap().push(why))), refused)
    }

    async fn login(access: &Access, from: &str, user: &str, password: &str) -> bool {
        let mut connect = ConnectPacket::new(ConnectOptions::new("client").protocol_options);
        connect.username = Some(user.to_owned());
        connect.password = Some(password.as_bytes().to_vec());
        access.authenticate(&connect, SocketAddr::new(from.parse().unwrap(), 1)).await.unwrap().authenticated
    }

    #[tokio::test]
    async fn wrong_passwords_lock_an_address_out_and_not_the_user() {
        let (access, refused) = access(&[("bob", "secret")]);
        assert!(login(&access, "192.0.2.1", "bob", "secret").await);
        for _ in 0..FAILURES_MAX {
            assert!(!login(&access, "192.0.2.9", "bob", "wrong").await);
        }
        assert!(!login(&access, "192.0.2.9", "bob", "secret").await, "the address is locked out");
        assert!(login(&access, "192.0.2.1", "bob", "secret").await);
        assert_eq!(refused.lock().unwrap().last(), Some(&RefusedClient::Address));
        assert!(!login(&access, "192.0.2.1", "eve", "secret").await);
        assert_eq!(refused.lock().unwrap().last(), Some(&RefusedClient::Password));
    }

    #[tokio::test]
    async fn clients_do_not_publish_on_topics_of_the_broker() {
        let (access, _) = access(&[]);
        assert!(access.authorize_publish("client", None, "a/$b").await);
        assert!(!access.authorize_publish("client", None, "$SYS/broker/version").await);
    }
}
