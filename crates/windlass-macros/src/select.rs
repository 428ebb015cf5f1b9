//! `select!`, `join!`, `try_join!`: a block with the futures pinned in it, and one `poll_fn`.

use proc_macro2::{TokenStream, TokenTree};
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::visit_mut::VisitMut;
use syn::{Expr, Ident, Pat, PatIdent, Token, token};

/// `pattern = future, if condition => handler`
struct Branch {
    pattern: Pat,
    future: Expr,
    condition: Option<Expr>,
    handler: Expr,
}

/// All of `select!`.
pub(crate) struct Select {
    biased: bool,
    branches: Vec<Branch>,
    otherwise: Option<Expr>,
}

mod keyword {
    syn::custom_keyword!(biased);
}

impl Parse for Select {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let biased = input.peek(keyword::biased) && input.peek2(Token![;]);
        if biased {
            input.parse::<keyword::biased>()?;
            input.parse::<Token![;]>()?;
        }
        let mut select = Select {
            biased,
            branches: Vec::new(),
            otherwise: None,
        };
        while !input.is_empty() {
            if input.peek(Token![else]) {
                input.parse::<Token![else]>()?;
                input.parse::<Token![=>]>()?;
                select.otherwise = Some(parse_handler(input)?);
                break;
            }
            let pattern = Pat::parse_multi_with_leading_vert(input)?;
            input.parse::<Token![=]>()?;
            let future = input.parse()?;
            let condition = if input.peek(Token![,]) {
                input.parse::<Token![,]>()?;
                input.parse::<Token![if]>()?;
                Some(input.parse()?)
            } else {
                None
            };
            input.parse::<Token![=>]>()?;
            select.branches.push(Branch {
                pattern,
                future,
                condition,
                handler: parse_handler(input)?,
            });
        }
        if !input.is_empty() {
            return Err(input.error("else must be the last branch"));
        }
        if select.branches.is_empty() && select.otherwise.is_none() {
            return Err(input.error("select! needs a branch: pattern = future => handler"));
        }
        Ok(select)
    }
}

/// A block, or an expression and a comma.
fn parse_handler(input: ParseStream<'_>) -> syn::Result<Expr> {
    let handler = if input.peek(token::Brace) {
        let block: syn::Block = input.parse()?;
        Expr::Block(syn::ExprBlock {
            attrs: Vec::new(),
            label: None,
            block,
        })
    } else {
        let expression = input.parse()?;
        if !input.is_empty() && !input.peek(Token![,]) {
            return Err(input.error("expected a comma after the handler"));
        }
        expression
    };
    if input.peek(Token![,]) {
        input.parse::<Token![,]>()?;
    }
    Ok(handler)
}

/// Makes a pattern fit for looking at a value by reference.
struct ByReference;

impl VisitMut for ByReference {
    fn visit_pat_ident_mut(&mut self, pattern: &mut PatIdent) {
        pattern.mutability = None;
        pattern.by_ref = None;
        syn::visit_mut::visit_pat_ident_mut(self, pattern);
    }
}

fn names(prefix: &str, count: usize) -> Vec<Ident> {
    (0..count).map(|i| format_ident!("__{prefix}{i}")).collect()
}

