//! Over real HTTP: faults on the connection, held calls, hooks, control, and the program.

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    use std::sync::OnceLock;

    use axum::Router;
    use axum::extract::State;
    use axum::http::HeaderMap;
    use axum::routing::post;
    use gitlab_sim::{Clock, DEMO_BOT_TOKEN, DEMO_PROJECT_ID, Fault, FaultAction, Sim, Timing};
    use reqwest::{Client, Method};
    use serde_json::{Value, json};
    use tokio::net::TcpListener;
    use tokio::sync::mpsc;

    fn client() -> Client {
        static PROVIDER: OnceLock<()> = OnceLock::new();
        PROVIDER.get_or_init(|| drop(rustls::crypto::ring::default_provider().install_default()));
        Client::builder().build().unwrap()
    }

    struct Server {
        sim: Sim,
        url: String,
        client: Client,
    }

    impl Server {
        async fn start(clock: Clock) -> Self {
            let sim = Sim::demo(clock);
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            tokio::spawn(sim.clone().serve(listener));
            Self { sim, url, client: client() }
        }

        fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
            self.client.request(method, format!("{}{path}", self.url)).header("PRIVATE-TOKEN", DEMO_BOT_TOKEN)
        }

        async fn control(&self, method: Method, path: &str, body: Value) -> Value {
            let reply = self.request(method, path).json(&body).send().await.unwrap();
            assert!(reply.status().is_success(), "{path}: {}", reply.status());
            reply.json().await.unwrap()
        }

        fn branch(&self, name: &str) -> reqwest::RequestBuilder {
            self.request(Method::POST, "/api/v4/projects/demo%2Fapp/repository/branches").json(&json!({ "branch": name, "ref": "main" }))
        }

        fn has(&self, name: &str) -> bool {
            self.sim.branch_head(DEMO_PROJECT_ID, name).is_some()
        }
    }

    #[tokio::test]
    async fn faults_on_the_connection() {
        let server = Server::start(Clock::Manual).await;
        let fault = |action| server.sim.add_fault(Fault::once("POST", "/projects/:id/repository/branches", action));
        fault(FaultAction::DropBefore);
        assert!(server.branch("one").send().await.is_err());
        assert!(!server.has("one"));
        fault(FaultAction::DropAfterApplying);
        assert!(server.branch("two").send().await.is_err());
        assert!(server.has("two"));
        fault(FaultAction::FailBefore { status: 502, body: None });
        let failed = server.branch("three").send().await.unwrap();
        assert_eq!(failed.status(), 502);
        assert_eq!(failed.text().await.unwrap(), "<html><body>GitLab is not responding</body></html>");
        assert!(!server.has("three"));
        fault(FaultAction::FailAfterApplying { status: 500 });
        assert_eq!(server.branch("four").send().await.unwrap().status(), 500);
        assert!(server.has("four"));
        assert_eq!(server.branch("five").send().await.unwrap().status(), 201);
        let journal = server.sim.journal();
        let seen: Vec<_> = journal.iter().map(|entry| (entry.status, entry.applied, entry.fault.as_deref())).collect();
        assert_eq!(
            seen,
            [
                (0, false, Some("drop_before")),
                (0, true, Some("drop_after_applying")),
                (502, false, Some("fail_before")),
                (500, true, Some("fail_after_applying")),
                (201, true, None),
            ]
        );
        assert!(journal.iter().all(|entry| entry.write && entry.user.as_deref() == Some("collie-bot")));
        assert_eq!(journal[0].template, "/api/v4/projects/:id/repository/branches");
    }

    #[tokio::test]
    async fn a_held_call_is_applied_when_released_even_if_the_client_has_gone() {
        let server = Server::start(Clock::Manual).await;
        server.sim.add_fault(Fault::always("POST", "/repository/branches", FaultAction::Hold));
        let waiting = tokio::spawn(server.branch("waits").send());
        let gone = tokio::spawn(server.branch("gone").send());
        while server.sim.held_calls() < 2 {
            tokio::task::yield_now().await;
        }
        gone.abort();
        assert!(gone.await.is_err());
        let holds = server.control(Method::GET, "/_sim/holds", json!(null)).await;
        assert_eq!(holds.as_array().map(Vec::len), Some(2));
        assert!(!server.has("waits") && !server.has("gone"));
        assert_eq!(server.control(Method::POST, "/_sim/holds/release", json!(null)).await, json!({ "released": 2 }));
        assert!(server.has("waits") && server.has("gone"));
        assert_eq!(waiting.await.unwrap().unwrap().status(), 201);
    }

    #[tokio::test]
    async fn a_delay_ends_with_the_clock() {
        let server = Server::start(Clock::Manual).await;
        server
            .control(Method::POST, "/_sim/faults", json!({ "match": { "path": "/version" }, "action": { "delay": { "ms": 5_000 } } }))
            .await;
        let waiting = tokio::spawn(server.request(Method::GET, "/api/v4/version").send());
        while server.sim.held_calls() < 1 {
            tokio::task::yield_now().await;
        }
        server.control(Method::POST, "/_sim/clock/advance", json!({ "by_ms": 5_000 })).await;
        assert_eq!(waiting.await.unwrap().unwrap().status(), 200);
    }

    async fn receiver() -> (String, mpsc::UnboundedReceiver<(HeaderMap, Value)>) {
        let (sender, received) = mpsc::unbounded_channel();
        let take = async |State(sender): State<mpsc::UnboundedSender<(HeaderMap, Value)>>, headers: HeaderMap, body: axum::Json<Value>| {
            let _ = sender.send((headers, body.0));
        };
        let router = Router::new().route("/hook", post(take)).with_state(sender);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (url, received)
    }

    #[tokio::test]
    async fn hooks_are_posted_and_the_wall_clock_moves_by_itself() {
        let server = Server::start(Clock::Wall).await;
        server.sim.set_timing(|timing| *timing = Timing::quick());
        let (url, mut received) = receiver().await;
        let hook = json!({ "url": url, "token": "t", "push_events": true });
        server.request(Method::POST, "/api/v4/projects/101/hooks").json(&hook).send().await.unwrap();
        assert_eq!(server.branch("pushed").send().await.unwrap().status(), 201);
        let (headers, body) = received.recv().await.unwrap();
        assert_eq!((&headers["x-gitlab-event"], &headers["x-gitlab-token"]), (&"Push Hook".parse().unwrap(), &"t".parse().unwrap()));
        assert_eq!(headers["x-gitlab-instance"], server.url.as_str());
        assert_eq!(body["ref"], "refs/heads/pushed");
    }

    #[tokio::test]
    async fn control_mirrors_the_library() {
        let server = Server::start(Clock::Manual).await;
        let project = "/_sim/projects/demo%2Fapp";
        let push = json!({ "branch": "behind", "message": "Behind", "user": "developer",
                           "changes": [{ "path": "run.sh", "content": "true\n", "mode": "100755" }, { "path": "README.md", "content": null }] });
        let pushed = server.control(Method::POST, &format!("{project}/pushes"), push).await;
        assert_eq!(pushed["sha"].as_str(), server.sim.branch_head(DEMO_PROJECT_ID, "behind").as_deref());
        let settings = server.control(Method::PUT, &format!("{project}/settings"), json!({ "approvals_required": 2 })).await;
        assert_eq!((&settings["approvals_required"], &settings["pipelines"]), (&json!(2), &json!("branch")));
        let refused = server.request(Method::PUT, &format!("{project}/settings")).json(&json!({ "typo": 1 })).send().await.unwrap();
        assert_eq!(refused.status(), 400);
        let made = json!({ "path": "new/one", "owner": "olga", "files": { "a": "1" }, "members": { "collie-bot": "maintainer" } });
        assert_eq!(server.control(Method::POST, "/_sim/projects", made).await["id"], 102);
        let branch = server.request(Method::GET, "/api/v4/projects/new%2Fone/repository/branches/main").send().await.unwrap();
        assert_eq!(branch.json::<Value>().await.unwrap()["commit"]["author_name"], "olga");
        let document = server.control(Method::GET, "/_sim/openapi.json", json!(null)).await;
        assert_eq!(document["openapi"], "3.1.0");
    }

    #[tokio::test]
    async fn the_program_prints_its_ready_line_and_serves() {
        let mut program = Command::new(env!("CARGO_BIN_EXE_gitlab-sim"))
            .args(["--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(program.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        let url = ready["gitlab"].as_str().unwrap();
        assert_eq!((&ready["ready"], &ready["control"]), (&json!(true), &json!(format!("{url}/_sim"))));
        let token = ready["token"].as_str().unwrap();
        let user = client().get(format!("{url}/api/v4/user")).bearer_auth(token).send().await.unwrap();
        assert_eq!(user.json::<Value>().await.unwrap()["username"], "root");
        program.kill().unwrap();
        program.wait().unwrap();
    }

    #[test]
    fn seeds_in_yaml_are_planted_and_typos_refused() {
        let seed = "users:\n  - {username: ann, tokens: [{token: t1}]}\nprojects:\n  - path: a/b\n    owner: ann\n    files: {README.md: hi}\n    settings: {approvals_required: 1}\n";
        let sim = Sim::from_seed(Clock::Manual, seed).unwrap();
        let id = sim.project_id("a/b").unwrap();
        assert_eq!(sim.settings(id).unwrap().approvals_required, 1);
        assert_eq!(sim.file_at(id, "main", "README.md"), Some(b"hi".to_vec()));
        assert!(Sim::from_seed(Clock::Manual, "users: []\nprojects: []\ntypo: 1\n").is_err());
    }
}
