//! `#[tokio::main]` and `#[tokio::test]` for the package named `tokio` in `facade/`.
//!
//! They expand to paths of that package, under the name that `crate = ".."` gives it.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::{Ident, ItemFn, LitBool, LitInt, LitStr, Path, Token, parse_quote};

/// Which of the two attributes it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Main,
    Test,
}

/// `flavor = "multi_thread", worker_threads = 2, name = "ingest", crate = "tokio"`
#[derive(Default)]
struct Options {
    flavor: Option<LitStr>,
    worker_threads: Option<LitInt>,
    start_paused: Option<LitBool>,
    name: Option<LitStr>,
    runtime: Option<Path>,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut options = Options::default();
        while !input.is_empty() {
            // `crate` is a keyword, which the plain parser of names refuses.
            let name: Ident = input.call(syn::ext::IdentExt::parse_any)?;
            input.parse::<Token![=]>()?;
            let is_again = match name.to_string().as_str() {
                "flavor" => options.flavor.replace(input.parse()?).is_some(),
                "worker_threads" => options.worker_threads.replace(input.parse()?).is_some(),
                "start_paused" => options.start_paused.replace(input.parse()?).is_some(),
                "name" => options.name.replace(input.parse()?).is_some(),
                "crate" => {
                    let path = match input.peek(LitStr) {
                        true => input.parse::<LitStr>()?.parse()?,
                        false => input.call(Path::parse_mod_style)?,
                    };
                    options.runtime.replace(path).is_some()
                }
                "unhandled_panic" => {
                    let message = "unhandled_panic is an unstable option of tokio, which Windlass \
                                   does not have";
                    return Err(syn::Error::new(name.span(), message));
                }
                _ => {
                    let message = "unknown option; known: flavor = \"..\", worker_threads = <n>, \
                                   start_paused = <bool>, name = \"..\", crate = \"..\"";
                    return Err(syn::Error::new(name.span(), message));
                }
            };
            if is_again {
                return Err(syn::Error::new(name.span(), "this option is given twice"));
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

impl Options {
    /// The calls on a builder that make the runtime.
    fn builder(&self, kind: Kind, runtime: &Path) -> syn::Result<TokenStream> {
        let flavor = match &self.flavor {
            Some(flavor) => flavor.value(),
            None if kind == Kind::Main => "multi_thread".to_owned(),
            None => "current_thread".to_owned(),
        };
        let is_multi = match flavor.as_str() {
            "multi_thread" => true,
            "current_thread" | "local" => false,
            _ => {
                let message =
                    "unknown flavor; known: \"multi_thread\", \"current_thread\", \"local\"";
                return Err(syn::Error::new_spanned(&self.flavor, message));
            }
        };
        let mut calls = match is_multi {
            true => quote!(#runtime::runtime::Builder::new_multi_thread()),
            false => quote!(#runtime::runtime::Builder::new_current_thread()),
        };
        if let Some(workers) = &self.worker_threads {
            if !is_multi {
                let message = "worker_threads needs flavor = \"multi_thread\"";
                return Err(syn::Error::new(workers.span(), message));
            }
            calls.extend(quote!(.worker_threads(#workers)));
        }
        if let Some(paused) = &self.start_paused {
            if is_multi {
                let message = "start_paused needs flavor = \"current_thread\"";
                return Err(syn::Error::new(paused.span(), message));
            }
            calls.extend(quote!(.start_paused(#paused)));
        }
        if let Some(name) = &self.name {
            calls.extend(quote!(.name(#name)));
        }
        let build = match flavor.as_str() {
            "local" => quote!(build_local(::core::default::Default::default())),
            _ => quote!(build()),
        };
        Ok(quote!(#calls.enable_all().#build))
    }
}

/// Expands one of the attributes. A function that is wrong is kept beside the error, so that the
/// rest of the file is not reported as well.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream, kind: Kind) -> TokenStream {
    match try_expand(arguments, item.clone(), kind) {
        Ok(tokens) => tokens,
        Err(error) => {
            let mut tokens = error.into_compile_error();
            tokens.extend(item);
            tokens
        }
    }
}

fn try_expand(arguments: TokenStream, item: TokenStream, kind: Kind) -> syn::Result<TokenStream> {
    let options: Options = syn::parse2(arguments)?;
    let mut function: ItemFn = syn::parse2(item)?;
    if function.sig.asyncness.take().is_none() {
        let message = "the `async` keyword is missing from the function declaration";
        return Err(syn::Error::new_spanned(function.sig.fn_token, message));
    }
    if kind == Kind::Test
        && let Some(argument) = function.sig.inputs.first()
    {
        let message = "the test function cannot accept arguments";
        return Err(syn::Error::new_spanned(argument, message));
    }
    let runtime = options.runtime.clone();
    let runtime = runtime.unwrap_or_else(|| parse_quote!(::tokio));
    let builder = options.builder(kind, &runtime)?;
    let body = &function.block;
    let output = match &function.sig.output {
        syn::ReturnType::Default => quote!(()),
        syn::ReturnType::Type(_, output) => output.to_token_stream(),
    };
    let pinned = match kind {
        // One kind of future per output keeps the code of many tests small.
        Kind::Test => quote! {
            let body: ::core::pin::Pin<&mut dyn ::core::future::Future<Output = #output>> =
                ::core::pin::pin!(body);
        },
        Kind::Main => quote!(),
    };
    let attribute = match kind {
        Kind::Test => quote!(#[::core::prelude::v1::test]),
        Kind::Main => quote!(),
    };
    let (attributes, visibility, signature) = (&function.attrs, &function.vis, &function.sig);
    Ok(quote! {
        #attribute
        #(#attributes)*
        #visibility #signature {
            let body = async #body;
            #pinned
            #[allow(clippy::expect_used, clippy::diverging_sub_expression, clippy::needless_return)]
            {
                return #builder.expect("Failed building the Runtime").block_on(body);
            }
        }
    })
}
