// What the page knows: conversations, which the browser keeps, settings, and the state of the server.

import { useEffect, useReducer } from 'preact/hooks'
import { ApiError, getFigures, getModels, getStatus, stream, type Figures, type Piece, type Round, type Status } from './api'

export interface Answer {
  role: 'assistant'
  text: string // all that the model wrote, reasoning included
  content: string // of chats, what the server takes for the answer
  reasoning: string
  rounds: Round[]
  drafter: string
  seed: number
  state: 'running' | 'done' | 'stopped' | 'failed'
  finish?: string
  error?: string
}

export interface Said { role: 'user'; text: string }

export type Message = Said | Answer

export interface Conversation {
  id: string
  title: string
  named: boolean // by the user
  mode: 'chat' | 'text' // text: the model continues what the messages say, without a chat template
  changed: number
  messages: Message[]
}

export interface Settings {
  model: string
  drafter: string
  temperature: number
  seed: string // empty: a random one
  budget: number // 0: the server's default
  maxTokens: number // 0: until the end
  system: string
  colour: boolean
  open: boolean // the settings are shown
  theme: 'auto' | 'light' | 'dark'
}

export interface Race { prompt: string; mode: 'chat' | 'text'; tokens: number; lanes: [Answer, Answer] | null }

const racePrompt = `func TestReadFile(t *testing.T) {
	data, err := os.ReadFile("testdata/input.txt")
	if err != nil {
		t.Fatal(err)
	}
`

export const app = {
  conversations: [] as Conversation[],
  current: null as Conversation | null,
  settings: readSettings(),
  status: null as Status | null,
  figures: null as Figures | null,
  models: [] as string[],
  problem: '', // why the server does not answer
  locked: false, // the server wants a key
  race: { prompt: racePrompt, mode: 'text', tokens: 128, lanes: null } as Race,
  running: null as AbortController | null,
  shown: null as Answer | null, // whose rounds are shown
  round: -1, // which of them; -1: the latest
  said: '', // for screen readers
}

const listeners = new Set<() => void>()
let drawn = 0
let timer = 0

// changed draws the page anew, at most 12 times a second: decoding may use the same processors.
export function changed() {
  if (timer) return
  timer = window.setTimeout(() => {
    timer = 0
    drawn = performance.now()
    listeners.forEach(draw => draw())
  }, Math.max(0, drawn + 80 - performance.now()))
}

// useApp draws a component with every change.
export function useApp() {
  const [, draw] = useReducer((n: number) => n + 1, 0)
  useEffect(() => {
    const listener = () => draw(0)
    listeners.add(listener)
    return () => { listeners.delete(listener) }
  }, [])
  return app
}

function readSettings(): Settings {
  const all: Settings = { model: '', drafter: 'auto', temperature: 0.7, seed: '', budget: 0, maxTokens: 0, system: '',
    colour: true, open: window.innerWidth >= 760, theme: 'auto' }
  try { Object.assign(all, JSON.parse(localStorage.getItem('grove-settings') ?? '{}')) } catch { /* as new */ }
  return all
}

export function set(change: Partial<Settings>) {
  Object.assign(app.settings, change)
  try { localStorage.setItem('grove-settings', JSON.stringify(app.settings)) } catch { /* no storage */ }
  document.documentElement.dataset.theme = app.settings.theme
  changed()
}

// The browser's database of conversations; without one they last as long as the page.
const database = new Promise<IDBDatabase | null>(done => {
  try {
    const open = indexedDB.open('grove', 1)
    open.onupgradeneeded = () => open.result.createObjectStore('conversations', { keyPath: 'id' })
    open.onsuccess = () => done(open.result)
    open.onerror = () => done(null)
  } catch { done(null) }
})

async function inStore<T>(mode: IDBTransactionMode, use: (s: IDBObjectStore) => IDBRequest<T>): Promise<T | undefined> {
  const db = await database
  if (!db) return undefined
  return new Promise((done, fail) => {
    const request = use(db.transaction('conversations', mode).objectStore('conversations'))
    request.onsuccess = () => done(request.result)
    request.onerror = () => fail(request.error)
  })
}

