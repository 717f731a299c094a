//! Batches as messages.

use abide_core::{
    batch::{Batches, ListBatches, StartBatch, StopBatch},
    codec::Wire,
    limits::InvalidField,
};

use crate::{field::word, generated as wire};

impl From<StartBatch> for wire::StartBatchRequest {
    fn from(StartBatch { namespace, spec }: StartBatch) -> Self {
        Self { namespace: namespace.to_wire(), spec: spec.to_wire() }
    }
}

impl TryFrom<wire::StartBatchRequest> for StartBatch {
    type Error = InvalidField;

    fn try_from(wire: wire::StartBatchRequest) -> Result<Self, InvalidField> {
        let wire::StartBatchRequest { namespace, spec } = wire;
        Ok(Self { namespace: word("namespace", namespace)?, spec: word("spec", spec)? })
    }
}

impl From<StopBatch> for wire::StopBatchRequest {
    fn from(StopBatch { namespace, id }: StopBatch) -> Self {
        Self { namespace: namespace.to_wire(), id }
    }
}

impl TryFrom<wire::StopBatchRequest> for StopBatch {
    type Error = InvalidField;

    fn try_from(wire: wire::StopBatchRequest) -> Result<Self, InvalidField> {
        Ok(Self { namespace: word("namespace", wire.namespace)?, id: wire.id })
    }
}

impl From<ListBatches> for wire::ListBatchesRequest {
    fn from(ListBatches { namespace }: ListBatches) -> Self {
        Self { namespace: namespace.to_wire() }
    }
}

impl TryFrom<wire::ListBatchesRequest> for ListBatches {
    type Error = InvalidField;

    fn try_from(wire: wire::ListBatchesRequest) -> Result<Self, InvalidField> {
        Ok(Self { namespace: word("namespace", wire.namespace)? })
    }
}

impl From<Batches> for wire::BatchesResponse {
    fn from(Batches(batches): Batches) -> Self {
        Self { batches: batches.to_wire() }
    }
}

impl TryFrom<wire::BatchesResponse> for Batches {
    type Error = InvalidField;

    fn try_from(wire: wire::BatchesResponse) -> Result<Self, InvalidField> {
        Ok(Self(word("batches", wire.batches)?))
    }
}
