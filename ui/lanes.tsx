/** Shows one lane for each node. Only the lanes in sight are in the document, so thousands of nodes scroll as fast as a few. */
import { useMemo, useRef, useState } from 'preact/hooks';
import type { NodeState } from '../src/cli/dashboard/state.ts';

/** The height of a lane in pixels, as in the style. */
const LANE = 32;
/** Lanes beyond the edge, so that a quick scroll shows no gap. */
const SPARE = 5;
const HEIGHT = 480;

const SIGNS = { done: '●', moving: '◐', failed: '✗', skipped: '◌', pending: '○' } as const;

interface LanesProps {
  readonly nodes: readonly NodeState[];
  readonly chosen: string | undefined;
  readonly open: (node: string) => void;
}

export function Lanes({ nodes, chosen, open }: LanesProps) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [focused, setFocused] = useState(0);
  const span = useMemo(() => spanOf(nodes), [nodes]);
  const first = Math.max(0, Math.floor(top / LANE) - SPARE);
  const shown = nodes.slice(first, first + Math.ceil(HEIGHT / LANE) + 2 * SPARE);
  const current = Math.min(focused, nodes.length - 1);
  const move = (event: KeyboardEvent): void => {
    const to = targetOf(event.key, current, nodes.length);
    if (event.key === 'Enter') open(nodes[current]?.name ?? '');
    if (to === undefined) return;
    event.preventDefault();
    setFocused(to);
    reveal(box.current, to);
  };
  return (
    // The list keeps the focus and names its active lane, because a lane leaves the document when it is out of sight.
    <div
      ref={box}
      class="lanes"
      role="listbox"
      tabIndex={0}
      aria-label={`${nodes.length} nodes`}
      aria-activedescendant={shown.length > 0 ? `lane-${current}` : undefined}
      onScroll={({ currentTarget }) => setTop(currentTarget.scrollTop)}
      onKeyDown={move}
    >
      <div role="presentation" style={{ height: `${nodes.length * LANE}px` }}>
        {shown.map((node, index) => (
          <Lane
            key={first + index}
            node={node}
            place={first + index}
            total={nodes.length}
            span={span}
            isChosen={node.name === chosen}
            isFocused={first + index === current}
            open={() => {
              setFocused(first + index);
              open(node.name);
            }}
          />
        ))}
      </div>
    </div>
  );
}

interface LaneProps {
  readonly node: NodeState;
  readonly place: number;
  readonly total: number;
  readonly span: Span;
  readonly isChosen: boolean;
  readonly isFocused: boolean;
  readonly open: () => void;
}

function Lane({ node, place, total, span, isChosen, isFocused, open }: LaneProps) {
  return (
    <div
      id={`lane-${place}`}
      role="option"
      aria-selected={isChosen}
      aria-setsize={total}
      aria-posinset={place + 1}
      class={`lane ${node.phase}${isFocused ? ' focused' : ''}`}
      style={{ transform: `translateY(${place * LANE}px)` }}
      onClick={open}
    >
      <span class="sign" aria-hidden="true">
        {SIGNS[node.phase]}
      </span>
      <span class="name">{node.name}</span>
      <span class="state">{node.state}</span>
      <Bar node={node} span={span} />
    </div>
  );
}

export function Bar({ node, span }: { readonly node: NodeState; readonly span: Span }) {
  return (
    <span class="bar" aria-hidden="true">
      {node.steps.map(({ word, from, to }) => (
        <span
          key={from}
          title={word}
          class={`step ${word.replaceAll(' ', '-')}`}
          style={{
            left: `${(100 * (from - span.from)) / span.ms}%`,
            width: `${Math.max(0.5, (100 * (to - from)) / span.ms)}%`,
          }}
        />
      ))}
    </span>
  );
}

interface Span {
  readonly from: number;
  readonly ms: number;
}

export function spanOf(nodes: readonly NodeState[]): Span {
  let from = Number.POSITIVE_INFINITY;
  let to = 0;
  for (const { steps } of nodes) {
    for (const step of steps) {
      from = Math.min(from, step.from);
      to = Math.max(to, step.to);
    }
  }
  return { from, ms: Math.max(1, to - from) };
}

function targetOf(key: string, current: number, total: number): number | undefined {
  const steps: Readonly<Record<string, number>> = {
    ArrowDown: current + 1,
    ArrowUp: current - 1,
    PageDown: current + 10,
    PageUp: current - 10,
    Home: 0,
    End: total - 1,
  };
  const to = steps[key];
  return to === undefined ? undefined : Math.max(0, Math.min(total - 1, to));
}

/** Scrolls as little as needed. */
function reveal(box: HTMLDivElement | null, place: number): void {
  if (box === null) return;
  const [start, end] = [place * LANE, (place + 1) * LANE];
  if (start < box.scrollTop) box.scrollTop = start;
  if (end > box.scrollTop + box.clientHeight) box.scrollTop = end - box.clientHeight;
}
