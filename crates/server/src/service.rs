//! Single calls: each method translates its request, has the handler perform it, and answers.

use std::sync::Arc;

use abide_core::{
    batch::{ListBatches, StartBatch, StopBatch},
    limits::InvalidField,
    operation::{
        AwaitClose, AwaitUpdate, Cancel, ChangeSchedule, CountRuns, CreateSchedule,
        CreateSearchAttribute, Delete, DeleteSchedule, DeleteSearchAttribute, Describe,
        DescribeSchedule, ListNodes, ListRuns, ListSchedules, ListSearchAttributes, ListWaits,
        Operation, Pause, Query, Repair, ReportAttempt, RescheduleTimer, Reset, Signal, Start,
        Terminate, Unpause, Update,
    },
    tally::{TallyRuns, TallyWaits},
};
use abide_proto::generated::{
    self as messages, AnswersFrame, CallsFrame, DoneResponse, GetHistoryResponse, StartRunResponse,
    abide_server::Abide,
};
use futures_util::stream::Empty;
use tonic::{Request, Response, Status, Streaming, async_trait};

use crate::{
    calls::Calls,
    framing,
    handler::{self, Handler, status},
    history, waits,
};

/// The service for clients and operators.
pub(crate) struct Service(pub(crate) Handler);

impl Service {
    /// Performs the operation of a request message, and returns the message of its answer.
    async fn ask<O, T>(
        &self,
        request: Request<impl TryInto<O, Error = InvalidField>>,
    ) -> Result<Response<T>, Status>
    where
        O: Operation,
        T: From<O::Answer> + prost::Message + Default,
    {
        let connection = framing::connection(request.extensions())?;
        let operation = self.0.counted(request.into_inner().try_into()).map_err(status)?.into();
        handler::may_wait(&connection, &operation).map_err(status)?;
        let (answer, _building) = self.0.perform_in_turn(&connection, operation).await;
        let answer = answer.and_then(O::answer).map_err(status)?;
        Ok(framing::charged(T::from(answer), &connection))
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
        self.ask::<Start, _>(request).await
    }

    async fn signal_with_start(
        &self,
        request: Request<messages::StartRunRequest>,
    ) -> Result<Response<StartRunResponse>, Status> {
        if request.get_ref().signal.is_none() {
            return Err(status(InvalidField::new("signal", "is missing")));
        }
        self.ask::<Start, _>(request).await
    }

    async fn update_with_start(
        &self,
        request: Request<messages::StartRunRequest>,
    ) -> Result<Response<StartRunResponse>, Status> {
        if request.get_ref().update.is_none() {
            return Err(status(InvalidField::new("update", "is missing")));
        }
        self.ask::<Start, _>(request).await
    }

    async fn signal_run(
        &self,
        request: Request<messages::SignalRunRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.ask::<Signal, _>(request).await
    }

    async fn query_run(
        &self,
        request: Request<messages::QueryRunRequest>,
    ) -> Result<Response<messages::QueryRunResponse>, Status> {
        self.ask::<Query, _>(request).await
    }

    async fn update_run(
        &self,
        request: Request<messages::UpdateRunRequest>,
    ) -> Result<Response<messages::UpdateRunResponse>, Status> {
        self.ask::<Update, _>(request).await
    }

    async fn await_update(
        &self,
        request: Request<messages::AwaitUpdateRequest>,
    ) -> Result<Response<messages::UpdateRunResponse>, Status> {
        self.ask::<AwaitUpdate, _>(request).await
    }

    async fn cancel_run(
        &self,
        request: Request<messages::CancelRunRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.ask::<Cancel, _>(request).await
    }

    async fn terminate_run(
        &self,
        request: Request<messages::TerminateRunRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.ask::<Terminate, _>(request).await
    }

    async fn pause_run(
        &self,
        request: Request<messages::PauseRunRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.ask::<Pause, _>(request).await
    }

    async fn unpause_run(
        &self,
        request: Request<messages::PauseRunRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.ask::<Unpause, _>(request).await
    }

    async fn describe_run(
        &self,
        request: Request<messages::DescribeRunRequest>,
    ) -> Result<Response<messages::RunDescription>, Status> {
        self.ask::<Describe, _>(request).await
    }

    async fn await_close(
        &self,
        request: Request<messages::AwaitCloseRequest>,
    ) -> Result<Response<messages::AwaitCloseResponse>, Status> {
        self.ask::<AwaitClose, _>(request).await
    }

    async fn get_history(
        &self,
        request: Request<messages::GetHistoryRequest>,
    ) -> Result<Response<GetHistoryResponse>, Status> {
        let connection = framing::connection(request.extensions())?;
        let page = history::page(&self.0, &connection, request.into_inner()).await;
        self.0.calls.count(&page);
        let (page, _building) = page.map_err(status)?;
        let charge = connection.answered(page.len());
        Ok(framing::encoded(page.charged(charge)))
    }

    async fn follow_history(
        &self,
        request: Request<messages::FollowHistoryRequest>,
    ) -> Result<Response<Self::FollowHistoryStream>, Status> {
        let connection = framing::connection(request.extensions())?;
        let place = Arc::new(connection.stream()?);
        let followed = history::follow(self.0.clone(), connection, request.into_inner())?;
        Ok(framing::outgoing(place.hold(followed)))
    }

    async fn list_runs(
        &self,
        request: Request<messages::ListRunsRequest>,
    ) -> Result<Response<messages::ListRunsResponse>, Status> {
        self.ask::<ListRuns, _>(request).await
    }

