//! Tests with a real engine and worker, and a clock that skips to what is due next.

use abide::{prelude::*, testing::TestEnvironment};

use my_orders::{Order, register, remind};

#[tokio::test]
async fn an_order_that_is_paid_after_two_weeks() -> anyhow::Result<()> {
    let env = TestEnvironment::new().await;
    env.worker(register).await?;
    let order = Order::start(&env.client(), "order-1", "Ada", 4200).await?;
    env.skip(days(15)).await;
    order.pay(4200).await?;
    assert_eq!(order.result().await?, "Ada has paid");
    Ok(())
}

#[tokio::test]
async fn an_order_that_is_never_paid() -> anyhow::Result<()> {
    let env = TestEnvironment::new().await;
    // The mail server is down at first; the attempt is repeated.
    env.fail_attempt(remind, 1, "no mail server");
    env.worker(register).await?;
    let order = Order::start(&env.client(), "order-2", "Bob", 4200).await?;
    assert_eq!(order.result().await?, "Bob has not paid");
    Ok(())
}
