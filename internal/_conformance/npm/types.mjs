// Writes serve/testdata/types.json: the fields of answers as the types of OpenAI's, Anthropic's and
// Ollama's clients have them, and the fields that Vercel's clients take as absent and not as null.
//
//   npm ci && npm i --no-save typescript@5.9.3 ollama@0.6.4
//   node types.mjs > ../../../serve/testdata/types.json
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { generateText } from 'ai'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import ts from 'typescript'

globalThis.AI_SDK_LOG_WARNINGS = false
const require = createRequire(import.meta.url)
const packageDir = name => {
  const main = require.resolve(name)
  return main.slice(0, main.lastIndexOf(join('node_modules', name)) + join('node_modules', name).length)
}
const openai = join(packageDir('openai'), 'resources'), anthropic = join(packageDir('@anthropic-ai/sdk'), 'resources')

// The types of answers and of events, by the file that has them.
const roots = {
  [join(openai, 'chat/completions/completions.d.ts')]: ['ChatCompletion', 'ChatCompletionChunk'],
  [join(openai, 'completions.d.ts')]: ['Completion'],
  [join(openai, 'responses/responses.d.ts')]: ['Response', 'ResponseStreamEvent'],
  [join(openai, 'embeddings.d.ts')]: ['CreateEmbeddingResponse'],
  [join(openai, 'models.d.ts')]: ['Model'],
  [join(openai, 'shared.d.ts')]: ['ErrorObject'],
  [join(anthropic, 'messages/messages.d.ts')]: ['Message', 'RawMessageStreamEvent', 'MessageTokensCount'],
  [join(anthropic, 'shared.d.ts')]: ['ErrorResponse'],
  [join(dirname(require.resolve('ollama')), 'index.d.ts')]:
    ['ChatResponse', 'GenerateResponse', 'EmbedResponse', 'EmbeddingsResponse', 'ListResponse', 'ShowResponse', 'ProgressResponse'],
}
// Fields that repeat the request, or that a client makes of the answer.
const skipped = new Set(['tools', 'tool_choice', 'instructions', 'prompt', 'parsed_arguments', 'parsed', 'output_text', '_request_id'])

const program = ts.createProgram(Object.keys(roots), { strict: true, target: ts.ScriptTarget.ES2022, moduleResolution: ts.ModuleResolutionKind.Bundler, module: ts.ModuleKind.ESNext })
const checker = program.getTypeChecker()
const objects = {}, names = new Map(), F = ts.TypeFlags

// shape is the form of a type: the name of a kind of value, {literal}, {list}, {map}, {ref} or {any: [forms]}.
function shape(type) {
  if (type.flags & (F.Any | F.Unknown | F.NonPrimitive)) return 'any'
  if (type.flags & F.StringLiteral) return { literal: type.value }
  if (type.flags & (F.String | F.TemplateLiteral)) return 'string'
  if (type.flags & F.NumberLike) return 'number'
  if (type.flags & F.BooleanLike) return 'boolean'
  if (type.flags & F.Null) return 'null'
  if (type.isIntersection() && type.types.some(t => t.flags & F.String)) return 'string'
  if (type.isUnion()) {
    const parts = type.types.filter(t => !(t.flags & F.Undefined)).map(shape)
    const forms = [...new Map(parts.map(p => [JSON.stringify(p), p])).values()]
    const open = forms.includes('string') // known texts are examples then
    const kept = forms.filter(f => !open || typeof f.literal !== 'string')
    return kept.length === 1 ? kept[0] : { any: kept }
  }
  if (checker.isArrayType(type)) return { list: shape(checker.getTypeArguments(type)[0]) }
  const index = checker.getIndexInfoOfType(type, ts.IndexKind.String)
  if (index) return { map: shape(index.type) }
  const name = type.aliasSymbol?.name ?? type.symbol?.name
  if (name === 'Date') return 'string'
  if (name === 'Map') return { map: 'any' }
  return { ref: object(type, name) }
}

