//! Readers and writers of CDR octets with their encapsulation header.

use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cyclors as dds;
use viaduct_bus::Qos;
use viaduct_ros::dds::Guid;

use super::entity::{DdsError, Entity, Participant, Waitset, check, guid};
use super::qos::{NativeQos, nanoseconds};

/// Number of samples that one call takes.
const BATCH: usize = 16;

const fn status(id: dds::dds_status_id) -> u32 {
    1 << id
}

/// The statuses for which a reader or a writer wakes its waitset.
const READER_STATUSES: u32 = status(dds::dds_status_id_DDS_DATA_AVAILABLE_STATUS_ID)
    | status(dds::dds_status_id_DDS_REQUESTED_DEADLINE_MISSED_STATUS_ID)
    | status(dds::dds_status_id_DDS_SAMPLE_REJECTED_STATUS_ID);
const WRITER_STATUSES: u32 = status(dds::dds_status_id_DDS_OFFERED_DEADLINE_MISSED_STATUS_ID);

/// Events of a reader or a writer since the last call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Statuses {
    /// Samples that were late.
    pub(in super::super) deadlines_missed: u64,
    /// Samples for which a limited history had no room. Cyclone DDS retries those of reliable readers.
    pub(in super::super) rejected: u64,
}

/// A reader of a topic.
#[derive(Debug)]
pub(in super::super) struct Reader {
    entity: Entity,
    guid: Guid,
    _participant: Arc<Participant>,
}

/// A sample.
#[derive(Debug)]
pub(in super::super) struct Taken {
    /// The message with its encapsulation header. The octets belong to Cyclone DDS and are not copied.
    pub(in super::super) payload: Bytes,
    /// The publisher, as discovery names it.
    pub(in super::super) publisher: u64,
}

impl Reader {
    /// Creates a reader and adds it to a waitset.
    pub(in super::super) fn create(
        participant: &Arc<Participant>,
        (topic, type_name): (&str, &str),
        (qos, user_data): (&Qos, &str),
        (waitset, token): (&Waitset, usize),
    ) -> Result<Self, DdsError> {
        let topic = participant.topic(topic, type_name)?;
        let qos = NativeQos::of_endpoint(qos, user_data);
        // SAFETY: the quality of service is valid during the call, which copies it. There is no listener.
        let created = unsafe { dds::dds_create_reader(participant.id(), topic.id(), qos.as_ptr(), ptr::null()) };
        let entity = Entity::take("dds_create_reader", created)?;
        // SAFETY: the call has no pointers.
        check("dds_set_status_mask", unsafe { dds::dds_set_status_mask(entity.id(), READER_STATUSES) })?;
        waitset.attach(entity.id(), token)?;
        let guid = guid(entity.id())?;
        Ok(Self { entity, guid, _participant: Arc::clone(participant) })
    }

    pub(in super::super) const fn guid(&self) -> Guid {
        self.guid
    }

    /// Takes some of the samples that were received. Returns `true` if there may be more.
    pub(in super::super) fn take(&self, samples: &mut Vec<Taken>) -> Result<bool, DdsError> {
        let mut taken = [ptr::null_mut::<dds::ddsi_serdata>(); BATCH];
        // SAFETY: all fields are numbers and a bool, for which zeros are valid.
        let mut infos: [dds::dds_sample_info_t; BATCH] = unsafe { std::mem::zeroed() };
        // SAFETY: both arrays are valid for writes of BATCH values.
        let count = unsafe {
            dds::dds_takecdr(self.entity.id(), taken.as_mut_ptr(), BATCH as u32, infos.as_mut_ptr(), dds::DDS_ANY_STATE)
        };
        let count = usize::try_from(check("dds_takecdr", count)?).unwrap_or(0);
        for (serdata, info) in taken.into_iter().zip(&infos).take(count) {
            // The call passes a reference to each sample, also of those that only report the end of a publisher.
            let Some(sample) = NonNull::new(serdata).map(SerializedSample::new) else { continue };
            if info.valid_data {
                let payload = Bytes::from_owner(sample.with_octets());
                samples.push(Taken { payload, publisher: info.publication_handle });
            }
        }
        Ok(count == BATCH)
    }

