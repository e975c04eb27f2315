//! Readers and writers of all participants of a domain, from the built-in topics of Cyclone DDS.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::Arc;

use cyclors as dds;
use viaduct_bus::Qos;
use viaduct_ros::dds::{Guid, read_type_hash};

use super::entity::{DdsError, Entity, Participant, Waitset, check};
use super::qos;

/// Number of samples that one call takes.
const BATCH: usize = 16;
/// The status for which a discovery reader wakes its waitset.
const STATUSES: u32 = 1 << dds::dds_status_id_DDS_DATA_AVAILABLE_STATUS_ID;
/// Octets of the USER_DATA that are read.
const USER_DATA_OCTETS_MAX: usize = 4096;

/// A reader or a writer of a participant.
#[derive(Clone, Debug)]
pub(in super::super) struct Endpoint {
    /// Number of the endpoint in this process.
    pub(in super::super) handle: u64,
    pub(in super::super) participant: Guid,
    pub(in super::super) topic: String,
    pub(in super::super) type_name: String,
    pub(in super::super) qos: Qos,
    /// Hash of the type (REP-2016).
    pub(in super::super) type_hash: Option<String>,
}

/// A change of the endpoints.
#[derive(Clone, Debug)]
pub(in super::super) enum EndpointEvent {
    /// An endpoint was found, or its quality of service has changed.
    Found(Endpoint),
    /// The endpoint with this handle has gone.
    Gone(u64),
}

/// The endpoints that a discovery reader reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum EndpointKind {
    /// Publishers.
    Writers,
    /// Subscribers.
    Readers,
}

/// Reports the endpoints of one kind.
#[derive(Debug)]
pub(in super::super) struct DiscoveryReader {
    entity: Entity,
    _participant: Arc<Participant>,
}

impl DiscoveryReader {
    /// Creates a reader and adds it to a waitset.
    pub(in super::super) fn create(
        participant: &Arc<Participant>,
        kind: EndpointKind,
        waitset: &Waitset,
        token: usize,
    ) -> Result<Self, DdsError> {
        let topic = match kind {
            EndpointKind::Writers => dds::DDS_BUILTIN_TOPIC_DCPSPUBLICATION,
            EndpointKind::Readers => dds::DDS_BUILTIN_TOPIC_DCPSSUBSCRIPTION,
        };
        // SAFETY: null stands for the default quality of service and for no listener.
        let created = unsafe { dds::dds_create_reader(participant.id(), topic, ptr::null(), ptr::null()) };
        let entity = Entity::take("dds_create_reader", created)?;
        // A reader wakes for each of its statuses by default. Only that of data is reset by a take, so the node would never sleep again.
        // SAFETY: the call has no pointers.
        check("dds_set_status_mask", unsafe { dds::dds_set_status_mask(entity.id(), STATUSES) })?;
        waitset.attach(entity.id(), token)?;
        Ok(Self { entity, _participant: Arc::clone(participant) })
    }

    /// Takes some of the changes. Returns `true` if there may be more.
    pub(in super::super) fn take(&self, events: &mut Vec<EndpointEvent>) -> Result<bool, DdsError> {
        let mut samples = [ptr::null_mut::<c_void>(); BATCH];
        // SAFETY: all fields are numbers and a bool, for which zeros are valid.
        let mut infos: [dds::dds_sample_info_t; BATCH] = unsafe { std::mem::zeroed() };
        // SAFETY: both arrays are valid for writes of BATCH values. As the first sample is null, the call lends its samples.
        let count =
            unsafe { dds::dds_take(self.entity.id(), samples.as_mut_ptr(), infos.as_mut_ptr(), BATCH, BATCH as u32) };
        let count = check("dds_take", count)?;
        let taken = usize::try_from(count).unwrap_or(0);
        for (sample, info) in samples.iter().zip(&infos).take(taken) {
            let is_gone = info.instance_state != dds::dds_instance_state_DDS_IST_ALIVE;
            if is_gone {
                events.push(EndpointEvent::Gone(info.instance_handle));
            } else if info.valid_data {
                // SAFETY: a valid sample of these two topics is an endpoint, lent until `dds_return_loan`.
                let endpoint = unsafe { read(info.instance_handle, sample.cast()) };
                events.extend(endpoint.map(EndpointEvent::Found));
            }
        }
        // SAFETY: the samples are those that the call has lent, and nothing refers to them any more.
        let _ = unsafe { dds::dds_return_loan(self.entity.id(), samples.as_mut_ptr(), count) };
        Ok(taken == BATCH)
    }
}

/// Copies an endpoint. Returns `None` if it has no names.
///
/// # Safety
/// `sample` is null or points to a valid endpoint.
unsafe fn read(handle: u64, sample: *const dds::dds_builtintopic_endpoint_t) -> Option<Endpoint> {
    // SAFETY: the caller guarantees that the pointer is null or valid; its texts end with NUL, and its quality of service is valid.
    unsafe {
        let sample = sample.as_ref()?;
        let user_data = qos::read_user_data(sample.qos, USER_DATA_OCTETS_MAX);
        Some(Endpoint {
            handle,
            participant: sample.participant_key.v,
            topic: text(sample.topic_name)?,
            type_name: text(sample.type_name)?,
            qos: qos::read(sample.qos),
            type_hash: read_type_hash(&user_data).map(str::to_owned),
        })
    }
}

/// Copies a text.
///
/// # Safety
/// `text` is null or ends with NUL.
unsafe fn text(text: *const c_char) -> Option<String> {
    // SAFETY: the caller guarantees that a text that is not null ends with NUL.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}
