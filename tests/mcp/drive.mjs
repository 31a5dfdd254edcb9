// A session of the official TypeScript client with a server: the same each time.
//
//     node drive.mjs MODULES LINE SERVER COMMAND [ARGUMENT...]
//
// LINE is `newest` or `2025-06-18`: the client of that time.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, line, name, command, ...args] = process.argv.slice(2);
const isNewest = line === "newest";
const require = createRequire(`${modules}/`);
const load = (path) => import(pathToFileURL(require.resolve(path)).href);
const sdk = `sdk-${line}`;
const { Client } = await load(isNewest ? "@modelcontextprotocol/client" : `${sdk}/client/index.js`);
const { StdioClientTransport } = await load(
  isNewest ? "@modelcontextprotocol/client/stdio" : `${sdk}/client/stdio.js`,
);
const types = isNewest ? undefined : await load(`${sdk}/types.js`);

const client = new Client(
  { name: "driver", version: "1" },
  // The newest one asks first whether the server speaks a protocol without `initialize`.
  { capabilities: { sampling: {}, elicitation: {} }, versionNegotiation: { mode: "auto" } },
);
const answer = (method, schema, handler) =>
  client.setRequestHandler(isNewest ? method : types[schema], handler);
answer("sampling/createMessage", "CreateMessageRequestSchema", async () => ({
  role: "assistant",
  content: { type: "text", text: "sampled" },
  model: "m",
}));
answer("elicitation/create", "ElicitRequestSchema", async () => ({ action: "decline" }));

const call = (name, args = {}, options) =>
  isNewest
    ? client.callTool({ name, arguments: args }, options)
    : client.callTool({ name, arguments: args }, undefined, options);
// An error of the protocol, also where the client makes one of the server's answer.
const fails = (promise) =>
  promise.then(
    () => Promise.reject(new Error("it did not fail")),
    () => {},
  );
const anything = {
  "~standard": { version: 1, vendor: "driver", validate: (value) => ({ value }) },
};
const folder = process.env.TEST_FOLDER;

const sessions = {
  async everything() {
    await client.listResources();
    await client.listPrompts();
    await call("echo", { message: "hallo ☀" });
    await call("get-tiny-image");
    await call("get-structured-content", { location: "New York" });
    await Promise.all([1, 2, 3, 4].map((a) => call("get-sum", { a, b: 1 })));
    const steps = [];
    await call(
      "trigger-long-running-operation",
      { duration: 0.4, steps: 4 },
      { onprogress: (progress) => steps.push(progress) },
    );
    await call("trigger-sampling-request", { prompt: "p", maxTokens: 5 });
    await call("no-such-tool").catch(() => {});
    // No method of this name: neither client nor proxy knows it.
    const method = { method: "no/such/method", params: { a: 1 } };
    await fails(client.request(method, isNewest ? anything : types.EmptyResultSchema));
  },
  async filesystem() {
    await call("write_file", { path: `${folder}/b.txt`, content: "b" });
    await call("read_multiple_files", { paths: [`${folder}/b.txt`, `${folder}/none`] });
    await call("list_directory", { path: folder });
  },
  async memory() {
    const entities = [{ name: "Bo", entityType: "dog", observations: [] }];
    await call("create_entities", { entities });
    await call("open_nodes", { names: ["Bo"] });
  },
  async "sequential-thinking"() {
    const thought = { thought: "first", thoughtNumber: 1, totalThoughts: 1 };
    await call("sequentialthinking", { ...thought, nextThoughtNeeded: false });
  },
  async git() {
    await call("git_status", { repo_path: folder });
    await call("git_add", { repo_path: folder, files: ["a.txt"] });
    await call("git_commit", { repo_path: folder, message: "one" });
    await call("git_show", { repo_path: folder, revision: "HEAD" });
  },
  async time() {
    const zones = { source_timezone: "Europe/Oslo", target_timezone: "Asia/Tokyo" };
    await call("convert_time", { ...zones, time: "12:30" });
    await call("convert_time", { ...zones, time: "late" });
  },
  async fetch() {
    await call("fetch", { url: process.env.TEST_PAGE });
    await call("fetch", { url: `${process.env.TEST_PAGE}/missing` });
  },
  async examples() {
    await call("weather", { city: "Oslo" });
    await call("picture");
    await call("fails");
    await call("send", { to: "eve" });
    const abort = new AbortController();
    const cancelled = call("slow", { seconds: 20 }, {
      signal: abort.signal,
      onprogress: () => abort.abort("enough"),
    });
    await fails(cancelled);
  },
};

const transport = new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });
await client.connect(transport);
await client.listTools();
await sessions[name]();
// The newest protocol has no ping.
await client.ping().catch(() => client.listTools());
await client.close();
