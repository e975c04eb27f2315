//! Heartbeats of both ends.

use bytes::{BufMut, Bytes};

use super::{DESK_HEARTBEAT, HEADER_OCTETS, ParseError, Reader, VEHICLE_HEARTBEAT, begin};
use crate::driving::{Claim, ClaimKind, ClaimOutcome, DrivingState, LimitReason, OperatorId, Reason};

/// Octets of the part that both heartbeats have.
const TIMING_OCTETS: usize = 21;
/// Code of a time that is unknown.
const UNKNOWN_TENTHS: u16 = u16::MAX;
/// Code of a hold time if there is no heartbeat to echo.
const NO_ECHO: u32 = u32::MAX;

/// Numbers and times of a heartbeat, for the round trip, the loss and the clocks.
///
/// | octets | field |
/// |---|---|
/// | 4 | sequence number |
/// | 4 | time of sending by the sender's clock, in microseconds |
/// | 4 | epoch of the peer whose heartbeat is echoed |
/// | 4 | time of sending of the latest heartbeat of the peer, by the peer's clock |
/// | 4 | time since the arrival of that heartbeat, in microseconds; 2^32 - 1 if there is none |
/// | 1 | 128 minus the number of heartbeats lost of the last 128 of the peer |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Sequence number.
    pub sequence: u32,
    /// Time of sending by the sender's clock, in microseconds.
    pub sent_us: u32,
    /// Latest heartbeat of the peer.
    pub echo: Option<Echo>,
    /// 128 minus the number of heartbeats lost of the last 128 of the peer.
    pub arrived_of_128: u8,
}

/// The latest heartbeat of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Epoch of the peer.
    pub epoch: u32,
    /// Time of sending by the peer's clock, in microseconds.
    pub sent_us: u32,
    /// Time since its arrival, in microseconds.
    pub hold_us: u32,
}

impl Timing {
    fn read(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let (sequence, sent_us) = (reader.u32()?, reader.u32()?);
        let echo = Echo { epoch: reader.u32()?, sent_us: reader.u32()?, hold_us: reader.u32()? };
        let arrived_of_128 = reader.u8()?;
        if arrived_of_128 > 128 {
            return Err(ParseError::Field("number of heartbeats"));
        }
        Ok(Self { sequence, sent_us, echo: (echo.hold_us != NO_ECHO).then_some(echo), arrived_of_128 })
    }

    fn write(&self, octets: &mut impl BufMut) {
        octets.put_u32(self.sequence);
        octets.put_u32(self.sent_us);
        let echo = self.echo.unwrap_or(Echo { epoch: 0, sent_us: 0, hold_us: NO_ECHO });
        octets.put_u32(echo.epoch);
        octets.put_u32(echo.sent_us);
        octets.put_u32(echo.hold_us);
        octets.put_u8(self.arrived_of_128);
    }
}

/// A heartbeat of the desk.
///
/// | octets | field |
/// |---|---|
/// | 5 | common header |
/// | 21 | [`Timing`] |
/// | 2 | latency of the pictures at the driver's screen, in 0.1 ms; 65 535 if unknown |
/// | 4 | number of the claim, or 0 if there is none |
/// | 1 | kind of the claim: 0 none, 1 request, 2 release, 3 accept, 4 refuse, 5 take over, 6 emergency stop |
/// | 8 | operator who makes the claim; 0 only if there is no claim |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeskHeartbeat {
    /// Numbers and times.
    pub timing: Timing,
    /// Latency of the pictures at the driver's screen in 0.1 ms, or `None` if unknown.
    pub picture_latency_100us: Option<u16>,
    /// Latest claim that the vehicle has not answered.
    pub claim: Option<Claim>,
}

impl DeskHeartbeat {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let timing = Timing::read(reader)?;
        let latency = reader.u16()?;
        let (number, kind, operator) = (reader.u32()?, reader.u8()?, reader.u64()?);
        let claim = match (ClaimKind::from_code(kind), OperatorId::new(operator)) {
            (Some(kind), Some(operator)) => Some(Claim { number, kind, operator }),
            (None, None) if kind == 0 && number == 0 => None,
            _ => return Err(ParseError::Field("claim")),
        };
        Ok(Self { timing, picture_latency_100us: (latency != UNKNOWN_TENTHS).then_some(latency), claim })
    }

    pub(crate) fn write(&self, epoch: u32) -> Bytes {
        let mut octets = begin(DESK_HEARTBEAT, epoch, HEADER_OCTETS + TIMING_OCTETS + 15);
        self.timing.write(&mut octets);
        octets.put_u16(self.picture_latency_100us.unwrap_or(UNKNOWN_TENTHS));
        octets.put_u32(self.claim.map_or(0, |claim| claim.number));
        octets.put_u8(self.claim.map_or(0, |claim| claim.kind.code()));
        octets.put_u64(self.claim.map_or(0, |claim| claim.operator.value()));
        octets.freeze()
    }
}

