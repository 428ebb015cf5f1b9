//! `#[messages]`: the message type, the dispatch and the typed handle of an actor, out of its
//! methods.
//!
//! # What it makes
//! For `impl Stock { pub async fn add(&mut self, number: u32); pub fn count(&self) -> u32 }`:
//!
//! - `enum StockMessage { Add { number: u32 }, Count { reply: Reply<u32> } }`,
//! - `impl Methods for Stock`, one `match` with a call per variant, and `impl Actor` upon it,
//! - `struct StockHandle<D = Address<StockMessage>>`, whose `add` sends and whose `count` asks.
//!
//! That is what is written by hand without it, so a message costs the same: one letter with the
//! enum in it, one one-shot per question, no box, no lookup. The handle's methods are generic over
//! where the messages go ([`Destination`]), and are monomorphic calls of `send` and `ask_within`.
//!
//! # Rejected
//! *A struct per message and a trait `Handle<M>` of the actor*, as several actor libraries have. A
//! mailbox then holds boxed closures or boxed messages: an allocation and an indirect call each, no
//! type that says what an actor takes, and nothing for `Weigh` to weigh.
//! *A trait of methods that the macro implements for handles.* The user writes each signature
//! twice; the trait is worth that only for actors that are replaced in tests, and those can take a
//! handle over any `Destination`.
//!
//! The attribute cannot be a `macro_rules!` that passes `$crate` on: there are no such attributes.
//! Its argument `crate = path` does, for a renamed dependency or from another macro.

mod expansion;
mod method;

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::{
    Error, GenericParam, Generics, Ident, ImplItem, ItemImpl, Path, Token, Type, Visibility,
};

use self::expansion::Names;
use self::method::Method;

