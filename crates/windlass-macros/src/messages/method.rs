//! One method as a message.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::visit_mut::VisitMut;
use syn::{Attribute, Error, FnArg, GenericArgument, Ident, ImplItemFn, Pat, PathArguments};
use syn::{ReturnType, Type};

/// What a method does with what it returns.
pub(super) enum Answer {
    /// Nothing is returned: the handle sends.
    None,
    /// `Result<(), ActorError>`: the handle sends, and an error ends the process.
    Fallible,
    /// A value: the handle asks.
    Value(Type),
    /// `Result<T, ActorError>`: the handle asks for a `T`, and an error ends the process.
    FallibleValue(Type),
    /// Another `Result`: the handle asks, and puts the error beside its own.
    Result(Type),
}

/// A method that is a message.
pub(super) struct Method<'a> {
    pub(super) function: &'a ImplItemFn,
    pub(super) variant: Ident,
    pub(super) fields: Vec<(Ident, Type)>,
    /// In the order of the parameters: an argument, or the context.
    arguments: Vec<Option<Ident>>,
    pub(super) answer: Answer,
}

impl Answer {
    /// The type of the reply, if there is one.
    pub(super) fn asked(&self) -> Option<&Type> {
        match self {
            Answer::None | Answer::Fallible => None,
            Answer::Value(ty) | Answer::FallibleValue(ty) | Answer::Result(ty) => Some(ty),
        }
    }
}

