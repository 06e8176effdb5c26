/** Proves whole decisions about Plans: what is recorded, which nodes get a Job, and that a second decision changes nothing. */
import { describe, expect, test } from 'vitest';
import {
  buildCattlePlan,
  type CattleSpec,
} from '../../../../test/support/builders/cattle-plans.ts';
import { decide } from '../../../../test/support/builders/decisions.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildWorldOf } from '../../../../test/support/builders/worlds-of-kinds.ts';
import { HOUR, later, MINUTE, T0 } from '../../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import type { Instruction, World } from '../../../engine/contract/dialect.ts';
import { ABORT_ANNOTATION } from '../../../engine/model/controls.ts';
import type { Rollout } from '../../../engine/model/rollout.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import { gather } from '../../../engine/snapshot/gather.ts';
import {
  type Condition,
  type Job,
  jobs,
  type Node,
  nodes,
  pods,
  secrets,
} from '../../../kube/resources.ts';
import { cattle } from './cattle-dialect.ts';
import { DEFAULT_JOB_SETTINGS } from './config.ts';
import { jobOf } from './job.ts';
import { latestHash } from './latest.ts';

const NAMESPACE = 'system-upgrade';
const config = { name: 'controller', namespace: NAMESPACE, job: DEFAULT_JOB_SETTINGS };
const dialect = cattle(config);
const policyOf = (plan: CattlePlan): RolloutPolicy =>
  dialect.planRules?.apply(plan, DEFAULT_POLICY) ?? DEFAULT_POLICY;
const NOW = T0 + 10 * MINUTE;
const LABEL = 'plan.upgrade.cattle.io/p';

const hashOf = (version: string): string => latestHash(buildCattlePlan('p'), version, []);
const HASH = hashOf('v1.2.3');

function node(
  name: string,
  labels: Record<string, string> = {},
  ready: 'True' | 'False' = 'True',
): Node {
  return buildNode(
    name,
    { labels: { 'kubernetes.io/hostname': `host-${name}`, ...labels } },
    ready,
  );
}

function job(
  name: string,
  conditions: Partial<Condition>[] = [],
  version = 'v1.2.3',
  spec: Partial<CattleSpec> = {},
): Job {
  const plan = buildCattlePlan('p', spec);
  const settings = config.job;
  const rendered = jobOf(config, {
    plan,
    node: node(name),
    version,
    hash: hashOf(version),
    settings,
  });
  const status = { startTime: later(0), active: 1, conditions: conditions as Condition[] };
  return {
    ...rendered,
    metadata: { ...rendered.metadata, uid: name, creationTimestamp: later(0) },
    status,
  };
}

const complete = { type: 'Complete', status: 'True', lastTransitionTime: later(MINUTE) } as const;
const failed = {
  type: 'Failed',
  status: 'True',
  reason: 'Why',
  message: 'because',
  lastTransitionTime: later(MINUTE),
} as const;

interface Pass {
  readonly plan: CattlePlan;
  readonly now?: number;
  readonly nodes?: readonly Node[];
  readonly jobs?: readonly Job[];
}

function worldOf({ nodes: all = [], jobs: made = [] }: Pass): World {
  return buildWorldOf([nodes, all], [jobs, made], [pods, []], [secrets, []]);
}

interface Outcome {
  readonly plan: CattlePlan;
  /** Names of the nodes that get a Job. */
  readonly signalled: string[];
  readonly recordedAgain: boolean;
  /** The nodes that are told to be done. */
  readonly finished: Node[];
  /** What is written for them. */
  readonly sent: (Instruction | undefined)[];
}

/** Records what is decided, and looks again as a leader that has just come. */
function pass(situation: Pass): Outcome {
  const { plan: before, nodes: all = [] } = situation;
  const now = situation.now ?? NOW;
  const first = decide(gather(dialect, before, worldOf(situation), now), policyOf(before), now);
  const plan = first.record ? dialect.project(first.record, before, now) : before;
  const finished = first.record ? finishedBy(first.record, situation) : [];
  const byName = new Map([...all, ...finished].map((each) => [each.metadata.name, each]));
  const world = worldOf({ ...situation, nodes: [...byName.values()] });
  const snapshot = gather(dialect, plan, world, now + 1000);
  const { signals, record } = decide(snapshot, policyOf(plan), now + 1000);
  const sent = signals.map((signalling) =>
    dialect.signal.send(world, snapshot.rollout, signalling, plan),
  );
  const signalled = sent.flatMap((instruction) => {
    return instruction?.kind === 'create'
      ? (instruction.object.metadata.labels?.['upgrade.cattle.io/node'] ?? [])
      : [];
  });
  return { plan, signalled, recordedAgain: record !== undefined, finished, sent };
}

