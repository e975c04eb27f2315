//! The source `v4l2`: a camera of the system with Motion JPEG.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use moq_v4l::buffer::Type;
use moq_v4l::capability::Flags;
use moq_v4l::io::mmap::Stream;
use moq_v4l::io::traits::{CaptureStream, Stream as _};
use moq_v4l::video::Capture;
use moq_v4l::video::capture::Parameters;
use moq_v4l::{Device, FourCC, Timestamp};
use viaduct_bus::{Counter, clock};
use viaduct_node::Stop;
use viaduct_units::{Mono, Now, Tai};

/// Motion JPEG.
const MJPEG: &[u8; 4] = b"MJPG";
/// Buffers of the driver.
const BUFFERS: u32 = 4;
/// Longest wait for a frame before the end of the component is checked.
const WAIT: Duration = Duration::from_millis(100);
/// Time without a frame after which the device is opened again.
const SILENCE_MAX: Duration = Duration::from_secs(3);
/// Time between two attempts to open the device.
const RETRY: Duration = Duration::from_secs(1);
/// Largest plausible age of a frame; the time of an older one is not on this machine's clock.
const AGE_MAX: Duration = Duration::from_secs(1);

/// The device and the wanted form of its pictures.
#[derive(Clone, Debug)]
pub(super) struct DeviceSettings {
    pub(super) path: PathBuf,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) rate_hz: f64,
}

