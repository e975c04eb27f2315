//! Domains, participants, and waits for several entities.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cyclors as dds;
use viaduct_ros::dds::Guid;

use super::qos::NativeQos;
use super::{log, qos};

/// A call of Cyclone DDS that failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{call}: {reason}")]
pub(in super::super) struct DdsError {
    call: &'static str,
    pub(super) code: i32,
    reason: String,
}

impl DdsError {
    pub(super) fn without_code(call: &'static str, reason: &str) -> Self {
        Self { call, code: 0, reason: reason.to_owned() }
    }
}

/// Returns the result of a call, which is an error if it is negative.
pub(super) fn check(call: &'static str, code: i32) -> Result<i32, DdsError> {
    if code >= 0 {
        return Ok(code);
    }
    // SAFETY: the function accepts any number and returns a text of the library, which is never freed.
    let reason = unsafe { CStr::from_ptr(dds::dds_strretcode(code)) };
    Err(DdsError { call, code, reason: reason.to_string_lossy().into_owned() })
}

/// Returns a text of C. The names of this kind contain no NUL, as their checks exclude it.
pub(super) fn c_text(text: &str) -> Result<CString, DdsError> {
    CString::new(text).map_err(|_| DdsError::without_code("name", "contains NUL"))
}

/// An entity that is deleted when this value is dropped, with all its children.
#[derive(Debug)]
pub(super) struct Entity(i32);

impl Entity {
    /// Takes the result of a call that creates an entity.
    pub(super) fn take(call: &'static str, created: i32) -> Result<Self, DdsError> {
        check(call, created).map(Self)
    }

    pub(super) const fn id(&self) -> i32 {
        self.0
    }
}

impl Drop for Entity {
    fn drop(&mut self) {
        // SAFETY: an entity is a number that the library looks up. One that was deleted with its parent is only an error.
        let _ = unsafe { dds::dds_delete(self.0) };
    }
}

/// The domains of this process. Components share a domain of Cyclone DDS, as it has one configuration.
static DOMAINS: Mutex<BTreeMap<u32, OpenDomain>> = Mutex::new(BTreeMap::new());

struct OpenDomain {
    /// Held for its drop, which closes sockets and ends threads.
    _entity: Entity,
    config: String,
    users: usize,
}

/// A domain that is open as long as this value exists.
#[derive(Debug)]
pub(in super::super) struct Domain {
    number: u32,
}

impl Domain {
    /// Opens a domain. Returns `None` if a component of this process has opened it with another configuration.
    pub(in super::super) fn open(number: u32, config: &str) -> Result<Option<Self>, DdsError> {
        log::redirect();
        let mut domains = domains();
        if let Some(open) = domains.get_mut(&number) {
            if open.config != config {
                return Ok(None);
            }
            open.users += 1;
            return Ok(Some(Self { number }));
        }
        let text = c_text(config)?;
        // SAFETY: the text ends with NUL and is read during the call only.
        let created = unsafe { dds::dds_create_domain(number, text.as_ptr()) };
        let entity = Entity::take("dds_create_domain", created)?;
        domains.insert(number, OpenDomain { _entity: entity, config: config.to_owned(), users: 1 });
        Ok(Some(Self { number }))
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        let mut domains = domains();
        let Some(open) = domains.get_mut(&self.number) else { return };
        open.users -= 1;
        if open.users == 0 {
            // Closed under the lock: Cyclone DDS cannot open a domain while it closes it.
            domains.remove(&self.number);
        }
    }
}

fn domains() -> MutexGuard<'static, BTreeMap<u32, OpenDomain>> {
    DOMAINS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A participant of a domain. Its readers and writers hold it.
#[derive(Debug)]
pub(in super::super) struct Participant {
    /// Declared first: the participant is deleted before its domain.
    entity: Entity,
    guid: Guid,
    _domain: Domain,
}

impl Participant {
    pub(in super::super) fn create(domain: Domain, user_data: &str) -> Result<Arc<Self>, DdsError> {
        let qos = NativeQos::of_participant(user_data);
        // SAFETY: the quality of service is valid during the call, which copies it. There is no listener.
        let created = unsafe { dds::dds_create_participant(domain.number, qos.as_ptr(), ptr::null()) };
        let entity = Entity::take("dds_create_participant", created)?;
        let guid = guid(entity.id())?;
        Ok(Arc::new(Self { entity, guid, _domain: domain }))
    }

    pub(in super::super) const fn guid(&self) -> Guid {
        self.guid
    }

