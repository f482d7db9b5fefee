// Small charts of figures by round.

interface Chart {
  name: string
  value: string // the figure so far
  values: number[]
  limits?: number[] // drawn behind the values
  at: number // the round that is shown
  onPick: (at: number) => void
}

const width = 240
const height = 40

export function Chart({ name, value, values, limits, at, onPick }: Chart) {
  const most = Math.max(...values, ...limits ?? [], 1e-9)
  const x = (i: number) => values.length < 2 ? 0 : i / (values.length - 1) * width
  const y = (v: number) => height - 1 - Math.min(v / most, 1) * (height - 4)
  const line = (list: number[]) => list.map((v, i) => `${i ? 'L' : 'M'}${x(i).toFixed(1)} ${y(v).toFixed(1)}`).join('')
  const pick = (e: MouseEvent) => {
    const box = (e.currentTarget as Element).getBoundingClientRect()
    onPick(Math.round((e.clientX - box.left) / box.width * (values.length - 1)))
  }
  return <div class="chart">
    <div class="name">{name} <strong>{value}</strong></div>
    <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" onClick={pick}
      aria-label={`${name} by round: ${value}; from ${Math.min(...values).toFixed(1)} to ${Math.max(...values).toFixed(1)}`}>
      <path class="base" d={`M0 ${height - .5}H${width}`} />
      {limits && <path class="limit" d={line(limits)} />}
      {values.length > 1 && <path class="line" d={line(values)} />}
      {values.length > 0 && at >= 0 && <path class="at" d={`M${x(at)} 0V${height}`} />}
    </svg>
  </div>
}

// mean is the moving mean of the last n values.
export function mean(values: number[], n: number): number[] {
  let sum = 0
  return values.map((v, i) => {
    sum += v - (i >= n ? values[i - n] : 0)
    return sum / Math.min(i + 1, n)
  })
}
