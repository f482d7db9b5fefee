// Markdown as elements. Nothing is ever read as HTML: what looks like it is shown as text.

import { fromMarkdown } from 'mdast-util-from-markdown'
import { gfmStrikethroughFromMarkdown } from 'mdast-util-gfm-strikethrough'
import { gfmTableFromMarkdown } from 'mdast-util-gfm-table'
import { gfmStrikethrough } from 'micromark-extension-gfm-strikethrough'
import { gfmTable } from 'micromark-extension-gfm-table'
import type { ComponentChildren, VNode } from 'preact'
import { useMemo, useState } from 'preact/hooks'

// Span is where a run of the text comes from.
export interface Span { end: number; kind: string; round: number }

interface Node {
  type: string
  value?: string
  children?: Node[]
  position?: { start: { offset: number }; end: { offset: number } }
  depth?: number
  ordered?: boolean
  start?: number
  url?: string
  alt?: string
  align?: (string | null)[]
  lang?: string
}

const options = {
  extensions: [gfmTable(), gfmStrikethrough()],
  mdastExtensions: [gfmTableFromMarkdown(), gfmStrikethroughFromMarkdown()],
}

export function Markdown({ text, spans }: { text: string; spans: Span[] }) {
  return useMemo(() => {
    const painter = new Painter(text, spans)
    return <>{painter.all(fromMarkdown(text, options) as unknown as Node)}</>
  }, [text, spans])
}

// Plain is text as it is, coloured.
export function Plain({ text, spans }: { text: string; spans: Span[] }) {
  return useMemo(() => <pre class="plain">{new Painter(text, spans).paint(text, 0, text.length)}</pre>, [text, spans])
}

const tags: Record<string, string> = { paragraph: 'p', emphasis: 'em', strong: 'strong', delete: 'del',
  blockquote: 'blockquote', listItem: 'li', tableRow: 'tr' }

class Painter {
  constructor(readonly source: string, readonly spans: Span[]) {}

  all(node: Node): ComponentChildren[] { return (node.children ?? []).map(child => this.one(child)) }

  one(node: Node): ComponentChildren {
    const from = node.position?.start.offset ?? 0
    const to = node.position?.end.offset ?? from
    const value = node.value ?? ''
    switch (node.type) {
      case 'text': return this.paint(value, from, to)
      case 'html': return <span class="raw">{this.paint(value, from, to)}</span>
      case 'inlineCode': return <code>{this.paint(value, from, to)}</code>
      case 'code': {
        const line = this.source.indexOf('\n', from)
        const fenced = '`~'.includes(this.source[from])
        return <Code text={value} lang={node.lang ?? ''}>{this.paint(value, fenced && line >= 0 ? line + 1 : from, to)}</Code>
      }
      case 'heading': {
        const Tag = `h${Math.min(6, (node.depth ?? 1) + 2)}` as 'h3'
        return <Tag>{this.all(node)}</Tag>
      }
      case 'list': return node.ordered ? <ol start={node.start ?? 1}>{this.all(node)}</ol> : <ul>{this.all(node)}</ul>
      case 'thematicBreak': return <hr />
      case 'break': return <br />
      case 'link': return this.link(node)
      case 'image': return <span>{node.alt}</span> // nothing is loaded
      case 'table': return this.table(node)
      case 'definition': return <p class="raw">{this.paint(this.source.slice(from, to), from, to)}</p>
      case 'linkReference': case 'imageReference': return <span>{this.all(node)}</span>
    }
    const Tag = (tags[node.type] ?? 'div') as 'div'
    return <Tag>{this.all(node)}</Tag>
  }

  link(node: Node): VNode {
    if (!/^(https?:|mailto:)/i.test(node.url ?? '')) return <span>{this.all(node)}</span>
    return <a href={node.url} target="_blank" rel="noopener noreferrer nofollow">{this.all(node)}</a>
  }

  table(node: Node): VNode {
    const [head, ...rows] = node.children ?? []
    const cells = (row: Node, Tag: 'th' | 'td') => row.children?.map((cell, i) =>
      <Tag class={'align-' + (node.align?.[i] ?? 'left')}>{this.all(cell)}</Tag>)
    return <div class="scroll" tabIndex={0} role="region" aria-label="Table"><table>
      <thead><tr>{head && cells(head, 'th')}</tr></thead>
      <tbody>{rows.map(row => <tr>{cells(row, 'td')}</tr>)}</tbody>
    </table></div>
  }

  // paint gives each part of value the colour of the source's part from which it comes. Markdown drops characters of the
  // source, such as backslashes and indents: the next equal one is taken.
  paint(value: string, from: number, to: number): ComponentChildren {
    if (!this.spans.length) return value
    const parts: VNode[] = []
    let begin = 0
    let at = from
    let current = this.spanAt(from)
    const end = (i: number) => {
      const s = this.spans[current]
      if (i > begin) parts.push(<span class={'from-' + (s?.kind ?? 'target')} data-round={s?.round}>{value.slice(begin, i)}</span>)
      begin = i
    }
    for (let i = 0; i < value.length; i++) {
      const found = this.source.indexOf(value[i], at)
      if (found >= 0 && found < to) at = found
      while (current < this.spans.length && this.spans[current].end <= at) {
        end(i)
        current++
      }
      if (found >= 0 && found < to) at++
    }
    end(value.length)
    return parts
  }

  // spanAt is the first span that ends after a place.
  spanAt(at: number): number {
    let low = 0
    let high = this.spans.length
    while (low < high) {
      const mid = (low + high) >> 1
      if (this.spans[mid].end <= at) low = mid + 1
      else high = mid
    }
    return low
  }
}

function Code({ text, lang, children }: { text: string; lang: string; children: ComponentChildren }) {
  return <figure class="code">
    <figcaption><span>{lang || 'text'}</span><Copy text={text} what="code" /></figcaption>
    <pre tabIndex={0} aria-label={lang ? lang + ' code' : 'code'}><code>{children}</code></pre>
  </figure>
}

export function Copy({ text, what }: { text: string; what: string }) {
  const [done, setDone] = useState(false)
  const copy = async () => {
    try { await navigator.clipboard.writeText(text) } catch { return }
    setDone(true)
    setTimeout(() => setDone(false), 1500)
  }
  return <button type="button" class="quiet" onClick={copy} aria-label={`Copy ${what}`}>{done ? 'Copied' : 'Copy'}</button>
}
