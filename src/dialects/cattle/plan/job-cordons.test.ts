/** Proves which cordons stay after an upgrade, through failures and retries, and which marks a Node keeps. */
import { expect, test } from 'vitest';
import {
  buildCattlePlan,
  type CattleSpec,
} from '../../../../test/support/builders/cattle-plans.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildTarget } from '../../../../test/support/builders/targets.ts';
import { later } from '../../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { withCordon, withoutCordon, writeOwner } from '../../../drain/cordon-marks.ts';
import { ownerOf, type RecordedState } from '../../../engine/model/rollout.ts';
import { annotated, type Job, type Node } from '../../../kube/resources.ts';
import { freed } from './cattle-signal.ts';
import { DEFAULT_JOB_SETTINGS } from './config.ts';
import { jobOf } from './job.ts';
import {
  CORDONS,
  cordonsIn,
  isCordonedBy,
  unnamedCordonOn,
  withCordonMark,
  withJobCordonMark,
  withoutCordonMark,
} from './job-cordons.ts';
import { markOf } from './leader-drain.ts';
import { HELD_ANNOTATION } from './names.ts';
import { trimJob } from './plan-jobs.ts';

const MARK = 'cordon.refit.upgrade.cattle.io/p';
const STARTS = buildTarget('a', 'intended');
const FAILS = buildTarget('a', 'failed');
const plan = (
  spec: Partial<CattleSpec> = { cordon: true },
  status?: CattlePlan['status'],
): CattlePlan => ({
  ...buildCattlePlan('p', spec),
  ...(status && { status }),
});
const FAILED_BEFORE = plan(
  { cordon: true },
  {
    conditions: [
      { type: 'RefitFailedNodes', status: 'True', message: `a at ${later(0)}; generation 0` },
    ],
  },
);

const open = buildNode('a');
const CONFIG = { name: 'controller', namespace: 'system-upgrade', job: DEFAULT_JOB_SETTINGS };
const LABEL = 'plan.upgrade.cattle.io/p';
const APPLYING = plan({ cordon: true }, { latestHash: 'old', applying: ['a'] });
const JOB: Job = {
  metadata: { name: 'job', labels: { [LABEL]: 'old' } },
  spec: { template: CORDONS },
};

/** Returns the Job that a Plan with this spec creates. */
const jobFrom = (spec: Partial<CattleSpec>, settings = CONFIG.job): Job =>
  jobOf(CONFIG, {
    plan: plan(spec),
    node: open,
    version: 'v1',
    hash: 'hash',
    settings,
  });

const started = (job: Job): Job => ({ ...job, spec: { ...job.spec, suspend: false } });

const markOn = ({ metadata }: Node): string | undefined => metadata.annotations?.[MARK];
const cordon = (node: Node): Node => ({ ...node, spec: { ...node.spec, unschedulable: true } });
const uncordon = (node: Node): Node => ({ ...node, spec: {} });
const start = (node: Node, of = plan(), last?: Job): Node => withCordonMark(node, of, STARTS, last);
const fail = (node: Node): Node => withCordonMark(node, plan(), FAILS, undefined);
const end = (node: Node, of = plan(), ...all: Job[]): string => {
  const { metadata, spec } = freed(node, of, all);
  return `${spec?.unschedulable === true ? 'cordoned' : 'schedulable'} ${metadata.annotations?.[MARK] ?? 'unmarked'}`;
};
const closed = cordon(open);
const doneBefore = cordon(buildNode('a', { labels: { [LABEL]: 'old' } }));

test.each<[string, string, string]>([
  [
    'a node that the Job cordons is schedulable after it',
    end(cordon(start(open))),
    'schedulable unmarked',
  ],
  [
    'a node that somebody cordoned before its Job stays cordoned after it',
    end(cordon(start(closed))),
    'cordoned unmarked',
  ],
  [
    'so for a plan that drains',
    end(start(closed, plan({ drain: {} })), plan({ drain: {} })),
    'cordoned unmarked',
  ],
  [
    'a node that a Job of the original cordoned has no mark, and becomes schedulable',
    end(closed),
    'schedulable unmarked',
  ],
  [
    'the next Job removes the cordon that a failed Job left on its node',
    end(start(fail(cordon(start(open))))),
    'schedulable unmarked',
  ],
  [
    'the cordon of somebody else outlives a failure',
    end(start(fail(cordon(start(closed))))),
    'cordoned unmarked',
  ],
  [
    'one that a failed Job of the original left is ours',
    end(start(closed, FAILED_BEFORE)),
    'schedulable unmarked',
  ],
  [
    'one of a Job whose end nobody recorded is ours',
    end(start(closed, plan(), JOB)),
    'schedulable unmarked',
  ],
  ['so where the Job is gone', end(start(closed, APPLYING)), 'schedulable unmarked'],
  [
    'one that stayed behind a Job that is done belongs to somebody else, also while the status still lists the node',
    end(start(doneBefore, APPLYING, JOB)),
    'cordoned unmarked',
  ],
  [
    'a mark of an earlier attempt does not count when somebody has uncordoned it',
    end(cordon(start(uncordon(start(closed))))),
    'schedulable unmarked',
  ],
])('%s', (_name, told, expected) => {
  expect(told).toBe(expected);
});

