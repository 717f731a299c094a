//! Operations on schedules, which are runs of the engine's own kind.

use abide_core::{
    event::RunTerminated,
    ids::{Key, RunId},
    operation::{
        AnyAnswer, CallError, ChangeSchedule, CreateSchedule, DeleteSchedule, Done, Ticket,
    },
    run::{self, Input, Refusal, Reply, StartRun},
};

use super::Shard;

impl Shard {
    /// Creates a schedule whose id has a run: that of a schedule which was deleted, unless it is
    /// refused.
    pub(super) fn create_schedule(&mut self, head: RunId, ticket: Ticket, create: &CreateSchedule) {
        let Some(entry) = self.memory.cache.peek(head) else { return };
        let (open, ordinal) = (entry.run.open(), entry.run.ordinal + 1);
        let end_keys = entry.run.end_keys(&self.limits);
        match entry.run.created_by(create) {
            Err(refusal) => self.reply_after(head, ticket, Err(refusal.into())),
            Ok(true) => self.schedule_done(head, ticket, Ok(Reply::Repeat)),
            Ok(false) if open => {
                let workflow = create.workflow.clone();
                let error = CallError::AlreadyExists { workflow, run: head };
                self.reply_after(head, ticket, Err(error));
            }
            Ok(false) => self.begin_schedule(ticket, create, ordinal, end_keys),
        }
    }

    /// `end_keys` are those of the requests that deleted earlier schedules of this id.
    pub(super) fn begin_schedule(
        &mut self,
        ticket: Ticket,
        create: &CreateSchedule,
        ordinal: u64,
        end_keys: Vec<Key>,
    ) {
        let run = self.draw_run();
        let context = Self::context(&self.moment, &self.limits);
        let start = run::begin_schedule(&context, create, run, ordinal);
        self.begin(StartRun { terminate_keys: end_keys, ..start });
        self.schedule_done(run, ticket, Ok(Reply::Done));
    }

    pub(super) fn change_schedule(&mut self, run: RunId, ticket: Ticket, asked: ChangeSchedule) {
        let ChangeSchedule { change, revision, identity, key, .. } = asked;
        let change = run::ChangeSchedule { change, revision, identity, key };
        let reply = self.decide(run, Input::ChangeSchedule(Box::new(change)));
        self.schedule_done(run, ticket, reply);
    }

    pub(super) fn delete_schedule(&mut self, run: RunId, ticket: Ticket, asked: DeleteSchedule) {
        let DeleteSchedule { identity, key, .. } = asked;
        if self.ended_earlier(run, key.as_ref()) {
            return self.schedule_done(run, ticket, Ok(Reply::Repeat));
        }
        let reason = "the schedule was deleted".to_owned();
        let deleted = RunTerminated { reason, identity, key, ..RunTerminated::default() };
        let reply = self.decide(run, Input::Terminate(deleted));
        self.schedule_done(run, ticket, reply);
    }

    pub(super) fn describe_schedule(&mut self, run: RunId, ticket: Ticket) {
        let Some(entry) = self.memory.cache.peek(run) else { return };
        let described = entry.run.describe_schedule(self.now());
        let answer = described.map(|described| AnyAnswer::Schedule(Box::new(described)));
        self.reply_after(run, ticket, answer.ok_or(CallError::NotFound));
    }

    /// Answers once it is durable. A schedule that was deleted does not exist.
    fn schedule_done(&mut self, run: RunId, ticket: Ticket, reply: Result<Reply, CallError>) {
        let answer = match reply {
            Ok(reply) => Ok(Done { run, repeat: reply == Reply::Repeat, fire_at: None }.into()),
            Err(CallError::Refused(Refusal::RunClosed)) => Err(CallError::NotFound),
            Err(error) => Err(error),
        };
        self.reply_after(run, ticket, answer);
    }
}
