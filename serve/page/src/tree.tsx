// The draft tree of a round: columns are depths, the accepted path is lit.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Round, Tree } from './api'

const rowHeight = 24
const boxHeight = 18
const charWidth = 7
const gap = 22
const top = 18 // for the depths
const longest = 16

interface Place { x: number; y: number; width: number; depth: number }

// visible shows a token's white space.
export function visible(text: string, most = longest): string {
  const shown = text.replaceAll(' ', '·').replaceAll('\n', '↵').replaceAll('\t', '⇥') || '∅'
  return shown.length > most ? shown.slice(0, most - 1) + '…' : shown
}

const percent = (chance: number) => (chance >= 0.095 ? (100 * chance).toFixed(0)
  : chance >= 0.0001 ? Number((100 * chance).toPrecision(1)) : 'less than 0.01') + ' %'

// childrenOf lists the children of each node.
function childrenOf(t: Tree): number[][] {
  const children: number[][] = t.parents.map(() => [])
  t.parents.forEach((p, i) => { if (p >= 0) children[p].push(i) })
  return children
}

// layOut puts children in the column after their parent's, leaves below each other, and parents beside their first child.
function layOut(t: Tree, bonus: string, path: number[]) {
  const children = childrenOf(t)
  const places: Place[] = []
  const order: number[] = [] // from the top down
  let rows = 0
  const place = (i: number, depth: number) => {
    order.push(i)
    places[i] = { x: 0, y: rows * rowHeight + top, width: visible(t.texts[i]).length * charWidth + 12, depth }
    children[i].forEach((c, k) => {
      if (k > 0) rows++
      place(c, depth + 1)
    })
  }
  place(0, 0)
  const last = path.at(-1)!
  const own: Place = { x: 0, y: 0, width: visible(bonus).length * charWidth + 12, depth: places[last].depth + 1 }
  own.y = places[last].y
  if (children[last].length) { // a row of its own, below those of the node's descendants
    const under = (i: number): number => Math.max(places[i].y, ...children[i].map(under))
    const row = under(last) + rowHeight
    for (const p of places) if (p.y >= row) p.y += rowHeight
    own.y = row
    rows++
  }
  const widths: number[] = []
  for (const p of [...places, own]) widths[p.depth] = Math.max(widths[p.depth] ?? 0, p.width)
  const columns = widths.map((_, d) => widths.slice(0, d).reduce((x, w) => x + w + gap, 0))
  for (const p of [...places, own]) p.x = columns[p.depth]
  return { children, places, order, own, columns, width: columns.at(-1)! + widths.at(-1)! + 2, height: (rows + 1) * rowHeight + top }
}

// about says everything about a node, for the line below the tree and for screen readers.
function about(t: Tree, path: number[], places: Place[], i: number): string {
  const token = JSON.stringify(t.texts[i])
  if (i === 0) return `root ${token}, the last token of the text so far`
  let chance = 1
  for (let n = i; n > 0; n = t.parents[n]) chance *= Math.exp(t.logprobs[n])
  const state = path.includes(i) ? 'accepted' : path.includes(t.parents[i]) ? 'rejected' : 'not reached'
  return `${token}, depth ${places[i].depth}, chance ${percent(Math.exp(t.logprobs[i]))}, of its path ${percent(chance)}, ${state}`
}

