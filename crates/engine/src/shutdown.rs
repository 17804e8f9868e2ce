//! The wish to stop, as a token that is cheap to clone.

use std::sync::Arc;

use futures_util::future::select_all;

use crate::watched::Watched;

/// Says whether somebody asked for the end, and lets many wait for it.
///
/// A child is also asked to stop when its parent is, but not the other way round.
#[derive(Clone, Debug)]
pub struct Shutdown {
    wish: Arc<Watched<bool>>,
    parent: Option<Arc<Shutdown>>,
}

impl Shutdown {
    /// A token that nobody has asked to stop yet.
    pub fn new() -> Self {
        Self { wish: Arc::default(), parent: None }
    }

    /// A token for a part, which may be stopped alone.
    pub fn child(&self) -> Self {
        Self { parent: Some(Arc::new(self.clone())), ..Self::new() }
    }

    /// Asks everybody who holds this token, or a child of it, to stop.
    pub fn request(&self) {
        self.wish.set(true);
    }

    /// Whether the end was asked for.
    pub fn is_requested(&self) -> bool {
        self.line().any(|it| it.wish.get())
    }

    /// Completes when the end is asked for; at once if it was already.
    pub async fn requested(&self) {
        select_all(self.line().map(|it| Box::pin(it.wish.wait_for(|is_wished| *is_wished)))).await;
    }

    /// This token and those it descends from.
    fn line(&self) -> impl Iterator<Item = &Shutdown> {
        std::iter::successors(Some(self), |it| it.parent.as_deref())
    }
}

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_parent_stops_its_children_and_not_the_other_way_round() {
        let parent = Shutdown::new();
        let (one, two) = (parent.child(), parent.child().child());
        assert!(one.requested().now_or_never().is_none());
        one.request();
        assert!(one.requested().now_or_never().is_some());
        assert!(!parent.is_requested() && !two.is_requested());
        let waiting = two.requested();
        parent.request();
        waiting.await;
        assert!(two.is_requested());
    }
}