function finishedBy(rollout: Rollout, situation: Pass): Node[] {
  const world = worldOf(situation);
  return rollout.stages.flatMap((stage) =>
    stage.targets
      .filter(({ state }) => state === 'done')
      .flatMap((target) => {
        const instruction = dialect.signal.finish?.(world, rollout, stage, target, situation.plan);
        return instruction?.kind === 'replace' ? [instruction.object] : [];
      }),
  );
}

function toldBy({ status }: CattlePlan): string[] {
  return (status?.conditions ?? []).map(({ type, status: is, reason, message }) =>
    [type, is, reason, ...(message ? [message] : [])].join(' '),
  );
}

const NOTHING = 'RefitNoTargets True NoTargets there was no target, so nothing was done';
const GOOD = ['Validated True PlanIsValid', 'LatestResolved True Version'];
const of = (spec: Partial<CattleSpec> = {}, status?: CattlePlan['status']): CattlePlan => ({
  ...buildCattlePlan('p', spec),
  ...(status ? { status } : {}),
});
/** As it is recorded while these host names are in progress. */
const running = (applying: string[], more: object[] = []): CattlePlan['status'] => ({
  conditions: [
    { type: 'Complete', status: 'False', reason: 'SyncJob' },
    { type: 'Validated', status: 'True', reason: 'PlanIsValid' },
    { type: 'LatestResolved', status: 'True', reason: 'Version' },
    ...(more as { type: string; status: string }[]),
  ],
  latestVersion: 'v1.2.3',
  latestHash: HASH,
  applying,
});

const FAILED = {
  type: 'RefitFailedNodes',
  status: 'True',
  message: `a at ${later(10 * MINUTE)}; generation 0`,
};

const aborted = (status?: CattlePlan['status']): CattlePlan => {
  const plan = of({}, status);
  return {
    ...plan,
    metadata: { ...plan.metadata, annotations: { [ABORT_ANNOTATION]: 'wrong image' } },
  };
};

/** The test begins at 08:00 on a Friday. */
const NOON = { days: ['fri'], startTime: '12:00', endTime: '13:00' };

interface Expected {
  readonly conditions?: string[];
  readonly applying?: string[];
  readonly signalled?: string[];
}

