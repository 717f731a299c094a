//! Query: a question about the state of a run, which changes nothing.

use abide::{embedded::Embedded, prelude::*};

/// The state of the run. It is never stored: code rebuilds it from history.
#[derive(Default)]
struct Parcel {
    stations: Vec<String>,
}

#[workflow]
impl Parcel {
    #[run]
    async fn run(ctx: &Context<Self>, destination: String) -> abide::Result<usize> {
        while ctx.read(|state| state.stations.last() != Some(&destination)) {
            let station = ctx.receive(Self::ARRIVED).await?;
            ctx.write(|state| state.stations.push(station));
        }
        Ok(ctx.read(|state| state.stations.len()))
    }

    #[signal]
    fn arrived(station: String);

    /// A query reads the state and cannot change it: it takes `&self`.
    #[query]
    fn whereabouts(&self) -> Option<String> {
        self.stations.last().cloned()
    }

    /// Queries may have arguments.
    #[query]
    fn was_in(&self, station: String) -> bool {
        self.stations.contains(&station)
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    engine.worker().workflow::<Parcel>().spawn();

    let parcel = Parcel::start(&engine.client(), "parcel-1", "Oslo").await?;
    println!("at first: {:?}", parcel.whereabouts().await?);

    // A query sees everything that was acknowledged before it.
    parcel.arrived("Hamburg").await?;
    println!("then: {:?}", parcel.whereabouts().await?);
    println!("was it in Paris? {}", parcel.was_in("Paris").await?);

    parcel.arrived("Oslo").await?;
    println!("it took {} stations", parcel.result().await?);

    // The run is closed. Its state can still be queried.
    println!("at last: {:?}", parcel.whereabouts().await?);
    Ok(())
}
