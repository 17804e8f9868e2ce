//! Lists and their pages.

use concert_model::{Encoded, ResourceVersion};
use serde_json::json;

use crate::conformance::expect::{next_word, refused};
use crate::conformance::widgets::names_of;
use crate::conformance::{Subject, Widgets};
use crate::contract::{Page, PageRequest, Query};
use crate::error::Error;

/// Reads page after page, calling `between` after each.
async fn pages(widgets: &Widgets, limit: usize, mut between: impl AsyncFnMut(usize)) -> Vec<Page> {
    let mut request = PageRequest { limit: Some(limit), token: None };
    let mut pages = Vec::new();
    loop {
        let page = widgets.store.list(&widgets.query(), &request).await.unwrap();
        request.token = page.next.clone();
        pages.push(page);
        if request.token.is_none() {
            return pages;
        }
        between(pages.len()).await;
    }
}

fn joined(pages: &[Page]) -> Vec<Encoded> {
    pages.iter().flat_map(|page| page.items.clone()).collect()
}

async fn fill(widgets: &Widgets, count: usize) {
    for i in 0..count {
        widgets.create(&format!("w{i:02}"), json!({"n": 1})).await;
    }
}

/// Objects come in the order of their names.
pub async fn is_in_the_order_of_names(subject: &Subject) {
    let widgets = subject.widgets().await;
    for name in ["b", "a.x", "c", "a", "a-x", "0", "aa"] {
        widgets.create(name, json!({"n": 1})).await;
    }
    assert_eq!(widgets.names().await, ["0", "a", "a-x", "a.x", "aa", "b", "c"]);
}

/// A list has what `get` has.
pub async fn shows_what_get_shows(subject: &Subject) {
    let widgets = subject.widgets().await;
    fill(&widgets, 3).await;
    for object in widgets.list().await.items {
        assert_eq!(widgets.get(&object.key().name).await, object);
    }
}

/// A list is of one kind, and of one namespace if asked.
pub async fn is_of_one_kind_and_namespace(subject: &Subject) {
    let (widgets, others) = (subject.widgets().await, subject.widgets().await);
    widgets.create("mine", json!({"n": 1})).await;
    others.create("other", json!({"n": 1})).await;
    let mut object = widgets.object("elsewhere", json!({"n": 1}));
    object.set_metadata("namespace", json!(&*others.namespace));
    widgets.try_create(object).await.unwrap();
    assert_eq!(widgets.names().await, ["mine"]);
    let everywhere = Query::all(widgets.kind.clone());
    let all = subject.store.list(&everywhere, &PageRequest::whole()).await.unwrap();
    let mut names = names_of(&all.items);
    names.sort();
    assert_eq!(names, ["elsewhere", "mine"]);
}

/// An empty list has a position that a watch can start from.
pub async fn that_is_empty_has_a_position(subject: &Subject) {
    let widgets = subject.widgets().await;
    let page = widgets.list().await;
    assert!(page.items.is_empty() && page.next.is_none());
    let mut events = widgets.watch_from(&page.position).await;
    widgets.create("a", json!({"n": 1})).await;
    assert_eq!(next_word(&mut events).await, "A a");
}

/// A namespace that does not exist has no objects.
pub async fn of_a_missing_namespace_is_empty(subject: &Subject) {
    let widgets = subject.widgets().await;
    widgets.create("a", json!({"n": 1})).await;
    let query = Query::all(widgets.kind.clone()).in_namespace(subject.unique("missing"));
    assert!(subject.store.list(&query, &PageRequest::whole()).await.unwrap().items.is_empty());
}

/// Pages hold at most what was asked for, and together the whole.
pub async fn in_pages_is_the_whole_list(subject: &Subject) {
    let widgets = subject.widgets().await;
    fill(&widgets, 10).await;
    let whole = widgets.list().await.items;
    for limit in [1, 3, 5, 9, 10, 11] {
        let pages = pages(&widgets, limit, async |_| {}).await;
        assert!(pages.iter().all(|page| page.items.len() <= limit), "{limit}");
        assert_eq!(joined(&pages), whole, "{limit}");
    }
}

/// A list that fits into one page has no next one.
pub async fn that_fits_has_no_token(subject: &Subject) {
    let widgets = subject.widgets().await;
    fill(&widgets, 3).await;
    let request = PageRequest { limit: Some(3), token: None };
    assert!(widgets.store.list(&widgets.query(), &request).await.unwrap().next.is_none());
}

/// All pages of one list show the same moment, whatever is written in between.
pub async fn in_pages_shows_one_moment(subject: &Subject) {
    let widgets = subject.widgets().await;
    fill(&widgets, 12).await;
    let whole = widgets.list().await;
    let pages = pages(&widgets, 4, async |turn| {
        // Behind, at and before the place where the list goes on.
        widgets.create(&format!("w{:02}-new", turn * 4), json!({"n": 1})).await;
        let changed = widgets.get(&format!("w{:02}", turn * 4 + 1)).await;
        widgets.set_n(&changed, 2).await;
        widgets.delete(&format!("w{:02}", turn * 4 + 2)).await;
        widgets.delete(&format!("w{:02}", turn * 4 - 1)).await;
    });
    let pages = pages.await;
    assert_eq!(joined(&pages), whole.items);
    let positions: Vec<&ResourceVersion> = pages.iter().map(|page| &page.position).collect();
    assert!(positions.iter().all(|position| *position == positions[0]), "{positions:?}");
    assert_eq!(widgets.names().await.len(), 12 - 4 + 2);
}

/// A watch from the position of a paged list tells what was written between the pages.
pub async fn in_pages_is_continued_by_a_watch(subject: &Subject) {
    let widgets = subject.widgets().await;
    fill(&widgets, 4).await;
    let pages = pages(&widgets, 2, async |_| drop(widgets.create("between", json!({"n": 1})).await)).await;
    let mut events = widgets.watch_from(&pages[1].position).await;
    assert_eq!(next_word(&mut events).await, "A between");
}

/// An object that was deleted and made anew between pages shows its old state.
pub async fn in_pages_shows_the_old_incarnation(subject: &Subject) {
    let widgets = subject.widgets().await;
    fill(&widgets, 4).await;
    let old = widgets.get("w03").await;
    let pages = pages(&widgets, 2, async |_| {
        widgets.delete("w03").await;
        widgets.create("w03", json!({"n": 9})).await;
    });
    assert_eq!(joined(&pages.await)[3], old);
}

/// A token that was not given out is refused.
pub async fn with_a_made_up_token_is_refused(subject: &Subject) {
    let widgets = subject.widgets().await;
    fill(&widgets, 3).await;
    for token in ["x", "%", "1", "{}"] {
        let request = PageRequest { limit: Some(1), token: Some(token.into()) };
        refused!(widgets.store.list(&widgets.query(), &request).await, Error::Invalid { .. });
    }
}
