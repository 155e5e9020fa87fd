// A client on the official TypeScript SDK: client.mjs SDK-FOLDER URL TOKEN. Prints what it finds as JSON.
import { pathToFileURL } from "node:url";

const [sdk, url, token] = process.argv.slice(2);
const load = (part) => import(pathToFileURL(`${sdk}/dist/esm/${part}`).href);
const { Client } = await load("client/index.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");
const { ElicitRequestSchema } = await load("types.js");

const client = new Client({ name: "typescript", version: "1" }, { capabilities: { elicitation: {} } });
const names = ["Ada", "Bob"];
client.setRequestHandler(ElicitRequestSchema, async () => ({ action: "accept", content: { name: names.shift() } }));
const transport = new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers: { Authorization: `Bearer ${token}` } },
});
await client.connect(transport);
const progress = [];
const { tools } = await client.listTools();
const counted = await client.callTool({ name: "office__count", arguments: { to: 3 } }, undefined, {
  onprogress: (each) => progress.push(each.progress),
});
const asked = await client.callTool({ name: "office__ask", arguments: {} });
const read = await client.readResource({ uri: "file:///a" });
console.log(JSON.stringify({
  tools: tools.map((each) => each.name),
  counted: counted.content[0].text,
  progress,
  asked: JSON.parse(asked.content[0].text).map((each) => each.content.name),
  read: read.contents[0].text,
}));
await client.close();
