// The server's API, as far as the page uses it.

export interface Tree { tokens: number[]; texts: string[]; parents: number[]; logprobs: number[] }

export interface Piece { text: string; drafted: boolean }

export interface Round {
  choice: number
  tokens: number[]
  pieces: Piece[]
  clock_ms: number
  tree?: Tree // absent for the token that the prompt's pass gave
  path?: number[]
  next?: string // the model's own token after the path
  budget?: number
  draft_ms?: number
  verify_ms?: number
}

export interface Status {
  model: string
  chat: boolean
  context: number
  budget: number
  drafter: string
  drafters: string[]
}

// Figures are the server's metrics of a model by name; those of a drafter are named "NAME DRAFTER".
export type Figures = Map<string, number>

export interface Event {
  choices: { index: number; finish_reason?: string | null; delta?: { content?: string; reasoning_content?: string } }[]
  round?: Round
  error?: { message: string }
}

export class ApiError extends Error {
  constructor(readonly status: number, message: string) { super(message) }
}

// The key stays in this tab, and is forgotten with it.
const keyName = 'grove-key'
export const setKey = (key: string) => sessionStorage.setItem(keyName, key)

async function call(path: string, init: RequestInit = {}): Promise<Response> {
  const headers: Record<string, string> = { 'Content-Type': 'application/json' }
  const key = sessionStorage.getItem(keyName)
  if (key) headers.Authorization = 'Bearer ' + key
  let answer: Response
  try {
    answer = await fetch('.' + path, { ...init, headers }) // the page may stand below a path of a proxy
  } catch (err) {
    if (init.signal?.aborted) throw err
    throw new ApiError(0, 'The server cannot be reached.')
  }
  if (answer.ok) return answer
  const text = await answer.text()
  let message = `status ${answer.status}`
  try { message = JSON.parse(text).error.message } catch { /* not this server's form */ }
  throw new ApiError(answer.status, message)
}

export const getStatus = async (model: string): Promise<Status> => (await call('/status?model=' + encodeURIComponent(model))).json()

export async function getFigures(model: string): Promise<Figures> {
  const text = await (await call('/metrics')).text()
  const lines = text.matchAll(/^grove_(\w+)\{(?:drafter="([^"]*)",)?model="([^"]*)"\} (\S+)$/gm)
  return new Map([...lines].filter(([, , , of]) => of === model)
    .map(([, name, drafter, , value]) => [drafter ? `${name} ${drafter}` : name, Number(value)]))
}

export const getModels = async (): Promise<string[]> =>
  (await (await call('/v1/models')).json()).data.map((m: { id: string }) => m.id)

// stream sends a request and yields the events of its answer. It fails if the stream ends without its last event.
export async function* stream(path: string, body: object, signal: AbortSignal): AsyncGenerator<Event> {
  const answer = await call(path, { method: 'POST', body: JSON.stringify(body), signal })
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    let part: ReadableStreamReadResult<string>
    try {
      part = await reader.read()
    } catch (err) {
      if (signal.aborted) throw err
      part = { done: true, value: undefined }
    }
    if (part.done) throw new ApiError(0, 'The connection ended before the answer was whole.')
    rest += part.value
    for (let end; (end = rest.indexOf('\n\n')) >= 0; rest = rest.slice(end + 2)) {
      const data = rest.slice(0, end)
      if (!data.startsWith('data: ')) continue // a comment keeps the connection open
      if (data === 'data: [DONE]') return
      const event: Event = JSON.parse(data.slice(6))
      if (event.error) throw new ApiError(0, event.error.message)
      yield event
    }
  }
}
