//! `#[windlass::main]` and `#[windlass::test]`.
//!
//! Both only wrap the function's body in a runtime and `block_on`; what happens then is the
//! library's business, not the macro's.
#![forbid(unsafe_code)]

use proc_macro::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::{Ident, ItemFn, LitInt, Token, parse_macro_input};

/// `workers = 2`
struct Options {
    workers: Option<LitInt>,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut options = Options { workers: None };
        while !input.is_empty() {
            let name: Ident = input.parse()?;
            if name != "workers" {
                return Err(syn::Error::new(
                    name.span(),
                    "unknown option; known: workers = <n>",
                ));
            }
            input.parse::<Token![=]>()?;
            options.workers = Some(input.parse()?);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

/// Runs an `async fn main` on a runtime of its own.
///
/// `#[windlass::main(workers = 4)]` sets the number of workers; the default is one per core.
#[proc_macro_attribute]
pub fn main(args: TokenStream, item: TokenStream) -> TokenStream {
    let options = parse_macro_input!(args as Options);
    let function = parse_macro_input!(item as ItemFn);
    expand(options, function, 0, quote!()).unwrap_or_else(|error| error.to_compile_error().into())
}

/// Runs an `async fn` test on a runtime of its own, with two workers unless told otherwise.
#[proc_macro_attribute]
pub fn test(args: TokenStream, item: TokenStream) -> TokenStream {
    let options = parse_macro_input!(args as Options);
    let function = parse_macro_input!(item as ItemFn);
    let attribute = quote!(#[::core::prelude::v1::test]);
    expand(options, function, 2, attribute).unwrap_or_else(|error| error.to_compile_error().into())
}

fn expand(
    options: Options,
    mut function: ItemFn,
    default_workers: usize,
    attribute: proc_macro2::TokenStream,
) -> syn::Result<TokenStream> {
    if function.sig.asyncness.take().is_none() {
        let message = "the function must be async: the macro runs it on a runtime";
        return Err(syn::Error::new_spanned(function.sig.fn_token, message));
    }
    if let Some(argument) = function.sig.inputs.first() {
        return Err(syn::Error::new_spanned(
            argument,
            "the function must not take arguments",
        ));
    }
    let workers = match options.workers {
        Some(workers) => quote!(#workers),
        None => quote!(#default_workers),
    };
    let (attributes, visibility) = (&function.attrs, &function.vis);
    let (signature, body) = (&function.sig, &function.block);
    Ok(quote! {
        #attribute
        #(#attributes)*
        #visibility #signature {
            let body = async #body;
            match ::windlass::Runtime::builder().workers(#workers).build() {
                ::core::result::Result::Ok(runtime) => runtime.block_on(body),
                ::core::result::Result::Err(error) => {
                    ::core::panic!("the runtime could not be built: {error}")
                }
            }
        }
    }
    .into())
}
