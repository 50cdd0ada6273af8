// Clients of others that browsers and Node programs use, against the server at $BASE: prints one JSON object.
import { HttpAgent } from "@ag-ui/client";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, streamText, tool } from "ai";

const { BASE, TOKEN } = process.env;
const headers = { Authorization: `Bearer ${TOKEN}` };

async function agui() {
  const agent = new HttpAgent({ url: `${BASE}/agui/dialog`, headers, threadId: "agui-thread" });
  const types = [];
  const said = async (id, content) => {
    agent.addMessage({ id, role: "user", content });
    await agent.runAgent({}, { onEvent: ({ event }) => void types.push(event.type) });
  };
  await said("one", "25 m 网格");
  await said("two", "again");
  return { messages: agent.messages.map(({ role, content }) => [role, content]), first: types[0], last: types.at(-1) };
}

async function graph() {
  const agent = new HttpAgent({ url: `${BASE}/agui/steps`, headers, threadId: "graph-thread", initialState: {} });
  const types = [];
  await agent.runAgent({}, { onEvent: ({ event }) => void types.push(event.name ?? event.type) });
  return types;
}

async function aiSdk() {
  const model = createOpenAICompatible({ name: "dialoom", baseURL: `${BASE}/v1`, apiKey: TOKEN })("echo");
  const weather = tool({
    description: "Weather of a city",
    inputSchema: jsonSchema({ type: "object", properties: { city: { type: "string" } } }),
    execute: async ({ city }) => `rain in ${city}`,
  });
  const whole = await generateText({ model, prompt: "hello" });
  const pieces = [];
  for await (const piece of streamText({ model, prompt: "25 m 网格" }).textStream) pieces.push(piece);
  const called = await generateText({ model, prompt: "weather?", tools: { weather }, stopWhen: ({ steps }) => steps.length >= 2 });
  return { whole: whole.text, stream: pieces.join(""), count: pieces.length, calls: called.steps[0].toolCalls.map(({ toolName, input }) => [toolName, input]), after: called.text };
}

console.log(JSON.stringify({ agui: await agui(), graph: await graph(), aiSdk: await aiSdk() }));
