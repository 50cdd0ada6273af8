// AG-UI clients that come late: each line of stdin names one that joins the thread, or comes back to it.
// Says each event as a line of JSON, [name, type], and at last what each has of the conversation, by name.
import { createInterface } from "node:readline";
import { HttpAgent } from "@ag-ui/client";

const { BASE, TOKEN, THREAD } = process.env;
const headers = { Authorization: `Bearer ${TOKEN}` };
const agents = new Map();
const ends = [];

function join(line) {
  const [name, leaves] = line.split(" ");
  const agent = agents.get(name) ?? new HttpAgent({ url: `${BASE}/agui/dialog`, headers, threadId: THREAD });
  agents.set(name, agent);
  const onEvent = ({ event }) => {
    console.log(JSON.stringify([name, event.type]));
    if (event.type === leaves) agent.abortRun();
  };
  const over = (error) => {
    if (!leaves) throw error;
    console.log(JSON.stringify([name, "left"]));
  };
  const run = agent.runAgent({}, { onEvent });
  ends.push(leaves ? run.then(() => over(), over) : run);
}

for await (const line of createInterface({ input: process.stdin })) join(line);
await Promise.all(ends);
const told = ({ role, content, toolCalls }) =>
  toolCalls ? [role, content ?? "", ...toolCalls.map(({ function: { arguments: given } }) => given)] : [role, content];
console.log(JSON.stringify(Object.fromEntries([...agents].map(([name, { messages }]) => [name, messages.map(told)]))));
