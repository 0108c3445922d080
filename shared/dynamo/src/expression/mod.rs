//! Update and condition expressions, with every name and value through a placeholder.

mod change;

pub(crate) use change::of_change;

use crate::attribute::{self, Attributes};
use crate::row::{self, Row};
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;

/// One conditional update of one row, as it is being written.
#[derive(Debug, Default)]
pub(crate) struct Write {
    sets: Vec<String>,
    removes: Vec<String>,
    conditions: Vec<String>,
    names: HashMap<String, String>,
    values: Attributes,
}

impl Write {
    /// The placeholder of an item's field, or of any other attribute.
    pub(crate) fn name(&mut self, field: &'static str) -> String {
        let attribute = row::attribute(field);
        let placeholder = format!("#{attribute}");
        self.names.insert(placeholder.clone(), attribute.to_owned());
        placeholder
    }

    /// The placeholder of a name that is data, or that an item's field renames.
    pub(crate) fn data_name(&mut self, name: &str) -> String {
        let placeholder = format!("#d{}", self.names.len());
        self.names.insert(placeholder.clone(), name.to_owned());
        placeholder
    }

    /// The placeholder of a value.
    pub(crate) fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> String {
        let placeholder = format!(":v{}", self.values.len());
        self.values.insert(placeholder.clone(), attribute::of(&row::json(value)));
        placeholder
    }

    /// Sets a field.
    pub(crate) fn set<T: Serialize + ?Sized>(&mut self, field: &'static str, value: &T) {
        let (name, value) = (self.name(field), self.value(value));
        self.sets.push(format!("{name} = {value}"));
    }

    /// Sets what a path says to an expression.
    pub(crate) fn assign(&mut self, path: &str, expression: &str) {
        self.sets.push(format!("{path} = {expression}"));
    }

    /// Removes what a path says.
    pub(crate) fn unset(&mut self, path: String) {
        self.removes.push(path);
    }

    /// Sets every attribute of a row.
    pub(crate) fn set_row(&mut self, row: &Row) {
        for (name, value) in row {
            let (name, value) = (self.data_name(name), self.value(value));
            self.sets.push(format!("{name} = {value}"));
        }
    }

    /// Sets a field, or removes it where it has no value.
    fn set_or_remove(&mut self, field: &'static str, value: Option<&Value>) {
        match value {
            Some(value) => self.set(field, value),
            None => self.remove(field),
        }
    }

    fn remove(&mut self, field: &'static str) {
        let name = self.name(field);
        self.removes.push(name);
    }

    /// Adds one to a counter.
    fn increase(&mut self, field: &'static str) {
        let (name, one) = (self.name(field), self.value(&1));
        self.sets.push(format!("{name} = {name} + {one}"));
    }

    /// Appends to a list.
    fn append(&mut self, field: &'static str, entry: Value) {
        let (name, list) = (self.name(field), self.value(&[entry]));
        self.sets.push(format!("{name} = list_append({name}, {list})"));
    }

    /// Requires a condition.
    pub(crate) fn require(&mut self, condition: impl Into<String>) {
        self.conditions.push(condition.into());
    }

    /// Requires a field to have this value; false on an absent row.
    pub(crate) fn require_equal<T: Serialize + ?Sized>(&mut self, field: &'static str, value: &T) {
        let (name, value) = (self.name(field), self.value(value));
        self.require(format!("{name} = {value}"));
    }

    fn require_absent(&mut self, field: &'static str) {
        let name = self.name(field);
        self.require(format!("attribute_not_exists({name})"));
    }

    /// The update expression.
    pub(crate) fn update_expression(&self) -> String {
        let clause = |word: &str, parts: &[String]| if parts.is_empty() { String::new() } else { format!("{word} {} ", parts.join(", ")) };
        (clause("SET", &self.sets) + &clause("REMOVE", &self.removes)).trim_end().to_owned()
    }

    /// The conditions as a query wants them: without brackets.
    pub(crate) fn conditions(&self) -> String {
        self.conditions.join(" AND ")
    }

    /// The condition expression; none where there are no conditions.
    pub(crate) fn condition(&self) -> Option<String> {
        Some(self.condition_expression()).filter(|condition| !condition.is_empty())
    }

    /// The condition expression.
    pub(crate) fn condition_expression(&self) -> String {
        self.conditions.iter().map(|condition| format!("({condition})")).collect::<Vec<_>>().join(" AND ")
    }

    /// What the name placeholders stand for.
    pub(crate) fn names(&self) -> HashMap<String, String> {
        self.names.clone()
    }

    /// The same; none where there are none, which DynamoDB wants left out.
    pub(crate) fn some_names(&self) -> Option<HashMap<String, String>> {
        Some(self.names()).filter(|names| !names.is_empty())
    }

    /// What the value placeholders stand for; none where there are none, which DynamoDB wants left out.
    pub(crate) fn values(&self) -> Option<Attributes> {
        Some(self.values.clone()).filter(|values| !values.is_empty())
    }
}
