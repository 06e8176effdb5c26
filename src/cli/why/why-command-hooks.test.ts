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
  signalled,
  statusOf,
} from '../../../test/support/builders/views.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { HookResult } from '../../hooks/rules.ts';
import { mediumOf } from '../output.ts';
import type { Sources } from '../status/inspection-sources.ts';
import type { LeaderView } from '../status/load.ts';
import { render } from '../status/render.ts';
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

type Moment = 'BeforePlan' | 'BeforeDrain' | 'AfterDrain' | 'AfterPlan';

interface Case {
  /** The recorded state of the controller; undefined if the plan has no controller. */
  readonly c1?: string;
  /** The recorded states of the targets. */
  readonly w1: string;
  readonly w2?: string;
  readonly state?: string;
  readonly hooks?: Sources['hooks'];
  readonly controlPlane?: Sources['controlPlane'];
  readonly moment?: Moment;
  /** True if the controller has its signal. */
  readonly isSignalled?: boolean;
}

async function statusWith({
  c1,
  w1,
  w2 = 'SignalPending',
  state = 'SchedulableWait',
  moment = 'BeforeDrain',
  isSignalled = false,
  ...sources
}: Case) {
  const update = buildUpdate({
    targets: { workers: listed('w1', 'w2'), ...(c1 && { controllers: listed('c1') }) },
  });
  const status = statusOf(
    state,
    c1 === undefined ? [] : recorded({ c1 }, later(MINUTE)),
    recorded({ w1, w2 }, later(MINUTE)),
  );
  const webhook = { url: 'https://hooks.example', secretName: 's' };
  const policy = buildUpgradePolicy('careful', {
    hooks: [{ name: 'tell', when: moment, webhook, timeout: '5m' }],
  });
  const plans = await lookAt(
    [buildPlan({ commands: [{ k0supdate: update }] }, status)],
    [
      isSignalled ? signalled(buildControlNode('c1')) : buildControlNode('c1'),
      buildControlNode('c2'),
    ],
    [buildNode('w1'), buildNode('w2')],
    NOW,
    buildViewParts(sources, [policy]),
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
])('why says the state of the hook for %s', async (_what, given, expected) => {
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

const RUNNING: HookResult = {
  ...FAILED,
  target: 'c1',
  state: 'running',
  message: 'Job nowhere/refit-tell-1 cannot be created: namespaces "nowhere" not found',
};
const HELD_UP = `the hook tell of UpgradePolicy careful must succeed for c1: ${RUNNING.message}`;

const SHAPE = { hasColours: false, size: () => ({ columns: 400, rows: 99 }), advises: true };
const NO_ANSWER: Sources['controlPlane'] = async () =>
  await Promise.resolve([{ name: 'c1', ready: false, isSilent: true }]);

test.each<[string, Moment, boolean]>([
  ['starts', 'BeforeDrain', false],
  ['was signalled', 'AfterDrain', true],
])(
  'a hook that has not succeeded is shown while its node %s, although this machine gets no other answer',
  async (_phase, moment, isSignalled) => {
    const hooks = async () => await Promise.resolve([RUNNING]);
    const given = {
      c1: 'SignalSent',
      w1: 'SignalPending',
      moment,
      isSignalled,
      hooks,
      controlPlane: NO_ANSWER,
    };
    const status = await statusWith(given);
    const reason = { code: 'HookRunning', message: HELD_UP };
    expect(status.plans[0]?.waits).toContainEqual(
      expect.objectContaining({ target: 'c1', since: later(2 * MINUTE), reason }),
    );
    const texts = [
      render(status, 'text', NOW, SHAPE),
      whyLines(status, undefined, NOW, PIPE).join('\n'),
      whyLines(status, 'c1', NOW, PIPE).join('\n'),
    ];
    for (const text of texts) {
      expect(text).toMatch(/hooks +tell of c1 has not succeeded yet, for 8 min now: Job nowhere/u);
      expect(text).toContain(HELD_UP);
    }
  },
);

test.each<[string, Moment, Case]>([
  ['before its first node', 'BeforePlan', { c1: 'SignalPending', w1: 'SignalPending' }],
  [
    'after its end',
    'AfterPlan',
    { w1: 'SignalCompleted', w2: 'SignalCompleted', state: 'Completed' },
  ],
])('a hook of the whole plan that has not succeeded is shown %s', async (_when, moment, more) => {
  const { target: _target, ...ofPlan } = RUNNING;
  const hooks = async () => await Promise.resolve([ofPlan]);
  const status = await statusWith({ ...more, moment, hooks, controlPlane: NO_ANSWER });
  for (const text of [
    render(status, 'text', NOW, SHAPE),
    whyLines(status, undefined, NOW, PIPE).join('\n'),
  ])
    expect(text).toMatch(
      /hooks +tell of the plan has not succeeded yet, for 8 min now: Job nowhere/u,
    );
});
