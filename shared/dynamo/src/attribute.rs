//! Rows as DynamoDB's attribute values, and back.

use crate::key::Key;
use crate::pack;
use crate::row::Row;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::Value;
use std::collections::HashMap;

/// A row as the SDK takes and gives it.
pub(crate) type Attributes = HashMap<String, AttributeValue>;

/// A value as an attribute; ids and hashes become bytes.
pub(crate) fn of(value: &Value) -> AttributeValue {
    match value {
        Value::Null => AttributeValue::Null(true),
        Value::Bool(flag) => AttributeValue::Bool(*flag),
        Value::Number(number) => AttributeValue::N(number.to_string()),
        Value::String(text) => of_text(text),
        Value::Array(list) => AttributeValue::L(list.iter().map(of).collect()),
        Value::Object(map) => AttributeValue::M(map.iter().map(|(name, value)| (name.clone(), of(value))).collect()),
    }
}

fn of_text(text: &str) -> AttributeValue {
    pack::pack(text).map_or_else(|| AttributeValue::S(text.to_owned()), |bytes| AttributeValue::B(Blob::new(bytes)))
}

/// The value of an attribute; none for types that Collie does not write.
pub(crate) fn value(attribute: &AttributeValue) -> Option<Value> {
    match attribute {
        AttributeValue::Null(_) => Some(Value::Null),
        AttributeValue::Bool(flag) => Some(Value::Bool(*flag)),
        AttributeValue::N(text) => serde_json::from_str(text).ok().map(Value::Number),
        AttributeValue::S(text) => Some(Value::String(text.clone())),
        AttributeValue::B(bytes) => pack::unpack(bytes.as_ref()).map(Value::String),
        AttributeValue::L(list) => list.iter().map(value).collect::<Option<_>>().map(Value::Array),
        AttributeValue::M(map) => Some(Value::Object(row(map))),
        _ => None,
    }
}

/// A row; attributes of types that Collie does not write are a newer version's and left out.
pub(crate) fn row(attributes: &Attributes) -> Row {
    attributes.iter().filter_map(|(name, attribute)| Some((name.clone(), value(attribute)?))).collect()
}

/// A whole row with its key.
pub(crate) fn of_row(key: &Key, row: &Row) -> Attributes {
    let values = row.iter().map(|(name, value)| (name.clone(), of(value)));
    values.chain(of_key(key)).collect()
}

/// A key.
pub(crate) fn of_key(key: &Key) -> Attributes {
    [("pk", &key.pk), ("sk", &key.sk)].into_iter().map(|(name, text)| (name.to_owned(), AttributeValue::S(text.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_json_value_comes_back_the_same() {
        let value =
            json!({"a": null, "b": [true, -3, 18_446_744_073_709_551_615_u64, 1.5], "c": {"": "", "d|e": "0123456789abcdef"}, "e": "é"});
        assert_eq!(super::value(&of(&value)), Some(value));
    }

    #[test]
    fn an_attribute_of_an_unknown_type_is_left_out() {
        let attributes =
            Attributes::from([("a".into(), AttributeValue::Ss(vec!["x".into()])), ("b".into(), AttributeValue::N("1".into()))]);
        assert_eq!(Value::Object(row(&attributes)), json!({"b": 1}));
    }
}
