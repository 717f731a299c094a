//! Single calls: each method translates its request, lets the handler perform it, and answers.

use std::pin::Pin;

use abide_proto::{
    error,
    generated::{
        self as wire, AnswersFrame, CallsFrame, DoneResponse, GetHistoryResponse, StartRunResponse,
        abide_server::Abide, numbered_answer::Answer, numbered_call::Call as Asked,
    },
    operation::Operation,
};
use futures_util::Stream;
use tonic::{Request, Response, Status, Streaming, async_trait};

use crate::{
    calls::Calls,
    handler::{Handler, status},
    history, waits,
};

/// The service of clients and operators.
pub(crate) struct Service(pub(crate) Handler);

impl Service {
    async fn ask<T>(
        &self,
        asked: Asked,
        pick: impl FnOnce(Answer) -> Option<T>,
    ) -> Result<Response<T>, Status> {
        let operation = Operation::try_from(asked).map_err(status)?;
        let reply = self.0.perform(operation).await.map_err(status)?;
        match Answer::from(reply) {
            Answer::Error(detail) => Err(error::to_status(detail)),
            answer => pick(answer)
                .map(Response::new)
                .ok_or_else(|| Status::internal("the answer is not one to this call")),
        }
    }

    async fn done(&self, asked: Asked) -> Result<Response<DoneResponse>, Status> {
        self.ask(asked, |answer| match answer {
            Answer::Done(done) => Some(done),
            _ => None,
        })
        .await
    }

    async fn start(
        &self,
        request: wire::StartRunRequest,
    ) -> Result<Response<StartRunResponse>, Status> {
        self.ask(Asked::Start(request), |answer| match answer {
            Answer::Started(started) => Some(started),
            _ => None,
        })
        .await
    }
}

type ResponseStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[async_trait]
impl Abide for Service {
    type FollowHistoryStream = ResponseStream<GetHistoryResponse>;
    type FollowWaitsStream = ResponseStream<wire::RunWaits>;
    type CallsStream = ResponseStream<AnswersFrame>;

    async fn start_run(
        &self,
        request: Request<wire::StartRunRequest>,
    ) -> Result<Response<StartRunResponse>, Status> {
        self.start(request.into_inner()).await
    }

    async fn signal_with_start(
        &self,
        request: Request<wire::StartRunRequest>,
    ) -> Result<Response<StartRunResponse>, Status> {
        let request = request.into_inner();
        if request.signal.is_none() {
            return Err(status(abide_core::limits::InvalidField::new("signal", "is missing")));
        }
        self.start(request).await
    }

    async fn signal_run(
        &self,
        request: Request<wire::SignalRunRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.done(Asked::Signal(request.into_inner())).await
    }

    async fn query_run(
        &self,
        request: Request<wire::QueryRunRequest>,
    ) -> Result<Response<wire::QueryRunResponse>, Status> {
        self.ask(Asked::Query(request.into_inner()), |answer| match answer {
            Answer::Query(answer) => Some(answer),
            _ => None,
        })
        .await
    }

    async fn update_run(
        &self,
        request: Request<wire::UpdateRunRequest>,
    ) -> Result<Response<wire::UpdateRunResponse>, Status> {
        self.ask(Asked::Update(request.into_inner()), |answer| match answer {
            Answer::Update(update) => Some(update),
            _ => None,
        })
        .await
    }

    async fn cancel_run(
        &self,
        request: Request<wire::CancelRunRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.done(Asked::Cancel(request.into_inner())).await
    }

    async fn terminate_run(
        &self,
        request: Request<wire::TerminateRunRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.done(Asked::Terminate(request.into_inner())).await
    }

    async fn pause_run(
        &self,
        request: Request<wire::PauseRunRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.done(Asked::Pause(request.into_inner())).await
    }

    async fn unpause_run(
        &self,
        request: Request<wire::PauseRunRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.done(Asked::Unpause(request.into_inner())).await
    }

    async fn describe_run(
        &self,
        request: Request<wire::DescribeRunRequest>,
    ) -> Result<Response<wire::RunDescription>, Status> {
        self.ask(Asked::Describe(request.into_inner()), |answer| match answer {
            Answer::Description(shown) => Some(shown),
            _ => None,
        })
        .await
    }

    async fn await_close(
        &self,
        request: Request<wire::AwaitCloseRequest>,
    ) -> Result<Response<wire::AwaitCloseResponse>, Status> {
        self.ask(Asked::AwaitClose(request.into_inner()), |answer| match answer {
            Answer::Closed(closed) => Some(closed),
            _ => None,
        })
        .await
    }

    async fn get_history(
        &self,
        request: Request<wire::GetHistoryRequest>,
    ) -> Result<Response<GetHistoryResponse>, Status> {
        let page = history::page(&self.0, request.into_inner()).await;
        page.map(Response::new).map_err(status)
    }

    async fn follow_history(
        &self,
        request: Request<wire::FollowHistoryRequest>,
    ) -> Result<Response<Self::FollowHistoryStream>, Status> {
        let followed = history::follow(self.0.clone(), request.into_inner())?;
        Ok(Response::new(Box::pin(followed)))
    }

    async fn list_runs(
        &self,
        request: Request<wire::ListRunsRequest>,
    ) -> Result<Response<wire::ListRunsResponse>, Status> {
        self.ask(Asked::ListRuns(request.into_inner()), |answer| match answer {
            Answer::Runs(runs) => Some(runs),
            _ => None,
        })
        .await
    }

    async fn count_runs(
        &self,
        request: Request<wire::CountRunsRequest>,
    ) -> Result<Response<wire::CountRunsResponse>, Status> {
        self.ask(Asked::CountRuns(request.into_inner()), |answer| match answer {
            Answer::Count(count) => Some(count),
            _ => None,
        })
        .await
    }

    async fn list_waits(
        &self,
        request: Request<wire::ListWaitsRequest>,
    ) -> Result<Response<wire::ListWaitsResponse>, Status> {
        self.ask(Asked::ListWaits(request.into_inner()), |answer| match answer {
            Answer::Waits(waits) => Some(waits),
            _ => None,
        })
        .await
    }

    async fn get_wait(
        &self,
        request: Request<wire::GetWaitRequest>,
    ) -> Result<Response<wire::ShownWait>, Status> {
        let wait = waits::one(&self.0, request.into_inner()).await;
        wait.map(Response::new).map_err(status)
    }

    async fn follow_waits(
        &self,
        request: Request<wire::FollowWaitsRequest>,
    ) -> Result<Response<Self::FollowWaitsStream>, Status> {
        let followed = waits::follow(self.0.clone(), request.into_inner())?;
        Ok(Response::new(Box::pin(followed)))
    }

    async fn reschedule_timer(
        &self,
        request: Request<wire::RescheduleTimerRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.done(Asked::RescheduleTimer(request.into_inner())).await
    }

    async fn repair_run(
        &self,
        request: Request<wire::RepairRunRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.done(Asked::Repair(request.into_inner())).await
    }

    async fn calls(
        &self,
        request: Request<Streaming<CallsFrame>>,
    ) -> Result<Response<Self::CallsStream>, Status> {
        let calls = Calls::new(self.0.clone(), request.into_inner())?;
        Ok(Response::new(Box::pin(calls)))
    }
}
