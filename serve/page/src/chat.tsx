// A conversation: messages, and what can be done with them.

import type { ComponentChildren } from 'preact'
import { memo } from 'preact/compat'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Copy, Markdown, Plain, type Span } from './markdown'
import { answer, app, count, edit, kind, regenerate, send, share, show, speed, stop, tau, useApp, type Answer, type Conversation } from './store'

export function Chat() {
  const { current: c, running, settings, shown } = useApp()
  const end = useRef<HTMLDivElement>(null)
  const list = useRef<HTMLDivElement>(null)
  const stuck = useRef(true) // to the end, unless the reader scrolled up
  useEffect(() => { if (stuck.current) list.current?.scrollTo({ top: list.current.scrollHeight }) })
  useEffect(() => { stuck.current = true }, [c])
  const onScroll = () => {
    const e = list.current!
    stuck.current = e.scrollHeight - e.scrollTop - e.clientHeight < 40
  }
  return <section class="chat" aria-label="Conversation">
    <div class="messages" ref={list} onScroll={onScroll} tabIndex={0} role="group" aria-label="Messages">
      {!c?.messages.length && <Welcome />}
      {c?.messages.map((m, i) => m.role === 'user'
        ? <Said key={i} c={c} at={i} text={m.text} busy={!!running} />
        : <Answered key={i} a={m} version={m.rounds.length + m.state} colour={settings.colour} shown={m === shown}
            plain={c.mode === 'text'} last={i === c.messages.length - 1} busy={!!running} c={c} />)}
      <div ref={end} />
    </div>
    <Composer key={c?.id} />
  </section>
}

function Welcome() {
  const { status } = useApp()
  const examples: [string, 'chat' | 'text'][] = status?.chat
    ? [['James has 50 pencils. James gives half of them to a friend and then buys 20 more. How many pencils does James have now?', 'chat'],
       ['// Close closes the', 'text']]
    : [['// Close closes the', 'text']]
  return <div class="welcome">
    <p>Ask {status?.model ?? 'the model'} something, or have it continue a text. Conversations stay in this browser.</p>
    {status && examples.map(([text, mode]) => <p><button type="button" onClick={() => send(text, mode)}>
      {mode === 'text' ? 'Continue: ' : ''}{text}</button></p>)}
  </div>
}

// focus takes the focus to an element when it appears.
export const focus = (e: HTMLElement | null) => e?.focus()

function Said({ c, at, text, busy }: { c: Conversation; at: number; text: string; busy: boolean }) {
  const [editing, setEditing] = useState(false)
  const done = (value: string) => {
    setEditing(false)
    edit(c, at, value)
  }
  return <article class="message user" aria-label="You">
    {editing
      ? <form onSubmit={e => { e.preventDefault(); done(String(new FormData(e.currentTarget).get('text'))) }}>
          <textarea name="text" aria-label="Edit message" ref={focus} onKeyDown={e => { if (e.key === 'Escape') setEditing(false) }}>{text}</textarea>
          <div class="actions"><button class="main">Send</button>
            <button type="button" onClick={() => setEditing(false)}>Cancel</button></div>
        </form>
      : <><pre class="plain">{text}</pre>
          <div class="actions"><button type="button" class="quiet" disabled={busy} onClick={() => setEditing(true)}>Edit</button></div></>}
  </article>
}

// spansOf says which round and which origin each part of an answer has.
export function spansOf(a: Answer): Span[] {
  const spans: Span[] = []
  let end = 0
  a.rounds.forEach((r, round) => r.pieces.forEach(p => {
    end += p.text.length
    spans.push({ end, kind: kind(a.drafter, p.drafted), round })
  }))
  return spans
}

// answerAt is where the answer begins, after the reasoning if there is any.
function answerAt(a: Answer): number {
  if (!a.reasoning) return 0
  return a.content ? Math.max(0, a.text.indexOf(a.content, a.reasoning.length)) : a.text.length
}

// spansAfter are the spans of the text from a place on.
const spansAfter = (spans: Span[], at: number) => spans.filter(s => s.end > at).map(s => ({ ...s, end: s.end - at }))

