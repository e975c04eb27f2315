//! Certificates of a broker and of a client, made by openssl.

use std::path::Path;
use std::process::{Command, Stdio};

/// Writes `NAME.pem` and `NAME.key` for the authorities `ca` and `other`, and for `broker` and `client`, which `ca` signs.
pub(crate) fn write(folder: &Path) {
    let openssl = |arguments: &str| {
        let status =
            Command::new("openssl").args(arguments.split(' ')).current_dir(folder).stderr(Stdio::null()).status();
        assert!(status.unwrap().success(), "openssl {arguments}");
    };
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
    for authority in ["ca", "other"] {
        openssl(&format!("req -x509 {key} -keyout {authority}.key -out {authority}.pem -subj /CN={authority}"));
    }
    for (name, alternative) in [("broker", "IP:127.0.0.1"), ("client", "DNS:car")] {
        openssl(&format!(
            "req -x509 {key} -CA ca.pem -CAkey ca.key -keyout {name}.key -out {name}.pem -subj /CN={name} -addext subjectAltName={alternative} -addext basicConstraints=CA:FALSE"
        ));
    }
}
