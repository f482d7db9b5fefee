// The rounds of an answer: tree, step by step, and figures over time.

import { useEffect, useRef } from 'preact/hooks'
import type { Round } from './api'
import { Chart, mean } from './charts'
import { show, speed, tau, useApp, type Answer } from './store'
import { TreeView } from './tree'

const smooth = 8 // rounds of a moving mean
const stay = 250 // milliseconds that a tree stays while others come

export function Rounds() {
  const { shown, round } = useApp()
  if (!shown?.rounds.some(r => r.tree)) {
    return <section class="rounds" aria-label="Rounds"><h2>Rounds</h2>
      <p class="hint">{shown?.state === 'running' ? 'Reading the prompt …' : 'Each pass of the model verifies a tree of drafted tokens. Send a message to see the trees grow.'}</p>
    </section>
  }
  return <Stepper answer={shown} round={round} />
}

function Stepper({ answer, round }: { answer: Answer; round: number }) {
  const rounds = answer.rounds.filter(r => r.tree)
  const last = rounds.length - 1
  const live = round < 0
  const at = useCalm(live ? last : Math.min(round, last), live && answer.state === 'running', answer)
  const r = rounds[at]
  const go = (to: number) => show(answer, Math.max(0, Math.min(to, last)))
  useMark(answer, r)
  const nodes = r.tree!.tokens.length
  const clocks = answer.rounds.filter(o => o.tree).map((o, i, all) => o.clock_ms - (i ? all[i - 1].clock_ms : answer.rounds[0].clock_ms))
  const speeds = mean(rounds.map(o => o.tokens.length), smooth).map((n, i) => 1000 * n / Math.max(mean(clocks, smooth)[i], 1e-3))
  const running = answer.state === 'running'
  return <section class="rounds" aria-label="Rounds">
    <div class="bar">
      <h2>Round {at + 1} <span class="of">of {rounds.length}</span></h2>
      <button type="button" onClick={() => go(at - 1)} disabled={at === 0} aria-label="Previous round">‹</button>
      <input type="range" min={1} max={rounds.length} value={at + 1} aria-label="Round"
        aria-valuetext={`round ${at + 1} of ${rounds.length}`} onInput={e => go(Number(e.currentTarget.value) - 1)} />
      <button type="button" onClick={() => go(at + 1)} disabled={at === last} aria-label="Next round">›</button>
      <button type="button" aria-pressed={live} onClick={() => show(answer, live ? at : -1)}>Latest</button>
    </div>
    <dl class="facts">
      <div><dt>verified</dt><dd>{nodes} {nodes === 1 ? 'node' : 'nodes'} of {r.budget}</dd></div>
      <div><dt>accepted</dt><dd>{r.path!.length - 1} + {r.tokens.length - r.path!.length + 1}</dd></div>
      <div><dt>drafting</dt><dd>{r.draft_ms!.toFixed(1)} ms</dd></div>
      <div><dt>verifying</dt><dd>{r.verify_ms!.toFixed(1)} ms</dd></div>
    </dl>
    <TreeView round={r} grow={live && running} onStep={by => go(at + by)} />
    <div class="charts">
      <Chart name="τ, tokens a pass" value={tau(answer).toFixed(2)} values={mean(rounds.map(o => o.tokens.length), smooth)} at={at} onPick={go} />
      <Chart name="tokens/s" value={speed(answer).toFixed(1)} values={speeds} at={at} onPick={go} />
      <Chart name="nodes verified" value={mean(rounds.map(o => o.tree!.tokens.length), rounds.length).at(-1)!.toFixed(1)}
        values={rounds.map(o => o.tree!.tokens.length)} limits={rounds.map(o => o.budget!)} at={at} onPick={go} />
    </div>
  </section>
}

// useCalm holds the latest round back while the one before it has just come.
function useCalm(at: number, live: boolean, answer: Answer): number {
  const held = useRef({ at, answer, since: 0 })
  const now = performance.now()
  if (!live || held.current.answer !== answer || now - held.current.since >= stay) held.current = { at, answer, since: now }
  return held.current.at
}

// useMark marks the round's text where the answer is shown.
function useMark(answer: Answer, r: Round) {
  useEffect(() => {
    const mark = String(answer.rounds.indexOf(r))
    for (const e of document.querySelectorAll('.shown .mark')) e.classList.remove('mark')
    if (answer.state === 'running') return
    for (const e of document.querySelectorAll(`.shown [data-round="${mark}"]`)) e.classList.add('mark')
  })
}