const rows: [string, Pass, Expected][] = [
  [
    'a new plan: the intent is recorded by host name, and the node gets its Job',
    { plan: of(), nodes: [node('a')] },
    { conditions: ['Complete False SyncJob', ...GOOD], applying: ['host-a'], signalled: ['a'] },
  ],
  [
    'as many as may, in the fixed order, recorded by the order of names',
    { plan: of({ concurrency: 2 }), nodes: ['a', 'b', 'c', 'd'].map((name) => node(name)) },
    { applying: ['host-a', 'host-c'], signalled: ['c', 'a'] },
  ],
  [
    'nothing to select is complete',
    { plan: of() },
    { conditions: ['Complete True Complete', ...GOOD, NOTHING] },
  ],
  [
    'no selector selects nobody',
    {
      plan: { ...of(), spec: { concurrency: 1, version: 'v1.2.3', upgrade: { image: 'img' } } },
      nodes: [node('a')],
    },
    { conditions: ['Complete True Complete', ...GOOD, NOTHING] },
  ],
  [
    'a concurrency of none selects nobody',
    { plan: of({ concurrency: 0 }), nodes: [node('a')] },
    { conditions: ['Complete True Complete', ...GOOD, NOTHING] },
  ],
  [
    'a node that has the hash is done, one that is disabled is none, one without host name neither',
    {
      plan: of(),
      nodes: [node('a', { [LABEL]: HASH }), node('b', { [LABEL]: 'disabled' }), buildNode('c')],
    },
    { conditions: ['Complete True Complete', ...GOOD] },
  ],
  [
    'a node with an earlier hash is taken up',
    { plan: of(), nodes: [node('a', { [LABEL]: hashOf('v1.2.2') })] },
    { applying: ['host-a'], signalled: ['a'] },
  ],
  [
    'a node that is not Ready waits, and that is told',
    { plan: of(), nodes: [node('a', {}, 'False')] },
    {
      conditions: [
        'Complete False Resolved',
        ...GOOD,
        'RefitWaits True Gate a slot is free, but a gate holds all nodes back; run: refit why --plan cattle/system-upgrade/p',
      ],
    },
  ],
  [
    'it does not hold up the others',
    { plan: of(), nodes: [node('a', {}, 'False'), node('b')] },
    { conditions: ['Complete False SyncJob', ...GOOD], applying: ['host-b'], signalled: ['b'] },
  ],
  [
    'a Job at work is waited for',
    { plan: of({}, running(['host-a'])), nodes: [node('a'), node('b')], jobs: [job('a')] },
    { applying: ['host-a'] },
  ],
  [
    'an intent without a Job gets one, whoever recorded it',
    { plan: of({}, running(['host-a'])), nodes: [node('a'), node('b')] },
    { applying: ['host-a'], signalled: ['a'] },
  ],
  [
    'when it is complete, the next one follows in the same record',
    {
      plan: of({}, running(['host-a'])),
      nodes: [node('a'), node('b')],
      jobs: [job('a', [complete])],
    },
    { applying: ['host-b'], signalled: ['b'] },
  ],
  [
    'a node that is not Ready after its Job keeps its slot',
    {
      plan: of({}, running(['host-a'])),
      nodes: [node('a', {}, 'False'), node('b')],
      jobs: [job('a', [complete])],
    },
    { applying: ['host-a'] },
  ],
  [
    'a Job that failed keeps the slot, with its reason',
    {
      plan: of({}, running(['host-a'])),
      nodes: [node('a'), node('b')],
      jobs: [job('a', [failed])],
    },
    {
      conditions: [
        `Complete False JobFailed Job ${NAMESPACE}/${job('a').metadata.name} failed on Node a: Why: because`,
        ...GOOD,
        `RefitFailedNodes True JobFailed ${FAILED.message}`,
      ],
      applying: ['host-a'],
    },
  ],
  [
    'and stays failed after Kubernetes has deleted its Job, while the other slot goes on',
    {
      now: NOW + HOUR,
      plan: of({ concurrency: 2 }, running(['host-a'], [FAILED])),
      nodes: [node('a'), node('b'), node('c')],
    },
    { applying: ['host-a', 'host-c'], signalled: ['c'] },
  ],
  [
    'a new version begins anew with it',
    {
      plan: of({ version: 'v1.2.4' }, running(['host-a'], [FAILED])),
      nodes: [node('a')],
    },
    { conditions: ['Complete False Resolved', ...GOOD], applying: ['host-a'], signalled: ['a'] },
  ],
  [
    'a Job of an earlier version that still works holds its slot, and no second one joins it',
    {
      plan: of({ version: 'v1.2.4' }, running(['host-a'])),
      nodes: [node('a'), node('b')],
      jobs: [job('a')],
    },
    { applying: ['host-a'] },
  ],
  [
    'a node that is left out while its Job works holds its slot',
    {
      plan: of({}, running(['host-a'])),
      nodes: [node('a', { [LABEL]: 'disabled' }), node('b')],
      jobs: [job('a')],
    },
    { applying: ['host-a'] },
  ],
  [
    'a node that is gone frees its slot',
    { plan: of({}, running(['host-a'])), nodes: [node('b')] },
    { applying: ['host-b'], signalled: ['b'] },
  ],
  [
    'a plan that was changed into a wrong one starts nothing, and forgets intents that had no Job',
    {
      plan: of({ drain: { deleteEmptydirData: true, deleteLocalData: true } }, running(['host-a'])),
      nodes: [node('a')],
    },
    {
      conditions: [
        'Complete False NotReady plan is not valid and resolved',
        'Validated False Error spec.drain cannot specify both deleteEmptydirData and deleteLocalData',
        'LatestResolved True Version',
      ],
    },
  ],
  [
    'what is at work then goes on, and holds its slot',
    {
      plan: of({ postCompleteDelay: '-30s' }, running(['host-a'])),
      nodes: [node('a'), node('b')],
      jobs: [job('a')],
    },
    {
      conditions: [
        'Complete False NotReady plan is not valid and resolved',
        'Validated False Error spec.postCompleteDelay is negative',
        'LatestResolved True Version',
      ],
      applying: ['host-a'],
    },
  ],
  [
    'neither version nor channel',
    { plan: of({ version: '' }), nodes: [node('a')] },
    {
      conditions: [
        'Complete False NotReady plan is not valid and resolved',
        'Validated True PlanIsValid',
        'LatestResolved False Error cannot resolve plan: missing channel and version',
      ],
    },
  ],
  [
    'a channel that was not read yet',
    { plan: of({ version: '', channel: 'https://example.com' }), nodes: [node('a')] },
    {
      conditions: [
        'Complete False NotReady plan is not valid and resolved',
        'Validated True PlanIsValid',
      ],
    },
  ],
  [
    'a Secret that is not there',
    { plan: of({ secrets: [{ name: 's', path: 's' }] }), nodes: [node('a')] },
    {
      conditions: [
        'Complete False NotReady plan is not valid and resolved',
        'Validated False Error secrets "s" not found',
      ],
    },
  ],
  [
    'aborted: an intent without a Job is forgotten, and nothing is recorded twice',
    { plan: aborted(running(['host-a'])), nodes: [node('a'), node('b')] },
    {
      conditions: [
        'Complete False SyncJob',
        ...GOOD,
        'RefitAborted True Aborted the plan was aborted: wrong image',
      ],
      applying: [],
    },
  ],
  [
    'aborted with a Job at work: it comes to its end first',
    { plan: aborted(running(['host-a'])), nodes: [node('a'), node('b')], jobs: [job('a')] },
    { conditions: ['Complete False SyncJob', ...GOOD], applying: ['host-a'] },
  ],
  [
    'aborted before it began',
    { plan: aborted(), nodes: [node('a')] },
    {
      conditions: [
        'Complete False Resolved',
        ...GOOD,
        'RefitAborted True Aborted the plan was aborted: wrong image',
      ],
    },
  ],
  [
    'an abort that was removed starts it again, and is forgotten',
    {
      plan: of({}, running([], [{ type: 'RefitAborted', status: 'True', message: 'aborted' }])),
      nodes: [node('a')],
    },
    { conditions: ['Complete False SyncJob', ...GOOD], applying: ['host-a'], signalled: ['a'] },
  ],
  [
    'outside of its window it waits, in the words of the original',
    { plan: of({ window: NOON }), nodes: [node('a')] },
    {
      conditions: [
        'Complete False Waiting current time is not within configured window',
        ...GOOD,
        'RefitWaits True Gate a slot is free, but a gate holds all nodes back; run: refit why --plan cattle/system-upgrade/p',
      ],
    },
  ],
  [
    'when it opens, the waiting is forgotten',
    {
      plan: of(
        { window: NOON },
        {
          ...running([], [{ type: 'RefitWaits', status: 'True' }]),
          conditions: [{ type: 'Complete', status: 'False', reason: 'Waiting', message: 'w' }],
        },
      ),
      nodes: [node('a', {}, 'False')],
      now: T0 + 4 * HOUR,
    },
    {
      conditions: [
        'Complete False Resolved',
        ...GOOD,
        'RefitWaits True Gate a slot is free, but a gate holds all nodes back; run: refit why --plan cattle/system-upgrade/p',
      ],
    },
  ],
  [
    'inside of it, it begins',
    { plan: of({ window: NOON }), nodes: [node('a')], now: T0 + 4 * HOUR },
    { applying: ['host-a'], signalled: ['a'] },
  ],
  [
    'what has begun goes on when it closes',
    {
      plan: of({ window: NOON }, running(['host-a'])),
      nodes: [node('a'), node('b')],
      jobs: [job('a', [complete])],
    },
    { applying: ['host-b'], signalled: ['b'] },
  ],
  [
    'a window that cannot be read',
    { plan: of({ window: { ...NOON, timeZone: 'Mars' } }), nodes: [node('a')] },
    {
      conditions: [
        'Complete False NotReady plan is not valid and resolved',
        'Validated False Error spec.window is invalid, timeZone "Mars" is unknown; use for example Europe/Berlin',
      ],
    },
  ],
  [
    'after its Job a node keeps its slot for as long as the plan says',
    {
      plan: of({ postCompleteDelay: '10m' }, running(['host-a'])),
      nodes: [node('a'), node('b')],
      jobs: [job('a', [complete])],
    },
    { applying: ['host-a'] },
  ],
  [
    'and no longer',
    {
      plan: of({ postCompleteDelay: '9m' }, running(['host-a'])),
      nodes: [node('a'), node('b')],
      jobs: [job('a', [complete])],
    },
    { applying: ['host-b'], signalled: ['b'] },
  ],
  [
    'conditions of others stay',
    { plan: of({}, { conditions: [{ type: 'Mine', status: 'True' }] }) },
    { conditions: ['Mine True ', 'Complete True Complete', ...GOOD, NOTHING] },
  ],
];

