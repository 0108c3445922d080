//! Whether a body can be decoded, before it is: the decoding itself does not survive broken base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Takes a body that says it is base64 and is not out of the event; says whether there was one.
pub(crate) fn take_broken(event: &mut Value) -> bool {
    let encoded = event.get("isBase64Encoded").and_then(Value::as_bool).unwrap_or(false);
    let broken = encoded && event.get("body").and_then(Value::as_str).is_some_and(|body| STANDARD.decode(body).is_err());
    if broken {
        event["body"] = Value::Null;
        event["isBase64Encoded"] = Value::Bool(false);
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_body_that_is_said_to_be_base64_and_is_not_is_broken() {
        let cases = [
            (json!({"isBase64Encoded": true, "body": "eyJhIjoxfQ=="}), false),
            (json!({"isBase64Encoded": true, "body": "eyJhIjoxfQ"}), true),
            (json!({"isBase64Encoded": true, "body": "%%%"}), true),
            (json!({"isBase64Encoded": true, "body": null}), false),
            (json!({"isBase64Encoded": true}), false),
            (json!({"isBase64Encoded": false, "body": "%%%"}), false),
            (json!({"isBase64Encoded": null, "body": "%%%"}), false),
            (json!({"body": "%%%"}), false),
            (json!("no event"), false),
        ];
        for (mut event, broken) in cases {
            let shown = event.to_string();
            assert_eq!(take_broken(&mut event), broken, "{shown}");
        }
    }

    #[test]
    fn a_broken_body_is_gone_and_the_rest_stays() {
        let mut event = json!({"isBase64Encoded": true, "body": "%", "rawPath": "/v1/me"});
        take_broken(&mut event);
        assert_eq!(event, json!({"isBase64Encoded": false, "body": null, "rawPath": "/v1/me"}));
    }
}
