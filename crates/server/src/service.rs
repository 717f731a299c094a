//! Single calls: each method translates its request, lets the handler perform it, and answers.

use abide_core::{call::CallError, limits::InvalidField};
use abide_proto::generated::{
    self as messages, AnswersFrame, CallsFrame, DoneResponse, GetHistoryResponse, StartRunResponse,
    abide_server::Abide, numbered_answer::Answer, numbered_call::Call as Asked,
};
use futures_util::stream::Empty;
use tonic::{Request, Response, Status, Streaming, async_trait};

use crate::{
    calls::Calls,
    handler::{Handler, status},
    history::{self, PAGE_BYTES},
    waits, wire,
};

/// The service of clients and operators.
pub(crate) struct Service(pub(crate) Handler);

impl Service {
    async fn ask<M, T>(
        &self,
        request: Request<M>,
        asked: impl FnOnce(M) -> Asked,
    ) -> Result<Response<T>, Status>
    where
        T: TryFrom<Answer, Error = CallError>,
    {
        let guest = wire::guest(request.extensions())?;
        let operation = self.0.operation(asked(request.into_inner())).map_err(status)?;
        let room = if operation.is_page() { Some(guest.room(PAGE_BYTES).await) } else { None };
        let reply = self.0.perform(operation).await.map_err(status)?;
        let answer = T::try_from(reply.into()).map_err(status)?;
        Ok(wire::with_room(answer, room))
    }
}

#[async_trait]
impl Abide for Service {
    type FollowHistoryStream = Empty<Result<GetHistoryResponse, Status>>;
    type FollowWaitsStream = Empty<Result<messages::RunWaits, Status>>;
    type CallsStream = Empty<Result<AnswersFrame, Status>>;

    async fn start_run(
        &self,
        request: Request<messages::StartRunRequest>,
    ) -> Result<Response<StartRunResponse>, Status> {
        self.ask(request, Asked::Start).await
    }

    async fn signal_with_start(
        &self,
        request: Request<messages::StartRunRequest>,
    ) -> Result<Response<StartRunResponse>, Status> {
        if request.get_ref().signal.is_none() {
            return Err(status(InvalidField::new("signal", "is missing")));
        }
        self.ask(request, Asked::Start).await
    }

    async fn update_with_start(
        &self,
        request: Request<messages::StartRunRequest>,
    ) -> Result<Response<StartRunResponse>, Status> {
        if request.get_ref().update.is_none() {
            return Err(status(InvalidField::new("update", "is missing")));
        }
        self.ask(request, Asked::Start).await
    }

    async fn signal_run(
        &self,
        request: Request<messages::SignalRunRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.ask(request, Asked::Signal).await
    }

    async fn query_run(
        &self,
        request: Request<messages::QueryRunRequest>,
    ) -> Result<Response<messages::QueryRunResponse>, Status> {
        self.ask(request, Asked::Query).await
    }

    async fn update_run(
        &self,
        request: Request<messages::UpdateRunRequest>,
    ) -> Result<Response<messages::UpdateRunResponse>, Status> {
        self.ask(request, Asked::Update).await
    }

    async fn await_update(
        &self,
        request: Request<messages::AwaitUpdateRequest>,
    ) -> Result<Response<messages::UpdateRunResponse>, Status> {
        self.ask(request, Asked::AwaitUpdate).await
    }

    async fn cancel_run(
        &self,
        request: Request<messages::CancelRunRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.ask(request, Asked::Cancel).await
    }

    async fn terminate_run(
        &self,
        request: Request<messages::TerminateRunRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.ask(request, Asked::Terminate).await
    }

    async fn pause_run(
        &self,
        request: Request<messages::PauseRunRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.ask(request, Asked::Pause).await
    }

    async fn unpause_run(
        &self,
        request: Request<messages::PauseRunRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.ask(request, Asked::Unpause).await
    }

    async fn describe_run(
        &self,
        request: Request<messages::DescribeRunRequest>,
    ) -> Result<Response<messages::RunDescription>, Status> {
        self.ask(request, Asked::Describe).await
    }

    async fn await_close(
        &self,
        request: Request<messages::AwaitCloseRequest>,
    ) -> Result<Response<messages::AwaitCloseResponse>, Status> {
        self.ask(request, Asked::AwaitClose).await
    }

    async fn get_history(
        &self,
        request: Request<messages::GetHistoryRequest>,
    ) -> Result<Response<GetHistoryResponse>, Status> {
        let room = wire::guest(request.extensions())?.room(PAGE_BYTES).await;
        let page = history::page(&self.0, request.into_inner()).await;
        self.0.calls.count(&page);
        page.map(|page| wire::with_room(page, Some(room))).map_err(status)
    }

    async fn follow_history(
        &self,
        request: Request<messages::FollowHistoryRequest>,
    ) -> Result<Response<Self::FollowHistoryStream>, Status> {
        let guest = wire::guest(request.extensions())?;
        Ok(wire::told(history::follow(self.0.clone(), guest, request.into_inner())?))
    }

    async fn list_runs(
        &self,
        request: Request<messages::ListRunsRequest>,
    ) -> Result<Response<messages::ListRunsResponse>, Status> {
        self.ask(request, Asked::ListRuns).await
    }

    async fn count_runs(
        &self,
        request: Request<messages::CountRunsRequest>,
    ) -> Result<Response<messages::CountRunsResponse>, Status> {
        self.ask(request, Asked::CountRuns).await
    }

    async fn list_waits(
        &self,
        request: Request<messages::ListWaitsRequest>,
    ) -> Result<Response<messages::ListWaitsResponse>, Status> {
        self.ask(request, Asked::ListWaits).await
    }

    async fn get_wait(
        &self,
        request: Request<messages::GetWaitRequest>,
    ) -> Result<Response<messages::ShownWait>, Status> {
        let wait = waits::one(&self.0, request.into_inner()).await;
        self.0.calls.count(&wait);
        wait.map(Response::new).map_err(status)
    }

    async fn follow_waits(
        &self,
        request: Request<messages::FollowWaitsRequest>,
    ) -> Result<Response<Self::FollowWaitsStream>, Status> {
        Ok(wire::told(waits::follow(self.0.clone(), request.into_inner())?))
    }

    async fn reschedule_timer(
        &self,
        request: Request<messages::RescheduleTimerRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.ask(request, Asked::RescheduleTimer).await
    }

    async fn list_nodes(
        &self,
        request: Request<messages::ListNodesRequest>,
    ) -> Result<Response<messages::ListNodesResponse>, Status> {
        self.ask(request, Asked::ListNodes).await
    }

    async fn report_attempt(
        &self,
        request: Request<messages::ReportAttemptRequest>,
    ) -> Result<Response<messages::ReportAttemptResponse>, Status> {
        self.ask(request, Asked::ReportAttempt).await
    }

    async fn repair_run(
        &self,
        request: Request<messages::RepairRunRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.ask(request, Asked::Repair).await
    }

    async fn calls(
        &self,
        mut request: Request<Streaming<CallsFrame>>,
    ) -> Result<Response<Self::CallsStream>, Status> {
        let guest = wire::guest(request.extensions())?;
        let asked = wire::said(&mut request)?;
        Ok(wire::told(Calls::new(self.0.clone(), guest, asked)?))
    }
}
