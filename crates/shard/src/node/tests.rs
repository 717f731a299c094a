//! Directed tests of one node: what happens to it, and what it says.

use std::{collections::BTreeSet, time::Duration};

use abide_core::{
    dispatch::{Dispatch, QueueKey, WorkKind, Worker},
    ids::{RunId, ShardId, WorkflowKey},
    limits::Limits,
    operation::{CallError, QueryRequest},
    report::QueryToken,
};

use super::*;
use crate::message::{Offer, Work};

const PATIENCE: Duration = Duration::from_secs(6);

/// A node that is linked to another one, which is called `far`.
struct World {
    node: Node<&'static str>,
    now: Duration,
}

impl World {
    fn new() -> Self {
        let mut world = Self::unlinked();
        world.tell(NodeInput::Linked("far".into()));
        world
    }

    fn unlinked() -> Self {
        let limits = Limits { queued_offers: 100, matches_in_flight: 3, ..Limits::default() };
        let node = Node::new("near".into(), &limits, PATIENCE);
        let mut world = Self { node, now: Duration::from_secs(100) };
        let said = world.rows(&[]);
        assert_eq!(said, ["keep far"]);
        world
    }

    /// Says something to the node, and gives what it says.
    fn tell(&mut self, input: NodeInput<&'static str>) -> Vec<String> {
        self.node.handle(self.now, input);
        std::iter::from_fn(|| self.node.poll()).map(|output| brief(&output)).collect()
    }

    fn rows(&mut self, owners: &[(u8, &str)]) -> Vec<String> {
        let owners = owners.iter().map(|(number, node)| (shard(*number), (*node).to_owned()));
        let (owners, nodes) = (owners.collect(), ["near".to_owned(), "far".into()].into());
        self.tell(NodeInput::Rows { owners, nodes, read_at: self.now })
    }

    fn hear(&mut self, message: PeerMessage) -> Vec<String> {
        self.tell(NodeInput::Received("far".into(), message))
    }

    fn connect(&mut self, session: &'static str, stream: u64) -> Vec<String> {
        self.tell(NodeInput::StreamOpened { session: session.into(), stream, handle: session })
    }

    fn credit(&mut self, session: &str, stream: u64, credits: usize) -> Vec<String> {
        self.tell(NodeInput::Credit { stream, queue: queue(), worker: worker(session), credits })
    }

    fn route(&mut self, ticket: u64, repeatable: bool) -> Vec<String> {
        let error = CallError::NotServed;
        self.tell(NodeInput::Route { ticket, shard: shard(1), repeatable, error })
    }

    fn failed(&mut self, ticket: u64, error: CallError) -> Vec<String> {
        self.tell(NodeInput::Failed { ticket, error })
    }

    fn pass(&mut self, time: Duration) -> Vec<String> {
        self.now += time;
        self.tell(NodeInput::Tick)
    }
}

fn shard(number: u8) -> ShardId {
    ShardId::new(number).unwrap()
}

fn queue() -> QueueKey {
    QueueKey { namespace: "default".into(), queue: "queue".into(), kind: WorkKind::Workflow }
}

fn worker(session: &str) -> Worker {
    Worker { session: session.into(), identity: session.into(), build: None }
}

fn offer(workflow: &str, number: u8) -> Offer {
    let workflow = WorkflowKey { namespace: "default".into(), workflow: workflow.into() };
    Offer {
        queue: queue(),
        shard: shard(number),
        workflow,
        run: RunId::from_slice(&[number; 16]).unwrap(),
        work: Work::Workflow,
        prefer: None,
        except: BTreeSet::new(),
    }
}

fn spare(credits: usize) -> PeerMessage {
    PeerMessage::Spare { queue: queue(), build: None, credits }
}

fn brief(output: &NodeOutput<&'static str>) -> String {
    match output {
        NodeOutput::ToShard(shard, Message::Matched(offer, worker)) => {
            format!("{shard}: {} takes {}", worker.session, offer.workflow.workflow)
        }
        NodeOutput::ToShard(shard, message) => format!("{shard}: {message:?}"),
        NodeOutput::ToShards(Message::SessionLost(session)) => format!("shards: lost {session}"),
        NodeOutput::ToShards(Message::SendAgain(shards)) => {
            format!("shards: again {}", shards.len())
        }
        NodeOutput::ToShards(message) => format!("shards: {message:?}"),
        NodeOutput::ToPeer(node, message) => format!("{node}: {}", said(message)),
        NodeOutput::ToWorker(worker, given) => format!("give {worker}: {given:?}"),
        NodeOutput::EndStream(worker) => format!("end {worker}"),
        NodeOutput::KeepLinks(nodes) => format!("keep {}", Vec::from_iter(nodes.clone()).join(" ")),
        NodeOutput::TryHere(ticket) => format!("{ticket} here"),
        NodeOutput::Forward(ticket, node) => format!("{ticket} at {node}"),
        NodeOutput::Refuse(ticket, error) => format!("{ticket} refused: {error:?}"),
        NodeOutput::Look => "look".into(),
    }
}

