//! A condition has an optional key and a closure on the state.

use abide_sdk_macros::condition;

struct Order {
    paid: bool,
}

impl Order {
    fn conditions() {
        let _ = condition!("two words", |order| order.paid);
        let _ = condition!("", |order| order.paid);
        let _ = condition!("order.paid", order.paid);
        let _ = condition!(|order, other| order.paid);
        let _ = condition!(|order| -> bool { order.paid });
    }
}

fn main() {
    Order::conditions();
}
