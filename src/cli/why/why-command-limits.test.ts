/** Shows how long a step of a kubeadm host may take, as `refit why` prints it. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildViewParts } from '../../../test/support/builders/views.ts';
import { buildWorldOf } from '../../../test/support/builders/worlds-of-kinds.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { kubeadmView } from '../../dialects/kubeadm/plan/kubeadm-dialect.ts';
import { reportPatch } from '../../dialects/kubeadm/plan/kubeadm-signal.ts';
import { newPlan } from '../../dialects/kubeadm/plan/plan-object.ts';
import { type Node, nodes } from '../../kube/resources.ts';
import { mediumOf } from '../output.ts';
import type { ShownPlan } from '../status/json-form.ts';
import { observe } from '../status/observe.ts';
import { whyLines } from './why-command.ts';

const NOW = T0 + MINUTE;
const PIPE = mediumOf({ hasColours: false, size: () => ({ columns: Infinity, rows: Infinity }) });

function why(plans: readonly ShownPlan[]): string {
  const leader = { state: 'held', holder: 'a', since: later(0) } as const;
  return whyLines({ leader, plans }, undefined, NOW, PIPE).join('\n');
}

async function lookOf(plan: Parameters<typeof kubeadmView.resolve>[0], node: Node) {
  const world = buildWorldOf([nodes, [node]]);
  const inputs = { dialect: kubeadmView, plans: () => [plan], world };
  return await observe(inputs, buildViewParts(), NOW);
}

test('why says of a kubeadm host that is verified when the verification gives up, whatever the deadline of its whole upgrade', async () => {
  const hosts = { leader: [], followers: [], certificates: [], kubelets: [], workers: ['w1'] };
  const fresh = {
    ...newPlan({ version: 'v1.36.3', concurrent: 1, ...hosts }, ''),
    metadata: { name: 'p', uid: 'u' },
  };
  const dialect = kubeadmView;
  const resolved = dialect.resolve(fresh, buildWorldOf([nodes, []]), T0);
  const targets = [{ key: 'workers/w1', name: 'w1', state: 'intended', since: later(0) } as const];
  const stages = resolved.stages.map((stage) =>
    stage.id === 'workers' ? { ...stage, targets } : stage,
  );
  const plan = dialect.project({ ...resolved, phase: 'running', stages }, fresh, T0);
  const at = { rollout: 'u', target: 'workers/w1', attempt: later(0), spent: {} };
  const report = {
    ...at,
    state: 'working',
    step: 'Verify',
    since: later(30_000),
    touched: true,
  } as const;
  const { metadata } = reportPatch(report) as { metadata: object };
  const text = why(await lookOf(plan, buildNode('w1', metadata)));
  expect(text).toContain('\n  now     w1 Verify (30 s)\n');
  const end = later(30_000 + 5 * MINUTE);
  expect(text).toContain(`\n  limit   w1 fails at ${end} if this step has not ended by then`);
});
