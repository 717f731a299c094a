//! Answers that a server owes its callers: which calls it must answer at once, and which may
//! legitimately take long, such as a query or an awaited result. An invalid call must be refused at
//! once.

use std::collections::HashMap;

use abide_proto::{
    generated::{
        AnswersFrame, CallsFrame, NumberedCall, ServerFrame, WorkerFrame,
        numbered_call::Call as Asked,
    },
    operation::operation_from_wire,
};
use prost::Message as _;

use crate::{
    parts::wrap,
    schema::{Kind, Method, Schema},
};

/// Whether the answer to a call, or to a frame of calls, may take long.
pub(crate) fn may_wait(schema: &Schema, method: &Method, message: &[u8]) -> bool {
    if method.streams {
        let calls = |frame: CallsFrame| frame.calls.into_iter().any(|it| waits(it.call));
        let of_calls = schema.messages[method.input].name == "CallsFrame";
        return of_calls && CallsFrame::decode(message).is_ok_and(calls);
    }
    // Most single calls have a form on the stream of calls, and wait for the same.
    let numbered = schema.messages.iter().find(|message| message.name == "NumberedCall");
    let mut cases = numbered.iter().flat_map(|numbered| &numbered.fields);
    let Some(case) = cases.find(|case| case.kind == Kind::Message(method.input)) else {
        return method.follows;
    };
    let mut call = Vec::with_capacity(message.len() + 10);
    wrap(case.tag, message, &mut call);
    NumberedCall::decode(call.as_slice()).is_ok_and(|numbered| waits(numbered.call))
}

fn waits(asked: Option<Asked>) -> bool {
    let operation = asked.and_then(|asked| operation_from_wire(asked).ok());
    operation.is_some_and(|operation| operation.waits())
}

/// Answers that a stream owes, by the number of the call or completion.
#[derive(Debug)]
pub(crate) struct Owed {
    numbers: HashMap<u64, usize>,
    /// The caller sent something that is not a message, so the stream has to end.
    pub(crate) end: bool,
    /// The numbers in a caller's frame that must be answered at once; `None` if it is not a frame.
    wanted: fn(&[u8]) -> Option<Vec<u64>>,
    /// The numbers that a frame of the server answers.
    given: fn(&[u8]) -> Vec<u64>,
}

impl Owed {
    /// Tracks a stream of calls.
    pub(crate) fn to_caller() -> Self {
        let wanted = |frame: &[u8]| {
            let calls = CallsFrame::decode(frame).ok()?.calls.into_iter();
            Some(calls.filter_map(|it| (!waits(it.call)).then_some(it.number)).collect())
        };
        let given = |frame: &[u8]| {
            let answers = AnswersFrame::decode(frame).unwrap_or_default().answers;
            answers.iter().map(|answer| answer.number).collect()
        };
        Self { numbers: HashMap::new(), end: false, wanted, given }
    }

    /// Tracks the stream of a worker: all completions must be answered at once.
    pub(crate) fn to_worker() -> Self {
        let wanted = |frame: &[u8]| {
            let completions = WorkerFrame::decode(frame).ok()?.completions;
            Some(completions.iter().map(|completion| completion.number).collect())
        };
        let given = |frame: &[u8]| {
            let answers = ServerFrame::decode(frame).unwrap_or_default().acknowledgements;
            answers.iter().map(|answer| answer.number).collect()
        };
        Self { numbers: HashMap::new(), end: false, wanted, given }
    }

    /// The caller sends a frame.
    pub(crate) fn sent(&mut self, frame: &[u8]) {
        match (self.wanted)(frame) {
            Some(wanted) => {
                for number in wanted {
                    *self.numbers.entry(number).or_default() += 1;
                }
            }
            None => self.end = true,
        }
    }

    /// The server sends a frame.
    pub(crate) fn heard(&mut self, frame: &[u8]) {
        for number in (self.given)(frame) {
            // A call that may take long can have the same number, and is not owed an answer.
            if let Some(owed) = self.numbers.get_mut(&number) {
                *owed = owed.saturating_sub(1);
            }
        }
    }

    /// Number of answers owed.
    pub(crate) fn count(&self) -> usize {
        self.numbers.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use abide_core::codec::generated::WorkflowKey;
    use abide_proto::generated::{
        AwaitCloseRequest, DescribeRunRequest, NumberedAnswer, QueryRunRequest, RunTarget,
    };

    use super::*;

    fn target() -> Option<RunTarget> {
        let workflow = WorkflowKey { namespace: "default".into(), workflow: "it".into() };
        Some(RunTarget { workflow: Some(workflow), run: None })
    }

    #[test]
    fn only_a_valid_call_that_awaits_something_may_wait() {
        let schema = Schema::read().expect("the schema");
        let check = |name: &str, message: Vec<u8>, waits: bool| {
            let method = schema.method(name).expect("a method");
            assert_eq!(may_wait(&schema, method, &message), waits, "{name}");
        };
        let close = AwaitCloseRequest { target: target() };
        check("/AwaitClose", close.encode_to_vec(), true);
        check("/AwaitClose", Vec::new(), false);
        check("/AwaitClose", vec![0xff], false);
        let query = QueryRunRequest { target: target(), ..QueryRunRequest::default() };
        check("/QueryRun", query.encode_to_vec(), true);
        check("/DescribeRun", DescribeRunRequest { target: target() }.encode_to_vec(), false);
        check("/StartRun", Vec::new(), false);
        check("/GetHistory", Vec::new(), false);
        check("/FollowHistory", Vec::new(), true);
        let calls = |call| CallsFrame {
            calls: vec![NumberedCall { number: 1, call: Some(call) }],
            ..CallsFrame::default()
        };
        check("/Calls", calls(Asked::Query(query)).encode_to_vec(), true);
        check("/Calls", calls(Asked::ListNodes(Default::default())).encode_to_vec(), false);
        check("/Connect", vec![0xff], false);
    }

    #[test]
    fn a_stream_owes_what_it_has_not_answered() {
        let call = |number, call| NumberedCall { number, call: Some(call) };
        let describe = || Asked::Describe(DescribeRunRequest { target: target() });
        let close = AwaitCloseRequest { target: target() };
        let calls = vec![
            call(1, describe()),
            call(2, describe()),
            call(2, describe()),
            call(3, Asked::AwaitClose(close)),
            NumberedCall { number: 4, call: None },
        ];
        let mut owed = Owed::to_caller();
        owed.sent(&CallsFrame { calls, ..CallsFrame::default() }.encode_to_vec());
        assert_eq!(owed.count(), 4);
        let answers = [1, 2, 3].map(|number| NumberedAnswer { number, answer: None }).to_vec();
        owed.heard(&AnswersFrame { answers, ..AnswersFrame::default() }.encode_to_vec());
        assert_eq!(owed.count(), 2, "2 once more, and 4");
        owed.sent(&[0xff]);
        assert!(owed.end);
    }
}
