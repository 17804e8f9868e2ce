//! Many writes at once: in order for each item, items side by side.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::claim::item;
use super::door::{Inner, answer};
use super::entry;
use super::op::Op;
use crate::auth::User;
use crate::kube::Body;
use crate::rest::{Error, Fields};

/// Most writes of one request.
const WRITES_MAX: usize = 10_000;

impl Inner {
    pub async fn writes(&self, user: &User, worker: &str, body: &Value) -> Result<Response<Body>, Error> {
        self.permit(user, "update", worker).await?;
        let list = list(body, "writes")?;
        self.worker(worker).await?;
        let answers = self.side_by_side(list, |write| self.write(user, worker, write)).await;
        Ok(answer(StatusCode::OK, &json!({"results": answers})))
    }

    /// Does each in turn for one item, and items at the same time. One answer each, in order.
    pub async fn side_by_side<'a, F>(&self, list: &'a [Value], act: impl Fn(&'a Value) -> F) -> Vec<Value>
    where
        F: Future<Output = Result<Value, Error>>,
    {
        let mut by_item: BTreeMap<Option<Arc<str>>, Vec<usize>> = BTreeMap::new();
        for (place, write) in list.iter().enumerate() {
            by_item.entry(item(write)).or_default().push(place);
        }
        let act = &act;
        let lines = by_item.into_values().map(|places| async move {
            let mut answers = Vec::with_capacity(places.len());
            for place in places {
                answers.push((place, told(act(&list[place]).await)));
            }
            answers
        });
        let mut answers: Vec<(usize, Value)> = join_all(lines).await.into_iter().flatten().collect();
        answers.sort_by_key(|(place, _)| *place);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    async fn write(&self, user: &User, worker: &str, write: &Value) -> Result<Value, Error> {
        let (item, fence) = under(write)?;
        let op = Op::read(write)?;
        if entry::is_meant(&item) && !matches!(op, Op::Release) {
            return Err(Error::unprocessable(
                "of an entry there are results, and only release is written here",
            ));
        }
        self.act(user, worker, &item, fence, op).await
    }
}

/// The item and the fence of one entry.
pub(super) fn under(write: &Value) -> Result<(Arc<str>, u64), Error> {
    let mut fields = Fields::of(write)?;
    let fence = fields.integer("fence").and_then(|it| u64::try_from(it).ok());
    let item = item(write);
    if item.is_none() {
        fields.refuse("item", "item must be the name of a claimed item");
    }
    if fence.is_none() && !fields.is_noted("fence") {
        fields.refuse("fence", "fence must be the number of a claim");
    }
    fields.check()?;
    item.zip(fence).ok_or_else(|| Error::unprocessable("item and fence are required"))
}

pub(super) fn list<'a>(body: &'a Value, field: &str) -> Result<&'a [Value], Error> {
    let mut fields = Fields::of(body)?;
    let list = fields.list(field);
    if list.is_none_or(|it| it.len() > WRITES_MAX) && !fields.is_noted(field) {
        fields.refuse(field, "must be a list of at most 10000 entries");
    }
    fields.check()?;
    Ok(list.unwrap_or_default())
}

fn told(result: Result<Value, Error>) -> Value {
    match result {
        Ok(mut value) => {
            value["status"] = json!(200);
            value
        }
        Err(error) => json!({"status": error.code.as_u16(), "detail": error.detail}),
    }
}