export async function readConversations() {
  app.conversations = await inStore('readonly', s => s.getAll() as IDBRequest<Conversation[]>) ?? []
  app.conversations.sort((a, b) => b.changed - a.changed)
  for (const c of app.conversations) {
    for (const m of c.messages) if (m.role === 'assistant' && m.state === 'running') m.state = 'stopped'
  }
  choose(app.conversations[0] ?? null)
}

export function save(c: Conversation) {
  void inStore('readwrite', s => s.put(c)).catch(() => say('The browser did not keep this conversation.'))
}

export function remove(c: Conversation) {
  app.conversations = app.conversations.filter(o => o !== c)
  if (app.current === c) {
    stop()
    choose(app.conversations[0] ?? null)
  }
  void inStore('readwrite', s => s.delete(c.id))
  say(`Deleted ${c.title}.`)
}

export function choose(c: Conversation | null) {
  app.current = c
  show(c?.messages.findLast(m => m.role === 'assistant') as Answer | undefined ?? null)
}

export function show(a: Answer | null, round = -1) {
  app.shown = a
  app.round = round
  changed()
}

export function say(text: string) {
  app.said = text
  changed()
}

export function stop() { app.running?.abort() }

let looking = false // a model may take long to load

// lookAtServer asks for the server's state again and again while the page is seen.
export async function lookAtServer() {
  if (document.hidden || looking) return
  looking = true
  try {
    if (!app.models.length || app.problem) app.models = await getModels()
    const model = modelNow()
    if (app.status?.model !== model || app.problem) app.status = await getStatus(model)
    app.figures = await getFigures(model)
    app.problem = ''
    app.locked = false
  } catch (err) { problem(err) }
  looking = false
  changed()
}

function problem(err: unknown) {
  app.locked = err instanceof ApiError && err.status === 401
  app.problem = err instanceof Error ? err.message : String(err)
}

const isAnswer = (m: Message): m is Answer => m.role === 'assistant'

function newAnswer(drafter: string, seed: number): Answer {
  return { role: 'assistant', text: '', content: '', reasoning: '', rounds: [], drafter, seed, state: 'running' }
}

function newSeed(): number {
  const given = Number(app.settings.seed)
  return app.settings.seed !== '' && Number.isInteger(given) ? given : Math.floor(Math.random() * 2 ** 31)
}

// modelNow is the model of the next request.
export function modelNow(): string {
  const { model } = app.settings
  return app.models.includes(model) ? model : app.models[0]
}

// drafterNow is the drafter of the next request by its own name.
export function drafterNow(): string {
  const { drafter } = app.settings
  return drafter === 'auto' ? app.status?.drafter ?? 'auto' : drafter
}

// request is the body of a request that continues messages.
function request(mode: 'chat' | 'text', messages: { role: string; text: string; content?: string; reasoning?: string }[], seed: number) {
  const s = app.settings
  const body: Record<string, unknown> = { model: modelNow(), stream: true, rounds: true, temperature: s.temperature, seed, drafter: s.drafter }
  if (s.budget) body.budget = s.budget
  if (mode === 'text') body.prompt = messages.map(m => m.text).join('')
  else {
    body.messages = messages.map(m => ({ role: m.role, content: m.reasoning ? m.content : m.text }))
    if (s.system) (body.messages as object[]).unshift({ role: 'system', content: s.system })
  }
  const most = s.maxTokens || (mode === 'text' ? 256 : 0)
  if (most) body.max_tokens = most
  return { path: mode === 'text' ? '/v1/completions' : '/v1/chat/completions', body }
}

// generate fills answers, the choices of one request, as they come.
async function generate(path: string, body: object, answers: Answer[]) {
  const running = app.running = new AbortController()
  say('The model is answering.')
  try {
    for await (const event of stream(path, body, running.signal)) {
      if (event.round) {
        const a = answers[event.round.choice]
        a.rounds.push(event.round)
        for (const p of event.round.pieces) a.text += p.text
      }
      for (const c of event.choices) {
        answers[c.index].content += c.delta?.content ?? ''
        answers[c.index].reasoning += c.delta?.reasoning_content ?? ''
        if (c.finish_reason) {
          answers[c.index].finish = c.finish_reason
          answers[c.index].state = 'done'
        }
      }
      changed()
    }
    say(`The answer is complete: ${count(answers.at(-1)!)} tokens.`)
  } catch (err) {
    if (err instanceof ApiError && err.status === 401) problem(err)
    for (const a of answers.filter(a => a.state === 'running')) {
      a.state = running.signal.aborted ? 'stopped' : 'failed'
      if (!running.signal.aborted) a.error = err instanceof Error ? err.message : String(err)
    }
    say(running.signal.aborted ? 'Stopped.' : `The answer failed: ${(err as Error).message}`)
  }
  if (app.running === running) app.running = null
  void lookAtServer()
}

