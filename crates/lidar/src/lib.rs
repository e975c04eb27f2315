//! A lidar without a sensor: road scenes, ray casting, the packets of a VLP-32C, points, and a detector of vehicles.
//!
//! | module | holds |
//! |---|---|
//! | [`scene`] | road scenes from a seed, and what a lidar measures in them |
//! | [`vlp32c`] | beams and firing times of a Velodyne VLP-32C |
//! | [`packet`] | its data packets |
//! | [`points`] | points from packets, in the layout of the ROS driver |
//! | [`cloud`] | points in a packed cloud of any layout |
//! | [`bev`] | points as a picture from above: the input of the network |
//! | [`boxes`] | the output of the network as boxes |
//! | [`evaluation`] | average precision, precision and recall |
//! | [`sample`] | scans with known vehicles, for training and evaluation |
//! | [`geometry`] | rotated rectangles |
//!
//! Not here: clocks, sockets, files, threads. Nothing panics, whatever the input.

pub mod bev;
pub mod boxes;
pub mod cloud;
pub mod evaluation;
pub mod geometry;
pub mod packet;
pub mod points;
pub mod sample;
pub mod scene;
pub mod vlp32c;
