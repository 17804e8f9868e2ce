//! From text to expression.
//!
//! Macros (`has`, `all`, `exists`, `exists_one`, `filter`, `map`, `cel.bind`) become nodes of their own,
//! so that what repeats is plain to see for whoever counts costs.

use super::Fault;
use super::ast::{Expr, Loop, LoopKind, Node, Operator};
use super::lex::{Token, tokens};
use crate::structural::pattern::Pattern;

/// Longest rule, in bytes.
pub(super) const RULE_BYTES_MAX: usize = 16 * 1024;

/// Deepest nesting of an expression, which bounds the stack of whoever walks it.
const HEIGHT_MAX: usize = 100;

/// Words that cannot name anything.
const RESERVED: [&str; 19] = [
    "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let",
    "loop", "null", "package", "return", "true", "var", "while",
];

/// Names in front of a dot that belong to the function behind it.
const NAMESPACES: [&str; 3] = ["optional", "sets", "math"];

pub(super) fn parse(source: &str) -> Result<Node, Fault> {
    if source.len() > RULE_BYTES_MAX {
        return Err(Fault::error(format!("must have at most {RULE_BYTES_MAX} bytes")));
    }
    let mut parser = Parser { tokens: tokens(source)?, at: 0, depth: 0 };
    let node = parser.expression()?;
    match parser.peek() {
        Token::End => Ok(node),
        other => Err(unexpected(other)),
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

fn unexpected(token: &Token) -> Fault {
    Fault::error(match token {
        Token::End => "syntax error: the expression ends too early".to_owned(),
        Token::Name(name) | Token::Quoted(name) => format!("syntax error: unexpected {name:?}"),
        Token::Sign(sign) => format!("syntax error: unexpected {sign:?}"),
        _ => "syntax error: unexpected literal".to_owned(),
    })
}

/// A node over others, the tallest of which is `below` high.
fn grown(expr: Expr, below: usize) -> Result<Node, Fault> {
    if below >= HEIGHT_MAX {
        return Err(Fault::error(format!("must not be nested deeper than {HEIGHT_MAX} levels")));
    }
    Ok(Node { expr, height: below + 1 })
}

fn tallest<'n>(nodes: impl IntoIterator<Item = &'n Node>) -> usize {
    nodes.into_iter().map(|node| node.height).max().unwrap_or(0)
}

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn eat(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(found) if *found == sign);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), Fault> {
        if self.eat(sign) { Ok(()) } else { Err(unexpected(self.peek())) }
    }

    fn expression(&mut self) -> Result<Node, Fault> {
        if self.depth == HEIGHT_MAX {
            return Err(Fault::error(format!("must not be nested deeper than {HEIGHT_MAX} levels")));
        }
        self.depth += 1;
        let node = self.conditional();
        self.depth -= 1;
        node
    }

    fn conditional(&mut self) -> Result<Node, Fault> {
        let condition = self.any_of()?;
        if !self.eat("?") {
            return Ok(condition);
        }
        let yes = self.any_of()?;
        self.expect(":")?;
        let no = self.expression()?;
        let below = tallest([&condition, &yes, &no]);
        grown(Expr::If(Box::new(condition), Box::new(yes), Box::new(no)), below)
    }

    fn any_of(&mut self) -> Result<Node, Fault> {
        let mut all = vec![self.all_of()?];
        while self.eat("||") {
            all.push(self.all_of()?);
        }
        joined(all, Expr::Or)
    }

    fn all_of(&mut self) -> Result<Node, Fault> {
        let mut all = vec![self.binary(0)?];
        while self.eat("&&") {
            all.push(self.binary(0)?);
        }
        joined(all, Expr::And)
    }

    /// Relations (0), sums (1) and products (2), each from left to right.
    fn binary(&mut self, level: usize) -> Result<Node, Fault> {
        if level == 3 {
            return self.unary();
        }
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = self.operator(level) {
            self.at += 1;
            let right = self.binary(level + 1)?;
            let below = left.height.max(right.height);
            left = grown(Expr::Binary(operator, Box::new(left), Box::new(right)), below)?;
        }
        Ok(left)
    }

    fn operator(&self, level: usize) -> Option<Operator> {
        let found = match self.peek() {
            Token::Name(name) if name == "in" => (0, Operator::In),
            Token::Sign(sign) => match *sign {
                "==" => (0, Operator::Equal),
                "!=" => (0, Operator::Different),
                "<" => (0, Operator::Less),
                "<=" => (0, Operator::LessOrEqual),
                ">" => (0, Operator::Greater),
                ">=" => (0, Operator::GreaterOrEqual),
                "+" => (1, Operator::Add),
                "-" => (1, Operator::Subtract),
                "*" => (2, Operator::Multiply),
                "/" => (2, Operator::Divide),
                "%" => (2, Operator::Remainder),
                _ => return None,
            },
            _ => return None,
        };
        (found.0 == level).then_some(found.1)
    }

    fn unary(&mut self) -> Result<Node, Fault> {
        if self.eat("!") {
            let of = self.nested_unary()?;
            let below = of.height;
            return grown(Expr::Not(Box::new(of)), below);
        }
        if self.eat("-") {
            if *self.peek() == Token::IntMinimum {
                self.at += 1;
                return grown(Expr::Int(i64::MIN), 0);
            }
            let of = self.nested_unary()?;
            let below = of.height;
            return grown(Expr::Negate(Box::new(of)), below);
        }
        self.member()
    }

    fn nested_unary(&mut self) -> Result<Node, Fault> {
        if self.depth == HEIGHT_MAX {
            return Err(Fault::error(format!("must not be nested deeper than {HEIGHT_MAX} levels")));
        }
        self.depth += 1;
        let node = self.unary();
        self.depth -= 1;
        node
    }

    fn member(&mut self) -> Result<Node, Fault> {
        let mut node = self.primary()?;
        loop {
            if self.eat(".") {
                let is_maybe = self.eat("?");
                let name = match self.next() {
                    Token::Name(name) | Token::Quoted(name) => name,
                    other => return Err(unexpected(&other)),
                };
                let below = node.height;
                node = if is_maybe {
                    grown(Expr::MaybeSelect(Box::new(node), name), below)?
                } else if self.eat("(") {
                    self.method(node, name)?
                } else {
                    grown(Expr::Select(Box::new(node), name), below)?
                };
            } else if self.eat("[") {
                let at = self.expression()?;
                self.expect("]")?;
                let below = node.height.max(at.height);
                node = grown(Expr::Index(Box::new(node), Box::new(at)), below)?;
            } else {
                return Ok(node);
            }
        }
    }

    fn method(&mut self, of: Node, name: String) -> Result<Node, Fault> {
        let arguments = self.list(")")?;
        if let Expr::Name(namespace) = &of.expr {
            if namespace == "cel" && name == "bind" {
                return bind(arguments);
            }
            // Not all of `ip`, which people call their variables.
            let is_canonical = namespace == "ip" && name == "isCanonical";
            if is_canonical || NAMESPACES.contains(&namespace.as_str()) {
                let below = tallest(&arguments);
                return grown(
                    Expr::Call { name: format!("{namespace}.{name}"), is_method: false, arguments },
                    below,
                );
            }
        }
        let kind = match (name.as_str(), arguments.len()) {
            ("all", 2) => LoopKind::All,
            ("exists", 2) => LoopKind::Exists,
            ("exists_one" | "existsOne", 2) => LoopKind::ExistsOne,
            ("filter", 2) => LoopKind::Filter,
            ("map", 2 | 3) => LoopKind::Map,
            ("matches", 1) => return matches(of, &arguments[0]),
            _ => {
                let arguments: Vec<Node> = [of].into_iter().chain(arguments).collect();
                let below = tallest(&arguments);
                return grown(Expr::Call { name, is_method: true, arguments }, below);
            }
        };
        repeated(kind, of, arguments)
    }

    fn primary(&mut self) -> Result<Node, Fault> {
        let expr = match self.next() {
            Token::Int(value) => Expr::Int(value),
            Token::Uint(value) => Expr::Uint(value),
            Token::Double(value) => Expr::Double(value),
            Token::Text(text) => Expr::Text(text),
            Token::Sign("(") => {
                let node = self.expression()?;
                self.expect(")")?;
                return Ok(node);
            }
            Token::Sign("[") => {
                let elements = self.list("]")?;
                let below = tallest(&elements);
                return grown(Expr::List(elements), below);
            }
            Token::Sign("{") => return self.map(),
            Token::Name(name) => return self.name(name),
            other => return Err(unexpected(&other)),
        };
        grown(expr, 0)
    }

    fn name(&mut self, name: String) -> Result<Node, Fault> {
        match name.as_str() {
            "null" => return grown(Expr::Null, 0),
            "true" => return grown(Expr::Bool(true), 0),
            "false" => return grown(Expr::Bool(false), 0),
            reserved if RESERVED.contains(&reserved) => return Err(unexpected(&Token::Name(name))),
            _ => {}
        }
        if !self.eat("(") {
            return grown(Expr::Name(name), 0);
        }
        let mut arguments = self.list(")")?;
        match (name.as_str(), arguments.len()) {
            ("has", 1) => match arguments.remove(0) {
                Node { expr: Expr::Select(of, field), height } => grown(Expr::Has(of, field), height - 1),
                _ => Err(Fault::error("invalid argument to has() macro")),
            },
            ("matches", 2) => {
                let pattern = arguments.remove(1);
                matches(arguments.remove(0), &pattern)
            }
            _ => {
                let below = tallest(&arguments);
                grown(Expr::Call { name, is_method: false, arguments }, below)
            }
        }
    }

    fn map(&mut self) -> Result<Node, Fault> {
        let mut entries = Vec::new();
        while !self.eat("}") {
            let key = self.expression()?;
            self.expect(":")?;
            entries.push((key, self.expression()?));
            if !self.eat(",") {
                self.expect("}")?;
                break;
            }
        }
        let below = tallest(entries.iter().flat_map(|(key, value)| [key, value]));
        grown(Expr::Map(entries), below)
    }

    /// Expressions up to the closing sign.
    fn list(&mut self, end: &str) -> Result<Vec<Node>, Fault> {
        let mut list = Vec::new();
        while !self.eat(end) {
            list.push(self.expression()?);
            if !self.eat(",") {
                self.expect(end)?;
                break;
            }
        }
        Ok(list)
    }
}

