//! MQTT-SN 1.2 as pure state machines.
#![cfg_attr(not(feature = "std"), no_std)]

pub mod codec;
