/** Proves how the dialect observes a host, and which signal it sends to the host. */
import { describe, expect, test } from 'vitest';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildWorld } from '../../../../test/support/builders/worlds.ts';
import { CORDON_ANNOTATION } from '../../../drain/cordon-marks.ts';
import type { World } from '../../../engine/contract/world.ts';
import type { Observation } from '../../../engine/model/facts.ts';
import { because } from '../../../engine/model/reasons.ts';
import type { Rollout, Stage, Target } from '../../../engine/model/rollout.ts';
import type { ConfigMap, Node } from '../../../kube/resources.ts';
import { kubeadmDialect } from './kubeadm-dialect.ts';
import { type HostUpgrade, type HostUpgrades, type Report, reportPatch } from './kubeadm-signal.ts';
import { newPlan, type Request } from './plan-object.ts';

const NOW = Date.parse('2026-11-20T08:00:00Z');
const ATTEMPT = '2026-11-20T08:00:00Z';
const REQUEST: Request = {
  version: 'v1.36.3',
  concurrent: 2,
  certificates: [],
  leader: ['cp1'],
  followers: ['cp2'],
  kubelets: [],
  workers: ['w1', 'w2'],
};
const planOf = (request: Request): ConfigMap => ({
  ...newPlan(request, 'sha256:1'),
  metadata: {
    name: 'refit-kubeadm',
    namespace: 'kube-system',
    uid: 'plan-uid',
    creationTimestamp: ATTEMPT,
  },
});
const plan = planOf(REQUEST);
const atWork = (
  working: boolean | 'busy',
  calls: unknown[] = [],
  waiting = false,
): HostUpgrades => ({
  stateOf: () => (working === true ? 'open' : working || undefined),
  isWaiting: () => waiting,
  begin: async (work) => await Promise.resolve(void calls.push(work)),
  acknowledge: ({ key }) => void calls.push(`go on ${key}`),
  stop: async ({ key }, reason) => await Promise.resolve(void calls.push(`stop ${key}: ${reason}`)),
});

function node(report?: Partial<Report>, kubeletVersion = 'v1.36.2'): Node {
  const full: Report = {
    rollout: 'plan-uid',
    target: 'workers/w1',
    attempt: ATTEMPT,
    state: 'working',
    step: 'Kubeadm',
    since: ATTEMPT,
    spent: {},
    ...report,
  };
  const { metadata } = reportPatch(full) as { metadata: { annotations: Record<string, string> } };
  return { ...buildNode('w1', report ? metadata : {}), status: { nodeInfo: { kubeletVersion } } };
}

interface Place {
  readonly dialect: ReturnType<typeof kubeadmDialect>;
  readonly world: World;
  readonly rollout: Rollout;
  readonly stage: Stage;
  readonly target: Target;
}

/** Returns the first target of the stage `id`, with its rollout. */
function placeOf(
  works: HostUpgrades | undefined,
  object: Node,
  from: ConfigMap = plan,
  id = 'workers',
): Place {
  const dialect = kubeadmDialect(works);
  const world = buildWorld([], [object]);
  const rollout = dialect.resolve(from, world, NOW);
  const stage = rollout.stages.find((each) => each.id === id);
  const [target] = stage?.targets ?? [];
  if (!stage || !target) throw new Error(`stage ${id} has no target`);
  return { dialect, world, rollout, stage, target };
}

function seen(
  works: HostUpgrades | undefined,
  object: Node,
  from: ConfigMap = plan,
  id = 'workers',
): string {
  const { dialect, world, rollout, stage, target } = placeOf(works, object, from, id);
  const observation: Observation = dialect.signal.read(world, rollout, stage, target, from);
  if (observation.kind !== 'working') return observation.kind;
  const { step, waitsFor, cancellable } = observation;
  return [
    'working',
    step,
    ...(waitsFor ? [`asks ${waitsFor}`] : []),
    ...(cancellable ? ['cancellable'] : []),
  ].join(' ');
}