fn joined(mut all: Vec<Node>, join: fn(Vec<Node>) -> Expr) -> Result<Node, Fault> {
    if all.len() == 1 {
        return Ok(all.remove(0));
    }
    let below = tallest(&all);
    grown(join(all), below)
}

fn matches(of: Node, pattern: &Node) -> Result<Node, Fault> {
    let Expr::Text(source) = &pattern.expr else {
        return Err(Fault::error("matches() takes a literal pattern"));
    };
    let pattern = Pattern::new(source).map_err(|error| Fault::error(error.to_string()))?;
    let effort = pattern.effort().ok_or_else(|| Fault::error("the pattern of matches() is too large"))?;
    let price = source.len() / 4 + 1 + effort;
    let below = of.height;
    grown(Expr::Matches(Box::new(of), pattern, price), below)
}

fn variable(node: Option<Node>) -> Result<String, Fault> {
    match node.map(|node| node.expr) {
        Some(Expr::Name(name)) => Ok(name),
        _ => Err(Fault::error("the first argument of a macro must be a name")),
    }
}

fn bind(arguments: Vec<Node>) -> Result<Node, Fault> {
    let mut arguments = arguments.into_iter();
    let name = variable(arguments.next())?;
    let (Some(value), Some(body), None) = (arguments.next(), arguments.next(), arguments.next()) else {
        return Err(Fault::error("cel.bind() takes a name, a value and an expression"));
    };
    let below = tallest([&value, &body]);
    grown(Expr::Bind(name, Box::new(value), Box::new(body)), below)
}