test.each<[string, string, string]>([
  [
    'a node whose Job cordoned becomes schedulable, although the Plan no longer cordons',
    end(closed, plan({}), jobFrom({ drain: {} })),
    'schedulable unmarked',
  ],
  [
    'a cordon stays if the Job did not cordon, although the Plan cordons now',
    end(closed, plan(), jobFrom({})),
    'cordoned unmarked',
  ],
  [
    'so for what the cache keeps of it',
    end(closed, plan({}), trimJob(jobFrom({ cordon: true }))),
    'schedulable unmarked',
  ],
  [
    'the cache keeps nothing else',
    JSON.stringify(trimJob(jobFrom({})).spec?.['template']) ?? 'none',
    'none',
  ],
  [
    'an earlier one cordoned, and is not done: the next one ends that',
    end(start(closed, plan({}), jobFrom({ cordon: true })), plan({}), jobFrom({})),
    'schedulable unmarked',
  ],
  [
    'somebody cordoned it since that was done',
    end(
      start(
        cordon(buildNode('a', { labels: { [LABEL]: 'hash' } })),
        plan({}),
        jobFrom({ cordon: true }),
      ),
      plan({}),
      jobFrom({ cordon: true }),
    ),
    'cordoned unmarked',
  ],
])('%s', (_name, told, expected) => {
  expect(told).toBe(expected);
});

test('a node without a cordon costs no write', () => {
  expect([start(open), fail(open)]).toEqual([open, open]);
  expect(start(open)).toBe(open);
  expect(fail(start(closed))).toEqual(start(closed));
});

test('a cordon that a person sets after a failed drain by the leader stays', () => {
  const owner = {
    source: { uid: plan().metadata.uid ?? '', kind: 'Plan', mark: markOf(plan().metadata) },
  };
  const ours = withCordon(open, ownerOf(owner, { since: later(0) }));
  expect([start(ours), fail(ours)]).toEqual([ours, ours]);
  expect(end(start(cordon(withoutCordon(fail(ours)))))).toBe('cordoned unmarked');
});

test('a cordon that a person sets before the leader cordons for a held Job stays, and that of the leader goes', () => {
  const held = jobFrom({ drain: {} }, { ...CONFIG.job, drainInJob: false });
  const draining = plan({ drain: {} });
  const ours = withCordon(open, writeOwner(markOf(draining.metadata)));
  for (const job of [held, trimJob(started(held))]) {
    expect(end(closed, draining, job)).toBe('cordoned unmarked');
    expect(end(ours, draining, job)).toBe('schedulable unmarked');
    expect(unnamedCordonOn(closed, draining, STARTS, [job])).toBe('found');
    expect(markOn(withCordonMark(closed, draining, FAILS, job))).toBe('found');
    expect(markOn(start(closed, draining, job))).toBe('found');
    const kept = withJobCordonMark(closed, draining, 'hash', [job]);
    expect(end(kept, draining), 'also after Kubernetes has deleted the Job').toBe(
      'cordoned unmarked',
    );
    expect(withJobCordonMark(ours, draining, 'hash', [job])).toBe(ours);
    expect(withJobCordonMark(open, draining, 'hash', [job])).toBe(open);
  }
});

test('a Plan that neither cordons nor drains writes no mark on a cordoned node', () => {
  expect(start(closed, plan({}))).toBe(closed);
});

test('a mark without its cordon goes when the node starts, and stays while the node has failed', () => {
  const marked = uncordon(start(closed));
  expect([markOn(marked), markOn(start(marked)), markOn(fail(marked))]).toEqual([
    'found',
    undefined,
    'found',
  ]);
});

test('the cordon of a node that has failed is that of its Job, of one that starts that of somebody else', () => {
  const recorded = plan({ cordon: true }, { latestHash: 'new' });
  expect([
    markOn(withCordonMark(closed, recorded, FAILS, undefined)),
    markOn(withCordonMark(closed, recorded, STARTS, undefined)),
  ]).toEqual(['ours new', 'found']);
});

test('a Plan that cordons no more asks its last Job whether that did', () => {
  const silent = plan({});
  expect([
    markOn(start(closed, silent)),
    markOn(start(closed, silent, jobFrom({}))),
    markOn(start(closed, silent, JOB)),
  ]).toEqual([undefined, undefined, 'ours old']);
});

const withMark = (node: Node, mark: string): Node => annotated(node, { [MARK]: mark });

test('a mark of a failed Job counts until its version is done', () => {
  const marked = withMark(closed, 'ours old');
  expect(start(marked)).toBe(marked);
  expect(fail(marked)).toBe(marked);
  const done = withMark(doneBefore, 'ours old');
  expect(markOn(start(done))).toBe('found');
  expect(
    markOn(withCordonMark(done, plan({ cordon: true }, { latestHash: 'new' }), FAILS, undefined)),
  ).toBe('ours new');
  expect([isCordonedBy(marked, plan({}), []), isCordonedBy(done, plan({}), [])]).toEqual([
    true,
    false,
  ]);
  expect(markOn(start(withMark(closed, 'else old')))).toBe('found');
});

