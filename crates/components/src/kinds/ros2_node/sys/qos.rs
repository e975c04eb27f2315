//! Quality of service as Cyclone DDS has it.

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::time::Duration;

use cyclors as dds;
use viaduct_bus::{Durability, History, Liveliness, Qos, Reliability};

/// A time without end.
const INFINITE: i64 = i64::MAX;
/// Longest time that one call of a writer waits for slow readers. A publication repeats the call.
const BLOCK_MAX: Duration = Duration::from_millis(100);
/// A limit that is not set.
const UNLIMITED: i32 = dds::DDS_LENGTH_UNLIMITED;

/// Returns a time in nanoseconds; `None` is without end.
pub(super) fn nanoseconds(time: Option<Duration>) -> i64 {
    time.map_or(INFINITE, |time| i64::try_from(time.as_nanos()).unwrap_or(INFINITE))
}

fn duration(nanoseconds: i64) -> Option<Duration> {
    (nanoseconds != INFINITE).then(|| Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0)))
}

/// Quality of service of an entity that is to be created.
pub(super) struct NativeQos(NonNull<dds::dds_qos_t>);

impl NativeQos {
    /// Returns one without any policy, or aborts if there is no memory, as each allocation does.
    fn new() -> Self {
        // SAFETY: the call has no arguments.
        let created = unsafe { dds::dds_create_qos() };
        match NonNull::new(created) {
            Some(created) => Self(created),
            None => std::alloc::handle_alloc_error(std::alloc::Layout::new::<dds::dds_qos_t>()),
        }
    }

    /// Returns the quality of service of a participant.
    pub(super) fn of_participant(user_data: &str) -> Self {
        let qos = Self::new();
        qos.set_user_data(user_data);
        qos
    }

    /// Returns the quality of service of a reader or a writer. It ignores endpoints of its own participant.
    pub(super) fn of_endpoint(requested: &Qos, user_data: &str) -> Self {
        let qos = Self::new();
        qos.set_user_data(user_data);
        qos.set_history(requested);
        let block = super::super::qos::max_blocking_time(requested).min(BLOCK_MAX);
        let (native, block) = (qos.0.as_ptr(), nanoseconds(Some(block)));
        let reliability = match requested.reliability {
            Reliability::BestEffort => dds::dds_reliability_kind_DDS_RELIABILITY_BEST_EFFORT,
            Reliability::Reliable { .. } => dds::dds_reliability_kind_DDS_RELIABILITY_RELIABLE,
        };
        let liveliness = match requested.liveliness {
            Liveliness::Automatic => dds::dds_liveliness_kind_DDS_LIVELINESS_AUTOMATIC,
            Liveliness::ManualByTopic => dds::dds_liveliness_kind_DDS_LIVELINESS_MANUAL_BY_TOPIC,
        };
        // SAFETY: `native` is valid until `qos` is dropped, and the calls have no other pointers.
        unsafe {
            dds::dds_qset_reliability(native, reliability, block);
            dds::dds_qset_deadline(native, nanoseconds(requested.deadline));
            dds::dds_qset_lifespan(native, nanoseconds(requested.lifespan));
            dds::dds_qset_liveliness(native, liveliness, nanoseconds(requested.lease));
            dds::dds_qset_ignorelocal(native, dds::dds_ignorelocal_kind_DDS_IGNORELOCAL_PARTICIPANT);
        }
        qos
    }

    pub(super) const fn as_ptr(&self) -> *const dds::dds_qos_t {
        self.0.as_ptr()
    }

    fn set_user_data(&self, user_data: &str) {
        // SAFETY: the call copies that many octets of the text. The pointer is valid until `self` is dropped.
        unsafe { dds::dds_qset_userdata(self.0.as_ptr(), user_data.as_ptr().cast(), user_data.len()) };
    }

