// The clients that npm has, against grove serve itself. GROVE names a built command.
import Anthropic from '@anthropic-ai/sdk'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateObject, generateText, jsonSchema, streamText, tool } from 'ai'
import OpenAI from 'openai'
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, test } from 'node:test'

const here = new URL('.', import.meta.url).pathname
const dir = mkdtempSync(join(tmpdir(), 'grove-conformance-'))
let server, url, openai, anthropic, vercel

before(async () => {
  let grove = process.env.GROVE
  if (!grove) {
    grove = join(dir, 'grove')
    execFileSync('go', ['build', '-o', grove, './cmd/grove'], { cwd: join(here, '../../..'), stdio: 'inherit' })
  }
  server = spawn(grove, ['serve', '--port', '0', '--template', join(here, '../template.jinja')], { stdio: ['ignore', 'pipe', 'ignore'] })
  for await (const line of createInterface({ input: server.stdout })) {
    if (url = line.match(/http:\S+/)?.[0]) break
  }
  openai = new OpenAI({ baseURL: url + '/v1', apiKey: 'x', maxRetries: 0 })
  anthropic = new Anthropic({ baseURL: url, apiKey: 'x', maxRetries: 0 })
  vercel = createOpenAICompatible({ name: 'grove', baseURL: url + '/v1', supportsStructuredOutputs: true, includeUsage: true })
}, { timeout: 300_000 })

after(() => {
  server?.kill('SIGKILL')
  rmSync(dir, { recursive: true, force: true })
})

const messages = [{ role: 'user', content: 'func main() {' }]
const schema = { type: 'object', properties: { size: { type: 'integer' } }, required: ['size'], additionalProperties: false }

// fits says whether text matches the schema.
const fits = text => Number.isInteger(JSON.parse(text).size)

// cancelled cancels a stream after some events.
async function cancelled(stream, abort) {
  let n = 0
  for await (const _ of stream) if (++n === 4) abort()
  return n
}

test('openai: chat completions', async () => {
  const chat = { model: 'grove', messages, max_tokens: 60, temperature: 0 }
  for (const more of [{}, { logprobs: true, top_logprobs: 2 }, { stop: '\n' },
    { response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } },
    { tools: [{ type: 'function', function: { name: 'resize', parameters: schema } }], tool_choice: 'required', parallel_tool_calls: false }]) {
    const whole = await openai.chat.completions.create({ ...chat, ...more })
    const runner = openai.chat.completions.stream({ ...chat, ...more, stream_options: { include_usage: true } })
    const streamed = await runner.finalChatCompletion()
    const [a, b] = [streamed.choices[0], whole.choices[0]]
    assert.equal(a.message.content ?? '', b.message.content ?? '')
    assert.equal(a.finish_reason, b.finish_reason)
    assert.equal(streamed.usage.completion_tokens, whole.usage.completion_tokens)
    assert.equal(a.logprobs?.content?.length, b.logprobs?.content?.length)
    if (more.logprobs) assert.equal(b.logprobs.content[0].top_logprobs.length, 2)
    if (more.response_format) assert.ok(fits(b.message.content))
    if (more.tools) {
      const [x, y] = [a, b].map(c => c.message.tool_calls[0].function)
      assert.deepEqual([x.name, x.arguments], [y.name, y.arguments])
      assert.equal(y.name, 'resize')
      assert.ok(fits(y.arguments))
    }
  }
})

test('openai: responses and embeddings', async () => {
  const ask = { model: 'grove', input: 'func main() {', max_output_tokens: 60, temperature: 0 }
  for (const more of [{}, { text: { format: { type: 'json_schema', name: 'x', schema } } },
    { tools: [{ type: 'function', name: 'resize', parameters: schema, strict: true }], tool_choice: 'required', parallel_tool_calls: false }]) {
    const whole = await openai.responses.create({ ...ask, ...more })
    const streamed = await openai.responses.stream({ ...ask, ...more }).finalResponse()
    assert.equal(streamed.output_text, whole.output_text)
    assert.equal(streamed.status, whole.status)
    if (more.text) assert.ok(fits(whole.output_text))
    if (more.tools) {
      assert.equal(whole.output[0].name, 'resize')
      assert.equal(streamed.output[0].arguments, whole.output[0].arguments)
    }
  }
  const vectors = await openai.embeddings.create({ model: 'grove', input: ['a', 'b'] }) // the client asks for base64
  assert.equal(vectors.data.length, 2)
  assert.ok(Math.abs(vectors.data[0].embedding.reduce((sum, x) => sum + x * x, 0) - 1) < 1e-5)
})

test('openai: errors and cancelling', async () => {
  await assert.rejects(openai.chat.completions.create({ model: 'grove', messages, top_p: 2 }),
    e => e instanceof OpenAI.BadRequestError && e.param === 'top_p')
  await assert.rejects(openai.models.retrieve('other'), OpenAI.NotFoundError)
  const stream = await openai.chat.completions.create({ model: 'grove', messages, max_tokens: 1500, ignore_eos: true, stream: true })
  assert.ok(await cancelled(stream, () => stream.controller.abort()) < 500)
  await openai.chat.completions.create({ model: 'grove', messages, max_tokens: 2 })
})

