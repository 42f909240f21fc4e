//! Reads the Rust files of the repository into what the figures need: types with their fields, `impl`
//! blocks, functions with their parameters and calls. Code inside of macro calls is not read.

use crate::project::File;
use crate::tidy::{is_test_file, shipped};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// One Rust file.
#[derive(Default)]
pub(crate) struct Unit {
    pub(crate) path: String,
    /// The folder below `crates`, or the first folder of the path.
    pub(crate) package: String,
    pub(crate) lines: usize,
    /// Lines that only tests see.
    pub(crate) test_lines: usize,
    pub(crate) types: Vec<Type>,
    pub(crate) impls: Vec<Impl>,
    pub(crate) functions: Vec<Function>,
    /// Imported paths, without `crate`, `self` and `super`.
    pub(crate) imports: Vec<Vec<String>>,
    /// Lines (from one) of every `match` whose patterns are `true` and `false`, outside of tests.
    pub(crate) bool_matches: Vec<usize>,
}

/// A struct, enum or union that is not for tests.
pub(crate) struct Type {
    pub(crate) name: String,
    /// Each field's name with the identifiers in its type.
    pub(crate) fields: Vec<(String, Vec<String>)>,
    pub(crate) is_struct: bool,
}

/// An `impl` block that is not for tests.
pub(crate) struct Impl {
    pub(crate) of: String,
    pub(crate) methods: usize,
}

/// A function outside of tests.
pub(crate) struct Function {
    pub(crate) name: String,
    /// The type whose `impl` it stands in.
    pub(crate) owner: Option<String>,
    pub(crate) lines: usize,
    /// Parameters but `self`; those of a tuple count each. Zero where a trait fixes them.
    pub(crate) parameters: usize,
    pub(crate) calls: Vec<Call>,
}

/// A call, as far as its text says what is called.
pub(crate) enum Call {
    /// `self.name()`.
    OnSelf(String),
    /// `self.field.name()`.
    OnField(String, String),
    /// `anything.name()`.
    OnValue(String),
    /// `module::name()` or `Type::name()`: the last two segments.
    Path(Option<String>, String),
}

/// Reads all Rust files among `files`.
pub(crate) fn read(files: &[File]) -> Result<Vec<Unit>> {
    let real: BTreeSet<&str> = shipped(files).map(|file| file.path.as_str()).collect();
    let rust = files.iter().filter(|file| file.path.ends_with(".rs"));
    rust.map(|file| {
        let for_tests = !real.contains(file.path.as_str()) || is_test_file(&file.path);
        unit(file, for_tests).with_context(|| format!("cannot parse {}", file.path))
    })
    .collect()
}

fn unit(file: &File, for_tests: bool) -> Result<Unit> {
    let syntax = syn::parse_file(&file.text)?;
    let lines = file.text.lines().count();
    let mut reader = Reader {
        unit: Unit {
            path: file.path.clone(),
            package: package(&file.path).to_owned(),
            lines,
            ..Unit::default()
        },
        for_tests,
        owner: None,
        of_trait: false,
        open: Vec::new(),
    };
    reader.visit_file(&syntax);
    if for_tests {
        reader.unit.test_lines = lines;
    }
    Ok(reader.unit)
}

/// The folder of the package that `path` belongs to.
pub(crate) fn package(path: &str) -> &str {
    let path = path.strip_prefix("crates/").unwrap_or(path);
    path.split('/').next().unwrap_or(path)
}

/// Walks one file.
struct Reader {
    unit: Unit,
    for_tests: bool,
    owner: Option<String>,
    of_trait: bool,
    /// Functions that are being read, the innermost last.
    open: Vec<Function>,
}

impl Reader {
    fn function(&mut self, signature: &syn::Signature, first: usize, last: usize) {
        let parameters = if self.of_trait {
            0
        } else {
            signature.inputs.iter().map(parameters).sum()
        };
        self.open.push(Function {
            name: signature.ident.to_string(),
            owner: self.owner.clone(),
            lines: last + 1 - first,
            parameters,
            calls: Vec::new(),
        });
    }

    fn close(&mut self) {
        self.unit.functions.extend(self.open.pop());
    }

