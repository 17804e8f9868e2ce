//! One member of a group of its own, and garbage collection.

use concert_engine::leader::Duty;
use concert_engine::members::{Config, Membership};
use concert_engine::{Authority, OnExit, Tasks, TokioSpawn, Watched};
use concert_store::backend::memory::Memory;
use concert_store::{Chance, SystemClock};

use super::*;
use crate::serve::Layer;
use crate::serve::run;

/// Collects, and says how often it could not begin and whether it has.
struct Told {
    post: Collecting,
    failures: Watched<usize>,
    has_begun: Watched<bool>,
}

#[async_trait]
impl Post for Told {
    fn name(&self) -> &'static str {
        self.post.name()
    }

    fn begin(&self, fence: Option<Fence>) -> Result<(), Error> {
        let begun = self.post.begin(fence);
        match &begun {
            Ok(()) => self.has_begun.set(true),
            Err(_) => self.failures.change(|it| *it += 1),
        }
        begun
    }

    async fn end(&self, is_lost: bool) {
        self.post.end(is_lost).await;
    }
}

/// Holds shares, and does nothing else in them.
struct Idle;

#[async_trait]
impl Duty for Idle {
    fn begin(&self, _: Authority) {}

    async fn end(&self, _: bool) {}
}

#[tokio::test]
async fn what_cannot_begin_in_a_share_is_tried_for_as_long_as_the_share_is_held() {
    let folder = tempfile::tempdir().unwrap();
    let layer = Layer { data_dir: Some(folder.path().to_owned()), ..Layer::default() };
    let config = layer.resolve().unwrap();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let chance = Chance::seeded(1);
    let tasks = Tasks::new(Arc::new(TokioSpawn::current()), clock.clone());
    let store = concert_store::Config::new(clock.clone(), chance.fork());
    let store = Local::open(Arc::new(Memory::new()), store).unwrap();
    let parts = run::parts(&config, &store, &clock, &chance, &tasks);

    // As if what was stopped before had not ended yet.
    let before = upkeep::collect(&store, &parts, None).unwrap();
    let post = Arc::new(Told {
        post: Collecting::new(&store, &parts),
        failures: Watched::new(0),
        has_begun: Watched::new(false),
    });
    let member = Config::new("test", "one");
    let membership = Membership::new(Arc::new(store.clone()), member, clock.clone(), chance.fork());
    let holding = hold(post.clone(), membership.shares(), clock.clone(), tasks.shutdown().clone());
    tasks.spawn("holding", OnExit::Log, holding);
    tasks.spawn("member", OnExit::Log, membership.run(Arc::new(Idle), tasks.shutdown().clone()));
    post.failures.wait_for(|it| *it > 0).await;
    before.stop(Duration::ZERO).await;
    post.has_begun.wait_for(|it| *it).await;
    tasks.stop(Duration::ZERO).await;
}
