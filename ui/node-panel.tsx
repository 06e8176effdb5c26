/** Shows one node: its steps over time, why it waits or failed, and what to do. */
import { useEffect, useState } from 'preact/hooks';
import type { PagePlan, Said } from '../src/cli/dashboard/state.ts';
import { NodeActions } from './actions.tsx';
import { Axis, Bar, Legend, spanOf } from './bars.tsx';
import { Sentences } from './sentences.tsx';

interface NodePanelProps {
  readonly plan: PagePlan;
  readonly name: string;
  /** False in a report, which has no server to ask. */
  readonly isServed: boolean;
  readonly allowsActions: boolean;
  readonly close: () => void;
}

export function NodePanel({ plan, name, isServed, allowsActions, close }: NodePanelProps) {
  const [said, setSaid] = useState<readonly Said[]>([]);
  const node = plan.nodes.find((each) => each.name === name);
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
  if (node === undefined) return null;
  return (
    <section aria-labelledby="node" class="panel">
      <div class="title">
        <h2 id="node">{name}</h2>
        <button type="button" onClick={close}>
          Close
        </button>
      </div>
      <p>
        {node.role}: {node.state} since {node.since}
        {node.message === '' ? '' : `: ${node.message}`}
      </p>
      {allowsActions && <NodeActions plan={plan} node={node} />}
      {node.steps.length > 0 && (
        <div class="chart one">
          <Legend nodes={[node]} />
          <Axis span={spanOf([node])} />
          <Bar node={node} span={spanOf([node])} />
        </div>
      )}
      <ol>
        {node.steps.map(({ word, from, to }) => (
          <li key={from}>
            {word}: {Math.round((to - from) / 1000)} s, from {new Date(from).toISOString()}
          </li>
        ))}
      </ol>
      <Sentences said={node.why ?? said} />
    </section>
  );
}