impl Select {
    /// Expands to code that finds the crate of the runtime at `runtime`.
    pub(crate) fn expand(self, runtime: &TokenStream) -> TokenStream {
        let count = self.branches.len();
        if let (0, Some(otherwise)) = (count, &self.otherwise) {
            return quote!({ #otherwise });
        }
        let places = (0..count).map(syn::Index::from);
        let (futures, variants, types) = (
            names("future", count),
            names("Branch", count),
            names("T", count),
        );
        let indices = 0..count;
        let expressions = self.branches.iter().map(|branch| &branch.future);
        let conditions = self.branches.iter().map(|branch| match &branch.condition {
            Some(condition) => quote!(#condition),
            None => quote!(true),
        });
        let looks = self.branches.iter().map(|branch| {
            let mut look = branch.pattern.clone();
            ByReference.visit_pat_mut(&mut look);
            look
        });
        let patterns = self.branches.iter().map(|branch| &branch.pattern);
        let handlers = self.branches.iter().map(|branch| &branch.handler);
        let otherwise = match &self.otherwise {
            Some(handler) => quote!(#handler),
            None => quote!(::core::panic!(
                "all branches of select! are disabled and there is no else branch"
            )),
        };
        let start = if self.biased {
            quote!(0)
        } else {
            quote!(#runtime::__private::start(__COUNT))
        };
        quote! {{
            #[allow(non_camel_case_types, dead_code)]
            enum __Won<#(#types),*> { #(#variants(#types),)* Nobody }
            const __COUNT: usize = #count;
            #[allow(unused_mut)]
            let mut __won = {
                let mut __enabled = [#(#conditions),*];
                // A tuple: what an expression borrows of a temporary value lives as long as it.
                let __expressions = (#(#expressions,)*);
                #(let mut #futures =
                    ::core::pin::pin!(::core::future::IntoFuture::into_future(__expressions.#places));)*
                ::core::future::poll_fn(|__cx| {
                    if ::core::task::Poll::is_pending(&#runtime::__private::poll_budget(__cx)) {
                        return ::core::task::Poll::Pending;
                    }
                    let __start: usize = #start;
                    let mut __waiting = false;
                    for __step in 0..__COUNT {
                        match #runtime::__private::wrap(__start + __step, __COUNT) {
                            #(#indices if __enabled[#indices] => {
                                let __value =
                                    match ::core::future::Future::poll(#futures.as_mut(), __cx) {
                                        ::core::task::Poll::Ready(__value) => __value,
                                        ::core::task::Poll::Pending => {
                                            __waiting = true;
                                            continue;
                                        }
                                    };
                                __enabled[#indices] = false;
                                #[allow(unused_variables, unreachable_patterns)]
                                let __fits = match &__value {
                                    #looks => true,
                                    _ => false,
                                };
                                if __fits {
                                    return ::core::task::Poll::Ready(__Won::#variants(__value));
                                }
                            })*
                            _ => {}
                        }
                    }
                    if __waiting {
                        ::core::task::Poll::Pending
                    } else {
                        ::core::task::Poll::Ready(__Won::Nobody)
                    }
                })
                .await
            };
            #[allow(unreachable_patterns)]
            match __won {
                #(__Won::#variants(#patterns) => #handlers,)*
                __Won::Nobody => #otherwise,
                _ => ::core::unreachable!("the pattern was looked at before"),
            }
        }}
    }
}

/// The path of a crate, a semicolon, and the input of a macro: what a `macro_rules!` of that crate
/// passes on, so that the macro works under any name of the crate.
pub(crate) struct In<T> {
    pub(crate) runtime: TokenStream,
    pub(crate) input: T,
}

impl<T: Parse> Parse for In<T> {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        // Not parsed as a path: `$crate` is a token of its own kind.
        let mut runtime = TokenStream::new();
        while !input.peek(Token![;]) {
            runtime.extend([input.parse::<TokenTree>()?]);
        }
        input.parse::<Token![;]>()?;
        Ok(In {
            runtime,
            input: input.parse()?,
        })
    }
}

/// The futures of `join!` and `try_join!`.
pub(crate) struct Join {
    biased: bool,
    futures: Punctuated<Expr, Token![,]>,
}

impl Parse for Join {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let biased = input.peek(keyword::biased) && input.peek2(Token![;]);
        if biased {
            input.parse::<keyword::biased>()?;
            input.parse::<Token![;]>()?;
        }
        Ok(Join {
            biased,
            futures: Punctuated::parse_terminated(input)?,
        })
    }
}

impl Join {
    pub(crate) fn expand(self, fallible: bool) -> TokenStream {
        let count = self.futures.len();
        let (futures, outputs) = (names("future", count), names("output", count));
        let expressions = self.futures.iter();
        let keep = if fallible {
            quote! {
                ::core::result::Result::Ok(__value) => ::core::option::Option::Some(__value),
                ::core::result::Result::Err(__error) => {
                    return ::core::task::Poll::Ready(::core::result::Result::Err(__error));
                }
            }
        } else {
            quote!(__value => ::core::option::Option::Some(__value))
        };
        let all = quote!((#(match #outputs.take() {
            ::core::option::Option::Some(__value) => __value,
            ::core::option::Option::None => ::core::unreachable!("all are ready"),
        },)*));
        let all = if fallible {
            quote!(::core::result::Result::Ok(#all))
        } else {
            all
        };
        let polls = (0..count).map(|index| {
            let (future, output) = (&futures[index], &outputs[index]);
            quote!(if ::core::option::Option::is_none(&#output) {
                match ::core::future::Future::poll(#future.as_mut(), __cx) {
                    ::core::task::Poll::Pending => __waiting = true,
                    ::core::task::Poll::Ready(__ready) => {
                        #output = match __ready { #keep };
                    }
                }
            })
        });
        // Each poll begins with another future, so that one that uses up the budget each time
        // does not starve those behind it.
        let (first, polls) = if self.biased || count < 2 {
            (quote!(), quote!(#(#polls)*))
        } else {
            let indices = 0..count;
            let polls = quote! {
                for __step in 0..#count {
                    match (__first + __step) % #count {
                        #(#indices => #polls,)*
                        _ => {}
                    }
                }
                __first = (__first + 1) % #count;
            };
            (quote!(let mut __first = 0usize;), polls)
        };
        quote! {{
            #(let mut #futures =
                ::core::pin::pin!(::core::future::IntoFuture::into_future(#expressions));
            let mut #outputs = ::core::option::Option::None;)*
            #first
            ::core::future::poll_fn(|__cx| {
                let mut __waiting = false;
                #polls
                if __waiting {
                    return ::core::task::Poll::Pending;
                }
                ::core::task::Poll::Ready(#all)
            })
            .await
        }}
    }
}
