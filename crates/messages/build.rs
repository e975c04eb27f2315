//! Compiles `proto/` without an installed protoc, and stores the descriptors next to the types.

use std::path::PathBuf;

use prost::Message as _;

const FILES: [&str; 19] = [
    "foxglove/compressed_image.proto",
    "foxglove/geometry.proto",
    "foxglove/location_fix.proto",
    "foxglove/log.proto",
    "foxglove/point_cloud.proto",
    "foxglove/raw_image.proto",
    "viaduct/figures/key_figures.proto",
    "viaduct/its/event_notice.proto",
    "viaduct/its/event_request.proto",
    "viaduct/its/local_dynamic_map.proto",
    "viaduct/its/v2x_message.proto",
    "viaduct/its/v2x_send_request.proto",
    "viaduct/observe/echo.proto",
    "viaduct/perception/perceived_objects.proto",
    "viaduct/robot/robot.proto",
    "viaduct/teleop/driving.proto",
    "viaduct/vehicle/camera_budget.proto",
    "viaduct/vehicle/drive_command.proto",
    "viaduct/vehicle/vehicle_state.proto",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto");
    let descriptors = protox::compile(FILES, ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    prost_build::Config::new()
        // Large fields are `Bytes`, so a pooled buffer or a received packet is passed on without a copy.
        .bytes(["."])
        .enable_type_names()
        .include_file("mod.rs")
        .compile_fds(descriptors)?;
    Ok(())
}