    async fn count_runs(
        &self,
        request: Request<messages::CountRunsRequest>,
    ) -> Result<Response<messages::CountRunsResponse>, Status> {
        self.ask::<CountRuns, _>(request).await
    }

    async fn tally_runs(
        &self,
        request: Request<messages::TallyRunsRequest>,
    ) -> Result<Response<messages::TallyRunsResponse>, Status> {
        self.ask::<TallyRuns, _>(request).await
    }

    async fn tally_waits(
        &self,
        request: Request<messages::TallyWaitsRequest>,
    ) -> Result<Response<messages::TallyWaitsResponse>, Status> {
        self.ask::<TallyWaits, _>(request).await
    }

    async fn create_search_attribute(
        &self,
        request: Request<messages::CreateSearchAttributeRequest>,
    ) -> Result<Response<messages::SearchAttributesResponse>, Status> {
        self.ask::<CreateSearchAttribute, _>(request).await
    }

    async fn list_search_attributes(
        &self,
        request: Request<messages::ListSearchAttributesRequest>,
    ) -> Result<Response<messages::SearchAttributesResponse>, Status> {
        self.ask::<ListSearchAttributes, _>(request).await
    }

    async fn delete_search_attribute(
        &self,
        request: Request<messages::DeleteSearchAttributeRequest>,
    ) -> Result<Response<messages::SearchAttributesResponse>, Status> {
        self.ask::<DeleteSearchAttribute, _>(request).await
    }

    async fn list_waits(
        &self,
        request: Request<messages::ListWaitsRequest>,
    ) -> Result<Response<messages::ListWaitsResponse>, Status> {
        self.ask::<ListWaits, _>(request).await
    }

    async fn get_wait(
        &self,
        request: Request<messages::GetWaitRequest>,
    ) -> Result<Response<messages::ShownWait>, Status> {
        let connection = framing::connection(request.extensions())?;
        let wait = waits::one(&self.0, request.into_inner()).await;
        self.0.calls.count(&wait);
        wait.map(|wait| framing::charged(wait, &connection)).map_err(status)
    }

    async fn follow_waits(
        &self,
        request: Request<messages::FollowWaitsRequest>,
    ) -> Result<Response<Self::FollowWaitsStream>, Status> {
        let place = Arc::new(framing::connection(request.extensions())?.stream()?);
        Ok(framing::outgoing(place.hold(waits::follow(self.0.clone(), request.into_inner())?)))
    }

    async fn reschedule_timer(
        &self,
        request: Request<messages::RescheduleTimerRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.ask::<RescheduleTimer, _>(request).await
    }

    async fn list_nodes(
        &self,
        request: Request<messages::ListNodesRequest>,
    ) -> Result<Response<messages::ListNodesResponse>, Status> {
        self.ask::<ListNodes, _>(request).await
    }

    async fn report_attempt(
        &self,
        request: Request<messages::ReportAttemptRequest>,
    ) -> Result<Response<messages::ReportAttemptResponse>, Status> {
        self.ask::<ReportAttempt, _>(request).await
    }

    async fn repair_run(
        &self,
        request: Request<messages::RepairRunRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.ask::<Repair, _>(request).await
    }

    async fn delete_run(
        &self,
        request: Request<messages::DeleteRunRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.ask::<Delete, _>(request).await
    }

    async fn reset_run(
        &self,
        request: Request<messages::ResetRunRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.ask::<Reset, _>(request).await
    }

    async fn create_schedule(
        &self,
        request: Request<messages::CreateScheduleRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.ask::<CreateSchedule, _>(request).await
    }

    async fn change_schedule(
        &self,
        request: Request<messages::ChangeScheduleRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.ask::<ChangeSchedule, _>(request).await
    }

    async fn delete_schedule(
        &self,
        request: Request<messages::DeleteScheduleRequest>,
    ) -> Result<Response<DoneResponse>, Status> {
        self.ask::<DeleteSchedule, _>(request).await
    }

    async fn describe_schedule(
        &self,
        request: Request<messages::DescribeScheduleRequest>,
    ) -> Result<Response<messages::ScheduleDescription>, Status> {
        self.ask::<DescribeSchedule, _>(request).await
    }

    async fn list_schedules(
        &self,
        request: Request<messages::ListSchedulesRequest>,
    ) -> Result<Response<messages::ListSchedulesResponse>, Status> {
        self.ask::<ListSchedules, _>(request).await
    }

    async fn start_batch(
        &self,
        request: Request<messages::StartBatchRequest>,
    ) -> Result<Response<messages::BatchesResponse>, Status> {
        self.ask::<StartBatch, _>(request).await
    }

    async fn stop_batch(
        &self,
        request: Request<messages::StopBatchRequest>,
    ) -> Result<Response<messages::BatchesResponse>, Status> {
        self.ask::<StopBatch, _>(request).await
    }

    async fn list_batches(
        &self,
        request: Request<messages::ListBatchesRequest>,
    ) -> Result<Response<messages::BatchesResponse>, Status> {
        self.ask::<ListBatches, _>(request).await
    }

    async fn calls(
        &self,
        mut request: Request<Streaming<CallsFrame>>,
    ) -> Result<Response<Self::CallsStream>, Status> {
        let connection = framing::connection(request.extensions())?;
        let place = Arc::new(connection.stream()?);
        let asked = framing::incoming(&mut request)?;
        let calls = Calls::new(self.0.clone(), connection, asked, Arc::clone(&place));
        Ok(framing::outgoing(place.hold(calls)))
    }
}
