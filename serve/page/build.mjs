// Bundles the page into dist/, which package serve embeds. With --check it writes nothing, and fails if dist/ is stale.
import * as esbuild from 'esbuild'
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'

const here = new URL('./', import.meta.url).pathname
const result = await esbuild.build({
  absWorkingDir: here,
  entryPoints: { app: 'src/app.tsx' },
  outdir: 'dist',
  bundle: true,
  minify: true,
  write: false,
  metafile: true,
  format: 'esm',
  target: 'es2022',
  charset: 'utf8',
  legalComments: 'none', // licenses.txt has them
  jsx: 'automatic',
  jsxImportSource: 'preact',
  conditions: ['worker'], // of micromark's dependencies: their forms that make no HTML elements
  logLevel: 'warning',
})

const files = new Map(result.outputFiles.map(f => [f.path.slice(f.path.lastIndexOf('/') + 1), f.text]))
files.set('index.html', readFileSync(here + 'src/index.html', 'utf8'))
files.set('licenses.txt', licenses(Object.keys(result.metafile.inputs)))

// licenses are those of the packages that the bundle has code of.
function licenses(inputs) {
  const names = new Set(inputs.map(i => i.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1]).filter(Boolean))
  return [...names].sort().map(name => {
    const dir = `${here}node_modules/${name}/`
    const { version, license } = JSON.parse(readFileSync(dir + 'package.json', 'utf8'))
    const file = readdirSync(dir).find(f => /^licen[cs]e/i.test(f))
    if (!file) throw new Error(`${name} has no file with its license`)
    return `${name} ${version} (${license})\n\n${readFileSync(dir + file, 'utf8').trim()}\n`
  }).join('\n' + '-'.repeat(72) + '\n\n')
}

let small = 0
for (const [name, text] of files) if (name !== 'licenses.txt') small += gzipSync(text, { level: 9 }).length
const limit = 250_000
if (small > limit) throw new Error(`the page has ${small} bytes compressed: at most ${limit}`)

if (process.argv.includes('--check')) {
  const stale = [...files].filter(([name, text]) => {
    const path = `${here}dist/${name}`
    return !existsSync(path) || readFileSync(path, 'utf8') !== text
  })
  if (stale.length) {
    console.error(`stale in serve/page/dist: ${stale.map(([name]) => name).join(', ')}: run npm run build there, and commit`)
    process.exit(1)
  }
} else {
  mkdirSync(here + 'dist', { recursive: true })
  for (const [name, text] of files) writeFileSync(`${here}dist/${name}`, text)
}
console.log(`page: ${small} bytes compressed`)
