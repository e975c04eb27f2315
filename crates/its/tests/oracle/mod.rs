//! Location of the Python that runs the oracle scripts of this folder.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::capture;

/// Returns a Python that has this module: `VIADUCT_PYTHON`, or `.cache/venv/bin/python` in the repository, created by
/// `python3 -m venv .cache/venv && .cache/venv/bin/pip install asn1tools==0.169.0 pycrate==0.8.1`. If there is none,
/// prints the reason and returns `None`.
pub(crate) fn python(module: &str) -> Option<PathBuf> {
    let python = std::env::var_os("VIADUCT_PYTHON")
        .map_or_else(|| capture::repository().join(".cache/venv/bin/python"), PathBuf::from);
    let has_module = Command::new(&python).args(["-c", &format!("import {module}")]).stderr(Stdio::null()).status();
    if has_module.is_ok_and(|status| status.success()) {
        return Some(python);
    }
    capture::skipped(&format!("no Python with {module} (VIADUCT_PYTHON, or .cache/venv/bin/python)"));
    None
}

/// Returns the path of a script of this folder.
pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle").join(name)
}
