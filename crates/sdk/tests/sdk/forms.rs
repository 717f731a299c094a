//! Functions stay functions and methods stay methods: activities, handlers and function workflows
//! are called as Rust calls them, and named as definitions.

use abide::{ActivityContext, Context, Workflow, activity::Activity};
use abide_sdk_macros::{activities, activity, workflow};

use crate::world::{World, seconds};

#[activity]
async fn greet(name: String) -> String {
    format!("Hello, {name}!")
}

#[activity]
async fn divide(dividend: u32, mut divisor: u32) -> Result<u32, String> {
    divisor += 0;
    dividend.checked_div(divisor).ok_or_else(|| "by zero".to_owned())
}

struct Till {
    cents: u64,
}

#[activities]
impl Till {
    #[activity]
    async fn count(&self) -> u64 {
        self.cents
    }

    #[activity(name = "count-more")]
    async fn count_with(&self, _ctx: ActivityContext, more: u64) -> u64 {
        self.count().await + more
    }
}

fn name_of<M>(activity: impl Activity<M>) -> &'static str {
    activity.definition().name()
}

#[test]
fn an_activity_is_a_function_and_its_name() {
    assert_eq!(pollster::block_on(greet("Ada".into())), "Hello, Ada!");
    assert_eq!(pollster::block_on(divide(7, 2)), Ok(3));
    assert_eq!(pollster::block_on(divide(7, 0)), Err("by zero".into()));
    assert_eq!(pollster::block_on(Till { cents: 7 }.count()), 7);
    let names = [name_of(greet), name_of(divide), name_of(Till::count), name_of(Till::count_with)];
    assert_eq!(names, ["greet", "divide", "count", "count-more"]);
}

#[test]
fn a_call_of_an_activity_can_move_to_another_thread() {
    let call = greet("Ada".into());
    let said = std::thread::spawn(move || pollster::block_on(call)).join();
    assert_eq!(said.unwrap(), "Hello, Ada!");
}

/// Calls the activity as a function, in its run or in a task beside it.
#[workflow]
async fn careless(ctx: &Context, spawned: bool) -> abide::Result<String> {
    ctx.sleep(seconds(1)).await?;
    if spawned {
        ctx.spawn(greet("Bob".into()));
        ctx.sleep(seconds(1)).await?;
    }
    Ok(greet("Ada".into()).await)
}

#[test]
fn workflow_code_that_awaits_an_activity_is_stopped() {
    for spawned in [false, true] {
        let mut world = World::<careless>::start(spawned);
        world.pass(seconds(1));
        let fault = &world.faults[0].failure;
        assert_eq!(fault.error_type, "NotDeterministic");
        let expected = "the workflow calls the activity greet as a function, at ";
        assert!(fault.message.contains(expected), "{}", fault.message);
        assert!(fault.message.contains("forms.rs:"), "{}", fault.message);
        assert!(fault.message.contains("`ctx.activity(greet, …)`"), "{}", fault.message);
    }
}

#[derive(Default)]
struct Account {
    cents: u64,
    asked: std::cell::Cell<u32>,
}

#[workflow]
impl Account {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u64> {
        ctx.receive(Self::CLOSE).await?;
        // Handlers are methods, so other code can call them.
        ctx.write(|account| account.pay_in(1));
        Self::pay_in_later(ctx, 2).await;
        Ok(ctx.read(Self::balance))
    }

    #[signal]
    fn close();

    #[signal]
    fn pay_in(&mut self, cents: u64) {
        self.cents += cents;
    }

    #[signal(name = "later")]
    async fn pay_in_later(ctx: &Context<Self>, cents: u64) {
        ctx.write(|account| account.pay_in(cents));
    }

    #[query]
    fn balance(&self) -> u64 {
        self.cents
    }

    #[update(validate = covered)]
    fn pay_out(&mut self, cents: u64) -> u64 {
        self.cents -= cents;
        self.cents
    }

    fn covered(&self, cents: &u64) -> Result<(), String> {
        self.asked.set(self.asked.get() + 1);
        if *cents > self.cents { Err(format!("only {}", self.cents)) } else { Ok(()) }
    }
}

#[test]
fn a_handler_is_a_method_and_a_constant() {
    let mut account = Account::default();
    account.pay_in(5);
    assert_eq!((account.pay_out(2), account.balance()), (3, 3));
    let names = [Account::PAY_IN.name(), Account::PAY_IN_LATER.name(), Account::CLOSE.name()];
    assert_eq!(names, ["pay_in", "later", "close"]);

    let mut world = World::<Account>::start(());
    world.signal(Account::PAY_IN, 10);
    world.signal(Account::PAY_IN_LATER, 20);
    assert_eq!(world.update(Account::PAY_OUT, 3), Some(Ok(27)));
    assert_eq!(world.query(Account::BALANCE, ()), 27);
    world.signal(Account::CLOSE, ());
    assert_eq!(world.result(), Some(30));
}

/// Sleeps, and greets.
#[workflow(name = "Greeting")]
async fn greeting(ctx: &Context, name: String) -> abide::Result<String> {
    ctx.sleep(seconds(60)).await?;
    ctx.activity(greet, &name).await
}

/// Greets twice, within its own run.
#[workflow]
async fn both(ctx: &Context, first: String, second: String) -> abide::Result<String> {
    let said = (greeting(ctx, first).await?, greeting(ctx, second).await?);
    Ok(format!("{} {}", said.0, said.1))
}

#[test]
fn a_function_is_a_workflow() {
    assert_eq!((greeting::NAME, both::NAME), ("Greeting", "both"));
    let mut world = World::<greeting>::start("Ada");
    world.pass(seconds(60));
    world.complete(greet, "Good morning".into());
    assert_eq!(world.result().as_deref(), Some("Good morning"));
}

#[test]
fn a_function_workflow_is_a_part_of_others() {
    let mut world = World::<both>::start(("Ada", "Bob"));
    for said in ["Hello", "Goodbye"] {
        world.pass(seconds(60));
        world.complete(greet, said.into());
    }
    assert_eq!(world.result().as_deref(), Some("Hello Goodbye"));
}
