//! Single calls: each method translates its request, lets the handler perform it, and answers.

use std::pin::Pin;

use abide_core::{call::CallError, limits::InvalidField};
use abide_proto::generated::{
    self as wire, AnswersFrame, CallsFrame, DoneResponse, GetHistoryResponse, StartRunResponse,
    abide_server::Abide, numbered_answer::Answer, numbered_call::Call as Asked,
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
    async fn ask<T>(&self, asked: Asked) -> Result<Response<T>, Status>
    where
        T: TryFrom<Answer, Error = CallError>,
    {
        let operation = self.0.operation(asked).map_err(status)?;
        let reply = self.0.perform(operation).await.map_err(status)?;
        T::try_from(reply.into()).map(Response::new).map_err(status)
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
        self.ask(Asked::Start(request.into_inner())).await
    }

    async fn signal_with_start(
        &self,
        request: Request<wire::StartRunRequest>,
    ) -> Result<Response<StartRunResponse>, Status> {
        let request = request.into_inner();
        if request.signal.is_none() {
            return Err(status(InvalidField::new("signal", "is missing")));
        }
        self.ask(Asked::Start(request)).await
    }

    async fn update_with_start(
        &self,
        request: Request<wire::StartRunRequest>,
    ) -> Result<Response<StartRunResponse>, Status> {
        let request = request.into_inner();
        if request.update.is_none() {
            return Err(status(InvalidField::new("update", "is missing")));
        }
        self.ask(Asked::Start(request)).await
    }

    async fn signal_run(
        &self,
        request: Request<wire::SignalRunRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.ask(Asked::Signal(request.into_inner())).await
    }

    async fn query_run(
        &self,
        request: Request<wire::QueryRunRequest>,
    ) -> Result<Response<wire::QueryRunResponse>, Status> {
        self.ask(Asked::Query(request.into_inner())).await
    }

    async fn update_run(
        &self,
        request: Request<wire::UpdateRunRequest>,
    ) -> Result<Response<wire::UpdateRunResponse>, Status> {
        self.ask(Asked::Update(request.into_inner())).await
    }

    async fn await_update(
        &self,
        request: Request<wire::AwaitUpdateRequest>,
    ) -> Result<Response<wire::UpdateRunResponse>, Status> {
        self.ask(Asked::AwaitUpdate(request.into_inner())).await
    }

    async fn cancel_run(
        &self,
        request: Request<wire::CancelRunRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.ask(Asked::Cancel(request.into_inner())).await
    }

    async fn terminate_run(
        &self,
        request: Request<wire::TerminateRunRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.ask(Asked::Terminate(request.into_inner())).await
    }

    async fn pause_run(
        &self,
        request: Request<wire::PauseRunRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.ask(Asked::Pause(request.into_inner())).await
    }

    async fn unpause_run(
        &self,
        request: Request<wire::PauseRunRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.ask(Asked::Unpause(request.into_inner())).await
    }

    async fn describe_run(
        &self,
        request: Request<wire::DescribeRunRequest>,
    ) -> Result<Response<wire::RunDescription>, Status> {
        self.ask(Asked::Describe(request.into_inner())).await
    }

    async fn await_close(
        &self,
        request: Request<wire::AwaitCloseRequest>,
    ) -> Result<Response<wire::AwaitCloseResponse>, Status> {
        self.ask(Asked::AwaitClose(request.into_inner())).await
    }

    async fn get_history(
        &self,
        request: Request<wire::GetHistoryRequest>,
    ) -> Result<Response<GetHistoryResponse>, Status> {
        let page = history::page(&self.0, request.into_inner()).await;
        self.0.calls.count(&page);
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
        self.ask(Asked::ListRuns(request.into_inner())).await
    }

    async fn count_runs(
        &self,
        request: Request<wire::CountRunsRequest>,
    ) -> Result<Response<wire::CountRunsResponse>, Status> {
        self.ask(Asked::CountRuns(request.into_inner())).await
    }

    async fn list_waits(
        &self,
        request: Request<wire::ListWaitsRequest>,
    ) -> Result<Response<wire::ListWaitsResponse>, Status> {
        self.ask(Asked::ListWaits(request.into_inner())).await
    }

    async fn get_wait(
        &self,
        request: Request<wire::GetWaitRequest>,
    ) -> Result<Response<wire::ShownWait>, Status> {
        let wait = waits::one(&self.0, request.into_inner()).await;
        self.0.calls.count(&wait);
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
        self.ask(Asked::RescheduleTimer(request.into_inner())).await
    }

    async fn list_nodes(
        &self,
        request: Request<wire::ListNodesRequest>,
    ) -> Result<Response<wire::ListNodesResponse>, Status> {
        self.ask(Asked::ListNodes(request.into_inner())).await
    }

    async fn report_attempt(
        &self,
        request: Request<wire::ReportAttemptRequest>,
    ) -> Result<Response<wire::ReportAttemptResponse>, Status> {
        self.ask(Asked::ReportAttempt(request.into_inner())).await
    }

    async fn repair_run(
        &self,
        request: Request<wire::RepairRunRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.ask(Asked::Repair(request.into_inner())).await
    }

    async fn calls(
        &self,
        request: Request<Streaming<CallsFrame>>,
    ) -> Result<Response<Self::CallsStream>, Status> {
        let calls = Calls::new(self.0.clone(), request.into_inner())?;
        Ok(Response::new(Box::pin(calls)))
    }
}