describe('Refit reads the progress of a target from the running upgrade and from the Node', () => {
  test.each<[string, HostUpgrades | undefined, Node, string]>([
    ['nothing', atWork(false), node(), 'none'],
    ['begun, and not told yet', atWork(true), node(), 'sent'],
    ['begun and changed, and not told yet', atWork('busy'), node(), 'working Kubeadm'],
    [
      'changed, and only the step before is told yet',
      atWork('busy'),
      node({ step: 'Stage' }),
      'working Stage',
    ],
    [
      'at work, whatever its kubelet writes',
      atWork('busy'),
      node({ state: 'failed' }),
      'working Kubeadm',
    ],
    [
      'at work, and its kubelet says that it is over',
      atWork(true),
      node({ state: 'finished' }, 'v1.36.3'),
      'working Kubeadm cancellable',
    ],
    ['at work', atWork(true), node({ touched: true }), 'working Kubeadm'],
    ['staging', atWork(true), node({ step: 'Stage' }), 'working Stage cancellable'],
    [
      'waiting for the drain',
      atWork(true, [], true),
      node({ step: 'Drain' }),
      'working Drain asks drain cancellable',
    ],
    [
      'drained, and about to continue',
      atWork(true),
      node({ step: 'Drain' }),
      'working Drain cancellable',
    ],
    [
      'at the drain once more, with what an attempt that was cut off has put in place',
      atWork(true, [], true),
      node({ step: 'Drain', touched: true }),
      'working Drain asks drain',
    ],
    [
      'whoever only looks takes it to wait',
      undefined,
      node({ step: 'Drain' }),
      'working Drain asks drain cancellable',
    ],
    ['cut off with an earlier process: to be begun again', atWork(false), node({}), 'none'],
    ['whoever only looks believes the Node', undefined, node({ touched: true }), 'working Kubeadm'],
    [
      'finished, and the kubelet does not tell the version yet',
      atWork(false),
      node({ state: 'finished', step: 'Verify', touched: true }),
      'working Verify',
    ],
    ['finished', atWork(false), node({ state: 'finished' }, 'v1.36.3'), 'succeeded'],
    ['failed', atWork(false), node({ state: 'failed', message: 'no' }), 'failed'],
    [
      'what an earlier rollout has left',
      atWork(false),
      node({ rollout: 'old', state: 'failed' }),
      'none',
    ],
    [
      'what another target of the rollout has left',
      atWork(false),
      node({ target: 'leader/w1', state: 'failed' }),
      'none',
    ],
  ])('%s', (_name, works, object, wanted) => {
    expect(seen(works, object)).toBe(wanted);
  });
});

test.each([
  ['Verify', 'the new kubelet crashed 3 times'],
  // The message reports what blocks the drain. The leader itself already reports this, so it is not reported again.
  ['Drain', undefined],
])('what a host reports at %s is why it does not go on: %s', (step, stalled) => {
  const object = node({ step, touched: true, message: 'the new kubelet crashed 3 times' });
  const { dialect, world, rollout, stage, target } = placeOf(atWork(true), object, plan, 'workers');
  const observation = dialect.signal.read(world, rollout, stage, target, plan);
  expect(observation).toMatchObject({ kind: 'working', step });
  expect(observation.kind === 'working' && observation.stalled).toBe(stalled);
});

test('certificates come first, without a drain, and no version is expected of them', () => {
  const renewal = planOf({
    ...REQUEST,
    certificates: ['w1'],
    leader: [],
    followers: [],
    workers: [],
  });
  const calls: unknown[] = [];
  const place = placeOf(atWork(false, calls), node(), renewal, 'certificates');
  expect(
    place.rollout.stages.map(({ id, keepsVersion }) => [id, keepsVersion === true])[0],
  ).toEqual(['certificates', true]);
  expect(
    place.dialect.drainDelegation?.nodeOf(place.stage, place.target, place.world),
  ).toBeUndefined();
  const over = node({
    target: 'certificates/w1',
    state: 'finished',
    step: 'Verify',
    touched: true,
  });
  expect(seen(atWork(false), over, renewal, 'certificates')).toBe('succeeded');
});

describe('a minor version, which kubelets get once every API server has it', () => {
  const minor = planOf({
    ...REQUEST,
    leader: ['w1'],
    followers: [],
    kubelets: ['w1'],
    workers: [],
  });
  const finished = (target: string): Node =>
    node({ target, state: 'finished', step: 'Verify', touched: true });

  test('what kubeadm does is over without a new kubelet; the kubelet is not', () => {
    expect(seen(atWork(false), finished('leader/w1'), minor, 'leader')).toBe('succeeded');
    expect(seen(atWork(false), finished('kubelets/w1'), minor, 'kubelets')).toBe('working Verify');
  });

  test('only for its kubelet a node is drained', () => {
    const nodeOf = (id: string): Node | undefined => {
      const { dialect, stage, target, world } = placeOf(undefined, node(), minor, id);
      return dialect.drainDelegation?.nodeOf(stage, target, world);
    };
    expect([nodeOf('leader'), nodeOf('kubelets')?.metadata.name]).toEqual([undefined, 'w1']);
  });
});

test.each<[string, Partial<Report> | undefined, boolean]>([
  ['that nobody began', undefined, true],
  ['that was not drained in time', { state: 'failed', step: 'Drain' }, true],
  ['whose kubeadm failed', { state: 'failed', touched: true }, false],
  ['whose time was over in the middle', { touched: true }, false],
])('a failed host %s: the leader may lift its cordon: %s', (_name, report, may) => {
  const { dialect, stage, target, world } = placeOf(undefined, node(report));
  const found = dialect.drainDelegation?.nodeOf(stage, { ...target, state: 'failed' }, world);
  expect(found !== undefined).toBe(may);
});

test.each<[string, boolean | undefined]>([
  ['that was changed', true],
  ['that was not changed', undefined],
])(
  'a failed host %s says so, because its cordon stays until its next attempt',
  (_name, touched) => {
    const failed = node({ state: 'failed', ...(touched === undefined ? {} : { touched }) });
    const { dialect, world, rollout, stage, target } = placeOf(atWork(false), failed);
    expect(dialect.signal.read(world, rollout, stage, target, plan)).toMatchObject({
      kind: 'failed',
      isHalfDone: touched,
    });
  },
);

