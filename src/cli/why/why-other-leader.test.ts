/** Shows that `refit why` proposes no command that the leader of the plan ignores. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { lookAt } from '../../../test/support/builders/views.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { Wait } from '../../engine/model/decision.ts';
import { because } from '../../engine/model/reasons.ts';
import { mediumOf } from '../output.ts';
import type { ShownPlan } from '../status/json-form.ts';
import type { LeaderView } from '../status/load.ts';
import { whyLines } from './why-command.ts';

const NOW = T0 + MINUTE;
const PIPE = mediumOf({ hasColours: false, size: () => ({ columns: Infinity, rows: Infinity }) });
const OURS: LeaderView = { state: 'held', holder: 'host-a', since: later(0) };
const THEIRS: LeaderView = { ...OURS, holder: '0123456789abcdef0123456789abcdef' };

test("no command is proposed while k0s's own leader, which ignores it, carries the plan out", async () => {
  const k0supdate = buildUpdate({ targets: { workers: listed('w1') } });
  const plan = buildPlan({ commands: [{ k0supdate }] });
  const [view] = await lookAt([plan], [], [buildNode('w1')], NOW);
  if (view === undefined) throw new Error('the plan is not shown');
  const held: Wait = {
    gate: 'held',
    target: 'w1',
    reason: because('Held', 'somebody holds w1'),
    since: later(0),
  };
  const shown: ShownPlan = { ...view, waits: [held] };
  const saidBy = (leader: LeaderView, node: string | undefined): string =>
    whyLines({ leader, plans: [shown] }, node, NOW, PIPE).join('\n');
  for (const node of [undefined, 'w1']) {
    expect(saidBy(OURS, node)).toContain('refit unhold w1');
    expect(saidBy(THEIRS, node)).toContain("k0s's own leader");
    expect(saidBy(THEIRS, node)).not.toMatch(/you can|refit (?:unhold|pause|abort)/);
  }
});
