//! A worker that runs a program: one machine is kept between tasks, and for every task a new one is
//! fed the whole history. Both must answer the same.

use abide_core::{
    command::Ask,
    event::{Body, Event, Fact, UpdateAccepted, UpdateAdmitted},
    replay::{Completion, Replay},
    run::{CompleteTask, GivenTask, Input, Reply},
};
use abide_program::{Interpreter, Program};

use crate::world::{Took, World};

/// Runs the tasks of one run.
pub(crate) struct Worker {
    program: Program,
    cached: Option<Replay<Interpreter>>,
    turns: Vec<Turn>,
}

/// What the code answered to one task.
struct Turn {
    history: Vec<Event>,
    updates: Vec<UpdateAdmitted>,
    completion: Completion,
}

impl Worker {
    pub(crate) fn new(program: &Program) -> Self {
        Self { program: program.clone(), cached: None, turns: Vec::new() }
    }

    /// Takes the task, runs the code and answers.
    pub(crate) fn work(&mut self, world: &mut World) -> Took {
        let given = world.start_task();
        self.answer(world, &given)
    }

    /// Runs tasks until there is none.
    pub(crate) fn drain(&mut self, world: &mut World) {
        while world.run.task_ready(world.now) {
            self.work(world);
        }
    }

    /// Answers a task that was taken.
    pub(crate) fn answer(&mut self, world: &mut World, given: &GivenTask) -> Took {
        let completion = self.turn(world, given);
        let took = world.take(Input::CompleteTask(Box::new(completion)));
        if !matches!(took.reply, Reply::TaskTaken { .. }) {
            self.forget();
        }
        took
    }

    /// What the code answers. The machine that was kept is good only if the server takes it.
    pub(crate) fn turn(&mut self, world: &World, given: &GivenTask) -> CompleteTask {
        let mut history = world.events();
        history.extend(given.tail.iter().cloned());
        let updates: Vec<_> = given
            .updates
            .iter()
            .cloned()
            .map(|(update, request)| UpdateAdmitted { update, request })
            .collect();
        let mut fresh = self.machine(&history);
        let completion = fresh.turn(&updates).unwrap();
        let mut kept = self.cached.take().unwrap_or_else(|| self.machine(&[]));
        kept.feed(history.clone()).unwrap();
        assert_eq!(kept.turn(&updates).unwrap(), completion, "kept and new machine differ");
        self.cached = Some(kept);
        self.turns.push(Turn { history, updates, completion: completion.clone() });
        let carried = carried(world, &completion);
        let Completion { commands, flags } = completion;
        CompleteTask { commands, flags, carried, ..world.completion([]) }
    }

    /// The task that was answered came to nothing.
    pub(crate) fn forget(&mut self) {
        self.cached = None;
    }

    fn machine(&self, events: &[Event]) -> Replay<Interpreter> {
        let mut machine = Replay::new(self.program.code());
        machine.feed(events.to_vec()).unwrap();
        machine
    }

    /// However the history is cut, the program comes to the same, and every task has its answer.
    pub(crate) fn check(&self, world: &World) {
        check_cuts(&self.program, &world.events());
        for turn in &self.turns {
            let mut machine = self.machine(&turn.history);
            assert_eq!(machine.turn(&turn.updates).unwrap(), turn.completion);
        }
    }
}

/// Replays a history in two portions, for every cut. Where the cut leaves a task open, also as a live
/// worker: its turn is taken, and the rest of the history must be what it asked for.
pub(crate) fn check_cuts(program: &Program, events: &[Event]) {
    let whole = replayed(program, &[], events, None);
    for cut in 0..events.len() {
        let (before, after) = events.split_at(cut);
        assert_eq!(replayed(program, before, after, None), whole, "cut after event {cut}");
        if let Some(updates) = completed_next(before, after) {
            let live = replayed(program, before, after, Some(&updates));
            assert_eq!(live, whole, "turn taken after event {cut}");
        }
    }
}

/// The updates that the open task at the end of `before` accepts, if it is completed in `after`.
fn completed_next(before: &[Event], after: &[Event]) -> Option<Vec<UpdateAdmitted>> {
    let open = matches!(before.last()?.body.fact, Fact::TaskStarted(_));
    let completed = matches!(after.first()?.body.fact, Fact::TaskCompleted(_));
    let own = after.iter().take_while(|event| !matches!(event.body.fact, Fact::TaskScheduled(_)));
    let accepted = own.filter_map(|event| match &event.body.fact {
        Fact::UpdateAccepted(UpdateAccepted { update, request }) => {
            Some(UpdateAdmitted { update: update.clone(), request: request.clone() })
        }
        _ => None,
    });
    (open && completed).then(|| accepted.collect())
}

/// What the program came to.
fn replayed(
    program: &Program,
    before: &[Event],
    after: &[Event],
    turn: Option<&[UpdateAdmitted]>,
) -> Vec<String> {
    let mut machine = Replay::new(program.code());
    machine.feed(before.to_vec()).unwrap();
    if let Some(updates) = turn {
        machine.turn(updates).unwrap();
    }
    machine.feed(after.to_vec()).unwrap();
    machine.settle().unwrap();
    machine.code().trace().to_vec()
}

/// The bodies that the next run gets, as the shard reads them from the log.
fn carried(world: &World, completion: &Completion) -> Vec<Body> {
    let Some(Ask::ContinueAsNew(next)) = completion.commands.last().map(|last| &last.ask) else {
        return Vec::new();
    };
    let goes = |event: &Event| match &event.body.fact {
        Fact::SignalReceived(_) => next.signals.contains(&event.number),
        Fact::UpdateAccepted(accepted) => next.updates.contains(&accepted.update),
        _ => false,
    };
    world.events().into_iter().filter(goes).map(|event| event.body).collect()
}
