//! Updates.

use super::table::{messages, union};
use crate::event::{Outcome, UpdateAccepted, UpdateAdmitted, UpdateCompleted, UpdateRequest};

messages! {
    UpdateRequest { name, input, header, identity }
    UpdateAdmitted { update, request }
    UpdateAccepted { update, request }
    UpdateCompleted { update, accepted, outcome }
}

union! {
    Outcome = outcome::Case in Outcome {
        whole { Completed, Failed }
        parts {}
    }
}
