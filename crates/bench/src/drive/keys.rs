//! The keys of vehicle and desk, created for each cell.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use viaduct_components::net::secure::{PrivateKey, SystemRandom};

use crate::error::BenchError;

/// The keys of both ends, in a folder that is removed when this is dropped.
pub(super) struct KeyFolder {
    folder: PathBuf,
    keys: Keys,
}

/// The keys as the configs of both nodes name them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Keys {
    vehicle_file: PathBuf,
    vehicle_public: String,
    desk_file: PathBuf,
    desk_public: String,
    /// File with the roles of peers: the desk may drive.
    roles: PathBuf,
}

impl KeyFolder {
    pub(super) fn create() -> Result<Self, BenchError> {
        let folder = std::env::temp_dir().join(format!("viaduct-bench-{}", std::process::id()));
        // A folder of an earlier process with the same number.
        let _ = fs::remove_dir_all(&folder);
        let failed = BenchError::system("cannot create the keys");
        DirBuilder::new().mode(0o700).create(&folder).map_err(&failed)?;
        let (vehicle_file, desk_file, roles) =
            (folder.join("vehicle.key"), folder.join("desk.key"), folder.join("roles"));
        let vehicle_public = create_key(&vehicle_file)?;
        let desk_public = create_key(&desk_file)?;
        fs::write(&roles, "desk driver\n").map_err(&failed)?;
        Ok(Self { folder, keys: Keys { vehicle_file, vehicle_public, desk_file, desk_public, roles } })
    }

    pub(super) fn keys(&self) -> Keys {
        self.keys.clone()
    }
}

impl Drop for KeyFolder {
    fn drop(&mut self) {
        // A folder that remains has keys that nothing uses.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Writes a private key and returns its public key.
fn create_key(file: &Path) -> Result<String, BenchError> {
    let failed = "cannot create the keys";
    let key = PrivateKey::generate(&mut SystemRandom::default()).map_err(BenchError::part(failed))?;
    key.write_new(file).map_err(BenchError::part(failed))?;
    Ok(key.public_key().to_string())
}

impl Keys {
    /// Returns the setting `security` of the vehicle.
    pub(super) fn of_vehicle(&self) -> String {
        let Self { vehicle_file, desk_public, roles, .. } = self;
        format!(
            "{{ keys: {{ private_key: {vehicle_file:?}, roles: {roles:?}, peers: [ {{ name: desk, public_key: \"{desk_public}\" }} ] }} }}"
        )
    }

    /// Returns the setting `security` of the desk.
    pub(super) fn of_desk(&self) -> String {
        let Self { desk_file, vehicle_public, .. } = self;
        format!(
            "{{ keys: {{ private_key: {desk_file:?}, peers: [ {{ name: vehicle, public_key: \"{vehicle_public}\" }} ] }} }}"
        )
    }
}
