//! The methods of a workflow, checked.

use syn::{
    Attribute, FnArg, Ident, ImplItem, ImplItemFn, ItemImpl, LitStr, Token, Type, Visibility,
    parse::{Parse, ParseStream},
};

use super::{
    approvals,
    check::{
        check_handler, check_init, check_names, check_query, check_run, check_validator,
        refuse_output,
    },
    taken,
};
use crate::{
    activity::{check_block, take_docs},
    attribute::Options,
    signature::{ContextRule, Signature, error},
};

const CONTEXT: ContextRule =
    ContextRule { type_name: "Context", written: "ctx: &Context<Self>", by_reference: true };

pub(super) struct Model {
    /// The impl block without marks and declarations.
    pub(super) block: ItemImpl,
    /// Name of the workflow's type.
    pub(super) ident: Ident,
    pub(super) name: LitStr,
    /// Name and signature of the run method.
    pub(super) run: (Ident, Signature),
    /// Method that creates the initial state, and its number of arguments.
    pub(super) init: Option<(Ident, usize)>,
    pub(super) signals: Vec<Handler>,
    pub(super) queries: Vec<Handler>,
    pub(super) updates: Vec<Handler>,
    /// Field of the state that holds the requests for approval.
    pub(super) approvals: Option<Ident>,
    /// What happens to handlers that still run when the run has its result.
    pub(super) unfinished_handlers: Option<Ident>,
}

/// A signal, query or update.
pub(super) struct Handler {
    pub(super) ident: Ident,
    pub(super) visibility: Visibility,
    pub(super) docs: Vec<Attribute>,
    pub(super) name: LitStr,
    pub(super) signature: Signature,
    /// Whether there is a method that holds the code, not a declared signal only.
    pub(super) handled: bool,
    pub(super) validate: Option<Ident>,
}

impl Handler {
    /// Name of the constant that holds the definition: `SEND_CARD` for `send_card`.
    pub(super) fn constant(&self) -> Ident {
        let name = self.ident.to_string().trim_start_matches("r#").to_uppercase();
        Ident::new(&name, self.ident.span())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Run,
    Init,
    Signal,
    Query,
    Update,
}

/// A method without a body, which our impl blocks accept although Rust's do not.
struct Declaration {
    attrs: Vec<Attribute>,
    vis: Visibility,
    sig: syn::Signature,
}

impl Parse for Declaration {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let (attrs, vis, sig) =
            (input.call(Attribute::parse_outer)?, input.parse()?, input.parse()?);
        input.parse::<Token![;]>()?;
        Ok(Self { attrs, vis, sig })
    }
}

impl Mark {
    const ALL: [Self; 5] = [Self::Run, Self::Init, Self::Signal, Self::Query, Self::Update];

    pub(super) const fn attribute(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Init => "init",
            Self::Signal => "signal",
            Self::Query => "query",
            Self::Update => "update",
        }
    }

    const fn options(self) -> &'static [&'static str] {
        match self {
            Self::Run | Self::Init => &[],
            Self::Signal | Self::Query => &["name"],
            Self::Update => &["name", "validate"],
        }
    }

    /// Name of the kind in messages.
    pub(super) const fn subject(self) -> &'static str {
        match self {
            Self::Run => "the run",
            Self::Init => "the first state",
            Self::Signal => "a signal",
            Self::Query => "a query",
            Self::Update => "an update",
        }
    }
}

/// Collects the parts of a block while its methods are parsed.
#[derive(Default)]
struct Reader {
    items: Vec<ImplItem>,
    runs: Vec<(Ident, Signature)>,
    init: Option<(Ident, usize)>,
    signals: Vec<Handler>,
    queries: Vec<Handler>,
    updates: Vec<Handler>,
}

impl Model {
    /// Parses a block, or reports what is wrong with it.
    pub(super) fn read(options: Options, mut block: ItemImpl) -> syn::Result<Self> {
        check_block(&block, "workflow methods")?;
        let mut reader = Reader::default();
        let mut wrong: Option<syn::Error> = None;
        for item in std::mem::take(&mut block.items) {
            if let Err(error) = reader.item(item) {
                match &mut wrong {
                    Some(wrong) => wrong.combine(error),
                    None => wrong = Some(error),
                }
            }
        }
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
        let Reader { items, runs, init, signals, queries, updates } = reader;
        let run = one_run(runs, &block.self_ty)?;
        check_init(init.as_ref(), &run.1)?;
        for update in &updates {
            check_validator(update, &items)?;
        }
        for (mark, handlers) in
            [(Mark::Signal, &signals), (Mark::Query, &queries), (Mark::Update, &updates)]
        {
            check_names(mark, handlers)?;
            taken::check(mark, handlers)?;
            if options.approvals.is_some() {
                approvals::check(mark, handlers)?;
            }
        }
        let ident = own_name(&block.self_ty)?;
        let name = options.wire_name(&ident);
        block.items = items;
        let Options { approvals, unfinished_handlers, .. } = options;
        Ok(Self {
            block,
            ident,
            name,
            run,
            init,
            signals,
            queries,
            updates,
            approvals,
            unfinished_handlers,
        })
    }
}

