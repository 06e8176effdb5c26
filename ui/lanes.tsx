/**
 * Shows one lane for each node. The document contains only the visible lanes, so that a list of thousands of nodes
 * scrolls as fast as a short list.
 */
import type { ComponentChildren } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import type { NodeState } from '../src/cli/dashboard/state.ts';
import { Axis, Bar, Legend, type Span, spanOf, ZoomChoice, zoomed } from './bars.tsx';
import { Find, NoMatch } from './find.tsx';
import {
  divide,
  type Group,
  type Grouping,
  groupingsOf,
  LANE,
  type Layout,
  layoutOf,
  rowAt,
} from './groups.ts';
import { heightOfLane, useIsPrinted, useNarrowWidth } from './narrow.ts';
import { finderOf, type Wanted } from './search.ts';
import type { View, ViewState } from './view.ts';

/** The number of additional lanes above and below the visible part, so that a quick scroll shows no gap. */
const SPARE = 5;
const HEIGHT = 480;
/** The height of the borders above and below the lanes, in pixels. */
const BORDERS = 2;

const SIGNS = { done: '●', moving: '◐', failed: '✗', skipped: '◌', pending: '○' } as const;

interface LanesProps {
  readonly nodes: readonly NodeState[];
  /** The list of labels to which the nodes refer. */
  readonly labels: readonly string[];
  readonly view: View;
  readonly go: ViewState['go'];
  readonly open: (node: string) => void;
}

const ALL: Wanted = { search: '', filters: [] };

/** Shows the nodes that the viewer looks for. */
export function Nodes({ nodes, labels, view, go, open }: LanesProps) {
  const field = useRef<HTMLInputElement>(null);
  const { search, filters, grouping } = view;
  const find = useMemo(() => finderOf(nodes, labels), [nodes, labels]);
  const isShown = useMemo(() => find({ search, filters }), [find, search, filters]);
  const groupings = useMemo(() => groupingsOf(nodes), [nodes]);
  // Another plan may have no waves or zones, so the chosen grouping may not exist for it.
  const by = groupings.find((each) => each === grouping) ?? 'role';
  const divided = useMemo(() => divide(nodes, by), [nodes, by]);
  const width = useNarrowWidth();
  const layout = useMemo(
    () => layoutOf(divided, isShown, (index) => heightOfLane(nodes[index], width)),
    [divided, isShown, nodes, width],
  );
  const found = layout.order.length;
  const whole = useMemo(() => spanOf(nodes), [nodes]);
  const span = useMemo(() => zoomed(whole, view.zoom), [whole, view.zoom]);
  const clear = (): void => {
    go(ALL);
    field.current?.focus();
  };
  return (
    <div class="chart">
      <Find
        search={search}
        filters={filters}
        nodes={nodes}
        found={isShown === undefined ? undefined : found}
        field={field}
        look={go}
      />
      <div class="choices">
        <GroupBy groupings={groupings} by={by} choose={(each) => go({ grouping: each })} />
        <ZoomChoice span={whole} zoom={view.zoom} choose={(zoom) => go({ zoom })} />
      </div>
      {found === 0 && nodes.length > 0 ? (
        <NoMatch clear={clear} />
      ) : (
        <Lanes nodes={nodes} layout={layout} span={span} chosen={view.node} open={open} />
      )}
    </div>
  );
}

interface ListProps extends Pick<LanesProps, 'nodes' | 'open'> {
  readonly chosen: string | undefined;
  readonly layout: Layout;
  readonly span: Span;
}

function Lanes({ nodes, layout, span, chosen, open }: ListProps) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [focused, setFocused] = useState<number>();
  // The elements are computed again only if the nodes or the zoom change. A scroll step then does not read every node.
  const heading = useMemo(
    () => (
      <>
        <Legend nodes={nodes} />
        <Axis span={span} />
      </>
    ),
    [nodes, span],
  );
  const { groups, rows, tops, order, rowOf, placeOf } = layout;
  const height = tops[rows] ?? 0;
  const from = Math.max(0, rowAt(layout, top) - SPARE);
  const seen = { from, to: from + Math.ceil(HEIGHT / LANE) + 2 * SPARE };
  const sight = useIsPrinted() ? { from: 0, to: rows } : seen;
  const shown = groupsIn(groups, sight);
  // The search may hide the lane that was active.
  const isThere = focused !== undefined && placeOf[focused] !== undefined;
  const current = isThere ? focused : (order[0] ?? 0);
  const move = (event: KeyboardEvent): void => {
    const place = targetOf(event.key, placeOf[current] ?? 0, order.length);
    if (event.key === 'Enter') open(nodes[current]?.name ?? '');
    if (place === undefined) return;
    const to = order[place] ?? 0;
    event.preventDefault();
    setFocused(to);
    reveal(box.current, layout, rowOf[to] ?? 0);
  };
  return (
    <>
      {heading}
      {/* The list itself keeps the focus and names its active lane, because a lane is removed from the document when it is not visible. */}
      <div
        ref={box}
        class="lanes"
        role="listbox"
        tabIndex={0}
        aria-label={`${order.length} nodes`}
        aria-activedescendant={order.length > 0 ? `lane-${current}` : undefined}
        style={{ height: `${Math.min(HEIGHT, height + BORDERS)}px` }}
        onScroll={({ currentTarget }) => setTop(currentTarget.scrollTop)}
        onKeyDown={move}
      >
        <div role="presentation" style={{ height: `${height}px` }}>
          {shown.map((group) => (
            <Titled key={group.row} group={group} top={tops[group.row] ?? 0}>
              {membersIn(group, sight).map((index) => {
                const node = nodes[index];
                return (
                  node && (
                    <Lane
                      key={index}
                      node={node}
                      index={index}
                      place={placeOf[index] ?? 0}
                      top={tops[rowOf[index] ?? 0] ?? 0}
                      height={heightIn(layout, index)}
                      total={order.length}
                      span={span}
                      isChosen={node.name === chosen}
                      isFocused={index === current}
                      open={() => {
                        setFocused(index);
                        open(node.name);
                      }}
                    />
                  )
                );
              })}
            </Titled>
          ))}
        </div>
      </div>
    </>
  );
}