    fn calls(&mut self, call: Call) {
        if let Some(function) = self.open.last_mut() {
            function.calls.push(call);
        }
    }

    fn skip(&mut self, item: &impl Spanned) {
        let span = item.span();
        self.unit.test_lines += span.end().line + 1 - span.start().line;
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if self.for_tests {
            return;
        }
        if tests_only(attributes(item)) {
            self.skip(item);
        } else {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        let fields = item.fields.iter().enumerate().map(|(at, field)| {
            let name = match &field.ident {
                Some(name) => name.to_string(),
                None => at.to_string(),
            };
            (name, identifiers(&field.ty))
        });
        self.unit.types.push(Type {
            name: item.ident.to_string(),
            fields: fields.collect(),
            is_struct: true,
        });
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.unit.types.push(Type {
            name: item.ident.to_string(),
            fields: Vec::new(),
            is_struct: false,
        });
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let Some(name) = type_name(&item.self_ty) else {
            return;
        };
        let methods = item.items.iter().filter(|item| match item {
            syn::ImplItem::Fn(method) => !tests_only(&method.attrs),
            _ => false,
        });
        self.unit.impls.push(Impl {
            of: name.clone(),
            methods: methods.count(),
        });
        let outer = self.owner.replace(name);
        self.of_trait = item.trait_.is_some();
        visit::visit_item_impl(self, item);
        self.of_trait = false;
        self.owner = outer;
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if tests_only(&item.attrs) {
            return self.skip(item);
        }
        self.function(
            &item.sig,
            item.sig.fn_token.span.start().line,
            item.block.brace_token.span.close().end().line,
        );
        visit::visit_impl_item_fn(self, item);
        self.close();
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        let span = item.sig.span();
        let last = item
            .default
            .as_ref()
            .map_or(span.end(), |block| block.brace_token.span.close().end());
        self.function(&item.sig, span.start().line, last.line);
        visit::visit_trait_item_fn(self, item);
        self.close();
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(
            &item.sig,
            item.sig.fn_token.span.start().line,
            item.block.brace_token.span.close().end().line,
        );
        visit::visit_item_fn(self, item);
        self.close();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        imports(&item.tree, &mut Vec::new(), &mut self.unit.imports);
    }

    fn visit_expr_match(&mut self, found: &'ast syn::ExprMatch) {
        if found.arms.iter().any(|arm| is_bool(&arm.pat)) {
            let line = found.match_token.span.start().line;
            self.unit.bool_matches.push(line);
        }
        visit::visit_expr_match(self, found);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let name = call.method.to_string();
        self.calls(match &*call.receiver {
            receiver if is_self(receiver) => Call::OnSelf(name),
            syn::Expr::Field(field) if is_self(&field.base) => match &field.member {
                syn::Member::Named(member) => Call::OnField(member.to_string(), name),
                syn::Member::Unnamed(_) => Call::OnValue(name),
            },
            _ => Call::OnValue(name),
        });
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let syn::Expr::Path(path) = &*call.func {
            let mut names = path.path.segments.iter().rev();
            if let Some(last) = names.next() {
                let before = names.next().map(|segment| segment.ident.to_string());
                self.calls(Call::Path(before, last.ident.to_string()));
            }
        }
        visit::visit_expr_call(self, call);
    }
}

/// The attributes of items that can be for tests.
fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether one of `attributes` is `#[test]` or `#[cfg(test)]`.
pub(crate) fn tests_only(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let last = attribute.path().segments.last();
        let is = |name: &str| last.is_some_and(|segment| segment.ident == name);
        if !is("cfg") {
            return is("test");
        }
        let condition = match &attribute.meta {
            syn::Meta::List(list) => list.tokens.to_string(),
            _ => return false,
        };
        condition == "test"
            || condition.starts_with("all (test")
            || condition.starts_with("all(test")
    })
}

/// The name of the type that an `impl` is for; nothing for tuples, slices and the like.
fn type_name(ty: &syn::Type) -> Option<String> {
    match ty {
        syn::Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        syn::Type::Reference(reference) => type_name(&reference.elem),
        _ => None,
    }
}