    /// Returns the events since the last call.
    pub(in super::super) fn statuses(&self) -> Statuses {
        let entity = self.entity.id();
        let mut missed = dds::dds_requested_deadline_missed_status_t {
            total_count: 0,
            total_count_change: 0,
            last_instance_handle: 0,
        };
        let mut rejected = dds::dds_sample_rejected_status_t {
            total_count: 0,
            total_count_change: 0,
            last_reason: dds::dds_sample_rejected_status_kind_DDS_NOT_REJECTED,
            last_instance_handle: 0,
        };
        // SAFETY: each status is valid for a write of its type. A call that fails leaves the zeros.
        unsafe {
            dds::dds_get_requested_deadline_missed_status(entity, &raw mut missed);
            dds::dds_get_sample_rejected_status(entity, &raw mut rejected);
        }
        Statuses { deadlines_missed: change(missed.total_count_change), rejected: change(rejected.total_count_change) }
    }
}

fn change(count: i32) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

/// A reference to a sample of Cyclone DDS and its octets.
struct SerializedSample {
    serdata: NonNull<dds::ddsi_serdata>,
    octets: dds::ddsrt_iovec_t,
}

impl SerializedSample {
    /// Takes over one reference to a sample.
    const fn new(serdata: NonNull<dds::ddsi_serdata>) -> Self {
        Self { serdata, octets: dds::ddsrt_iovec_t { iov_base: ptr::null_mut(), iov_len: 0 } }
    }

    /// Finds the octets of a sample with a message. Other samples have none, and no length either.
    fn with_octets(mut self) -> Self {
        let serdata = self.serdata.as_ptr();
        // SAFETY: the reference keeps the sample valid. Samples of topics of octets are one piece of memory, to which the call sets
        // `octets`. It adds a reference, which is released at once, as this value has one.
        unsafe {
            let octets = dds::ddsi_serdata_size(serdata) as usize;
            dds::ddsi_serdata_to_ser_ref(serdata, 0, octets, &raw mut self.octets);
            dds::ddsi_serdata_unref(serdata);
        }
        self
    }
}

impl AsRef<[u8]> for SerializedSample {
    fn as_ref(&self) -> &[u8] {
        if self.octets.iov_base.is_null() || self.octets.iov_len == 0 {
            return &[];
        }
        // SAFETY: the reference keeps the memory valid, and no code writes to a received sample.
        unsafe { std::slice::from_raw_parts(self.octets.iov_base.cast(), self.octets.iov_len) }
    }
}

impl Drop for SerializedSample {
    fn drop(&mut self) {
        // SAFETY: this value owns one reference. The last one frees the sample, which needs neither its reader nor its domain.
        unsafe { dds::ddsi_serdata_unref(self.serdata.as_ptr()) };
    }
}

// SAFETY: a received sample is not changed, and the count of its references is atomic.
unsafe impl Send for SerializedSample {}
// SAFETY: as for `Send`: shared references only read.
unsafe impl Sync for SerializedSample {}

/// A writer of a topic.
#[derive(Debug)]
pub(in super::super) struct Writer {
    entity: Entity,
    guid: Guid,
    /// The type of its samples, which exists as long as the writer.
    sertype: NonNull<dds::ddsi_sertype>,
    _participant: Arc<Participant>,
}

// SAFETY: the type is not changed, and the functions that use it may be called on any thread.
unsafe impl Send for Writer {}

/// The reason why a message was not written.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum WriteError {
    /// A reliable reader was too slow.
    #[error("a subscriber did not acknowledge earlier messages in time")]
    Timeout,
    #[error("{0}")]
    Dds(#[from] DdsError),
}

