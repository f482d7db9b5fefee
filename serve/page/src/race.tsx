// A race: the same prompt and seed, plainly and with the drafter, in turn on the same machine.

import { useEffect, useMemo, useRef } from 'preact/hooks'
import { Failed, Figures, pick, spansOf } from './chat'
import { Plain } from './markdown'
import { app, changed, count, drafterNow, runRace, same, share, speed, stop, tau, useApp, type Answer } from './store'

export function Race() {
  const { race, running, settings, status, shown } = useApp()
  const plain = drafterNow() === 'plain'
  return <section class="race" aria-label="Race">
    <form onSubmit={e => { e.preventDefault(); void runRace() }}>
      <label for="race-prompt">Prompt of both</label>
      <textarea id="race-prompt" rows={4} value={race.prompt} onInput={e => { race.prompt = e.currentTarget.value; changed() }} />
      <div class="actions">
        <label class="inline">as <select value={race.mode} onChange={e => { race.mode = e.currentTarget.value as 'chat'; changed() }}>
          <option value="text">text to continue</option><option value="chat" disabled={!status?.chat}>chat</option></select></label>
        <label class="inline">tokens <input type="number" min={2} max={4096} value={race.tokens}
          onInput={e => { race.tokens = Math.max(2, Number(e.currentTarget.value) || 128) }} /></label>
        <span class="hint">They take turns, a round at a time. Each is charged for its rounds alone.</span>
        {running ? <button type="button" class="main" onClick={stop}>Stop</button>
          : <button class="main" disabled={plain || !race.prompt.trim()}>Race</button>}
      </div>
      {plain && <Failed>Choose a drafter that is not plain.</Failed>}
    </form>
    {race.lanes && <>
      <Verdict lanes={race.lanes} />
      <div class="lanes">
        {race.lanes.map((a, i) => <Lane key={i} a={a} title={i ? 'Speculative: ' + a.drafter : 'Plain decoding'}
          version={a.rounds.length + a.state} colour={settings.colour} shown={a === shown} />)}
      </div>
    </>}
  </section>
}

function Verdict({ lanes: [a, b] }: { lanes: [Answer, Answer] }) {
  const { tokens, differ } = same(a, b)
  const done = a.state === 'done' && b.state === 'done'
  const ratio = speed(a) > 0 ? speed(b) / speed(a) : 0
  if (!ratio) return <div class="verdict">{a.state === 'running' ? 'Reading the prompt …' : ''}</div>
  return <div class={'verdict' + (differ ? ' differ' : '')}>
    <strong>{ratio.toFixed(2)} ×</strong> the speed of plain decoding.{' '}
    {differ ? `Token ${tokens + 1} differs: this is a bug in grove, please report it.`
      : done ? `The same ${tokens} tokens, in ${a.rounds.length - 1} and ${b.rounds.length - 1} passes.`
        : `The first ${tokens} tokens are the same.`}
    {done && !differ && <span class="sr" role="status">{`Race over: ${ratio.toFixed(2)} times the speed, the same ${tokens} tokens.`}</span>}
  </div>
}

function Lane({ a, title, version, colour, shown }: { a: Answer; title: string; version: string; colour: boolean; shown: boolean }) {
  const spans = useMemo(() => colour ? spansOf(a) : [], [a, version, colour])
  const text = useRef<HTMLDivElement>(null)
  useEffect(() => text.current?.scrollTo({ top: text.current.scrollHeight }), [version])
  return <article class={'lane' + (shown ? ' shown' : '')} aria-label={title} aria-busy={a.state === 'running'}>
    <h3>{title}</h3>
    <dl class="facts">
      <div><dt>tokens/s</dt><dd>{speed(a).toFixed(1)}</dd></div>
      <div><dt>tokens</dt><dd>{count(a)}</dd></div>
      <div><dt>passes</dt><dd>{Math.max(0, a.rounds.length - 1)}</dd></div>
      <div><dt>τ</dt><dd>{tau(a).toFixed(2)}</dd></div>
      <div><dt>drafted</dt><dd>{(100 * share(a)).toFixed(0)} %</dd></div>
    </dl>
    <progress max={app.race.tokens} value={count(a)} aria-label={`${title}: progress`} />
    <div class="text scroll" ref={text} tabIndex={0} role="group" aria-label={`${title}: text`} onClick={e => pick(a, e)}><Plain text={a.text} spans={spans} /></div>
    {a.error && <Failed>{a.error}</Failed>}
    {a.state === 'stopped' && <Figures a={a} />}
  </article>
}
