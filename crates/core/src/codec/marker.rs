//! Values that code records, and facts that it states for lists.

use super::table::{messages, union};
use crate::event::{Marker, MarkerKind, MarkerRecorded, MemoUpserted, SearchAttributesUpserted};

messages! {
    MarkerRecorded { marker, task_completed }
    Marker { kind, id, details, failure, header }
    SearchAttributesUpserted { attributes, task_completed }
    MemoUpserted { memo, task_completed }
}

union! {
    MarkerKind = marker_kind::Case in MarkerKind {
        whole { Named }
        parts {
            SideEffect(Nothing) {},
            Version(Nothing) {},
            LocalActivity(Nothing) {},
        }
    }
}