describe('passes', () => {
  test.each(rows)('%s', (_name, situation, { conditions, applying = [], signalled = [] }) => {
    const { plan, ...after } = pass(situation);
    if (conditions) expect(toldBy(plan)).toEqual(conditions);
    expect(plan.status?.applying ?? []).toEqual(applying);
    expect({ signalled: after.signalled, recordedAgain: after.recordedAgain }).toEqual({
      signalled,
      recordedAgain: false,
    });
  });
});

test.each<[string, Partial<CattleSpec>, boolean]>([
  ['a plan that cordons makes it schedulable again', { cordon: true }, false],
  ['so does one that drains', { drain: {} }, false],
  ['one that does neither leaves it as it is', {}, true],
])('a node that is done has the hash and its labels; %s', (_name, spec, unschedulable) => {
  const labels = { 'example.com/version': 'at-$(LATEST_VERSION)' };
  const cordoned = { ...node('a', { mine: 'yes' }), spec: { unschedulable: true } };
  const plan = of({ ...spec, postCompleteLabels: labels }, running(['host-a']));
  const [finished] = pass({
    plan,
    nodes: [cordoned],
    jobs: [job('a', [complete], 'v1.2.3', spec)],
  }).finished;
  expect(finished?.metadata.labels).toMatchObject({
    mine: 'yes',
    [LABEL]: HASH,
    'example.com/version': 'at-v1.2.3',
  });
  expect(finished?.spec?.unschedulable ?? false).toBe(unschedulable);
});