test('anthropic: messages', async () => {
  const ask = { model: 'grove', messages, max_tokens: 60, temperature: 0, system: 'Be brief.' }
  for (const more of [{}, { output_config: { format: { type: 'json_schema', schema } } },
    { tools: [{ name: 'resize', input_schema: schema }], tool_choice: { type: 'tool', name: 'resize' } }]) {
    const whole = await anthropic.messages.create({ ...ask, ...more })
    const streamed = await anthropic.messages.stream({ ...ask, ...more }).finalMessage()
    assert.equal(streamed.stop_reason, whole.stop_reason)
    assert.equal(streamed.usage.output_tokens, whole.usage.output_tokens)
    assert.equal(streamed.content[0].text, whole.content[0].text)
    if (more.output_config) assert.ok(fits(whole.content[0].text))
    if (more.tools) {
      assert.equal(whole.content[0].name, 'resize')
      assert.deepEqual(streamed.content[0].input, whole.content[0].input)
      assert.ok(fits(JSON.stringify(whole.content[0].input)))
    }
    const { input_tokens: n } = await anthropic.messages.countTokens({ model: 'grove', messages, system: ask.system, tools: more.tools })
    assert.equal(n, whole.usage.input_tokens + whole.usage.cache_read_input_tokens)
  }
})

test('anthropic: errors and cancelling', async () => {
  const ask = { model: 'grove', messages, max_tokens: 1500 }
  await assert.rejects(anthropic.messages.create({ ...ask, top_p: 2 }), e => e instanceof Anthropic.BadRequestError && e.requestID.length > 9)
  const stream = await anthropic.messages.create({ ...ask, ignore_eos: true, stream: true })
  assert.ok(await cancelled(stream, () => stream.controller.abort()) < 500)
  await anthropic.messages.create({ ...ask, max_tokens: 2 })
})

test("Vercel's ai", async () => {
  const ask = { model: vercel('grove'), prompt: 'func main() {', maxOutputTokens: 60, temperature: 0, maxRetries: 0 }
  const whole = await generateText(ask)
  const stream = streamText(ask)
  let text = ''
  for await (const piece of stream.textStream) text += piece
  assert.equal(text, whole.text)
  assert.equal((await stream.usage).outputTokens, whole.usage.outputTokens)

  const tools = { resize: tool({ inputSchema: jsonSchema(schema) }) }
  const called = await generateText({ ...ask, tools, toolChoice: 'required' })
  assert.equal(called.toolCalls[0].toolName, 'resize')
  assert.ok(Number.isInteger(called.toolCalls[0].input.size))
  const calls = []
  for await (const part of streamText({ ...ask, tools, toolChoice: 'required', onError() {} }).fullStream) if (part.type === 'tool-call') calls.push(part.input)
  assert.deepEqual(calls, called.toolCalls.map(c => c.input))

  const { object } = await generateObject({ ...ask, maxOutputTokens: 300, schema: jsonSchema(schema) })
  assert.ok(Number.isInteger(object.size))

  await assert.rejects(generateText({ ...ask, topP: 2 }), e => e.statusCode === 400 && /top_p/.test(e.message))
  const abort = new AbortController()
  const long = streamText({ ...ask, maxOutputTokens: 1500, abortSignal: abort.signal, onError() {} })
  await cancelled(long.textStream, () => abort.abort())
  assert.ok((await generateText({ ...ask, maxOutputTokens: 2 })).usage.outputTokens > 0)
})

test("Vercel's clients of vendors: text, a second turn and tools", async () => {
  const anthropic = createAnthropic({ baseURL: url + '/v1', apiKey: 'x' }), openai = createOpenAI({ baseURL: url + '/v1', apiKey: 'x' })
  for (const model of [anthropic('grove'), openai.responses('grove'), openai.chat('grove')]) {
    const ask = { model, maxOutputTokens: 60, temperature: 0, maxRetries: 0 }
    const question = { role: 'user', content: 'func main() {' }
    const first = await generateText({ ...ask, messages: [question] })
    const second = await generateText({ ...ask, messages: [question, ...first.response.messages, { role: 'user', content: 'more' }] })
    assert.ok(second.usage.inputTokens > first.usage.inputTokens)
    let text = ''
    for await (const piece of streamText({ ...ask, messages: [question] }).textStream) text += piece
    assert.equal(text, first.text)
    const tools = { resize: tool({ inputSchema: jsonSchema(schema) }) }
    const called = await generateText({ ...ask, messages: [question], tools, toolChoice: 'required' })
    assert.ok(Number.isInteger(called.toolCalls[0].input.size))
  }
})
