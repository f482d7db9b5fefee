// Vercel's ai with each of its providers: an agent edits a file, by streams and whole, and answers in a schema.
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from 'ai'
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'

const [before, after, request, done] = process.argv.slice(2)
const baseURL = process.env.GROVE_URL + '/v1'
const openai = createOpenAI({ baseURL, apiKey: 'x' })
const models = {
  responses: openai.responses('scripted'), chat: openai.chat('scripted'), anthropic: createAnthropic({ baseURL, apiKey: 'x' })('scripted'),
  compatible: createOpenAICompatible({ name: 'grove', baseURL, supportsStructuredOutputs: true, includeUsage: true })('scripted'),
}
const object = (...names) => jsonSchema({ type: 'object', properties: Object.fromEntries(names.map(n => [n, { type: 'string' }])), required: names, additionalProperties: false })
const tools = {
  read_file: tool({ inputSchema: object('path'), execute: ({ path }) => readFileSync(path, 'utf8') }),
  write_file: tool({ inputSchema: object('path', 'text'), execute: ({ path, text }) => { writeFileSync(path, text); return 'written' } }),
}
for (const [name, model] of Object.entries(models)) {
  const ask = { model, tools, prompt: request, stopWhen: stepCountIs(5), maxRetries: 0 }
  writeFileSync('greeting.txt', before)
  const whole = await generateText(ask)
  assert.equal(whole.text, done, name)
  assert.equal(whole.steps.length, 3, name)
  assert.equal(readFileSync('greeting.txt', 'utf8'), after, name)

  writeFileSync('greeting.txt', before)
  const stream = streamText({ ...ask, onError({ error }) { throw error } })
  let text = ''
  for await (const piece of stream.textStream) text += piece
  assert.equal(text, done, name)
  assert.equal(readFileSync('greeting.txt', 'utf8'), after, name)
  assert.deepEqual((await stream.totalUsage).outputTokens, whole.totalUsage.outputTokens, name)

  for (const more of [{}, { tools }]) {
    const city = await generateText({ model, prompt: 'Which city is the capital of France?', output: Output.object({ schema: object('city') }), maxRetries: 0, ...more })
    assert.deepEqual(city.output, { city: 'Paris' }, name)
  }
}
