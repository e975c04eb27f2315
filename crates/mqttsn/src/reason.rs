//! Enumerations of reasons, and their counters.

/// Defines an enumeration of reasons with a constant text for each.
macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident => $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// All reasons.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            /// Returns the reason as a constant text for counters and logs.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// Returns the index of the reason in [`Self::ALL`].
            pub(crate) const fn index(self) -> usize {
                self as usize
            }
        }
    };
}

/// Increments the counter with the given index.
pub(crate) fn count(counters: &mut [u64], index: usize) {
    if let Some(counter) = counters.get_mut(index) {
        *counter += 1;
    }
}

/// Returns the counter with the given index.
pub(crate) fn counted(counters: &[u64], index: usize) -> u64 {
    counters.get(index).copied().unwrap_or(0)
}