impl Writer {
    /// Creates a writer and adds it to a waitset.
    pub(in super::super) fn create(
        participant: &Arc<Participant>,
        (topic, type_name): (&str, &str),
        (qos, user_data): (&Qos, &str),
        (waitset, token): (&Waitset, usize),
    ) -> Result<Self, DdsError> {
        let topic = participant.topic(topic, type_name)?;
        let qos = NativeQos::of_endpoint(qos, user_data);
        // SAFETY: the quality of service is valid during the call, which copies it. There is no listener.
        let created = unsafe { dds::dds_create_writer(participant.id(), topic.id(), qos.as_ptr(), ptr::null()) };
        let entity = Entity::take("dds_create_writer", created)?;
        // SAFETY: the call has no pointers.
        check("dds_set_status_mask", unsafe { dds::dds_set_status_mask(entity.id(), WRITER_STATUSES) })?;
        waitset.attach(entity.id(), token)?;
        let mut sertype = ptr::null();
        // SAFETY: `sertype` is valid for the write of a pointer.
        check("dds_get_entity_sertype", unsafe { dds::dds_get_entity_sertype(entity.id(), &raw mut sertype) })?;
        let missing = || DdsError::without_code("dds_get_entity_sertype", "the writer has no type");
        let sertype = NonNull::new(sertype.cast_mut()).ok_or_else(missing)?;
        let guid = guid(entity.id())?;
        Ok(Self { entity, guid, sertype, _participant: Arc::clone(participant) })
    }

    pub(in super::super) const fn guid(&self) -> Guid {
        self.guid
    }

    /// Writes a message with its encapsulation header. Waits for slow readers as the quality of service permits.
    pub(in super::super) fn write(&self, chunks: &[Bytes]) -> Result<(), WriteError> {
        let pieces: Vec<_> = chunks
            .iter()
            .map(|chunk| dds::ddsrt_iovec_t { iov_base: chunk.as_ptr().cast_mut().cast(), iov_len: chunk.len() })
            .collect();
        let octets = chunks.iter().map(Bytes::len).sum();
        // SAFETY: the type exists as long as the writer. The call copies the pieces, which are borrowed meanwhile, into a new sample of
        // `octets` octets, which is their sum.
        let serdata = unsafe {
            let kind = dds::ddsi_serdata_kind_SDK_DATA;
            dds::ddsi_serdata_from_ser_iov(self.sertype.as_ptr(), kind, pieces.len(), pieces.as_ptr(), octets)
        };
        // SAFETY: the call takes over the reference to the sample, and fails if there is none.
        let code = unsafe { dds::dds_writecdr(self.entity.id(), serdata) };
        match check("dds_writecdr", code) {
            Ok(_) => Ok(()),
            Err(error) if error.code == dds::DDS_RETCODE_TIMEOUT => Err(WriteError::Timeout),
            Err(error) => Err(WriteError::Dds(error)),
        }
    }

    /// Waits until all reliable readers have acknowledged all messages, at most for `timeout`.
    pub(in super::super) fn flush(&self, timeout: Duration) {
        // SAFETY: the call has no pointers.
        let _ = unsafe { dds::dds_wait_for_acks(self.entity.id(), nanoseconds(Some(timeout))) };
    }

    /// Returns the number by which [`Statuses::of_writer`] finds the writer.
    pub(in super::super) const fn id(&self) -> i32 {
        self.entity.id()
    }
}

impl Statuses {
    /// Returns the events of a writer since the last call; none if it was deleted meanwhile.
    pub(in super::super) fn of_writer(id: i32) -> Self {
        let mut missed = dds::dds_offered_deadline_missed_status_t {
            total_count: 0,
            total_count_change: 0,
            last_instance_handle: 0,
        };
        // SAFETY: the status is valid for a write of its type. A call that fails leaves the zeros.
        let _ = unsafe { dds::dds_get_offered_deadline_missed_status(id, &raw mut missed) };
        Self { deadlines_missed: change(missed.total_count_change), rejected: 0 }
    }
}
