/** Tests the table of the effects of a policy: each cell without an effect is told, and each field has a proof. */
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import type { PolicyField } from '../../src/engine/policy/policy-effects.ts';
import { ROOT } from '../repo/tree.ts';
import { CHECKED, policyWith } from '../scenes/k0s-scene.ts';
import { Stage } from '../scenes/stage.ts';
import { ALL_DIALECTS } from './clusters/all.ts';
import { hookJob } from './hook-jobs.ts';
import { only } from './scenes/scene.ts';
import { TABLE } from './scenes/table.ts';

const WAVE = { selector: only('w1') };

/** A policy with each field. A new field without a sample does not compile. */
const SAMPLES: Readonly<Record<PolicyField, UpgradePolicySpec>> = {
  plans: { plans: [{ name: 'x' }] },
  paused: { paused: true },
  failureBudget: { failureBudget: 1 },
  maxConsecutiveFailures: { maxConsecutiveFailures: 1 },
  onFailure: { onFailure: 'Pause' },
  retry: { retry: { attempts: 2, backoff: '1m' } },
  waves: { waves: [WAVE, {}] },
  'waves[].settle': { waves: [{ ...WAVE, settle: '1h' }, {}] },
  'waves[].failureBudget': { waves: [{ ...WAVE, failureBudget: 1 }, {}] },
  'waves[].approval': { waves: [WAVE, { approval: 'Manual' }] },
  spread: { spread: 'zone' },
  perDomain: { perDomain: { label: 'zone', maxUnavailable: 1 } },
  maxBlockedNodes: { maxBlockedNodes: 1 },
  maxUnavailable: { maxUnavailable: 1 },
  order: { order: ['zone'] },
  'deadlines.answer': { deadlines: { answer: '1m' } },
  'deadlines.download': { deadlines: { download: '1m' } },
  'deadlines.drain': { deadlines: { drain: '1m' } },
  'deadlines.apply': { deadlines: { apply: '1m' } },
  'deadlines.restart': { deadlines: { restart: '1m' } },
  'deadlines.ready': { deadlines: { ready: '1m' } },
  'deadlines.target': { deadlines: { target: '1h' } },
  'drain.enabled': { drain: { enabled: false } },
  'drain.deleteEmptyDirData': { drain: { deleteEmptyDirData: false } },
  'drain.force': { drain: { force: false } },
  'drain.gracePeriodSeconds': { drain: { gracePeriodSeconds: 5 } },
  'drain.onDeadline': { drain: { onDeadline: 'Skip' } },
  'drain.zeroDisruptionBudgets': { drain: { zeroDisruptionBudgets: 'Wait' } },
  'drain.softTaint': { drain: { softTaint: false } },
  'drain.uncordon': { drain: { uncordon: 'Always' } },
  'drain.startWith': { drain: { startWith: 'FewestBudgetPods' } },
  'drain.order': { drain: { order: 'PriorityClass' } },
  'drain.pods': { drain: { pods: [{ behavior: 'Skip' }] } },
  'drain.loadBalancers': { drain: { loadBalancers: { exclude: true } } },
  'drain.volumes': { drain: { volumes: { waitForDetach: true } } },
  'drain.evictionRequests': { drain: { evictionRequests: 'Use' } },
  'drain.waitForJobs': { drain: { waitForJobs: '1m' } },
  health: CHECKED,
  hooks: { hooks: [hookJob('BeforeDrain')] },
  notify: {
    notify: [{ name: 'chat', type: 'Webhook', url: 'https://a.example.com', events: ['Failed'] }],
  },
  silences: {
    silences: [
      {
        name: 'nodes',
        url: 'http://alertmanager',
        matchers: [{ name: 'node', value: '{node}' }],
      },
    ],
  },
  soak: { soak: '1m' },
  keepPrevious: { keepPrevious: '1h' },
  etcdSnapshot: { etcdSnapshot: { mode: 'Require' } },
  settle: { settle: '1m' },
  'versions.allow': { versions: { allow: ['Downgrade'] } },
  'versions.pin': { versions: { pin: [{ selector: only('w1'), version: 'v1.36.3' }] } },
  'versions.requireReady': { versions: { requireReady: true } },
  'versions.verify': { versions: { verify: 'None' } },
  virtualNodes: { virtualNodes: 'Count' },
  'payloads.requireSha256': { payloads: { requireSha256: true } },
  'payloads.requireHttps': { payloads: { requireHttps: true } },
  'payloads.requireImageDigest': { payloads: { requireImageDigest: true } },
  'payloads.diskReserveMiB': { payloads: { diskReserveMiB: 100 } },
  'payloads.problemTimeout': { payloads: { problemTimeout: '1m' } },
  prefetch: { prefetch: 'None' },
  'agents.require': { agents: { require: 'Refit' } },
  controllersNotReady: { controllersNotReady: 'End' },
  holds: { holds: 'Finish' },
  goneNodes: { goneNodes: 'Skip' },
  newNodes: { newNodes: 'Include' },
  coordinate: { coordinate: ['Kured'] },
  nodeConditions: { nodeConditions: true },
  'edits.afterEnd': { edits: { afterEnd: 'Restart' } },
  'edits.whileRunning': { edits: { whileRunning: 'Ignore' } },
  windows: { windows: [{ start: '22:00', length: '4h', timeZone: 'UTC' }] },
  blackouts: { blackouts: [{ from: '2026-12-20', to: '2026-12-24' }] },
};

