// A session of the official TypeScript client with a server: the same each time.
//
//     node drive.mjs MODULES SERVER COMMAND [ARGUMENT...]

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, name, command, ...args] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const load = (path) => import(pathToFileURL(require.resolve(path)).href);
const sdk = "@modelcontextprotocol/sdk";
const { Client } = await load(`${sdk}/client/index.js`);
const { StdioClientTransport } = await load(`${sdk}/client/stdio.js`);
const types = await load(`${sdk}/types.js`);

const client = new Client(
  { name: "driver", version: "1" },
  { capabilities: { sampling: {}, elicitation: {} } },
);
client.setRequestHandler(types.CreateMessageRequestSchema, async () => ({
  role: "assistant",
  content: { type: "text", text: "sampled" },
  model: "m",
}));
client.setRequestHandler(types.ElicitRequestSchema, async () => ({ action: "decline" }));

const call = (name, args = {}, options) =>
  client.callTool({ name, arguments: args }, undefined, options);
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
    await call("no-such-tool");
    // No method of this name: neither client nor proxy knows it.
    await client
      .request({ method: "no/such/method", params: { a: 1 } }, types.EmptyResultSchema)
      .then(
        () => Promise.reject(new Error("it exists")),
        () => {},
      );
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
    await cancelled.then(
      () => Promise.reject(new Error("it was not cancelled")),
      () => {},
    );
  },
};

const transport = new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });
await client.connect(transport);
await client.listTools();
await sessions[name]();
await client.ping();
await client.close();