fn said(message: &PeerMessage) -> String {
    match message {
        PeerMessage::Spare { credits, .. } => format!("spare {credits}"),
        PeerMessage::Offer(offer) => format!("offer {}", offer.workflow.workflow),
        PeerMessage::Declined(offer) => format!("declined {}", offer.workflow.workflow),
        PeerMessage::Matched(offer, worker) => {
            format!("{} takes {}", worker.session, offer.workflow.workflow)
        }
        PeerMessage::Unmatched(_, worker) => format!("unmatched {}", worker.session),
        PeerMessage::SessionCame(session) => format!("came {session}"),
        PeerMessage::SessionLost(session) => format!("lost {session}"),
        PeerMessage::Opened(shards) => format!("opened {}", shards.len()),
        other => format!("{other:?}"),
    }
}

/// Else the next work waits here for ever, though the other node has workers for it.
#[test]
fn what_a_node_lends_is_not_forgotten_when_one_of_its_workers_has_moved() {
    let mut world = World::new();
    world.tell(NodeInput::Serve(shard(1)));
    world.hear(spare(3));
    assert_eq!(world.tell(NodeInput::Offer(offer("a", 1))), ["far: offer a"]);
    assert_eq!(world.connect("mover", 1), ["far: came mover"]);
    let matched = world.hear(PeerMessage::Matched(offer("a", 1), worker("mover")));
    assert_eq!(matched, ["far: unmatched mover", "far: offer a"]);
    assert_eq!(world.tell(NodeInput::Offer(offer("b", 1))), ["far: offer b"], "one was not used");
}

/// A node that could not reach this one for a moment has forgotten its workers, and must hear of their
/// end.
#[test]
fn who_begins_a_link_is_told_of_the_workers_that_are_here() {
    let mut world = World::new();
    world.connect("worker", 1);
    assert_eq!(world.tell(NodeInput::Called("far".into())), ["far: came worker"]);
    let ended = world.tell(NodeInput::StreamEnded { session: "worker".into(), stream: 1 });
    assert_eq!(ended, ["shards: lost worker", "far: lost worker"]);
}

#[test]
fn a_node_counts_who_and_what_is_there() {
    let mut world = World::unlinked();
    assert_eq!((world.node.workers(), world.node.links()), (0, 0));
    assert_eq!(*world.node.nodes(), BTreeSet::from(["far".to_owned()]));
    world.tell(NodeInput::Linked("far".into()));
    world.connect("one", 1);
    world.connect("two", 2);
    for number in [1, 2, 3] {
        world.tell(NodeInput::Serve(shard(number)));
        world.tell(NodeInput::Offer(offer("a", number)));
    }
    assert_eq!((world.node.workers(), world.node.links()), (2, 1));
    assert_eq!(world.node.waiting(WorkKind::Workflow), 3);
    assert_eq!(world.node.waiting(WorkKind::Activity), 0);
}

#[test]
fn work_of_a_shard_goes_to_a_worker_at_home_first() {
    let mut world = World::new();
    world.tell(NodeInput::Serve(shard(1)));
    world.connect("near", 1);
    world.hear(spare(1));
    assert_eq!(world.credit("near", 1, 1), ["far: spare 1"]);
    let matched = world.tell(NodeInput::Offer(offer("a", 1)));
    assert_eq!(matched, ["1: near takes a"]);
    assert_eq!(world.tell(NodeInput::Offer(offer("b", 1))), ["far: offer b"]);
    assert_eq!(
        world.hear(PeerMessage::Matched(offer("b", 1), worker("abroad"))),
        ["1: abroad takes b"]
    );
}

