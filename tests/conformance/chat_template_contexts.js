// The conversations that the chat template test renders: one for each feature that templates treat differently.
"use strict";

const weather = {
    type: "function",
    function: {
        name: "get_weather",
        description: "Current weather in a city, \"now\" or later",
        parameters: {
            type: "object",
            properties: {
                city: { type: "string", description: "City and country, e.g. Köln, Germany" },
                unit: { type: "string", enum: ["celsius", "fahrenheit"], default: "celsius" },
                days: { type: "integer", minimum: 1, maximum: 14 },
                detail: { type: "object", properties: { wind: { type: "boolean" }, limits: { type: "array", items: { type: "number" } } } },
                tags: { type: ["array", "null"], items: { type: "string" } },
            },
            required: ["city"],
        },
        return: { type: "object", description: "temperature and sky" },
    },
};
const clock = {
    type: "function",
    function: { name: "time", description: "The time", parameters: { type: "object", properties: {}, required: [] } },
};

const user = (content) => ({ role: "user", content });
const assistant = (content, more = {}) => ({ role: "assistant", content, ...more });
const system = (content) => ({ role: "system", content });
const call = (id, name, args) => ({ id, type: "function", function: { name, arguments: args } });

const base = { tools: null, add_generation_prompt: true, bos_token: "<s>", eos_token: "</s>" };
const chat = (messages, more = {}) => ({ messages, ...base, ...more });
const turns = [user("What is 2+2?"), assistant("4."), user("And  3+3? "), assistant("\n6\n"), user("Thanks!")];
const asked = [user("Weather in Köln?"), assistant("", { tool_calls: [call("call12345", "get_weather", { city: "Köln", days: 3, detail: { wind: true } })] })];
const answered = [...asked, { role: "tool", name: "get_weather", tool_call_id: "call12345", content: "{\"temp\": 21.5, \"sky\": \"clear\"}" }];

exports.contexts = {
    "one user turn": chat([user("Hello")]),
    "one user turn, no generation prompt": chat([user("Hello")], { add_generation_prompt: false }),
    "system and user": chat([system("You are terse."), user("Hello")]),
    "several turns": chat(turns),
    "several turns with system": chat([system("  Be kind.\n"), ...turns]),
    "ends with assistant": chat(turns.slice(0, 2), { add_generation_prompt: false }),
    "system alone": chat([system("You are terse.")]),
    "user twice": chat([user("a"), user("b")]),
    "unknown role": chat([{ role: "narrator", content: "Once upon a time" }, user("go on")]),
    "developer role": chat([{ role: "developer", content: "Short answers." }, user("Hello")]),
    "no messages": chat([]),
    "empty content": chat([system(""), user(""), assistant(""), user("")]),
    "content is null": chat([user("hi"), assistant(null), user("?")]),
    "content left out": chat([user("hi"), { role: "assistant" }, user("?")]),
    "unicode": chat([system("Ä Ö ß — „Zitat“"), user("日本語 🦈🐟 \u202eabc\u200d"), assistant("e\u0301 🇩🇪"), user("\ttab\r\nline\n")]),
    "markup and quotes": chat([user("<b>\"x\" & 'y'</b> \\n {{ not a tag }} {% nor this %}"), assistant("a\\b"), user("<|im_end|>")]),
    "content parts": chat([user([{ type: "text", text: "What is " }, { type: "text", text: "this? " }]), assistant("A fish."), user([{ type: "text", text: "ok" }])]),
    "content parts with image": chat([system([{ type: "text", text: "Look closely." }]), user([{ type: "image" }, { type: "text", text: "What is this?" }, { type: "image_url", image_url: { url: "x.png" } }])]),
    "tools": chat([user("Weather in Köln?")], { tools: [weather, clock] }),
    "tools and system": chat([system("Use tools."), user("Weather in Köln?")], { tools: [weather, clock], strict: true }),
    "empty list of tools": chat([user("Hello")], { tools: [] }),
    "tool call": chat(asked, { tools: [weather] }),
    "tool call and result": chat(answered, { tools: [weather, clock] }),
    "tool call and result, then on": chat([system("Use tools."), ...answered, assistant("21.5 degrees, clear."), user("And the time?")], { tools: [weather, clock] }),
    "two tool calls and results": chat([
        user("Weather and time?"),
        assistant(null, { tool_calls: [call("aaaaaaaa1", "get_weather", { city: "Köln" }), call("aaaaaaaa2", "time", {})] }),
        { role: "tool", name: "get_weather", tool_call_id: "aaaaaaaa1", content: "21.5" },
        { role: "tool", name: "time", tool_call_id: "aaaaaaaa2", content: { hour: 13, minute: 4.5, zone: null, summer: true } },
    ], { tools: [weather, clock] }),
    "tool call with arguments as text": chat([
        user("Weather?"),
        assistant("Let me see.", { tool_calls: [call("aaaaaaaa1", "get_weather", "{\"city\": \"Köln\"}")] }),
        { role: "tool", tool_call_id: "aaaaaaaa1", content: "rain" },
    ], { tools: [weather] }),
    "tool call without function": chat([user("Weather?"), assistant("", { tool_calls: [{ id: "aaaaaaaa1", name: "get_weather", arguments: { city: "Köln" } }] })], { tools: [weather] }),
    "thinking on": chat([user("Why?")], { enable_thinking: true, thinking: true, reasoning_effort: "high" }),
    "thinking off": chat([user("Why?")], { enable_thinking: false, thinking: false, reasoning_effort: "low" }),
    "thoughts in the text": chat([user("Why?"), assistant("<think>\nhm\n\n</think>\n\nBecause."), user("Really?")], { enable_thinking: true }),
    "thoughts beside the text": chat([user("Why?"), assistant("Because.", { reasoning_content: "\nhm\n", thinking: "hm", reasoning: "hm" }), user("Really?"), assistant("Yes.", { reasoning_content: "sure" })], { add_generation_prompt: false }),
    "thoughts before a tool call": chat([
        user("Weather?"),
        assistant("", { reasoning_content: "I need the tool.", tool_calls: [call("aaaaaaaa1", "get_weather", { city: "Köln" })] }),
        { role: "tool", name: "get_weather", tool_call_id: "aaaaaaaa1", content: "rain" },
    ], { tools: [weather], enable_thinking: true }),
    "no special tokens": { messages: [user("Hello")], add_generation_prompt: true },
    "documents": chat([user("Summarise.")], { documents: [{ title: "A", text: "First." }, { title: "B", text: "Second.", doc_id: 2 }], date_string: "01 Jan 2025" }),
    "numbers": chat([user("n")], { tools: [{ type: "function", function: { name: "f", description: "d", parameters: { type: "object", properties: { a: { type: "number", default: 1.0, minimum: -0.5, maximum: 1e21, multipleOf: 1e-7, examples: [0.1, 100, 123456789012345680000, 5e-324, -0] } } } } }] }),
};
