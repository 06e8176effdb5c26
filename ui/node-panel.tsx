/** Shows one node in a drawer: its versions, its steps over time, why it waits or failed, and what to do. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type {
  DrainShown,
  NodeEvents,
  NodeState,
  PagePlan,
  Said,
} from '../src/cli/dashboard/state.ts';
import { NodeActions } from './actions.tsx';
import { Axis, Bar, Legend, spanOf } from './bars.tsx';
import { useEscape, useFocusInside } from './drawer.ts';
import { Sentences } from './sentences.tsx';
import { durationOf, Time } from './times.tsx';

interface NodePanelProps {
  readonly plan: PagePlan;
  readonly name: string;
  /** The list of labels to which the node refers. */
  readonly labels: readonly string[];
  /** False in a report, which has no server to ask. */
  readonly isServed: boolean;
  readonly allowsActions: boolean;
  readonly close: () => void;
}

export function NodePanel({ plan, name, ...props }: NodePanelProps) {
  const node = plan.nodes.find((each) => each.name === name);
  return node === undefined ? null : <Drawer plan={plan} node={node} {...props} />;
}

interface DrawerProps extends Omit<NodePanelProps, 'name'> {
  readonly node: NodeState;
}

function Drawer({ plan, node, labels, isServed, allowsActions, close }: DrawerProps) {
  const box = useRef<HTMLElement>(null);
  const said = useSaid(plan, node.name, isServed);
  useFocusInside(box, '.lanes');
  useEscape(close);
  return (
    <aside ref={box} tabIndex={-1} aria-labelledby="node" class="drawer">
      <div class="title">
        <h2 id="node">{node.name}</h2>
        <button type="button" onClick={close}>
          Close
        </button>
      </div>
      <p>
        {node.role}: {node.state} since <Time at={node.since} />
        {node.message === '' ? '' : `: ${node.message}`}
      </p>
      {allowsActions && <NodeActions plan={plan} node={node} />}
      <dl>
        <Fact heading="before" text={node.from ?? 'not known'} />
        <Fact heading="after" text={node.version} />
        {node.wave !== undefined && <Fact heading="wave" text={String(node.wave)} />}
        {node.zone !== undefined && <Fact heading="zone" text={node.zone} />}
        {node.drain !== undefined && <DrainFacts drain={node.drain} />}
      </dl>
      <Steps node={node} />
      <Sentences said={node.why ?? said} />
      {isServed && <Events plan={plan} node={node} />}
      {node.labels !== undefined && (
        <details>
          <summary>Labels</summary>
          <ul>
            {node.labels.map((place) => (
              <li key={place}>{labels[place]}</li>
            ))}
          </ul>
        </details>
      )}
    </aside>
  );
}

function Fact({ heading, text }: { readonly heading: string; readonly text: string }) {
  return (
    <div class="said">
      <dt>{heading}</dt>
      <dd>{text}</dd>
    </div>
  );
}

/** Shows the pods that remain, and the budgets that block. */
function DrainFacts({ drain: { left, pods = [], budgets = [] } }: { readonly drain: DrainShown }) {
  const more = left > pods.length && pods.length > 0 ? [`and ${left - pods.length} more`] : [];
  const names = [...pods, ...more];
  return (
    <>
      <Facts heading={left === 1 ? '1 pod left' : `${left} pods left`} lines={names} />
      {budgets.length > 0 && <Facts heading="blocked by" lines={budgets} />}
    </>
  );
}

function Facts({
  heading,
  lines,
}: {
  readonly heading: string;
  readonly lines: readonly string[];
}) {
  return (
    <div class="said">
      <dt>{heading}</dt>
      {lines.length === 0 && <dd />}
      {lines.map((line) => (
        <dd key={line}>{line}</dd>
      ))}
    </div>
  );
}

function Steps({ node }: { readonly node: NodeState }) {
  if (node.steps.length === 0) return null;
  const span = spanOf([node]);
  return (
    <>
      <div class="chart one">
        <Legend nodes={[node]} />
        <Axis span={span} />
        <Bar node={node} span={span} />
      </div>
      <ol>
        {node.steps.map(({ word, from, to }) => (
          <li key={from}>
            {word}: {durationOf(to - from)}, from <Time at={from} /> to <Time at={to} />
          </li>
        ))}
      </ol>
    </>
  );
}

/** Shows the Events about the node. It asks for them again when the node changes, and not when others do. */
function Events({ plan, node }: { readonly plan: PagePlan; readonly node: NodeState }) {
  const [found, setFound] = useState<NodeEvents>({ events: [] });
  const steps = node.steps.length;
  useEffect(() => {
    let isLatest = true;
    const query = new URLSearchParams({ plan: plan.key, node: node.name });
    void fetch(`api/node-events?${query}`)
      .then(async (answer) => (await answer.json()) as NodeEvents)
      .catch((): NodeEvents => ({ events: [], missing: 'the server does not answer' }))
      .then((read) => isLatest && setFound(read));
    return () => {
      isLatest = false;
    };
  }, [plan.key, node.name, node.state, node.since, steps]);
  const { events, missing } = found;
  if (events.length === 0 && missing === undefined) return null;
  return (
    <>
      <h3>Events</h3>
      {missing !== undefined && <p>{`The Events cannot be read: ${missing}`}</p>}
      <ol>
        {events.map(({ at, reason, message, count = 1 }) => (
          <li key={`${at} ${reason} ${message}`}>
            <Time at={at} /> {reason}: {message}
            {count > 1 ? ` (${count} times)` : ''}
          </li>
        ))}
      </ol>
    </>
  );
}

/** Asks the server to explain the node, again after each change of the plan. */
function useSaid(plan: PagePlan, name: string, isServed: boolean): readonly Said[] {
  const [said, setSaid] = useState<readonly Said[]>([]);
  useEffect(() => {
    if (!isServed) return undefined;
    let isLatest = true;
    const query = new URLSearchParams({ plan: plan.key, node: name });
    void fetch(`api/why?${query}`)
      .then(async (answer) => (await answer.json()) as Said[])
      .catch(() => [])
      .then((lines) => isLatest && setSaid(lines));
    // An answer about an earlier state must not replace the answer about the present state.
    return () => {
      isLatest = false;
    };
  }, [isServed, plan, name]);
  return said;
}