// answer has the model answer the conversation as it stands.
export async function answer(c: Conversation, seed = newSeed()) {
  stop()
  const a = newAnswer(drafterNow(), seed)
  const { path, body } = request(c.mode, c.messages, seed)
  c.messages.push(a)
  c.changed = Date.now()
  show(a)
  save(c)
  await generate(path, body, [a])
  if (app.conversations.includes(c)) save(c)
}

// send adds what the user says, and has it answered.
export function send(text: string, mode: 'chat' | 'text') {
  let c = app.current
  if (!c) {
    c = { id: crypto.randomUUID?.() ?? String(Math.random()), title: '', named: false, mode, changed: 0, messages: [] }
    app.conversations.unshift(c)
    app.current = c
  }
  if (!c.named && !c.messages.length) c.title = text.trim().split('\n')[0].slice(0, 60) || 'Untitled'
  c.messages.push({ role: 'user', text })
  void answer(c)
}

// edit replaces what the user said, and all that followed it.
export function edit(c: Conversation, at: number, text: string) {
  c.messages.splice(at, c.messages.length, { role: 'user', text })
  void answer(c)
}

// regenerate answers anew.
export function regenerate(c: Conversation) {
  const last = c.messages.at(-1)
  if (last && isAnswer(last)) c.messages.pop()
  void answer(c)
}

// runRace has the server decode plainly and with the drafter, in turn.
export async function runRace() {
  stop()
  const r = app.race
  const seed = newSeed()
  const { path, body } = request(r.mode, [{ role: 'user', text: r.prompt }], seed)
  r.lanes = [newAnswer('plain', seed), newAnswer(drafterNow(), seed)]
  show(r.lanes[1])
  await generate(path, { ...body, race: true, ignore_eos: r.mode === 'text', max_tokens: r.tokens }, r.lanes)
}

export const count = (a: Answer) => a.rounds.reduce((n, r) => n + r.tokens.length, 0)

// speed is in tokens a second. The first token is the prompt's.
export function speed(a: Answer): number {
  const last = a.rounds.at(-1)
  return last && last.clock_ms > 0 ? (count(a) - a.rounds[0].tokens.length) / (last.clock_ms / 1000) : 0
}

// tau is the mean number of tokens of a pass, the prompt's left out.
export function tau(a: Answer): number {
  const rounds = a.rounds.filter(r => r.tree)
  return rounds.length ? rounds.reduce((n, r) => n + r.tokens.length, 0) / rounds.length : 0
}

// share is the part of the text that was drafted.
export function share(a: Answer): number {
  let drafted = 0
  for (const r of a.rounds) for (const p of r.pieces) if (p.drafted) drafted += p.text.length
  return a.text ? drafted / a.text.length : 0
}

// same is how many tokens from the first on are the same, and whether one differs.
export function same(a: Answer, b: Answer): { tokens: number; differ: boolean } {
  const [x, y] = [a, b].map(o => o.rounds.flatMap(r => r.tokens))
  const most = Math.min(x.length, y.length)
  let tokens = 0
  while (tokens < most && x[tokens] === y[tokens]) tokens++
  return { tokens, differ: tokens < most }
}

// kind is the class that colours text: of the model itself, drafted by a head or draft model, or looked up in the text.
export const kind = (drafter: string, drafted: Piece['drafted']) =>
  /^plain\b/.test(drafter) ? 'plain' : !drafted ? 'target' : /^lookup\b/.test(drafter) ? 'lookup' : 'drafted'

// download saves text as a file.
export function download(name: string, text: string) {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([text], { type: 'application/json' }))
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 1000)
}