    fn set_history(&self, requested: &Qos) {
        let native = self.0.as_ptr();
        let depth = i32::try_from(requested.depth()).unwrap_or(i32::MAX);
        let (kind, limit) = match requested.history {
            History::KeepLast(_) => (dds::dds_history_kind_DDS_HISTORY_KEEP_LAST, UNLIMITED),
            History::KeepAll { .. } => (dds::dds_history_kind_DDS_HISTORY_KEEP_ALL, depth),
        };
        // SAFETY: `native` is valid until `self` is dropped, and the calls have no other pointers.
        unsafe {
            dds::dds_qset_history(native, kind, depth);
            dds::dds_qset_resource_limits(native, limit, UNLIMITED, limit);
            if requested.durability == Durability::TransientLocal {
                dds::dds_qset_durability(native, dds::dds_durability_kind_DDS_DURABILITY_TRANSIENT_LOCAL);
                // The samples for late joiners.
                dds::dds_qset_durability_service(native, 0, kind, depth, limit, UNLIMITED, limit);
            }
        }
    }
}

impl Drop for NativeQos {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `dds_create_qos` and is not used afterwards.
        unsafe { dds::dds_delete_qos(self.0.as_ptr()) };
    }
}

/// Returns the policies of a discovered endpoint as those of a publisher or subscriber of the bus.
///
/// # Safety
/// `native` is null or points to the quality of service of a sample that is not returned yet.
pub(super) unsafe fn read(native: *const dds::dds_qos_t) -> Qos {
    let mut qos = Qos::keep_last(1);
    if native.is_null() {
        return qos;
    }
    let (mut reliability, mut durability, mut history, mut liveliness) = (0, 0, 0, 0);
    let (mut block, mut deadline, mut lifespan, mut lease) = (0, INFINITE, INFINITE, INFINITE);
    let mut depth = 1;
    // SAFETY: the caller guarantees that `native` is valid; each other pointer is valid for a write of its type.
    unsafe {
        if dds::dds_qget_reliability(native, &raw mut reliability, &raw mut block)
            && reliability == dds::dds_reliability_kind_DDS_RELIABILITY_RELIABLE
        {
            qos.reliability = Reliability::Reliable { block: duration(block).unwrap_or(Duration::MAX) };
        }
        if dds::dds_qget_durability(native, &raw mut durability)
            && durability != dds::dds_durability_kind_DDS_DURABILITY_VOLATILE
        {
            qos.durability = Durability::TransientLocal;
        }
        if dds::dds_qget_history(native, &raw mut history, &raw mut depth) {
            qos.history = History::KeepLast(usize::try_from(depth).unwrap_or(1));
        }
        if dds::dds_qget_liveliness(native, &raw mut liveliness, &raw mut lease)
            && liveliness != dds::dds_liveliness_kind_DDS_LIVELINESS_AUTOMATIC
        {
            // Manual by participant is the weaker one of the two, so that an offer of manual by topic serves both.
            qos.liveliness = Liveliness::ManualByTopic;
        }
        dds::dds_qget_deadline(native, &raw mut deadline);
        dds::dds_qget_lifespan(native, &raw mut lifespan);
    }
    Qos { deadline: duration(deadline), lifespan: duration(lifespan), lease: duration(lease), ..qos }
}

/// Returns a copy of the USER_DATA of a discovered endpoint, at most `octets_max` of it.
///
/// # Safety
/// `native` is null or points to the quality of service of a sample that is not returned yet.
pub(super) unsafe fn read_user_data(native: *const dds::dds_qos_t, octets_max: usize) -> Vec<u8> {
    let (mut value, mut octets): (*mut c_void, usize) = (ptr::null_mut(), 0);
    // SAFETY: the caller guarantees that `native` is valid if it is not null. The call writes a pointer to a copy and its length, and the
    // copy is freed by `dds_free`, which accepts null.
    unsafe {
        if native.is_null() || !dds::dds_qget_userdata(native, &raw mut value, &raw mut octets) || value.is_null() {
            return Vec::new();
        }
        let copy = std::slice::from_raw_parts(value.cast::<u8>(), octets.min(octets_max)).to_vec();
        dds::dds_free(value);
        copy
    }
}