fn repeated(kind: LoopKind, range: Node, arguments: Vec<Node>) -> Result<Node, Fault> {
    let mut arguments = arguments.into_iter();
    let variable = variable(arguments.next())?;
    let (first, second) = (arguments.next(), arguments.next());
    let (filter, transform) = match kind {
        LoopKind::Map if second.is_some() => (first, second),
        LoopKind::Map => (None, first),
        _ => (first, None),
    };
    let below = tallest([&range].into_iter().chain(&filter).chain(&transform));
    grown(Expr::Loop(Box::new(Loop { kind, range, variable, filter, transform })), below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_rules_are_made_of() {
        for source in [
            "self.a == 1 && !(self.b in ['x', \"y\"]) || has(self.c.d)",
            "self.list.all(x, x.matches('^a+$') ? size(x) < 3 : x != '')",
            "self.map(x, x > 1, x * 2)[0] - -3 % 4u",
            "{'a': 1, 'b': [1.5, 2e3, .5, 0x1F]}",
            "r'\\d' + '''it's''' // comment\n == 'é\\u00e9\\x41\\101'",
            "cel.bind(x, self.y, x + x)",
            "self.?a.orValue(-9223372036854775808)",
            "self.`a-b`.__in__",
            "oldSelf == null ? true : self.items.exists_one(i, i.name == 'a',)",
        ] {
            parse(source).map_err(|fault| format!("{source}: {fault:?}")).unwrap();
        }
    }

    #[test]
    fn refuses_what_is_none() {
        for source in [
            "",
            "self.",
            "a b",
            "(a",
            "[1",
            "{1:}",
            "1 +",
            "'abc",
            "if",
            "for",
            "a ? b",
            "has(a)",
            "9223372036854775808",
            "x.all(1, true)",
            "x.matches(y)",
            "x.matches('(')",
            "b'x'",
            "'\\q'",
            "#",
            "`a",
            "99999999999999999999",
        ] {
            assert!(parse(source).is_err(), "{source}");
        }
    }

    #[test]
    fn nesting_is_bounded_however_it_is_written() {
        for (open, close) in
            [("(", ")"), ("[", "]"), ("!", ""), ("-", ""), ("a.b(", ")"), ("a ? b : ", ""), ("1+(", ")")]
        {
            assert!(parse(&format!("{}1{}", open.repeat(1500), close.repeat(1500))).is_err(), "{open}");
        }
        for link in [".a", " + 1", "[0]", ".b()", " == 1"] {
            assert!(parse(&format!("a{}", link.repeat(1500))).is_err(), "{link}");
        }
        assert!(parse(&format!("a{}", " && a".repeat(1500))).is_ok());
    }
}
