//! Updates.

use super::table::{messages, union};
use crate::event::{UpdateAccepted, UpdateAdmitted, UpdateCompleted, UpdateOutcome, UpdateRequest};

messages! {
    UpdateRequest { name, input, header, identity }
    UpdateAdmitted { update, request }
    UpdateAccepted { update, request }
    UpdateCompleted { update, accepted, outcome }
}

union! {
    UpdateOutcome = outcome::Case in Outcome {
        whole { Completed, Failed }
        parts {}
    }
}