#[test]
fn a_match_that_cannot_be_told_gives_the_worker_its_credit_back() {
    let mut world = World::unlinked();
    world.connect("near", 1);
    world.credit("near", 1, 1);
    assert_eq!(world.hear(PeerMessage::Offer(offer("a", 1))), [] as [&str; 0]);
    assert_eq!(world.node.credits_of(&queue(), &"near".into()), 1);
}

#[test]
fn a_worker_that_was_lent_has_its_credit_back_once_however_the_match_ends() {
    let mut world = World::new();
    world.connect("near", 1);
    world.credit("near", 1, 2);
    let credits = |world: &World| world.node.credits_of(&queue(), &"near".into());
    world.hear(PeerMessage::Offer(offer("a", 1)));
    world.hear(PeerMessage::Offer(offer("b", 2)));
    assert_eq!(credits(&world), 0);
    for _ in 0..2 {
        world.hear(PeerMessage::Unmatched(offer("a", 1), worker("near")));
        assert_eq!(credits(&world), 1, "it is given back once");
    }
    world.tell(NodeInput::Unlinked("far".into()));
    assert_eq!(credits(&world), 2);
    world.tell(NodeInput::LinkClosed("far".into()));
    assert_eq!(credits(&world), 2);
}

fn query(number: u8, session: &str) -> PeerMessage {
    let offer = offer("query", number);
    let token = QueryToken { workflow: offer.workflow, run: offer.run, ticket: 1, attempt: 1 };
    let query = QueryRequest::new("query", Vec::new());
    let dispatch = Dispatch::Query { token, last_event: 1, query };
    PeerMessage::Dispatch(worker(session), Box::new(dispatch))
}

#[test]
fn work_that_nobody_waits_for_goes_back_and_other_work_of_the_worker_still_comes() {
    let mut world = World::new();
    world.connect("near", 1);
    assert_eq!(world.hear(query(1, "gone")), ["far: lost gone"]);
    world.credit("near", 1, 1);
    let lent = Offer { work: Work::Query(1), ..offer("query", 2) };
    world.hear(PeerMessage::Offer(lent));
    assert_eq!(world.hear(query(1, "near")), ["far: came near"], "it was not lent for this");
    assert!(world.hear(query(2, "near"))[0].starts_with("give near"));
}

/// Else the node that lent the worker waits for ever for the credit.
#[test]
fn the_answer_to_a_match_goes_to_the_node_that_made_it_though_the_worker_seems_to_be_elsewhere() {
    let mut world = World::new();
    world.tell(NodeInput::Linked("slow".into()));
    for number in [1, 2, 3] {
        world.tell(NodeInput::Serve(shard(number)));
    }
    let lent = |number| Offer { work: Work::Query(1), ..offer("query", number) };
    for number in [1, 2] {
        let matched = world.hear(PeerMessage::Matched(lent(number), worker("mover")));
        assert_eq!(matched, [format!("{number}: mover takes query")]);
    }
    // The worker was at another node before, whose word comes late.
    let late = PeerMessage::Matched(lent(3), worker("mover"));
    let late = world.tell(NodeInput::Received("slow".into(), late));
    assert_eq!(late, ["shards: lost mover", "3: mover takes query"]);
    let failed = world.tell(NodeInput::Unmatched(lent(1), worker("mover")));
    assert_eq!(failed, ["far: unmatched mover"]);
    let PeerMessage::Dispatch(taker, work) = query(2, "mover") else { panic!("it is work") };
    let sent = world.tell(NodeInput::Dispatch(taker, work));
    assert_eq!(sent[0], "far: unmatched mover");
    assert!(sent[1].starts_with("slow: Dispatch"), "{sent:?}");
    let PeerMessage::Dispatch(taker, work) = query(3, "mover") else { panic!("it is work") };
    let sent = world.tell(NodeInput::Dispatch(taker, work));
    assert!(sent.len() == 1 && sent[0].starts_with("slow: Dispatch"), "{sent:?}");
}

#[test]
fn work_that_was_passed_on_is_offered_again_when_a_link_ends() {
    for end in [NodeInput::Unlinked("far".into()), NodeInput::LinkClosed("far".into())] {
        let mut world = World::new();
        world.tell(NodeInput::Serve(shard(1)));
        world.hear(spare(1));
        world.tell(NodeInput::Offer(offer("a", 1)));
        world.connect("near", 1);
        assert!(world.tell(end).is_empty(), "nobody can take it");
        assert_eq!(world.credit("near", 1, 1)[0], "1: near takes a");
    }
}

