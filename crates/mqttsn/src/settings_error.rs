//! The error of all settings.

/// An invalid setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` must be {range}")]
pub struct SettingsError {
    /// Name of the setting.
    pub field: &'static str,
    /// Valid values.
    pub range: &'static str,
}