export function TreeView({ round, grow, onStep }: { round: Round; grow: boolean; onStep: (by: number) => void }) {
  const t = round.tree!
  const path = round.path!
  const bonus = round.next!
  const l = useMemo(() => layOut(t, bonus, path), [round])
  const [at, setAt] = useState(path.at(-1)!)
  const [hover, setHover] = useState(-1)
  const svg = useRef<SVGSVGElement>(null)
  const focused = useRef(false)
  useEffect(() => { // another round: the focus stays in the tree
    setAt(path.at(-1)!)
    setHover(-1)
    if (focused.current) move(path.at(-1)!)
  }, [round])

  function move(to: number | undefined) {
    if (to === undefined || to < 0) return
    setAt(to)
    svg.current?.querySelector<SVGGElement>(`[data-node="${to}"]`)?.focus()
  }

  function onKey(e: KeyboardEvent) {
    const at = Number((e.target as Element).getAttribute('data-node')) // the state may lag behind the keys
    const row = l.order.indexOf(at)
    const siblings = at > 0 ? l.children[t.parents[at]] : [0]
    const to: Record<string, () => void> = {
      ArrowLeft: () => move(t.parents[at]),
      ArrowRight: () => move(l.children[at].find(c => path.includes(c)) ?? l.children[at][0]),
      ArrowDown: () => move(l.order[row + 1]),
      ArrowUp: () => move(l.order[row - 1]),
      Home: () => move(0),
      End: () => move(path.at(-1)),
      PageUp: () => onStep(-1),
      PageDown: () => onStep(1),
    }
    if (!to[e.key] || e.altKey || e.ctrlKey || e.metaKey || !siblings) return
    e.preventDefault()
    to[e.key]()
  }

  const edge = (from: Place, p: Place) => {
    const x = from.x + from.width
    const mid = p.x - gap / 2
    return `M${x} ${from.y + boxHeight / 2}H${mid - 4}C${mid} ${from.y + boxHeight / 2} ${mid} ${p.y + boxHeight / 2} ${mid + 4} ${p.y + boxHeight / 2}H${p.x}`
  }
  const look = (i: number) => `node ${i === 0 ? 'root' : path.includes(i) ? 'accepted'
    : path.includes(t.parents[i]) ? 'rejected' : 'beyond'} depth-${Math.min(l.places[i].depth, 9)}`
  const node = hover >= 0 ? hover : at
  return <div class="treebox">
    <div class="scroll tree" tabIndex={0} role="group" aria-label="Draft tree">
      <svg ref={svg} width={l.width} height={l.height} role="tree" class={grow ? 'grow' : ''}
        aria-label={`Draft tree of ${t.tokens.length} nodes, ${path.length - 1} accepted`} onKeyDown={onKey}
        onFocusIn={() => { focused.current = true }} onFocusOut={() => { focused.current = false }}>
        <g aria-hidden="true">
          {l.columns.map((x, d) => <text class="depth" x={x} y={10}>{d || 'root'}</text>)}
          {l.order.filter(i => i > 0).map(i => <path d={edge(l.places[t.parents[i]], l.places[i])}
            class={`edge depth-${Math.min(l.places[i].depth, 9)} ${path.includes(i) ? 'accepted' : ''}`} />)}
          <path d={edge(l.places[path.at(-1)!], l.own)} class="edge own" />
          <g class="node own"><rect x={l.own.x + .5} y={l.own.y + .5} width={l.own.width - 1} height={boxHeight - 1} rx="3" />
            <text x={l.own.x + 6} y={l.own.y + 13}>{visible(bonus)}</text></g>
        </g>
        {l.order.map(i => <g key={i} data-node={i} role="treeitem" aria-level={l.places[i].depth + 1}
          aria-label={about(t, path, l.places, i)} aria-selected={i === at} tabIndex={i === at ? 0 : -1} class={look(i)}
          onFocus={() => setAt(i)} onClick={() => move(i)} onMouseEnter={() => setHover(i)} onMouseLeave={() => setHover(-1)}>
          <rect x={l.places[i].x + .5} y={l.places[i].y + .5} width={l.places[i].width - 1} height={boxHeight - 1} rx="3" />
        </g>)}
        <g aria-hidden="true" class="texts">
          {l.order.map(i => <text class={look(i)} x={l.places[i].x + 6} y={l.places[i].y + 13}>{visible(t.texts[i])}</text>)}
        </g>
      </svg>
    </div>
    <p class="about">{about(t, path, l.places, Math.min(node, t.tokens.length - 1))}</p>
  </div>
}
