//! `concert watch`: objects of one kind or of several, and every change to them as it happens.

use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use concert_model::Address;
use concert_server::Clock as _;
use serde_json::Value;

use super::objects::{Meant, Scope, label, meant};
use super::{Run, get};
use crate::cli::say;
use crate::client::{Ask, Error, Event, Flags, Resource, Session, Watch};
use crate::exit::Exit;
use crate::print::table::{Columns, line};
use crate::print::{self, Output};

/// After the server has closed a watch.
const BREATH: Duration = Duration::from_millis(100);
/// After a connection was lost.
const PAUSE: Duration = Duration::from_secs(1);
/// How often in a row a server may be lost before that is an error.
const LOST_MAX: usize = 30;

#[derive(clap::Args)]
pub struct Follow {
    /// KIND, KIND,KIND, or KIND/NAME …
    #[arg(required = true, value_name = "KIND[/NAME]")]
    what: Vec<String>,
    #[command(flatten)]
    scope: Scope,
    /// The form of the answer
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

impl Run for Follow {
    const NAME: &'static str = "watch";
    const ABOUT: &'static str = "Show objects and follow their changes";

    fn run(self, flags: &Flags) -> anyhow::Result<Exit> {
        Session::run(flags, async |session| {
            let meant = meant(&session, &self.what).await?;
            let is_one = meant.iter().all(|it| it.resource.kind == meant[0].resource.kind);
            let followed = meant.iter().map(|Meant { resource, name }| -> Followed<'_> {
                let mut scope = self.scope.clone();
                if let Some(name) = name {
                    let own = format!("metadata.name={name}");
                    scope.field_selector =
                        Some(scope.field_selector.map_or(own.clone(), |it| format!("{it},{own}")));
                }
                let collection = scope.collection(&session, resource);
                let has_namespaces = scope.all_namespaces && resource.is_namespaced;
                let printer = Printer::new(resource, self.output, has_namespaces, !is_one);
                Box::pin(follow(&session, collection, printer))
            });
            together(followed.collect()).await
        })
    }
}

type Followed<'a> = Pin<Box<dyn Future<Output = anyhow::Result<Exit>> + 'a>>;

/// All at once. None ends unless something is wrong, and then all do.
async fn together(mut all: Vec<Followed<'_>>) -> anyhow::Result<Exit> {
    std::future::poll_fn(|context| {
        let ended = all.iter_mut().map(|it| it.as_mut().poll(context)).find(Poll::is_ready);
        ended.unwrap_or(Poll::Pending)
    })
    .await
}

/// Lists, then watches, and goes on where it was when a watch ends.
async fn follow(session: &Session, collection: Address, mut printer: Printer<'_>) -> anyhow::Result<Exit> {
    let mut position: Option<String> = None;
    let mut lost = 0;
    loop {
        let ended = match &position {
            None => list(session, &collection, &mut printer).await.map(|at| position = Some(at)),
            Some(_) => watch(session, &collection, &mut printer, &mut position).await,
        };
        match ended {
            Ok(()) => lost = 0,
            Err(Stop::Refused(error)) if error.is_expired() => {
                say("the server has forgotten where we were: all objects again");
                position = None;
            }
            Err(Stop::Refused(error @ (Error::Unreachable { .. } | Error::Silent { .. })))
                if position.is_some() && lost < LOST_MAX =>
            {
                if lost == 0 {
                    say(&format!("{}: trying again", print::plain(&error.to_string())));
                }
                lost += 1;
                session.clock.sleep(PAUSE).await;
            }
            Err(Stop::Refused(error)) => return Err(error.into()),
            Err(Stop::Unread(error)) => return Err(error),
        }
    }
}

