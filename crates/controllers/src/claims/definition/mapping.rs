//! How one field of a managed resource follows from claim and class.

use concert_model::{FieldError, FieldPath, Object};
use concert_schema::{Expression, Schema};
use serde_json::{Map, Value, json};

/// What paths and expressions may name.
pub(super) const NAMES: [&str; 2] = ["claim", "class"];

/// Fields that are the binding itself: a mapping that sets them could give away what is not its own.
const OURS: [&str; 4] = ["claimRef", "classRef", "reclaimPolicy", "writeConnectionSecretToRef"];

/// A dotted path such as `spec.forProvider.size`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path(Vec<String>);

/// What a field is set to.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// What is at this path, which begins with `claim` or `class`.
    Path(Path),
    /// What this comes to.
    Expression(Expression),
    /// This.
    Value(Value),
}

/// One field and what it is set to. What is absent or null leaves the field as the class has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Where in the managed resource.
    pub to: Path,
    /// What.
    pub from: Source,
    /// Where the rule stands.
    pub place: FieldPath,
}

impl Path {
    /// # Errors
    /// Why it is not a path that can be followed.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.contains(['[', ']']) {
            return Err("leads into a list: use an expression".into());
        }
        let steps: Vec<String> = text.split('.').map(str::to_owned).collect();
        if steps.iter().any(String::is_empty) {
            return Err("has an empty part".into());
        }
        Ok(Self(steps))
    }

    /// The first part, and the rest.
    fn split(&self) -> (&str, &[String]) {
        self.0.split_first().map_or(("", &[]), |(first, rest)| (first, rest))
    }

    /// What is there; null if nothing is.
    fn get<'v>(&self, names: &[(&str, &'v Value)]) -> &'v Value {
        let (first, rest) = self.split();
        let root = names.iter().find(|(name, _)| *name == first).map_or(&Value::Null, |(_, value)| value);
        rest.iter().try_fold(root, |value, step| value.get(step)).unwrap_or(&Value::Null)
    }

    /// # Errors
    /// Something on the way is not an object.
    fn set(&self, fields: &mut Map<String, Value>, value: Value) -> Result<(), String> {
        let Some((last, way)) = self.0.split_last() else { return Ok(()) };
        let mut place = fields;
        for step in way {
            let next = place.entry(step).or_insert_with(|| json!({}));
            place = next.as_object_mut().ok_or_else(|| format!("{step} is not an object"))?;
        }
        place.insert(last.clone(), value);
        Ok(())
    }

    /// The first part that `schema` does not know; none if it knows the whole path.
    pub(super) fn unknown_in(&self, schema: &Schema) -> Option<&str> {
        self.lost_in(schema)?.last().map(String::as_str)
    }

    /// The parts up to the first that `schema` does not know, and that one; none if it knows the whole path.
    pub(super) fn lost_in(&self, schema: &Schema) -> Option<&[String]> {
        let mut at = schema;
        for (number, step) in self.0.iter().enumerate() {
            match at.property(step) {
                Some(next) => at = next,
                None if at.preserves_unknown_fields() || at.kind().is_none() => return None,
                None => return self.0.get(..=number),
            }
        }
        None
    }

    /// Without its first part.
    pub(super) fn below(&self) -> Self {
        Self(self.split().1.to_vec())
    }

    /// Its first part.
    pub(super) fn root(&self) -> &str {
        self.split().0
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

impl Rule {
    /// Reads a rule found at `place`.
    ///
    /// # Errors
    /// What is wrong with which field of it.
    pub fn read(value: &Value, place: &FieldPath) -> Result<Self, FieldError> {
        let to = read_target(value, &place.child("to"))?;
        let given = |field: &str| value.get(field).filter(|it| !it.is_null());
        let (path, expression, constant) = (given("from"), given("expression"), given("value"));
        let from = match (path, expression, constant) {
            (Some(path), None, None) => Source::Path(read_path(path, &place.child("from"))?),
            (None, Some(text), None) => {
                Source::Expression(read_expression(text, &place.child("expression"))?)
            }
            (None, None, Some(value)) => Source::Value(value.clone()),
            _ => {
                let why = "say exactly one of from, expression and value";
                return Err(FieldError::required(place.clone(), why));
            }
        };
        Ok(Self { to, from, place: place.clone() })
    }

    /// Sets the field of `managed`, unless there is nothing to set it to.
    ///
    /// # Errors
    /// In words, with the place of the rule.
    pub fn apply(&self, managed: &mut Object, claim: &Value, class: &Value) -> Result<(), String> {
        let names = [("claim", claim), ("class", class)];
        let value = match &self.from {
            Source::Path(path) => path.get(&names).clone(),
            Source::Expression(it) => it.run(&names).map_err(|why| format!("{}: {why}", self.place))?,
            Source::Value(value) => value.clone(),
        };
        if value.is_null() {
            return Ok(());
        }
        let Value::Object(spec) = managed.get_mut("spec") else { return Ok(()) };
        let to = self.to.below();
        to.set(spec, value).map_err(|why| format!("{}: {why}", self.place.child("to")))
    }
}

fn read_target(value: &Value, place: &FieldPath) -> Result<Path, FieldError> {
    let text = value.get("to").and_then(Value::as_str).unwrap_or_default();
    if text.is_empty() {
        return Err(FieldError::required(place.clone(), "name the field of the managed resource"));
    }
    let refuse = |why: String| FieldError::invalid_text(place.clone(), text, why);
    let path = Path::parse(text).map_err(refuse)?;
    let (root, rest) = path.split();
    match rest.first() {
        Some(field) if root == "spec" && OURS.contains(&field.as_str()) => {
            Err(FieldError::forbidden(place.clone(), format!("spec.{field} is not for a mapping to set")))
        }
        Some(_) if root == "spec" => Ok(path),
        _ => Err(refuse("must start with \"spec.\"".into())),
    }
}

fn read_path(value: &Value, place: &FieldPath) -> Result<Path, FieldError> {
    let text = value.as_str().unwrap_or_default();
    let refuse = |why: String| FieldError::invalid(place.clone(), value, why);
    let path = Path::parse(text).map_err(refuse)?;
    match path.split() {
        (root, [_, ..]) if NAMES.contains(&root) => Ok(path),
        _ => Err(refuse("must start with \"claim.\" or \"class.\"".into())),
    }
}

fn read_expression(value: &Value, place: &FieldPath) -> Result<Expression, FieldError> {
    let compiled = Expression::compile(value.as_str().unwrap_or_default(), &NAMES.map(|name| (name, None)));
    compiled.map_err(|why| FieldError::invalid(place.clone(), value, why))
}
