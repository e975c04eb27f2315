//! Errors of the emulated link.

use std::io;

use viaduct_netem::config::LinkConfigError;

/// The reason why an emulated link cannot be created or changed.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The process may not create network namespaces.
    #[error("an emulated link needs root, or the capabilities CAP_NET_ADMIN and CAP_SYS_ADMIN: run it with sudo")]
    NotPermitted,
    /// The system has no TUN devices.
    #[error(
        "there is no /dev/net/tun: load the kernel module with `modprobe tun`; in a container, pass the device with \
         `--device /dev/net/tun`"
    )]
    NoTun,
    /// The name is not one of a link.
    #[error("{0:?} is not a name of a link: it must have 1 to 32 of the characters a-z, 0-9, `-` and `_`")]
    Name(String),
    /// A network namespace of that name exists.
    #[error(
        "the network namespace {name} exists: choose another name with --name, or remove it with `viaduct link down --name \
         {link}`"
    )]
    InUse {
        /// Name of the namespace.
        name: String,
        /// Name of the link.
        link: String,
    },
    /// There is no link of that name.
    #[error("no link {0} is up: create it with `viaduct link up PROFILE --name {0}`")]
    NotUp(String),
    /// The largest packet is out of range.
    #[error("the MTU is {0}, but must be {min} to 65535", min = super::settings::MTU_MIN)]
    Mtu(u16),
    /// The settings of a direction are invalid.
    #[error("{direction}.{key}: {cause}", key = cause.key())]
    Config {
        /// `a_to_b` or `b_to_a`.
        direction: &'static str,
        /// The invalid setting.
        cause: LinkConfigError,
    },
    /// A system call failed.
    #[error("cannot {action}: {cause}")]
    System {
        /// The failed action.
        action: String,
        /// Error of the system.
        cause: io::Error,
    },
}

impl LinkError {
    /// Returns a function that adds the failed action to an error of the system.
    pub(super) fn system<E: Into<io::Error>>(action: impl Into<String>) -> impl FnOnce(E) -> Self {
        let action = action.into();
        move |cause| {
            let cause = cause.into();
            if cause.kind() == io::ErrorKind::PermissionDenied {
                Self::NotPermitted
            } else {
                Self::System { action, cause }
            }
        }
    }
}
