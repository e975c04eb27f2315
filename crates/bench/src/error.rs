//! Why a bench cannot be run.

/// Why a bench cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The system refuses a thread, a socket or a file.
    #[error("{what}: {cause}")]
    System {
        /// What was tried.
        what: String,
        /// What the system says.
        cause: std::io::Error,
    },
    /// A part of Viaduct does not start, or stops working while it is measured.
    #[error("{what}: {cause}")]
    Part {
        /// What was tried.
        what: String,
        /// What the part says.
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
