/**
 * Shows what `refit why` prints about the hooks of a policy. It reads their states from the NodeRollout, where the
 * leader records them.
 */
import { expect, test } from 'vitest';
import { buildControlNode, buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import {
  buildViewParts,
  lookAt,
  recorded,
  statusOf,
} from '../../../test/support/builders/views.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { HookResult } from '../../hooks/rules.ts';
import { mediumOf } from '../output.ts';
import type { Sources } from '../status/inspection-sources.ts';
import type { LeaderView } from '../status/load.ts';
import { whyLines, whyView } from './why-command.ts';

const NOW = T0 + 10 * MINUTE;
const HELD: LeaderView = { state: 'held', holder: 'a', since: later(0) };
const PIPE = mediumOf({ hasColours: false, size: () => ({ columns: Infinity, rows: Infinity }) });
const SAID = 'hooks.example answered 422: the pager is silent';
const FAILED: HookResult = {
  id: 'refit-tell-1',
  hook: 'tell',
  target: 'w1',
  state: 'failed',
  message: SAID,
  since: T0 + 2 * MINUTE,
};

interface Case {
  /** The recorded states of the targets. */
  readonly w1: string;
  readonly w2?: string;
  readonly state?: string;
  readonly hooks?: Sources['hooks'];
}

async function statusWith({ w1, w2 = 'SignalPending', state = 'SchedulableWait', hooks }: Case) {
  const update = buildUpdate({ targets: { workers: listed('w1', 'w2') } });
  const status = statusOf(state, [], recorded({ w1, w2 }, later(MINUTE)));
  const webhook = { url: 'https://hooks.example', secretName: 's' };
  const policy = buildUpgradePolicy('careful', {
    hooks: [{ name: 'tell', when: 'BeforeDrain', webhook, timeout: '5m' }],
  });
  const plans = await lookAt(
    [buildPlan({ commands: [{ k0supdate: update }] }, status)],
    [buildControlNode('c1')],
    [buildNode('w1'), buildNode('w2')],
    NOW,
    buildViewParts(hooks ? { hooks } : {}, [policy]),
  );
  return { leader: HELD, plans };
}

const SHOWN = async (): Promise<readonly HookResult[]> => await Promise.resolve([FAILED]);

test.each<[string, Case, string]>([
  [
    'a node whose hook failed',
    { w1: 'SignalApplyFailed', state: 'ApplyFailed', hooks: SHOWN },
    `the hook tell failed: ${SAID}`,
  ],
  [
    'a node whose hook failed, although the policy ignores that',
    { w1: 'SignalCompleted', hooks: SHOWN },
    `hooks   tell of w1 failed 8 min ago: ${SAID}`,
  ],
  [
    'hooks that may not be read',
    {
      w1: 'SignalSent',
      hooks: async () => await Promise.reject(new Error('noderollouts is forbidden')),
    },
    'unknown the results of hooks: noderollouts is forbidden',
  ],
])('why of %s', async (_what, given, expected) => {
  expect(whyLines(await statusWith(given), 'w1', NOW, PIPE).join('\n')).toContain(expected);
});

test('the JSON of a node has the hooks of this node only', async () => {
  const hooks = async () => await Promise.resolve([FAILED, { ...FAILED, id: '2', target: 'w2' }]);
  const status = await statusWith({ w1: 'SignalApplyFailed', state: 'ApplyFailed', hooks });
  const since = later(2 * MINUTE);
  expect(whyView(status, 'w1').plans.map((plan) => plan.hooks)).toEqual([
    [{ hook: 'tell', target: 'w1', state: 'Failed', message: SAID, since }],
  ]);
});
