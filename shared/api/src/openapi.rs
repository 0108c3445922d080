//! The OpenAPI document, made from the routes and the types that they answer with.

use crate::problem::Problem;
use crate::routes::queues::{issues, report, requests};
use crate::routes::{blobs, errors, hooks, letters, lifecycle, progress, service, work_items};
use crate::view::ProblemDocument;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ContentBuilder, OpenApi, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{Modify, OpenApi as _, ToSchema};

/// Answers that any call with a security requirement may get.
const COMMON: [(&str, &str); 4] =
    [("401", "unauthenticated"), ("429", "throttled, rate_limited"), ("500", "internal"), ("503", "contended, unavailable")];

/// The document.
#[must_use]
pub fn document() -> OpenApi {
    Document::openapi()
}

#[derive(utoipa::OpenApi)]
#[openapi(
    info(title = "Collie", description = "Work items that end as merged merge requests."),
    paths(
        work_items::submit, work_items::list, work_items::validate, work_items::show, progress::timeline, progress::explain,
        lifecycle::retry, lifecycle::cancel, blobs::announce, report::admit, report::associate, report::conclude, report::report,
        report::end_analysis, issues::list, issues::show, issues::history, issues::log_entry, issues::edit_metadata, requests::issues,
        requests::history, requests::tracking, letters::list, letters::show, letters::redrive, letters::abandon, service::me, service::health, service::openapi, hooks::take, errors::page
    ),
    components(schemas(ProblemDocument)),
    modifiers(&Security, &Problems)
)]
struct Document;

/// The two ways to be let in.
struct Security;

impl Modify for Security {
    fn modify(&self, openapi: &mut OpenApi) {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("JWT").build();
        let hook = ApiKey::Header(ApiKeyValue::new("X-Gitlab-Token"));
        let components = openapi.components.get_or_insert_default();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
        components.add_security_scheme("hook", SecurityScheme::ApiKey(hook));
    }
}

/// Every refusal is a problem document.
struct Problems;

impl Modify for Problems {
    fn modify(&self, openapi: &mut OpenApi) {
        for item in openapi.paths.paths.values_mut() {
            for operation in [&mut item.get, &mut item.post, &mut item.put, &mut item.patch].into_iter().flatten() {
                let responses = &mut operation.responses.responses;
                if operation.security.is_some() {
                    responses.extend(COMMON.map(|(status, codes)| (status.to_owned(), RefOr::T(described(codes)))));
                }
                responses.iter_mut().filter(|(status, _)| status.as_str() >= "400").for_each(|(_, response)| document_of(response));
            }
        }
    }
}

fn described(codes: &str) -> Response {
    ResponseBuilder::new().description(codes).build()
}

fn document_of(response: &mut RefOr<Response>) {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    if let RefOr::T(response) = response {
        response.content.insert(Problem::MEDIA_TYPE.to_owned(), RefOr::T(content));
    }
}

/// A change that is to become a merged merge request.
#[derive(ToSchema)]
#[schema(as = Submission)]
#[expect(dead_code, reason = "describes what the reader of submissions takes, field by field; a test compares the two")]
pub(crate) struct SubmissionBody {
    /// `mr`.
    item_type: String,
    /// The project's path.
    project: String,
    /// The branch that Collie is to push to.
    source_branch: String,
    /// The branch to merge into.
    target_branch: String,
    /// The title.
    title: String,
    /// The description.
    #[schema(required = false, default = "")]
    description: String,
    /// Labels.
    #[schema(required = false)]
    labels: Vec<String>,
    /// The commit message; the title where there is none.
    #[schema(required = false)]
    commit_message: String,
    /// Whether Collie merges when everything is ready.
    #[schema(required = false, default = false)]
    auto_merge: bool,
    /// Whether the commits are squashed.
    #[schema(required = false, default = false)]
    squash: bool,
    /// Whether the source branch goes away with the merge.
    #[schema(required = false, default = true)]
    remove_source_branch: bool,
    /// Whether the merge request is a draft.
    #[schema(required = false, default = false)]
    draft: bool,
    /// `block` or `overwrite`: what happens where the target changed what the item changes.
    #[schema(required = false, default = "block")]
    on_conflict: String,
    /// The files.
    #[schema(min_items = 1)]
    file_actions: Vec<FileActionBody>,
}

/// What is to happen to one file.
#[derive(ToSchema)]
#[schema(as = FileAction)]
#[expect(dead_code, reason = "describes what the reader of submissions takes, field by field; a test compares the two")]
pub(crate) struct FileActionBody {
    /// `create`, `update`, `delete`, `move` or `chmod`.
    action: String,
    /// The path as it will be afterwards.
    file_path: String,
    /// Where a moved file comes from.
    #[schema(required = false)]
    previous_path: String,
    /// The file, whole.
    #[schema(required = false)]
    content: String,
    /// `text` or `base64`: what content is.
    #[schema(required = false, default = "text")]
    encoding: String,
    /// Content that was uploaded before: what `POST /v1/blobs` answered.
    #[schema(required = false)]
    content_ref: String,
    /// The executable bit.
    #[schema(required = false)]
    execute_filemode: bool,
    /// `absent` or `sha256:<hex>`: what is there now.
    #[schema(required = false)]
    expect: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::submission::{ACTION_FIELDS, FIELDS};
    use std::collections::BTreeSet;

    fn fields(schema: &str) -> BTreeSet<String> {
        let document = serde_json::to_value(document()).unwrap();
        document["components"]["schemas"][schema]["properties"].as_object().unwrap().keys().cloned().collect()
    }

    #[test]
    fn the_document_shows_the_fields_that_the_reader_takes() {
        assert_eq!(fields("Submission"), FIELDS.map(str::to_owned).into());
        assert_eq!(fields("FileAction"), ACTION_FIELDS.map(str::to_owned).into());
    }
}
