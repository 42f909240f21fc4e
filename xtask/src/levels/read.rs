//! What one Rust file says about names: where each is mentioned, what the mention guards, and which names stand for a condition.

use anyhow::Result;
use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Lines counted from zero, both included.
pub(super) type Range = (usize, usize);

/// A name in the code.
pub(super) struct Mention {
    /// `f`, `a::f`, or for a local variable the number of its function and its name, as in `7#f`.
    pub(super) name: String,
    pub(super) line: usize,
    /// The lines that are there because of it.
    pub(super) guards: Range,
}

/// A name that stands for other names: a constant, a variable for a condition, or a function that returns one.
pub(super) struct Meaning {
    pub(super) name: String,
    pub(super) of: BTreeSet<String>,
    /// Others with its name may mean something else.
    pub(super) is_function: bool,
}

/// A function.
pub(super) struct Function {
    pub(super) name: String,
    pub(super) lines: Range,
    pub(super) is_of_trait: bool,
}

/// A file without its tests.
#[derive(Default)]
pub(super) struct Unit {
    pub(super) mentions: Vec<Mention>,
    pub(super) meanings: Vec<Meaning>,
    pub(super) functions: Vec<Function>,
}

pub(super) fn read(text: &str) -> Result<Unit> {
    let mut reader = Reader {
        unit: Unit::default(),
        guards: (0, 0),
        is_of_trait: false,
    };
    reader.visit_file(&syn::parse_file(text)?);
    Ok(reader.unit)
}

fn range(of: &impl Spanned) -> Range {
    let span = of.span();
    (span.start().line - 1, span.end().line - 1)
}

struct Reader {
    unit: Unit,
    guards: Range,
    is_of_trait: bool,
}

impl Reader {
    fn mention(&mut self, name: String, line: usize) {
        let guards = self.guards;
        self.unit.mentions.push(Mention { name, line, guards });
    }

