//! The setting `tls` of a client.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_mqtt::address::BrokerAddress;
use viaduct_mqtt::transport::TlsFiles;
use viaduct_node::SettingError;

/// TLS of a connection to a broker, with `mqtts://` and `wss://`. The broker's certificate is always checked.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TlsSettings {
    /// File in the PEM format with the certificates of the authorities that may sign the broker's certificate. For a self-signed
    /// certificate: that certificate. Default: the authorities of the system.
    pub ca_file: Option<PathBuf>,
    /// File in the PEM format with the certificate chain of this client, if the broker requires one.
    pub certificate_file: Option<PathBuf>,
    /// File in the PEM format with the private key of this client.
    pub key_file: Option<PathBuf>,
    /// Name in the broker's certificate. Default: the host in `broker`.
    pub server_name: Option<String>,
}

impl TlsSettings {
    /// Returns the files.
    pub(crate) fn files(&self) -> TlsFiles {
        TlsFiles {
            authorities: self.ca_file.clone(),
            client: self.certificate_file.clone().zip(self.key_file.clone()),
            server_name: self.server_name.clone(),
        }
    }
}

/// Checks the setting `tls` for a broker.
pub(crate) fn check(tls: Option<&TlsSettings>, broker: &BrokerAddress) -> Result<(), SettingError> {
    let Some(tls) = tls else {
        return Ok(());
    };
    if !broker.scheme().has_tls() {
        return Err(SettingError::new("tls", "the broker's address has no TLS; expected `mqtts://` or `wss://`"));
    }
    match (&tls.certificate_file, &tls.key_file) {
        (Some(_), None) => Err(SettingError::new("tls.key_file", "required with `certificate_file`")),
        (None, Some(_)) => Err(SettingError::new("tls.certificate_file", "required with `key_file`")),
        _ => Ok(()),
    }
}

/// Checks that the files of the setting `tls` can be used.
pub(crate) fn check_files(tls: Option<&TlsSettings>) -> Result<(), SettingError> {
    match tls.map(|tls| tls.files().client_config()) {
        Some(Err(error)) => Err(SettingError::new("tls", error.to_string())),
        _ => Ok(()),
    }
}