#[test]
fn what_a_shard_that_has_moved_had_passed_on_is_not_offered_again() {
    let mut world = World::new();
    world.tell(NodeInput::Serve(shard(1)));
    world.hear(spare(1));
    world.tell(NodeInput::Offer(offer("a", 1)));
    world.tell(NodeInput::Released(shard(1)));
    world.hear(PeerMessage::Declined(offer("a", 1)));
    world.connect("near", 1);
    assert_eq!(world.credit("near", 1, 1), ["far: spare 1"], "nothing waits for it");
}

#[test]
fn a_match_for_a_shard_that_has_ended_gives_the_credit_back() {
    let mut world = World::new();
    world.tell(NodeInput::Serve(shard(1)));
    world.connect("near", 1);
    world.credit("near", 1, 1);
    world.tell(NodeInput::Offer(offer("a", 1)));
    let matched = Message::Matched(offer("a", 1), worker("near"));
    world.tell(NodeInput::Undelivered(shard(1), matched));
    assert_eq!(world.node.credits_of(&queue(), &"near".into()), 1);
    world.tell(NodeInput::Undelivered(shard(1), Message::SessionLost("near".into())));
    assert_eq!(world.node.credits_of(&queue(), &"near".into()), 1);
}

#[test]
fn a_stream_that_was_replaced_says_nothing_any_more() {
    let mut world = World::new();
    world.connect("worker", 1);
    world.credit("worker", 1, 1);
    let again = world.connect("worker", 2);
    assert_eq!(again, ["shards: lost worker", "end worker", "far: came worker"]);
    assert!(world.credit("worker", 1, 5).is_empty());
    let ended = |stream| NodeInput::StreamEnded { session: "worker".into(), stream };
    assert!(world.tell(ended(1)).is_empty());
    assert_eq!(world.node.workers(), 1);
    world.credit("worker", 2, 3);
    world.tell(NodeInput::Withdraw { session: "worker".into(), stream: 1 });
    assert_eq!(world.node.credits_of(&queue(), &"worker".into()), 3);
    world.tell(NodeInput::Withdraw { session: "worker".into(), stream: 2 });
    assert_eq!(world.node.credits_of(&queue(), &"worker".into()), 0);
    assert_eq!(world.tell(ended(2)), ["shards: lost worker", "far: lost worker"]);
}

/// A stream whose end the node has begun still carries reports, which may present attempts.
#[test]
fn the_end_of_a_stream_that_the_node_has_ended_is_told_again_unless_its_worker_is_back() {
    let mut world = World::new();
    let ended = |stream| NodeInput::StreamEnded { session: "worker".into(), stream };
    world.connect("worker", 1);
    world.tell(NodeInput::EndStreams);
    assert_eq!(world.tell(ended(1)), ["shards: lost worker", "far: lost worker"]);
    world.connect("worker", 2);
    assert!(world.tell(ended(1)).is_empty());
    world.hear(PeerMessage::SessionCame("worker".into()));
    assert!(world.tell(ended(2)).is_empty(), "the other node will tell its end");
}

#[test]
fn a_worker_that_comes_to_another_node_has_left_this_one() {
    let mut world = World::new();
    world.connect("worker", 1);
    let came = world.hear(PeerMessage::SessionCame("worker".into()));
    assert_eq!(came, ["shards: lost worker", "end worker"]);
    assert!(world.hear(PeerMessage::SessionCame("other".into())).is_empty());
    assert_eq!(world.hear(PeerMessage::SessionCame("other".into())), ["shards: lost other"]);
    let home = world.connect("other", 2);
    assert_eq!(home, ["shards: lost other", "far: came other"]);
    assert!(world.hear(PeerMessage::SessionLost("other".into())).is_empty(), "it has moved since");
}

#[test]
fn the_end_of_a_worker_is_told_also_after_its_node_was_forgotten() {
    let mut world = World::new();
    world.hear(PeerMessage::SessionCame("other".into()));
    let forgotten = world.tell(NodeInput::Unlinked("far".into()));
    assert!(forgotten.contains(&"shards: lost other".to_owned()), "{forgotten:?}");
    let lost = world.hear(PeerMessage::SessionLost("other".into()));
    assert_eq!(lost, ["shards: lost other"], "it may have presented an attempt since");
}