test('a node that rests carries pods again, and is labelled only afterwards', () => {
  const spec = { cordon: true, postCompleteDelay: '10m' };
  const plan = of(spec, running(['host-a']));
  const cordoned = { ...node('a'), spec: { unschedulable: true } };
  const world = worldOf({ plan, nodes: [cordoned], jobs: [job('a', [complete], 'v1.2.3', spec)] });
  const { nodeActions } = decide(gather(dialect, plan, world, NOW), policyOf(plan), NOW);
  const [nodeAction] = nodeActions;
  expect([nodeActions.length, nodeAction?.kind]).toEqual([1, 'acknowledge']);
  const rollout = dialect.resolve(plan, world, NOW);
  const instruction =
    nodeAction &&
    dialect.signal.acknowledge?.(world, rollout, nodeAction.stage, nodeAction.target, NOW);
  expect(instruction).toEqual({
    kind: 'replace',
    resource: nodes,
    object: { ...cordoned, spec: {} },
  });
});

test('a Job of a deleted plan of that name says nothing of the new one', () => {
  const earlier = job('a', [failed]);
  const [owner] = earlier.metadata.ownerReferences ?? [];
  const foreignTarget = {
    ...earlier,
    metadata: { ...earlier.metadata, ownerReferences: owner ? [{ ...owner, uid: 'old' }] : [] },
  };
  expect(pass({ plan: of(), nodes: [node('a')], jobs: [foreignTarget] }).signalled).toEqual(['a']);
});

test('a Job that the original left paused is set going, once its node is recorded', () => {
  const left = job('a');
  const paused: Job = { ...left, spec: { ...left.spec, parallelism: 0 } };
  const { plan, sent } = pass({ plan: of(), nodes: [node('a')], jobs: [paused] });
  expect(plan.status?.applying).toEqual(['host-a']);
  expect(sent).toEqual([
    {
      kind: 'replace',
      resource: jobs,
      object: { ...paused, spec: { ...left.spec, parallelism: 1 } },
    },
  ]);
});

test('the time of a condition moves with status or message, not with the reason', () => {
  const before = of(
    {},
    {
      ...running(['host-b']),
      conditions: [
        { type: 'Complete', status: 'False', reason: 'Resolved', lastUpdateTime: later(0) },
      ],
    },
  );
  const { plan } = pass({ plan: before, nodes: [node('a')] });
  expect(plan.status?.conditions?.map(({ lastUpdateTime }) => lastUpdateTime)).toEqual([
    later(0),
    later(10 * MINUTE),
    later(10 * MINUTE),
  ]);
});