const REAL = 'test/testenv';

/** The tests of the fields that no scene of the table is about. */
const ELSEWHERE: Partial<Readonly<Record<PolicyField, string>>> = {
  onFailure: `${REAL}/roll-back-policy.test.ts`,
  'deadlines.download': 'src/engine/assess/target-deadlines.test.ts',
  'deadlines.apply': 'src/engine/assess/target-deadlines.test.ts',
  'deadlines.restart': 'src/engine/assess/target-deadlines.test.ts',
  'drain.gracePeriodSeconds': 'src/dialects/cattle/plan/leader-drain.test.ts',
  'drain.onDeadline': 'src/engine/assess/skipped-nodes.test.ts',
  'drain.softTaint': `${REAL}/drain.test.ts`,
  'drain.order': `${REAL}/drain-rules.test.ts`,
  'drain.volumes': `${REAL}/drain-production.test.ts`,
  'drain.evictionRequests': `${REAL}/eviction-requests.test.ts`,
  silences: `${REAL}/silences.test.ts`,
  soak: 'src/agent/next-step.test.ts',
  keepPrevious: 'test/agent/kept-binary.test.ts',
  etcdSnapshot: 'test/agent/etcd-snapshot.test.ts',
  'versions.allow': `${REAL}/version-change.test.ts`,
  'versions.verify': `${REAL}/cattle-versions.test.ts`,
  'payloads.requireSha256': 'src/engine/gates/registry-policy-gates.test.ts',
  'payloads.requireHttps': 'src/engine/gates/registry-policy-gates.test.ts',
  'payloads.requireImageDigest': 'src/engine/gates/registry-policy-gates.test.ts',
  'payloads.diskReserveMiB': 'src/agent/download/disk-room.test.ts',
  'payloads.problemTimeout': 'src/engine/gates/downloads-possible.test.ts',
  prefetch: `${REAL}/autopilot/prefetch.test.ts`,
  'agents.require': 'src/engine/gates/registry-policy-gates.test.ts',
  controllersNotReady: `${REAL}/autopilot/quorum.test.ts`,
  'edits.afterEnd': `${REAL}/autopilot/edited-after-end.test.ts`,
  'edits.whileRunning': 'src/engine/report/edits-while-running.test.ts',
};

let directory: string;
let stage: Stage;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-effects-'));
  stage = await Stage.open(directory);
});

afterAll(async () => {
  await stage[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

test.each(Object.entries(SAMPLES))(
  'refit validate warns where %s has no whole effect',
  async (name, spec) => {
    const field = name as PolicyField;
    const path = stage.path('policy.yaml');
    await writeFile(path, JSON.stringify(policyWith(spec)));
    const told = await stage.answerAlone('validate', path);
    expect(told).toContain('is valid');
    for (const { module } of ALL_DIALECTS) {
      const effect = module.policyEffects[field];
      const isCovered = !spec.plans;
      if (effect.kind !== 'works' && isCovered)
        expect(told).toContain(`${module.name}: ${effect.why}`);
    }
  },
);

test('every field of a policy has a scene, or a test elsewhere that exists', () => {
  const shown = new Set(TABLE.flatMap(({ fields = [] }) => fields));
  const wrong = (Object.keys(SAMPLES) as PolicyField[]).filter((field) => {
    const elsewhere = ELSEWHERE[field];
    return elsewhere === undefined
      ? !shown.has(field)
      : shown.has(field) || !existsSync(`${ROOT}${elsewhere}`);
  });
  expect(wrong).toEqual([]);
});