    /// Reads something whose mentions are the reason for these lines.
    fn guarding(&mut self, guards: Range, read: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.guards, guards);
        read(self);
        self.guards = outer;
    }

    /// The number of the function that is being read.
    fn number(&self) -> usize {
        self.unit.functions.len()
    }

    /// The names that were mentioned since.
    fn since(&self, at: usize) -> BTreeSet<String> {
        let new = self.unit.mentions.iter().skip(at);
        new.map(|mention| mention.name.clone()).collect()
    }

    fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(name) => {
                    let line = name.span().start().line - 1;
                    self.mention(format!("{}#{name}", self.number()), line);
                    self.mention(name.to_string(), line);
                }
                _ => {}
            }
        }
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block, whole: Range) {
        let name = signature.ident.to_string();
        self.unit.functions.push(Function {
            name: name.clone(),
            lines: whole,
            is_of_trait: self.is_of_trait,
        });
        let start = self.unit.mentions.len();
        self.guarding(whole, |reader| visit::visit_block(reader, block));
        let is_bool = match &signature.output {
            syn::ReturnType::Type(_, ty) => {
                matches!(&**ty, syn::Type::Path(path) if path.path.is_ident("bool"))
            }
            syn::ReturnType::Default => false,
        };
        let [syn::Stmt::Expr(only, None)] = &block.stmts[..] else {
            return self.means(name, BTreeSet::new());
        };
        let of = if is_bool && is_condition(only) {
            self.since(start)
        } else {
            BTreeSet::new()
        };
        // All of it is the condition.
        for mention in self
            .unit
            .mentions
            .iter_mut()
            .skip(start)
            .filter(|_| !of.is_empty())
        {
            mention.guards = whole;
        }
        self.means(name, of);
    }

    fn means(&mut self, name: String, of: BTreeSet<String>) {
        self.unit.meanings.push(Meaning {
            name,
            of,
            is_function: true,
        });
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Const(item) => &item.attrs,
            syn::Item::Struct(item) => &item.attrs,
            syn::Item::Use(_) | syn::Item::Macro(_) => return,
            _ => return visit::visit_item(self, item),
        };
        if !crate::house::read::tests_only(attributes) {
            self.guarding(range(item), |reader| visit::visit_item(reader, item));
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let outer = std::mem::replace(&mut self.is_of_trait, item.trait_.is_some());
        visit::visit_item_impl(self, item);
        self.is_of_trait = outer;
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.block, range(item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !crate::house::read::tests_only(&item.attrs) {
            self.function(&item.sig, &item.block, range(item));
        }
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        let start = self.unit.mentions.len();
        self.guarding(range(item), |reader| reader.visit_expr(&item.expr));
        let of = self.since(start);
        for owner in ["Self", "Level"] {
            self.unit.meanings.push(Meaning {
                name: format!("{owner}::{}", item.ident),
                of: of.clone(),
                is_function: false,
            });
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        let start = self.unit.mentions.len();
        visit::visit_local(self, local);
        let init = local.init.as_ref().filter(|init| is_condition(&init.expr));
        if let (syn::Pat::Ident(name), Some(_)) = (&local.pat, init) {
            self.unit.meanings.push(Meaning {
                name: format!("{}#{}", self.number(), name.ident),
                of: self.since(start),
                is_function: false,
            });
        }
    }

    fn visit_stmt(&mut self, statement: &'ast syn::Stmt) {
        self.guarding(range(statement), |reader| {
            visit::visit_stmt(reader, statement)
        });
    }

    fn visit_expr_if(&mut self, found: &'ast syn::ExprIf) {
        let plain_else = found
            .else_branch
            .as_ref()
            .filter(|(_, other)| matches!(**other, syn::Expr::Block(_)));
        let end = plain_else.map_or(range(&found.then_branch).1, |(_, other)| range(other).1);
        let guards = (range(&found.if_token).0, end);
        self.guarding(guards, |reader| reader.visit_expr(&found.cond));
        self.guarding(range(&found.then_branch), |reader| {
            reader.visit_block(&found.then_branch)
        });
        if let Some((_, other)) = &found.else_branch {
            self.guarding(range(other), |reader| reader.visit_expr(other));
        }
    }

    fn visit_expr_array(&mut self, found: &'ast syn::ExprArray) {
        for element in &found.elems {
            self.guarding(range(element), |reader| reader.visit_expr(element));
        }
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        self.guarding(range(arm), |reader| visit::visit_arm(reader, arm));
    }

    fn visit_expr_match(&mut self, found: &'ast syn::ExprMatch) {
        self.guarding(range(found), |reader| {
            visit::visit_expr_match(reader, found)
        });
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<_> = path.segments.iter().map(|segment| &segment.ident).collect();
        if let Some(last) = names.last() {
            let line = last.span().start().line - 1;
            if let [.., before, last] = &names[..] {
                self.mention(format!("{before}::{last}"), line);
            } else {
                self.mention(format!("{}#{last}", self.number()), line);
            }
            self.mention(last.to_string(), line);
        }
        visit::visit_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let line = call.method.span().start().line - 1;
        self.mention(call.method.to_string(), line);
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, found: &'ast syn::Macro) {
        self.tokens(found.tokens.clone());
    }
}

/// Whether an expression asks a question and can be of type bool: a call, or several with `!`, `&&` and `||`.
fn is_condition(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::MethodCall(call) => asks(&call.method),
        syn::Expr::Call(call) => match &*call.func {
            syn::Expr::Path(path) => path
                .path
                .segments
                .last()
                .is_some_and(|last| asks(&last.ident)),
            _ => false,
        },
        syn::Expr::Paren(inner) => is_condition(&inner.expr),
        syn::Expr::Unary(not) => is_condition(&not.expr),
        syn::Expr::Binary(both) => {
            let joins = matches!(both.op, syn::BinOp::And(_) | syn::BinOp::Or(_));
            joins && (is_condition(&both.left) || is_condition(&both.right))
        }
        _ => false,
    }
}

/// Whether a function has the name of a question.
fn asks(name: &syn::Ident) -> bool {
    let name = name.to_string();
    let starts = ["is_", "has_", "keeps_", "may_", "writes_"];
    name == "has" || starts.iter().any(|start| name.starts_with(start))
}
