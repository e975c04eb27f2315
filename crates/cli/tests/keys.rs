//! `viaduct keys`: private keys stay private and are never overwritten.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// Runs `viaduct keys` in a folder. Returns the exit code, stdout and stderr.
fn keys(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_viaduct")).arg("keys").args(arguments).current_dir(folder).output().unwrap();
    let text = |octets| String::from_utf8(octets).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_new_key_is_private_and_has_the_public_key_that_was_printed() {
    let folder = tempfile::tempdir().unwrap();
    let (code, public, errors) = keys(folder.path(), &["new", "vehicle.key"]);
    assert_eq!((code, public.len(), errors.as_str()), (0, 45, ""));
    let file = folder.path().join("vehicle.key");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(keys(folder.path(), &["public", "vehicle.key"]), (0, public.clone(), String::new()));
    let private = fs::read_to_string(&file).unwrap();
    assert!(private.len() == 45 && private != public);

    let (code, _, errors) = keys(folder.path(), &["new", "vehicle.key"]);
    assert_eq!((code, errors.as_str()), (1, "viaduct: `vehicle.key` exists; a private key is never overwritten\n"));
    assert_eq!(fs::read_to_string(&file).unwrap(), private);
}

#[test]
fn two_new_keys_differ() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["first.key", "second.key"].map(|file| keys(folder.path(), &["new", file]).1);
    assert_ne!(first, second);
}

#[test]
fn a_key_that_others_can_read_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    keys(folder.path(), &["new", "desk.key"]);
    fs::set_permissions(folder.path().join("desk.key"), fs::Permissions::from_mode(0o644)).unwrap();
    let expected = "viaduct: the private key `desk.key` is open to other users (mode 0644); run `chmod 600 desk.key`\n";
    assert_eq!(keys(folder.path(), &["public", "desk.key"]), (1, String::new(), expected.to_owned()));
}

#[test]
fn a_file_that_is_missing_or_no_key_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, errors) = keys(folder.path(), &["public", "none.key"]);
    assert!(
        code == 1 && errors.starts_with("viaduct: cannot read the private key `none.key`: No such file"),
        "{errors}"
    );
    let file = folder.path().join("text.key");
    fs::write(&file, "text\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let (code, _, errors) = keys(folder.path(), &["public", "text.key"]);
    assert!(
        code == 1 && errors.starts_with("viaduct: `text.key` contains no private key: expected one line"),
        "{errors}"
    );
    let (code, _, errors) = keys(folder.path(), &["new", "missing/vehicle.key"]);
    assert!(code == 1 && errors.starts_with("viaduct: cannot write the private key `missing/vehicle.key`"), "{errors}");
}
