//! `concert explain`: why an object is not ready, in one sentence, and the chain below it.

use concert_model::Object;
use concert_server::Clock as _;
use concert_server::explain::{Explanation, Facts, explain};
use serde_json::Value;

use super::objects::meant_one;
use super::{Run, events};
use crate::cli::say;
use crate::client::{Ask, Flags, Resource, Session};
use crate::exit::Exit;
use crate::print::{self, Output};

#[derive(clap::Args)]
pub struct Explain {
    /// KIND/NAME
    #[arg(required = true, value_name = "KIND/NAME")]
    what: Vec<String>,
    /// The form of the answer
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

impl Run for Explain {
    const NAME: &'static str = "explain";
    const ABOUT: &'static str = "Say why an object is not ready";

    fn run(self, flags: &Flags) -> anyhow::Result<Exit> {
        Session::run(flags, async |session| {
            let (resource, name) = meant_one(&session, &self.what).await?;
            let address = resource.object(session.namespace(), &name);
            // First, so that what does not exist is told apart from a server that does not explain, which
            // says of a part of an object that it does not know that there is no such object.
            let object = session.value(&Ask::get(address.clone())).await?;
            let answer = match session.value(&Ask::get(address.step("explain"))).await {
                Ok(answer) => answer,
                Err(error) if error.is_not_served() || error.is_not_found() => {
                    say("note: the server does not explain; this is from the object and its events alone");
                    serde_json::to_value(from_outside(&session, &resource, object).await?)?
                }
                Err(error) => return Err(error.into()),
            };
            print::out(&text(&answer, self.output))?;
            Ok(Exit::Done)
        })
    }
}

/// What can be told without the engine.
async fn from_outside(session: &Session, resource: &Resource, object: Value) -> anyhow::Result<Explanation> {
    let object = Object::from_value(object)?;
    let events = events::of_object(session, &resource.kind, object.namespace(), object.name()).await?;
    let facts = Facts { events: events::told(&events), ..Facts::new(object, session.clock.now()) };
    Ok(explain(&facts))
}

fn text(answer: &Value, output: Output) -> String {
    match (output, serde_json::from_value::<Explanation>(answer.clone())) {
        (Output::Table | Output::Wide, Ok(explanation)) => {
            explanation.to_string().lines().map(|it| print::plain(it) + "\n").collect()
        }
        (Output::Name, Ok(explanation)) => print::plain(&explanation.sentence) + "\n",
        (Output::Yaml, _) => print::yaml(answer),
        // What a newer server says differently is shown as it came.
        _ => print::json(answer),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_sentence_comes_first_and_nothing_steers_the_terminal() {
        let answer = json!({"sentence": "Bucket default/a is not ready: \u{1b}[2J.", "isReady": false,
            "chain": [{"relation": "provider", "name": "example", "state": "up"}]});
        assert_eq!(
            text(&answer, Output::Table),
            "Bucket default/a is not ready: \\u{1b}[2J.\n  provider  example  up\n"
        );
        assert_eq!(text(&answer, Output::Name), "Bucket default/a is not ready: \\u{1b}[2J.\n");
        let back: Value = serde_json::from_str(&text(&answer, Output::Json)).unwrap();
        assert_eq!(back, answer);
    }
}
