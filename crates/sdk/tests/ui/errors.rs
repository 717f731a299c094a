//! `?` on an error that serde cannot serialize.

extern crate abide_sdk as abide;

use abide::prelude::*;
use abide_sdk_macros::{activity, workflow};

#[activity]
async fn read(path: String) -> Result<String, ActivityError> {
    Ok(std::fs::read_to_string(path)?)
}

#[workflow]
async fn order(_ctx: &Context, number: String) -> abide::Result<u32> {
    Ok(number.parse::<u32>()?)
}

fn main() {}
