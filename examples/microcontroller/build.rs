//! Links the programs with the memories of the microcontroller.

fn main() {
    println!("cargo:rerun-if-changed=memory.x");
    if std::env::var_os("CARGO_FEATURE_DEVICE").is_some() {
        println!("cargo:rustc-link-search={}", env!("CARGO_MANIFEST_DIR"));
        println!("cargo:rustc-link-arg-bins=-Tlink.x");
        // Without it, sections begin at the size of a page, which the flash does not have.
        println!("cargo:rustc-link-arg-bins=--nmagic");
    }
}