// pick shows the round of the text that was clicked.
export function pick(a: Answer, e: MouseEvent) {
  const found = (e.target as Element).closest<HTMLElement>('[data-round]')
  if (found && getSelection()?.isCollapsed !== false) {
    const trees = a.rounds.slice(0, Number(found.dataset.round) + 1).filter(r => r.tree).length
    show(a, Math.max(0, trees - 1))
  }
}

interface Shown { a: Answer; version: string; colour: boolean; shown: boolean; plain: boolean; last: boolean; busy: boolean; c: Conversation }

const Answered = memo(({ a, version, colour, shown, plain, last, busy, c }: Shown) => {
  const spans = useMemo(() => colour ? spansOf(a) : [], [a, version, colour])
  const Text = plain ? Plain : Markdown
  const cut = answerAt(a)
  return <article class={'message model' + (shown ? ' shown' : '')} aria-label="Model" aria-busy={a.state === 'running'}>
    <div class="text" onClick={e => pick(a, e)}>
      {cut > 0 && <details class="reasoning" open={!a.content}><summary>Reasoning</summary><Text text={a.text.slice(0, cut)} spans={spans} /></details>}
      <Text text={a.text.slice(cut)} spans={cut ? spansAfter(spans, cut) : spans} />
    </div>
    {a.state === 'running' && !a.text && <p class="hint">Reading the prompt …</p>}
    {a.error && <Failed>{a.error}</Failed>}
    <div class="actions">
      <Figures a={a} />
      {a.state !== 'running' && <span class="keep">
        <Copy text={a.text} what="answer" />
        {!shown && <button type="button" class="quiet" onClick={() => show(a)}>Rounds</button>}
        {last && <button type="button" class="quiet" disabled={busy} onClick={() => regenerate(c)}>Regenerate</button>}
      </span>}
    </div>
  </article>
})

export const Failed = ({ children }: { children: ComponentChildren }) => <p class="failed" role="alert">{children}</p>

// Figures is the line below an answer, and the key to its colours.
export function Figures({ a }: { a: Answer }) {
  const plain = /^plain\b/.test(a.drafter)
  return <span class="figures">
    {a.rounds.length > 0 && !plain && <><span class={'key from-' + kind(a.drafter, true)}>{a.drafter} {(100 * share(a)).toFixed(0)} %</span>
      <span class="key from-target">model {(100 - 100 * share(a)).toFixed(0)} %</span></>}
    {a.rounds.length > 1 && <span>{count(a)} tokens · {speed(a).toFixed(1)} tokens/s{plain ? '' : ` · τ ${tau(a).toFixed(2)}`}</span>}
    {a.state === 'stopped' && <span>stopped</span>}
    {a.finish === 'length' && <span>cut at the token limit</span>}
  </span>
}

function Composer() {
  const { running, status, current } = useApp()
  const [text, setText] = useState('')
  const [wanted, setMode] = useState<'chat' | 'text'>('chat')
  const mode = current?.mode ?? (status && !status.chat ? 'text' : wanted)
  const area = useRef<HTMLTextAreaElement>(null)
  const submit = () => {
    if (!text.trim() || running) return
    send(text, mode)
    setText('')
    area.current?.focus()
  }
  const mayAnswer = current?.messages.at(-1)?.role === 'user' && !running
  return <form class="composer" onSubmit={e => { e.preventDefault(); submit() }}>
    <label class="sr" for="prompt">Message</label>
    <textarea id="prompt" ref={area} value={text} rows={1} autofocus={innerWidth >= 760}
      placeholder={mode === 'text' ? 'Text to continue' : 'Message'} aria-describedby="keys"
      onInput={e => setText(e.currentTarget.value)}
      onKeyDown={e => {
        if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) {
          e.preventDefault()
          submit()
        }
      }} />
    <div class="actions">
      <label class="inline">as <select value={mode} disabled={!!current?.messages.length || !status?.chat}
        onChange={e => setMode(e.currentTarget.value as 'chat')}>
        <option value="chat">chat</option><option value="text">text to continue</option></select></label>
      <span class="hint" id="keys">Enter sends, Shift+Enter breaks the line, Esc stops</span>
      {mayAnswer && <button type="button" onClick={() => void answer(app.current!)}>Answer</button>}
      {running ? <button type="button" class="main" onClick={stop}>Stop</button>
        : <button class="main" disabled={!text.trim()}>Send</button>}
    </div>
  </form>
}