// object notes the fields of an object's type, and returns its name.
function object(type, name) {
  if (names.has(type)) return names.get(type)
  const declared = type.symbol?.declarations?.[0]
  const within = declared?.parent?.parent
  if (within && ts.isModuleDeclaration(within)) name = within.name.text + '.' + name
  while (objects[name]) name += "'"
  names.set(type, name)
  const fields = objects[name] = {}
  for (const field of checker.getPropertiesOfType(type)) {
    const of = checker.getTypeOfSymbol(field)
    if (of.getCallSignatures().length || field.name.startsWith('__')) continue
    fields[field.name] = { form: skipped.has(field.name) ? 'any' : shape(of) }
    if (field.flags & ts.SymbolFlags.Optional) fields[field.name].optional = true
  }
  return name
}

const answers = {}
for (const [file, list] of Object.entries(roots)) {
  const source = program.getSourceFile(file)
  const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(source))
  for (const name of list) {
    const symbol = exported.find(s => s.name === name)
    if (!symbol) throw new Error(`${file} has no ${name}`)
    answers[name] = shape(checker.getDeclaredTypeOfSymbol(symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol))
  }
}

// What Vercel's clients refuse as null, of the fields that may be null by the types above.
const usage = { input_tokens: 1, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 1 }
const samples = [
  ['Message', f => createAnthropic({ apiKey: 'x', fetch: f })('m'), {
    id: 'm', type: 'message', role: 'assistant', model: 'm', stop_reason: 'end_turn', stop_sequence: 'x', usage,
    content: [{ type: 'thinking', thinking: 't', signature: '' }, { type: 'text', text: 't' }, { type: 'tool_use', id: 't', name: 'f', input: {} }],
  }],
  ['ChatCompletion', f => createOpenAI({ apiKey: 'x', fetch: f }).chat('m'), {
    id: 'c', object: 'chat.completion', created: 1, model: 'm', usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 't', tool_calls: [{ id: 't', type: 'function', function: { name: 'f', arguments: '{}' } }] } }],
  }],
  ['Response', f => createOpenAI({ apiKey: 'x', fetch: f }).responses('m'), {
    id: 'r', object: 'response', created_at: 1, status: 'completed', model: 'm', usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
    output: [{ type: 'reasoning', id: 'r', summary: [{ type: 'summary_text', text: 't' }] },
      { type: 'message', id: 'm', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 't', annotations: [] }] },
      { type: 'function_call', id: 'f', call_id: 'f', name: 'f', arguments: '{}', status: 'completed' }],
  }],
]
const accepts = async (model, answer) => {
  const fetch = async () => new Response(JSON.stringify(answer), { headers: { 'content-type': 'application/json' } })
  try { await generateText({ model: model(fetch), prompt: 'x', maxRetries: 0 }) } catch (e) { return e.name }
}
// places are the objects of a value with their types.
function* places(value, form) {
  for (const f of form.any ?? [form]) {
    if (f.list && Array.isArray(value)) for (const v of value) yield* places(v, f.list)
    const fields = objects[f.ref]
    if (!fields || Array.isArray(value) || typeof value !== 'object' || value === null) continue
    if (fields.type?.form?.literal && fields.type.form.literal !== value.type) continue
    yield [value, f.ref, fields]
    for (const name in fields) if (value[name] !== undefined) yield* places(value[name], fields[name].form)
  }
}
for (const [name, model, sample] of samples) {
  const fault = await accepts(model, sample)
  if (fault) throw new Error(`${name}: the sample is not accepted: ${fault}`)
  for (const [object, ref, fields] of [...places(sample, answers[name])]) {
    for (const field in fields) {
      if (object[field] !== undefined || !JSON.stringify(fields[field].form).includes('"null"')) continue
      object[field] = null
      if (await accepts(model, sample)) fields[field].absent = true
      delete object[field]
    }
  }
}

// One type a line.
const lines = o => Object.keys(o).sort().map(k => `  ${JSON.stringify(k)}: ${JSON.stringify(o[k])}`).join(',\n')
console.log(`{"answers": {\n${lines(answers)}\n},\n"objects": {\n${lines(objects)}\n}}`)