/// The reason why a device sends no pictures.
#[derive(Debug, thiserror::Error)]
enum DeviceError {
    #[error("cannot open {}: {cause}; check the path and the permission (group `video`)", path.display())]
    Open { path: PathBuf, cause: std::io::Error },
    #[error("{} cannot stream video", path.display())]
    NotACamera { path: PathBuf },
    #[error("{} offers no Motion JPEG; its format is {format}", path.display())]
    Format { path: PathBuf, format: String },
    #[error("{operation} of {} failed: {cause}", path.display())]
    Operation { path: PathBuf, operation: &'static str, cause: std::io::Error },
    #[error("{} has sent no frame for {} s", path.display(), SILENCE_MAX.as_secs())]
    Silent { path: PathBuf },
    #[error("the driver of {} refused to stop", path.display())]
    Stop { path: PathBuf },
}

/// Passes the frames of the device to `take` until the end of the component is requested. If the device is missing or fails, it is
/// opened again each second.
pub(super) fn run(settings: &DeviceSettings, stop: &Stop, errors: &Counter, mut take: impl FnMut(Now, &[u8])) {
    let mut reported = String::new();
    while !stop.is_asked() {
        // The destructor of the binding panics if the driver refuses to stop.
        let session = AssertUnwindSafe(|| capture(settings, stop, &mut take));
        let ended = catch_unwind(session).unwrap_or_else(|_| Err(DeviceError::Stop { path: settings.path.clone() }));
        let Err(error) = ended else { return };
        errors.increment();
        let text = error.to_string();
        if text != reported {
            tracing::warn!(error = text, "the camera sends no pictures; trying again each second");
            reported = text;
        }
        wait(RETRY, stop);
    }
}

fn wait(time: Duration, stop: &Stop) {
    let mut left = time;
    while !left.is_zero() && !stop.is_asked() {
        let part = left.min(WAIT);
        std::thread::sleep(part);
        left -= part;
    }
}

/// Opens the device and passes on its frames. Returns `Ok` if the end of the component is requested.
fn capture(settings: &DeviceSettings, stop: &Stop, take: &mut impl FnMut(Now, &[u8])) -> Result<(), DeviceError> {
    let path = &settings.path;
    let device = open(settings)?;
    let failed = |operation| move |cause| DeviceError::Operation { path: path.clone(), operation, cause };
    let mut stream =
        Stream::with_buffers(&device, Type::VideoCapture, BUFFERS).map_err(failed("allocation of buffers"))?;
    // `next` enqueues the first buffer itself. A driver may have granted fewer buffers than requested.
    for index in 1..BUFFERS as usize {
        if CaptureStream::queue(&mut stream, index).is_err() {
            break;
        }
    }
    stream.start().map_err(failed("start of the stream"))?;
    tracing::info!(device = %path.display(), "the camera is open");
    // The first call enqueues the first buffer and waits for a frame, so it needs a limit.
    stream.set_timeout(SILENCE_MAX);
    let mut first = true;
    let mut silence = Duration::ZERO;
    while !stop.is_asked() {
        if !first && device.handle().poll(libc::POLLIN, WAIT.as_millis() as i32).map_err(failed("wait"))? == 0 {
            silence += WAIT;
            if silence >= SILENCE_MAX {
                return Err(DeviceError::Silent { path: path.clone() });
            }
            continue;
        }
        (first, silence) = (false, Duration::ZERO);
        let (buffer, frame) = stream.next().map_err(failed("reading a frame"))?;
        let file = buffer.get(..frame.bytesused as usize).unwrap_or(buffer);
        take(captured_at(clock::now(), frame.timestamp), file);
    }
    Ok(())
}

fn open(settings: &DeviceSettings) -> Result<Device, DeviceError> {
    let path = &settings.path;
    let device = open_node(path)?;
    let failed = |operation| move |cause| DeviceError::Operation { path: path.clone(), operation, cause };
    let abilities = device.query_caps().map_err(failed("query"))?.capabilities;
    if !abilities.contains(Flags::VIDEO_CAPTURE | Flags::STREAMING) {
        return Err(DeviceError::NotACamera { path: path.clone() });
    }
    let mut format = device.format().map_err(failed("query of the format"))?;
    (format.width, format.height, format.fourcc) = (settings.width, settings.height, FourCC::new(MJPEG));
    let granted = device.set_format(&format).map_err(failed("setting the format"))?;
    if granted.fourcc.repr != *MJPEG {
        return Err(DeviceError::Format { path: path.clone(), format: granted.fourcc.to_string() });
    }
    // Some drivers have a fixed rate.
    if let Err(cause) = device.set_params(&Parameters::with_fps(settings.rate_hz.round().max(1.0) as u32)) {
        tracing::debug!(%cause, device = %path.display(), "the camera keeps its own rate");
    }
    Ok(device)
}

/// Opens the device node. A path with a zero byte, which the binding does not accept, is refused.
fn open_node(path: &Path) -> Result<Device, DeviceError> {
    let failed = |cause| DeviceError::Open { path: path.to_owned(), cause };
    // A check before the binding's own: it opens any file, and reports a missing path without its name.
    std::fs::metadata(path).map_err(failed)?;
    Device::with_path(path).map_err(failed)
}

/// Returns the time at which the driver captured a frame. Drivers stamp frames with the monotonic clock; another time is replaced by
/// the present one.
fn captured_at(now: Now, stamp: Timestamp) -> Now {
    let stamped = Duration::new(stamp.sec.max(0) as u64, 0) + Duration::from_micros(stamp.usec.max(0) as u64);
    match now.mono.0.checked_sub(stamped) {
        Some(age) if age <= AGE_MAX => {
            let tai = Tai::from_nanos(now.tai.nanos() - i64::try_from(age.as_nanos()).unwrap_or(0));
            Now { mono: Mono(stamped), tai }
        }
        _ => now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(path: &str) -> DeviceSettings {
        DeviceSettings { path: path.into(), width: 640, height: 480, rate_hz: 30.0 }
    }

    #[test]
    fn a_missing_device_and_another_file_are_named_in_the_error() {
        let missing = open(&settings("/dev/no-such-camera")).err().unwrap().to_string();
        assert!(missing.starts_with("cannot open /dev/no-such-camera: No such file"), "{missing}");
        let other = open(&settings("/dev/null")).err().unwrap().to_string();
        assert!(other.starts_with("query of /dev/null failed"), "{other}");
        let zero = open(&settings("/dev/vid\0eo")).err().unwrap().to_string();
        assert!(zero.starts_with("cannot open"), "{zero}");
    }

    #[test]
    fn a_frame_has_the_time_of_the_driver_if_it_is_on_this_clock() {
        let now = Now { mono: Mono(Duration::from_millis(50_020)), tai: Tai::from_nanos(1_800_000_000_000_000_000) };
        let captured = captured_at(now, Timestamp::new(50, 4_000));
        assert_eq!(captured.mono, Mono(Duration::from_millis(50_004)));
        assert_eq!(now.tai.since(captured.tai), Duration::from_millis(16));
        for other in
            [Timestamp::new(0, 0), Timestamp::new(60, 0), Timestamp::new(-1, 0), Timestamp::new(1_800_000_000, 5)]
        {
            assert_eq!(captured_at(now, other), now);
        }
    }
}
