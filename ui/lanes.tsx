/** Shows one lane for each node. Only the lanes in sight are in the document, so thousands of nodes scroll as fast as a few. */
import { useMemo, useRef, useState } from 'preact/hooks';
import type { NodeState } from '../src/cli/dashboard/state.ts';
import { Axis, Bar, Legend, type Span, spanOf } from './bars.tsx';

/** The height of a lane in pixels, as in the style. */
const LANE = 32;
/** Lanes beyond the edge, so that a quick scroll shows no gap. */
const SPARE = 5;
const HEIGHT = 480;
/** Above and below the lanes, in pixels. */
const BORDERS = 2;

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
  const groups = useMemo(() => groupsOf(nodes), [nodes]);
  const rowAt = (place: number): number =>
    place + groups.filter(({ start }) => start <= place).length;
  const first = Math.max(0, Math.floor(top / LANE) - SPARE);
  const last = first + Math.ceil(HEIGHT / LANE) + 2 * SPARE;
  // A lane is never before its place, because only headings come before it.
  const shown = nodes
    .slice(Math.max(0, first - groups.length), last)
    .map((node, index) => ({ node, place: Math.max(0, first - groups.length) + index }))
    .filter(({ place }) => rowAt(place) >= first && rowAt(place) < last);
  const rows = nodes.length + groups.length;
  const current = Math.min(focused, nodes.length - 1);
  const move = (event: KeyboardEvent): void => {
    const to = targetOf(event.key, current, nodes.length);
    if (event.key === 'Enter') open(nodes[current]?.name ?? '');
    if (to === undefined) return;
    event.preventDefault();
    setFocused(to);
    reveal(box.current, rowAt(to));
  };
  return (
    <div class="chart">
      <Legend nodes={nodes} />
      <Axis span={span} />
      {/* The list keeps the focus and names its active lane, because a lane leaves the document when it is out of sight. */}
      <div
        ref={box}
        class="lanes"
        role="listbox"
        tabIndex={0}
        aria-label={`${nodes.length} nodes`}
        aria-activedescendant={shown.length > 0 ? `lane-${current}` : undefined}
        style={{ height: `${Math.min(HEIGHT, rows * LANE + BORDERS)}px` }}
        onScroll={({ currentTarget }) => setTop(currentTarget.scrollTop)}
        onKeyDown={move}
      >
        <div role="presentation" style={{ height: `${rows * LANE}px` }}>
          {groups.map(({ start, title }) => (
            <div
              key={start}
              role="presentation"
              class="group"
              style={{ transform: `translateY(${(rowAt(start) - 1) * LANE}px)` }}
            >
              {title}
            </div>
          ))}
          {shown.map(({ node, place }) => (
            <Lane
              key={place}
              node={node}
              place={place}
              row={rowAt(place)}
              total={nodes.length}
              span={span}
              isChosen={node.name === chosen}
              isFocused={place === current}
              open={() => {
                setFocused(place);
                open(node.name);
              }}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

interface Group {
  /** The place of its first node. */
  readonly start: number;
  readonly title: string;
}

/** Returns a group for each run of nodes with the same role and version; none if all nodes are alike. */
function groupsOf(nodes: readonly NodeState[]): readonly Group[] {
  const starts = nodes.flatMap((node, place) => {
    const before = nodes[place - 1];
    return before?.role === node.role && before.version === node.version ? [] : [place];
  });
  if (starts.length < 2) return [];
  return starts.map((start, index) => {
    const members = nodes.slice(start, starts[index + 1]);
    const done = members.filter(({ phase }) => phase === 'done').length;
    const { role = '', version = '' } = members[0] ?? {};
    return { start, title: `${role}s to ${version}: ${done} of ${members.length} done` };
  });
}

interface LaneProps {
  readonly node: NodeState;
  readonly place: number;
  /** Its place in the list, with the headings of groups. */
  readonly row: number;
  readonly total: number;
  readonly span: Span;
  readonly isChosen: boolean;
  readonly isFocused: boolean;
  readonly open: () => void;
}

function Lane({ node, place, row, total, span, isChosen, isFocused, open }: LaneProps) {
  return (
    <div
      id={`lane-${place}`}
      role="option"
      aria-selected={isChosen}
      aria-setsize={total}
      aria-posinset={place + 1}
      class={`lane ${node.phase}${isFocused ? ' focused' : ''}`}
      style={{ transform: `translateY(${row * LANE}px)` }}
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
function reveal(box: HTMLDivElement | null, row: number): void {
  if (box === null) return;
  const start = row * LANE;
  const end = start + LANE;
  if (start < box.scrollTop) box.scrollTop = start;
  if (end > box.scrollTop + box.clientHeight) box.scrollTop = end - box.clientHeight;
}