/// Why a list or watch did not go on.
enum Stop {
    Refused(Error),
    /// Nobody takes what is printed.
    Unread(anyhow::Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

async fn list(session: &Session, collection: &Address, printer: &mut Printer<'_>) -> Result<String, Stop> {
    let ask = Ask::get(collection.clone());
    let list = session.value(&if printer.is_table() { ask.in_columns() } else { ask }).await?;
    printer.list(&list).map_err(Stop::Unread)?;
    Ok(list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned())
}

async fn watch(
    session: &Session,
    collection: &Address,
    printer: &mut Printer<'_>,
    position: &mut Option<String>,
) -> Result<(), Stop> {
    let from = position.clone().unwrap_or_default();
    let mut watch = Watch::open(session, collection.clone(), &from, printer.is_table()).await?;
    while let Some(event) = watch.next().await? {
        if let Some(at) = event.position() {
            *position = Some(at.to_owned());
        }
        printer.event(&event).map_err(Stop::Unread)?;
    }
    // A server that closes watches at once is not to be asked without end.
    session.clock.sleep(BREATH).await;
    Ok(())
}

/// Prints a list and then events, in one form.
struct Printer<'a> {
    resource: &'a Resource,
    output: Output,
    has_namespaces: bool,
    /// Several kinds are watched, so each line says which.
    has_kinds: bool,
    columns: Columns,
    widths: Vec<usize>,
}

impl<'a> Printer<'a> {
    fn new(resource: &'a Resource, output: Output, has_namespaces: bool, has_kinds: bool) -> Self {
        let (columns, widths) = (Columns::default(), Vec::new());
        Self { resource, output, has_namespaces, has_kinds, columns, widths }
    }

    fn is_table(&self) -> bool {
        matches!(self.output, Output::Table | Output::Wide)
    }

    fn list(&mut self, list: &Value) -> anyhow::Result<()> {
        if self.is_table() {
            self.columns = Columns::of(list, self.output == Output::Wide);
            let mut table = get::table(list, self.output == Output::Wide);
            if self.has_namespaces {
                table = table.with_first("NAMESPACE", get::namespaces(list));
            }
            let count = table.rows.len();
            if self.has_kinds {
                table = table.with_first("KIND", std::iter::repeat_n(self.resource.kind.clone(), count));
            }
            let table = table.with_first("EVENT", std::iter::repeat_n("-".to_owned(), count));
            self.widths = table.widths();
            // Room for the words to come.
            self.widths[0] = self.widths[0].max("modified".len());
            let lines = std::iter::once(&table.columns).chain(&table.rows);
            return print::out(&lines.map(|it| line(it, &self.widths)).collect::<String>());
        }
        for item in list["items"].as_array().into_iter().flatten() {
            self.object("-", item)?;
        }
        Ok(())
    }

    fn event(&mut self, event: &Event) -> anyhow::Result<()> {
        let (word, object) = match event {
            Event::Added(object) => ("added", object),
            Event::Modified(object) => ("modified", object),
            Event::Deleted(object) => ("deleted", object),
            Event::Bookmark(_) => return Ok(()),
        };
        if self.is_table() { self.rows(word, object) } else { self.object(word, object) }
    }

    fn rows(&mut self, word: &str, table: &Value) -> anyhow::Result<()> {
        if table["columnDefinitions"].as_array().is_some_and(|it| !it.is_empty()) {
            self.columns = Columns::of(table, self.output == Output::Wide);
        }
        for row in table["rows"].as_array().into_iter().flatten() {
            let mut cells = vec![word.to_owned()];
            if self.has_kinds {
                cells.push(self.resource.kind.clone());
            }
            if self.has_namespaces {
                let namespace = row["object"]["metadata"]["namespace"].as_str().unwrap_or_default();
                cells.push(print::plain(namespace));
            }
            cells.extend(self.columns.cells(row));
            print::out(&line(&cells, &self.widths))?;
        }
        Ok(())
    }

    fn object(&self, word: &str, object: &Value) -> anyhow::Result<()> {
        let mut whole = object.clone();
        whole["apiVersion"] = self.resource.api_version().into();
        whole["kind"] = self.resource.kind.clone().into();
        match self.output {
            Output::Name if word == "-" => print::out(&(label(self.resource, object) + "\n")),
            Output::Name => print::out(&format!("{} {word}\n", label(self.resource, object))),
            Output::Yaml => print::out(&format!("---\n{}", print::yaml(&whole))),
            _ => print::out(&print::json(&whole)),
        }
    }
}
