//! An argument that serde does not know.

extern crate abide_sdk as abide;

use abide_sdk_macros::activity;

struct Secret;

#[activity]
async fn keep(_secret: Secret) {}

fn main() {}