test('the mark names the hash of the last Job, or that of the Plan', () => {
  const failed = (of: CattlePlan, last?: Job) => markOn(withCordonMark(closed, of, FAILS, last));
  const unlabelled: Job = { ...JOB, metadata: { name: 'job' } };
  const recorded = plan({ cordon: true }, { latestHash: 'new' });
  expect(failed(recorded, JOB)).toBe('ours old');
  expect(failed(recorded, unlabelled)).toBe('ours new');
  expect(failed(plan())).toBe('ours ');
});

test('a Job that does not cordon leaves no cordon, also if it failed', () => {
  const silent = jobFrom({});
  expect(markOn(withCordonMark(closed, plan(), FAILS, silent))).toBe('found');
  expect(markOn(start(closed, plan(), silent))).toBe('found');
  expect(markOn(start(closed, FAILED_BEFORE, silent))).toBe('found');
});

test('an earlier try is a Job whose version is not done, a recorded failure, or a node still in progress', () => {
  const named = cordon(buildNode('a', { labels: { 'kubernetes.io/hostname': 'host-a' } }));
  const applying = (host: string, latestHash = 'old') =>
    plan({ cordon: true }, { latestHash, applying: [host] });
  expect(markOn(start(named, applying('host-a')))).toBe('ours old');
  expect(markOn(start(named, applying('a')))).toBe('found');
  expect(markOn(start(doneBefore, applying('a')))).toBe('found');
  expect(markOn(start(doneBefore, applying('a', 'new')))).toBe('ours new');
  expect(markOn(start(doneBefore, plan(), JOB))).toBe('found');
  const refused = { type: 'RefitFailedNodes', status: 'True' };
  const message = `a refused at ${later(0)}; generation 0`;
  const refusedBefore = plan({ cordon: true }, { conditions: [{ ...refused, message }] });
  expect(markOn(start(closed, refusedBefore)), 'no Job ran').toBe('found');
});

test('a cordon of the leader needs no mark', () => {
  const ours = withCordon(open, writeOwner(markOf(plan().metadata)));
  const others = withCordon(open, writeOwner({ ...markOf(plan().metadata), plan: 's/another' }));
  expect(start(ours)).toBe(ours);
  expect(markOn(start(others))).toBe('found');
});

test('a Job cordons if it has a container for that, or waited for the leader', () => {
  const withContainer = (name: string): Job => ({
    metadata: { name: 'job' },
    spec: { template: { spec: { initContainers: [{ name: 'first' }, { name }] } } },
  });
  expect(['cordon', 'drain', 'prepare'].map((name) => cordonsIn(withContainer(name)))).toEqual([
    true,
    true,
    false,
  ]);
  expect(cordonsIn({ metadata: { name: 'job' } })).toBe(false);
  expect(cordonsIn({ metadata: { name: 'job' }, spec: { template: {} } })).toBe(false);
  const held = { name: 'job', annotations: { [HELD_ANNOTATION]: 'true' } };
  expect(cordonsIn({ metadata: held })).toBe(true);
  expect(cordonsIn({ metadata: { ...held, annotations: {} } })).toBe(false);
});

test('only a cordoned node is cordoned by a Job: by one of its Jobs, or by a Plan that cordons if they are gone', () => {
  const silent = jobFrom({});
  const cordons = jobFrom({ cordon: true });
  const asked = (node: Node | undefined, of: CattlePlan, ...all: Job[]) =>
    isCordonedBy(node, of, all);
  expect(asked(undefined, plan())).toBe(false);
  expect(asked(open, plan(), cordons)).toBe(false);
  expect(asked(closed, plan())).toBe(true);
  expect(asked(closed, plan({}))).toBe(false);
  expect(asked(closed, plan(), silent)).toBe(false);
  expect(asked(closed, plan({}), silent, cordons)).toBe(true);
  expect(asked(withMark(closed, 'found'), plan(), cordons)).toBe(false);
});

test('a cordon without an owner is told as ours or as found, until its target is done', () => {
  const told = (node: Node | undefined, state: RecordedState, of = plan(), ...all: Job[]) =>
    unnamedCordonOn(node, of, buildTarget('a', state), all);
  const cordons = jobFrom({ cordon: true });
  expect(told(undefined, 'intended')).toBeUndefined();
  expect(told(closed, 'done')).toBeUndefined();
  expect(told(closed, 'intended')).toBe('ours');
  expect(told(withMark(closed, 'found'), 'intended')).toBe('found');
  expect(told(closed, 'failed', plan(), cordons)).toBe('ours');
  expect(told(closed, 'pending'), 'the mark that it gets when it starts').toBe('found');
  expect(told(closed, 'pending', plan(), cordons)).toBe('ours');
});

test('a node without a mark stays the same object when the mark is removed', () => {
  expect(withoutCordonMark(closed, plan())).toBe(closed);
  expect(markOn(withoutCordonMark(withMark(closed, 'found'), plan()))).toBeUndefined();
});
