//! The items that are made of the methods.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{Generics, Ident, ItemImpl, Visibility};

use super::method::{Answer, Method};

/// What the expansion calls things.
pub(super) struct Names {
    /// The path of `windlass::actor`.
    pub(super) actor: TokenStream,
    /// The type of the actor.
    pub(super) name: String,
    pub(super) message: Ident,
    pub(super) handle: Ident,
    pub(super) visibility: Visibility,
}

impl Names {
    pub(super) fn enumeration(&self, generics: &Generics, methods: &[Method<'_>]) -> TokenStream {
        let Names {
            actor,
            message,
            visibility,
            ..
        } = self;
        let variants = methods.iter().map(|method| {
            let (conditions, variant) = (method.conditions(), &method.variant);
            let fields = method.fields.iter().map(|(name, ty)| {
                let doc = format!("The argument `{name}`.");
                quote!(#[doc = #doc] #name: #ty)
            });
            let reply = method.answer.asked().map(
                |answer| quote!(#[doc = "Where the answer goes."] reply: #actor::Reply<#answer>),
            );
            let fields = fields.chain(reply);
            let doc = format!("A call of `{}`.", method.function.sig.ident);
            quote!(#(#conditions)* #[doc = #doc] #variant { #(#fields),* })
        });
        let unused = phantom(generics).map(|types| {
            quote! {
                #[doc(hidden)]
                __Unused(::core::convert::Infallible, ::core::marker::PhantomData<fn() -> #types>)
            }
        });
        let variants = variants.chain(unused);
        let where_clause = &generics.where_clause;
        let doc = format!(
            "The messages of [`{}`], one for each of its methods.",
            self.name
        );
        quote! {
            #[doc = #doc]
            #[allow(private_interfaces, unreachable_pub, reason = "the actor may be private")]
            #visibility enum #message #generics #where_clause { #(#variants),* }
        }
    }

    pub(super) fn dispatch(
        &self,
        block: &ItemImpl,
        methods: &[Method<'_>],
        only: bool,
    ) -> TokenStream {
        let Names { actor, message, .. } = self;
        let own = &block.self_ty;
        let (generics, types, condition) = block.generics.split_for_impl();
        let arms = methods.iter().map(|method| {
            let (conditions, variant) = (method.conditions(), &method.variant);
            let fields = method.fields.iter().map(|(name, _)| name);
            let reply = method.answer.asked().map(|_| quote!(reply));
            let fields = fields.map(|name| quote!(#name)).chain(reply);
            let body = method.call(actor);
            quote!(#(#conditions)* #message::#variant { #(#fields),* } => { #body })
        });
        let unused = phantom(&block.generics)
            .map(|_| quote!(#message::__Unused(never, _) => match never {}));
        let arms = arms.chain(unused);
        let implement_actor = (!only).then(|| {
            quote! {
                impl #generics #actor::Actor for #own #condition {
                    type Message = #message #types;

                    async fn handle(
                        &mut self,
                        message: #message #types,
                        ctx: &mut #actor::Context<#message #types>,
                    ) -> ::core::result::Result<(), #actor::ActorError> {
                        #actor::Methods::dispatch(self, message, ctx).await
                    }
                }
            }
        });
        quote! {
            #[allow(private_interfaces, reason = "the actor may be private")]
            impl #generics #actor::Methods for #own #condition {
                type Message = #message #types;

                #[allow(unused_variables, reason = "not every method takes the context")]
                async fn dispatch(
                    &mut self,
                    message: #message #types,
                    ctx: &mut #actor::Context<#message #types>,
                ) -> ::core::result::Result<(), #actor::ActorError> {
                    match message { #(#arms),* }
                }
            }

            #implement_actor
        }
    }

    pub(super) fn typed_handle(&self, generics: &Generics, methods: &[Method<'_>]) -> TokenStream {
        let Names {
            actor,
            message,
            handle,
            visibility,
            ..
        } = self;
        let (_, types, where_clause) = generics.split_for_impl();
        let destination = format_ident!("__Destination");
        let mut typed = generics.clone();
        typed
            .params
            .push(syn::parse_quote!(#destination = #actor::Address<#message #types>));
        let mut bounded = generics.clone();
        bounded
            .params
            .push(syn::parse_quote!(#destination: #actor::Destination<#message #types>));
        let (typed_impl, typed_types, _) = bounded.split_for_impl();
        let mut open = generics.clone();
        open.params.push(syn::parse_quote!(#destination));
        let (open_impl, open_types, _) = open.split_for_impl();
        let mut clones = generics.clone();
        clones
            .params
            .push(syn::parse_quote!(#destination: ::core::clone::Clone));
        let (clone_impl, _, _) = clones.split_for_impl();
        let mut shows = generics.clone();
        shows
            .params
            .push(syn::parse_quote!(#destination: ::core::fmt::Debug));
        let (debug_impl, _, _) = shows.split_for_impl();
        let phantom = phantom(generics).unwrap_or_else(|| quote!(()));
        let calls = methods
            .iter()
            .map(|method| self.handle_method(method, &types));
        let doc = format!(
            "Speaks to a [`{}`] by its methods: those that return nothing send, the others ask.",
            self.name
        );
        let text = handle.to_string();
        quote! {
            #[doc = #doc]
            #[allow(private_interfaces, unreachable_pub, reason = "the actor may be private")]
            #visibility struct #handle #typed #where_clause {
                destination: #destination,
                deadline: ::core::time::Duration,
                actor: ::core::marker::PhantomData<fn() -> #phantom>,
            }

            #[allow(
                dead_code,
                private_interfaces,
                unreachable_pub,
                reason = "no program calls all methods of all its actors; one may be private"
            )]
            impl #typed_impl #handle #typed_types #where_clause {
                #(#calls)*

                /// Returns a handle whose questions wait for so long, the wait for room in the
                /// mailbox included; 5 s otherwise.
                #visibility fn within(&self, deadline: ::core::time::Duration) -> Self
                where
                    #destination: ::core::clone::Clone,
                {
                    #handle {
                        destination: self.destination.clone(),
                        deadline,
                        actor: ::core::marker::PhantomData,
                    }
                }
            }

            impl #typed_impl ::core::convert::From<#destination> for #handle #typed_types
            #where_clause
            {
                fn from(destination: #destination) -> Self {
                    #handle {
                        destination,
                        deadline: #actor::ASK_TIMEOUT,
                        actor: ::core::marker::PhantomData,
                    }
                }
            }

            impl #clone_impl ::core::clone::Clone for #handle #open_types #where_clause {
                fn clone(&self) -> Self {
                    #handle {
                        destination: ::core::clone::Clone::clone(&self.destination),
                        deadline: self.deadline,
                        actor: ::core::marker::PhantomData,
                    }
                }
            }

            /// What it speaks to: its PID, its end, and whatever else that has.
            impl #open_impl ::core::ops::Deref for #handle #open_types #where_clause {
                type Target = #destination;

                fn deref(&self) -> &#destination {
                    &self.destination
                }
            }

            impl #debug_impl ::core::fmt::Debug for #handle #open_types #where_clause {
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    f.debug_tuple(#text).field(&self.destination).finish()
                }
            }
        }
    }

    fn handle_method(&self, method: &Method<'_>, types: &syn::TypeGenerics<'_>) -> TokenStream {
        let Names { actor, message, .. } = self;
        let (visibility, name) = (&method.function.vis, &method.function.sig.ident);
        let (conditions, docs) = (method.conditions(), method.docs());
        let variant = &method.variant;
        let names: Vec<_> = method.fields.iter().map(|(name, _)| name).collect();
        let arguments: Vec<_> = method
            .fields
            .iter()
            .map(|(name, ty)| quote!(#name: #ty))
            .collect();
        let span = name.span();
        let Some(asked) = method.answer.asked() else {
            let attempt = format_ident!("try_{}", name, span = span);
            let failed = quote!(#actor::SendError<#message #types>);
            return quote_spanned! {span=>
                #(#conditions)*
                #(#docs)*
                ///
                /// Sends the call, and waits for room in the mailbox if there is none. Cancel-safe:
                /// a dropped send has not sent anything.
                #visibility async fn #name(&self, #(#arguments),*)
                    -> ::core::result::Result<(), #failed>
                {
                    #actor::Destination::send(&self.destination, #message::#variant { #(#names),* })
                        .await
                }

                #(#conditions)*
                #(#docs)*
                ///
                /// Sends the call now, or hands the message back.
                #visibility fn #attempt(&self, #(#arguments),*)
                    -> ::core::result::Result<(), #failed>
                {
                    #actor::Destination::tell(&self.destination, #message::#variant { #(#names),* })
                }
            };
        };
        let ask = quote_spanned! {span=>
            #actor::Destination::ask_within(
                &self.destination,
                self.deadline,
                |reply| #message::#variant { #(#names,)* reply },
            )
            .await
        };
        let (returned, body) = match &method.answer {
            Answer::Result(result) => (
                quote! {
                    ::core::result::Result<
                        <#result as #actor::Results>::Value,
                        #actor::CallError<<#result as #actor::Results>::Error>,
                    >
                },
                quote!(#actor::CallError::flatten(#ask)),
            ),
            _ => (
                quote!(::core::result::Result<#asked, #actor::AskError>),
                ask,
            ),
        };
        quote_spanned! {span=>
            #(#conditions)*
            #(#docs)*
            ///
            /// Asks, and waits for the answer. A dropped wait does not take the question back.
            #visibility async fn #name(&self, #(#arguments),*) -> #returned {
                #body
            }
        }
    }
}

/// The type parameters as a tuple, so that an enum that uses none of them compiles.
fn phantom(generics: &Generics) -> Option<TokenStream> {
    let types: Vec<_> = generics.type_params().map(|ty| &ty.ident).collect();
    (!types.is_empty()).then(|| quote!((#(#types,)*)))
}
