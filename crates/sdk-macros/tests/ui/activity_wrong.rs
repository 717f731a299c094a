//! Functions that cannot be activities.

use abide_sdk_macros::activity;

#[activity]
fn not_async(name: String) {}

#[activity]
async fn borrows(name: &str) {}

#[activity]
async fn takes_apart((left, right): (u32, u32)) {}

#[activity]
async fn context_second(name: String, ctx: ActivityContext) {}

#[activity]
async fn context_borrowed(ctx: &ActivityContext) {}

#[activity]
async fn too_many(a: u8, b: u8, c: u8, d: u8, e: u8, f: u8, g: u8, h: u8, i: u8) {}

#[activity]
async fn error_of_one_thread(name: String) -> Result<(), Box<dyn std::error::Error>> {}

fn main() {}