/// A heartbeat of the vehicle.
///
/// | octets | field |
/// |---|---|
/// | 5 | common header |
/// | 21 | [`Timing`] |
/// | 1 | state of driving: index in [`DrivingState::ALL`] |
/// | 1 | reason for the state: index in [`Reason::ALL`], or 255 if there is none |
/// | 8 | operator who holds the grant, or 0 |
/// | 4 | number of the latest grant |
/// | 8 | operator whose request waits, or 0 |
/// | 4 | number of the latest claim that was answered |
/// | 1 | answer: index in [`ClaimOutcome::ALL`] |
/// | 2 | speed in 0.01 m/s, negative in reverse |
/// | 2 | speed limit in 0.01 m/s |
/// | 1 | reason for the speed limit: index in [`LimitReason::ALL`] |
/// | 4 | sequence number of the latest command that was accepted |
/// | 2 | its age when it was accepted, in 0.1 ms; 65 535 if there is none |
/// | 4 | commands refused, modulo 2^32 |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VehicleHeartbeat {
    /// Numbers and times.
    pub timing: Timing,
    /// State of driving.
    pub state: DrivingState,
    /// Reason for the state.
    pub reason: Option<Reason>,
    /// Operator who holds the grant.
    pub holder: Option<OperatorId>,
    /// Number of the latest grant.
    pub grant: u32,
    /// Operator whose request waits.
    pub requester: Option<OperatorId>,
    /// Number of the latest claim that was answered.
    pub claim: u32,
    /// Its answer.
    pub outcome: ClaimOutcome,
    /// Speed in 0.01 m/s, negative in reverse.
    pub speed_cmps: i16,
    /// Speed limit in 0.01 m/s.
    pub speed_limit_cmps: u16,
    /// Reason for the speed limit.
    pub limit_reason: LimitReason,
    /// Sequence number of the latest command that was accepted.
    pub command: u32,
    /// Its age when it was accepted in 0.1 ms, or `None` if there is none.
    pub command_age_100us: Option<u16>,
    /// Commands refused, modulo 2^32.
    pub commands_refused: u32,
}

impl VehicleHeartbeat {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let timing = Timing::read(reader)?;
        let state = indexed(&DrivingState::ALL, reader.u8()?, "state of driving")?;
        let reason = match reader.u8()? {
            u8::MAX => None,
            code => Some(indexed(&Reason::ALL, code, "reason for the state")?),
        };
        let (holder, grant, requester) = (reader.u64()?, reader.u32()?, reader.u64()?);
        let (claim, outcome) = (reader.u32()?, indexed(&ClaimOutcome::ALL, reader.u8()?, "answer to the claim")?);
        let (speed, speed_limit_cmps) = (reader.u16()?, reader.u16()?);
        let limit_reason = indexed(&LimitReason::ALL, reader.u8()?, "reason for the speed limit")?;
        let (command, age, commands_refused) = (reader.u32()?, reader.u16()?, reader.u32()?);
        Ok(Self {
            timing,
            state,
            reason,
            holder: OperatorId::new(holder),
            grant,
            requester: OperatorId::new(requester),
            claim,
            outcome,
            speed_cmps: speed.cast_signed(),
            speed_limit_cmps,
            limit_reason,
            command,
            command_age_100us: (age != UNKNOWN_TENTHS).then_some(age),
            commands_refused,
        })
    }

    pub(crate) fn write(&self, epoch: u32) -> Bytes {
        let mut octets = begin(VEHICLE_HEARTBEAT, epoch, HEADER_OCTETS + TIMING_OCTETS + 42);
        self.timing.write(&mut octets);
        octets.put_u8(self.state as u8);
        octets.put_u8(self.reason.map_or(u8::MAX, |reason| reason as u8));
        octets.put_u64(self.holder.map_or(0, OperatorId::value));
        octets.put_u32(self.grant);
        octets.put_u64(self.requester.map_or(0, OperatorId::value));
        octets.put_u32(self.claim);
        octets.put_u8(self.outcome as u8);
        octets.put_i16(self.speed_cmps);
        octets.put_u16(self.speed_limit_cmps);
        octets.put_u8(self.limit_reason as u8);
        octets.put_u32(self.command);
        octets.put_u16(self.command_age_100us.unwrap_or(UNKNOWN_TENTHS));
        octets.put_u32(self.commands_refused);
        octets.freeze()
    }
}

/// Returns the value with the given index.
fn indexed<T: Copy>(all: &[T], code: u8, field: &'static str) -> Result<T, ParseError> {
    all.get(usize::from(code)).copied().ok_or(ParseError::Field(field))
}
