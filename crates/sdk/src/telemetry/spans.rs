//! Which spans there are, and what they say.

use opentelemetry::{
    Context, KeyValue,
    trace::{
        FutureExt as _, Link, SpanBuilder, SpanKind, Status, TraceContextExt as _, Tracer as _,
    },
};

use super::{OpenTelemetry, Past, attributes, ids::Ids};
use crate::{
    Error,
    client::ClientError,
    future::BoxFuture,
    interceptor::{
        Attempt, CallAnswer, CallKind, ClientCall, Interceptor, Message, MessageKind, NextAttempt,
        NextCall, Outgoing, OutgoingKind, RunFuture, RunInfo,
    },
    registry::ActivityEnd,
    returned::ReturnedError,
};

impl Interceptor for OpenTelemetry {
    fn call<'a>(
        &'a self,
        mut call: ClientCall,
        next: NextCall<'a>,
    ) -> BoxFuture<'a, Result<CallAnswer, ClientError>> {
        let (verb, kind) = match call.kind() {
            CallKind::Start => ("start ", SpanKind::Producer),
            CallKind::Signal => ("signal ", SpanKind::Producer),
            CallKind::Query => ("query ", SpanKind::Client),
            CallKind::Update => ("update ", SpanKind::Client),
            CallKind::Cancel => ("cancel", SpanKind::Client),
            CallKind::Terminate => ("terminate", SpanKind::Client),
            CallKind::Result | CallKind::Other => return next.run(call),
        };
        let about = call.workflow().map(|workflow| {
            attributes(workflow.namespace.as_str(), workflow.workflow.as_str(), None)
        });
        let builder = self
            .tracer
            .span_builder(format!("{verb}{}", call.name()))
            .with_kind(kind)
            .with_attributes(about.unwrap_or_default());
        let context = Context::current_with_span(self.tracer.build(builder));
        self.inject(&context, &mut call.headers);
        Box::pin(async move {
            let answer = next.run(call).with_context(context.clone()).await;
            let span = context.span();
            match &answer {
                Ok(answer) => {
                    if let Some(run) = answer.run_id() {
                        span.set_attribute(KeyValue::new("abide.run_id", run.to_string()));
                    }
                }
                Err(error) => span.set_status(Status::error(error.to_string())),
            }
            span.end();
            answer
        })
    }

    fn activity<'a>(
        &'a self,
        attempt: Attempt,
        next: NextAttempt<'a>,
    ) -> BoxFuture<'a, ActivityEnd> {
        let info = attempt.context.info();
        let (spec, workflow) = (&info.given.spec, &info.workflow);
        let mut about = attributes(
            workflow.namespace.as_str(),
            workflow.workflow.as_str(),
            Some(info.run.to_string()),
        );
        about.push(KeyValue::new("abide.activity_id", spec.activity.to_string()));
        about.push(KeyValue::new("abide.attempt", i64::from(info.given.attempt)));
        let builder = self
            .tracer
            .span_builder(format!("activity {}", spec.activity_type))
            .with_kind(SpanKind::Consumer)
            .with_attributes(about);
        let parent = self.extract(&spec.header);
        let span = self.tracer.build_with_context(builder, &parent);
        let context = parent.with_span(span);
        Box::pin(async move {
            let end = next.run(attempt).with_context(context.clone()).await;
            let span = context.span();
            match &end {
                ActivityEnd::Completed(_) => {}
                ActivityEnd::Failed(failure) => {
                    span.set_status(Status::error(failure.message().to_owned()));
                }
                ActivityEnd::Cancelled(_) => outcome(&span, "cancelled"),
                ActivityEnd::Later => outcome(&span, "completed later"),
            }
            span.end();
            end
        })
    }

    fn run(&self, run: &RunInfo, code: RunFuture) -> RunFuture {
        let (telemetry, run) = (self.clone(), run.clone());
        Box::pin(async move {
            let result = code.await;
            if !run.is_replaying() {
                telemetry.ran(&run, &result);
            }
            result
        })
    }

    fn message(&self, run: &RunInfo, message: &Message) -> Result<(), String> {
        self.handled(run, message);
        Ok(())
    }

    fn outgoing(&self, run: &RunInfo, call: &mut Outgoing<'_>) {
        match call.kind {
            OutgoingKind::Activity
            | OutgoingKind::LocalActivity
            | OutgoingKind::Child
            | OutgoingKind::Signal => self.inject(&self.of_run(run).0, &mut call.headers),
            // The next run has the headers of this one, and so the same parent.
            OutgoingKind::ContinueAsNew | OutgoingKind::Sleep => {}
        }
    }
}

fn outcome(span: &opentelemetry::trace::SpanRef<'_>, outcome: &'static str) {
    span.set_attribute(KeyValue::new("abide.outcome", outcome));
}

impl OpenTelemetry {
    /// The main code of the run has returned.
    fn ran(&self, run: &RunInfo, result: &Result<abide_core::payload::Payloads, ReturnedError>) {
        let error = result.as_ref().err();
        let (outcome, problem) = match error.map(|returned| (returned, returned.find::<Error>())) {
            None => ("completed", None),
            Some((_, Some(Error::ContinueAsNew(_)))) => ("continued as new", None),
            Some((_, Some(error))) if error.is_cancelled() => ("cancelled", None),
            Some((returned, _)) => ("failed", Some(returned.message())),
        };
        let mut about = about_run(run);
        about.push(KeyValue::new("abide.outcome", outcome));
        about.push(KeyValue::new("abide.attempt", i64::from(run.attempt())));
        about.extend(problem.map(|problem| KeyValue::new("exception.message", problem)));
        let (_, parent) = self.of_run(run);
        self.export(Past {
            name: format!("run {}", run.workflow_type()).into(),
            ids: Ids::of_run(run.run_id()),
            parent: &parent,
            times: (run.began(), run.now()),
            builder: SpanBuilder::from_name("")
                .with_kind(SpanKind::Consumer)
                .with_attributes(about),
        });
    }

    /// A message has reached the run.
    fn handled(&self, run: &RunInfo, message: &Message) {
        let kind = match message.kind {
            MessageKind::Signal => "signal",
            MessageKind::Query => "query",
            MessageKind::Update => "update",
        };
        let (own, _) = self.of_run(run);
        let mut parent = self.extract(&message.headers.0);
        if !parent.span().span_context().is_valid() {
            parent = own.clone();
        }
        let link = Link::new(own.span().span_context().clone(), Vec::new(), 0);
        let id = match message.kind {
            // Any number of queries may come with the same state.
            MessageKind::Query => parent.span().span_context().span_id().to_string(),
            MessageKind::Signal | MessageKind::Update => message.id.clone(),
        };
        self.export(Past {
            name: format!("handle {}", message.name).into(),
            ids: Ids::of(run.run_id(), kind, &id),
            parent: &parent,
            times: (run.now(), run.now()),
            builder: SpanBuilder::from_name("")
                .with_kind(SpanKind::Consumer)
                .with_attributes(about_run(run))
                .with_links(vec![link]),
        });
    }
}

fn about_run(run: &RunInfo) -> Vec<KeyValue> {
    let run_id = Some(run.run_id().to_string());
    attributes(run.namespace().as_str(), run.workflow_id().as_str(), run_id)
}