/// How many values a parameter stands for: those of a tuple count each, `self` does not.
fn parameters(parameter: &syn::FnArg) -> usize {
    fn values(ty: &syn::Type) -> usize {
        match ty {
            syn::Type::Tuple(tuple) => tuple.elems.iter().map(values).sum(),
            syn::Type::Reference(reference) => values(&reference.elem),
            syn::Type::Paren(inner) => values(&inner.elem),
            _ => 1,
        }
    }
    match parameter {
        syn::FnArg::Receiver(_) => 0,
        syn::FnArg::Typed(typed) => values(&typed.ty),
    }
}

fn is_bool(pattern: &syn::Pat) -> bool {
    match pattern {
        syn::Pat::Lit(literal) => matches!(literal.lit, syn::Lit::Bool(_)),
        syn::Pat::Guard(guarded) => is_bool(&guarded.pat),
        _ => false,
    }
}

fn is_self(expression: &syn::Expr) -> bool {
    matches!(expression, syn::Expr::Path(path) if path.path.is_ident("self"))
}

/// All identifiers in a type.
fn identifiers(ty: &syn::Type) -> Vec<String> {
    struct Names(Vec<String>);
    impl<'ast> Visit<'ast> for Names {
        fn visit_path_segment(&mut self, segment: &'ast syn::PathSegment) {
            self.0.push(segment.ident.to_string());
            visit::visit_path_segment(self, segment);
        }
    }
    let mut names = Names(Vec::new());
    names.visit_type(ty);
    names.0
}

fn imports(tree: &syn::UseTree, before: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    match tree {
        syn::UseTree::Path(path) => {
            let name = path.ident.to_string();
            let relative = matches!(name.as_str(), "crate" | "self" | "super");
            if !relative {
                before.push(name);
            }
            imports(&path.tree, before, found);
            if !relative {
                before.pop();
            }
        }
        syn::UseTree::Name(name) => {
            let mut path = before.clone();
            path.push(name.ident.to_string());
            found.push(path);
        }
        syn::UseTree::Rename(rename) => {
            let mut path = before.clone();
            path.push(rename.ident.to_string());
            found.push(path);
        }
        syn::UseTree::Group(group) => {
            for tree in &group.items {
                imports(tree, before, found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Files of one package, by name and text.
    pub(in crate::house) fn samples(files: &[(&str, &str)]) -> Vec<Unit> {
        let file = |(name, text): &(&str, &str)| File::new(format!("crates/a/src/{name}"), *text);
        let files: Vec<File> = files.iter().map(file).collect();
        read(&files).expect("samples parse")
    }

    fn sample(text: &str) -> Unit {
        samples(&[("lib.rs", text)]).remove(0)
    }

    #[test]
    fn parameters_count_through_tuples_and_not_where_a_trait_fixes_them() {
        let unit = sample(
            "struct A;\nimpl A { fn f(&self, a: u8, (b, c): (u8, &(u8, u8))) {} }\n\
             impl T for A { fn g(a: u8, b: u8) {} }\nfn h(a: Vec<(u8, u8)>) {}",
        );
        let counts: Vec<usize> = unit.functions.iter().map(|f| f.parameters).collect();
        assert_eq!(counts, [4, 0, 1]);
    }

    #[test]
    fn a_match_on_a_bool_is_found_and_one_on_a_tuple_is_not() {
        let unit = sample(
            "fn f(a: bool) -> u8 {\n match a { true => 1, false => 2 };\n\
             match (a, a) { (true, _) => 1, _ => 2 }\n}",
        );
        assert_eq!(unit.bool_matches, [2]);
    }

    #[test]
    fn what_is_for_tests_is_counted_and_not_read() {
        let unit = sample("fn f() {}\n#[cfg(test)]\nmod tests {\n fn g() {}\n}\n");
        assert_eq!(unit.functions.len(), 1);
        assert_eq!((unit.lines, unit.test_lines), (5, 4));
    }

    #[test]
    fn fields_and_methods_are_counted_by_type() {
        let unit = sample("struct A { b: Vec<B>, c: u8 }\nimpl A { fn f() {} fn g() {} }");
        assert_eq!(unit.types[0].fields.len(), 2);
        assert_eq!(unit.types[0].fields[0].1, ["Vec", "B"]);
        assert_eq!(unit.impls[0].methods, 2);
    }
}