test.each<[string, Partial<Node['spec']>, boolean]>([
  ['whoever of ours made it', { unschedulable: true }, true],
  ['nobody of ours', { unschedulable: true }, false],
])('a host that is done loses the cordon of %s', (_name, spec, isOurs) => {
  const annotations = isOurs ? { [CORDON_ANNOTATION]: 'an-earlier-rollout/1' } : {};
  const cordoned: Node = { ...buildNode('w1', { annotations }), spec: { ...spec } };
  const { dialect, stage, target, world, rollout } = placeOf(undefined, cordoned);
  const instruction = dialect.signal.finish?.(world, rollout, stage, target, plan);
  const left =
    instruction?.kind === 'replace'
      ? (instruction.object as Node).spec?.unschedulable
      : 'untouched';
  expect(left).toBe(isOurs ? undefined : 'untouched');
});

test('what the leader tells whoever works', async () => {
  const calls: unknown[] = [];
  const { dialect, world, rollout, stage, target } = placeOf(atWork(true, calls), node());
  const { signal } = dialect;
  const instructions = [
    signal.acknowledge?.(world, rollout, stage, target, NOW),
    signal.cancel?.(
      world,
      rollout,
      stage,
      target,
      because('Aborted', 'aborted: wrong version'),
      NOW,
    ),
  ];
  for (const instruction of instructions)
    if (instruction?.kind === 'begin') await instruction.begin();
  expect(calls).toEqual(['go on workers/w1', 'stop workers/w1: aborted: wrong version']);
});

test.each<[string, readonly string[], readonly string[], readonly string[]]>([
  [
    'each host in one go',
    [],
    [
      'cp1 apply kubeadm kubelet',
      'cp2 node kubeadm kubelet',
      'w1 node kubeadm kubelet',
      'w2 node kubeadm kubelet',
    ],
    ['controller 1', 'controller 1', 'controller 1', 'worker 2'],
  ],
  [
    'kubelets of the control plane last of it',
    ['cp1', 'cp2'],
    [
      'cp1 apply kubeadm',
      'cp2 node kubeadm',
      'cp1 node kubelet',
      'cp2 node kubelet',
      'w1 node kubeadm kubelet',
      'w2 node kubeadm kubelet',
    ],
    ['controller 1', 'controller 1', 'controller 1', 'worker 2'],
  ],
])(
  '%s: the leader applies, everybody else follows; workers as many as asked for',
  async (_name, kubelets, works, limits) => {
    const begun: HostUpgrade[] = [];
    const dialect = kubeadmDialect(atWork(false, begun));
    const world = buildWorld([], []);
    const rollout = dialect.resolve(planOf({ ...REQUEST, kubelets: [...kubelets] }), world, NOW);
    for (const stage of rollout.stages) {
      for (const target of stage.targets) {
        const instruction = dialect.signal.send(world, rollout, { stage, target, agent: {} }, plan);
        if (instruction?.kind === 'begin') await instruction.begin();
      }
    }
    expect(begun.map(({ target, verb, parts }) => [target.name, verb, ...parts].join(' '))).toEqual(
      works,
    );
    expect(rollout.stages.map(({ role, maxInFlight }) => `${role} ${maxInFlight}`)).toEqual(limits);
  },
);

test('a rollout comes back from its record as it went in', () => {
  const dialect = kubeadmDialect(undefined);
  const world = buildWorld([], []);
  const rollout = {
    ...dialect.resolve(plan, world, NOW),
    phase: 'running' as const,
    blocked: true,
  };
  expect(dialect.resolve(dialect.project(rollout, plan, NOW), world, NOW + 60_000)).toEqual(
    rollout,
  );
});

test('an object of that name that is not ours is a plan that cannot be carried out', () => {
  const { problems, stages } = kubeadmDialect(undefined).resolve(
    { ...plan, data: {} },
    buildWorld([], []),
    NOW,
  );
  expect([problems.map(({ message }) => message), stages]).toEqual([
    [
      'ConfigMap kube-system/refit-kubeadm has no valid data.request; delete it, then run `refit kubeadm apply` again',
    ],
    [],
  ]);
});

test('on the way back workers come first, and each stage says that it goes back', () => {
  const { stages } = kubeadmDialect(undefined).resolve(
    planOf({ ...REQUEST, back: true }),
    buildWorld([], []),
    NOW,
  );
  expect(stages.map(({ id, goesBack }) => [id, goesBack])).toEqual(
    ['workers', 'leader', 'followers', 'kubelets'].map((id) => [id, true]),
  );
});

test.each<[string, Request, string]>([
  ['an upgrade', REQUEST, 'run refit kubeadm apply again after its end'],
  ['a way back', { ...REQUEST, back: true }, 'run refit kubeadm apply --back again after its end'],
])('a failed host of %s is tried again by the same command', (_name, request, command) => {
  const asked = planOf(request);
  expect(kubeadmDialect(undefined).retriedBy?.(asked)).toBe(command);
});