impl<'a> Method<'a> {
    /// Reads a method of the actor `own`; an error says what a message cannot have.
    pub(super) fn new(function: &'a ImplItemFn, own: &Type) -> syn::Result<Method<'a>> {
        let signature = &function.sig;
        let refuse = |tokens: &dyn ToTokens, message: &str| {
            Err(Error::new_spanned(tokens.to_token_stream(), message))
        };
        if let Some(parameter) = signature.generics.params.first() {
            return refuse(
                parameter,
                "a message has no generic parameters or lifetimes: put them on the actor, or make the \
             method private",
            );
        }
        if let Some(unsafety) = &signature.unsafety {
            return refuse(
                unsafety,
                "a message cannot be unsafe: its sender is another task",
            );
        }
        if let Some(abi) = &signature.abi {
            return refuse(abi, "a message has Rust's own calling convention");
        }
        let mut fields = Vec::new();
        let mut arguments = Vec::new();
        for input in &signature.inputs {
            let argument = match input {
                FnArg::Receiver(receiver) => {
                    if receiver.reference.is_none() || receiver.colon_token.is_some() {
                        let message = "a message takes &self or &mut self: the actor outlives it, and \
                                   ctx.stop() ends the process";
                        return refuse(receiver, message);
                    }
                    continue;
                }
                FnArg::Typed(argument) => argument,
            };
            if let Type::Reference(reference) = &*argument.ty {
                if is_named(&reference.elem, "Context") {
                    arguments.push(None);
                    continue;
                }
                let is_static = reference
                    .lifetime
                    .as_ref()
                    .is_some_and(|lifetime| lifetime.ident == "static");
                if !is_static {
                    let message = "an argument of a message is owned, because it is sent: take a \
                               String, Vec, Arc, or a &'static reference";
                    return refuse(&argument.ty, message);
                }
            }
            let Pat::Ident(name) = &*argument.pat else {
                return refuse(&argument.pat, "an argument of a message needs a name");
            };
            if name.ident == "reply" || name.ident == "ctx" {
                let message = "the message has a field of this name: call the argument otherwise";
                return refuse(name, message);
            }
            fields.push((name.ident.clone(), owned(&argument.ty, own)?));
            arguments.push(Some(name.ident.clone()));
        }
        if signature.ident == "within" {
            return refuse(
                &signature.ident,
                "the handle has a method `within`, which sets its deadline: call this one otherwise",
            );
        }
        Ok(Method {
            function,
            variant: variant_of(&signature.ident),
            fields,
            arguments,
            answer: answer(&signature.output, own)?,
        })
    }

    /// The `#[cfg]`s, which hold for all that is made of the method.
    pub(super) fn conditions(&self) -> Vec<&Attribute> {
        let attributes = self.function.attrs.iter();
        attributes
            .filter(|attribute| attribute.path().is_ident("cfg"))
            .collect()
    }

    pub(super) fn docs(&self) -> Vec<&Attribute> {
        let attributes = self.function.attrs.iter();
        attributes
            .filter(|attribute| attribute.path().is_ident("doc"))
            .collect()
    }

    /// The call in the dispatch.
    pub(super) fn call(&self, actor: &TokenStream) -> TokenStream {
        let name = &self.function.sig.ident;
        let arguments = self.arguments.iter().map(|argument| match argument {
            Some(name) => quote!(#name),
            None => quote!(ctx),
        });
        let wait = self.function.sig.asyncness.map(|_| quote!(.await));
        let call = quote_spanned!(name.span()=> self.#name(#(#arguments),*) #wait);
        let done = quote!(::core::result::Result::Ok(()));
        match &self.answer {
            Answer::None => quote!({ #call; } #done),
            Answer::Fallible => quote!(#call),
            Answer::Value(_) | Answer::Result(_) => {
                quote!(#actor::Reply::send(reply, #call); #done)
            }
            Answer::FallibleValue(..) => quote!(#actor::Reply::send(reply, #call?); #done),
        }
    }
}

fn answer(output: &ReturnType, own: &Type) -> syn::Result<Answer> {
    let ReturnType::Type(_, ty) = output else {
        return Ok(Answer::None);
    };
    let ty = owned(ty, own)?;
    if is_unit(&ty) {
        return Ok(Answer::None);
    }
    let Type::Path(path) = &ty else {
        return Ok(Answer::Value(ty));
    };
    let Some(last) = path
        .path
        .segments
        .last()
        .filter(|last| last.ident == "Result")
    else {
        return Ok(Answer::Value(ty));
    };
    if let PathArguments::AngleBracketed(arguments) = &last.arguments {
        let mut arguments = arguments.args.iter();
        if let (Some(GenericArgument::Type(value)), Some(GenericArgument::Type(error))) =
            (arguments.next(), arguments.next())
            && is_named(error, "ActorError")
        {
            return Ok(match is_unit(value) {
                true => Answer::Fallible,
                false => Answer::FallibleValue(value.clone()),
            });
        }
    }
    Ok(Answer::Result(ty))
}

/// The type as it is outside of the `impl`: `Self` is the actor. Types that a message cannot have
/// are errors.
fn owned(ty: &Type, own: &Type) -> syn::Result<Type> {
    struct Outside<'a> {
        own: &'a Type,
        error: Option<Error>,
    }

    impl Outside<'_> {
        fn refuse(&mut self, tokens: impl quote::ToTokens, message: &str) {
            self.error
                .get_or_insert_with(|| Error::new_spanned(tokens, message));
        }
    }

    impl VisitMut for Outside<'_> {
        fn visit_type_mut(&mut self, ty: &mut Type) {
            match ty {
                Type::Path(path) if path.path.is_ident("Self") => *ty = self.own.clone(),
                Type::ImplTrait(_) => self.refuse(
                    &*ty,
                    "a message has types with names: write the type itself, or a Box<dyn ..>",
                ),
                Type::Reference(reference)
                    if reference
                        .lifetime
                        .as_ref()
                        .is_none_or(|lifetime| lifetime.ident != "static") =>
                {
                    self.refuse(
                        &*ty,
                        "what a message holds or answers is owned, because it is sent: no \
                         references but &'static",
                    );
                }
                _ => syn::visit_mut::visit_type_mut(self, ty),
            }
        }

        fn visit_lifetime_mut(&mut self, lifetime: &mut syn::Lifetime) {
            if lifetime.ident != "static" {
                self.refuse(
                    &*lifetime,
                    "what a message holds is 'static, because it is sent",
                );
            }
        }

        // `Self::Item` has no meaning outside of the impl.
        fn visit_type_path_mut(&mut self, path: &mut syn::TypePath) {
            let first = path.path.segments.first();
            if path.qself.is_none() && first.is_some_and(|first| first.ident == "Self") {
                let message = "write the type itself: an enum outside of this impl holds it";
                self.refuse(&*path, message);
            }
            syn::visit_mut::visit_type_path_mut(self, path);
        }
    }

    let mut outside = Outside { own, error: None };
    let mut ty = ty.clone();
    outside.visit_type_mut(&mut ty);
    match outside.error {
        Some(error) => Err(error),
        None => Ok(ty),
    }
}

fn is_named(ty: &Type, name: &str) -> bool {
    let Type::Path(path) = ty else {
        return false;
    };
    let last = path.path.segments.last();
    last.is_some_and(|last| last.ident == name)
}

fn is_unit(ty: &Type) -> bool {
    matches!(ty, Type::Tuple(tuple) if tuple.elems.is_empty())
}

/// `take_out` becomes `TakeOut`.
fn variant_of(name: &Ident) -> Ident {
    let text = name.to_string();
    let words = text.trim_start_matches("r#").split('_');
    let variant: String = words
        .flat_map(|word| {
            let mut letters = word.chars();
            let first = letters.next().into_iter().flat_map(char::to_uppercase);
            first.chain(letters).collect::<Vec<_>>()
        })
        .collect();
    // A name without a letter at its beginning, as `_1`, is no name of a variant.
    match syn::parse_str::<Ident>(&variant) {
        Ok(_) => Ident::new(&variant, name.span()),
        Err(_) => format_ident!("Call{}", variant, span = name.span()),
    }
}
