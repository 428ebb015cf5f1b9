//! `#[windlass::main]`, `#[windlass::test]`, `#[windlass::actor::messages]`, and what `select!`,
//! `join!`, `try_join!` expand to.
//!
//! The attributes only wrap the function's body in a runtime and `block_on`; what happens then is
//! the library's business, not the macro's.
#![forbid(unsafe_code)]

mod messages;
mod select;
mod tokio;

use proc_macro::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::{Ident, ItemFn, LitBool, LitInt, LitStr, Path, Token, parse_macro_input, parse_quote};

/// `workers = 2`, `flavor = "current_thread"`, or `simulated, seeds = 100`
#[derive(Default)]
struct Options {
    flavor: Option<LitStr>,
    workers: Option<LitInt>,
    simulated: Option<Ident>,
    seeds: Option<LitInt>,
    start_paused: Option<LitBool>,
    runtime: Option<Path>,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut options = Options::default();
        while !input.is_empty() {
            // `crate` is a keyword, which the plain parser of names refuses.
            let name: Ident = input.call(syn::ext::IdentExt::parse_any)?;
            match name.to_string().as_str() {
                "crate" => {
                    input.parse::<Token![=]>()?;
                    let path = match input.peek(LitStr) {
                        true => input.parse::<LitStr>()?.parse()?,
                        false => input.call(Path::parse_mod_style)?,
                    };
                    options.runtime = Some(path);
                }
                "flavor" => {
                    input.parse::<Token![=]>()?;
                    options.flavor = Some(input.parse()?);
                }
                // The second is tokio's name of the option.
                "workers" | "worker_threads" => {
                    input.parse::<Token![=]>()?;
                    options.workers = Some(input.parse()?);
                }
                "start_paused" => {
                    input.parse::<Token![=]>()?;
                    options.start_paused = Some(input.parse()?);
                }
                "seeds" => {
                    input.parse::<Token![=]>()?;
                    options.seeds = Some(input.parse()?);
                }
                "simulated" => options.simulated = Some(name),
                _ => {
                    return Err(syn::Error::new(
                        name.span(),
                        "unknown option; known: flavor = \"..\", workers = <n>, start_paused = <bool>, \
                         crate = \"..\", \
                         and for tests simulated, seeds = <n>",
                    ));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

impl Options {
    /// The path of the library, under the name that `crate = ".."` gives it.
    fn runtime(&self) -> Path {
        self.runtime
            .clone()
            .unwrap_or_else(|| parse_quote!(::windlass))
    }

    /// The builder of the runtime that the function runs on. A number of workers without a flavor
    /// means workers; with neither, `default_flavor` counts.
    fn builder(&self, default_flavor: &str) -> syn::Result<proc_macro2::TokenStream> {
        let runtime = self.runtime();
        let mut flavor = self.flavor.as_ref().map(LitStr::value);
        if let Some(paused) = &self.start_paused {
            // A clock that is moved by hand has one thread in any case.
            if flavor.get_or_insert_with(|| "current_thread".to_owned()) != "current_thread" {
                let message = "start_paused needs flavor = \"current_thread\"";
                return Err(syn::Error::new(paused.span(), message));
            }
            if let Some(workers) = &self.workers {
                let message = "a runtime that starts paused has no workers: leave them out";
                return Err(syn::Error::new(workers.span(), message));
            }
            return Ok(quote! {
                #runtime::runtime::Builder::new_current_thread().start_paused(#paused)
            });
        }
        let default_flavor = match self.workers {
            Some(_) => "multi_thread",
            None => default_flavor,
        };
        match (flavor.as_deref().unwrap_or(default_flavor), &self.workers) {
            ("current_thread", None) => {
                Ok(quote!(#runtime::runtime::Builder::new_current_thread()))
            }
            ("current_thread", Some(workers)) => {
                let message = "a current-thread runtime has no workers: leave them out, or write \
                               flavor = \"multi_thread\"";
                Err(syn::Error::new(workers.span(), message))
            }
            ("multi_thread", Some(workers)) => {
                Ok(quote!(#runtime::Runtime::builder().workers(#workers)))
            }
            ("multi_thread", None) => Ok(quote!(#runtime::Runtime::builder())),
            _ => {
                let message = "unknown flavor; known: \"multi_thread\", \"current_thread\"";
                Err(syn::Error::new_spanned(&self.flavor, message))
            }
        }
    }
}

/// Runs an `async fn main` on a runtime of its own.
///
/// `#[windlass::main(workers = 4)]` sets the number of workers; the default is one per core.
/// `#[windlass::main(flavor = "current_thread")]` runs everything on the main thread.
/// `crate = "name"` is for a dependency under another name.
#[proc_macro_attribute]
pub fn main(args: TokenStream, item: TokenStream) -> TokenStream {
    let options = parse_macro_input!(args as Options);
    if let Some(word) = &options.simulated {
        let message = "main runs in the real world; simulated is for tests";
        return syn::Error::new(word.span(), message)
            .to_compile_error()
            .into();
    }
    let function = parse_macro_input!(item as ItemFn);
    expand(options, function, "multi_thread", quote!())
        .unwrap_or_else(|error| error.to_compile_error().into())
}

/// Runs an `async fn` test on a runtime of its own, all of it on the test's thread by default.
///
/// `#[windlass::test(flavor = "multi_thread", workers = 2)]` gives it workers; the default of that
/// flavor is one per core.
///
/// `#[windlass::test(start_paused = true)]` gives it a clock that moves when every task waits, and
/// by `time::advance` (feature `test-util`).
///
/// `#[windlass::test(simulated, seeds = 1000)]` runs it in the simulator instead, once for each of
/// a thousand seeds (64 by default). The seed that failed is printed, and
/// `WINDLASS_SEED=<seed>` runs it alone.
#[proc_macro_attribute]
pub fn test(args: TokenStream, item: TokenStream) -> TokenStream {
    let options = parse_macro_input!(args as Options);
    let function = parse_macro_input!(item as ItemFn);
    let attribute = quote!(#[::core::prelude::v1::test]);
    expand(options, function, "current_thread", attribute)
        .unwrap_or_else(|error| error.to_compile_error().into())
}

fn expand(
    options: Options,
    mut function: ItemFn,
    default_flavor: &str,
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
    if let Some(seeds) = options
        .seeds
        .as_ref()
        .filter(|_| options.simulated.is_none())
    {
        let message = "seeds are for simulated tests: write simulated, seeds = <n>";
        return Err(syn::Error::new(seeds.span(), message));
    }
    if options.simulated.is_some() {
        return expand_simulated(&options, &function, &attribute);
    }
    let builder = options.builder(default_flavor)?;
    let (attributes, visibility) = (&function.attrs, &function.vis);
    let (signature, body) = (&function.sig, &function.block);
    Ok(quote! {
        #attribute
        #(#attributes)*
        #visibility #signature {
            let body = async #body;
            match #builder.build() {
                ::core::result::Result::Ok(runtime) => runtime.block_on(body),
                ::core::result::Result::Err(error) => {
                    ::core::panic!("the runtime could not be built: {error}")
                }
            }
        }
    }
    .into())
}

/// Each seed runs the body anew, so it becomes an inner function.
fn expand_simulated(
    options: &Options,
    function: &ItemFn,
    attribute: &proc_macro2::TokenStream,
) -> syn::Result<TokenStream> {
    if let Some(flavor) = &options.flavor {
        let message = "a simulation has one thread: leave the flavor out";
        return Err(syn::Error::new(flavor.span(), message));
    }
    if let Some(paused) = &options.start_paused {
        let message = "the clock of a simulation is virtual in any case";
        return Err(syn::Error::new(paused.span(), message));
    }
    if let Some(workers) = &options.workers {
        let message = "a simulation has one worker";
        return Err(syn::Error::new(workers.span(), message));
    }
    let runtime = options.runtime();
    let seeds = match &options.seeds {
        Some(seeds) => quote!(#seeds),
        None => quote!(64),
    };
    let (attributes, visibility) = (&function.attrs, &function.vis);
    let (name, output, body) = (&function.sig.ident, &function.sig.output, &function.block);
    Ok(quote! {
        #attribute
        #(#attributes)*
        #visibility fn #name() {
            async fn body() #output #body
            #runtime::simulator::explore(#seeds, || async {
                #runtime::__private::Outcome::check(body().await);
            });
        }
    }
    .into())
}

/// What `select!` expands to, for a crate whose path comes first: `select_in! { $crate; .. }`.
#[doc(hidden)]
#[proc_macro]
pub fn select_in(input: TokenStream) -> TokenStream {
    let select::In { runtime, input } = parse_macro_input!(input as select::In<select::Select>);
    input.expand(&runtime).into()
}

/// As `join!`, for a crate whose path comes first.
#[doc(hidden)]
#[proc_macro]
pub fn join_in(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as select::In<select::Join>).input;
    input.expand(false).into()
}

/// As `try_join!`, for a crate whose path comes first.
#[doc(hidden)]
#[proc_macro]
pub fn try_join_in(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as select::In<select::Join>).input;
    input.expand(true).into()
}

/// `#[tokio::main]` of the package that stands in tokio's place.
#[proc_macro_attribute]
pub fn tokio_main(args: TokenStream, item: TokenStream) -> TokenStream {
    tokio::expand(args.into(), item.into(), tokio::Kind::Main).into()
}

/// `#[tokio::test]` of the package that stands in tokio's place.
#[proc_macro_attribute]
pub fn tokio_test(args: TokenStream, item: TokenStream) -> TokenStream {
    tokio::expand(args.into(), item.into(), tokio::Kind::Test).into()
}

/// Makes messages of an actor's methods: a message type, the dispatch, and a handle to call them
/// by, for an `impl` block of the actor.
///
/// ```ignore
/// struct Stock { count: u32 }
///
/// #[windlass::actor::messages]
/// impl Stock {
///     pub fn add(&mut self, number: u32) { self.count += number; }
///     pub fn count(&self) -> u32 { self.count }
/// }
///
/// let stock = StockHandle::from(host.actor(Stock { count: 0 })?.address());
/// stock.add(3).await?;
/// assert_eq!(stock.count().await?, 3);
/// ```
///
/// # What is a message
/// Each method with a visibility (`pub`, `pub(crate)`, ..) that takes `&self` or `&mut self`,
/// `async` or not. Private methods and functions without `self` are left alone. Arguments are
/// owned. An argument of type `&mut Context<StockMessage>` is the context of the process.
///
/// | the method returns | the handle's method |
/// |---|---|
/// | nothing | `add(..)` waits for room and sends; `try_add(..)` sends now or hands the message back. Both give `Result<(), SendError<StockMessage>>` |
/// | `T` | asks, and gives `Result<T, AskError>` |
/// | `Result<T, E>` | asks, and gives `Result<T, CallError<E>>`; an alias has to be called `Result`, too |
/// | `Result<T, ActorError>` | as without the `Result`; an error ends the process with it, and the question has no answer |
///
/// `ctx.stop()` ends the process normally after the call. `handle.within(deadline)` gives a handle
/// with another deadline than 5 s. `Handle::from` takes an `Address` or any other `Destination`, an
/// address that survives restarts, for example; the handle dereferences to it.
///
/// # What it makes
/// `enum StockMessage`, whose variants are the methods' names in camel case, with the arguments and
/// a `reply` as fields; `struct StockHandle`; `impl Methods for Stock`; and `impl Actor for Stock`.
///
/// # Options
/// - `message = Name`, `handle = Name`: the names of the two types.
/// - `dispatch_only`: no `impl Actor`. Write it yourself, with `started`, `exited` and `stopped`,
///   and call `self.dispatch(message, ctx)` (of the trait `Methods`) in `handle`.
/// - `crate = path`: where `windlass::actor` is; for a renamed dependency, and for other macros,
///   which pass `$crate::..` on.
#[proc_macro_attribute]
pub fn messages(args: TokenStream, item: TokenStream) -> TokenStream {
    messages::expand(args.into(), item.into()).into()
}
