// The page that grove serve shows.

import { render } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { setKey } from './api'
import { Chat, Failed, focus } from './chat'
import { Race } from './race'
import { Rounds } from './rounds'
import './style.css'
import { app, changed, choose, download, drafterNow, lookAtServer, modelNow, readConversations, remove, save, set, stop, useApp, type Conversation, type Settings } from './store'

type View = 'chat' | 'race' | 'rounds'

function Page() {
  const { locked, problem, said } = useApp()
  const [view, setView] = useState<View>('chat')
  const [list, setList] = useState(false) // the conversations are shown where they do not fit beside the others
  useEffect(() => {
    const onKey = (e: KeyboardEvent) => {
      if (e.key !== 'Escape') return
      setList(false)
      if (!(e.target as Element).closest('.message form')) stop()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
  const tab = (name: View, title: string) => <button type="button" class={'tab-' + name}
    aria-pressed={view === name} onClick={() => setView(name)}>{title}</button>
  return <div class={`page view-${view}`}>
    <a class="skip" href="#main">Skip to the conversation</a>
    <header>
      <button type="button" class="menu" aria-expanded={list} aria-controls="list" onClick={() => setList(!list)}>Chats</button>
      <h1>grove</h1>
      <nav aria-label="Views">{tab('chat', 'Chat')}{tab('race', 'Race')}{tab('rounds', 'Rounds')}</nav>
      <Theme />
    </header>
    <Conversations open={list} onChoose={() => { setList(false); setView('chat') }} />
    <main id="main" tabIndex={-1}>
      {locked ? <Locked /> : problem && <Failed>{problem} Trying again …</Failed>}
      <SettingsBar />
      {view === 'race' ? <Race /> : <Chat />}
    </main>
    <aside class="inspector" aria-label="Rounds and server"><Rounds /><Server /></aside>
    <div class="sr" role="status" aria-live="polite">{said}</div>
  </div>
}

function Theme() {
  const { theme } = app.settings
  const dark = theme === 'dark' || theme === 'auto' && matchMedia('(prefers-color-scheme: dark)').matches
  return <label class="inline theme">Theme <select value={theme} data-dark={dark}
    onChange={e => set({ theme: e.currentTarget.value as Settings['theme'] })}>
    <option value="auto">system</option><option value="light">light</option><option value="dark">dark</option></select></label>
}

function Locked() {
  const [key, setText] = useState('')
  const unlock = (e: Event) => {
    e.preventDefault()
    setKey(key)
    void lookAtServer()
  }
  return <div role="alert"><form class="locked" onSubmit={unlock}>
    <label for="key">This server needs an API key. It stays in this tab.</label>
    <input id="key" type="password" autocomplete="off" value={key} onInput={e => setText(e.currentTarget.value)} />
    <button class="main" disabled={!key}>Use key</button>
  </form></div>
}

function Conversations({ open, onChoose }: { open: boolean; onChoose: () => void }) {
  const { conversations, current } = useApp()
  const [naming, setNaming] = useState<Conversation | null>(null)
  const rename = (c: Conversation, title: string) => {
    if (title.trim()) {
      c.title = title.trim()
      c.named = true
      save(c)
    }
    setNaming(null)
  }
  const pickChat = (c: Conversation | null) => {
    if (c !== app.current) stop()
    choose(c)
    onChoose()
  }
  const name = (c: Conversation) => `grove-${c.title.replace(/[^\w-]+/g, '-').slice(0, 40)}.json`
  return <aside id="list" class={'list' + (open ? ' open' : '')} aria-label="Conversations">
    <button type="button" onClick={() => pickChat(null)}>New conversation</button>
    <ul>
      {conversations.map(c => <li key={c.id} class={c === current ? 'current' : ''}>
        {naming === c
          ? <form onSubmit={e => { e.preventDefault(); rename(c, String(new FormData(e.currentTarget).get('title'))) }}>
              <input name="title" aria-label="Name" ref={focus} defaultValue={c.title} onBlur={e => rename(c, e.currentTarget.value)}
                onKeyDown={e => { if (e.key === 'Escape') setNaming(null) }} />
            </form>
          : <button type="button" class="title" aria-current={c === current} onClick={() => pickChat(c)}>{c.title}</button>}
        {c === current && naming !== c && <div class="actions">
          <button type="button" class="quiet" onClick={() => setNaming(c)}>Rename</button>
          <button type="button" class="quiet" onClick={() => download(name(c), JSON.stringify(c, null, 1))}>Export</button>
          <button type="button" class="quiet" onClick={() => { if (confirm(`Delete “${c.title}”?`)) remove(c) }}>Delete</button>
        </div>}
      </li>)}
    </ul>
    {conversations.length > 0 && <button type="button" class="quiet"
      onClick={() => download('grove-conversations.json', JSON.stringify(conversations, null, 1))}>Export all</button>}
  </aside>
}

function SettingsBar() {
  const { settings: s, status, models } = useApp()
  const drafters = status ? [...new Set(['auto', ...status.drafters, s.drafter])] : [s.drafter]
  const number = (e: Event) => Number((e.currentTarget as HTMLInputElement).value) || 0
  const now = `${drafterNow()}, temperature ${s.temperature}, seed ${s.seed || 'random'}`
  return <details class="settings" open={s.open} onToggle={e => { if (e.currentTarget.open !== s.open) set({ open: e.currentTarget.open }) }}>
    <summary>Settings{!s.open && <span class="now">: {now}</span>}</summary>
    <div class="fields">
      <label>Model <select value={modelNow()} onChange={e => { set({ model: e.currentTarget.value }); void lookAtServer() }}>
        {models.map(m => <option>{m}</option>)}</select></label>
      <label>Drafter <select value={s.drafter} onChange={e => set({ drafter: e.currentTarget.value })}>
        {drafters.map(d => <option value={d}>{d === 'auto' && status ? `auto (${status.drafter})` : d}</option>)}</select></label>
      <label>Budget <input type="number" min={2} max={4096} placeholder={String(status?.budget ?? '')} value={s.budget || ''}
        onInput={e => set({ budget: number(e) })} /></label>
      <label>Temperature <input type="number" min={0} max={2} step={0.1} value={s.temperature}
        onInput={e => set({ temperature: number(e) })} /></label>
      <label>Seed <input type="number" min={0} placeholder="random" value={s.seed} onInput={e => set({ seed: e.currentTarget.value })} /></label>
      <label>Most tokens <input type="number" min={1} placeholder="none" value={s.maxTokens || ''}
        onInput={e => set({ maxTokens: number(e) })} /></label>
      <label class="wide">System message <input value={s.system} onInput={e => set({ system: e.currentTarget.value })} /></label>
      <label class="check"><input type="checkbox" checked={s.colour} onChange={e => set({ colour: e.currentTarget.checked })} />
        Colour text by origin</label>
    </div>
  </details>
}

const size = (bytes: number) => bytes >= 2 ** 30 ? (bytes / 2 ** 30).toFixed(2) + ' GiB' : (bytes / 2 ** 20).toFixed(1) + ' MiB'

function Server() {
  const { figures, status } = useApp()
  if (!figures || !status) return null
  const f = (name: string) => figures.get(name) ?? 0
  const drafters = [...figures.keys()].filter(k => k.startsWith('drafter_rounds_total ') && f(k)).map(k => k.slice(k.indexOf(' ')))
  const limit = f('cache_limit_bytes')
  const kept = f('cache_dir_bytes')
  const found = f('cache_dir_blocks_read_total')
  const missed = f('cache_dir_blocks_missed_total')
  return <section class="server" aria-label="Server">
    <h2>Server</h2>
    <dl class="facts">
      <div><dt>running</dt><dd>{f('requests_running')}</dd></div>
      <div><dt>waiting</dt><dd>{f('requests_waiting')}</dd></div>
      <div><dt>tokens</dt><dd>{f('generated_tokens_total').toLocaleString('en')}</dd></div>
      <div><dt>cache</dt><dd>{size(f('cache_bytes'))}{limit ? ' of ' + size(limit) : ''}</dd></div>
      <div><dt>from cache</dt><dd>{(100 * f('cached_tokens_total') / Math.max(1, f('prompt_tokens_total'))).toFixed(0)} %</dd></div>
      {kept > 0 && <div><dt>on disk</dt><dd>{size(kept)}</dd></div>}
      {kept > 0 && <div><dt>found there</dt><dd>{found + missed ? (100 * found / (found + missed)).toFixed(0) + ' %' : '–'}</dd></div>}
      <div><dt>context</dt><dd>{status.context.toLocaleString('en')}</dd></div>
    </dl>
    {limit > 0 && <meter min={0} max={limit} value={f('cache_bytes')} aria-label="Cache in use" />}
    {drafters.length > 0 && <table>
      <thead><tr><th>Drafter</th><th>Rounds</th><th>τ</th><th>Accepted</th><th>Speed-up</th></tr></thead>
      <tbody>{drafters.map(d => {
        const speedup = f('drafter_speedup_ratio' + d)
        return <tr><td>{d}</td><td>{f('drafter_rounds_total' + d)}</td><td>{f('drafter_tokens_per_round' + d).toFixed(2)}</td>
          <td>{(100 * f('drafter_accepted_tokens_total' + d) / Math.max(1, f('drafter_drafted_tokens_total' + d))).toFixed(0)} %</td>
          <td>{speedup ? speedup.toFixed(2) + ' ×' : '–'}</td></tr>
      })}</tbody>
    </table>}
  </section>
}

document.documentElement.dataset.theme = app.settings.theme
render(<Page />, document.getElementById('app')!)
void readConversations().then(changed)
void lookAtServer()
setInterval(lookAtServer, 2000)
document.addEventListener('visibilitychange', () => void lookAtServer())
