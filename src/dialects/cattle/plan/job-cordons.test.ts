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
import { withCordon, withoutCordon } from '../../../drain/cordon-marks.ts';
import { ownerOf } from '../../../engine/model/rollout.ts';
import type { Job, Node } from '../../../kube/resources.ts';
import { freed } from './cattle-signal.ts';
import { DEFAULT_JOB_SETTINGS } from './config.ts';
import { jobOf } from './job.ts';
import { CORDONS, withCordonMark } from './job-cordons.ts';
import { markOf } from './leader-drain.ts';
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
const jobFrom = (spec: Partial<CattleSpec>): Job =>
  jobOf(CONFIG, {
    plan: plan(spec),
    node: open,
    version: 'v1',
    hash: 'hash',
    settings: CONFIG.job,
  });

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
    'one that somebody had cordoned stays cordoned',
    end(cordon(start(closed))),
    'cordoned unmarked',
  ],
  [
    'so for a plan that drains',
    end(start(closed, plan({ drain: {} })), plan({ drain: {} })),
    'cordoned unmarked',
  ],
  ['the Job of the original left no mark', end(closed), 'schedulable unmarked'],
  [
    'a Job that failed cordoned it: the next one ends that',
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
    'the Plan does not cordon any more: its Job did',
    end(closed, plan({}), jobFrom({ drain: {} })),
    'schedulable unmarked',
  ],
  ['it cordons now: the Job does not', end(closed, plan(), jobFrom({})), 'cordoned unmarked'],
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

test('the cordon of the leader ends with its owner: one that somebody sets after a failed drain stays', () => {
  const owner = {
    source: { uid: plan().metadata.uid ?? '', kind: 'Plan', mark: markOf(plan().metadata) },
  };
  const ours = withCordon(open, ownerOf(owner, { since: later(0) }));
  expect([start(ours), fail(ours)]).toEqual([ours, ours]);
  expect(end(start(cordon(withoutCordon(fail(ours)))))).toBe('cordoned unmarked');
});

test('a plan that neither cordons nor drains remembers nothing', () => {
  expect(start(closed, plan({}))).toBe(closed);
});

const markOn = ({ metadata }: Node): string | undefined => metadata.annotations?.[MARK];

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
