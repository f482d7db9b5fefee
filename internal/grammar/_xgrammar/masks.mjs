// Next-token masks of xgrammar, for the Go test beside. Lines of JSON come in, a line each goes out:
//   {"vocab": [...], "stop": [...]}   byte-level texts of all tokens, and those that end a text
//   {"schema": "..."}                 begins a text; {"error": "..."} where the schema is refused
//   {"token": 5}                      adds a token; without "token", the text begins anew
// The answer is {"mask": "..."}, the bits of the tokens that may follow, as base64 of little-endian words.
import { createInterface } from 'node:readline'
import { readFileSync } from 'node:fs'
import Module, { createRequire } from 'node:module'

// The package calls itself a module and is a CommonJS script.
const file = createRequire(import.meta.url).resolve('@mlc-ai/web-xgrammar')
const script = new Module(file)
script._compile(readFileSync(file, 'utf8'), file)
const { GrammarCompiler, GrammarMatcher, TokenizerInfo } = script.exports


let info, compiler, matcher

async function answer(line) {
  if (line.vocab) {
    info = await TokenizerInfo.createTokenizerInfo(line.vocab, 'byte_level', false, line.vocab.length, line.stop)
    compiler = await GrammarCompiler.createGrammarCompiler(info, false)
    return {}
  }
  if (line.schema !== undefined) {
    matcher?.dispose()
    matcher = undefined
    // one line, with ", " and ": ", and no properties that the schema does not name
    const compiled = await compiler.compileJSONSchema(line.schema, false, -1, [', ', ': '], true)
    matcher = await GrammarMatcher.createGrammarMatcher(compiled)
  } else if (line.token === undefined) {
    matcher.reset()
  } else if (!matcher.acceptToken(line.token)) {
    return { error: `token ${line.token} is not accepted` }
  }
  if (matcher.isTerminated()) return { mask: '' }
  const mask = await matcher.getNextTokenBitmask()
  return { mask: Buffer.from(mask.buffer, mask.byteOffset, mask.byteLength).toString('base64') }
}

for await (const line of createInterface({ input: process.stdin })) {
  let out
  try {
    out = await answer(JSON.parse(line))
  } catch (err) {
    out = { error: String(err?.message ?? err) }
  }
  process.stdout.write(JSON.stringify(out) + '\n')
}