/// `crate = path, message = Name, handle = Name, dispatch_only`
#[derive(Default)]
struct Options {
    actor: Option<Path>,
    message: Option<Ident>,
    handle: Option<Ident>,
    dispatch_only: bool,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Options> {
        let mut options = Options::default();
        while !input.is_empty() {
            if input.peek(Token![crate]) {
                input.parse::<Token![crate]>()?;
                input.parse::<Token![=]>()?;
                options.actor = Some(input.call(Path::parse_mod_style)?);
            } else {
                let name: Ident = input.parse()?;
                match name.to_string().as_str() {
                    "message" => {
                        input.parse::<Token![=]>()?;
                        options.message = Some(input.parse()?);
                    }
                    "handle" => {
                        input.parse::<Token![=]>()?;
                        options.handle = Some(input.parse()?);
                    }
                    "dispatch_only" => options.dispatch_only = true,
                    _ => {
                        return Err(Error::new(
                            name.span(),
                            "unknown option; known: message = <Name>, handle = <Name>, \
                             dispatch_only, crate = <path of windlass::actor>",
                        ));
                    }
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

/// Expands the attribute. An `impl` that is wrong is kept beside the errors, so that the rest of
/// the file is not reported as well.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = syn::parse2::<Options>(arguments).and_then(|options| {
        let block: ItemImpl = syn::parse2(item.clone()).map_err(|error| {
            Error::new(
                error.span(),
                "#[messages] stands before an impl block of the actor's own type",
            )
        })?;
        expand_block(&options, &block)
    });
    expanded.unwrap_or_else(|error| {
        let mut tokens = error.into_compile_error();
        tokens.extend(item);
        tokens
    })
}

fn expand_block(options: &Options, block: &ItemImpl) -> syn::Result<TokenStream> {
    if let Some((_, of_trait, _)) = &block.trait_ {
        let message = "#[messages] stands before an impl block of the type, not of a trait";
        return Err(Error::new_spanned(of_trait, message));
    }
    let actor = options.actor.as_ref();
    let actor = actor.map_or_else(|| quote!(::windlass::actor), |path| quote!(#path));
    let name = name_of(&block.self_ty)?;
    check_generics(&block.generics)?;
    let message = options.message.clone();
    let message = message.unwrap_or_else(|| format_ident!("{name}Message"));
    let handle = options.handle.clone();
    let handle = handle.unwrap_or_else(|| format_ident!("{name}Handle"));
    let mut errors: Option<Error> = None;
    let mut methods = Vec::new();
    for item in &block.items {
        let ImplItem::Fn(function) = item else {
            continue;
        };
        // What others may call is a message; private methods help.
        if function.sig.receiver().is_none() || matches!(function.vis, Visibility::Inherited) {
            continue;
        }
        match Method::new(function, &block.self_ty) {
            Ok(method) => methods.push(method),
            Err(error) => match &mut errors {
                Some(errors) => errors.combine(error),
                None => errors = Some(error),
            },
        }
    }
    if let Some(errors) = errors {
        return Err(errors);
    }
    if methods.is_empty() {
        let message = "no method is a message: a message is a method with a visibility (pub, \
                       pub(crate), ..) that takes &self or &mut self";
        return Err(Error::new_spanned(&block.self_ty, message));
    }
    let names = Names {
        actor,
        name: name.to_string(),
        message,
        handle,
        visibility: widest(&methods),
    };
    let (enumeration, dispatch, typed) = (
        names.enumeration(&block.generics, &methods),
        names.dispatch(block, &methods, options.dispatch_only),
        names.typed_handle(&block.generics, &methods),
    );
    Ok(quote!(#block #enumeration #dispatch #typed))
}

/// The name of the actor's type.
fn name_of(ty: &Type) -> syn::Result<Ident> {
    if let Type::Path(path) = ty
        && path.qself.is_none()
        && let Some(last) = path.path.segments.last()
    {
        return Ok(last.ident.clone());
    }
    let message = "the actor is a struct or enum with a name";
    Err(Error::new_spanned(ty, message))
}

fn check_generics(generics: &Generics) -> syn::Result<()> {
    for parameter in &generics.params {
        if let GenericParam::Lifetime(lifetime) = parameter {
            let message = "an actor borrows nothing: it lives as long as its process";
            return Err(Error::new_spanned(lifetime, message));
        }
    }
    Ok(())
}

/// The widest visibility of the methods: what they speak of is at least as visible.
fn widest(methods: &[Method<'_>]) -> Visibility {
    let rank = |visibility: &Visibility| match visibility {
        Visibility::Public(_) => 2,
        Visibility::Restricted(restricted) if restricted.path.is_ident("crate") => 1,
        _ => 0,
    };
    let all = methods.iter().map(|method| &method.function.vis);
    all.max_by_key(|visibility| rank(visibility))
        .cloned()
        .unwrap_or(Visibility::Inherited)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(arguments: TokenStream, item: TokenStream) -> String {
        let expanded = expand(arguments, item.clone()).to_string();
        assert!(
            expanded.ends_with(&item.to_string()),
            "the item stays: {expanded}"
        );
        let (_, text) = expanded
            .split_once("compile_error ! { \"")
            .expect("an error");
        let (text, _) = text.split_once('"').expect("a literal");
        text.to_owned()
    }

    #[test]
    fn what_is_not_supported_is_refused_with_what_to_do() {
        let in_impl = |method: TokenStream| quote!(impl Stock { #method });
        for (item, text) in [
            (
                quote!(
                    struct Stock;
                ),
                "stands before an impl block of the actor's own type",
            ),
            (
                quote!(impl Clone for Stock {}),
                "an impl block of the type, not of a trait",
            ),
            (
                quote!(
                    impl<'a> Stock<'a> {}
                ),
                "an actor borrows nothing",
            ),
            (
                quote!(
                    impl (u8, u8) {}
                ),
                "the actor is a struct or enum with a name",
            ),
            (
                in_impl(quote!(
                    fn helps(&self) {}
                )),
                "no method is a message",
            ),
            (
                in_impl(quote!(
                    pub fn f(self) {}
                )),
                "takes &self or &mut self",
            ),
            (
                in_impl(quote!(
                    pub fn f<T>(&self, t: T) {}
                )),
                "no generic parameters",
            ),
            (
                in_impl(quote!(
                    pub fn f<'a>(&self, t: &'a str) {}
                )),
                "no generic parameters",
            ),
            (
                in_impl(quote!(
                    pub fn f(&self, t: &str) {}
                )),
                "an argument of a message is owned",
            ),
            (
                in_impl(quote!(
                    pub fn f(&self, t: Vec<&str>) {}
                )),
                "answers is owned",
            ),
            (
                in_impl(quote!(
                    pub fn f(&self, t: Cow<'_, str>) {}
                )),
                "is 'static",
            ),
            (
                in_impl(quote!(
                    pub fn f(&self, t: impl Copy) {}
                )),
                "types with names",
            ),
            (
                in_impl(quote!(
                    pub fn f(&self) -> impl Copy {}
                )),
                "types with names",
            ),
            (
                in_impl(quote!(
                    pub fn f(&self) -> &str {}
                )),
                "answers is owned",
            ),
            (
                in_impl(quote!(
                    pub fn f(&self) -> Self::Item {}
                )),
                "write the type itself",
            ),
            (
                in_impl(quote!(
                    pub fn f(&self, (a, b): (u8, u8)) {}
                )),
                "needs a name",
            ),
            (
                in_impl(quote!(
                    pub fn f(&self, reply: u8) {}
                )),
                "call the argument otherwise",
            ),
            (
                in_impl(quote!(
                    pub fn within(&self) {}
                )),
                "sets its deadline",
            ),
            (
                in_impl(quote!(
                    pub extern "C" fn f(&self) {}
                )),
                "Rust's own calling convention",
            ),
        ] {
            let refused = refusal(quote!(), item.clone());
            assert!(refused.contains(text), "{item}: {refused}");
        }
        let option = refusal(
            quote!(messages = M),
            in_impl(quote!(
                pub fn f(&self) {}
            )),
        );
        assert!(
            option.contains("unknown option; known: message = <Name>"),
            "{option}"
        );
    }

    #[test]
    fn every_wrong_method_is_named() {
        let item = quote!(impl Stock { pub fn f(self) {} pub fn g(&self, t: &str) {} });
        let errors = expand(quote!(), item).to_string();
        assert_eq!(errors.matches("compile_error").count(), 2, "{errors}");
    }
}