#[test]
fn a_node_that_leaves_takes_no_more_credit() {
    let mut world = World::new();
    world.connect("worker", 1);
    world.credit("worker", 1, 2);
    world.tell(NodeInput::WithdrawAll);
    assert!(world.node.withdrawn());
    world.credit("worker", 1, 2);
    assert_eq!(world.node.credits_of(&queue(), &"worker".into()), 0);
    let ended = world.tell(NodeInput::EndStreams);
    assert_eq!(ended, ["shards: lost worker", "end worker", "far: lost worker"]);
}

#[test]
fn a_shard_in_memory_is_made_known_now_and_with_each_new_link() {
    let mut world = World::new();
    world.connect("worker", 1);
    world.tell(NodeInput::Serve(shard(1)));
    let opened = world.tell(NodeInput::Opened(shard(1)));
    let asked = "give worker: PresentAttempts(ShardId(1))";
    assert_eq!(opened, [asked, "far: opened 1", "shards: again 1"]);
    world.tell(NodeInput::Unlinked("far".into()));
    let linked = world.tell(NodeInput::Linked("far".into()));
    assert_eq!(linked, ["far: came worker", "far: opened 1"]);
    world.tell(NodeInput::Closed(shard(1)));
    assert_eq!(world.tell(NodeInput::Linked("far".into())), ["far: came worker"]);
}

#[test]
fn what_is_for_a_shard_elsewhere_goes_to_the_node_that_has_it() {
    let mut world = World::new();
    let key = crate::message::EffectKey {
        workflow: offer("a", 1).workflow,
        run: offer("a", 1).run,
        number: 1,
    };
    let mail = || NodeInput::Mail(shard(1), Mail::Confirmed(key.clone()));
    assert!(world.tell(mail()).is_empty(), "nobody has it");
    world.rows(&[(1, "far")]);
    assert!(world.tell(mail())[0].starts_with("far: Mail"));
    world.tell(NodeInput::Serve(shard(1)));
    assert!(world.tell(mail())[0].starts_with("1: Mail"));
}

#[test]
fn a_call_waits_for_its_shard_and_is_tried_where_that_is() {
    let mut world = World::new();
    assert!(world.route(1, false).is_empty(), "nobody serves the shard");
    assert_eq!(world.node.wake_at(), Some(world.now + Duration::from_millis(100)));
    assert_eq!(world.rows(&[(1, "far")]), ["1 at far"]);
    assert!(world.failed(1, CallError::NotServed).is_empty(), "it is left in peace for a while");
    assert!(world.pass(Duration::from_millis(99)).is_empty());
    assert_eq!(world.pass(Duration::from_millis(1)), ["1 at far"]);
    assert!(world.tell(NodeInput::Serve(shard(1))).is_empty(), "the call is there already");
    assert_eq!(world.failed(1, CallError::NotServed), ["1 here"], "it has moved meanwhile");
    world.tell(NodeInput::Abandon(1));
    assert_eq!(world.node.wake_at(), None);
    assert!(world.failed(1, CallError::NotServed).is_empty());
}

#[test]
fn a_call_that_may_have_happened_is_repeated_only_if_it_reads() {
    let mut world = World::new();
    world.rows(&[(1, "far")]);
    assert_eq!(world.route(1, false), ["1 at far"]);
    assert_eq!(world.failed(1, CallError::Reset), ["1 refused: Reset"]);
    assert_eq!(world.route(2, true), ["2 at far"]);
    assert!(world.failed(2, CallError::Reset).is_empty());
    assert_eq!(
        world.hear(PeerMessage::Opened([shard(1)].into())).last().unwrap(),
        "shards: again 1"
    );
    assert_eq!(world.failed(2, CallError::NotFound), ["2 refused: NotFound"]);
    assert_eq!(world.node.wake_at(), None);
}

#[test]
fn a_call_is_refused_when_nobody_serves_its_shard_for_longer_than_a_takeover_takes() {
    let mut world = World::new();
    world.route(1, true);
    world.now += PATIENCE - Duration::from_millis(50);
    assert!(world.tell(NodeInput::Tick).is_empty());
    assert_eq!(world.pass(Duration::from_millis(50)), ["1 refused: NotServed"]);
    // One that was served for long begins to wait when its shard is missed.
    world.rows(&[(1, "far")]);
    assert_eq!(world.route(2, true), ["2 at far"]);
    world.now += 3 * PATIENCE;
    assert!(world.failed(2, CallError::Reset).is_empty(), "it waits");
    assert_eq!(world.pass(PATIENCE / 2), ["2 at far"]);
}
