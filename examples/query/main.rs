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
            let station = ctx.receive(Self::arrived).await?;
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

    let parcel = engine.client().start::<Parcel>("parcel-1", "Oslo".to_owned()).await?;
    println!("at first: {:?}", parcel.query(Parcel::whereabouts, ()).await?);

    // A query sees everything that was acknowledged before it.
    parcel.signal(Parcel::arrived, "Hamburg".to_owned()).await?;
    println!("then: {:?}", parcel.query(Parcel::whereabouts, ()).await?);
    println!("was it in Paris? {}", parcel.query(Parcel::was_in, "Paris".to_owned()).await?);

    parcel.signal(Parcel::arrived, "Oslo".to_owned()).await?;
    println!("it took {} stations", parcel.result().await?);

    // The run is closed. Its state can still be queried.
    println!("at last: {:?}", parcel.query(Parcel::whereabouts, ()).await?);
    Ok(())
}
