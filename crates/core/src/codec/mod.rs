//! Stub.
#![allow(missing_docs, reason = "stub")]
use bytes::Bytes;

use crate::{effect::*, event::*, note::*};
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row { pub events: Bytes, pub notes: Bytes }
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunDetails { pub memo: crate::payload::PayloadMap, pub search_attributes: crate::payload::PayloadMap }
pub fn encode_body(_: &Body) -> Bytes { Bytes::new() }
pub fn decode_body(_: Bytes) -> Result<Body, String> { Err("stub".into()) }
pub fn encode_row(_: &[Record]) -> Row { Row::default() }
pub fn decode_row(_: &Row) -> Result<Vec<Record>, String> { Err("stub".into()) }
pub fn decode_events(_: Bytes) -> Result<Vec<Event>, String> { Err("stub".into()) }
pub fn encode_effect(_: &Effect) -> Bytes { Bytes::new() }
pub fn decode_effect(_: Bytes) -> Result<Effect, String> { Err("stub".into()) }
pub fn encode_answer(_: &Answer) -> Bytes { Bytes::new() }
pub fn decode_answer(_: Bytes) -> Result<Answer, String> { Err("stub".into()) }
pub fn encode_wait_details(_: Option<&WaitDetails>) -> Bytes { Bytes::new() }
pub fn encode_run_details(_: &RunDetails) -> Bytes { Bytes::new() }
