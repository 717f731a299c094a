//! Queries, and the search attributes that they and runs may use. Attributes of a namespace are one row of
//! the registry, which only grows by compare-and-set, so that nodes do not overwrite each other.

use std::sync::Arc;

use abide_core::{
    codec,
    ids::NamespaceId,
    limits::InvalidField,
    list::RunFilter,
    operation::{
        CallError, CreateSearchAttribute, DeleteSearchAttribute, ListSearchAttributes,
        SearchAttributes,
    },
    schedule::SCHEDULE_TYPE,
    search::{Check, Comparison, Condition, Definitions, Field, Query, SystemField, Test, Value},
};
use abide_store::rows::RegistryRow;

use crate::Engine;

/// How often a change is tried again that others overtook.
const TRIES: usize = 10;

/// What a query is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    List,
    Count,
    Tally,
}

impl Engine {
    /// Reads the query of a filter.
    pub(crate) async fn searching(
        &self,
        filter: RunFilter,
        purpose: Purpose,
    ) -> Result<RunFilter, CallError> {
        if filter.query.is_empty() {
            return Ok(without_schedules(filter, Query::default()));
        }
        let attributes = match &filter.namespace {
            Some(namespace) => self.definitions(namespace).await?.0,
            // Namespaces may have attributes of the same name and different types.
            None => Definitions::default(),
        };
        let query = Query::parse(&filter.query, &attributes).map_err(InvalidField::from)?;
        if query.group.is_some() && purpose != Purpose::Tally {
            let problem = "has GROUP BY, which is for tallies: leave it out";
            return Err(InvalidField::new("query", problem).into());
        }
        if query.order != abide_core::search::Order::default() && purpose != Purpose::List {
            let problem = "has ORDER BY, which is for lists: leave it out";
            return Err(InvalidField::new("query", problem).into());
        }
        Ok(without_schedules(filter, query))
    }

    pub(crate) async fn create_search_attribute(
        &self,
        CreateSearchAttribute { namespace, name, kind }: CreateSearchAttribute,
    ) -> Result<SearchAttributes, CallError> {
        let limits = &self.node.limits;
        self.change_attributes(&namespace, |all| all.add(&name, kind, limits)).await
    }

    pub(crate) async fn delete_search_attribute(
        &self,
        DeleteSearchAttribute { namespace, name }: DeleteSearchAttribute,
    ) -> Result<SearchAttributes, CallError> {
        self.change_attributes(&namespace, |all| Ok(all.remove(&name))).await
    }

    pub(crate) async fn list_search_attributes(
        &self,
        ListSearchAttributes { namespace }: ListSearchAttributes,
    ) -> Result<SearchAttributes, CallError> {
        self.check_namespace(&namespace)?;
        Ok(SearchAttributes(self.definitions(&namespace).await?.0))
    }

    /// Changes the attributes of a namespace. `change` says whether there is anything to write.
    async fn change_attributes(
        &self,
        namespace: &NamespaceId,
        change: impl Fn(&mut Definitions) -> Result<bool, InvalidField>,
    ) -> Result<SearchAttributes, CallError> {
        self.check_namespace(namespace)?;
        for _ in 0..TRIES {
            let (mut attributes, version) = self.definitions(namespace).await?;
            if !change(&mut attributes)? {
                return Ok(SearchAttributes(attributes));
            }
            let row = RegistryRow {
                name: Definitions::registry_name(namespace),
                version: version + 1,
                value: codec::encode_definitions(&attributes),
            };
            let written = self.node.store.put_registry(row).await;
            if written.map_err(|error| CallError::Unavailable(error.to_string()))? {
                return Ok(SearchAttributes(attributes));
            }
        }
        Err(CallError::Overloaded)
    }

    /// The attributes of a namespace, and the version of their row.
    async fn definitions(&self, namespace: &NamespaceId) -> Result<(Definitions, u64), CallError> {
        let name = Definitions::registry_name(namespace);
        let rows = self.node.store.registry(name.clone()).await;
        let rows = rows.map_err(|error| self.unreadable(&error))?;
        let Some(row) = rows.into_iter().find(|row| row.name == name) else {
            return Ok((Definitions::default(), 0));
        };
        let attributes = codec::decode_definitions(row.value)
            .map_err(|error| CallError::NoAnswer(error.to_string()))?;
        Ok((attributes, row.version))
    }
}

/// The filter with its query. Schedules are runs too, and are left out unless the filter says of which
/// workflows, types or waits the runs are.
fn without_schedules(filter: RunFilter, mut query: Query) -> RunFilter {
    let naming = |field: &Field| match field {
        Field::System(field) => {
            let by_name = [SystemField::WorkflowId, SystemField::RunId, SystemField::WorkflowType];
            field.of_wait() || by_name.contains(field)
        }
        Field::Attribute(..) => false,
    };
    let named = filter.workflow.is_some() || filter.workflow_type.is_some();
    if !named && !query.condition.has(&naming) {
        let check = Check::Compare(Comparison::Equal, Value::Text(SCHEDULE_TYPE.to_owned()));
        let field = Field::System(SystemField::WorkflowType);
        let schedule = Condition::of(Test { field, check });
        query.condition = Condition::all(vec![query.condition, schedule.negated()]);
    }
    RunFilter { search: Some(Arc::new(query)), ..filter }
}