impl Reader {
    fn item(&mut self, item: ImplItem) -> syn::Result<()> {
        match item {
            ImplItem::Fn(method) => self.method(method),
            ImplItem::Verbatim(tokens) => match syn::parse2::<Declaration>(tokens.clone()) {
                Ok(method) => self.declaration(method),
                Err(_) => {
                    self.items.push(ImplItem::Verbatim(tokens));
                    Ok(())
                }
            },
            other => {
                self.items.push(other);
                Ok(())
            }
        }
    }

    /// Parses a method without a body: a signal that the run receives.
    fn declaration(&mut self, mut method: Declaration) -> syn::Result<()> {
        let marked = take_mark(&mut method.attrs)?;
        let Some((Mark::Signal, options)) = marked else {
            let message = "only a `#[signal]` may omit its body: the run receives it by \
                           `ctx.receive`";
            return Err(error(&method.sig, message));
        };
        let signature = Signature::read(&method.sig, Mark::Signal.subject(), CONTEXT)?;
        signature.no_receiver("a signal without a body has no `self`: list its arguments alone")?;
        if method.sig.asyncness.is_some() || signature.context {
            let message = "a signal without a body is only declared: write `fn name(argument: T);`";
            return Err(error(&method.sig, message));
        }
        refuse_output(&signature)?;
        self.signals.push(Handler {
            name: options.wire_name(&method.sig.ident),
            ident: method.sig.ident,
            visibility: method.vis,
            docs: take_docs(&mut method.attrs),
            signature,
            handled: false,
            validate: None,
        });
        Ok(())
    }

    fn method(&mut self, mut method: ImplItemFn) -> syn::Result<()> {
        let Some((mark, options)) = take_mark(&mut method.attrs)? else {
            self.items.push(ImplItem::Fn(method));
            return Ok(());
        };
        if mark == Mark::Init {
            return self.init(method);
        }
        let signature = Signature::read(&method.sig, mark.subject(), CONTEXT)?;
        match mark {
            Mark::Run | Mark::Init => {
                check_run(&signature, &method.sig)?;
                self.runs.push((method.sig.ident.clone(), signature));
                self.items.push(ImplItem::Fn(method));
                return Ok(());
            }
            Mark::Signal => {
                check_handler(mark, &signature, &method.sig)?;
                refuse_output(&signature)?;
            }
            Mark::Query => check_query(&signature, &method.sig)?,
            Mark::Update => check_handler(mark, &signature, &method.sig)?,
        }
        let handlers = match mark {
            Mark::Signal => &mut self.signals,
            Mark::Query => &mut self.queries,
            Mark::Run | Mark::Init | Mark::Update => &mut self.updates,
        };
        handlers.push(Handler {
            name: options.wire_name(&method.sig.ident),
            ident: method.sig.ident.clone(),
            visibility: method.vis.clone(),
            docs: take_docs(&mut method.attrs.clone()),
            signature,
            handled: true,
            validate: options.validate,
        });
        self.items.push(ImplItem::Fn(method));
        Ok(())
    }

    fn init(&mut self, method: ImplItemFn) -> syn::Result<()> {
        if self.init.is_some() {
            let message = "a workflow has one initial state: remove this `#[init]`";
            return Err(error(&method.sig.ident, message));
        }
        if method.sig.asyncness.is_some() {
            let message = "the initial state is created synchronously: remove `async`";
            return Err(error(method.sig.asyncness, message));
        }
        for input in &method.sig.inputs {
            let by_reference = matches!(
                input,
                FnArg::Typed(typed) if matches!(&*typed.ty, Type::Reference(_))
            );
            if !by_reference {
                let message = "the initial state is created from the arguments of the run, by \
                               reference: write `fn new(input: &Input) -> Self`";
                return Err(error(input, message));
            }
        }
        self.init = Some((method.sig.ident.clone(), method.sig.inputs.len()));
        self.items.push(ImplItem::Fn(method));
        Ok(())
    }
}

/// Removes and returns the mark of a method.
fn take_mark(attributes: &mut Vec<Attribute>) -> syn::Result<Option<(Mark, Options)>> {
    let mut found = None;
    for mark in Mark::ALL {
        let marks = |attribute: &Attribute| attribute.path().is_ident(mark.attribute());
        while let Some(index) = attributes.iter().position(marks) {
            let attribute = attributes.remove(index);
            if found.is_some() {
                let message = "a method has only one mark: remove this one";
                return Err(syn::Error::new_spanned(attribute, message));
            }
            found = Some((mark, Options::of(&attribute, mark.options())?));
        }
    }
    Ok(found)
}

fn one_run(mut runs: Vec<(Ident, Signature)>, own: &Type) -> syn::Result<(Ident, Signature)> {
    if let Some((second, _)) = runs.get(1) {
        let message = format!(
            "a workflow has one run method, and `{}` already is it: remove this `#[run]`",
            runs[0].0
        );
        return Err(error(second, message));
    }
    runs.pop().ok_or_else(|| {
        let message = "a workflow needs a run method: mark `async fn run(ctx: &Context<Self>, …)` with \
                       `#[run]`";
        error(own, message)
    })
}

fn own_name(own: &Type) -> syn::Result<Ident> {
    if let Type::Path(path) = own
        && let Some(last) = path.path.segments.last()
    {
        return Ok(last.ident.clone());
    }
    Err(error(own, "a workflow is a struct or an enum of this crate"))
}