interface GroupByProps {
  readonly groupings: readonly Grouping[];
  readonly by: Grouping;
  readonly choose: (by: Grouping) => void;
}

/** Lets people choose how the nodes are grouped, if there is a choice. */
function GroupBy({ groupings, by, choose }: GroupByProps) {
  if (groupings.length < 2) return null;
  return (
    <label class="grouping">
      Group nodes by{' '}
      <select
        value={by}
        onChange={({ currentTarget: { value } }) =>
          choose(groupings.find((each) => each === value) ?? 'role')
        }
      >
        {groupings.map((each) => (
          <option key={each} value={each}>
            {each === 'role' ? 'role and version' : each}
          </option>
        ))}
      </select>
    </label>
  );
}

interface TitledProps {
  readonly group: Group;
  /** The distance of the heading from the top of the list, in pixels. */
  readonly top: number;
  readonly children: ComponentChildren;
}

/** Shows the lanes of a group below its heading. A screen reader reads the heading as the name of the group. */
function Titled({ group: { title }, top, children }: TitledProps) {
  if (title === undefined) return <>{children}</>;
  return (
    <div role="group" aria-label={title}>
      <div aria-hidden="true" class="group" style={{ transform: `translateY(${top}px)` }}>
        {title}
      </div>
      {children}
    </div>
  );
}

/** The visible rows. `from` is the first visible row, and `to` is the row after the last visible row. */
interface Sight {
  readonly from: number;
  readonly to: number;
}

/**
 * Returns the visible groups. The groups are in the order of their rows, and there may be as many groups as nodes.
 * Therefore the first visible group is found by a binary search.
 */
function groupsIn(groups: readonly Group[], { from, to }: Sight): readonly Group[] {
  const endsBefore = (group: Group | undefined): boolean =>
    group !== undefined && group.first + group.nodes.length <= from;
  let low = 0;
  let high = groups.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (endsBefore(groups[middle])) low = middle + 1;
    else high = middle;
  }
  let end = low;
  while (end < groups.length && (groups[end]?.row ?? to) < to) end++;
  return groups.slice(low, end);
}

function membersIn({ first, nodes }: Group, { from, to }: Sight): readonly number[] {
  return nodes.slice(Math.max(0, from - first), Math.max(0, to - first));
}

interface LaneProps {
  readonly node: NodeState;
  /** The index of the node in the state. It stays the same if the nodes are grouped in another way. */
  readonly index: number;
  /** The position of the node in the list. */
  readonly place: number;
  /** The distance of the lane from the top of the list, and its height, in pixels. */
  readonly top: number;
  readonly height: number;
  readonly total: number;
  readonly span: Span;
  readonly isChosen: boolean;
  readonly isFocused: boolean;
  readonly open: () => void;
}

function Lane({
  node,
  index,
  place,
  top,
  height,
  total,
  span,
  isChosen,
  isFocused,
  open,
}: LaneProps) {
  // A node that has not started has no steps and therefore no bar. The reason why it has not started is shown in place
  // of the bar. The bar of a node whose agent has not answered would look as if work was done.
  const isQuiet = node.phase === 'pending' && node.steps.length === 0;
  const isIdle = node.message !== '' && (isQuiet || node.unanswered === true);
  return (
    <div
      id={`lane-${index}`}
      role="option"
      aria-selected={isChosen}
      aria-setsize={total}
      aria-posinset={place + 1}
      class={`lane ${node.unanswered === true ? 'pending' : node.phase}${isFocused ? ' focused' : ''}`}
      style={{ transform: `translateY(${top}px)`, height: `${height}px` }}
      onClick={open}
    >
      <span class="sign" aria-hidden="true">
        {node.unanswered === true ? SIGNS.pending : SIGNS[node.phase]}
      </span>
      <span class="name">{node.name}</span>
      {isIdle ? (
        <span class="state reason" title={node.message}>
          {node.message}
        </span>
      ) : (
        <>
          <span class="state">{node.state}</span>
          <Bar node={node} span={span} />
          {height > LANE && <span class="reason">{node.message}</span>}
        </>
      )}
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

/** Returns the height of the lane of the node with this index, in pixels. */
function heightIn({ tops, rowOf }: Layout, index: number): number {
  const row = rowOf[index] ?? 0;
  return (tops[row + 1] ?? 0) - (tops[row] ?? 0);
}

/** Scrolls only as far as needed to make the row visible. */
function reveal(box: HTMLDivElement | null, { tops }: Layout, row: number): void {
  if (box === null) return;
  const start = tops[row] ?? 0;
  const end = tops[row + 1] ?? start;
  if (start < box.scrollTop) box.scrollTop = start;
  if (end > box.scrollTop + box.clientHeight) box.scrollTop = end - box.clientHeight;
}
