//! Updates and queries.

use abide::{Context, payload};
use abide_core::payload::Payload;
use abide_sdk_macros::workflow;

use crate::world::{World, seconds};

#[derive(Default)]
struct Account {
    balance: u32,
}

#[workflow]
impl Account {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u32> {
        ctx.receive(Self::CLOSE).await?;
        Ok(ctx.read(|state| state.balance))
    }

    #[signal]
    fn close();

    #[update(validate = check_deposit)]
    fn deposit(&mut self, amount: u32) -> Result<u32, String> {
        self.balance = self.balance.checked_add(amount).ok_or("the account is full")?;
        Ok(self.balance)
    }

    fn check_deposit(&self, amount: &u32) -> Result<(), String> {
        if *amount == 0 { Err("nothing to deposit".into()) } else { Ok(()) }
    }

    #[update(name = "slow-deposit", validate = check_slow)]
    async fn slow(ctx: &Context<Self>, amount: u32, wait: bool) -> abide::Result<u32> {
        if wait {
            ctx.sleep(seconds(10)).await?;
        }
        Ok(ctx.write(|state| {
            state.balance += amount;
            state.balance
        }))
    }

    fn check_slow(&self, amount: &u32, _wait: &bool) -> Result<(), String> {
        self.check_deposit(amount)
    }

    #[query]
    fn balance(&self) -> u32 {
        self.balance
    }

    #[query]
    fn at_least(&self, amount: u32) -> Result<bool, String> {
        if amount > 1000 { Err("ask for less".into()) } else { Ok(self.balance >= amount) }
    }
}

#[test]
fn a_sync_update_has_its_outcome_at_once() {
    let mut world = World::<Account>::start(());
    assert_eq!(world.update(Account::DEPOSIT, 7), Some(Ok(7)));
    assert_eq!(world.update(Account::DEPOSIT, u32::MAX), Some(Err("the account is full".into())));
    assert_eq!(world.query(Account::BALANCE, ()), 7);
    assert_eq!(
        world.history()[2..],
        ["UpdateAccepted", "UpdateCompleted", "UpdateAccepted", "UpdateCompleted"]
    );
    world.check();
}

#[test]
fn a_validator_refuses_and_leaves_nothing() {
    let mut world = World::<Account>::start(());
    assert_eq!(world.update(Account::DEPOSIT, 0), None);
    assert_eq!(world.rejected[0].message, "nothing to deposit");
    assert_eq!(world.history().len(), 2);
    assert_eq!(world.update(Account::DEPOSIT, 1), Some(Ok(1)));
    world.check();
}

#[test]
fn an_async_update_has_its_outcome_when_it_is_done() {
    let mut world = World::<Account>::start(());
    assert_eq!(world.update(Account::SLOW, (3, true)), None);
    assert_eq!(world.update(Account::DEPOSIT, 1), Some(Ok(1)));
    world.pass(seconds(10));
    assert!(world.outcome("update-1").is_some());
    assert_eq!(world.query(Account::BALANCE, ()), 4);
    assert_eq!(world.update(Account::SLOW, (1, false)), Some(Ok(5)));
    world.check();
}

#[test]
fn what_is_unknown_or_unreadable_is_refused_with_a_hint() {
    let mut world = World::<Account>::start(());
    world.update_raw("withdraw", Vec::new());
    assert_eq!(
        world.rejected[0].message,
        "workflow Account has no update withdraw; it has: deposit, slow-deposit"
    );
    world.update_raw("deposit", vec![Payload::new("\"x\"")]);
    assert!(
        world.rejected[1].message.starts_with("input of update deposit: cannot be read as u32")
    );
    let failure = world.query_raw("total", &Vec::new()).unwrap_err();
    assert_eq!(failure.message, "workflow Account has no query total; it has: balance, at_least");
    world.check();
}

#[test]
fn a_query_may_have_arguments_and_may_fail() {
    let world = World::<Account>::start(());
    assert!(!world.query(Account::AT_LEAST, 1));
    let input = payload::encode(&1001_u32).unwrap();
    assert_eq!(world.query_raw("at_least", &input).unwrap_err().message, "ask for less");
    assert!(world.query_raw("at_least", &Vec::new()).unwrap_err().message.contains("is missing"));
}
