//! Errors of a bench.

/// Errors of a bench.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The system refuses a thread, a socket or a file.
    #[error("{what}: {cause}")]
    System {
        /// Attempted operation.
        what: String,
        /// Error of the system.
        cause: std::io::Error,
    },
    /// A part of Viaduct does not start, or fails during the measurement.
    #[error("{what}: {cause}")]
    Part {
        /// Attempted operation.
        what: String,
        /// Error of that part.
        cause: String,
    },
}

impl BenchError {
    pub(crate) fn system(what: &str) -> impl Fn(std::io::Error) -> Self + '_ {
        move |cause| Self::System { what: what.to_owned(), cause }
    }

    pub(crate) fn broken(what: &str, cause: &str) -> Self {
        Self::Part { what: what.to_owned(), cause: cause.to_owned() }
    }

    pub(crate) fn part<E: std::fmt::Display>(what: &str) -> impl Fn(E) -> Self + '_ {
        move |cause| Self::broken(what, &cause.to_string())
    }
}