    pub(super) const fn id(&self) -> i32 {
        self.entity.id()
    }

    /// Creates a topic whose samples are octets.
    pub(super) fn topic(&self, name: &str, type_name: &str) -> Result<Entity, DdsError> {
        let (name, type_name) = (c_text(name)?, c_text(type_name)?);
        // SAFETY: both texts end with NUL. The function copies them, although its parameters are not declared as constant.
        let created = unsafe {
            dds::cdds_create_blob_topic(self.id(), name.as_ptr().cast_mut(), type_name.as_ptr().cast_mut(), true)
        };
        Entity::take("cdds_create_blob_topic", created)
    }
}

/// Returns the GUID of an entity.
pub(super) fn guid(entity: i32) -> Result<Guid, DdsError> {
    let mut guid = dds::dds_guid_t { v: [0; 16] };
    // SAFETY: `guid` is valid for the write of a GUID.
    check("dds_get_guid", unsafe { dds::dds_get_guid(entity, &raw mut guid) })?;
    Ok(guid.v)
}

/// Waits for several entities. Each has a token, by which the wait names it.
#[derive(Debug)]
pub(in super::super) struct Waitset {
    entity: Entity,
    _participant: Arc<Participant>,
}

/// The result of a wait: the tokens of the entities that are ready.
#[derive(Debug, Default)]
pub(in super::super) struct Wait {
    tokens: Vec<isize>,
}

impl Waitset {
    pub(in super::super) fn create(participant: &Arc<Participant>) -> Result<Self, DdsError> {
        // SAFETY: the call has no pointers.
        let created = unsafe { dds::dds_create_waitset(participant.id()) };
        let entity = Entity::take("dds_create_waitset", created)?;
        Ok(Self { entity, _participant: Arc::clone(participant) })
    }

    /// Adds an entity. It is removed when it is deleted.
    pub(super) fn attach(&self, entity: i32, token: usize) -> Result<(), DdsError> {
        let token = isize::try_from(token).unwrap_or(isize::MAX);
        // SAFETY: the call has no pointers; the token is only returned by the wait.
        check("dds_waitset_attach", unsafe { dds::dds_waitset_attach(self.entity.id(), entity, token) }).map(drop)
    }

    /// Waits until an entity is ready, at most for `timeout` if there is one. Returns the tokens of those that are ready.
    pub(in super::super) fn wait<'a>(
        &self,
        timeout: Option<Duration>,
        wait: &'a mut Wait,
    ) -> Result<impl Iterator<Item = usize> + use<'a>, DdsError> {
        wait.tokens.resize(TOKENS_MAX, 0);
        // SAFETY: `tokens` is valid for writes of that many values.
        let ready = unsafe {
            let timeout = qos::nanoseconds(timeout);
            dds::dds_waitset_wait(self.entity.id(), wait.tokens.as_mut_ptr(), wait.tokens.len(), timeout)
        };
        let ready = usize::try_from(check("dds_waitset_wait", ready)?).unwrap_or(0);
        Ok(wait.tokens.iter().take(ready).filter_map(|token| usize::try_from(*token).ok()))
    }
}

/// Largest number of entities that a wait reports; it reports the others the next time.
const TOKENS_MAX: usize = 64;

/// Wakes a wait from another thread.
#[derive(Debug)]
pub(in super::super) struct Guard {
    entity: Entity,
    _participant: Arc<Participant>,
}

impl Guard {
    /// Creates a guard and adds it to a waitset.
    pub(in super::super) fn create(
        participant: &Arc<Participant>,
        waitset: &Waitset,
        token: usize,
    ) -> Result<Self, DdsError> {
        // SAFETY: the call has no pointers.
        let created = unsafe { dds::dds_create_guardcondition(participant.id()) };
        let entity = Entity::take("dds_create_guardcondition", created)?;
        waitset.attach(entity.id(), token)?;
        Ok(Self { entity, _participant: Arc::clone(participant) })
    }

    /// Makes the guard ready until it is cleared.
    pub(in super::super) fn wake(&self) {
        // SAFETY: the call has no pointers.
        let _ = unsafe { dds::dds_set_guardcondition(self.entity.id(), true) };
    }

    pub(in super::super) fn clear(&self) {
        let mut was_ready = false;
        // SAFETY: `was_ready` is valid for a write.
        let _ = unsafe { dds::dds_take_guardcondition(self.entity.id(), &raw mut was_ready) };
    }
}
